"""The reports of a run: `metrics.jsonl`, TensorBoard events and a progress bar.

One record per `period` steps, with means over the steps since the last record::

    {"step": 100, "loss/triplets/en": 1.93, "accuracy/triplets/en": 0.61, "gradient_norm": 0.8, "learning_rate": 5e-5,
     "padding": 0.12, "tokens_per_second": 21000.0, "seconds_per_step": 0.4, "input_wait": 0.001,
     "model_flops_per_step": 2.1e12, "mfu": 0.41, "peak_device_bytes": 8.1e9}

`loss`, `accuracy` and what an objective adds are by (task, language) set; a set that was not drawn since the last
record is absent. `padding` is the share of input positions that hold no token; it and `tokens_per_second` count the
whole batch, over all processes. Times include the input pipeline and exclude compilation, checkpoints and evaluations.
`input_wait` is the share of the time that the loop of this process waited for the next batch: near 0, the devices never
starve. `peak_device_bytes`, the most memory that one device of this process ever held, is absent if the platform does
not report it. `skipped_steps` counts steps without update, see `guards.Guards`. Names that begin with `eval/` come from
`held_out`.

`mfu`, model FLOPs utilisation (Chowdhery et al. 2022, "PaLM", appendix B), is the share of the devices' peak that the
arithmetic of the model took; it is absent if the peak is not known. The matrix products of the loss count
(:func:`count_flops`), and the backward pass as twice the forward pass. All positions count, padding too, because
the devices compute it.
"""

import collections
import dataclasses
import datetime
import json
import math
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any, Final, Self

import jax
import jax.numpy as jnp

from ..formats.files import packaged
from ..formats.manifest import DataSet
from ..formats.model_folder import ModelFolder
from ..formats.vocabulary import PAD_ID
from ..learning.mixture import Draw
from ..learning.objectives import Model, Objectives
from ..tasks import registry

_WHOLE_RUN: Final = ("gradient_norm",)  # not split by set
_STEP_OVER_FORWARD: Final = 3
# Of one JAX device, by the first name that the device's kind begins with.
PEAK_TERAFLOPS: Final[Mapping[str, float]] = tomllib.loads(packaged(__package__, "peak_teraflops.toml"))


def peak_flops(device_kind: str) -> float | None:
    """Returns the peak FLOP/s of one device of this kind (`jax.Device.device_kind`), None if unknown, as for CPUs.

    >>> peak_flops("TPU v5 lite"), peak_flops("NVIDIA H100 80GB HBM3"), peak_flops("cpu")
    (197000000000000.0, 989000000000000.0, None)
    """
    return next((1e12 * peak for name, peak in PEAK_TERAFLOPS.items() if device_kind.startswith(name)), None)


def count_flops(function: Callable[..., Any], *arguments: Any) -> float:
    """FLOPs of the matrix products and convolutions of a call, which is traced and never run.

    A loop counts as often as it runs, and of several branches the most expensive one. What is computed again in a
    backward pass, and the kernels of one platform (Pallas, cuDNN), are not in it.

    >>> float(count_flops(lambda a, b: a @ b, jax.ShapeDtypeStruct((2, 3), "float32"), jax.numpy.ones((3, 5))))
    60.0

    Args:
      function: of arrays.
      arguments: pytrees of arrays, or of their shapes (`jax.ShapeDtypeStruct`).
    """
    return _of_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr)


def _of_jaxpr(jaxpr: Any) -> float:
    return sum(map(_of_equation, jaxpr.eqns), 0.0)


def _of_equation(equation: Any) -> float:
    parameters, name = equation.params, equation.primitive.name
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        return 2.0 * math.prod(equation.outvars[0].aval.shape) * inner
    if name == "conv_general_dilated":
        kernel, output_axis = equation.invars[1].aval.shape, parameters["dimension_numbers"].rhs_spec[0]
        return 2.0 * math.prod(equation.outvars[0].aval.shape) * math.prod(kernel) / kernel[output_axis]
    parts = [_of_jaxpr(part) for part in _inside(parameters)]
    if name == "cond":
        return max(parts)
    return sum(parts) * parameters.get("length", 1) if name == "scan" else sum(parts)


def _inside(parameters: Any) -> Iterator[Any]:
    """The jaxprs in the parameters of an equation."""
    for value in parameters.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part := getattr(one, "jaxpr", one), "eqns"):
                yield part


def step_flops(objectives: Objectives, task: str, params: Any, lengths: Mapping[str, int], batch_size: int) -> float:
    """Returns the model FLOPs of one training step.

    Args:
      objectives: of the run, with their model.
      task: whose rows.
      params: arrays or their shapes.
      lengths: `TASK_FEATURE_LENGTHS`.
      batch_size: examples over all devices.
    """
    model = Model(objectives.model.config.portable(), objectives.model.continuations)
    plain = Objectives(model, {task: objectives.of_task[task]})

    def loss(params: Any, batch: Any) -> jax.Array:
        return plain.loss(task, params, batch, jax.random.key(0))[0]

    shapes = registry.get(task).shapes(lengths)
    batch = {name: jax.ShapeDtypeStruct((batch_size, *shape), jnp.int32) for name, shape in shapes.items()}
    whole = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), params)
    return _STEP_OVER_FORWARD * count_flops(loss, whole, batch)


def total_peak_flops(per_device: float | None) -> float | None:
    """Returns the peak FLOP/s of all devices together, None if it is not known.

    Args:
      per_device: of one device; None takes that of its kind.
    """
    per_device = per_device or peak_flops(jax.devices()[0].device_kind)
    return None if per_device is None else per_device * jax.device_count()


def count_tokens(draw: Draw) -> tuple[int, int]:
    """Returns how many input positions of this process's rows hold a token, and how many there are."""
    texts = registry.text_features()
    rows = [values for name, values in draw.batch.items() if name.rpartition("/")[2] in texts]
    return sum(int((values != PAD_ID).sum()) for values in rows), sum(values.size for values in rows)


@dataclasses.dataclass(frozen=True)
class StepCost:
    """The work and the time of one step, over all processes.

    Attributes:
      tokens: input positions that hold a token.
      positions: all input positions.
      flops: of the model, see `step_flops`.
      seconds: from the end of the step before to its own end; None for a step that was compiled.
      wait_seconds: of these, how long the loop of this process waited for the batch of the next step.
    """

    tokens: int
    positions: int
    flops: float = 0.0
    seconds: float | None = None
    wait_seconds: float = 0.0


class Means:
    """Sums of what was logged since the last record.

    Args:
      peak_flops: FLOP/s of all devices together, None if not known.
    """

    def __init__(self, peak_flops: float | None = None) -> None:
        self._peak_flops = peak_flops
        self._clear()

    def _clear(self) -> None:
        self._values: dict[str, list[float]] = collections.defaultdict(list)
        self._costs: list[StepCost] = []
        self._skipped = 0

    def add(self, cost: StepCost, data_set: DataSet | None = None, metrics: Mapping[str, float] | None = None) -> None:
        """Adds one step. Without a set its update was left out; its loss is not finite and not averaged."""
        for name, value in (metrics or {}).items():
            self._values[name if name in _WHOLE_RUN else f"{name}/{data_set}"].append(value)
        self._skipped += data_set is None
        self._values["padding"].append(1 - cost.tokens / cost.positions)
        self._costs.append(cost)

    def take(self) -> dict[str, float]:
        """Returns the means, sorted by name, and resets them."""
        record = {name: fmean(values) for name, values in sorted(self._values.items())}
        if self._skipped:
            record["skipped_steps"] = float(self._skipped)
        if self._costs:
            record["model_flops_per_step"] = fmean(cost.flops for cost in self._costs)
        timed = [cost for cost in self._costs if cost.seconds is not None]
        seconds = math.fsum(cost.seconds or 0.0 for cost in timed)
        if seconds:
            record["tokens_per_second"] = sum(cost.tokens for cost in timed) / seconds
            record["seconds_per_step"] = seconds / len(timed)
            record["input_wait"] = math.fsum(cost.wait_seconds for cost in timed) / seconds
            if self._peak_flops:
                record["mfu"] = math.fsum(cost.flops for cost in timed) / seconds / self._peak_flops
        self._clear()
        return record


def peak_device_bytes() -> float | None:
    """Returns the most bytes that one device of this process has held; None if the platform does not report it."""
    peaks = [(device.memory_stats() or {}).get("peak_bytes_in_use") for device in jax.local_devices()]
    known = [float(peak) for peak in peaks if peak is not None]
    return max(known) if known else None


class MetricWriter:
    """Appends records to `metrics.jsonl` and TensorBoard; use as a context manager.

    Records of an interrupted run after the step that it resumes from are removed first, so that no step appears twice.

    Args:
      model_dir: where to write.
      start_step: the step that the run starts from.
      enabled: False on all hosts but the first.
    """

    def __init__(self, model_dir: str, start_step: int, *, enabled: bool = True) -> None:
        self._file: Any = None
        self._events: Any = None
        if not enabled:
            return
        from tensorboardX.event_file_writer import EventsWriter

        path = ModelFolder(model_dir).metrics_file
        kept = [line for line in _lines(path) if json.loads(line)["step"] <= start_step]
        # A kill at any moment leaves the old file or the new one, never an empty one.
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            file.writelines(kept)
        os.replace(f"{path}.tmp", path)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed by __exit__
        # Not SummaryWriter: its thread ends where a disk is full or a clock jumps back, and the training would wait.
        self._events = EventsWriter(os.path.join(model_dir, "events"))
        self._write_events(start_step + 1, {"session_log": {"status": "START"}})  # TensorBoard forgets what follows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._events.close()

    def write(self, step: int, record: dict[str, float]) -> None:
        """Writes one record of the means up to `step`."""
        if self._file is None:
            return
        self._file.write(json.dumps({"step": step, **record}) + "\n")
        self._file.flush()
        values = [{"tag": name, "simple_value": value} for name, value in record.items()]
        self._write_events(step, {"summary": {"value": values}})

    def _write_events(self, step: int, event: Mapping[str, Any]) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._events.write_event(Event(step=step, wall_time=time.time(), **event))
        self._events.flush()


def _lines(path: str) -> list[str]:
    """Returns the complete lines of a file; a line that a kill cut off is dropped."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line for line in file if line.endswith("\n")]


class Progress:
    """Lines for people; silent on all hosts but the first."""

    def __init__(self, total_steps: int, start_step: int, *, enabled: bool = True) -> None:
        self._total, self._enabled = total_steps, enabled
        self._counted_from = (start_step, time.monotonic())
        self._is_compiled = False

    def say(self, text: str) -> None:
        """Prints one line."""
        if self._enabled:
            print(text, file=sys.stderr)

    def record(self, step: int, record: dict[str, float]) -> None:
        """Shows the losses of a record, and the seconds that are left."""
        losses = "  ".join(f"{name} {value:.4f}" for name, value in record.items() if name.startswith("loss/"))
        left = self._seconds_per_step(step, record) * (self._total - step)
        self.say(f"step {step}/{self._total}  {losses}  {datetime.timedelta(seconds=round(left))} left")

    def _seconds_per_step(self, step: int, record: Mapping[str, float]) -> float:
        """The mean so far, with checkpoints and evaluations, but without the steps of the first record.

        These include compilation, which would count for every step that is left. The first record itself has only the
        mean of its steps that were not compiled, where there are such.
        """
        (first, started), now = self._counted_from, time.monotonic()
        mean = (now - started) / max(1, step - first)
        if self._is_compiled:
            return mean
        self._counted_from, self._is_compiled = (step, now), True
        return record.get("seconds_per_step", mean)

    def evaluated(self, step: int, results: Mapping[str, float]) -> None:
        """Shows the results of an evaluation."""
        self.say(f"step {step}  " + "  ".join(f"{name} {value:.4f}" for name, value in results.items()))


@dataclasses.dataclass(frozen=True)
class Report:
    """Where the metrics of the steps go.

    Attributes:
      writer: the files.
      progress: the terminal.
      means: of the steps since the last record.
      learning_rate_after: the learning rate of a step, None if it is not known.
      period: steps between records.
    """

    writer: MetricWriter
    progress: Progress
    means: Means
    learning_rate_after: Callable[[int], float | None]
    period: int

    def write(self, step: int) -> None:
        """Writes one record of the steps since the last one."""
        record = self.means.take()
        rate, peak = self.learning_rate_after(step), peak_device_bytes()
        record |= {} if rate is None else {"learning_rate": rate}
        record |= {} if peak is None else {"peak_device_bytes": peak}
        self.writer.write(step, record)
        self.progress.record(step, record)

    def evaluated(self, step: int, results: dict[str, float]) -> None:
        """Writes one record of an evaluation."""
        self.writer.write(step, results)
        self.progress.evaluated(step, results)
