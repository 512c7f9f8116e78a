"""Attention of one sequence to another, and decoders that write a translation.

Shapes: B rows, L source tokens, T target tokens, Q queries, K keys, H hidden units, M units of what is read, V word
pieces.
"""

from typing import Any, Final, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .attention import of_unit_length
from .blocks import dense, parameter

_LONGEST_WAVE: Final = 10_000.0
EPSILON: Final = 1e-5


def linear(size: int, axes: tuple[str, str], dtype: Any, name: str) -> nn.Dense:
    """A dense layer with Glorot's uniform initialisation and logical axes."""
    return dense(size, axes, dtype, name, initializer=nn.initializers.xavier_uniform())


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


class Reading(NamedTuple):
    """What an encoder makes of source texts; a pytree.

    Attributes:
      sentence: P, the vector of each text, not scaled to length 1, float32 [B, P].
      states: of the tokens, [B, L, H].
      is_token: bool [B, L], False on padding.
    """

    sentence: jax.Array
    states: jax.Array
    is_token: jax.Array


def word_table(module: nn.Module, name: str, size: int, width: int) -> jax.Array:
    """A parameter [V, width], the table of word pieces."""
    return parameter(module, name, nn.initializers.normal(width**-0.5), (size, width), "vocab", "embed")


def language_table(module: nn.Module, count: int, width: int) -> jax.Array:
    """A parameter [count, width], the embeddings of the target languages."""
    return parameter(module, "language_embedding", nn.initializers.normal(1.0), (count, width), "topics", "embed")


class OutputTable(nn.Module):
    """The table from the states of a decoder to the logits of the next word piece, tied to no other.

    Attributes:
      vocab_size: V.
      width: of the states, H.
    """

    vocab_size: int
    width: int

    def setup(self) -> None:
        """Declares table and bias."""
        self.table = word_table(self, "kernel", self.vocab_size, self.width)
        self.bias = parameter(self, "bias", nn.initializers.zeros, (self.vocab_size,), "vocab")

    def __call__(self) -> tuple[jax.Array, jax.Array]:
        """Table [V, H] and bias [V], float32."""
        return self.table, self.bias


class EncoderDecoder(nn.Module):
    """What encoders with a decoder share: `read` and `write` make the document embedding and the translation.

    `setup` of a subclass makes `output`, an `OutputTable` of the states that `write` returns.
    """

    def read(self, tokens: jax.Array, *, deterministic: bool = True) -> Reading:
        """The `Reading` of source texts int32 [B, L].

        Raises:
          NotImplementedError: in this class.
        """
        raise NotImplementedError

    def write(
        self, reading: Reading, inputs: jax.Array, languages: jax.Array, *, deterministic: bool = True
    ) -> jax.Array:
        """The states before the output table of target tokens int32 [B, T] into languages int32 [B]: [B, T, S].

        Raises:
          NotImplementedError: in this class.
        """
        raise NotImplementedError

    def target_table(self) -> tuple[jax.Array, jax.Array]:
        """Table [V, S] and bias [V] from the states to the logits."""
        return self.output()

    def __call__(self, tokens: jax.Array) -> Any:
        """The states of the tokens as their own translation, and the table of logits; touches every parameter."""
        return self.translation(tokens, tokens, jnp.zeros(tokens.shape[0], jnp.int32))[1], self.target_table()

    def translation(
        self, tokens: jax.Array, inputs: jax.Array, languages: jax.Array, *, deterministic: bool = True
    ) -> tuple[jax.Array, jax.Array]:
        """P of the sources, float32 [B, P], and the states of `write`, [B, T, S]."""
        reading = self.read(tokens, deterministic=deterministic)
        return reading.sentence, self.write(reading, inputs, languages, deterministic=deterministic)

    def sentence(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """P of texts int32 [B, L], not scaled: float32 [B, P]."""
        return self.read(tokens, deterministic=deterministic).sentence

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """P scaled to length 1, float32 [B, P]."""
        return of_unit_length(self.sentence(tokens, deterministic=deterministic))
