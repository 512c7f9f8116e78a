"""Attention of the star encoder: tokens see their neighbours (the ring), one vector sees all tokens (the star).

Shapes: B rows, L tokens, H hidden units, N heads of d units each.
"""

import math
from typing import Any, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from .blocks import logical
from .entmax import LEAST_ALPHA, entmax

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
            init = logical(_logits_of_uniform, "heads")
            alphas = learned_alphas(self.param("alpha_logits", init, (self.num_heads,), jnp.float32))
        else:
            alphas = jnp.full((self.num_heads,), self.alpha, jnp.float32)
        return entmax(masked, jnp.broadcast_to(alphas, masked.shape[:-1]))


def learned_alphas(logits: jax.Array) -> jax.Array:
    """The alpha of each head, from 1.01 to 2, of the parameter ``alpha_logits`` [N]."""
    return jnp.maximum(1.0 + jax.nn.sigmoid(logits), LEAST_ALPHA)


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
        heads, length = self.num_heads, hidden.shape[1]
        query = project(self, "query", hidden, heads)
        scale = 1.0 / math.sqrt(query.shape[-1])

        def projected(name: str) -> list[jax.Array]:
            own = project(self, name, jnp.concatenate([hidden, embedded, star[:, None]], axis=1), heads)
            window = [_shifted(own[:, :length], offset) for offset in self._offsets()]
            return [*window, own[:, length : 2 * length], own[:, 2 * length :]]

        scores = jnp.stack([jnp.sum(query * key, axis=-1) for key in projected("key")], axis=-1) * scale
        every = jnp.ones_like(is_token)
        seen = jnp.stack([*(_shifted(is_token, offset) for offset in self._offsets()), every, every], axis=-1)
        shares = self.weights(scores, seen[:, :, None])
        values = projected("value")
        mixed = sum(shares[..., number, None] * value for number, value in enumerate(values))
        return project_out(self, jnp.asarray(mixed))

    def _offsets(self) -> range:
        return range(-self.window, self.window + 1)


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
        query = project(self, "query", star[:, None], self.num_heads)[:, 0]
        scale = 1.0 / math.sqrt(query.shape[-1])
        scores = jnp.einsum("bnd,blnd->bnl", query, project(self, "key", keys, self.num_heads)) * scale
        seen = jnp.pad(is_token, [(0, 0), (1, 0)], constant_values=True)
        shares = self.weights(scores, seen[:, None])
        mixed = jnp.einsum("bnl,blnd->bnd", shares, project(self, "value", keys, self.num_heads))
        return project_out(self, mixed[:, None])[:, 0]


def project(module: nn.Module, name: str, inputs: jax.Array, heads: int) -> jax.Array:
    """Dense layer [B, L, H] -> [B, L, N, d], with parameters ``<name>_kernel`` [H, N, d] and ``<name>_bias``."""
    width = inputs.shape[-1]
    size = width // heads
    kernel_init = logical(nn.initializers.glorot_uniform(in_axis=0, out_axis=(1, 2)), "embed", "heads", "kv")
    kernel = module.param(f"{name}_kernel", kernel_init, (width, heads, size), jnp.float32)
    bias = module.param(f"{name}_bias", logical(nn.initializers.zeros, "heads", "kv"), (heads, size), jnp.float32)
    flat = inputs.reshape(-1, width) @ kernel.reshape(width, -1)
    return flat.reshape(*inputs.shape[:-1], heads, size) + bias


def project_out(module: nn.Module, mixed: jax.Array) -> jax.Array:
    """Dense layer [B, L, N, d] -> [B, L, H], with parameters ``output_kernel`` [N, d, H] and ``output_bias``."""
    heads, size = mixed.shape[-2:]
    width = heads * size
    kernel_init = logical(nn.initializers.glorot_uniform(in_axis=(0, 1), out_axis=2), "heads", "kv", "embed")
    kernel = module.param("output_kernel", kernel_init, (heads, size, width), jnp.float32)
    bias = module.param("output_bias", logical(nn.initializers.zeros, "embed"), (width,), jnp.float32)
    flat = mixed.reshape(-1, width) @ kernel.reshape(-1, width)
    return flat.reshape(*mixed.shape[:-2], width) + bias


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
