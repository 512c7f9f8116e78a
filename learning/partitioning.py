"""The (data, model) device mesh, and the mesh axis over which each logical axis of the model is sharded."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import flax.linen as nn
import gin
import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from ..errors import InputError

DATA_AXIS: Final = "data"
MODEL_AXIS: Final = "model"
# make_mesh gives Explicit axes by default since JAX 0.9; the compiler is to infer shardings here.
_AXIS_TYPES: Final = (AxisType.Auto,) * 2

# Every logical axis that models/ names. Axes that are not sharded are listed with None, so that none is forgotten.
LOGICAL_AXIS_RULES: Final = (
    ("batch", DATA_AXIS),
    *((axis, MODEL_AXIS) for axis in ("vocab", "mlp", "heads")),
    *((axis, None) for axis in ("length", "position", "buckets", "embed", "embed_out", "embedding")),
    *((axis, None) for axis in ("topics", "labels", "qkv", "kv")),
)


@gin.register
@dataclasses.dataclass(frozen=True)
class Partitioner:
    """The layout of a run over devices.

    Attributes:
      model_parallel: devices that share one copy of the model; the others share the batch.
      rules: (logical axis, mesh axis or None).
    """

    model_parallel: int = 1
    rules: Sequence[tuple[str, str | None]] = LOGICAL_AXIS_RULES

    def make_mesh(self, devices: Sequence[jax.Device] | None = None) -> Mesh:
        """Returns the mesh over `devices` (all of them by default).

        Raises:
          InputError: if `model_parallel` does not divide their number.
        """
        shape = self._shape(len(devices) if devices is not None else jax.device_count())
        return jax.make_mesh(shape, (DATA_AXIS, MODEL_AXIS), axis_types=_AXIS_TYPES, devices=devices)

    def abstract_mesh(self, count: int) -> AbstractMesh:
        """Returns the mesh over `count` devices that need not exist; see `make_mesh`."""
        return AbstractMesh(self._shape(count), (DATA_AXIS, MODEL_AXIS), axis_types=_AXIS_TYPES)

    def _shape(self, count: int) -> tuple[int, int]:
        if self.model_parallel < 1 or count % self.model_parallel:
            raise InputError(
                f"got {self.model_parallel}, expected a divisor of the {count} devices",
                field="Partitioner.model_parallel",
                remedy="Set a number of devices that divides all of them.",
            )
        return count // self.model_parallel, self.model_parallel

    def wrap(self, function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
        """Returns `function`, with the mesh and the axis rules in force while it is called (and traced)."""

        @functools.wraps(function)
        def wrapped(*arguments: Any) -> Any:
            with jax.set_mesh(mesh), nn.logical_axis_rules(self.rules):
                return function(*arguments)

        return wrapped

    def compiled(self, function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
        """Returns `function`, compiled, with its results whole on every device."""
        return self.wrap(jax.jit(function, out_shardings=replicated(mesh)), mesh)


def check_batch_size(batch_size: int, mesh: Mesh | AbstractMesh) -> None:
    """Refuses a global batch that the mesh cannot divide.

    Raises:
      InputError: if the data axis does not divide it.
    """
    parts = mesh.shape[DATA_AXIS]
    if batch_size < 1 or batch_size % parts:
        raise InputError(
            f"got {batch_size}, expected a multiple of {parts}, the size of the mesh's data axis over all processes",
            field="BATCH_SIZE",
            remedy=f"Set BATCH_SIZE = {max(1, round(batch_size / parts)) * parts}.",
        )


@dataclasses.dataclass(frozen=True)
class DataShare:
    """The part of every global batch that one process feeds.

    Attributes:
      index: which part, in the order of the rows.
      count: how many parts there are; fewer than processes where one copy of the model spans several of them.
      is_counted: True for the first of the processes that feed the same part.
    """

    index: int
    count: int
    is_counted: bool


@functools.lru_cache(maxsize=8)
def data_share(mesh: Mesh, process_index: int | None = None) -> DataShare:
    """Returns the share of a process (this one by default), which follows from its devices' places on the data axis.

    Processes that hold parts of one copy of the model must feed it the same rows; the others feed rows of their own.

    Args:
      mesh: the devices.
      process_index: the process; None is this one.

    Raises:
      InputError: if the devices of two processes share some rows and not others.
    """
    places: dict[int, set[int]] = {}
    for position, devices in enumerate(mesh.devices):
        for device in devices.reshape(-1):
            places.setdefault(device.process_index, set()).add(position)
    shares = sorted({tuple(sorted(rows)) for rows in places.values()})
    if sum(map(len, shares)) != len(mesh.devices) or len(set(map(len, shares))) > 1:
        raise InputError(
            f"the processes' devices overlap on the data axis as {shares}, expected equal parts that are "
            "identical or disjoint",
            field="Partitioner.model_parallel",
            remedy="Set a number that divides a process's devices, or a multiple of that number.",
        )
    process = jax.process_index() if process_index is None else process_index
    rows = tuple(sorted(places[process]))
    return DataShare(
        shares.index(rows), len(shares), min(p for p, held in places.items() if tuple(sorted(held)) == rows) == process
    )


def shard_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """Returns global arrays; this process puts its rows, its `data_share` of the global batch, on its devices.

    The copies run in the background: computations with the arrays wait for them, the caller does not.
    """
    sharding = NamedSharding(mesh, PartitionSpec(DATA_AXIS))
    shares = data_share(mesh).count
    return {
        name: jax.make_array_from_process_local_data(sharding, values, (values.shape[0] * shares, *values.shape[1:]))
        for name, values in batch.items()
    }


def place(values: np.ndarray, sharding: jax.sharding.Sharding) -> jax.Array:
    """Returns an array that all processes hold alike, on the devices of all of them."""
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def place_all(tables: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """Returns arrays that all processes hold alike, whole on every device of all of them."""
    return {name: place(values, replicated(mesh)) for name, values in tables.items()}


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of arrays that every device holds whole."""
    return NamedSharding(mesh, PartitionSpec())
