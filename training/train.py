"""Trains a model: the function that gin files configure, in T5X's terms, and what a run is built of."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import gin
import jax
import optax
from jax.sharding import Mesh

from ..errors import counted
from ..formats.files import write_whole
from ..formats.folders import locked
from ..formats.manifest import DataSet
from ..formats.model_folder import ModelFolder, check_place
from ..formats.trust import allow
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..learning.batches import Batch, BatchOptions
from ..learning.mixture import MixedBatches, MixtureBatches, mixed_rows
from ..learning.model_files import write_model_files
from ..learning.objectives import Model, Objective, Objectives, continuation_pieces, objectives_of
from ..learning.options import DataOptions, ModelOptions
from ..learning.partitioning import DATA_AXIS, Partitioner, check_batch_size, data_share
from ..models.encoders import Architecture
from ..tasks.registry import MIXED
from .calibration import Calibration, check_calibration, first_rows
from .checkpoints import Checkpoints, Start, start_state
from .guards import Watch
from .held_out import Evaluation, HeldOut, open_held_out
from .loop import Loop, Patience, TaskStep
from .metrics import Means, MetricWriter, Progress, Report, step_flops, total_peak_flops
from .options import CalibrationOptions, CheckpointOptions, OptimizerOptions, RunOptions
from .processes import check_joined, wait_for_all
from .train_state import StateLayout, TrainState, make_train_steps, plan_state


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a run ended.

    Attributes:
      step: steps done, all of them saved.
      interrupted: what asked it to end: "SIGTERM" or "Ctrl-C" (also in its last step), or "another process" that got
        one; empty if nothing did.
      model_dir: the folder of the model.
      origin: what the run started from.
      best_step: the checkpoint with the best metric (KEEP_BEST), None where the run keeps none.
    """

    step: int
    interrupted: str
    model_dir: str
    origin: str
    best_step: int | None


@gin.configurable
def train(
    run: RunOptions = gin.REQUIRED,
    data: DataOptions = gin.REQUIRED,
    model: ModelOptions = gin.REQUIRED,
    optimizer: OptimizerOptions = gin.REQUIRED,
    objectives: Sequence[Objective] = (),
    checkpoints: CheckpointOptions = CheckpointOptions(),  # noqa: B008 - a frozen value
    held_out: HeldOut = HeldOut(),  # noqa: B008 - a frozen value
    calibration: CalibrationOptions = CalibrationOptions(),  # noqa: B008 - a frozen value
) -> TrainResult:
    """Trains to the last step, or until patience ends, from the model folder's state (see `checkpoints.start_state`).

    A run that was killed and started again ends with the same parameters, bit for bit, as one that was not.

    Several processes may train together (see `processes`): each calls this with the same arguments. The losses are
    those of one process with the same devices, up to the order in which floating-point numbers are added.

    Args:
      run: where it writes, how long it takes and what it reports.
      data: what it trains on.
      model: what it trains, on which devices.
      optimizer: how parameters are updated.
      objectives: take the place of the registered ones, each for the tasks that it serves.
      checkpoints: what it starts from and what it saves.
      held_out: what is evaluated while it trains.
      calibration: what is computed instead of trained.

    Raises:
      InputError: for what does not fit; if the guards stop the run; and for checkpoints that cannot be written.
    """
    check_joined()
    checkpoints.check_evaluated(held_out)
    setup = prepare(run, data, model, objectives)
    calibrated = setup.calibration(calibration)
    batches, evaluation = setup.open_batches(), setup.evaluation(held_out)
    guarded = optimizer.guards.guarded(optimizer.optimizer)
    layout = plan_state(setup.objectives.model.module, guarded, setup.partitioner, setup.mesh)
    steps = setup.steps(guarded, layout)
    init_key, loop_key = jax.random.split(jax.random.key(run.seed))
    is_first_host, patience = jax.process_index() == 0, Patience(checkpoints)
    with _alone(run.model_dir), Checkpoints(run.model_dir, checkpoints) as saved:
        initial = checkpoints.initial_checkpoint_path
        start = start_state(saved, initial, layout, init_key, setup.config, setup.vocabulary)
        if start.iterators is not None:
            batches.set_state(patience.take_from(start.iterators))
        wait_for_all("started")  # the others have read the description that the first one replaces
        if is_first_host:
            setup.write_description(saved.folder.path)
        progress = Progress(run.train_steps, start.step, enabled=is_first_host)
        with MetricWriter(saved.folder.path, start.step, enabled=is_first_host) as writer:
            progress.say(f"{start.origin}; {setup.summary()}")
            means = Means(total_peak_flops(run.peak_flops_per_device))
            report = Report(writer, progress, means, optimizer.learning_rate_after, run.log_period)
            watch, period = Watch(optimizer.guards, saved.folder.path), checkpoints.period
            loop = Loop(batches, steps, setup.mesh, loop_key, saved, period, patience, evaluation, watch, report)
            step, interrupted = _run(loop, calibrated, start, run.train_steps)
            result = TrainResult(step, interrupted, run.model_dir, start.origin, saved.best_step())
            _say_how_it_ended(progress, result, checkpoints, patience, run.train_steps)
    wait_for_all("trained")
    return result


def _alone(model_dir: str) -> contextlib.AbstractContextManager[None]:
    """Keeps other runs out of a model folder."""
    check_place(model_dir, "MODEL_DIR")
    return locked(model_dir, "MODEL_DIR") if jax.process_index() == 0 else contextlib.nullcontext()


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a run consists of; all is checked before it allocates.

    Attributes:
      data: its options.
      vocabulary: of data and model.
      objectives: of all tasks in the mixture, with the model.
      weights: sampling probability of each set.
      batch_options: for whoever opens a set.
      text_length: see `ModelOptions.text_length_of`.
      partitioner: the axis rules.
      mesh: the devices.
      mixed_rows: of each task in a batch, where batches are mixed.
    """

    data: DataOptions
    vocabulary: VocabularyFile
    objectives: Objectives
    weights: Mapping[DataSet, float]
    batch_options: BatchOptions
    text_length: int | None
    partitioner: Partitioner
    mesh: Mesh
    mixed_rows: Mapping[str, int]

    @property
    def config(self) -> Architecture:
        """The configuration of the model."""
        return self.objectives.model.config

    def summary(self) -> str:
        """Returns the sets of the run and the shape of the model, for people to read."""
        return f"{', '.join(map(str, sorted(self.weights)))}; {self.config.summary()}"

    def write_description(self, model_dir: str) -> None:
        """Writes the files of the model folder that describe the model and its run."""
        write_model_files(model_dir, self.config, self.vocabulary, self.text_length)
        path = ModelFolder(model_dir).config_file
        write_whole(path, gin.operative_config_str().encode())
        allow(path)

    def open_batches(self) -> MixtureBatches:
        """Returns the batches of the run from the first one."""
        if rows := self.mixed_rows:
            return MixedBatches(self.weights, self.data.open_set, self.batch_options, rows)
        return MixtureBatches(self.weights, self.data.open_set, self.batch_options)

    def calibration(self, options: CalibrationOptions) -> Calibration:
        """Returns what computes parameters from the first rows of the run."""
        count, is_pretraining = math.ceil(options.whitening_rows / self.data.batch_size), self.objectives.pretrains
        check_calibration(self.config, options, is_pretraining=is_pretraining)

        def rows() -> Iterator[Batch]:
            return first_rows(MixtureBatches(self.weights, self.data.open_set, self.batch_options), count)

        pieces = self.vocabulary.pieces
        return Calibration(self.config, self.partitioner, self.mesh, rows, options, pieces, is_pretraining)

    def evaluation(self, held_out: HeldOut) -> Evaluation:
        """Returns the evaluations of the run."""
        options = self.batch_options
        if held_out.period and held_out.data_dir is not None:
            self.data.check_vocabulary(held_out.data_dir)
            options = dataclasses.replace(options, lengths=self.data.lengths_of(held_out.data_dir))
        sets = open_held_out(held_out, self.data.mixture, self.data.open_set, options)
        path, length = self.data.vocabulary_path, self.text_length or self.config.max_length
        return Evaluation(held_out, sets, self.objectives, self.partitioner, self.mesh, path, length)

    def steps(self, optimizer: optax.GradientTransformation, layout: StateLayout) -> dict[str, TaskStep]:
        """Returns the step of every task, with its model FLOPs."""
        compiled = make_train_steps(self.objectives, optimizer, layout)
        lengths, size, params = self.data.lengths, self.data.batch_size, layout.abstract.params
        rows = {**dict.fromkeys(self.objectives.of_task, size), **self.mixed_rows}
        flops = {task: step_flops(self.objectives, task, params, lengths, rows[task]) for task in rows}
        flops[MIXED] = sum(flops.values())
        return {task: TaskStep(step, flops[task]) for task, step in compiled.items()}


def prepare(run: RunOptions, data: DataOptions, model: ModelOptions, objectives: Sequence[Objective] = ()) -> Setup:
    """Builds a run; `objectives` take the place of the registered ones.

    Raises:
      InputError: for a vocabulary, data, an architecture, an objective or options that do not fit each other.
    """
    vocabulary = read_vocabulary(data.vocabulary_path)
    config = model.config(vocabulary)
    weights = data.weights()
    tasks = {data_set.task for data_set in weights}
    data.check_lengths(tasks, config)
    data.check_vocabulary(data.data_dir)
    mesh = model.partitioner.make_mesh()
    check_batch_size(data.batch_size, mesh)
    rows = mixed_rows(weights, data.batch_size, mesh.shape[DATA_AXIS]) if data.mixed_batches else {}
    shares = {task: number / data.batch_size for task, number in rows.items()}
    table = Objectives(Model(config, continuation_pieces(vocabulary)), objectives_of(tasks, objectives), shares)
    share = data_share(mesh)
    options = BatchOptions(
        directory=data.data_dir,
        lengths=data.lengths,
        batch_size=data.batch_size // share.count,
        bounds=table.bounds,
        seed=run.seed,
        process_index=share.index,
        process_count=share.count,
        batch_days=data.batch_days,
    )
    text_length = model.text_length_of(None if table.pretrains else data.feature_lengths, config)
    return Setup(data, vocabulary, table, weights, options, text_length, model.partitioner, mesh, rows)


def _run(loop: Loop, calibration: Calibration, start: Start, train_steps: int) -> tuple[int, str]:
    """Runs the loop; returns what `Loop.run` does.

    A second Ctrl-C ends it with a KeyboardInterrupt that says which step is saved.
    """
    rows, is_pretraining = calibration.options.whitening_rows, calibration.is_pretraining

    def finished(state: TrainState) -> TrainState:
        if rows and is_pretraining:
            loop.report.progress.say(f"computing the embedding head from {rows:,} rows")
        return state.replace(params=calibration.finished(state.params))

    try:
        if start.is_random:
            if rows and not is_pretraining:
                how = "latent semantics, " if calibration.options.latent_semantics else ""
                loop.report.progress.say(f"computing the start from {rows:,} rows: {how}weights of pieces, the head")
            state = start.state.replace(params=calibration.started(start.state.params))
            start = dataclasses.replace(start, state=state)
        return loop.run(start, train_steps, finished)
    except KeyboardInterrupt:
        latest = loop.checkpoints.latest_step()
        raise KeyboardInterrupt("no step is saved" if latest is None else f"step {latest} is saved") from None


def _say_how_it_ended(
    progress: Progress, result: TrainResult, options: CheckpointOptions, patience: Patience, train_steps: int
) -> None:
    is_early = patience.is_exhausted
    if result.interrupted:
        rest = "the last one" if is_early or result.step == train_steps else "the same command continues"
        progress.say(f"{result.interrupted}: saved step {result.step}; {rest}")
    if is_early:
        without = counted(options.patience, "evaluation")
        progress.say(f"PATIENCE: ended at step {result.step}, {without} brought no better figure")
    if result.best_step is not None:
        progress.say(f"KEEP_BEST: {options.keep_best} was best at the checkpoint of step {result.best_step}")
