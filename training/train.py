"""Trains a model: the function that gin files configure, in T5X's terms."""

import dataclasses
import os
from collections.abc import Callable, Sequence

import gin
import jax

from ..errors import counted
from ..formats.model_folder import ModelFolder
from ..learning.model_files import write_model_files
from ..learning.objectives import Objective
from ..learning.options import DataOptions, ModelOptions
from .checkpoints import Checkpoints, Start, start_state
from .guards import Watch
from .held_out import HeldOut
from .loop import Loop, Saving
from .metrics import Means, MetricWriter, Progress, Report
from .options import CalibrationOptions, CheckpointOptions, OptimizerOptions, RunOptions
from .preparation import Setup, prepare, total_peak_flops
from .processes import check_joined, wait_for_all
from .stopping import Patience
from .train_state import TrainState


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

    Several processes may train together (see `processes`): each calls this with the same arguments. The batches, their
    order and so the losses are those of one process with the same devices in one mesh, up to the order in which
    floating-point numbers are added.

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
      InputError: for data, a vocabulary, a checkpoint or an option that do not fit; if the guards stop the run; and for
        checkpoints that cannot be written.
    """
    check_joined()
    checkpoints.check_evaluated(held_out)
    setup = prepare(run, data, model, objectives)
    calibrate, batches, evaluation = _calibration(setup, calibration), setup.open_batches(), setup.evaluation(held_out)
    layout = setup.layout(optimizer.guarded())
    steps = setup.steps(optimizer.guarded(), layout)
    os.makedirs(run.model_dir, exist_ok=True)
    init_key, loop_key = jax.random.split(jax.random.key(run.seed))
    is_first_host, patience = jax.process_index() == 0, Patience(checkpoints.keeping, checkpoints.patience)
    with Checkpoints(run.model_dir, checkpoints.keeping) as saved:
        initial = checkpoints.initial_checkpoint_path
        start = start_state(saved, initial, layout, init_key, setup.config, setup.vocabulary)
        if start.iterators is not None:
            batches.set_state(patience.take_from(start.iterators))
        if is_first_host:
            _write_description(run.model_dir, setup)
        progress = Progress(run.train_steps, start.step, enabled=is_first_host)
        with MetricWriter(run.model_dir, start.step, enabled=is_first_host) as writer, progress.shown():
            progress.say("\n".join([f"{start.origin}; {setup.summary()}", *data.left_out()]))
            means = Means(total_peak_flops(run.peak_flops_per_device))
            report = Report(writer, progress, means, optimizer.learning_rate_after, run.log_period)
            saving, watch = Saving(saved, checkpoints.period, patience), Watch(optimizer.guards, run.model_dir)
            loop = Loop(batches, steps, setup.mesh, loop_key, saving, evaluation, watch, report)
            step, interrupted = _run(loop, calibrate, start, run.train_steps, optimizer)
            result = TrainResult(step, interrupted, run.model_dir, start.origin, saved.best_step())
            _say_how_it_ended(progress, result, checkpoints, patience, run.train_steps)
    wait_for_all("trained")
    return result


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
        progress.say(f"KEEP_BEST: {options.keeping.best} was best at the checkpoint of step {result.best_step}")


def _run(
    loop: Loop, calibrate: "_Calibrate", start: Start, train_steps: int, optimizer: OptimizerOptions
) -> tuple[int, str]:
    """Says what is odd about the optimizer, if anything is, and runs the loop; returns what `Loop.run` does.

    Raises:
      KeyboardInterrupt: at a second Ctrl-C; says which step is saved.
    """
    if warning := optimizer.warning(start.step, train_steps):
        loop.report.progress.say(warning)
    try:
        return loop.run(calibrate.before(start), train_steps, calibrate.after)
    except KeyboardInterrupt:
        latest = loop.saving.checkpoints.latest_step()
        raise KeyboardInterrupt("no step is saved" if latest is None else f"step {latest} is saved") from None


@dataclasses.dataclass(frozen=True)
class _Calibrate:
    """When a run is calibrated: before its first step from random parameters, or after its last step."""

    before: Callable[[Start], Start]
    after: Callable[[TrainState], TrainState]


def _calibration(setup: Setup, options: CalibrationOptions) -> _Calibrate:
    calibration = setup.calibration(options)
    is_pretraining = setup.objectives.pretrains

    def before(start: Start) -> Start:
        if options.word_vectors and start.is_random:
            pieces = setup.vocabulary.pieces
            state, count = calibration.with_word_vectors(start.state, options.word_vectors, pieces)
            print(f"WORD_VECTORS: {count:,} of {len(pieces):,} word pieces start from {options.word_vectors}")
            start = dataclasses.replace(start, state=state)
        if not options.whitening_rows or not start.is_random or is_pretraining:
            return start
        state = calibration.calibrated(start.state, latent_semantics=options.latent_semantics)
        return dataclasses.replace(start, state=state)

    def after(state: TrainState) -> TrainState:
        return calibration.calibrated(state) if options.whitening_rows and is_pretraining else state

    return _Calibrate(before, after)


def _write_description(model_dir: str, setup: Setup) -> None:
    write_model_files(model_dir, setup.config, setup.vocabulary, setup.text_length)
    with open(ModelFolder(model_dir).config_file, "w", encoding="utf-8") as file:
        file.write(gin.operative_config_str())
