"""The options of a run in groups, each configurable by gin under its name. Every group checks itself."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import gin
import jax
import optax
import orbax.checkpoint as ocp

from ..errors import InputError
from ..formats.command_line import GinOptions, option, required
from .guards import Guards
from .held_out import HeldOut


@gin.register
@dataclasses.dataclass(frozen=True)
class RunOptions(GinOptions):
    """Where a run writes, how long it takes and what it reports.

    Attributes:
      model_dir: MODEL_DIR, created if need be; see `formats.model_folder` for what it holds.
      train_steps: TRAIN_STEPS, total over all restarts.
      log_period: LOG_PERIOD, steps between metric records.
      peak_flops_per_device: PEAK_FLOPS_PER_DEVICE, for the metric `mfu`; None takes it from `metrics.PEAK_TERAFLOPS`.
      seed: SEED, of the initialisation, the shuffle, the choice of sets, masks and dropout.
    """

    model_dir: str
    train_steps: int = required(ge=0, macro="TRAIN_STEPS")
    log_period: int = option(10, ge=1, macro="LOG_PERIOD")
    peak_flops_per_device: float | None = option(None, gt=0, macro="PEAK_FLOPS_PER_DEVICE")
    seed: int = 0


@gin.register
@dataclasses.dataclass(frozen=True)
class OptimizerOptions:
    """How parameters are updated.

    Attributes:
      optimizer: see `learning.optimizers`.
      learning_rate: the optimizer's, for the metrics only.
      guards: when the run stops itself.
    """

    optimizer: optax.GradientTransformation
    learning_rate: optax.Schedule | float | None = None
    guards: Guards = dataclasses.field(default_factory=Guards)

    def learning_rate_after(self, step: int) -> float | None:
        """Returns the learning rate of step number `step`, counted from 1; None if it is not known."""
        rate = self.learning_rate
        return None if rate is None else float(rate(step - 1) if callable(rate) else rate)


@gin.register
@dataclasses.dataclass(frozen=True)
class CheckpointOptions(GinOptions):
    """What a run starts from, what it saves and which checkpoints stay; one that any rule keeps stays.

    Attributes:
      initial_checkpoint_path: INITIAL_CHECKPOINT_PATH, a model folder or one of its steps. Its parameters start this
        run. For a model that has other models as parts, one path for each part, by name.
      period: CHECKPOINT_PERIOD, steps between checkpoints; the last step is always saved.
      keep: KEEP_CHECKPOINTS, how many of the newest stay.
      keep_period: KEEP_PERIOD; checkpoints whose step is a multiple of it stay for good; None: no such rule.
      keep_best: KEEP_BEST, a metric of the evaluation, such as "eval/loss": the checkpoint where it was best stays;
        None: no such rule.
      keep_best_mode: whether the best is the least ("min") or the most ("max").
      patience: PATIENCE; number of evaluations in a row without a better KEEP_BEST that ends the run. 0 trains to the
        last step.
    """

    initial_checkpoint_path: str | Mapping[str, str] | None = None
    period: int = option(1000, ge=1, macro="CHECKPOINT_PERIOD")
    keep: int = option(3, ge=1, macro="KEEP_CHECKPOINTS")
    keep_period: int | None = option(None, ge=1, macro="KEEP_PERIOD")
    keep_best: str | None = None
    keep_best_mode: Literal["min", "max"] = option("min", choices=("min", "max"), macro="KEEP_BEST_MODE")
    patience: int = option(0, ge=0, macro="PATIENCE")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience and self.keep_best is None:
            remedy = "Name the metric that must get better (KEEP_BEST), or set PATIENCE = 0."
            raise InputError(f"got {self.patience} without KEEP_BEST", field="PATIENCE", remedy=remedy)

    def check_evaluated(self, held_out: HeldOut) -> None:
        """Refuses to keep the best checkpoint where some are not evaluated."""
        best = self.keep_best
        if best is not None and (not held_out.period or self.period % held_out.period):
            raise InputError(
                f"got {best!r}, but checkpoints every {self.period} steps are not all evaluated "
                f"(EVAL_PERIOD = {held_out.period})",
                field="KEEP_BEST",
                remedy="Set EVAL_PERIOD so that it divides CHECKPOINT_PERIOD.",
            )

    def for_orbax(self, *, is_alone: bool) -> ocp.CheckpointManagerOptions:
        """Returns which checkpoints stay, in Orbax's terms; `is_alone`: each process has a folder of its own."""
        rules = ocp.checkpoint_managers
        policies: list[Any] = [rules.LatestN(self.keep)]
        if self.keep_period is not None:
            policies.append(rules.EveryNSteps(self.keep_period))
        if self.keep_best is not None:
            # Orbax keeps the last ones in this order, so the least must come last.
            is_least = self.keep_best_mode == "min"
            best = {"get_metric_fn": self.figure, "reverse": is_least, "n": 1}
            policies.append(rules.BestN(**best, keep_checkpoints_without_metrics=False))
        processes = ocp.options.MultiprocessingOptions()
        if is_alone and jax.process_count() > 1:  # this process writes and waits for no other
            number = jax.process_index()
            processes = ocp.options.MultiprocessingOptions(number, {number}, f"process-{number}")
        return ocp.CheckpointManagerOptions(
            preservation_policy=rules.AnyPreservationPolicy(policies),
            best_fn=self.figure if self.keep_best is not None else None,  # without it Orbax stores no metrics
            best_mode=self.keep_best_mode,
            cleanup_tmp_directories=True,
            enable_async_checkpointing=True,
            create=not is_alone,
            multiprocessing_options=processes,
        )

    def figure(self, metrics: Mapping[str, float]) -> float:
        """Returns the metric `keep_best` of an evaluation; raises InputError if the evaluation does not give it."""
        if self.keep_best is None or self.keep_best not in metrics:
            known = ", ".join(metrics) or "nothing: the evaluation gives no metric"
            remedy = "Name a metric that the evaluation gives."
            raise InputError(f"got {self.keep_best!r}, expected one of {known}", field="KEEP_BEST", remedy=remedy)
        return float(metrics[self.keep_best])


@gin.register
@dataclasses.dataclass(frozen=True)
class CalibrationOptions:
    """What a run computes from some of its texts instead of training it, see `calibration`.

    Attributes:
      whitening_rows: WHITENING_ROWS, rows from which the weights of weighted pooling and the embedding head are
        computed: after the last step of pretraining, which trains neither, or before the first step of weak supervision
        from random parameters. 0 leaves the former equal and the latter random.
      latent_semantics: LATENT_SEMANTICS; where weak supervision starts from random parameters, its table of word pieces
        is computed from these rows (`words.start_table`).
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
