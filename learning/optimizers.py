"""The optimizer and its learning rate schedule, by gin."""

import dataclasses
import operator
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import gin
import jax
import jax.numpy as jnp
import optax

from ..errors import InputError

_SMALLEST_SCALE: Final = 1e-3  # or arrays that start at 0 would never change
_LAYER: Final = re.compile(r"(?:^|/)layers_(\d+)(?:/|$)")
_EMBEDDINGS: Final = re.compile(r"(?:^|/)(?:\w+_embedding|input_norm)(?:/|$)")


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
    if decay == "constant":
        after: optax.Schedule = optax.constant_schedule(peak)
    elif decay == "inverse_root":
        after = _inverse_root(peak, warmup_steps)
    elif decay not in ("linear", "cosine"):
        raise InputError(
            f"got {decay!r}, expected constant, linear, cosine or inverse_root", field="learning_rate_schedule.decay"
        )
    elif decay_steps is None:
        raise InputError(
            f"got None, expected the number of steps of the {decay} decay", field="learning_rate_schedule.decay_steps"
        )
    else:
        steps = max(1, decay_steps - warmup_steps)
        after = (
            optax.linear_schedule(peak, 0.0, steps) if decay == "linear" else optax.cosine_decay_schedule(peak, steps)
        )
    if not warmup_steps:
        return after
    # The first step trains too: the ramp starts one step above 0.
    ramp = optax.linear_schedule(peak / warmup_steps, peak, max(1, warmup_steps - 1))
    return optax.join_schedules([ramp, after], [warmup_steps])


def _inverse_root(peak: float, warmup_steps: int) -> optax.Schedule:
    if warmup_steps < 1:
        raise InputError(
            f"got {warmup_steps}, expected 1 or more: the inverse_root decay starts from its last step",
            field="learning_rate_schedule.warmup_steps",
            remedy="Set WARMUP_STEPS.",
        )
    # `join_schedules` counts from the end of the warm-up; its last step is step `warmup_steps`, counted from 1.
    return lambda count: peak * jnp.sqrt(warmup_steps / (count + warmup_steps + 1.0))


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
    layer_decay: float = 1.0,
    pull_to_start: float = 0.0,
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
      layer_decay: factor on the learning rate for each layer further down (Clark et al. 2020): 1 for the heads, d for
        the top layer, d^2 for the one below, and d^(layers + 1) for the embeddings. 1 treats all alike.
      pull_to_start: per step, times the learning rate, each parameter moves this share of the way back to its value at
        the start of the run (L2-SP, Li et al. 2018; decoupled from Adam, as weight decay is). The optimizer's state
        keeps the start. 0 pulls nothing.

    Raises:
      InputError: for a ``layer_decay``, ``pull_to_start``, smallest scale or factor out of range; when a state is
        initialised, if ``trainable`` or one of its expressions matches no parameter, or a model without layers has a
        ``layer_decay``.
    """
    _check_range("layer_decay", layer_decay, 0 < layer_decay <= 1, "a number above 0, at most 1")
    _check_range("pull_to_start", pull_to_start, pull_to_start >= 0, "0 or more")
    is_scaled, smallest = multiply_by_parameter_scale is not False, _smallest_scale(multiply_by_parameter_scale)
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    parts.append(optax.scale_by_adam(b1=moments.b1, b2=moments.b2, eps=moments.epsilon))
    if is_scaled:
        parts.append(optax.scale_by_param_block_rms(smallest))
    if weight_decay:
        parts.append(optax.add_decayed_weights(weight_decay, mask=_matrices))
    if pull_to_start:
        parts.append(add_pull_to_start(pull_to_start))
    if layer_decay != 1.0:
        parts.append(scale_by_depth(layer_decay))
    parts.append(optax.scale_by_learning_rate(learning_rate))
    # Last, or weight decay would change frozen parameters.
    if isinstance(trainable, str):
        parts.append(optax.masked(optax.set_to_zero(), partial(_frozen, trainable=trainable)))
    elif trainable is not None:
        parts.append(scale_by_group(trainable))
    return optax.chain(*parts)


@gin.configurable
def sgd(
    learning_rate: optax.Schedule | float = gin.REQUIRED,
    momentum: float = 0.0,
    clip_norm: float | None = None,
    *,
    nesterov: bool = False,
) -> optax.GradientTransformation:
    """Returns stochastic gradient descent; without momentum its state is a step number alone.

    Args:
      learning_rate: number or schedule.
      momentum: decay of the sum of past gradients (Sutskever et al. 2013); 0 has none.
      clip_norm: gradients whose global norm is larger are scaled down to it; None never scales.
      nesterov: looks one step of the momentum ahead.

    Raises:
      InputError: for a momentum out of range, or ``nesterov`` without momentum.
    """
    _check_range("momentum", momentum, 0 <= momentum < 1, "a number from 0, below 1", "sgd")
    _check_range("nesterov", nesterov, bool(momentum) or not nesterov, "False without a momentum", "sgd")
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    if momentum:
        parts.append(optax.trace(decay=momentum, nesterov=nesterov))
    return optax.chain(*parts, optax.scale_by_learning_rate(learning_rate))


def scale_by_group(factors: Mapping[str, float]) -> optax.GradientTransformation:
    """Returns a transformation that multiplies each update by the factor of its parameter's group.

    Args:
      factors: by regular expression; the first that matches a path from its start counts, 0 where none does.

    Raises:
      InputError: for a negative factor; when a state is initialised, for an expression that matches no parameter.
    """
    for factor in factors.values():
        _check_range("trainable", factor, factor >= 0, "factors of at least 0")

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


class PullState(NamedTuple):
    """State of `add_pull_to_start`.

    Attributes:
      count: int32 scalar, updates so far.
      start: the parameters before the first update; zeros until then.
    """

    count: jax.Array
    start: Any


def add_pull_to_start(strength: float) -> optax.GradientTransformation:
    """Returns a transformation that adds strength * (parameter - its value before the first update).

    The first update takes the start from the parameters: they may have been restored from another run, or calibrated,
    after the state was made. A resumed run has it in its state.

    Args:
      strength: factor.
    """

    def init(params: Any) -> PullState:
        return PullState(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: PullState, params: Any = None) -> tuple[Any, PullState]:
        is_first = state.count == 0
        start = jax.tree.map(lambda kept, now: jnp.where(is_first, now, kept), state.start, params)
        pulled = jax.tree.map(lambda step, now, was: step + strength * (now - was), updates, params, start)
        return pulled, PullState(state.count + 1, start)

    return optax.GradientTransformation(init, update)


def scale_by_depth(decay: float) -> optax.GradientTransformation:
    """Returns a transformation that multiplies each update by decay^depth, see `depths`."""

    def init(params: Any) -> optax.EmptyState:
        depths(params)  # refuses a model without layers here
        return optax.EmptyState()

    def update(updates: Any, state: optax.EmptyState, params: Any = None) -> tuple[Any, optax.EmptyState]:  # noqa: ARG001
        return jax.tree.map(lambda step, depth: step * decay**depth, updates, depths(updates)), state

    return optax.GradientTransformation(init, update)


def depths(params: Any) -> Any:
    """Returns how far below the heads each parameter is, as a tree of integers.

    Of n layers ("layers_0" to "layers_<n - 1>"), the top one has depth 1 and the lowest n. Tables of embeddings and the
    norm after them ("token_embedding", "input_norm") have n + 1, everything else 0.

    Raises:
      InputError: if no parameter is of a layer.
    """
    numbers = [_layer(_path_of(keys)) for keys, _ in jax.tree_util.tree_leaves_with_path(params)]
    layers = 1 + max((number for number in numbers if number is not None), default=-1)
    if not layers:
        raise InputError("the model has no layers", field="adam.layer_decay", remedy="leave it at 1 for this model")

    def depth(keys: tuple[Any, ...], _: Any) -> int:
        """Returns the distance from the output: 0 after the last layer, 1 in it, most for the embeddings."""
        path = _path_of(keys)
        number = _layer(path)
        if number is not None:
            return layers - number
        return layers + 1 if _EMBEDDINGS.search(path) else 0

    return jax.tree_util.tree_map_with_path(depth, params)


def matching_parameters(params: Any, pattern: str, field: str) -> Any:
    """Returns which parameters have a path ("layers_0/mlp_in/kernel") that a pattern matches from its start.

    Args:
      params: nested dicts.
      pattern: regular expression.
      field: the option that has it, for the message.

    Returns:
      bool for each parameter, in the shape of `params`.

    Raises:
      InputError: if it matches none.
    """
    found = jax.tree_util.tree_map_with_path(lambda keys, _: bool(re.match(pattern, _path_of(keys))), params)
    if not any(jax.tree.leaves(found)):
        names = {_path_of(keys).partition("/")[0] for keys, _ in jax.tree_util.tree_leaves_with_path(params)}
        remedy = f"parameters start with {', '.join(sorted(names))}"
        raise InputError(f"{pattern!r} matches no parameter", field=field, remedy=remedy)
    return found


def _layer(path: str) -> int | None:
    found = _LAYER.search(path)
    return int(found[1]) if found else None


def _path_of(keys: tuple[Any, ...]) -> str:
    return "/".join(str(key.key) for key in keys if isinstance(key, jax.tree_util.DictKey))


def _smallest_scale(multiply_by_parameter_scale: bool | float) -> float:
    if isinstance(multiply_by_parameter_scale, bool):
        return _SMALLEST_SCALE
    scale = float(multiply_by_parameter_scale)
    _check_range("multiply_by_parameter_scale", scale, scale > 0, "True, False or a number above 0")
    return scale


def _check_range(name: str, value: float, holds: bool, expected: str, owner: str = "adam") -> None:
    if not holds:
        raise InputError(f"got {value}, expected {expected}", field=f"{owner}.{name}")


def _frozen(params: Any, trainable: str) -> Any:
    return jax.tree.map(operator.not_, matching_parameters(params, trainable, "adam.trainable"))


def _matrices(params: Any) -> Any:
    def decays(path: tuple[Any, ...], _: Any) -> bool:
        name = str(path[-1].key) if isinstance(path[-1], jax.tree_util.DictKey) else str(path[-2].key)
        return name.endswith(("kernel", "embedding"))

    return jax.tree_util.tree_map_with_path(decays, params)
