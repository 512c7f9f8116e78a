"""Attention of one sequence to another, feed-forward layers and sinusoidal positions, for encoders and decoders.

Shapes: B rows, Q queries, K keys, L tokens, H hidden units, M units of what is attended to.
"""

from typing import Any, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from .blocks import logical

_LONGEST_WAVE: Final = 10_000.0
_EPSILON: Final = 1e-5


def linear(size: int, axes: tuple[str, str], dtype: Any, name: str) -> nn.Dense:
    """A dense layer with Glorot's uniform initialisation and logical axes."""
    kernel = logical(nn.initializers.xavier_uniform(), *axes)
    return nn.Dense(size, dtype=dtype, kernel_init=kernel, bias_init=logical(nn.initializers.zeros, axes[1]), name=name)


def norm(dtype: Any, name: str) -> nn.LayerNorm:
    """A layer norm with logical axes."""
    return nn.LayerNorm(
        epsilon=_EPSILON,
        dtype=dtype,
        scale_init=logical(nn.initializers.ones, "embed"),
        bias_init=logical(nn.initializers.zeros, "embed"),
        name=name,
    )


def sinusoids(length: int, size: int) -> jax.Array:
    """Sinusoidal positions (Vaswani et al. 2017, section 3.5), float32 [L, H]: sines, then cosines; H is even."""
    half = size // 2
    waves = _LONGEST_WAVE ** (-jnp.arange(half, dtype=jnp.float32) / max(1, half - 1))
    angles = jnp.arange(length, dtype=jnp.float32)[:, None] * waves[None, :]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1)


class MultiHead(nn.Module):
    """Multi-head attention of queries to a memory.

    Attributes:
      num_heads: divides the width of the queries.
      dtype: of the activations.
    """

    num_heads: int
    dtype: Any

    @nn.compact
    def __call__(self, queries: jax.Array, memory: jax.Array, mask: jax.Array | None) -> jax.Array:
        """[B, Q, H] over [B, K, M] -> [B, Q, H].

        Args:
          queries: [B, Q, H].
          memory: [B, K, M].
          mask: bool, broadcast to [B, 1, Q, K], True where a query sees a key; None: everywhere.
        """
        width = queries.shape[-1]
        heads = [
            linear(width, ("embed", "heads"), self.dtype, name)(states).reshape(
                *states.shape[:2], self.num_heads, width // self.num_heads
            )
            for name, states in (("query", queries), ("key", memory), ("value", memory))
        ]
        attended = jax.nn.dot_product_attention(*heads, mask=mask, implementation="xla")
        return linear(width, ("heads", "embed"), self.dtype, "output")(attended.reshape(queries.shape))


class FeedForward(nn.Module):
    """Two dense layers with ReLU in between.

    Attributes:
      size: units in between.
      dtype: of the activations.
    """

    size: int
    dtype: Any

    @nn.compact
    def __call__(self, states: jax.Array) -> jax.Array:
        """[…, H] -> […, H]."""
        inner = nn.relu(linear(self.size, ("embed", "mlp"), self.dtype, "inner")(states))
        return linear(states.shape[-1], ("mlp", "embed"), self.dtype, "output")(inner)


class Layer(nn.Module):
    """Attention to a memory and a feed-forward layer, each behind a norm and with a residual sum (pre-norm).

    Attributes:
      num_heads: of the attention.
      mlp_size: units of the feed-forward layer.
      dropout_rate: on both outputs.
      dtype: of the activations.
    """

    num_heads: int
    mlp_size: int
    dropout_rate: float
    dtype: Any

    @nn.compact
    def __call__(
        self, states: jax.Array, memory: jax.Array | None, mask: jax.Array | None, *, deterministic: bool
    ) -> jax.Array:
        """[B, Q, H] over [B, K, H], which gets the same norm as the queries -> [B, Q, H].

        Args:
          states: [B, Q, H], the queries and the residual stream.
          memory: [B, K, H]; None: the states themselves.
          mask: see `MultiHead`.
          deterministic: without dropout.
        """
        attention_norm = norm(self.dtype, "attention_norm")
        dropout = nn.Dropout(self.dropout_rate, deterministic=deterministic)
        queries = attention_norm(states)
        keys = queries if memory is None else attention_norm(memory)
        states = states + dropout(MultiHead(self.num_heads, self.dtype, name="attention")(queries, keys, mask))
        inner = norm(self.dtype, "mlp_norm")(states)
        return states + dropout(FeedForward(self.mlp_size, self.dtype, name="mlp")(inner))
