"""The state that training changes, whose shapes are known before its memory is allocated, and the step that does so."""

import functools
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, Mesh

from ..errors import refusing
from ..learning.objectives import DeviceBatch, Metrics, Objectives
from ..learning.partitioning import Partitioner, place_all, replicated
from ..tasks.registry import MIXED

# int32 [devices, n] in a batch and [n] in the metrics: the messages between processes, see `processes`.
COUNTS: Final = "counts"


class TrainState(flax.struct.PyTreeNode):
    """A training state; a pytree.

    Attributes:
      step: int32 scalar, steps done.
      params: parameters of the model, float32.
      opt_state: optax's state.
    """

    step: jax.Array
    params: Any
    opt_state: Any


TrainStep = Callable[[TrainState, DeviceBatch, jax.Array], tuple[TrainState, Metrics]]


class StateLayout(NamedTuple):
    """A state before it exists.

    Attributes:
      abstract: a `TrainState` of `jax.ShapeDtypeStruct`, each with its sharding.
      create: makes it, initialised from a PRNG key, each device its own shard only.
      partitioner: the axis rules.
      mesh: the devices.
    """

    abstract: TrainState
    create: Callable[[jax.Array], TrainState]
    partitioner: Partitioner
    mesh: Mesh | AbstractMesh


def bytes_per_device(abstract: Any) -> int:
    """Memory that arrays take on each device, from their shapes, types and shardings alone."""
    arrays = jax.tree.leaves(abstract)
    return sum(math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize for array in arrays)


def plan_state(
    model: nn.Module, optimizer: optax.GradientTransformation, partitioner: Partitioner, mesh: Mesh | AbstractMesh
) -> StateLayout:
    """Shapes, types and shardings of a run's state, without allocating any of it.

    Args:
      model: the model.
      optimizer: of the run.
      partitioner: the axis rules.
      mesh: the devices.

    Raises:
      InputError: if the mesh's model axis does not divide the arrays that are sharded over it.
    """

    def boxed(key: jax.Array) -> TrainState:
        params = model.init(key, jnp.zeros((1, 1), jnp.int32))["params"]
        return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))

    with_axes = jax.eval_shape(boxed, jax.random.key(0))
    shardings = nn.logical_to_mesh_sharding(nn.get_partition_spec(with_axes), mesh, partitioner.rules)
    abstract = jax.tree_util.tree_map_with_path(_with_sharding, nn.unbox(with_axes), shardings)
    # Initialisation runs once: on a CPU, optimising its code takes longer than running it.
    options = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None
    create = jax.jit(lambda key: nn.unbox(boxed(key)), out_shardings=shardings, compiler_options=options)
    return StateLayout(abstract, partitioner.wrap(create, mesh), partitioner, mesh)


def _with_sharding(path: tuple[Any, ...], array: Any, sharding: Any) -> jax.ShapeDtypeStruct:
    shape, mesh = list(array.shape), dict(sharding.mesh.shape)
    problem = f"{jax.tree_util.keystr(path)} of shape {shape} cannot be laid out as {sharding.spec} over {mesh}"
    remedy = "Set a number that divides the attention heads, the width of the MLP and the vocabulary."
    with refusing(problem, ValueError, field="MODEL_PARALLEL", remedy=remedy):
        sharding.shard_shape(array.shape)
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)


def make_train_step(
    task: str, objectives: Objectives, optimizer: optax.GradientTransformation, layout: StateLayout
) -> TrainStep:
    """Returns the step of one task, which is compiled at its first call.

    Args:
      task: whose objective.
      objectives: those of the run, with their model.
      optimizer: optax's.
      layout: of the state.

    Returns:
      ``step(state, batch, key) -> (state, metrics)``. It consumes `state`. All randomness follows from `key` and the
      state's step number. Metrics are float32 scalars: loss, accuracy, gradient_norm and what the loss adds.
    """

    def step(state: TrainState, batch: DeviceBatch, key: jax.Array) -> tuple[TrainState, Metrics]:
        step_key = jax.random.fold_in(key, state.step)
        examples = {name: array for name, array in batch.items() if name != COUNTS}

        def loss_of(params: Any) -> tuple[jax.Array, Metrics]:
            return objectives.loss(task, params, examples, step_key)

        (loss, metrics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
        # optax renamed its function of the norm within the range of versions that we support.
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(array)) for array in jax.tree.leaves(gradients)))
        metrics |= {"loss": loss, "gradient_norm": norm}
        if COUNTS in batch:
            metrics[COUNTS] = jnp.sum(batch[COUNTS], axis=0)
        updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return TrainState(step=state.step + 1, params=params, opt_state=opt_state), metrics

    shardings = jax.tree.map(lambda array: array.sharding, layout.abstract)
    compiled = jax.jit(step, donate_argnums=0, out_shardings=(shardings, replicated(layout.mesh)))
    run = layout.partitioner.wrap(compiled, layout.mesh)
    tables = place_all(objectives.tables(task), layout.mesh)
    # `__wrapped__` is the compiled function, for benchmarks that compile it and never run it.
    return functools.wraps(compiled)(lambda state, batch, key: run(state, {**tables, **batch}, key))


def make_train_steps(
    objectives: Objectives, optimizer: optax.GradientTransformation, layout: StateLayout
) -> dict[str, TrainStep]:
    """Returns the step of every task; tasks of one objective share one, so that it is compiled once."""
    made: dict[int, TrainStep] = {}
    for task, objective in objectives.of_task.items():
        if id(objective) not in made:
            made[id(objective)] = make_train_step(task, objectives, optimizer, layout)
    mixed = {MIXED: make_train_step(MIXED, objectives, optimizer, layout)} if objectives.mixed else {}
    return {task: made[id(objective)] for task, objective in objectives.of_task.items()} | mixed
