"""Optimizers for T5X: any optimizer of optax, with the layout of its state over the devices; bounds of parameters."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import optax
from flax import core, serialization
from t5x import optimizers


class OptaxOptimizer(optimizers.OptaxWrapper):
    """An optimizer of optax, such as `newsembed.learning.optimizers.adam`, as T5X takes it.

    T5X's own wrapper knows the states of a list of transformations. This one lays out every state: an array that
    belongs to a parameter is sharded as that parameter, all others are whole on every device.

    Args:
      optimizer: of optax; its learning rate may be a schedule.
    """

    def __init__(self, optimizer: optax.GradientTransformation) -> None:
        super().__init__(optimizer)

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


class Constrained(optimizers.OptimizerDef):
    """Another optimizer, after which the parameters of objectives are brought back into their bounds.

    Args:
      optimizer: of T5X.
      constrain: parameters to parameters within their bounds.
    """

    def __init__(self, optimizer: Any, constrain: Callable[[Any], Any]) -> None:
        super().__init__(optimizer.hyper_params)
        self._optimizer, self._constrain = optimizer, constrain

    def __getattr__(self, name: str) -> Any:
        # T5X asks whether an optimizer has a method before it calls it.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def init_state(self, params: Any) -> Any:
        """Returns the state of the other optimizer."""
        return self._optimizer.init_state(params)

    def apply_gradient(self, hyper_params: Any, params: Any, state: Any, grads: Any) -> tuple[Any, Any]:
        """Returns parameters, within their bounds, and state after one step."""
        updated, new_state = self._optimizer.apply_gradient(hyper_params, params, state, grads)
        constrained = self._constrain(core.unfreeze(updated))
        return core.freeze(constrained) if isinstance(updated, core.FrozenDict) else constrained, new_state

    def state_dict(self, target: Any, state: Any) -> Any:
        """Returns what a checkpoint holds."""
        return self._optimizer.state_dict(target, state)

    def restore_state(self, opt_target: Any, opt_state: Any, state_dict: Any) -> Any:
        """Returns parameters and state from what a checkpoint holds."""
        return self._optimizer.restore_state(opt_target, opt_state, state_dict)
