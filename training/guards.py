"""Stops a run before it wastes days: at a NaN loss, a loss far above the last ones, numbers that are not finite."""

import collections
import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any, Final

import gin
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..errors import InputError
from ..formats.command_line import GinOptions, option
from ..formats.files import write_json
from ..formats.records import words_to_doc_id
from ..learning.mixture import Draw

_NORMAL_SCALE: Final = 1.4826  # times the median absolute deviation, the standard deviation of a normal distribution
_LEAST_SPREAD: Final = 0.01  # of the median: where losses hardly vary, a ripple is not a spike
_WINDOW: Final = 64  # last losses of a set that are compared with
_LEAST_LOSSES: Final = 16  # of a set in this run before one can be a spike
_MOST_SKIPPED: Final = 10  # steps left out in a row; one more stops the run
_SHOWN: Final = 4  # records in a message; the report has all
_LOWER: Final = (
    "Lower LEARNING_RATE, lengthen the warm-up or set adam.clip_norm, and run again; it continues from the last "
    "checkpoint."
)


@gin.register
@dataclasses.dataclass(frozen=True)
class Guards(GinOptions):
    """When a run stops itself.

    A loss or gradient that is not finite always stops it, unless `skip_nonfinite` is set.

    Attributes:
      spike_factor: a loss above median + `spike_factor` x deviation of the same set's last losses stops the run. The
        deviation is 1.4826 x the median absolute deviation, at least 1 % of the median. None switches the guard off. 20
        separates a broken batch from a hard one.
      skip_nonfinite: leave out the update of a step whose gradient is not finite, and continue. The step is counted, in
        the metric `skipped_steps` too; parameters and optimizer keep their values.
    """

    spike_factor: float | None = option(None, gt=0)
    skip_nonfinite: bool = False

    def guarded(self, optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
        """Returns the optimizer; with `skip_nonfinite`, it leaves out updates that are not finite."""
        return skip_nonfinite(optimizer) if self.skip_nonfinite else optimizer


def skip_nonfinite(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """Returns an optimizer that changes nothing, not even its own state, if the gradient's global norm is not finite.

    Its state has the same shape as before, so checkpoints fit both. (`optax.apply_if_finite` adds counters to it.)
    """

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        finite = jnp.isfinite(sum(jnp.sum(jnp.square(array)) for array in jax.tree.leaves(gradients)))
        updates, new_state = optimizer.update(gradients, state, params)
        updates = jax.tree.map(lambda array: jnp.where(finite, array, jnp.zeros_like(array)), updates)
        return updates, jax.tree.map(lambda new, old: jnp.where(finite, new, old), new_state, state)

    return optax.GradientTransformation(optimizer.init, update)


class Watch:
    """Checks every step's metrics and stops the run by the rules of `Guards`.

    Args:
      guards: the rules.
      model_dir: where the report on a batch goes.
    """

    def __init__(self, guards: Guards, model_dir: str) -> None:
        self._guards = guards
        self._model_dir = model_dir
        self._losses: dict[str, collections.deque[float]] = collections.defaultdict(
            lambda: collections.deque(maxlen=_WINDOW)
        )
        self._skipped = 0

    def check(self, step: int, draw: Draw, metrics: Mapping[str, float]) -> bool:
        """Returns whether the step counts: False if its update was skipped.

        Raises:
          InputError: for a loss or gradient that is not finite, too many skipped steps, or a spike. It names the step,
            the set, the records of the batch and a file that lists all of them.
        """
        problem, remedy = "", f"{_LOWER} Guards.skip_nonfinite=True leaves out such steps."
        if broken := [name for name in ("loss", "gradient_norm") if not math.isfinite(metrics[name])]:
            self._skipped += 1
            if self._guards.skip_nonfinite and self._skipped <= _MOST_SKIPPED:
                return False
            times = f", the {self._skipped}th time in a row" if self._guards.skip_nonfinite else ""
            problem = f"the {broken[0]} is {metrics[broken[0]]}{times}"
        elif problem := self._spike(self._losses[str(draw.data_set)], metrics["loss"]):
            remedy = (
                "Look at the records; then lower LEARNING_RATE or remove them, and run again: it continues from the "
                "last checkpoint. Raise Guards.spike_factor, or set it to None, if the batch is correct."
            )
        if not problem:
            self._skipped = 0
            return True
        path = write_batch_report(self._model_dir, step, draw, metrics)
        records = draw.places()
        some = f" ({', '.join(records[:_SHOWN])}{', …' if len(records) > _SHOWN else ''})" if records else ""
        raise InputError(
            f"{problem} at step {step}, on a batch of {draw.data_set}{some}; nothing after the last checkpoint is "
            f"kept; the batch is listed in {path}",
            field=f"step {step}, {draw.data_set}",
            remedy=remedy,
        )

    def check_parameters(self, step: int, params: Any) -> None:
        """Refuses to save parameters that are not finite: the last update may break them after loss and gradient.

        Raises:
          InputError: if one is not finite; nothing of this step is saved.
        """
        if not bool(np.asarray(_all_finite(params))):
            problem = f"parameters are not finite after step {step}, which is not saved"
            raise InputError(problem, field=f"step {step}", remedy=_LOWER)

    def _spike(self, before: collections.deque[float], loss: float) -> str:
        """Returns what is wrong with a loss after those `before`, which it joins if nothing is."""
        factor = self._guards.spike_factor
        if factor is None:
            return ""
        if len(before) >= _LEAST_LOSSES and loss > (limit := spike_limit(np.asarray(before), factor)):
            usual = f"the median of this set's last {len(before)} is {np.median(before):.4g}"
            return f"the loss is {loss:.4g}, above {limit:.4g}; {usual}"
        before.append(loss)
        return ""


@jax.jit
def _all_finite(params: Any) -> jax.Array:
    finite = [jnp.all(jnp.isfinite(array)) for array in jax.tree.leaves(params)]
    return jnp.all(jnp.stack(finite)) if finite else jnp.array(True)


def spike_limit(losses: np.ndarray, factor: float) -> float:
    """Returns the highest loss after `losses` [N] that is not a spike.

    It is median + factor x max(1.4826 x median absolute deviation, 1 % of the median).
    """
    median = float(np.median(losses))
    deviation = _NORMAL_SCALE * float(np.median(np.abs(losses - median)))
    return median + factor * max(deviation, _LEAST_SPREAD * abs(median))


def write_batch_report(model_dir: str, step: int, draw: Draw, metrics: Mapping[str, float]) -> str:
    """Writes the records of a batch to `suspect-batch-<step>-<process>.json` and returns its path.

    The file holds step, set, metrics, the records as "file:number" and, where the task has them, document ids by
    feature, row by row, of this process's share of the batch.
    """
    path = os.path.join(model_dir, f"suspect-batch-{step}-{jax.process_index()}.json")
    doc_ids = {name: _doc_ids(values) for name, values in draw.batch.items() if name.endswith("doc_id")}
    report = {
        "step": step,
        "set": str(draw.data_set),
        "metrics": {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()},
        "records": draw.places(),
        "doc_ids": doc_ids,
    }
    write_json(path, report)
    return path


def _doc_ids(values: np.ndarray) -> list[str | list[str]]:
    """Returns the document id of each row of int32 [B, 2], or the ids of each row of [B, 2 N]."""
    rows = values.reshape(len(values), -1, 2).tolist()
    ids = [[words_to_doc_id((high, low)) for high, low in row] for row in rows]
    return [of_row[0] if len(of_row) == 1 else of_row for of_row in ids]
