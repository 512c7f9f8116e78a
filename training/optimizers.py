"""The optimizer and its learning rate schedule, by gin."""

import re
from functools import partial
from typing import Any, Literal

import gin
import jax
import optax

from ..errors import InputError

_SMALLEST_SCALE = 1e-3  # or arrays that start at 0 would never change


@gin.configurable
def learning_rate_schedule(
    peak: float = gin.REQUIRED,
    warmup_steps: int = 0,
    decay: Literal["constant", "linear", "cosine"] = "constant",
    decay_steps: int | None = None,
) -> optax.Schedule:
    """Returns a linear warm-up from 0 to `peak`, then the decay.

    Args:
      peak: highest learning rate.
      warmup_steps: steps until it is reached.
      decay: "constant" stays there, "linear" and "cosine" fall to 0 at `decay_steps`.
      decay_steps: total steps, warm-up included; needed unless constant. A run no longer than its warm-up ends before
        the peak.

    Raises:
      InputError: for an unknown decay, or a decay without `decay_steps`.
    """
    if decay == "constant":
        after: optax.Schedule = optax.constant_schedule(peak)
    elif decay not in ("linear", "cosine"):
        raise InputError(f"got {decay!r}, expected constant, linear or cosine", field="learning_rate_schedule.decay")
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


@gin.configurable
def adam(
    learning_rate: optax.Schedule | float = gin.REQUIRED,
    b1: float = 0.9,
    b2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    clip_norm: float | None = None,
    *,
    multiply_by_parameter_scale: bool = False,
    trainable: str | None = None,
) -> optax.GradientTransformation:
    """Returns Adam, or AdamW if `weight_decay` is positive.

    Args:
      learning_rate: a number or a function of the step.
      b1: decay of the gradient's mean.
      b2: decay of the squared gradient's mean.
      epsilon: added to the root of the latter.
      weight_decay: per step, times the learning rate; on matrices only, not on biases and norms.
      clip_norm: gradients of a larger global norm are scaled down to it; None leaves them.
      multiply_by_parameter_scale: the learning rate is relative: each array's update is multiplied by the root mean
        square of the array (Shazeer and Stern 2018, section 8; the default of T5X). One learning rate then suits arrays
        of different scales, as with ``embedding_init="t5"``.
      trainable: regular expression; parameters whose path ("layers_0/mlp_in/kernel") it does not match from the start
        keep their values. None trains all.

    Raises:
      InputError: when a state is initialised, if ``trainable`` matches no parameter.
    """
    parts = [] if clip_norm is None else [optax.clip_by_global_norm(clip_norm)]
    parts.append(optax.scale_by_adam(b1=b1, b2=b2, eps=epsilon))
    if multiply_by_parameter_scale:
        parts.append(optax.scale_by_param_block_rms(_SMALLEST_SCALE))
    if weight_decay:
        parts.append(optax.add_decayed_weights(weight_decay, mask=_matrices))
    parts.append(optax.scale_by_learning_rate(learning_rate))
    if trainable is not None:
        # Last, or weight decay would change frozen parameters.
        parts.append(optax.masked(optax.set_to_zero(), partial(_frozen, trainable=trainable)))
    return optax.chain(*parts)


def _frozen(params: Any, trainable: str) -> Any:
    def path_of(keys: tuple[Any, ...]) -> str:
        return "/".join(str(key.key) for key in keys if isinstance(key, jax.tree_util.DictKey))

    paths = [path_of(keys) for keys, _ in jax.tree_util.tree_leaves_with_path(params)]
    if not any(re.match(trainable, path) for path in paths):
        known = ", ".join(sorted({path.partition("/")[0] for path in paths}))
        raise InputError(
            f"{trainable!r} matches no parameter", field="adam.trainable", remedy=f"parameters start with {known}"
        )
    return jax.tree_util.tree_map_with_path(lambda keys, _: not re.match(trainable, path_of(keys)), params)


def _matrices(params: Any) -> Any:
    def decays(path: tuple[Any, ...], _: Any) -> bool:
        name = str(path[-1].key) if isinstance(path[-1], jax.tree_util.DictKey) else str(path[-2].key)
        return name.endswith(("kernel", "embedding"))

    return jax.tree_util.tree_map_with_path(decays, params)
