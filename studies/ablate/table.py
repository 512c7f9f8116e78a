"""The declaration of an ablation: its rows, the control, the expected directions, and the defaults of training."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

from ...beam_pipelines.workflow import Step
from ...errors import InputError
from ..shared.mining import Change
from ..shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS

Direction = Literal["lower", "higher"]
Start = Literal["shared", "own", "none"]
ALL_ROWS: Final = "all"


@dataclasses.dataclass(frozen=True)
class Needed:
    """Something that a row removes, as the manifest of a job counts it.

    Attributes:
      job: a job of the build.
      section: "examples" or "tallies" of the job's manifest.
      prefix: of the names that count.
    """

    job: str
    section: Literal["examples", "tallies"]
    prefix: str


@dataclasses.dataclass(frozen=True)
class Row:
    """One row: a model that differs from the control in one part.

    Attributes:
      name: on the command line and in the table.
      removes: the part that is removed or replaced, in words.
      gin_file: a run file whose own lines make the difference, as gin includes it; None for the control.
      start: "shared": training starts from the pretraining that rows share, and ``gin_file`` changes training. "own":
        the row is pretrained by itself, and ``gin_file`` changes that pretraining. "none": training starts from random
        parameters, and ``gin_file`` changes training.
      expected: the direction in which the scores should differ from the control's.
      mining: changes of the options of jobs, of the build or of the table, by job, where the row trains on other data
        than the control.
      keeps: jobs whose output stays the control's, although the row's mining affects them.
      not_needed: inputs of the build, by name, that the row's mining does without.
      needs: what the mined data must contain; with a count of 0 the row would equal the control.
      data: the job whose output the row trains on.
      encoder: the SPEC of an encoder of `newsembed evaluate` that is scored instead of a training; "" trains.
    """

    name: str
    removes: str
    gin_file: str | None = None
    start: Start = "shared"
    expected: Direction = "lower"
    mining: Mapping[str, Change] = dataclasses.field(default_factory=dict)
    keeps: tuple[str, ...] = ()
    not_needed: tuple[str, ...] = ()
    needs: tuple[Needed, ...] = ()
    data: str = "examples"
    encoder: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """An ablation.

    Attributes:
      name: of ``--table``.
      title: heading of the report.
      rows: the control first, the others in the order of the report.
      note: of the report: where the expected directions come from.
      counted: tasks whose training examples the report counts.
      steps: jobs beyond the build, each with the source of its inputs, that run once before the rows, and again for
        a row whose mining changes them; `Row.data` may name them.
      options: of these jobs, options dataclasses by job.
      keeps_options: whether jobs of the table without options have those of the build, where it ran them.
      parts: trainings by the recipe of pretraining, whose models become parts of every row's model: gin bindings by
        the name of the part. Each is trained once for a seed.
      newsroom_suites: benchmarks on a generated newsroom, as (suite, file of the newsroom). The folder "mldoc" holds
        its labelled articles.
      evaluation: options of the benchmarks, see `evaluation.registry.Options`.
      group: the part of a benchmark's scores that counts, such as "Cross", where it has such a part.
      metric: the score of that part that counts, where a benchmark has it; else its first.
      by_part: whether the report compares each part of the benchmarks, such as a language, too.
      test: of the benchmarks with folds or resamples, what the paired test goes over, in words.
      defaults: options of the command line, by name, where neither the user nor the newsroom gives them.
      newsroom_defaults: the same with ``--newsroom``.
      printed: published figures that the report shows next to ours, by row and metric, in the metric's range.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    note: str = ""
    counted: tuple[str, ...] = ("triplets", "topics")
    steps: tuple[Step, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    keeps_options: bool = False
    parts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    newsroom_suites: tuple[tuple[str, str], ...] = ()
    evaluation: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    group: str = "all"
    metric: str = ""
    by_part: bool = False
    test: str = ""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {**DEFAULTS, "evaluations": 4})
    newsroom_defaults: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {**NEWSROOM_DEFAULTS, "evaluations": 2}
    )
    printed: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(f"table {self.name}: got rows {names}, expected a control and other rows, each name once")

    @property
    def control(self) -> str:
        """The name of the row that the others are compared with."""
        return self.rows[0].name

    @property
    def names(self) -> list[str]:
        """The names of all rows."""
        return [row.name for row in self.rows]

    @property
    def inputs(self) -> frozenset[str]:
        """The names of the user's inputs that its jobs read."""
        sources = {source for step in self.steps for source in step.sources()}
        return frozenset(source[1:] for source in sources if source.startswith("@"))

    @property
    def build_jobs(self) -> frozenset[str] | None:
        """The jobs of the build that the rows need; None for all of them, where rows read or change the build's own."""
        own = {step.job for step in self.steps}
        for row in self.rows:
            is_alone = row.start == "none" and row.data in own and own.issuperset(row.mining)
            if not row.encoder and not is_alone:
                return None
        sources = {source for step in self.steps for source in step.sources()}
        return frozenset({name for name in sources if not name.startswith("@")} | {"vocabulary"}) - own

    def row(self, name: str) -> Row:
        """A row by its name.

        Raises:
          InputError: if there is no such row.
        """
        if name not in self.names:
            raise InputError(f"no such row: {name}", field="--row", remedy=f"choose one of {', '.join(self.names)}")
        return next(row for row in self.rows if row.name == name)

    def choose(self, names: str) -> list[Row]:
        """The rows of a comma-separated list of names, or of "all"; the control is always included and first.

        Raises:
          InputError: for an unknown name, or if only the control is chosen.
        """
        wanted = self.names if names == ALL_ROWS else [name.strip() for name in names.split(",") if name.strip()]
        known = ", ".join(self.names)
        unknown = [name for name in wanted if name not in self.names]
        if unknown or not wanted:
            raise InputError(
                f"no such row: {', '.join(unknown) or 'none given'}",
                field="--rows",
                remedy=f"choose from {ALL_ROWS}, {known}",
            )
        if set(wanted) == {self.control}:
            raise InputError(
                "only the control, which would be compared with nothing",
                field="--rows",
                remedy=f"add some of {known}",
            )
        return [row for row in self.rows if row.name in {self.control, *wanted}]
