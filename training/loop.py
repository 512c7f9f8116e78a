"""The training loop."""

import contextlib
import dataclasses
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import gin
import jax
import optax
from jax.sharding import Mesh

from ..models.attention import choose_attention
from ..models.encoder import EncoderConfig, NewsEncoder
from ..tasks.errors import InputError
from ..tasks.features import TaskName
from ..tasks.padding import PACKED_TASKS, row_lengths
from .batches import Batch, BatchOpener, BatchOptions, DataSet, GrainBatches
from .checkpoints import Checkpoints, Start, start_state
from .metrics import Means, MetricWriter, Progress
from .mixture import SMOOTHING, Draw, MixtureBatches, select_sets, smoothed_weights
from .model_files import VocabularyFile, read_vocabulary, write_model_files
from .partitioning import Partitioner, check_batch_size, shard_batch
from .steps import Losses, TaskLosses, TrainStep, continuation_pieces, make_train_step
from .train_state import TrainState, plan_state
from .whitening import whiten_embedding_head

CONFIG_FILE = "config.gin"


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a run ended.

    Attributes:
      step: steps done, all of them saved.
      interrupted: True if SIGTERM ended it early.
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
    checkpoint_period: int = 1000,
    keep_checkpoints: int = 3,
    log_period: int = 10,
    whitening_rows: int = 0,
    seed: int = 0,
) -> TrainResult:
    """Trains until `train_steps` steps are done, from wherever the model folder stands (see `checkpoints.start_state`).

    A run that was killed and started again ends with the same parameters, bit for bit, as one that was not.

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
      checkpoint_period: steps between checkpoints; the last step is always saved.
      keep_checkpoints: how many to keep.
      log_period: steps between metric records.
      whitening_rows: packed rows from which the embedding head is computed after the last step of a pretraining run, see `whitening`;
        0 leaves the head at random.
      seed: of the initialisation, the shuffle, the choice of sets, masks and dropout.

    Raises:
      InputError: for data, a vocabulary, a checkpoint or an option that do not fit; and for a loss that is no finite number.
    """
    vocabulary = read_vocabulary(vocabulary_path)
    config = _encoder_config(architecture, vocab_size, vocabulary)
    weights = _weights(data_dir, mixture, smoothing, task_weights)
    _check_lengths(weights, feature_lengths, config)
    mesh = partitioner.make_mesh()
    check_batch_size(batch_size, mesh)
    options = BatchOptions(
        directory=data_dir,
        lengths=feature_lengths,
        batch_size=batch_size // jax.process_count(),
        vocab_size=config.vocab_size,
        num_topics=config.num_topics,
        seed=seed,
        process_index=jax.process_index(),
        process_count=jax.process_count(),
    )
    batches = MixtureBatches(weights, open_set, options)
    task_losses = TaskLosses(NewsEncoder(config), losses, continuation_pieces(vocabulary))
    layout = plan_state(NewsEncoder(config), optimizer, partitioner, mesh, task_losses.initial_parameters())
    tasks = {data_set.task for data_set in weights}
    compiled = {task: make_train_step(task, task_losses, optimizer, layout.abstract, partitioner, mesh) for task in map(_step_of, tasks)}
    os.makedirs(model_dir, exist_ok=True)
    init_key, loop_key = jax.random.split(jax.random.key(seed))
    is_first_host = jax.process_index() == 0
    with Checkpoints(model_dir, keep_checkpoints) as checkpoints:
        start = start_state(checkpoints, initial_checkpoint_path, layout, init_key, config, vocabulary)
        if start.iterators is not None:
            batches.set_state(start.iterators)
        if is_first_host:
            _write_description(model_dir, config, vocabulary)
        progress = Progress(train_steps, start.step, enabled=is_first_host)
        with MetricWriter(model_dir, start.step, enabled=is_first_host) as writer, progress.shown():
            progress.say(f"{start.origin}; {', '.join(map(str, batches.data_sets))}; {config.num_layers} layers x {config.hidden_size}")

            def finish(state: TrainState) -> TrainState:
                rows = _first_batches(MixtureBatches(weights, open_set, options), math.ceil(whitening_rows / batch_size))
                return state.replace(params=whiten_embedding_head(NewsEncoder(config), state.params, rows, partitioner, mesh))

            is_whitened = whitening_rows > 0 and tasks <= PACKED_TASKS
            loop = _Loop(batches, compiled, mesh, loop_key, checkpoints, checkpoint_period, writer, progress, log_period)

            step, interrupted = loop.run(start, train_steps, finish if is_whitened else lambda state: state)
            if interrupted:
                progress.say(f"SIGTERM: saved step {step}; the same command continues")
    return TrainResult(step, interrupted, model_dir, start.origin)


def _first_batches(batches: MixtureBatches, count: int) -> Iterator[Batch]:
    return (batches.draw(number).batch for number in range(count))


def _step_of(task: TaskName) -> TaskName:
    """The task whose compiled step serves this one: MLM and TLM differ in their data only."""
    return TaskName.MLM if task in PACKED_TASKS else task


@dataclasses.dataclass
class _Pending:
    """A step whose metrics are still being computed."""

    step: int
    draw: Draw
    metrics: dict[str, jax.Array]
    is_first_of_task: bool


@dataclasses.dataclass
class _Loop:
    batches: MixtureBatches
    steps: Mapping[TaskName, TrainStep]
    mesh: Mesh
    key: jax.Array
    checkpoints: Checkpoints
    checkpoint_period: int
    writer: MetricWriter
    progress: Progress
    log_period: int
    means: Means = dataclasses.field(default_factory=Means)
    seen: set[TaskName] = dataclasses.field(default_factory=set)
    last_time: float = 0.0

    def run(self, start: Start, train_steps: int, finish: Callable[[TrainState], TrainState]) -> tuple[int, bool]:
        """Steps until `train_steps`, then `finish`, or until SIGTERM; returns the step reached and whether it was SIGTERM."""
        state, step, saved = start.state, start.step, start.step
        pending: _Pending | None = None
        self.last_time = time.monotonic()
        with _sigterm_noted() as stop:
            while step < train_steps and not stop.is_set():
                draw = self.batches.draw(step)
                task = _step_of(draw.data_set.task)
                state, metrics = self.steps[task](state, shard_batch(draw.batch, self.mesh), self.key)
                # Only now wait for the step before: the device always has the next one queued.
                self._finish(pending)
                step += 1
                pending = _Pending(step, draw, metrics, task not in self.seen)
                self.seen.add(task)
                if step % self.checkpoint_period == 0 and step < train_steps:
                    self._finish(pending)
                    pending, saved = None, self._save(step, state)
            self._finish(pending, last=True)
            if saved != step:
                self._save(step, state if step < train_steps else finish(state))
            self.checkpoints.wait()
            return step, stop.is_set()

    def _finish(self, pending: _Pending | None, *, last: bool = False) -> None:
        """Waits for a step, checks its loss and logs it."""
        if pending is None:
            return
        metrics = {name: float(value) for name, value in pending.metrics.items()}
        now = time.monotonic()
        seconds, self.last_time = now - self.last_time, now
        _check_finite(metrics, pending.step, pending.draw)
        self.means.add(pending.draw, metrics, None if pending.is_first_of_task else seconds)
        self.progress.advance(pending.step)
        if last or pending.step % self.log_period == 0:
            record = self.means.take()
            self.writer.write(pending.step, record)
            self.progress.record(pending.step, record)

    def _save(self, step: int, state: TrainState) -> int:
        self.checkpoints.save(step, state, self.batches.get_state())
        self.last_time = time.monotonic()
        return step


def _check_finite(metrics: Mapping[str, float], step: int, draw: Draw) -> None:
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            raise InputError(
                f"the {name} is {metrics[name]} at step {step}, on a batch of {draw.data_set}; nothing after the last checkpoint is kept",
                field=f"step {step}, {draw.data_set}",
                remedy="Lower LEARNING_RATE, lengthen the warm-up or set adam.clip_norm, and run again; it continues from the last checkpoint.",
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
        signal.signal(signal.SIGTERM, before)


def _encoder_config(architecture: Callable[..., EncoderConfig], vocab_size: int | None, vocabulary: VocabularyFile) -> EncoderConfig:
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


def _weights(data_dir: str, mixture: str, smoothing: float, task_weights: Mapping[str, float] | None) -> dict[DataSet, float]:
    factors = dict(task_weights or {})
    unknown = sorted(set(factors) - set(TaskName))
    if unknown or any(not factor > 0 for factor in factors.values()):
        raise InputError(
            f"got {factors}, expected positive factors for some of {', '.join(TaskName)}",
            field="train.task_weights",
            remedy="Name a single task as MIXTURE_OR_TASK_NAME to leave the others out.",
        )
    weights = smoothed_weights(select_sets(data_dir, mixture), smoothing)
    scaled = {data_set: weight * factors.get(data_set.task, 1.0) for data_set, weight in weights.items()}
    total = sum(scaled.values())
    return {data_set: weight / total for data_set, weight in scaled.items()}


def _check_lengths(weights: Mapping[DataSet, float], lengths: Mapping[str, int], config: EncoderConfig) -> None:
    for task in sorted({data_set.task for data_set in weights}):
        for name, length in row_lengths(task, lengths).items():
            if name.endswith("tokens") and length > config.max_length:
                raise InputError(
                    f"got {length}, the architecture has {config.max_length} positions",
                    path="TASK_FEATURE_LENGTHS",
                    field=name,
                    remedy="Shorten the rows or raise EncoderConfig.max_length.",
                )


def _write_description(model_dir: str, config: EncoderConfig, vocabulary: VocabularyFile) -> None:
    write_model_files(model_dir, config, vocabulary)
    with open(os.path.join(model_dir, CONFIG_FILE), "w", encoding="utf-8") as file:
        file.write(gin.operative_config_str())
