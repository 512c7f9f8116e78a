"""Attention of one sequence to another, and decoders that write a translation.

Shapes: B rows, L source tokens, T target tokens, Q queries, K keys, H hidden units, M units of what is read, V word
pieces.
"""

from typing import Any, Final, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .attention import of_unit_length
from .blocks import dense, norm, parameter

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
        attention_norm = norm(EPSILON, self.dtype, "attention_norm")
        dropout = nn.Dropout(self.dropout_rate, deterministic=deterministic)
        queries = attention_norm(states)
        keys = queries if memory is None else attention_norm(memory)
        states = states + dropout(MultiHead(self.num_heads, self.dtype, name="attention")(queries, keys, mask))
        inner = norm(EPSILON, self.dtype, "mlp_norm")(states)
        return states + dropout(FeedForward(self.mlp_size, self.dtype, name="mlp")(inner))


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


class TransformerDecoder(nn.Module):
    """Causal self-attention, attention to a memory and feed-forward layers, behind norms (pre-norm).

    Attributes:
      vocab_size: of the target words, V.
      hidden_size: H.
      num_layers: layers.
      num_heads: of both attentions.
      mlp_size: units of the feed-forward layers.
      dropout_rate: on the embeddings and on the output of each part.
      dtype: of the activations.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    mlp_size: int
    dropout_rate: float
    dtype: Any

    @nn.compact
    def __call__(
        self, inputs: jax.Array, memory: jax.Array, mask: jax.Array | None, *, deterministic: bool
    ) -> jax.Array:
        """The state before the output table at each target token, [B, T, H]; token t sees the tokens up to t.

        Args:
          inputs: int32 [B, T], the target tokens before those to predict.
          memory: [B, K, M], what the decoder reads of the source.
          mask: bool [B, 1, 1, K], False on padding of the memory; None: all is read.
          deterministic: without dropout.
        """
        dropout = nn.Dropout(self.dropout_rate, deterministic=deterministic)
        table = word_table(self, "token_embedding", self.vocab_size, self.hidden_size)
        states = table[inputs] * self.hidden_size**0.5 + sinusoids(inputs.shape[1], self.hidden_size)
        states = dropout(states.astype(self.dtype))
        places = jnp.arange(inputs.shape[1])
        causal = (places[:, None] >= places[None, :])[None, None]
        for number in range(self.num_layers):
            name = f"layers_{number}"
            inner = norm(EPSILON, self.dtype, f"{name}_self_norm")(states)
            own = MultiHead(self.num_heads, self.dtype, name=f"{name}_self_attention")
            states = states + dropout(own(inner, inner, causal))
            inner = norm(EPSILON, self.dtype, f"{name}_source_norm")(states)
            source = MultiHead(self.num_heads, self.dtype, name=f"{name}_source_attention")
            states = states + dropout(source(inner, memory.astype(self.dtype), mask))
            inner = norm(EPSILON, self.dtype, f"{name}_mlp_norm")(states)
            states = states + dropout(FeedForward(self.mlp_size, self.dtype, name=f"{name}_mlp")(inner))
        return norm(EPSILON, self.dtype, "output_norm")(states)


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


def language_memory(sentence: jax.Array, languages: jax.Array, table: jax.Array) -> jax.Array:
    """[P; embedding of the target language] as a memory of one place, [B, 1, P + E]."""
    return jnp.concatenate([sentence, table[languages].astype(sentence.dtype)], axis=-1)[:, None]


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
        languages = jnp.zeros(tokens.shape[0], jnp.int32)
        return self.translation(tokens, tokens, languages)[1], self.target_table()

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
