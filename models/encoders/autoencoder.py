"""The denoising auto-encoder of news articles.

Okura, Tagami and Tajima 2016, "Article De-duplication Using Distributed Representations", section 3.

A text is the set of its words, x in {0, 1}^V. With f the logistic function::

    h = f(W x + b) - f(b)        y = f(W' h + b')

so that a text without a word of the vocabulary has h = 0, and an inner product of 0 with every other. The decoder W' is
not tied to W. The embedding is h scaled to length 1; 0 stays 0. The vocabulary is one of whole words (``newsembed
vocabulary --words=true``): words outside it become [UNK] and drop out. Noise is part of the training alone, see
`learning.objectives.denoising`.

Where the paper is silent: W and W' start from Glorot and Bengio's uniform distribution times 4, their advice for the
logistic function, and b' from the log odds of the shares of texts that have each word, where the run counts them
(``WHITENING_ROWS``).

Texts as sets of words: binary vectors over the vocabulary, made from token ids a chunk of the vocabulary at a time.

Shapes use N texts, L tokens, V words and D units. Special tokens ([PAD], [UNK], [CLS], …) are not words.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability, register
from ..attention import of_unit_length
from ..blocks import parameter

FIRST_WORD: Final = 5  # ids below are those of the special tokens, see `formats.vocabulary.SPECIAL_TOKENS`
_PAD_ID: Final = 0


def distinct_words(tokens: jax.Array) -> jax.Array:
    """The words of each text once: int32 [N, L], ascending after the zeros that fill a row.

    Args:
      tokens: int32 [N, L]; special tokens are dropped.
    """
    ordered = jnp.sort(jnp.where(tokens < FIRST_WORD, _PAD_ID, tokens), axis=-1)
    is_repeated = jnp.concatenate([jnp.zeros_like(ordered[:, :1], bool), ordered[:, 1:] == ordered[:, :-1]], axis=-1)
    return jnp.where(is_repeated, _PAD_ID, ordered)


def binary_vectors(words: jax.Array, start: jax.Array | int, size: int) -> jax.Array:
    """Which of the words start, …, start + size - 1 each text has: float32 [N, size] of 0 and 1.

    Args:
      words: int32 [N, L]; repeated words count once, special tokens not at all.
      start: id of the first word.
      size: number of words.
    """
    places = words - start
    outside = (words < FIRST_WORD) | (places < 0)  # a negative place would count from the end
    places = jnp.where(outside, size, places)
    return jax.vmap(lambda row: jnp.zeros(size, jnp.float32).at[row].set(1.0, mode="drop"))(places)


def sum_of_words(words: jax.Array, table: jax.Array, *, chunk: int) -> jax.Array:
    """The sum of the vectors of each text's words, x @ table: float32 [N, D].

    Args:
      words: int32 [N, L], see `binary_vectors`.
      table: float32 [V, D].
      chunk: words whose binary vectors exist at a time.
    """

    def part(start: jax.Array | int, size: int) -> jax.Array:
        return binary_vectors(words, start, size) @ jax.lax.dynamic_slice_in_dim(table, start, size)

    empty = jnp.zeros((words.shape[0], table.shape[1]), jnp.float32)
    return _sum_over_chunks(part, empty, table.shape[0], chunk)


def reconstruction_loss(
    hidden: jax.Array, words: jax.Array, table: jax.Array, bias: jax.Array, *, chunk: int
) -> jax.Array:
    """The cross entropy of each text's binary vector x and its reconstruction y, summed over the words: float32 [N].

    y = sigmoid(z) with the logits z = hidden @ table.T + bias, and -x log y - (1 - x) log(1 - y) = softplus(z) - x z
    (Vincent et al. 2008, "Extracting and Composing Robust Features with Denoising Autoencoders", equation 2). Logits
    and binary vectors exist for one chunk of the vocabulary; the backward pass computes them again.

    Args:
      hidden: float32 [N, D].
      words: int32 [N, L], see `binary_vectors`.
      table: float32 [V, D].
      bias: float32 [V].
      chunk: words at a time.
    """

    def part(start: jax.Array | int, size: int) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(table, start, size)
        logits = hidden @ rows.T + jax.lax.dynamic_slice_in_dim(bias, start, size)
        losses = jax.nn.softplus(logits) - binary_vectors(words, start, size) * logits
        return jnp.sum(jnp.where(start + jnp.arange(size) < FIRST_WORD, 0.0, losses), axis=-1)

    return _sum_over_chunks(part, jnp.zeros(hidden.shape[0], jnp.float32), table.shape[0], chunk)


def _sum_over_chunks(part: Callable[[Any, int], jax.Array], empty: jax.Array, size: int, chunk: int) -> jax.Array:
    """The sum of `part(start, size)` over chunks of the vocabulary; the whole of it at once where the chunk allows."""
    if chunk >= size:
        return part(0, size)
    whole = size // chunk
    # Inside a loop the compiler cannot merge the second computation with the first, so it need not be prevented.
    one_chunk = jax.checkpoint(lambda start: part(start, chunk), prevent_cse=False)
    total, _ = jax.lax.scan(lambda so_far, start: (so_far + one_chunk(start), None), empty, jnp.arange(whole) * chunk)
    rest = size - whole * chunk
    return total + part(whole * chunk, rest) if rest else total


AUTOENCODER_KIND: Final = "autoencoder"
_WORDS_AT_A_TIME: Final = 1 << 14
_LOGISTIC_SCALE: Final = 16.0  # of the variance: Glorot and Bengio's limit, times 4


class Autoencoder(nn.Module):
    """The auto-encoder; shapes use B texts, L tokens, V words of the vocabulary and D units."""

    config: "AutoencoderConfig"

    def setup(self) -> None:
        """Declares W, b, W' and b'."""
        words, units = self.config.vocab_size, self.config.embedding_size
        # `variance_scaling` draws uniformly within sqrt(3 scale / mean of both sizes): 4 sqrt(6 / (V + D)).
        uniform = nn.initializers.variance_scaling(_LOGISTIC_SCALE, "fan_avg", "uniform")
        zeros = nn.initializers.zeros
        self.encoder_kernel = parameter(self, "encoder_kernel", uniform, (words, units), "vocab", "embedding")
        self.encoder_bias = parameter(self, "encoder_bias", zeros, (units,), "embedding")
        self.decoder_kernel = parameter(self, "decoder_kernel", uniform, (words, units), "vocab", "embedding")
        self.decoder_bias = parameter(self, "decoder_bias", zeros, (words,), "vocab")

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Embeddings float32 [B, D]; every parameter exists after `setup`."""
        return self.embed(tokens)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """Document embeddings: h of the text without noise, scaled to length 1.

        Args:
          tokens: int32 [B, L].
          deterministic: without effect, there is no dropout.

        Returns:
          float32 [B, D]; a text without a word of the vocabulary is 0.
        """
        return of_unit_length(self.hidden(tokens, deterministic=deterministic))

    def hidden(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """The hidden vector h of each text, float32 [B, D].

        Args:
          tokens: int32 [B, L] in any order; repeated words count once.
          deterministic: without effect, there is no dropout.
        """
        del deterministic
        sums = sum_of_words(tokens, self.encoder_kernel, chunk=_WORDS_AT_A_TIME)
        return jax.nn.sigmoid(sums + self.encoder_bias) - jax.nn.sigmoid(self.encoder_bias)

    def decoder(self) -> tuple[jax.Array, jax.Array]:
        """W' [V, D] and b' [V], float32: from h to the logits of the words."""
        return self.decoder_kernel, self.decoder_bias


@register
@dataclasses.dataclass(frozen=True)
class AutoencoderConfig(Architecture):
    """The auto-encoder as an `Architecture`; the defaults are the paper's.

    Attributes:
      vocab_size: words of the vocabulary with the special tokens, V; the paper has 10,000 words.
      embedding_size: width of h, D.
      max_length: tokens of a text that are read at most; the rest of a longer text is left out.
    """

    kind: ClassVar[str] = AUTOENCODER_KIND
    module_class: ClassVar[type[nn.Module]] = Autoencoder
    free_options: ClassVar[tuple[str, ...]] = ("max_length",)
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.RECONSTRUCTION})

    vocab_size: int
    embedding_size: int = 500
    max_length: int = 2048

    def summary(self) -> str:
        """Widths of input and output."""
        return f"auto-encoder of {self.vocab_size} words, {self.embedding_size} wide"
