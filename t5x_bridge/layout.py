"""The layout over devices for T5X: our mesh and axis rules, and optimizers of optax with the layout of their state."""

import functools
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
from flax import core, serialization
from t5x import optimizers, partitioning

from ..learning.partitioning import LOGICAL_AXIS_RULES
from ..learning.partitioning import Partitioner as Layout


class Partitioner(partitioning.PjitPartitioner):
    """T5X's partitioner with the mesh of our trainer, on TPUs, GPUs and CPUs alike.

    T5X's own `PjitPartitioner` works too, with `logical_axis_rules = @layout.logical_axis_rules()`. It gives all
    CPU devices to the model axis.

    Args:
      model_parallel: devices that share one copy of the model; the others share the batch.
      rules: (logical axis, mesh axis or None).
    """

    def __init__(self, model_parallel: int = 1, rules: Sequence[tuple[str, str | None]] = LOGICAL_AXIS_RULES) -> None:
        self._layout = Layout(model_parallel, rules)
        super().__init__(num_partitions=model_parallel, logical_axis_rules=rules)

    @functools.cached_property
    def mesh(self) -> Any:
        """The mesh over all devices.

        Raises:
          InputError: if `model_parallel` does not divide their number.
        """
        return self._layout.make_mesh()


def logical_axis_rules() -> tuple[tuple[str, str | None], ...]:
    """Returns the mesh axis of every logical axis of our models."""
    return LOGICAL_AXIS_RULES


class OptaxOptimizer(optimizers.OptaxWrapper):
    """An optimizer of optax, such as `newsembed.learning.optimizers.adam`, as T5X takes it.

    T5X's own wrapper knows the states of a list of transformations. This one lays out every state: an array that
    belongs to a parameter is sharded as that parameter, all others are whole on every device.

    Args:
      optax_optimizer: of optax; its learning rate may be a schedule.
    """

    def derive_logical_axes(self, optimizer: Any, param_logical_axes: Any) -> Any:
        """Returns the optimizer with the logical axes of each array in its place."""
        boxed = jax.tree.map(
            lambda array, axes: nn.LogicallyPartitioned(array, tuple(axes)), optimizer.target, param_logical_axes
        )
        specs = nn.get_partition_spec(jax.eval_shape(self.optax_optimizer.init, boxed))
        axes = jax.tree.map(lambda _: None, optimizer.state_dict())
        axes["target"] = param_logical_axes
        axes["state"]["param_states"] = serialization.to_state_dict(specs)
        return optimizer.restore_state(core.unfreeze(axes))
