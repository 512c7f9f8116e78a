"""How a study pretrains and trains: its options, and the run files of its models."""

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from ...errors import InputError
from ...formats.command_line import Options, option, required, several
from ...formats.manifest import read_manifest
from ...formats.vocabulary import VOCABULARY_FILE
from .runs import Run

O = TypeVar("O", bound=Options)  # noqa: E741 - of options

_INCLUDE: Final = re.compile(r"^\s*include\b")
_PLACES: Final = ("MODEL_DIR = 'x'", "DATA_DIR = 'x'", "VOCABULARY_PATH = 'x'")
# Half the demo's width and two or three sentences of each text: a core does a step in a quarter of a second.
_NARROW: Final = ("EncoderConfig.hidden_size = 64", "EncoderConfig.embedding_size = 64", "EncoderConfig.mlp_size = 256")
_LENGTHS: Final = {"anchor_tokens": 48, "positive_tokens": 48, "negative_tokens": 48, "tokens": 48}
DEFAULTS: Final[Mapping[str, Any]] = {
    "base": "runs/weak_supervision_paper.gin",
    "pretrain_base": "runs/pretrain_paper.gin",
    "seeds": 3,
    "parallel": 1,
}
NEWSROOM_DEFAULTS: Final[Mapping[str, Any]] = {
    "base": "runs/train_demo.gin",
    "pretrain_base": "runs/pretrain_demo.gin",
    # In so few steps, the demo's 1e-3 costs so small a model more of its pretraining than it gains.
    "gin": (
        *(*_NARROW, "BATCH_SIZE = 32", "LEARNING_RATE = 5e-4"),
        f"TASK_FEATURE_LENGTHS = {json.dumps(_LENGTHS)}",
    ),
    "pretrain_gin": (*_NARROW, "BATCH_SIZE = 16"),
    "steps": 60,
    "pretrain_steps": 60,
    "seeds": 3,
    "parallel": 2,
    # A phase on so few articles takes less time than starting workers for it.
    "beam": ("--direct_num_workers=1",),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyOptions(Options):
    """Where to work, what to train, and how often; the defaults depend on the study, see :func:`filled`."""

    output: str = required("folder of the study; the same command resumes a study", metavar="DIR", local=True)
    newsroom: str | None = option(
        None,
        "run on a generated newsroom, small enough for two cores: a new one in OUTPUT/newsroom, or with DIR the one "
        "that `newsembed demo` or another study made there",
        metavar="DIR",
        const="",
    )
    base: str | None = option(
        None, "run file of weak supervision (default: runs/weak_supervision_paper.gin)", metavar="FILE"
    )
    pretrain_base: str | None = option(
        None, "run file of pretraining (default: runs/pretrain_paper.gin)", metavar="FILE"
    )
    steps: int | None = option(None, "steps of weak supervision (default: the run file's)", ge=1)
    pretrain_steps: int | None = option(None, "steps of pretraining (default: the run file's)", ge=1)
    gin: tuple[str, ...] = several("gin bindings of weak supervision", "NAME=VALUE")
    pretrain_gin: tuple[str, ...] = several("gin bindings of pretraining", "NAME=VALUE")
    seeds: int | None = option(None, "train each model N times, with seeds 0 to N-1 (default: 3)", ge=1)
    parallel: int | None = option(None, "trainings at a time, each on its share of the cores (default: 1)", ge=1)
    beam: tuple[str, ...] = option(
        (), "a Beam option for mining, such as --beam=--runner=DataflowRunner", metavar="=--OPTION", many=True
    )
    print_commands: bool = option(
        False, "only mine, and pretrain what models share; print the commands that train the models, for a cluster"
    )
    cross_publisher: bool = option(False, "events: leave out candidates of the query's publisher")
    evaluations: int | None = option(None, "checkpoints of each training to evaluate (default: 4)", ge=1)


def filled(options: O, *defaults: Mapping[str, Any]) -> O:
    """Options of which those not given are these defaults; of several words the defaults come before the given ones."""
    for values in defaults:
        given = {name: getattr(options, name) for name in values}
        words = {name: (*values[name], *words) for name, words in given.items() if isinstance(words, tuple)}
        missing = {name: values[name] for name, value in given.items() if value is None}
        options = dataclasses.replace(options, **words, **missing)  # type: ignore[type-var]
    return options


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Both trainings of every model of a study.

    Attributes:
      base, pretrain_base: run files as gin includes them.
      gin, pretrain_gin: the user's bindings.
      steps, pretrain_steps: of each training.
      checkpoint_period: the run file's; the study's is its largest divisor that fits the evaluated steps.
      evaluations: checkpoints of a training that are evaluated, evenly spaced, the last at the end.
      seeds: trainings of each model, seeds 0 to N-1.
    """

    base: str
    pretrain_base: str
    gin: tuple[str, ...]
    pretrain_gin: tuple[str, ...]
    steps: int
    pretrain_steps: int
    checkpoint_period: int
    evaluations: int
    seeds: int

    @property
    def period(self) -> int:
        """Steps between evaluated checkpoints."""
        return max(1, self.steps // self.evaluations)

    @property
    def evaluated(self) -> tuple[int, ...]:
        """The steps that are evaluated."""
        return (*(self.period * number for number in range(1, self.evaluations)), self.steps)

    def pretraining(
        self,
        folder: str,
        jobs: Mapping[str, str],
        seed: int,
        lines: Sequence[str] = (),
        *,
        data: str = "pack",
        is_shared: bool = False,
    ) -> Run:
        """A pretraining in ``folder``; see :meth:`training` and `Run`."""
        values = {"TRAIN_STEPS": self.pretrain_steps, "SEED": seed}
        text = compose(self.pretrain_base, folder, jobs, data, values, (*self.pretrain_gin, *lines))
        return Run(folder, text, (self.pretrain_steps,), is_shared)

    def training(
        self,
        folder: str,
        jobs: Mapping[str, str],
        seed: int,
        initial: str | Mapping[str, str] | None,
        lines: Sequence[str] = (),
        data: str = "examples",
    ) -> Run:
        """A weakly supervised training in ``folder``.

        Args:
          folder: of the training.
          jobs: the folders of a build's jobs, by name.
          seed: of the training.
          initial: the model folder that it starts from, or one for each part of the model; None for random
            parameters.
          lines: the last of the run file.
          data: the job whose examples it reads.
        """
        period = next(n for n in range(min(self.period, self.checkpoint_period), 0, -1) if self.period % n == 0)
        values = {
            "INITIAL_CHECKPOINT_PATH": initial,
            "TRAIN_STEPS": self.steps,
            "CHECKPOINT_PERIOD": period,
            "KEEP_PERIOD": self.period,
            "SEED": seed,
        }
        return Run(folder, compose(self.base, folder, jobs, data, values, (*self.gin, *lines)), self.evaluated)

    def facts(self) -> dict[str, Any]:
        """The recipe as JSON values, for a manifest."""
        seeds = {"seeds": list(range(self.seeds)), "evaluated_steps": list(self.evaluated)}
        return dataclasses.asdict(self) | seeds


def compose(
    base: str, folder: str, jobs: Mapping[str, str], data: str, values: Mapping[str, Any], lines: Sequence[str]
) -> str:
    """The text of a run file; later lines win.

    Args:
      base: the run file that is included.
      folder: of the training.
      jobs: the folders of a build's jobs, by name.
      data: the job whose examples it reads; it is named with its digest, so that a training on other data in the same
        folder is noticed.
      values: further macros that the study sets.
      lines: of the user and of the row.
    """
    places = {
        "MODEL_DIR": f"{folder}/model",
        "DATA_DIR": os.path.abspath(jobs[data]),
        "VOCABULARY_PATH": os.path.abspath(f"{jobs['vocabulary']}/{VOCABULARY_FILE}"),
    }
    note = f"# data: {os.path.basename(jobs[data])} {read_manifest(jobs[data])['digest']}"
    given = (f"{name} = {value!r}" for name, value in {**places, **values}.items())
    return "\n".join([note, f'include "{base}"', *given, *lines]) + "\n"


def own_lines(file: str) -> list[str]:
    """The lines of a run file without comments and includes, below its name.

    After the lines of another run they make it the ablation that the file describes.
    """
    from ...training.gin_files import GIN_FOLDER

    with open(os.path.join(GIN_FOLDER, run_file(file)), encoding="utf-8") as source:
        lines = source.read().splitlines()
    own = (line for line in lines if line.strip() and not line.startswith("#") and not _INCLUDE.match(line))
    return [f"# {file}", *own]


def run_file(name: str) -> str:
    """A run file as any folder can include it: one of the package by its name, another by its absolute path."""
    from ...training.gin_files import GIN_FOLDER

    inside = name.removeprefix("gin/")
    if os.path.isfile(os.path.join(GIN_FOLDER, inside)):
        return inside
    if not os.path.isfile(name):
        remedy = "name a run file, such as runs/train_small.gin"
        raise InputError("no such file", path=name, field="--base", remedy=remedy)
    return os.path.abspath(name)


def recipe_of(options: StudyOptions) -> Recipe:
    """The recipe of filled options; loads both run files, so that a wrong key is found before anything runs."""
    base, pretrain_base = run_file(str(options.base)), run_file(str(options.pretrain_base))
    train = [*_PLACES, "INITIAL_CHECKPOINT_PATH = 'x'", *options.gin]
    steps = options.steps or int(macro("TRAIN_STEPS", base, train))
    pretrain_steps = macro("TRAIN_STEPS", pretrain_base, [*_PLACES, *options.pretrain_gin])
    evaluations = options.evaluations or 1
    if evaluations > steps:
        problem = f"got {evaluations} evaluations of {steps} steps"
        raise InputError(problem, field="--evaluations", remedy="give at most one a step")
    period = int(macro("CHECKPOINT_PERIOD", base, train))
    bases, words = (base, pretrain_base), (options.gin, options.pretrain_gin)
    numbers = (steps, options.pretrain_steps or int(pretrain_steps), period, evaluations, options.seeds or 1)
    return Recipe(*bases, *words, *numbers)


def macro(name: str, base: str, bindings: Sequence[str]) -> Any:
    """The value of a macro in a base run with bindings; checks that every key is used and every required one is set."""
    import gin

    from ...training.gin_config import load_gin

    with gin.unlock_config():
        from .. import evaluators  # noqa: F401 - run files may name them
    load_gin([base], bindings)
    return gin.query_parameter(f"{name}/gin.macro.value")
