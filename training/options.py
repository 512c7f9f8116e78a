"""The options of a run in groups, each configurable by gin under its name. Every group checks itself."""

import dataclasses
from collections.abc import Callable, Mapping

import gin
import numpy as np
import optax

from ..errors import InputError
from ..formats.manifest import DataSet
from ..formats.vocabulary import VocabularyFile
from ..models.encoders import Architecture
from ..tasks import registry
from ..tasks.smoothing import SMOOTHING
from .batches import BatchOpener, GrainBatches
from .guards import Guards
from .held_out import HeldOut
from .keeping import Keeping
from .mixture import select_sets, smoothed_weights
from .partitioning import Partitioner


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


@gin.register
@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What a run trains on.

    Attributes:
      data_dir: DATA_DIR, the TFRecords with their manifest.
      vocabulary_path: VOCABULARY_PATH, the vocab.txt that the data were written with. An imported tokenizer is
        read from beside it.
      mixture: MIXTURE_OR_TASK_NAME: a mixture, such as "pretrain", a task, or "task/language".
      feature_lengths: TASK_FEATURE_LENGTHS, tokens (or topics) per row, by feature.
      batch_size: BATCH_SIZE, examples a step over all devices.
      open_set: opens one set of examples; `GrainBatches` or `tasks.seqio_tasks.SeqioBatches`.
      smoothing: alpha of the sampling of sets, see `mixture.smoothed_weights`.
      task_weights: factor on the sampling weight of all sets of a task, 1 where absent.
      batch_days: BATCH_DAYS; a batch of triplets holds anchors of the same period of so many days, whose other reports
        are harder negatives than those of any day. 0 draws from all days.
    """

    data_dir: str
    vocabulary_path: str
    mixture: str
    feature_lengths: Mapping[str, int]
    batch_size: int
    open_set: BatchOpener = GrainBatches
    smoothing: float = SMOOTHING
    task_weights: Mapping[str, float] | None = None
    batch_days: int = 0

    def __post_init__(self) -> None:
        if self.batch_days < 0:
            raise InputError(
                f"got {self.batch_days}, expected 0 or more", field="BATCH_DAYS", remedy="0 groups nothing."
            )
        factors = self.task_weights or {}
        if not set(factors) <= set(registry.names()) or any(not factor > 0 for factor in factors.values()):
            raise InputError(
                f"got {dict(factors)}, expected positive factors for some of {', '.join(registry.names())}",
                field="DataOptions.task_weights",
                remedy="Name a single task as MIXTURE_OR_TASK_NAME to leave the others out.",
            )

    def weights(self) -> dict[DataSet, float]:
        """Returns the sampling probability of every set of the mixture.

        Raises:
          InputError: see `mixture.select_sets`.
        """
        factors = self.task_weights or {}
        weights = smoothed_weights(select_sets(self.data_dir, self.mixture), self.smoothing)
        scaled = {data_set: weight * factors.get(data_set.task, 1.0) for data_set, weight in weights.items()}
        total = sum(scaled.values())
        return {data_set: weight / total for data_set, weight in scaled.items()}

    def check_lengths(self, tasks: set[str], config: Architecture) -> None:
        """Refuses rows that are longer than the model reads.

        Raises:
          InputError: naming the feature.
        """
        for task in sorted(tasks):
            for name, length in registry.get(task).text_lengths(self.feature_lengths).items():
                if length > config.max_length:
                    raise InputError(
                        f"got {length}, the architecture has {config.max_length} positions",
                        path="TASK_FEATURE_LENGTHS",
                        field=name,
                        remedy=f"Shorten the rows or raise {type(config).__name__}.max_length.",
                    )


@gin.register
@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """What a run trains, and its layout over the devices.

    Attributes:
      architecture: makes the configuration of the model, given `vocab_size`; a class of `models.encoders.KINDS`.
      vocab_size: VOCAB_SIZE; None takes the vocabulary file's.
      text_length: TEXT_LENGTH, how many tokens of a text the finished model reads unless told otherwise. None takes as
        many as it trained on.
      partitioner: the device mesh and axis rules.
    """

    architecture: Callable[..., Architecture]
    vocab_size: int | None = None
    text_length: int | None = None
    partitioner: Partitioner = dataclasses.field(default_factory=Partitioner)

    def config(self, vocabulary: VocabularyFile) -> Architecture:
        """Returns the configuration of the model.

        Raises:
          InputError: for a vocabulary of another size, values out of range, or a kernel that cannot run here.
        """
        if self.vocab_size not in (None, vocabulary.size):
            raise InputError(
                f"the file has {vocabulary.size} pieces, the model's vocab_size is {self.vocab_size}",
                path=vocabulary.path,
                field="VOCAB_SIZE",
                remedy="Leave VOCAB_SIZE out to take the file's, or name the vocabulary that the model was made for.",
            )
        try:
            config = self.architecture(vocab_size=vocabulary.size)
            config.check(config.max_length)
        except ValueError as error:
            name = getattr(self.architecture, "__name__", "ModelOptions.architecture")
            raise InputError(str(error), field=name, remedy="Correct the architecture's gin file.") from error
        return config

    def text_length_of(self, lengths: Mapping[str, int] | None, config: Architecture) -> int | None:
        """Returns how many tokens of a text the finished model reads, None where it has learned none.

        Args:
          lengths: `TASK_FEATURE_LENGTHS`; None where the run trains on no whole texts.
          config: the model.

        Raises:
          InputError: for a length that the model cannot read.
        """
        if self.text_length is None:
            if lengths is None:
                return None
            texts = registry.text_features()
            return min(max(length for name, length in lengths.items() if name in texts), config.max_length)
        if not 1 <= self.text_length <= config.max_length:
            raise InputError(
                f"got {self.text_length}, expected 1 to {config.max_length}, the architecture's positions",
                field="TEXT_LENGTH",
                remedy="Give a length that the model can read, or None.",
            )
        return self.text_length


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
        run.
      period: CHECKPOINT_PERIOD, steps between checkpoints; the last step is always saved.
      keeping: which checkpoints stay.
      patience: PATIENCE; the run ends when so many evaluations in a row give no better KEEP_BEST. 0 trains to the last
        step.
    """

    initial_checkpoint_path: str | None = None
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
    """

    whitening_rows: int = 0
    latent_semantics: bool = False


def _check_period(name: str, period: int) -> None:
    if period < 1:
        raise InputError(f"got {period}, expected at least 1", field=name, remedy="Give a number of steps.")
