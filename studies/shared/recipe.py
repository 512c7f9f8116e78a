"""How a study pretrains and trains: run files, bindings, steps and seeds."""

import argparse
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import InputError
from ...formats.vocabulary import VOCABULARY_FILE
from .gin_text import base_path, compose, macro
from .mining import manifest_of
from .runs import Run

_PLACES: Final = ("MODEL_DIR = 'x'", "DATA_DIR = 'x'", "VOCABULARY_PATH = 'x'")
# Half the demo's width and two or three sentences of each text: a core does a step in a quarter of a second.
_NARROW: Final = ("EncoderConfig.hidden_size = 64", "EncoderConfig.embedding_size = 64", "EncoderConfig.mlp_size = 256")
_PRETRAIN_GIN: Final = (*_NARROW, "BATCH_SIZE = 16")
_LENGTHS: Final = {"anchor_tokens": 48, "positive_tokens": 48, "negative_tokens": 48, "tokens": 48}
_TRAIN_GIN: Final = (
    *_NARROW,
    "BATCH_SIZE = 32",
    # In so few steps, the demo's 1e-3 costs so small a model more of its pretraining than it gains.
    "LEARNING_RATE = 5e-4",
    f"TASK_FEATURE_LENGTHS = {json.dumps(_LENGTHS)}",
)
DEFAULTS: Final[Mapping[str, Any]] = {
    "base": "runs/weak_supervision_paper.gin",
    "pretrain_base": "runs/pretrain_paper.gin",
    "seeds": 3,
    "parallel": 1,
}
NEWSROOM_DEFAULTS: Final[Mapping[str, Any]] = {
    "base": "runs/train_demo.gin",
    "pretrain_base": "runs/pretrain_demo.gin",
    "gin": _TRAIN_GIN,
    "pretrain_gin": _PRETRAIN_GIN,
    "steps": 60,
    "pretrain_steps": 60,
    "seeds": 3,
    "parallel": 2,
    # A phase on so few articles takes less time than starting workers for it.
    "beam": ("--direct_num_workers=1",),
}


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
        row_file: str | None = None,
        data: str = "pack",
        bindings: Sequence[str] = (),
    ) -> Run:
        """A pretraining in ``folder``.

        Args:
          folder: of the pretraining.
          jobs: see :meth:`training`.
          seed: of the pretraining.
          row_file: see :meth:`training`.
          data: see :meth:`training`.
          bindings: gin bindings after those of the recipe.
        """
        values = _places(folder, jobs[data], jobs["vocabulary"]) | {"TRAIN_STEPS": self.pretrain_steps, "SEED": seed}
        given = (*self.pretrain_gin, *bindings)
        return Run(
            folder,
            compose(self.pretrain_base, values, given, row_file, [_note(jobs[data])]),
            (self.pretrain_steps,),
        )

    def training(
        self,
        folder: str,
        jobs: Mapping[str, str],
        seed: int,
        initial: str | Mapping[str, str] | None,
        row_file: str | None = None,
        data: str = "examples",
    ) -> Run:
        """A weakly supervised training in ``folder``.

        Args:
          folder: of the training.
          jobs: the folders of a build's jobs, by name.
          seed: of the training.
          initial: the model folder that it starts from, or one for each part of the model; None for random
            parameters.
          row_file: a run file whose own lines make it an ablation.
          data: the job whose examples it reads.
        """
        values = _places(folder, jobs[data], jobs["vocabulary"]) | {
            "INITIAL_CHECKPOINT_PATH": initial,
            "TRAIN_STEPS": self.steps,
            "CHECKPOINT_PERIOD": _divisor(self.period, self.checkpoint_period),
            "KEEP_PERIOD": self.period,
            "SEED": seed,
        }
        return Run(folder, compose(self.base, values, self.gin, row_file, [_note(jobs[data])]), self.evaluated)

    def facts(self) -> dict[str, Any]:
        """The recipe as JSON values, for a manifest."""
        shown = {
            name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(self).items()
        }
        return shown | {"seeds": list(range(self.seeds)), "evaluated_steps": list(self.evaluated)}


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe of the command line; loads both run files, so that a wrong key is found before anything runs.

    Raises:
      InputError: for run files, bindings or numbers that do not fit.
    """
    base, pretrain_base = base_path(args.base), base_path(args.pretrain_base)
    train = [*_PLACES, "INITIAL_CHECKPOINT_PATH = 'x'", *args.gin]
    steps = args.steps or int(macro("TRAIN_STEPS", base, train))
    pretrain_steps = args.pretrain_steps or int(macro("TRAIN_STEPS", pretrain_base, [*_PLACES, *args.pretrain_gin]))
    if args.evaluations > steps:
        raise InputError(
            f"got {args.evaluations} evaluations of {steps} steps",
            field="--evaluations",
            remedy="give at most one a step",
        )
    return Recipe(
        base,
        pretrain_base,
        tuple(args.gin),
        tuple(args.pretrain_gin),
        steps,
        pretrain_steps,
        int(macro("CHECKPOINT_PERIOD", base, train)),
        args.evaluations,
        args.seeds,
    )


def _places(folder: str, data: str, vocabulary: str) -> dict[str, Any]:
    return {
        "MODEL_DIR": f"{folder}/model",
        "DATA_DIR": os.path.abspath(data),
        "VOCABULARY_PATH": os.path.abspath(f"{vocabulary}/{VOCABULARY_FILE}"),
    }


def _divisor(number: int, most: int) -> int:
    """The largest divisor that is not above ``most``."""
    return next(period for period in range(min(number, most), 0, -1) if number % period == 0)


def _note(folder: str) -> str:
    """Names the data by their digest, so that a training on other data in the same folder is noticed."""
    work, _, job = folder.rpartition("/")
    return f"data: {job} {manifest_of(work, job)['digest']}"
