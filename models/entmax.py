"""Alpha-entmax: a softmax with exact zeros, whose sparsity is a number that can be learned.

For scores z and alpha > 1, p = entmax(z, alpha) are the shares that maximise p . z + H_alpha(p) for Tsallis' entropy::

    p_i = [(alpha - 1) z_i - tau]_+ ^ (1 / (alpha - 1)),  with tau such that the shares add up to 1

alpha = 2 is sparsemax, and the limit at 1 is softmax.

Sources: Peters, Niculae and Martins 2019, "Sparse Sequence-to-Sequence Models" (the map; they bisect); Correia,
Niculae and Martins 2019, "Adaptively Sparse Transformers" (the derivative by alpha, proposition 1).
"""

import functools
from typing import Final

import jax
import jax.numpy as jnp

# Newton's method starts at the greatest score less 1, and needs the more steps the farther away tau is: most for many
# scores that are alike. For up to 32, 5 steps reach the last digits of float64; a thousand equal ones need 8.
FEW_SCORES: Final = 32
_STEPS: Final = 10
_STEPS_OF_FEW: Final = 5
LEAST_ALPHA: Final = 1.01  # below it, 1 / (alpha - 1) is too large a power for float32


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def entmax(scores: jax.Array, alpha: jax.Array | float, steps: int | None = None) -> jax.Array:
    """Shares of each score, [..., N]; they add up to 1, and low scores have exactly 0.

    The derivatives by scores and alpha are exact, by implicit differentiation instead of through the search. With
    p~ = s / sum s and s_i = p_i^(2 - alpha) on the support::

        dp = s * (dz - p~ . dz) + ((p - p~) / (alpha - 1)^2 - (p log p - p~ sum p log p) / (alpha - 1)) dalpha

    >>> [round(float(share), 3) for share in entmax(jnp.array([1.0, 0.5, -1.0]), 2.0)]
    [0.75, 0.25, 0.0]

    Args:
      scores: [..., N], float32 or float64; -inf gets no share. At least one of N is finite.
      alpha: broadcast against [...]: above 1, see `LEAST_ALPHA`; it has no axis for N.
      steps: of Newton's method for tau; None takes 5 for up to 32 scores and 10 for more.
    """
    if steps is None:
        steps = _STEPS_OF_FEW if _are_few(scores) else _STEPS
    return _solve(scores, _like(alpha, scores), steps)


@entmax.defjvp
def _entmax_jvp(
    steps: int | None, primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    scores, alpha = primals
    d_scores, d_alpha = tangents
    shares = entmax(scores, alpha, steps)
    power = _like(alpha, scores)
    inside = shares > 0
    safe = jnp.where(inside, shares, 1.0)  # 0 to a power, or its logarithm, would have no finite derivative
    slopes = jnp.where(inside, safe ** (2.0 - power), 0.0)
    tilted = slopes / jnp.sum(slopes, axis=-1, keepdims=True)
    # Scores outside the support may be -inf with a tangent that is not a number.
    d_inside = jnp.where(inside, d_scores, 0.0)
    by_scores = slopes * (d_inside - jnp.sum(tilted * d_inside, axis=-1, keepdims=True))
    entropies = -shares * jnp.log(safe)
    excess = entropies - tilted * jnp.sum(entropies, axis=-1, keepdims=True)
    by_alpha = (shares - tilted) / (power - 1.0) ** 2 + excess / (power - 1.0)
    return shares, by_scores + by_alpha * _like(d_alpha, scores)


def _like(alpha: jax.Array | float, scores: jax.Array) -> jax.Array:
    """Alpha with an axis for the N scores."""
    return jnp.asarray(alpha, scores.dtype)[..., None]


def _are_few(scores: jax.Array) -> bool:
    """Whether there are at most `FEW_SCORES`; not where an export leaves their number open."""
    count = scores.shape[-1]
    return isinstance(count, int) and count <= FEW_SCORES


def _solve(scores: jax.Array, alpha: jax.Array, steps: int) -> jax.Array:
    """Shares by Newton's method on h(tau) = |[z - tau]_+|_p = 1 for the scaled scores z and p = 1 / (alpha - 1).

    h is convex and falls, so that the steps from below, from max z - 1, never pass the root and need no bounds. The
    norm bends less than the sum of powers: some steps suffice where bisection, with a power of each score in each step,
    takes 25 for the digits of float32.

    Few scores are taken one by one: a CPU computes the powers of all rows at once, where a reduction over a short last
    axis would take them row by row, ten times as slow.
    """
    gap = alpha - 1.0
    scaled, power = scores * gap, 1.0 / gap
    parts = [scaled]
    if _are_few(scores):
        parts = [scaled[..., place : place + 1] for place in range(scores.shape[-1])]

    def terms(tau: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        """[z - tau]_+ to the powers p and p - 1, of each part."""
        found = []
        for part in parts:
            rest = part - tau
            lower = jnp.where(rest > 0, jnp.exp((power - 1.0) * jnp.log(jnp.where(rest > 0, rest, 1.0))), 0.0)
            found.append((lower * jnp.maximum(rest, 0.0), lower))
        return found

    def step(_: int, tau: jax.Array) -> jax.Array:
        """One step of Newton's method for tau."""
        total, lower = (
            functools.reduce(jnp.add, [jnp.sum(one, axis=-1, keepdims=True) for one in ones])
            for ones in zip(*terms(tau), strict=True)
        )
        # (h - 1) / -h' with h = total^(1 / p) and -h' = h sum(lower) / total.
        return tau + total * (1.0 - jnp.exp(-gap * jnp.log(total))) / lower

    tau = jax.lax.fori_loop(0, steps, step, jnp.max(scaled, axis=-1, keepdims=True) - 1.0)
    shares = jnp.concatenate([part for part, _ in terms(tau)], axis=-1)
    return shares / jnp.sum(shares, axis=-1, keepdims=True)
