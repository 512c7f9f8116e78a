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
"""

import dataclasses
from typing import ClassVar, Final

import flax.linen as nn
import jax

from ..architecture import Architecture, Capability, register
from ..bags import sum_of_words
from ..blocks import parameter
from ..pooling import of_unit_length

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
    free_options: ClassVar[tuple[str, ...]] = ("max_length",)
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.RECONSTRUCTION})

    vocab_size: int
    embedding_size: int = 500
    max_length: int = 2048

    def module(self) -> nn.Module:
        """The `Autoencoder`."""
        return Autoencoder(self)

    def summary(self) -> str:
        """Widths of input and output."""
        return f"auto-encoder of {self.vocab_size} words, {self.embedding_size} wide"
