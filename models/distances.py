"""Distances between the vectors of texts and of their translations, for training encoders by translation.

Shapes: N pairs, P units, K negatives of each pair.
"""

from typing import Literal

import jax
import jax.numpy as jnp

Scale = Literal["batch_means", "pairs"]
_EPSILON = 1e-6  # added to v
_FLOOR = 1e-12  # below the root of a squared distance, where its gradient has no bound


def norms(vectors: jax.Array) -> jax.Array:
    """Euclidean norm of the last axis; its gradient at 0 is 0."""
    squares = jnp.sum(jnp.square(vectors), axis=-1)
    is_zero = squares < _FLOOR
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squares)))


def cross_distances(left: jax.Array, right: jax.Array) -> jax.Array:
    """Euclidean distance of every row of `left` [N, P] to every row of `right` [M, P]: float32 [N, M]."""
    products = jnp.einsum("np,mp->nm", left, right, precision=jax.lax.Precision.HIGHEST)
    squares = jnp.sum(left**2, axis=-1)[:, None] + jnp.sum(right**2, axis=-1)[None, :] - 2 * products
    is_zero = squares < _FLOOR
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squares)))


def draw_negatives(key: jax.Array, pairs: int, count: int) -> jax.Array:
    """For each pair of a batch the numbers of different other pairs: int32 [N, min(count, N - 1)].

    The others are those that follow the pair at distances drawn from `key`, from the first again after the last. So
    every pair is a negative as often as any other, and no pair is its own.
    """
    shifts = 1 + jax.random.permutation(key, pairs - 1)[: min(count, pairs - 1)]
    return (jnp.arange(pairs)[:, None] + shifts[None, :]) % pairs


def scale_of(left: jax.Array, right: jax.Array, scale: Scale) -> jax.Array:
    """v, by which distances are divided, a float32 scalar.

    Args:
      left: [N, P].
      right: [N, P].
      scale: "batch_means": the mean of the norms of the means of both sides over the batch; "pairs": the mean distance
        of the pairs.
    """
    if scale == "pairs":
        return jnp.mean(norms(left - right))
    return (norms(jnp.mean(left, axis=0)) + norms(jnp.mean(right, axis=0))) / 2


def contrastive_distance(
    left: jax.Array, right: jax.Array, negatives: jax.Array, *, scale: Scale, margin: float
) -> tuple[jax.Array, jax.Array]:
    """The distance of each pair, and how far its negatives are from being farther by a margin.

    With d(a, b) = |a - b| / (v + epsilon), v by `scale_of`::

        pair_n     = d(left_n, right_n)
        negative_n = mean_k max(0, margin - (d(left_n, right_nk) - pair_n))

    Both stay the same where all vectors are multiplied by a number.

    Args:
      left: float32 [N, P].
      right: float32 [N, P].
      negatives: int32 [N, K], rows of `right`.
      scale: see `scale_of`; its gradient counts.
      margin: alpha.

    Returns:
      float32 [N] both.
    """
    divisor = scale_of(left, right, scale) + _EPSILON
    own = norms(left - right) / divisor
    others = jnp.take_along_axis(cross_distances(left, right), negatives, axis=1) / divisor
    return own, jnp.mean(jnp.maximum(0.0, margin - (others - own[:, None])), axis=1)


def frobenius_gaps(left: jax.Array, right: jax.Array, negatives: jax.Array) -> jax.Array:
    """How much farther a pair is than its negatives, in squares, over a scale: float32 [N, K].

    (|left_n - right_n|^2 - |left_n - right_nk|^2) / (2 v + 1), where v is the mean norm of all rows of both sides. The
    norm of a row is the Frobenius norm of the matrix that it lists. The 1 keeps the term finite, so that it changes
    where all vectors are multiplied by a number.

    Args:
      left: float32 [N, P].
      right: float32 [N, P].
      negatives: int32 [N, K], rows of `right`.
    """
    scale = (jnp.mean(norms(left)) + jnp.mean(norms(right))) / 2
    own = jnp.sum(jnp.square(left - right), axis=-1)[:, None]
    others = jnp.sum(jnp.square(left[:, None] - right[negatives]), axis=-1)
    return (own - others) / (2 * scale + 1)
