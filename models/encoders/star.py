"""AST, the adaptive star encoder: two sparse attentions that learn how sparse they are.

Source: Danovitch 2020, which links posts to news articles with the Star-Transformer (Guo et al. 2019) and the learned
alpha-entmax of Correia et al. 2019. The paper's formula of the star has the context in the place of the query; here the
star asks, as in Guo et al. Padding is left out of the mean, the window and the maximum.

Tokens see their neighbours (the ring), one vector sees all tokens (the star).

Shapes: B rows, L tokens, H hidden units, N heads of d units each.

Alpha-entmax: a softmax with exact zeros, whose sparsity is a number that can be learned.

For scores z and alpha > 1, p = entmax(z, alpha) are the shares that maximise p . z + H_alpha(p) for Tsallis' entropy::

    p_i = [(alpha - 1) z_i - tau]_+ ^ (1 / (alpha - 1)),  with tau such that the shares add up to 1

alpha = 2 is sparsemax, and the limit at 1 is softmax.

Sources: Peters, Niculae and Martins 2019, "Sparse Sequence-to-Sequence Models" (the map; they bisect); Correia,
Niculae and Martins 2019, "Adaptively Sparse Transformers" (the derivative by alpha, proposition 1).
"""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import register
from ..attention import largest_of_tokens, mean_of_tokens
from ..blocks import parameter, project
from .words import WordTableConfig, WordTableEncoder

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


_SLOPE: Final = 0.01  # of the leaky ReLU
SOFTMAX: Final = 1.0  # the alpha of softmax
_UNSEEN: Final = -1e9  # its exponential is 0
_LEAST_START: Final = 0.01  # of alpha - 1: a learned alpha starts anywhere between 1.01 and 1.99


class HeadedAttention(nn.Module):
    """The four projections of an attention, and the shares of its keys by alpha-entmax.

    Attributes:
      num_heads: N.
      alpha: of all heads; 1 is softmax, 2 sparsemax. None learns one alpha for each head.
    """

    num_heads: int
    alpha: float | None

    @nn.nowrap
    def weights(self, scores: jax.Array, seen: jax.Array) -> jax.Array:
        """Shares of the keys, float32 [..., N, K]; declares the alphas, where they are learned.

        Args:
          scores: [..., N, K].
          seen: bool, broadcast against `scores`; at least one key of each query is seen.
        """
        if self.alpha == SOFTMAX:
            return jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), _UNSEEN), axis=-1)
        masked = jnp.where(seen, scores.astype(jnp.float32), -jnp.inf)
        if self.alpha is None:
            logits = parameter(self, "alpha_logits", _logits_of_uniform, (self.num_heads,), "heads")
            alphas = jnp.maximum(1.0 + jax.nn.sigmoid(logits), LEAST_ALPHA)  # from 1.01 to 2
        else:
            alphas = jnp.full((self.num_heads,), self.alpha, jnp.float32)
        return entmax(masked, jnp.broadcast_to(alphas, masked.shape[:-1]))


class RingAttention(HeadedAttention):
    """Every token reads its neighbours, its own embedding and the star: work that is linear in the length.

    Attributes:
      window: neighbours on each side, c.
    """

    window: int = 2

    @nn.compact
    def __call__(self, hidden: jax.Array, embedded: jax.Array, star: jax.Array, is_token: jax.Array) -> jax.Array:
        """Vectors of the tokens after the ring, [B, L, H]; those at padding have no meaning.

        Token i asks with h_i; keys and values are h_{i-c} … h_{i+c}, e_i and s.

        Args:
          hidden: h, [B, L, H].
          embedded: e, [B, L, H].
          star: s, [B, H].
          is_token: bool [B, L], False at padding.
        """
        heads, length, offsets = self.num_heads, hidden.shape[1], range(-self.window, self.window + 1)
        query = _heads(self, "query", hidden, heads)
        scale = 1.0 / math.sqrt(query.shape[-1])

        def projected(name: str) -> list[jax.Array]:
            own = _heads(self, name, jnp.concatenate([hidden, embedded, star[:, None]], axis=1), heads)
            window = [_shifted(own[:, :length], offset) for offset in offsets]
            return [*window, own[:, length : 2 * length], own[:, 2 * length :]]

        scores = jnp.stack([jnp.sum(query * key, axis=-1) for key in projected("key")], axis=-1) * scale
        every = jnp.ones_like(is_token)
        seen = jnp.stack([*(_shifted(is_token, offset) for offset in offsets), every, every], axis=-1)
        shares = self.weights(scores, seen[:, :, None])
        values = projected("value")
        mixed = sum(shares[..., number, None] * value for number, value in enumerate(values))
        return _joined(self, jnp.asarray(mixed))


class StarAttention(HeadedAttention):
    """One vector reads all tokens."""

    @nn.compact
    def __call__(self, star: jax.Array, hidden: jax.Array, is_token: jax.Array) -> jax.Array:
        """The star after reading itself and all tokens, [B, H].

        Args:
          star: s, [B, H], asks; keys and values are [s; h].
          hidden: h, [B, L, H].
          is_token: bool [B, L].
        """
        keys = jnp.concatenate([star[:, None], hidden], axis=1)
        query = _heads(self, "query", star[:, None], self.num_heads)[:, 0]
        scale = 1.0 / math.sqrt(query.shape[-1])
        scores = jnp.einsum("bnd,blnd->bnl", query, _heads(self, "key", keys, self.num_heads)) * scale
        seen = jnp.pad(is_token, [(0, 0), (1, 0)], constant_values=True)
        shares = self.weights(scores, seen[:, None])
        mixed = jnp.einsum("bnl,blnd->bnd", shares, _heads(self, "value", keys, self.num_heads))
        return _joined(self, mixed[:, None])[:, 0]


def _heads(module: nn.Module, name: str, inputs: jax.Array, heads: int) -> jax.Array:
    """Dense layer [B, L, H] -> [B, L, N, d]."""
    init, shape = nn.initializers.glorot_uniform(in_axis=0, out_axis=(1, 2)), (heads, inputs.shape[-1] // heads)
    return project(module, name, inputs, ("embed",), shape, ("heads", "kv"), initializer=init)


def _joined(module: nn.Module, mixed: jax.Array) -> jax.Array:
    """Dense layer [B, L, N, d] -> [B, L, H]."""
    init, width = nn.initializers.glorot_uniform(in_axis=(0, 1), out_axis=2), math.prod(mixed.shape[-2:])
    return project(module, "output", mixed, ("heads", "kv"), (width,), ("embed",), initializer=init)


def _shifted(values: jax.Array, offset: int) -> jax.Array:
    """`values` [B, L, ...] at position i + offset, zero beyond both ends."""
    length = values.shape[1]
    filling = [(0, 0), (max(-offset, 0), max(offset, 0))] + [(0, 0)] * (values.ndim - 2)
    padded = jnp.pad(values, filling)
    return jax.lax.slice_in_dim(padded, max(offset, 0), max(offset, 0) + length, axis=1)


def _logits_of_uniform(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Logits whose sigmoid is uniform between 0.01 and 0.99."""
    shares = jax.random.uniform(key, shape, dtype, _LEAST_START, 1.0 - _LEAST_START)
    return jnp.log(shares) - jnp.log1p(-shares)


class StarEncoder(WordTableEncoder):
    """Ring and star attention over word vectors, some iterations, each with parameters of its own."""

    config: "StarConfig"

    def setup(self) -> None:
        """Declares the table and the attentions."""
        super().setup()
        config = self.config
        numbers = range(config.iterations)
        self.rings = [RingAttention(config.num_heads, config.alpha, config.window) for _ in numbers]
        self.stars = [StarAttention(config.num_heads, config.alpha) for _ in numbers]
        if config.norm:
            self.ring_norms = [nn.LayerNorm() for _ in numbers]
            self.star_norms = [nn.LayerNorm() for _ in numbers]

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """Half the sum of the largest of each unit over the tokens and of the star, float32 [B, D]."""
        hidden, star = embedded, mean_of_tokens(embedded, is_token)
        for number, (ring, star_attention) in enumerate(zip(self.rings, self.stars, strict=True)):
            hidden = ring(hidden, embedded, star, is_token)
            if self.config.norm:
                hidden = self.ring_norms[number](nn.leaky_relu(hidden, _SLOPE))
            star = star_attention(star, hidden, is_token)
            if self.config.norm:
                star = self.star_norms[number](nn.leaky_relu(star, _SLOPE))
        return 0.5 * (largest_of_tokens(hidden, is_token) + star)


@register
@dataclasses.dataclass(frozen=True)
class StarConfig(WordTableConfig):
    """The star encoder's shape; the defaults are the paper's.

    Attributes:
      num_heads: of both attentions; divides `hidden_size`.
      window: neighbours on each side that a token reads, c.
      iterations: T; each has parameters of its own. One is enough by the paper.
      alpha: of the entmax of all heads; 1 is softmax, 2 sparsemax. None learns one for each head and iteration.
      norm: a leaky ReLU and a layer norm follow each attention, as in the Star-Transformer; AST has none.
    """

    kind: ClassVar[str] = "star"
    module_class: ClassVar[type[nn.Module]] = StarEncoder
    least: ClassVar[Mapping[str, int]] = {"window": 0}

    num_heads: int = 10
    window: int = 2
    iterations: int = 1
    alpha: float | None = None
    norm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        divides, alpha = self.hidden_size % self.num_heads == 0, self.alpha
        self.require("num_heads", divides, f"a divisor of hidden_size = {self.hidden_size}")
        known = alpha is None or alpha == SOFTMAX or 1.01 <= alpha <= 2
        self.require("alpha", known, "None, 1, or a number from 1.01 to 2")

    def summary(self) -> str:
        """Iterations, heads and width."""
        sparsity = "learned alpha" if self.alpha is None else f"alpha {self.alpha:g}"
        return f"star, {self.iterations} x {self.num_heads} heads x {self.hidden_size}, {sparsity}"
