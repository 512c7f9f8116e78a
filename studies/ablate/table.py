"""The declaration of an ablation, one TOML file: its rows, the control, the expected directions, and the defaults.

``studies/ablate/tables/NAME.toml`` is the table NAME; a file of a user is named by its path. Its keys are the
attributes of `Table`, and those of `Row` in each of ``[[rows]]``.
"""

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from typing import Any, Final, Literal

from ...beam_pipelines.workflow import Step
from ...errors import InputError, reading
from ..shared.mining import Changes
from ..shared.recipe import own_lines

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "tables")
_END: Final = ".toml"
_ALL: Final = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One row: a model that differs from the control in one part.

    Attributes:
      name: on the command line and in the table.
      removes: the part that is removed or replaced, in words.
      gin_file: a run file whose own lines make the difference, as gin includes it; "" for none.
      bindings: lines of gin that make the difference, after those of ``gin_file``.
      start: "shared": training starts from the pretraining that rows share, and the lines change training. "own": the
        row is pretrained by itself, and they change that pretraining. "none": training starts from random parameters,
        and they change training.
      expected: the direction in which the scores should differ from the control's, "lower" or "higher".
      mining: values of options of jobs, of the build or of the table, by job, where the row trains on other data than
        the control; ``"weights.0"`` is an item of a list.
      keeps: jobs whose output stays the control's, although the row's mining affects them.
      not_needed: inputs of the build, by name, that the row's mining does without.
      needs: what the mined data must contain, as (job, "examples" or "tallies" of its manifest, first letters of the
        names that count); with a count of 0 the row would equal the control.
      data: the job whose output the row trains on.
      encoder: the SPEC of an encoder of `newsembed evaluate` that is scored instead of a training; "" trains.
    """

    name: str
    removes: str
    gin_file: str = ""
    bindings: tuple[str, ...] = ()
    start: Literal["shared", "own", "none"] = "shared"
    expected: Literal["lower", "higher"] = "lower"
    mining: Changes = dataclasses.field(default_factory=dict)
    keeps: tuple[str, ...] = ()
    not_needed: tuple[str, ...] = ()
    needs: tuple[tuple[str, str, str], ...] = ()
    data: str = "examples"
    encoder: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of gin that make the difference."""
        return [*(own_lines(self.gin_file) if self.gin_file else ()), *self.bindings]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """An ablation.

    Attributes:
      name: of ``--table``.
      title: heading of the report.
      rows: the control first, the others in the order of the report.
      note: of the report: where the expected directions come from.
      counted: tasks whose training examples the report counts.
      steps: jobs beyond the build with the source of each of their inputs, which run once before the rows, and again
        for a row whose mining changes them; ``Row.data`` may name them.
      options: of these jobs, by job.
      keeps_options: whether jobs of the table without options have those of the build, where it ran them.
      parts: trainings by the recipe of pretraining, whose models become parts of every row's model: gin bindings by
        the name of the part. Each is trained once for a seed.
      newsroom_suites: benchmarks on a generated newsroom, as (suite, file of the newsroom). The folder "mldoc" holds
        its labelled articles.
      evaluation: options of the benchmarks, see `evaluation.benchmark.Suite.options`.
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
    options: Changes = dataclasses.field(default_factory=dict)
    keeps_options: bool = False
    parts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    newsroom_suites: tuple[tuple[str, str], ...] = ()
    evaluation: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    group: str = "all"
    metric: str = ""
    by_part: bool = False
    test: str = ""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    newsroom_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    printed: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks that there is a control and something to compare with it."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise ValueError(f"got rows {self.names}, expected a control and other rows, each name once")

    @property
    def control(self) -> str:
        """The name of the row that the others are compared with."""
        return self.rows[0].name

    @property
    def names(self) -> list[str]:
        """The names of all rows."""
        return [row.name for row in self.rows]

    @property
    def sources(self) -> set[str]:
        """What its jobs read: jobs, and "@name" for inputs of the user."""
        return {source for step in self.steps for source in step.sources()}

    @property
    def build_jobs(self) -> set[str] | None:
        """The jobs of the build that the rows need; None for all of them, where rows read or change the build's own."""
        own = {step.job for step in self.steps}
        for row in self.rows:
            if not row.encoder and not (row.start == "none" and row.data in own and own.issuperset(row.mining)):
                return None
        return ({name for name in self.sources if not name.startswith("@")} | {"vocabulary"}) - own

    def row(self, name: str) -> Row:
        """A row by its name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise InputError(f"no such row: {name}", field="--rows", remedy=f"choose from {_ALL}, {', '.join(self.names)}")

    def choose(self, names: str) -> list[Row]:
        """The rows of a comma-separated list of names, or of "all"; the control is always included and first."""
        wanted = self.names if names == _ALL else [self.row(name.strip()).name for name in names.split(",")]
        if set(wanted) == {self.control}:
            problem = "only the control, which would be compared with nothing"
            raise InputError(problem, field="--rows", remedy=f"add some of {', '.join(self.names)}")
        return [row for row in self.rows if row.name in {self.control, *wanted}]


def names() -> list[str]:
    """The names of the tables of this package."""
    return sorted(name.removesuffix(_END) for name in os.listdir(_FOLDER))


def load(name: str) -> Table:
    """The table of a name, or of a file that ends in ``.toml``."""
    path = name if name.endswith(_END) else os.path.join(_FOLDER, name + _END)
    if not os.path.exists(path):
        remedy = f"choose one of {', '.join(names())}, or name a file of yours, my_table{_END}"
        raise InputError(f"no such table: {name}", field="--table", remedy=remedy)
    with reading(path, "see docs/extending.md", tomllib.TOMLDecodeError), open(path, "rb") as file:
        values = _tuples(tomllib.load(file))
        rows = tuple(Row(**row) for row in values.pop("rows", ()))
        steps = tuple(Step(job, inputs) for job, inputs in values.pop("steps", {}).items())
        return Table(name=os.path.basename(path).removesuffix(_END), rows=rows, steps=steps, **values)


def _tuples(value: Any) -> Any:
    """A value of TOML with tuples in the place of lists."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
