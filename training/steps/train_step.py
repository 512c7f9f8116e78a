"""One training step per kind of task: loss, gradient, update, compiled once with the state's buffers donated."""

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from ..partitioning import Partitioner, replicated
from ..train_state import TrainState
from .task_losses import DeviceBatch, Metrics, TaskLosses

TrainStep = Callable[[TrainState, DeviceBatch, jax.Array], tuple[TrainState, Metrics]]

COUNTS: Final = (
    "counts"  # int32 [devices, …] in a batch, […] in the metrics: what the processes tell each other, see `processes`
)
_DONATED_STATE: Final = 0


def make_train_step(
    task: str,
    losses: TaskLosses,
    optimizer: optax.GradientTransformation,
    abstract: TrainState,
    partitioner: Partitioner,
    mesh: Mesh,
) -> TrainStep:
    """Compiles (at its first call) the step of one task.

    Args:
      task: which loss.
      losses: the losses with their model.
      optimizer: optax's.
      abstract: the state's shapes with their shardings, see `train_state.plan_state`.
      partitioner: the axis rules.
      mesh: the devices.

    Returns:
      ``step(state, batch, key) -> (state, metrics)``. It consumes `state`. All randomness follows from `key` and the state's step
      number. Metrics are float32 scalars: loss, accuracy, gradient_norm and what the loss adds.
    """

    def step(state: TrainState, batch: DeviceBatch, key: jax.Array) -> tuple[TrainState, Metrics]:
        step_key = jax.random.fold_in(key, state.step)

        examples = {name: array for name, array in batch.items() if name != COUNTS}

        def loss_of(params: Any) -> tuple[jax.Array, Metrics]:
            return losses.loss(task, params, examples, step_key)

        (loss, metrics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
        metrics |= {"loss": loss, "gradient_norm": _global_norm(gradients)}
        if COUNTS in batch:
            metrics[COUNTS] = jnp.sum(batch[COUNTS], axis=0)
        after = state.apply_gradients(gradients, optimizer)
        return after.replace(params=losses.constrain(after.params)), metrics

    shardings = jax.tree.map(lambda array: array.sharding, abstract)
    return partitioner.wrap(
        jax.jit(step, donate_argnums=_DONATED_STATE, out_shardings=(shardings, replicated(mesh))), mesh
    )


def _global_norm(tree: Any) -> jax.Array:
    # optax renamed its function within the range of versions that we support.
    return jnp.sqrt(sum(jnp.sum(jnp.square(array)) for array in jax.tree.leaves(tree)))
