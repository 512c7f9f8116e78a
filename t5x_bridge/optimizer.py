"""Optimizers for T5X: any optimizer of optax, with the layout of its state over the devices."""

from typing import Any

import flax.linen as nn
import jax
from flax import core, serialization
from t5x import optimizers


class OptaxOptimizer(optimizers.OptaxWrapper):
    """An optimizer of optax, such as `newsembed.learning.optimizers.adam`, as T5X takes it.

    T5X's own wrapper knows the states of a list of transformations. This one lays out every state: an array that
    belongs to a parameter is sharded as that parameter, all others are whole on every device.

    Args:
      optimizer: of optax; its learning rate may be a schedule.
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
