"""The options of a run in groups, each configurable by gin under its name. Every group checks itself."""

import dataclasses
from collections.abc import Mapping

import gin
import numpy as np
import optax

from ..errors import InputError
from .guards import Guards
from .held_out import HeldOut
from .keeping import Keeping


@gin.register
@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Where a run writes, how long it takes and what it reports.

    Attributes:
      model_dir: MODEL_DIR, created if need be; see `checkpoints` for what it holds.
      train_steps: TRAIN_STEPS, total over all restarts.
      log_period: LOG_PERIOD, steps between metric records.
      peak_flops_per_device: PEAK_FLOPS_PER_DEVICE, for the metric `mfu`; None takes it from `costs.PEAK_FLOPS`.
      seed: SEED, of the initialisation, the shuffle, the choice of sets, masks and dropout.
    """

    model_dir: str
    train_steps: int
    log_period: int = 10
    peak_flops_per_device: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_period("LOG_PERIOD", self.log_period)
        if self.train_steps < 0:
            remedy = "Give the number of steps, those of earlier runs in the folder included."
            raise InputError(f"got {self.train_steps}, expected 0 or more", field="TRAIN_STEPS", remedy=remedy)
        if self.peak_flops_per_device is not None and not self.peak_flops_per_device > 0:
            problem = f"got {self.peak_flops_per_device}, expected a positive number"
            raise InputError(problem, field="PEAK_FLOPS_PER_DEVICE", remedy="Give FLOP/s of a device, or None.")


@gin.register
@dataclasses.dataclass(frozen=True)
class OptimizerOptions:
    """How parameters are updated.

    Attributes:
      optimizer: see `optimizers`.
      learning_rate: the optimizer's, for the metrics only.
      guards: when the run stops itself, see `guards.Guards`.
    """

    optimizer: optax.GradientTransformation
    learning_rate: optax.Schedule | float | None = None
    guards: Guards = dataclasses.field(default_factory=Guards)

    def guarded(self) -> optax.GradientTransformation:
        """Returns the optimizer, which leaves out updates that are not finite if the guards ask for it."""
        return self.guards.guarded(self.optimizer)

    def warning(self, first: int, last: int) -> str:
        """Returns a warning if the learning rate is 0 in all steps from `first` to `last`; else an empty string."""
        sample = sorted({int(step) for step in np.linspace(first + 1, last, 50)}) if last > first else []
        if not sample or any(self.learning_rate_after(step) != 0 for step in sample):
            return ""
        return "warning: LEARNING_RATE is 0, so training changes no parameter"

    def learning_rate_after(self, step: int) -> float | None:
        """Returns the learning rate of step number `step`, counted from 1; None if it is not known."""
        rate = self.learning_rate
        return None if rate is None else float(rate(step - 1) if callable(rate) else rate)


@gin.register
@dataclasses.dataclass(frozen=True)
class CheckpointOptions:
    """What a run starts from and what it saves.

    Attributes:
      initial_checkpoint_path: INITIAL_CHECKPOINT_PATH, a model folder or one of its steps. Its parameters start this
        run. For a model that has other models as parts, one path for each part, by name.
      period: CHECKPOINT_PERIOD, steps between checkpoints; the last step is always saved.
      keeping: which checkpoints stay.
      patience: PATIENCE; number of evaluations in a row without a better KEEP_BEST that ends the run. 0 trains to the
        last step.
    """

    initial_checkpoint_path: str | Mapping[str, str] | None = None
    period: int = 1000
    keeping: Keeping = dataclasses.field(default_factory=Keeping)
    patience: int = 0

    def __post_init__(self) -> None:
        _check_period("CHECKPOINT_PERIOD", self.period)
        if self.patience < 0 or (self.patience and self.keeping.best is None):
            raise InputError(
                f"got {self.patience} with KEEP_BEST = {self.keeping.best!r}, expected a number of evaluations",
                field="PATIENCE",
                remedy="Name the metric that must get better (KEEP_BEST), or set PATIENCE = 0.",
            )

    def check_evaluated(self, held_out: HeldOut) -> None:
        """Refuses to keep the best checkpoint where some are not evaluated.

        Raises:
          InputError: naming the option.
        """
        best = self.keeping.best
        if best is not None and (not held_out.period or self.period % held_out.period):
            raise InputError(
                f"got {best!r}, but checkpoints every {self.period} steps are not all evaluated "
                f"(EVAL_PERIOD = {held_out.period})",
                field="KEEP_BEST",
                remedy="Set EVAL_PERIOD so that it divides CHECKPOINT_PERIOD.",
            )


@gin.register
@dataclasses.dataclass(frozen=True)
class CalibrationOptions:
    """What a run computes from some of its texts instead of training it, see `calibration`.

    Attributes:
      whitening_rows: WHITENING_ROWS, rows from which the weights of weighted pooling (`piece_weights`) and the
        embedding head (`whitening`) are computed: after the last step of pretraining, which trains neither, or before
        the first step of weak supervision from random parameters. 0 leaves the former equal and the latter random.
      latent_semantics: LATENT_SEMANTICS; where weak supervision starts from random parameters, its table of word pieces
        is computed from these rows (`latent_semantics`).
      word_vectors: WORD_VECTORS, a text file of word vectors (GloVe, word2vec) from which the table of word pieces
        starts in an architecture with `Capability.WORD_VECTORS`, where training starts from random parameters.
    """

    whitening_rows: int = 0
    latent_semantics: bool = False
    word_vectors: str | None = None

    def __post_init__(self) -> None:
        if self.word_vectors and self.latent_semantics:
            remedy = "Set one of them."
            raise InputError("got a file and LATENT_SEMANTICS", field="WORD_VECTORS", remedy=remedy)


def _check_period(name: str, period: int) -> None:
    if period < 1:
        raise InputError(f"got {period}, expected at least 1", field=name, remedy="Give a number of steps.")
