"""The training loop."""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Final, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from ..learning.mixture import Draw, MixtureBatches
from ..learning.partitioning import data_share, shard_batch
from .checkpoints import Checkpoints, Start
from .guards import Watch
from .held_out import Evaluation
from .metrics import Report, StepCost, count_tokens
from .options import CheckpointOptions
from .processes import device_counts
from .train_state import COUNTS, TrainState, TrainStep

_CONTROL_C: Final = "Ctrl-C"
_PATIENCE: Final = "patience"  # no name of a set, so it tells the two forms of a saved state apart


class TaskStep(NamedTuple):
    """The step of a task.

    Attributes:
      run: the compiled step; tasks may share one.
      flops: model FLOPs of one step, see `metrics`.
    """

    run: TrainStep
    flops: float


class Patience:
    """Counts the evaluations in a row without a better figure: a run ends when they no longer improve.

    Its counts are saved with the iterators' state, so that a resumed run ends where an unbroken one does.

    Args:
      options: the figure, whether less or more of it is better, and how many evaluations end the run.
    """

    def __init__(self, options: CheckpointOptions) -> None:
        self._options, self._evaluations = options, options.patience
        self._best: float | None = None
        self._without_better = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the run ends now."""
        return 0 < self._evaluations <= self._without_better

    def note(self, results: Mapping[str, float]) -> None:
        """Takes in the results of one evaluation."""
        if not self._evaluations:
            return
        value = self._options.figure(results)
        sign = 1.0 if self._options.keep_best_mode == "max" else -1.0
        if self._best is None or sign * value > sign * self._best:
            self._best, self._without_better = value, 0
        else:
            self._without_better += 1

    def add_to(self, batches: bytes) -> bytes:
        """Returns the iterators' state together with the counts; the former alone for a run without patience."""
        if not self._evaluations:
            return batches
        counts = {"best": self._best, "without_better": self._without_better}
        return json.dumps({"batches": batches.decode(), _PATIENCE: counts}, sort_keys=True).encode()

    def take_from(self, state: bytes) -> bytes:
        """Continues at the counts in a saved state, if it has some, and returns the iterators' part."""
        values = json.loads(state)
        if _PATIENCE not in values:
            return state
        counts = values[_PATIENCE]
        self._best, self._without_better = counts["best"], counts["without_better"]
        return str(values["batches"]).encode()


@dataclasses.dataclass
class _Pending:
    """A step whose metrics are still being computed."""

    step: int
    draw: Draw
    metrics: dict[str, jax.Array]


class _Clock:
    """Measures the time from the end of one step to the end of the next, and the wait for batches in it."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forgets what was measured since the last lap."""
        self.start, self.waited, self.is_spoilt = time.monotonic(), 0.0, False

    def lap(self) -> tuple[float | None, float]:
        """Returns the seconds since the last lap, None if it was spoilt, and those of them spent waiting."""
        seconds = None if self.is_spoilt else time.monotonic() - self.start
        waited = self.waited
        self.restart()
        return seconds, waited


@dataclasses.dataclass
class Loop:
    """Runs the steps of one run.

    Attributes:
      batches: of the mixture.
      steps: of each task.
      mesh: the devices.
      key: PRNG key; each step derives its own from the step number.
      checkpoints: of its model folder.
      checkpoint_period: steps between checkpoints.
      patience: ends the run early.
      evaluation: what is evaluated on the way.
      watch: stops the run where its loss says so.
      report: where metrics go.
    """

    batches: MixtureBatches
    steps: Mapping[str, TaskStep]
    mesh: Mesh
    key: jax.Array
    checkpoints: Checkpoints
    checkpoint_period: int
    patience: Patience
    evaluation: Evaluation
    watch: Watch
    report: Report
    _seen: set[TrainStep] = dataclasses.field(default_factory=set, init=False)
    _clock: _Clock = dataclasses.field(default_factory=_Clock, init=False)
    _is_stopping: bool = dataclasses.field(default=False, init=False)

    def run(self, start: Start, train_steps: int, finish: Callable[[TrainState], TrainState]) -> tuple[int, str]:
        """Steps until `train_steps` or until patience ends, then calls `finish`, or until SIGTERM or Ctrl-C.

        Returns:
          The step reached, and what asked the run to end: "SIGTERM", "Ctrl-C" (also during its last step) or, where
          that ended another process early, "another process"; empty if nothing did.
        """
        state, step = start.state, start.step
        saved = None if start.iterators is None else step  # a new run of no step is evaluated and saved, too
        pending: _Pending | None = None
        results: dict[str, float] | None = None
        patience, held_out = self.patience, self.evaluation.held_out
        if saved is None and held_out.start and step < train_steps:
            self._save(step, state, self._evaluate(step, state))
        self._clock.restart()
        with _stop_noted() as asked_to_stop:
            while step < train_steps and not self._is_stopping and not patience.is_exhausted:
                started = time.monotonic()
                draw = self.batches.draw(step)
                self._clock.waited += time.monotonic() - started
                state, metrics = self._step(state, draw, bool(asked_to_stop))
                # Only now wait for the step before: while a step runs, the batch of the next one is read, copied and
                # queued behind it.
                self._finish(pending)
                step += 1
                pending = _Pending(step, draw, metrics)
                # One process knows at once. Several must leave the loop at the same step: when the sum of one arrives.
                self._is_stopping |= jax.process_count() == 1 and bool(asked_to_stop)
                if step < train_steps and (step % self.checkpoint_period == 0 or held_out.is_due(step)):
                    self._finish(pending)
                    pending = None
                    results = self._evaluate(step, state) if held_out.is_due(step) else None
                    if step % self.checkpoint_period == 0 and not patience.is_exhausted:
                        saved = self._save(step, state, results)
                    self._clock.restart()
            self._finish(pending, last=True)
            is_done = step == train_steps or patience.is_exhausted
            if saved != step:
                state = finish(state) if is_done else state
                if not patience.is_exhausted:  # else this step has been evaluated
                    results = self._evaluate(step, state) if is_done and held_out.period else None
                self._save(step, state, results)
            self.checkpoints.wait()
            return step, asked_to_stop[0] if asked_to_stop else "" if is_done else "another process"

    def _step(self, state: TrainState, draw: Draw, is_asked_to_stop: bool) -> tuple[TrainState, dict[str, jax.Array]]:
        """Queues one step."""
        tokens = count_tokens(draw) if data_share(self.mesh).is_counted else (0, 0)
        counts = device_counts((*tokens, is_asked_to_stop), self.mesh)
        run = self.steps[draw.data_set.task].run
        if run not in self._seen:
            self._seen.add(run)
            self._clock.is_spoilt = True  # the call compiles
            self.report.progress.say(f"compiling the step of {draw.data_set.task}")
        return run(state, shard_batch(draw.batch, self.mesh) | {COUNTS: counts}, self.key)

    def _finish(self, pending: _Pending | None, *, last: bool = False) -> None:
        """Waits for a step, checks its loss and logs it."""
        if pending is None:
            return
        tokens, positions, stop = map(int, np.asarray(pending.metrics[COUNTS]))
        metrics = {name: float(value) for name, value in pending.metrics.items() if name != COUNTS}
        seconds, wait_seconds = self._clock.lap()
        self._is_stopping |= stop > 0
        cost = StepCost(tokens, positions, self.steps[pending.draw.data_set.task].flops, seconds, wait_seconds)
        counts = self.watch.check(pending.step, pending.draw, metrics)
        self.report.means.add(cost, pending.draw.data_set if counts else None, metrics if counts else None)
        if last or pending.step % self.report.period == 0:
            self.checkpoints.check()
            self.report.write(pending.step)

    def _evaluate(self, step: int, state: TrainState) -> dict[str, float]:
        results = self.evaluation.run(step, state.params)
        self.patience.note(results)
        self.report.evaluated(step, results)
        return results

    def _save(self, step: int, state: TrainState, results: dict[str, float] | None) -> int:
        jax.block_until_ready(state)  # what follows talks to the other processes, too
        self.watch.check_parameters(step, state.params)
        iterators = self.patience.add_to(self.batches.get_state())
        self.checkpoints.save(step, state, iterators, results)
        return step


@contextlib.contextmanager
def _stop_noted() -> Iterator[list[str]]:
    """Makes SIGTERM and the first Ctrl-C add their names to the list instead of ending the process.

    A second Ctrl-C ends it. Only the main thread may handle signals; in others nothing is noted.
    """
    names: list[str] = []
    if threading.current_thread() is not threading.main_thread():
        yield names
        return

    def note(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if _CONTROL_C in names:
                raise KeyboardInterrupt
            text = "Ctrl-C: this step is finished and saved; press it again to stop without saving\n"
            os.write(sys.stderr.fileno(), text.encode())  # print may be interrupted by itself
        names.append(_CONTROL_C if number == signal.SIGINT else "SIGTERM")

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number, handler in before.items():
        if number == signal.SIGTERM or handler is not signal.SIG_IGN:  # nohup and `command &` ignore Ctrl-C
            signal.signal(number, note)
    try:
        yield names
    finally:
        for number, handler in before.items():
            # None: it was not set from Python and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
