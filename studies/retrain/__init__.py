"""The steps from an archive to a new model and its trial, in the archive's folder ``.training``; each is made once.

1. articles: the articles and events of the current version as files, so that later updates do not disturb them;
2. mine: the jobs of ``newsembed build``, with the model's own vocabulary; a finished job is not repeated;
3. test: the articles of the last days, whose triplets the job ``examples`` holds out;
4. train: ``newsembed train`` from the model's checkpoint, with its own configuration;
5. trial: both models on the test, see :mod:`.trial`.
"""

import dataclasses
import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from ...beam_pipelines.workflow import build, load_job
from ...errors import InputError
from ...formats import trust
from ...formats.archive import Archive, read_runs
from ...formats.command_line import Options, option
from ...formats.files import write_json
from ...formats.folders import MODEL, TRIAL, decision_file, empty, read_json, trained_model, training_work, trainings
from ...formats.model_folder import ModelFolder
from ...formats.parquet import schema_of, write_shard
from ...formats.records import Article
from ...serving.specs import encoder_from_spec, split_number
from ..shared.mining import options_of
from ..shared.runs import run_command
from ..shared.steps import Command, train_model
from . import trial

STEPS: Final = ("articles", "mine", "test", "train", "trial")
_ARTICLES: Final = "articles.parquet"
_PLAN: Final = "plan.json"
_RESULT: Final = "trial.json"
_GENTLE: Final = 0.1  # of the model's own learning rate: a few thousand pairs are soon memorised
_LENGTHS: Final = "TASK_FEATURE_LENGTHS"
_TRAINABLE: Final = "name the folder that newsembed train, lift or import-hf wrote: --encoder model:DIR"


@dataclasses.dataclass(frozen=True)
class RetrainOptions(Options):
    """How training goes on, and when its outcome replaces what serves."""

    steps: int = option(40, "further steps", ge=1)
    learning_rate: float = option(
        0.0, "peak learning rate; 0 takes a tenth of the one that the model was trained with", ge=0
    )
    batch_size: int = option(0, "triplets in a step; 0 for as many as before, or as there are", ge=0)
    held_out_days: int = option(
        14, "number of last days with articles that are the test; they are not trained on", ge=1
    )
    mining_days: int = option(0, "mine only the articles of this many last days; 0 for all", ge=0)
    least_new: int = option(500, "train when the archive has this many more articles than at the last training", ge=0)
    least_events: int = option(20, "events that several publishers report which the test must have", ge=2)
    tolerance: float = option(
        0.01,
        "the new model replaces the old one if it is not worse than by this mAP, with 97.5 % certainty",
        ge=0,
        le=1,
    )
    gin: tuple[str, ...] = option((), "further values of the training, NAME=VALUE, joined by commas")

    remedy: ClassVar[str] = "see newsembed update --help"

    def __post_init__(self) -> None:
        """Checks that what is given goes together."""
        super().__post_init__()
        if 0 < self.mining_days <= self.held_out_days:
            problem = f"got {self.mining_days}, expected 0, or more than are held out"
            raise InputError(problem, field="--train.mining_days", remedy=self.remedy)
        if not all("=" in one for one in self.gin):
            raise InputError(f"got {self.gin}, expected NAME=VALUE", field="--train.gin", remedy=self.remedy)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A model that has been tried.

    Attributes:
      number: of the training.
      model: its folder.
      trial: JSON values, see :func:`.trial.compare`.
    """

    number: int
    model: str
    trial: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Retraining:
    """One training on an archive.

    Attributes:
      archive: its folder; the caller holds a lock on ``.training``.
      model: ``DIR`` or ``DIR@STEP`` of the model that serves.
      reading: how it reads documents, options of ``encoder_from_spec``.
      options: of the training.
      beam_args: Beam's own options.
      command: runs a command of newsembed and returns its exit code.
      mine: runs the mining jobs.
      reached: called with the name of each step, see :data:`STEPS`, when it is done.
    """

    archive: str
    model: str
    reading: Mapping[str, Any]
    options: RetrainOptions
    beam_args: Sequence[str] = ()
    command: Command = run_command
    mine: Callable[..., Any] = build
    reached: Callable[[str], None] = lambda _: None

    def path(self, name: str) -> str:
        """A file or folder of the training in progress."""
        return os.path.join(os.path.abspath(training_work(self.archive)), name)

    def missing_articles(self) -> int:
        """How many more articles the archive needs before it is trained on; 0 for a training that was begun."""
        if self._plan() is not None:
            return 0
        done = [read_json(decision_file(self.archive, number)) for number in trainings(self.archive)]
        before = max((int(decision.get("trained_on", 0)) for decision in done if decision), default=0)
        count = len(self._current()) if read_runs(self.archive) else 0
        return max(self.options.least_new - (count - before), 0)

    def run(self) -> Outcome:
        """Makes what is not there yet."""
        folder, row_length = check_trainable(self.model)
        plan = self._begin(folder)
        result, model = self.path(_RESULT), self.path(MODEL)
        self.reached("articles")
        first_day = datetime.date.fromisoformat(plan["held_out_from"])
        if not os.path.exists(result):
            self._mine(folder, first_day, row_length)
            self._write_test(first_day)
            self._train(folder)
            serving = encoder_from_spec(f"model:{self.model}", progress=False, **self.reading)
            candidate = encoder_from_spec(f"model:{model}", progress=False, **self.reading)
            found = trial.compare(self.path(TRIAL), serving, candidate, self.options.tolerance)
            facts = {name: plan[name] for name in ("model", "options", "held_out_from", "held_out_to")}
            write_json(result, {**found, **facts, "trained_on": plan["articles"]})
            self.reached("trial")
        number = plan["number"]
        return Outcome(
            number, model if os.path.isdir(model) else trained_model(self.archive, number), read_json(result)
        )

    def _plan(self) -> dict[str, Any] | None:
        """The plan of the training in progress; of one that was decided about, only its folder may be left."""
        plan: dict[str, Any] | None = read_json(self.path(_PLAN))
        return None if plan is None or read_json(decision_file(self.archive, plan["number"])) is not None else plan

    def _current(self) -> Archive:
        if not read_runs(self.archive):
            raise InputError("the archive has no version yet", path=self.archive, remedy="add articles to it first")
        return Archive(self.archive)

    def _begin(self, folder: str) -> dict[str, Any]:
        """The plan of the training in progress, or of a new one with its articles."""
        options = {**dataclasses.asdict(self.options), "gin": list(self.options.gin)}
        mine: dict[str, Any] = {"model": os.path.abspath(folder), "options": options}
        plan = self._plan()
        if plan is None:
            empty(self.path(""))
            return self._take_articles(mine)
        for name, value in mine.items():
            if plan[name] != value:
                problem = f"a training was cut off with {plan[name]}, this one has {value}"
                remedy = f"give the same options, or delete {training_work(self.archive)}"
                raise InputError(problem, path=self.archive, field=f"--train, {name}", remedy=remedy)
        return plan

    def _take_articles(self, mine: Mapping[str, Any]) -> dict[str, Any]:
        archive, options = self._current(), self.options
        rows = archive.rows(["doc_id", "event_id", "byline_date"]).to_pylist()
        days = sorted({row["byline_date"] for row in rows if row["byline_date"]})
        if len(days) <= options.held_out_days:
            problem = f"articles of {len(days)} days, of which the last {options.held_out_days} are held out"
            remedy = "train when the archive has more days, or hold out fewer"
            raise InputError(problem, path=self.archive, field="--train.held_out_days", remedy=remedy)
        first = days[-1] - datetime.timedelta(options.mining_days - 1) if options.mining_days else None
        write_json(self.path(trial.EVENTS), {row["doc_id"]: row["event_id"] for row in rows})
        found = (Article(**row) for batch in archive.batches(schema_of(Article).names) for row in batch.to_pylist())
        kept = (one for one in found if first is None or (one.byline_date and one.byline_date >= first))
        write_shard(self.path(_ARTICLES), kept, Article)
        plan = {
            **mine,
            "number": max(trainings(self.archive), default=0) + 1,
            "version": archive.run.number,
            "articles": len(rows),
            "held_out_from": str(days[-options.held_out_days]),
            "held_out_to": str(days[-1]),
        }
        write_json(self.path(_PLAN), plan)
        return plan

    def _mine(self, folder: str, first_day: datetime.date, row_length: int) -> None:
        rules = self._current().run.settings["clean"]  # those that the archive has
        # Anchor texts of links are short and rare in an archive; titles say what an event is.
        examples = {
            "max_length": row_length,
            "augmentations_per_triplet": 2,
            "weights": (1.0, 0.5, 2.0, 2.0),
            "held_out_from": first_day,
        }
        given = {"articles": (self.path(_ARTICLES),)}
        options = {
            "clean": options_of(load_job("clean"), rules, path=self.archive),
            "examples": options_of(load_job("examples"), examples),
        }
        reused = {"vocabulary": ModelFolder(folder).vocabulary_file, "pack": ""}
        self.mine(given, self.path("mined"), options, self.beam_args, reused=reused)
        self.reached("mine")

    def _write_test(self, first_day: datetime.date) -> None:
        os.makedirs(self.path(TRIAL), exist_ok=True)
        events = trial.write_test(self.path("mined"), self.path(""), first_day, self.path(TRIAL))
        if events < self.options.least_events:
            problem = (
                f"{events} events of {self.options.held_out_days} days have reports of several publishers, "
                f"fewer than {self.options.least_events}: too few to tell a better model from a worse one"
            )
            remedy = "train when the archive has more days, or hold out more of them"
            empty(self.path(""))  # so that the next run takes the articles of its day
            raise InputError(problem, path=self.archive, field="--train.held_out_days", remedy=remedy)
        self.reached("test")

    def _train(self, folder: str) -> None:
        """Trains, unless the last checkpoint is there."""
        model = self.path(MODEL)
        code = train_model(self.command, model, _gin_files(folder), self.training_values(folder), self.options.gin)
        if code:
            problem = f"the training ended with exit code {code}"
            raise InputError(problem, field="--train", remedy="see the message above, then run the same command again")
        if not os.path.isdir(ModelFolder(model).checkpoint(self.options.steps)):
            remedy = "leave PATIENCE out of --train.gin"
            raise InputError("the training ended before its last step", field="--train", remedy=remedy)
        self.reached("train")

    def training_values(self, folder: str) -> dict[str, Any]:
        """The macros of the training; ``folder`` is the model's."""
        steps, macros = self.options.steps, _macros(folder)
        start, step = ModelFolder(folder), split_number(self.model)[1]
        values: dict[str, Any] = {
            "DATA_DIR": self.path("mined/examples"),
            "VOCABULARY_PATH": os.path.abspath(start.vocabulary_file),
            "INITIAL_CHECKPOINT_PATH": os.path.abspath(folder if step is None else start.checkpoint(step)),
            "MIXTURE_OR_TASK_NAME": "triplets",
            "TRAIN_STEPS": steps,
            "WARMUP_STEPS": steps // 10,
            "DECAY": "linear",
            "CHECKPOINT_PERIOD": max(steps // 4, 1),
            "KEEP_CHECKPOINTS": 1,
            # The trial is made afterwards, beside the model that serves.
            **dict.fromkeys(("EVAL_DATA_DIR", "EVALUATOR", "KEEP_BEST", "KEEP_PERIOD", "WORD_VECTORS")),
            "EVAL_PERIOD": 0,
            "PATIENCE": 0,
            "EVAL_START": False,
        }
        rate = self.options.learning_rate or _GENTLE * float(macros.get("LEARNING_RATE", 0))
        batch = self.options.batch_size or macros.get("BATCH_SIZE")
        return values | {name: value for name, value in (("LEARNING_RATE", rate), ("BATCH_SIZE", batch)) if value}


def check_trainable(model: str, *, is_named: bool = False) -> tuple[str, int]:
    """The folder of a model whose training can go on, and the tokens of a text in its training.

    Args:
      model: ``DIR`` or ``DIR@STEP``.
      is_named: whether the user's command names it, not the archive alone.
    """
    folder, step = split_number(model)
    files = ModelFolder(folder)
    if files.is_exported or not files.is_described or not files.steps():
        problem = "the model has no checkpoint to train from"
        raise InputError(problem, path=folder, field="--encoder", remedy=_TRAINABLE)
    if step is not None and step not in files.steps():
        problem = f"no checkpoint of step {step}"
        raise InputError(problem, path=folder, field="--encoder", remedy="choose one that is there")
    _gin_files(folder, is_named=is_named)
    lengths = _macros(folder).get(_LENGTHS, {"anchor_tokens": 256})
    if "anchor_tokens" not in lengths:
        problem = "the model was not trained on triplets"
        raise InputError(problem, path=files.config_file, field=_LENGTHS, remedy="train it by weak supervision first")
    return folder, max(lengths.values())


def _gin_files(folder: str, *, is_named: bool = False) -> list[str]:
    """The configuration that trains a model: its own, or that of imported checkpoints; the user may have named it."""
    files = ModelFolder(folder)
    recipes = {files.config_file: (), files.architecture_file: ("runs/lift.gin",)}
    for path, recipe in recipes.items():
        if os.path.exists(path):
            if is_named:
                trust.allow(path)
            trust.check(path, f"--encoder model:{folder}")
            return [*recipe, os.path.abspath(path)]
    raise InputError("the model has no configuration to train with", path=folder, field="--encoder", remedy=_TRAINABLE)


def _macros(folder: str) -> dict[str, Any]:
    """The macros that ``config.gin`` of a model sets to plain values."""
    from ...training.gin_files import Reader

    path = ModelFolder(folder).config_file
    statements = Reader((), ()).file(path, "--encoder") if os.path.exists(path) else ()
    return {one.key: one.value for one in statements if not one.parameter and not one.references}
