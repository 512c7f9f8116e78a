"""The training loop."""

import contextlib
import dataclasses
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import gin
import jax
import numpy as np
import optax
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.tfrecords.schema import PIECES, TOPICS
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..models.attention import choose_attention
from ..models.encoders.news import EncoderConfig, NewsEncoder
from ..tasks import registry
from ..tasks.packed import MLM
from .batches import BatchOpener, BatchOptions, DataSet, GrainBatches
from .calibration import Calibration, check_calibration, first_rows
from .checkpoints import Checkpoints, Keeping, Start, start_state
from .costs import peak_flops, step_flops
from .guards import Guards, Watch
from .held_out import Evaluation, HeldOut
from .metrics import Means, MetricWriter, Progress, StepCost, count_tokens, peak_device_bytes
from .mixture import SMOOTHING, Draw, MixtureBatches, select_sets, smoothed_weights
from .model_files import write_model_files
from .partitioning import DataShare, Partitioner, check_batch_size, data_share, shard_batch
from .processes import check_joined, device_counts, wait_for_all
from .steps import COUNTS, Losses, TaskLosses, TrainStep, continuation_pieces, make_train_step
from .train_state import TrainState, plan_state

CONFIG_FILE = "config.gin"


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a run ended.

    Attributes:
      step: steps done, all of them saved.
      interrupted: True if SIGTERM, to any of the processes, ended it early.
      model_dir: where the model lies.
      origin: what the run started from.
    """

    step: int
    interrupted: bool
    model_dir: str
    origin: str


@gin.configurable
def train(
    model_dir: str = gin.REQUIRED,
    mixture: str = gin.REQUIRED,
    data_dir: str = gin.REQUIRED,
    vocabulary_path: str = gin.REQUIRED,
    feature_lengths: Mapping[str, int] = gin.REQUIRED,
    train_steps: int = gin.REQUIRED,
    batch_size: int = gin.REQUIRED,
    architecture: Callable[..., EncoderConfig] = gin.REQUIRED,
    optimizer: optax.GradientTransformation = gin.REQUIRED,
    losses: Losses = Losses(),  # noqa: B008 - a frozen value
    partitioner: Partitioner = Partitioner(),  # noqa: B008 - a frozen value
    open_set: BatchOpener = GrainBatches,
    initial_checkpoint_path: str | None = None,
    vocab_size: int | None = None,
    smoothing: float = SMOOTHING,
    task_weights: Mapping[str, float] | None = None,
    learning_rate: optax.Schedule | float | None = None,
    guards: Guards = Guards(),  # noqa: B008 - a frozen value
    held_out: HeldOut = HeldOut(),  # noqa: B008 - a frozen value
    checkpoint_period: int = 1000,
    keep_checkpoints: int = 3,
    keep_period: int | None = None,
    keep_best: str | None = None,
    keep_best_mode: Literal["min", "max"] = "min",
    log_period: int = 10,
    peak_flops_per_device: float | None = None,
    whitening_rows: int = 0,
    latent_semantics: bool = False,
    text_length: int | None = None,
    seed: int = 0,
) -> TrainResult:
    """Trains until `train_steps` steps are done, from wherever the model folder stands (see `checkpoints.start_state`).

    A run that was killed and started again ends with the same parameters, bit for bit, as one that was not.

    Several processes may train together (see `processes`): each calls this with the same arguments. The batches, their order and so the
    losses are those of one process with the same devices in one mesh, up to the order in which floating-point numbers are added.

    Args:
      model_dir: MODEL_DIR, created if need be; see `checkpoints` for what it holds.
      mixture: MIXTURE_OR_TASK_NAME: "pretrain", "weak_supervision", a task, or "task/language".
      data_dir: DATA_DIR, the TFRecords with their manifest.
      vocabulary_path: VOCABULARY_PATH, the vocab.txt that the data were written with.
      feature_lengths: TASK_FEATURE_LENGTHS, tokens (or topics) per row, by feature.
      train_steps: TRAIN_STEPS, total over all restarts.
      batch_size: BATCH_SIZE, examples a step over all devices.
      architecture: makes the `EncoderConfig`, given `vocab_size`.
      optimizer: see `optimizers`.
      losses: temperature and the like.
      partitioner: the device mesh and axis rules.
      open_set: opens one set of examples; `GrainBatches` or `tasks.seqio_tasks.SeqioBatches`.
      initial_checkpoint_path: INITIAL_CHECKPOINT_PATH, a model folder or one of its steps: its parameters start this run.
      vocab_size: VOCAB_SIZE; None takes the vocabulary file's.
      smoothing: alpha of the sampling of sets.
      task_weights: factor on the sampling weight of all sets of a task, 1 where absent.
      learning_rate: the optimizer's, for the metrics only.
      guards: when the run stops itself, see `guards.Guards`.
      held_out: what is evaluated while it trains, see `held_out.HeldOut`.
      checkpoint_period: steps between checkpoints; the last step is always saved.
      keep_checkpoints: how many of the newest to keep, see `checkpoints.Keeping` for this and the next three.
      keep_period: checkpoints at multiples of it stay for good.
      keep_best: metric of the evaluation whose best checkpoint stays.
      keep_best_mode: "min" or "max".
      log_period: steps between metric records.
      peak_flops_per_device: for the metric `mfu`; None takes the device's from `costs.PEAK_FLOPS`.
      whitening_rows: rows from which the weights of weighted pooling (`piece_weights`) and the embedding head (`whitening`) are computed: after
        the last step of pretraining, which trains neither, or before the first of weak supervision that starts at random; 0 leaves the
        former equal and the latter at random.
      latent_semantics: where weak supervision starts at random, its table starts from these rows (`latent_semantics`).
      text_length: TEXT_LENGTH, how many tokens of a text the finished model reads unless told otherwise; None: as many as it trained on.
      seed: of the initialisation, the shuffle, the choice of sets, masks and dropout.

    Raises:
      InputError: for data, a vocabulary, a checkpoint or an option that do not fit; where `guards` stops the run; and for checkpoints that
        cannot be written.
    """
    check_joined()
    keeping = Keeping(keep_checkpoints, keep_period, keep_best, keep_best_mode)
    _check_periods(checkpoint_period, log_period, keep_best, held_out)
    vocabulary = read_vocabulary(vocabulary_path)
    config = _encoder_config(architecture, vocab_size, vocabulary)
    weights = _weights(data_dir, mixture, smoothing, task_weights)
    _check_lengths(weights, feature_lengths, config)
    mesh = partitioner.make_mesh()
    check_batch_size(batch_size, mesh)
    share = data_share(mesh)
    options = BatchOptions(
        directory=data_dir,
        lengths=feature_lengths,
        batch_size=batch_size // share.count,
        bounds={PIECES: config.vocab_size, TOPICS: config.num_topics},
        seed=seed,
        process_index=share.index,
        process_count=share.count,
    )
    batches = MixtureBatches(weights, open_set, options)
    tasks = {data_set.task for data_set in weights}
    is_pretraining = all(registry.get(task).is_packed for task in tasks)
    check_calibration(
        config, whitening_rows=whitening_rows, latent_semantics=latent_semantics, is_pretraining=is_pretraining
    )
    text_length = _text_length(text_length, None if is_pretraining else feature_lengths, config)
    encoder, limit = NewsEncoder(config), text_length or config.max_length
    evaluation = Evaluation(
        held_out, mixture, open_set, options, encoder, losses, partitioner, mesh, vocabulary_path, limit
    )
    optimizer = guards.guarded(optimizer)
    task_losses = TaskLosses(encoder, losses, continuation_pieces(vocabulary))
    layout = plan_state(encoder, optimizer, partitioner, mesh, task_losses.initial_parameters())
    compiled = {
        task: make_train_step(task, task_losses, optimizer, layout.abstract, partitioner, mesh)
        for task in map(_step_of, tasks)
    }
    flops = {task: step_flops(task, config, feature_lengths, batch_size, losses.masking_rate) for task in tasks}
    row_batches = math.ceil(whitening_rows / batch_size)
    calibration = Calibration(
        config, partitioner, mesh, lambda: first_rows(MixtureBatches(weights, open_set, options), row_batches)
    )
    os.makedirs(model_dir, exist_ok=True)
    init_key, loop_key = jax.random.split(jax.random.key(seed))
    is_first_host = jax.process_index() == 0
    with Checkpoints(model_dir, keeping) as checkpoints:
        start = start_state(checkpoints, initial_checkpoint_path, layout, init_key, config, vocabulary)
        if start.iterators is not None:
            batches.set_state(start.iterators)
        if is_first_host:
            _write_description(model_dir, config, vocabulary, text_length)
        progress = Progress(train_steps, start.step, enabled=is_first_host)
        with MetricWriter(model_dir, start.step, enabled=is_first_host) as writer, progress.shown():
            progress.say(
                f"{start.origin}; {', '.join(map(str, batches.data_sets))}; {config.num_layers} layers x {config.hidden_size}"
            )
            report = _Report(writer, progress, Means(_peak(peak_flops_per_device)), learning_rate, log_period)

            if whitening_rows and start.is_random and not is_pretraining:
                start = dataclasses.replace(
                    start, state=calibration.calibrated(start.state, latent_semantics=latent_semantics)
                )
            loop = _Loop(
                batches,
                compiled,
                flops,
                mesh,
                share,
                loop_key,
                checkpoints,
                checkpoint_period,
                evaluation,
                Watch(guards, model_dir),
                report,
            )
            step, interrupted = loop.run(
                start, train_steps, calibration.calibrated if whitening_rows and is_pretraining else lambda state: state
            )
            if interrupted:
                progress.say(f"SIGTERM: saved step {step}; the same command continues")
    wait_for_all("trained")
    return TrainResult(step, interrupted, model_dir, start.origin)


def _text_length(chosen: int | None, lengths: Mapping[str, int] | None, config: EncoderConfig) -> int | None:
    """Tokens of a text that the model reads: those chosen, or of the longest text that it trains on, or None where it trains on none."""
    if chosen is None:
        if lengths is None:
            return None
        return min(max(length for name, length in lengths.items() if name.endswith("tokens")), config.max_length)
    if not 1 <= chosen <= config.max_length:
        problem = f"got {chosen}, expected 1 to {config.max_length}, the architecture's positions"
        raise InputError(problem, field="TEXT_LENGTH", remedy="Give a length that the model can read, or None.")
    return chosen


def _step_of(task: str) -> str:
    """The task whose compiled step serves this one: MLM and TLM differ in their data only."""
    return MLM.name if registry.get(task).is_packed else task


@dataclasses.dataclass
class _Pending:
    """A step whose metrics are still being computed."""

    step: int
    draw: Draw
    metrics: dict[str, jax.Array]


class _Clock:
    """The time from the end of one step to the end of the next, and how much of it the loop waited for batches."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forgets what was measured since the last lap."""
        self._start, self._waited, self._is_spoilt = time.monotonic(), 0.0, False

    def spoil(self) -> None:
        """The lap that runs tells nothing."""
        self._is_spoilt = True

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """What happens meanwhile is waiting for a batch."""
        started = time.monotonic()
        yield
        self._waited += time.monotonic() - started

    def lap(self) -> tuple[float | None, float]:
        """Seconds since the last lap, None if it was spoilt, and of them those spent waiting."""
        now = time.monotonic()
        result = None if self._is_spoilt else now - self._start, self._waited
        self.restart()
        self._start = now
        return result


@dataclasses.dataclass
class _Report:
    """Where the metrics of the steps go."""

    writer: MetricWriter
    progress: Progress
    means: Means
    learning_rate: optax.Schedule | float | None
    period: int

    def write(self, step: int) -> None:
        """One record of the steps since the last one."""
        record = self.means.take()
        if self.learning_rate is not None:
            # The rate of the step just done: the schedule counts from 0.
            record["learning_rate"] = float(
                self.learning_rate(step - 1) if callable(self.learning_rate) else self.learning_rate
            )
        peak = peak_device_bytes()
        if peak is not None:
            record["peak_device_bytes"] = peak
        self.writer.write(step, record)
        self.progress.record(step, record)

    def evaluated(self, step: int, results: dict[str, float]) -> None:
        """One record of an evaluation."""
        self.writer.write(step, results)
        self.progress.evaluated(step, results)


@dataclasses.dataclass
class _Loop:
    batches: MixtureBatches
    steps: Mapping[str, TrainStep]
    flops: Mapping[str, float]
    mesh: Mesh
    share: DataShare
    key: jax.Array
    checkpoints: Checkpoints
    checkpoint_period: int
    evaluation: Evaluation
    watch: Watch
    report: _Report
    seen: set[str] = dataclasses.field(default_factory=set)
    clock: _Clock = dataclasses.field(default_factory=_Clock)
    is_stopping: bool = False

    def run(self, start: Start, train_steps: int, finish: Callable[[TrainState], TrainState]) -> tuple[int, bool]:
        """Steps until `train_steps`, then `finish`, or until SIGTERM; returns the step reached and whether it was SIGTERM."""
        state, step, saved = start.state, start.step, start.step
        pending: _Pending | None = None
        self.clock.restart()
        with _sigterm_noted() as asked_to_stop:
            while step < train_steps and not self.is_stopping:
                with self.clock.waiting():
                    draw = self.batches.draw(step)
                task = _step_of(draw.data_set.task)
                tokens = count_tokens(draw) if self.share.is_counted else (0, 0)
                counts = device_counts((*tokens, asked_to_stop.is_set()), self.mesh)
                if task not in self.seen:
                    self.seen.add(task)
                    self.clock.spoil()  # the call compiles
                state, metrics = self.steps[task](
                    state, shard_batch(draw.batch, self.mesh) | {COUNTS: counts}, self.key
                )
                # Only now wait for the step before: while a step runs, the batch of the next one is read, copied and queued behind it.
                self._finish(pending)
                step += 1
                pending = _Pending(step, draw, metrics)
                # One process knows at once. Several must leave the loop at the same step: they do when the sum of one arrives.
                self.is_stopping |= jax.process_count() == 1 and asked_to_stop.is_set()
                if step < train_steps and (step % self.checkpoint_period == 0 or self.evaluation.is_due(step)):
                    self._finish(pending)
                    pending = None
                    results = self._evaluate(step, state) if self.evaluation.is_due(step) else None
                    if step % self.checkpoint_period == 0:
                        saved = self._save(step, state, results)
                    self.clock.restart()
            self._finish(pending, last=True)
            if saved != step:
                is_done = step == train_steps
                state = finish(state) if is_done else state
                self._save(step, state, self._evaluate(step, state) if is_done and self.evaluation.is_on else None)
            self.checkpoints.wait()
            return step, step < train_steps

    def _finish(self, pending: _Pending | None, *, last: bool = False) -> None:
        """Waits for a step, checks its loss and logs it."""
        if pending is None:
            return
        tokens, positions, stop = map(int, np.asarray(pending.metrics[COUNTS]))
        metrics = {name: float(value) for name, value in pending.metrics.items() if name != COUNTS}
        seconds, wait_seconds = self.clock.lap()
        self.is_stopping |= stop > 0
        cost = StepCost(tokens, positions, self.flops[pending.draw.data_set.task], seconds, wait_seconds)
        if self.watch.check(pending.step, pending.draw, metrics):
            self.report.means.add(pending.draw.data_set, metrics, cost)
        else:
            self.report.means.add_skipped(cost)
        self.report.progress.advance(pending.step)
        if last or pending.step % self.report.period == 0:
            self.checkpoints.check()
            self.report.write(pending.step)

    def _evaluate(self, step: int, state: TrainState) -> dict[str, float]:
        results = self.evaluation.run(step, state.params)
        self.report.evaluated(step, results)
        return results

    def _save(self, step: int, state: TrainState, results: dict[str, float] | None) -> int:
        jax.block_until_ready(state)  # what follows talks to the other processes, too
        self.checkpoints.save(step, state, self.batches.get_state(), results)
        return step


def _peak(per_device: float | None) -> float | None:
    """FLOP/s of all devices together."""
    per_device = per_device or peak_flops(jax.devices()[0].device_kind)
    return None if per_device is None else per_device * jax.device_count()


def _check_periods(checkpoint_period: int, log_period: int, keep_best: str | None, held_out: HeldOut) -> None:
    for name, period in (("CHECKPOINT_PERIOD", checkpoint_period), ("LOG_PERIOD", log_period)):
        if period < 1:
            raise InputError(f"got {period}, expected at least 1", field=name, remedy="Give a number of steps.")
    if keep_best is not None and (not held_out.period or checkpoint_period % held_out.period):
        raise InputError(
            f"got {keep_best!r}, but checkpoints every {checkpoint_period} steps are not all evaluated (EVAL_PERIOD = {held_out.period})",
            field="KEEP_BEST",
            remedy="Set EVAL_PERIOD so that it divides CHECKPOINT_PERIOD.",
        )


@contextlib.contextmanager
def _sigterm_noted() -> Iterator[threading.Event]:
    """Meanwhile SIGTERM sets the event instead of ending the process; only the main thread may do that."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        # None: not set from Python; then there is no way back to it.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _encoder_config(
    architecture: Callable[..., EncoderConfig], vocab_size: int | None, vocabulary: VocabularyFile
) -> EncoderConfig:
    if vocab_size not in (None, vocabulary.size):
        raise InputError(
            f"the file has {vocabulary.size} pieces, the model's vocab_size is {vocab_size}",
            path=vocabulary.path,
            field="VOCAB_SIZE",
            remedy="Leave VOCAB_SIZE out to take the file's, or name the vocabulary that the model was made for.",
        )
    try:
        config = architecture(vocab_size=vocabulary.size)
        choose_attention(config, config.max_length)  # a kernel that cannot run here is refused before anything is read
    except ValueError as error:
        raise InputError(str(error), field="EncoderConfig", remedy="Mend the architecture's gin file.") from error
    return config


def _weights(
    data_dir: str, mixture: str, smoothing: float, task_weights: Mapping[str, float] | None
) -> dict[DataSet, float]:
    factors = dict(task_weights or {})
    unknown = sorted(set(factors) - set(registry.names()))
    if unknown or any(not factor > 0 for factor in factors.values()):
        raise InputError(
            f"got {factors}, expected positive factors for some of {', '.join(registry.names())}",
            field="train.task_weights",
            remedy="Name a single task as MIXTURE_OR_TASK_NAME to leave the others out.",
        )
    weights = smoothed_weights(select_sets(data_dir, mixture), smoothing)
    scaled = {data_set: weight * factors.get(data_set.task, 1.0) for data_set, weight in weights.items()}
    total = sum(scaled.values())
    return {data_set: weight / total for data_set, weight in scaled.items()}


def _check_lengths(weights: Mapping[DataSet, float], lengths: Mapping[str, int], config: EncoderConfig) -> None:
    for task in sorted({data_set.task for data_set in weights}):
        for name, length in registry.get(task).text_lengths(lengths).items():
            if length > config.max_length:
                raise InputError(
                    f"got {length}, the architecture has {config.max_length} positions",
                    path="TASK_FEATURE_LENGTHS",
                    field=name,
                    remedy="Shorten the rows or raise EncoderConfig.max_length.",
                )


def _write_description(
    model_dir: str, config: EncoderConfig, vocabulary: VocabularyFile, text_length: int | None
) -> None:
    write_model_files(model_dir, config, vocabulary, text_length)
    with open(os.path.join(model_dir, CONFIG_FILE), "w", encoding="utf-8") as file:
        file.write(gin.operative_config_str())
