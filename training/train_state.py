"""The state that training changes from step to step; its shapes are known before its memory is allocated."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from ..errors import InputError
from ..learning.partitioning import Partitioner


class TrainState(flax.struct.PyTreeNode):
    """A training state; a pytree.

    Attributes:
      step: int32 scalar, steps done.
      params: parameters of the model, float32, and of the objectives.
      opt_state: optax's state.
    """

    step: jax.Array
    params: Any
    opt_state: Any

    def apply_gradients(self, gradients: Any, optimizer: optax.GradientTransformation) -> Self:
        """The state after one more step."""
        updates, opt_state = optimizer.update(gradients, self.opt_state, self.params)
        return self.replace(step=self.step + 1, params=optax.apply_updates(self.params, updates), opt_state=opt_state)


class StateLayout(NamedTuple):
    """A state before it exists.

    Attributes:
      abstract: a `TrainState` of `jax.ShapeDtypeStruct`, each with its sharding.
      create: makes it, initialised from a PRNG key, each device its own shard only.
    """

    abstract: TrainState
    create: Callable[[jax.Array], TrainState]


def bytes_per_device(abstract: Any) -> int:
    """Memory that arrays take on each device, from their shapes, types and shardings alone."""
    arrays = jax.tree.leaves(abstract)
    return sum(math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize for array in arrays)


def _check_divisible(arrays: Any, shardings: Any) -> None:
    """Refuses arrays that their mesh axes do not divide.

    Raises:
      InputError: naming the first one.
    """
    for (path, array), sharding in zip(
        jax.tree_util.tree_leaves_with_path(arrays), jax.tree.leaves(shardings), strict=True
    ):
        try:
            sharding.shard_shape(array.shape)
        except ValueError as error:
            raise InputError(
                f"{jax.tree_util.keystr(path)} of shape {list(array.shape)} cannot be laid out as {sharding.spec} over "
                f"{dict(sharding.mesh.shape)}",
                field="MODEL_PARALLEL",
                remedy="Set a number that divides the attention heads, the width of the MLP and the vocabulary.",
            ) from error


def plan_state(
    model: nn.Module,
    optimizer: optax.GradientTransformation,
    partitioner: Partitioner,
    mesh: Mesh,
    loss_parameters: Mapping[str, jax.Array] | None = None,
) -> StateLayout:
    """Shapes, types and shardings of a run's state, without allocating any of it.

    Args:
      model: the model.
      optimizer: of the run.
      partitioner: the axis rules.
      mesh: the devices.
      loss_parameters: parameters of the objectives, which join the model's.

    Raises:
      InputError: if the mesh's model axis does not divide the arrays that are sharded over it.
    """

    def boxed(key: jax.Array) -> TrainState:
        params = {**model.init(key, jnp.zeros((1, 1), jnp.int32))["params"], **(loss_parameters or {})}
        return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))

    def create(key: jax.Array) -> TrainState:
        return nn.unbox(boxed(key))

    with_axes = jax.eval_shape(boxed, jax.random.key(0))
    shardings = partitioner.state_shardings(with_axes, mesh)
    _check_divisible(nn.unbox(with_axes), shardings)
    abstract = jax.tree.map(
        lambda array, sharding: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding),
        nn.unbox(with_axes),
        shardings,
    )
    # Initialisation runs once: on a CPU, optimising its code takes longer than running it.
    options = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None
    return StateLayout(
        abstract, partitioner.wrap(jax.jit(create, out_shardings=shardings, compiler_options=options), mesh)
    )
