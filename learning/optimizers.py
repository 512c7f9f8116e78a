"""The optimizer and its learning rate schedule, by gin."""

import dataclasses
import operator
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

import gin
import jax
import jax.numpy as jnp
import optax

from ..errors import InputError, refusing
from ..formats.command_line import GinOptions, check_value

_SMALLEST_SCALE: Final = 1e-3  # or arrays that start at 0 would never change


@gin.configurable
def learning_rate_schedule(
    peak: float = gin.REQUIRED,
    warmup_steps: int = 0,
    decay: Literal["constant", "linear", "cosine", "inverse_root"] = "constant",
    decay_steps: int | None = None,
) -> optax.Schedule:
    """Returns a linear warm-up from 0 to `peak`, then the decay.

    Args:
      peak: highest learning rate.
      warmup_steps: steps until it is reached.
      decay: "constant" stays there, "linear" and "cosine" fall to 0 at `decay_steps`, "inverse_root" falls with the
        root of the step, peak * sqrt(warmup_steps / step) (Vaswani et al. 2017).
      decay_steps: total steps, warm-up included; needed for "linear" and "cosine". A run no longer than its warm-up
        ends before the peak.

    Raises:
      InputError: for an unknown decay, "linear" or "cosine" without `decay_steps`, or "inverse_root" without a warm-up.
    """
    _check("learning_rate_schedule.decay", decay, choices=("constant", "linear", "cosine", "inverse_root"))
    if decay == "constant":
        after: optax.Schedule = optax.constant_schedule(peak)
    elif decay == "inverse_root":
        _check("WARMUP_STEPS", warmup_steps, ge=1)  # the decay starts from the last step of the warm-up
        # `join_schedules` counts from the end of the warm-up; its last step is step `warmup_steps`, counted from 1.
        after = lambda count: peak * jnp.sqrt(warmup_steps / (count + warmup_steps + 1.0))  # noqa: E731
    elif decay_steps is None:
        problem = f"got None, expected the number of steps of the {decay} decay"
        raise InputError(problem, field="learning_rate_schedule.decay_steps", remedy="Set TRAIN_STEPS.")
    elif decay == "linear":
        after = optax.linear_schedule(peak, 0.0, max(1, decay_steps - warmup_steps))
    else:
        after = optax.cosine_decay_schedule(peak, max(1, decay_steps - warmup_steps))
    if not warmup_steps:
        return after
    # The first step trains too: the ramp starts one step above 0.
    ramp = optax.linear_schedule(peak / warmup_steps, peak, max(1, warmup_steps - 1))
    return optax.join_schedules([ramp, after], [warmup_steps])


@gin.register
@dataclasses.dataclass(frozen=True)
class Moments:
    """The running means of Adam.

    Attributes:
      b1: decay of the gradient's mean.
      b2: decay of the squared gradient's mean.
      epsilon: added to the root of the latter.
    """

    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8


@gin.configurable
def adam(
    learning_rate: optax.Schedule | float = gin.REQUIRED,
    moments: Moments = Moments(),
    weight_decay: float = 0.0,
    clip_norm: float | None = None,
    *,
    multiply_by_parameter_scale: bool | float = False,
    trainable: str | Mapping[str, float] | None = None,
) -> optax.GradientTransformation:
    """Returns Adam, or AdamW if `weight_decay` is positive.

    Args:
      learning_rate: a number or a function of the step.
      moments: of the gradient.
      weight_decay: per step, times the learning rate; on matrices only, not on biases and norms.
      clip_norm: gradients of a larger global norm are scaled down to it; None leaves them.
      multiply_by_parameter_scale: the learning rate is relative: each array's update is multiplied by the root mean
        square of the array (Shazeer and Stern 2018, section 8; the default of T5X). One learning rate then suits arrays
        of different scales, as with ``embedding_init="t5"``. A number is the smallest scale: an array below it, such as
        one that starts at 0, is updated as if it had that root mean square. True is 1e-3.
      trainable: regular expression; parameters whose path ("layers_0/mlp_in/kernel") it does not match from the start
        keep their values. Or learning rates by group: expressions with a factor each, of which the first that matches
        counts; what none matches keeps its values. None trains all.

    Raises:
      InputError: for a smallest scale or factor out of range; when a state is initialised, if an expression of
        ``trainable`` matches no parameter.
    """
    is_scaled = multiply_by_parameter_scale is not False
    smallest = _SMALLEST_SCALE if isinstance(multiply_by_parameter_scale, bool) else float(multiply_by_parameter_scale)
    _check("adam.multiply_by_parameter_scale", smallest, gt=0)
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    parts.append(optax.scale_by_adam(b1=moments.b1, b2=moments.b2, eps=moments.epsilon))
    if is_scaled:
        parts.append(optax.scale_by_param_block_rms(smallest))
    if weight_decay:
        parts.append(optax.add_decayed_weights(weight_decay, mask=_matrices))
    parts.append(optax.scale_by_learning_rate(learning_rate))
    # Last, or weight decay would change frozen parameters.
    if isinstance(trainable, str):
        parts.append(optax.masked(optax.set_to_zero(), partial(_frozen, trainable=trainable)))
    elif trainable is not None:
        parts.append(scale_by_group(trainable))
    return optax.chain(*parts)


@gin.configurable
def sgd(
    learning_rate: optax.Schedule | float = gin.REQUIRED, momentum: float = 0.0, clip_norm: float | None = None
) -> optax.GradientTransformation:
    """Returns stochastic gradient descent; without momentum its state is a step number alone.

    Args:
      learning_rate: number or schedule.
      momentum: decay of the sum of past gradients (Sutskever et al. 2013); 0 has none.
      clip_norm: gradients whose global norm is larger are scaled down to it; None never scales.
    """
    _check("sgd.momentum", momentum, ge=0, lt=1)
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    if momentum:
        parts.append(optax.trace(decay=momentum))
    return optax.chain(*parts, optax.scale_by_learning_rate(learning_rate))


def scale_by_group(factors: Mapping[str, float]) -> optax.GradientTransformation:
    """Returns a transformation that multiplies each update by the factor of its parameter's group.

    Args:
      factors: by regular expression; the first that matches a path from its start counts, 0 where none does.

    Raises:
      InputError: for a negative factor; when a state is initialised, for an expression that matches no parameter.
    """
    for factor in factors.values():
        _check("adam.trainable", factor, ge=0)

    def init(params: Any) -> optax.EmptyState:
        for expression in factors:
            _frozen(params, expression)  # refuses one that matches nothing
        return optax.EmptyState()

    def update(updates: Any, state: optax.EmptyState, params: Any = None) -> tuple[Any, optax.EmptyState]:  # noqa: ARG001
        def scaled(keys: tuple[Any, ...], step: jax.Array) -> jax.Array:
            path = _path_of(keys)
            return step * next((factor for expression, factor in factors.items() if re.match(expression, path)), 0.0)

        return jax.tree_util.tree_map_with_path(scaled, updates), state

    return optax.GradientTransformation(init, update)


def matching_parameters(params: Any, pattern: str, field: str) -> Any:
    """Returns which parameters have a path ("layers_0/mlp_in/kernel") that a pattern matches from its start.

    Args:
      params: nested dicts.
      pattern: regular expression.
      field: the option that has it, for the message.

    Returns:
      bool for each parameter, in the shape of `params`.

    Raises:
      InputError: if it matches none, or is no regular expression.
    """
    with refusing(f"{pattern!r} is no regular expression:", re.error, field=field, remedy=GinOptions.remedy):
        re.compile(pattern)
    found = jax.tree_util.tree_map_with_path(lambda keys, _: bool(re.match(pattern, _path_of(keys))), params)
    if not any(jax.tree.leaves(found)):
        names = {_path_of(keys).partition("/")[0] for keys, _ in jax.tree_util.tree_leaves_with_path(params)}
        remedy = f"parameters start with {', '.join(sorted(names))}"
        raise InputError(f"{pattern!r} matches no parameter", field=field, remedy=remedy)
    return found


def _path_of(keys: tuple[Any, ...]) -> str:
    return "/".join(str(key.key) for key in keys if isinstance(key, jax.tree_util.DictKey))


def _check(name: str, value: Any, **bounds: Any) -> None:
    check_value(name, value, bounds, GinOptions.remedy)


def _frozen(params: Any, trainable: str) -> Any:
    return jax.tree.map(operator.not_, matching_parameters(params, trainable, "adam.trainable"))


def _matrices(params: Any) -> Any:
    def decays(path: tuple[Any, ...], _: Any) -> bool:
        name = str(path[-1].key) if isinstance(path[-1], jax.tree_util.DictKey) else str(path[-2].key)
        return name.endswith(("kernel", "embedding"))

    return jax.tree_util.tree_map_with_path(decays, params)
