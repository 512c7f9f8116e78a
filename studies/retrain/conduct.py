"""The steps from an archive to a new model and its trial, in the archive's folder ``.training``; each is made once.

1. articles: hard links to the articles and events of the current version, so that later updates do not disturb them;
2. mine: the jobs of ``newsembed build``, with the model's own vocabulary; a finished job is not repeated;
3. test: the articles of the last days, whose triplets the job ``examples`` holds out;
4. train: ``newsembed train`` from the model's checkpoint, with its own configuration;
5. trial: both models on the test, see :mod:`.trial`.
"""

import ast
import dataclasses
import datetime
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...beam_pipelines.examples.options import ExamplesOptions
from ...beam_pipelines.workflow import build, load_job
from ...errors import InputError
from ...formats.archive import (
    MEMBERS,
    MODEL,
    TRIAL,
    EventMember,
    decision_file,
    link,
    read_json,
    read_pointer,
    read_version,
    trained_model,
    training_work,
    trainings,
    version_folder,
    write_json,
)
from ...formats.archive_parts import ARTICLES, part_paths
from ...formats.manifest import manifest_path, read_manifest
from ...formats.model_folder import ModelFolder
from ...formats.parquet import read_records, write_shard
from ...formats.records import Article
from ...serving.specs import encoder_from_spec, split_number
from ..shared.mining import options_from_json
from ..shared.steps import Command, run_command, train_model
from . import trial
from .options import RetrainOptions

STEPS: Final = ("articles", "mine", "test", "train", "trial")
_PLAN: Final = "plan.json"
_RESULT: Final = "trial.json"
_GENTLE: Final = 0.1  # of the model's own learning rate: a few thousand pairs are soon memorised
_LENGTHS: Final = "TASK_FEATURE_LENGTHS"
_TRAINABLE: Final = "name the folder that newsembed train, lift or import-hf wrote: --encoder model:DIR"


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
        plan = self._plan()
        if plan is not None and self._last_result(plan) is None:
            return 0
        done = [read_json(decision_file(self.archive, number)) for number in trainings(self.archive)]
        before = max((int(decision.get("trained_on", 0)) for decision in done if decision), default=0)
        return max(self.options.least_new - (self._count() - before), 0)

    def run(self) -> Outcome:
        """Makes what is not there yet.

        Raises:
          InputError: for a model that cannot be trained, too few events to compare models, a training in progress with
            other options, or a step that fails.
        """
        folder, row_length = check_trainable(self.model)
        plan = self._begin(folder)
        number, result = plan["number"], self.path(_RESULT)
        self.reached("articles")
        first_day = datetime.date.fromisoformat(plan["held_out_from"])
        if not os.path.exists(result):
            self._mine(folder, first_day, row_length)
            self._write_test(first_day)
            self._train(folder)
            self._try(result, plan)
        model = self.path(MODEL) if os.path.isdir(self.path(MODEL)) else trained_model(self.archive, number)
        return Outcome(number, model, read_json(result))

    def _begin(self, folder: str) -> dict[str, Any]:
        """The plan of the training in progress, or of a new one with its articles.

        Raises:
          InputError: if the one in progress has other options, or another model.
        """
        options = {**dataclasses.asdict(self.options), "gin": list(self.options.gin)}
        mine: dict[str, Any] = {"model": os.path.abspath(folder), "options": options}
        plan = self._plan()
        if plan is not None and self._last_result(plan) is not None:  # only its folder was left
            plan = None
        if plan is None:
            shutil.rmtree(self.path(""), ignore_errors=True)
            return self._take_articles(mine)
        for name, value in mine.items():
            if plan[name] != value:
                problem = f"a training was cut off with {plan[name]}, this one has {value}"
                remedy = f"give the same options, or delete {training_work(self.archive)}"
                raise InputError(problem, path=self.archive, field=f"--train, {name}", remedy=remedy)
        return plan

    def _take_articles(self, mine: Mapping[str, Any]) -> dict[str, Any]:
        pointer = read_pointer(self.archive)
        if pointer is None:
            raise InputError("the archive has no version yet", path=self.archive, remedy="add articles to it first")
        read_version(self.archive, pointer)
        version = version_folder(self.archive, pointer.version)
        members = list(read_records(os.path.join(version, MEMBERS), EventMember))
        days = sorted({member.byline_date for member in members if member.byline_date})
        if len(days) <= self.options.held_out_days:
            problem = f"articles of {len(days)} days, of which the last {self.options.held_out_days} are held out"
            remedy = "train when the archive has more days, or hold out fewer"
            raise InputError(problem, path=self.archive, field="--train.held_out_days", remedy=remedy)
        first = days[-1] - datetime.timedelta(self.options.mining_days - 1) if self.options.mining_days else None
        os.makedirs(self.path(os.path.dirname(MEMBERS)))
        os.makedirs(self.path(ARTICLES))
        link(os.path.join(version, MEMBERS), self.path(MEMBERS))
        for path in part_paths(version, ARTICLES):
            target = self.path(f"{ARTICLES}/{os.path.basename(path)}")
            if first is None:
                link(path, target)
            else:
                kept = (one for one in read_records(path, Article) if one.byline_date and one.byline_date >= first)
                write_shard(target, kept, Article)
        plan = {
            **mine,
            "number": max(trainings(self.archive), default=0) + 1,
            "version": pointer.version,
            "articles": len(members),
            "held_out_from": str(days[-self.options.held_out_days]),
            "held_out_to": str(days[-1]),
        }
        write_json(self.path(_PLAN), plan)
        return plan

    def _mine(self, folder: str, first_day: datetime.date, row_length: int) -> None:
        # Anchor texts of links are short and rare in an archive; titles say what an event is.
        examples = ExamplesOptions(
            max_length=row_length,
            augmentations_per_triplet=2,
            weights=(1.0, 0.5, 2.0, 2.0),
            held_out_from=first_day,
        )
        given = {"articles": tuple(part_paths(self.path(""), ARTICLES))}
        reused = {"vocabulary": ModelFolder(folder).vocabulary_file, "pack": ""}
        options = {"clean": self._rules(), "examples": examples}
        self.mine(given, self.path("mined"), options, self.beam_args, reused=reused)
        self.reached("mine")

    def _rules(self) -> Any:
        """The options of ``clean`` that the archive has.

        Raises:
          InputError: if the archive has no version, or options that this version of newsembed does not know.
        """
        pointer = read_pointer(self.archive)
        if pointer is None:
            raise InputError("the archive has no version yet", path=self.archive, remedy="add articles to it first")
        folder = version_folder(self.archive, pointer.version)
        return options_from_json(load_job("clean"), read_manifest(folder)["options"]["clean"], manifest_path(folder))

    def _write_test(self, first_day: datetime.date) -> None:
        os.makedirs(self.path(TRIAL), exist_ok=True)
        events = trial.write_test(self.path("mined"), self.path(""), first_day, self.path(TRIAL))
        if events < self.options.least_events:
            problem = (
                f"{events} events of {self.options.held_out_days} days have reports of several publishers, "
                f"fewer than {self.options.least_events}: too few to tell a better model from a worse one"
            )
            remedy = "train when the archive has more days, or hold out more of them"
            shutil.rmtree(self.path(""), ignore_errors=True)  # so that the next run takes the articles of its day
            raise InputError(problem, path=self.archive, field="--train.held_out_days", remedy=remedy)
        self.reached("test")

    def _train(self, folder: str) -> None:
        """Trains, unless the last checkpoint is there.

        Raises:
          InputError: if the training fails.
          KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it.
        """
        values, files = self._training_values(folder), _gin_files(folder)
        code = train_model(self.command, self.path(MODEL), files, values, self.options.gin)
        if code:
            problem = f"the training ended with exit code {code}"
            raise InputError(problem, field="--train", remedy="see the message above, then run the same command again")
        if not os.path.isdir(ModelFolder(self.path(MODEL)).checkpoint(self.options.steps)):
            remedy = "leave PATIENCE out of --train.gin"
            raise InputError("the training ended before its last step", field="--train", remedy=remedy)
        self.reached("train")

    def _training_values(self, folder: str) -> dict[str, Any]:
        steps, macros = self.options.steps, _macros(folder)
        examples = self.path("mined/examples")
        start, step = ModelFolder(folder), split_number(self.model)[1]
        values: dict[str, Any] = {
            "DATA_DIR": examples,
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
        values |= {"LEARNING_RATE": rate} if rate else {}
        batch = self.options.batch_size or macros.get("BATCH_SIZE")
        return values | ({"BATCH_SIZE": batch} if batch else {})

    def _try(self, result: str, plan: Mapping[str, Any]) -> None:
        serving = encoder_from_spec(f"model:{self.model}", progress=False, **self.reading)
        candidate = encoder_from_spec(f"model:{self.path(MODEL)}", progress=False, **self.reading)
        found = trial.compare(self.path(TRIAL), serving, candidate, self.options.tolerance)
        facts = {name: plan[name] for name in ("model", "options", "held_out_from", "held_out_to")}
        write_json(result, {**found, **facts, "trained_on": plan["articles"]})
        self.reached("trial")

    def _plan(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = read_json(self.path(_PLAN))
        return found

    def _last_result(self, plan: Mapping[str, Any]) -> Any:
        """The decision about the training of a plan; None while there is none."""
        return read_json(decision_file(self.archive, plan["number"]))

    def _count(self) -> int:
        pointer = read_pointer(self.archive)
        if pointer is None:
            return 0
        return len(
            list(read_records(os.path.join(version_folder(self.archive, pointer.version), MEMBERS), EventMember))
        )


def check_trainable(model: str) -> tuple[str, int]:
    """The folder of a model whose training can go on, and the tokens of a text in its training.

    Args:
      model: ``DIR`` or ``DIR@STEP``.

    Raises:
      InputError: for another folder.
    """
    folder, step = split_number(model)
    files = ModelFolder(folder)
    if files.is_exported or not files.is_described or not files.steps():
        problem = "the model has no checkpoint to train from"
        raise InputError(problem, path=folder, field="--encoder", remedy=_TRAINABLE)
    if step is not None and step not in files.steps():
        problem = f"no checkpoint of step {step}"
        raise InputError(problem, path=folder, field="--encoder", remedy="choose one that is there")
    _gin_files(folder)
    lengths = _macros(folder).get(_LENGTHS, {"anchor_tokens": 256})
    if "anchor_tokens" not in lengths:
        problem = "the model was not trained on triplets"
        raise InputError(problem, path=files.config_file, field=_LENGTHS, remedy="train it by weak supervision first")
    return folder, max(lengths.values())


def _gin_files(folder: str) -> list[str]:
    """The configuration that trains a model: its own, or that of imported checkpoints.

    Raises:
      InputError: if it has none.
    """
    files = ModelFolder(folder)
    if os.path.exists(files.config_file):
        return [os.path.abspath(files.config_file)]
    if os.path.exists(files.architecture_file):
        return ["runs/lift.gin", os.path.abspath(files.architecture_file)]
    raise InputError("the model has no configuration to train with", path=folder, field="--encoder", remedy=_TRAINABLE)


def _macros(folder: str) -> dict[str, Any]:
    """The macros that ``config.gin`` of a model sets to plain values."""
    path = ModelFolder(folder).config_file
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        text = file.read().replace("\\\n", "")
    found = {}
    for name, value in re.findall(r"^([A-Z_]+) = (.+(?:\n[ \t]+.+)*)$", text, re.MULTILINE):
        try:
            found[name] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):  # a reference
            continue
    return found
