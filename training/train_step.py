"""One training step of an objective: loss, gradient, update, compiled once with the state's buffers donated."""

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from ..learning.objectives import DeviceBatch, Metrics, Objectives
from ..learning.partitioning import Partitioner, place_all, replicated
from .train_state import TrainState

TrainStep = Callable[[TrainState, DeviceBatch, jax.Array], tuple[TrainState, Metrics]]

# int32 [devices, n] in a batch and [n] in the metrics: the messages between processes, see `processes`.
COUNTS: Final = "counts"
_DONATED_STATE: Final = 0


def make_train_step(
    task: str,
    objectives: Objectives,
    optimizer: optax.GradientTransformation,
    abstract: TrainState,
    partitioner: Partitioner,
    mesh: Mesh,
) -> TrainStep:
    """Returns the step of one task, which is compiled at its first call.

    Args:
      task: whose objective.
      objectives: those of the run, with their model.
      optimizer: optax's.
      abstract: the state's shapes with their shardings, see `train_state.plan_state`.
      partitioner: the axis rules.
      mesh: the devices.

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
        metrics |= {"loss": loss, "gradient_norm": _global_norm(gradients)}
        if COUNTS in batch:
            metrics[COUNTS] = jnp.sum(batch[COUNTS], axis=0)
        after = state.apply_gradients(gradients, optimizer)
        return after.replace(params=objectives.constrain(after.params)), metrics

    shardings = jax.tree.map(lambda array: array.sharding, abstract)
    compiled = jax.jit(step, donate_argnums=_DONATED_STATE, out_shardings=(shardings, replicated(mesh)))
    run = partitioner.wrap(compiled, mesh)
    tables = place_all(objectives.tables(task), mesh)
    return lambda state, batch, key: run(state, {**tables, **batch}, key)


def make_train_steps(
    objectives: Objectives,
    optimizer: optax.GradientTransformation,
    abstract: TrainState,
    partitioner: Partitioner,
    mesh: Mesh,
) -> dict[str, TrainStep]:
    """Returns the step of every task; tasks of one objective share one, so that it is compiled once."""
    made: dict[int, TrainStep] = {}
    for task, objective in objectives.of_task.items():
        if id(objective) not in made:
            made[id(objective)] = make_train_step(task, objectives, optimizer, abstract, partitioner, mesh)
    return {task: made[id(objective)] for task, objective in objectives.of_task.items()}


def _global_norm(tree: Any) -> jax.Array:
    # optax renamed its function within the range of versions that we support.
    return jnp.sqrt(sum(jnp.sum(jnp.square(array)) for array in jax.tree.leaves(tree)))
