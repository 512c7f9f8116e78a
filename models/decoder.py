"""Decoders that write a translation: what they read, the transformer decoder, and greedy translation.

Shapes: B rows, L source tokens, T target tokens, H hidden units, M units of what is read, V word pieces.
"""

from typing import Any, Final, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .attention import PAD_ID
from .blocks import logical
from .multi_head import FeedForward, MultiHead, norm, sinusoids

START_ID: Final = 2  # [CLS] begins every row, and so every translation
END_ID: Final = 3  # [SEP] ends it
_NO_WORDS: Final = (PAD_ID, START_ID, 4)  # never written: [PAD], [CLS] and [MASK]
_NORM_FLOOR: Final = 1e-12


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


def of_unit_length(vectors: jax.Array) -> jax.Array:
    """Rows [B, P] scaled to length 1, float32; zero rows stay zero."""
    vectors = vectors.astype(jnp.float32)
    return vectors * jax.lax.rsqrt(jnp.maximum(jnp.sum(vectors**2, axis=-1, keepdims=True), _NORM_FLOOR**2))


def word_table(size: int, width: int) -> tuple[Any, tuple[int, int], Any]:
    """The initialiser, shape and type of a table of word pieces [V, width], for ``param``."""
    return logical(nn.initializers.normal(width**-0.5), "vocab", "embed"), (size, width), jnp.float32


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
        table = self.param("token_embedding", *word_table(self.vocab_size, self.hidden_size))
        states = table[inputs] * self.hidden_size**0.5 + sinusoids(inputs.shape[1], self.hidden_size)
        states = dropout(states.astype(self.dtype))
        places = jnp.arange(inputs.shape[1])
        causal = (places[:, None] >= places[None, :])[None, None]
        for number in range(self.num_layers):
            name = f"layers_{number}"
            inner = norm(self.dtype, f"{name}_self_norm")(states)
            own = MultiHead(self.num_heads, self.dtype, name=f"{name}_self_attention")
            states = states + dropout(own(inner, inner, causal))
            inner = norm(self.dtype, f"{name}_source_norm")(states)
            source = MultiHead(self.num_heads, self.dtype, name=f"{name}_source_attention")
            states = states + dropout(source(inner, memory.astype(self.dtype), mask))
            inner = norm(self.dtype, f"{name}_mlp_norm")(states)
            states = states + dropout(FeedForward(self.mlp_size, self.dtype, name=f"{name}_mlp")(inner))
        return norm(self.dtype, "output_norm")(states)


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
        self.table = self.param("kernel", *word_table(self.vocab_size, self.width))
        self.bias = self.param("bias", logical(nn.initializers.zeros, "vocab"), (self.vocab_size,), jnp.float32)

    def __call__(self) -> tuple[jax.Array, jax.Array]:
        """Table [V, H] and bias [V], float32."""
        return self.table, self.bias

    def logits(self, states: jax.Array) -> jax.Array:
        """[B, T, H] -> float32 [B, T, V]."""
        table = self.table.astype(states.dtype)
        return jnp.einsum("bth,vh->btv", states, table, preferred_element_type=jnp.float32) + self.bias


def language_table(module: nn.Module, languages: int, width: int) -> jax.Array:
    """The embeddings of the target languages, a parameter [languages, width] of the module."""
    initializer = logical(nn.initializers.normal(1.0), "topics", "embed")
    table: jax.Array = module.param("language_embedding", initializer, (languages, width), jnp.float32)
    return table


def language_memory(sentence: jax.Array, languages: jax.Array, table: jax.Array) -> jax.Array:
    """[P; embedding of the target language] as a memory of one place, [B, 1, P + E]."""
    return jnp.concatenate([sentence, table[languages].astype(sentence.dtype)], axis=-1)[:, None]


def translate(module: nn.Module, variables: Any, tokens: jax.Array, languages: jax.Array, length: int) -> jax.Array:
    """The most likely next word piece after the other, until [SEP].

    Args:
      module: with the methods of `Capability.TRANSLATION`.
      variables: of the module.
      tokens: int32 [B, L].
      languages: int32 [B], the number of the target language.
      length: of the longest translation, T.

    Returns:
      int32 [B, T]: [CLS] … [SEP], then padding.
    """
    reading = module.apply(variables, tokens, method="read")
    words = jnp.full((tokens.shape[0], length), PAD_ID, jnp.int32).at[:, 0].set(START_ID)

    def step(place: jax.Array, words: jax.Array) -> jax.Array:
        """Writes the word at place + 1 of each row, or padding after its end."""
        # Everything written so far is read again: simple, for people who look at a few translations.
        states = module.apply(variables, reading, words, languages, method="write")
        state = jax.lax.dynamic_slice_in_dim(states, place, 1, axis=1)
        logits = module.apply(variables, state, method="target_logits")[:, 0]
        logits = logits.at[:, jnp.array(_NO_WORDS)].set(-jnp.inf)
        before = words[:, place]
        is_over = (before == END_ID) | (before == PAD_ID)
        return words.at[:, place + 1].set(jnp.where(is_over, PAD_ID, jnp.argmax(logits, axis=-1)))

    return jax.lax.fori_loop(0, length - 1, step, words)


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

    def target_logits(self, states: jax.Array) -> jax.Array:
        """Logits of the next word piece, float32 [B, T, V]."""
        return self.output.logits(states)

    def target_table(self) -> tuple[jax.Array, jax.Array]:
        """Table [V, S] and bias [V] from the states to the logits."""
        return self.output()

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Logits of the tokens as their own translation, float32 [B, L, V]; touches every parameter."""
        languages = jnp.zeros(tokens.shape[0], jnp.int32)
        return self.target_logits(self.translation(tokens, tokens, languages)[1])

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

    def translate(self, tokens: jax.Array, languages: jax.Array, length: int) -> jax.Array:
        """Greedy translations, int32 [B, length], see :func:`translate`."""
        return translate(self.clone(parent=None), self.variables, tokens, languages, length)


__all__ = [
    "END_ID",
    "START_ID",
    "EncoderDecoder",
    "OutputTable",
    "Reading",
    "TransformerDecoder",
    "language_memory",
    "language_table",
    "of_unit_length",
    "translate",
    "word_table",
]
