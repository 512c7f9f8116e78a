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
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Capability
from ..bags import sum_of_words
from ..blocks import logical
from .registry import register

__all__ = ["AUTOENCODER_KIND", "Autoencoder", "AutoencoderConfig"]

AUTOENCODER_KIND: Final = "autoencoder"
_NORM_FLOOR: Final = 1e-12
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
        self.encoder_kernel = self.param(
            "encoder_kernel", logical(uniform, "vocab", "embedding"), (words, units), jnp.float32
        )
        self.encoder_bias = self.param("encoder_bias", logical(zeros, "embedding"), (units,), jnp.float32)
        self.decoder_kernel = self.param(
            "decoder_kernel", logical(uniform, "vocab", "embedding"), (words, units), jnp.float32
        )
        self.decoder_bias = self.param("decoder_bias", logical(zeros, "vocab"), (words,), jnp.float32)

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
        hidden = self.hidden(tokens, deterministic=deterministic)
        return hidden * jax.lax.rsqrt(jnp.maximum(jnp.sum(hidden**2, axis=-1, keepdims=True), _NORM_FLOOR**2))

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
class AutoencoderConfig:
    """The auto-encoder as an `Architecture`; the defaults are the paper's.

    Attributes:
      vocab_size: words of the vocabulary with the special tokens, V; the paper has 10,000 words.
      embedding_size: width of h, D.
      max_length: tokens of a text that are read at most; the rest of a longer text is left out.

    Raises:
      ValueError: for a value below 1.
    """

    kind: ClassVar[str] = AUTOENCODER_KIND
    execution_options: ClassVar[tuple[str, ...]] = ()
    free_options: ClassVar[tuple[str, ...]] = ("max_length",)
    num_topics: ClassVar[int] = 0
    dropout_rate: ClassVar[float] = 0.0
    dtype: ClassVar[str] = "float32"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.RECONSTRUCTION})

    vocab_size: int
    embedding_size: int = 500
    max_length: int = 2048

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"AutoencoderConfig.{field.name}: got {value!r}, expected an integer of at least 1")

    def module(self) -> nn.Module:
        """The `Autoencoder`."""
        return Autoencoder(self)

    def portable(self) -> Self:
        """The same model: it has no kernels of one platform."""
        return self

    def check(self, length: int) -> None:
        """Accepts every length: it runs everywhere."""

    def flops(self, method: str, length: int) -> float:
        """Model FLOPs of one text: 2 V D for "embed"; for "word_logits", which the loss takes, another 2 V D.

        Raises:
          ValueError: for another method.
        """
        del length  # all words of the vocabulary take part, however long the text is
        if method not in ("embed", "word_logits"):
            raise ValueError(f"got the method {method!r}, expected embed or word_logits")
        return 2.0 * self.vocab_size * self.embedding_size

    def summary(self) -> str:
        """Widths of input and output."""
        return f"auto-encoder of {self.vocab_size} words, {self.embedding_size} wide"

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`.

        Raises:
          TypeError: for unknown keys.
          ValueError: for values out of range.
        """
        return cls(**values)
