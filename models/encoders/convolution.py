"""The convolutional baseline of AST: filters of several widths over word vectors, and the largest over time.

Source: Kim 2014, "Convolutional Neural Networks for Sentence Classification".
"""

import dataclasses
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..blocks import logical
from ..word_table import WordTableConfig, WordTableEncoder
from .registry import register

__all__ = ["CONVOLUTION_KIND", "ConvolutionConfig", "ConvolutionEncoder"]

CONVOLUTION_KIND: Final = "convolution"


class ConvolutionEncoder(WordTableEncoder):
    """Filters that begin at every token, ReLU, the largest over the tokens, and a dense layer."""

    config: "ConvolutionConfig"

    def setup(self) -> None:
        """Declares the table, the filters of each width and the dense layer."""
        super().setup()
        config = self.config
        init = nn.initializers.glorot_uniform()
        self.kernels = [
            self.param(
                f"filter_{width}_kernel",
                logical(init, "position", "embed", "embed_out"),
                (width, config.hidden_size, config.filters),
                jnp.float32,
            )
            for width in config.widths
        ]
        zeros = logical(nn.initializers.zeros, "embed_out")
        self.biases = [
            self.param(f"filter_{width}_bias", zeros, (config.filters,), jnp.float32) for width in config.widths
        ]
        self.head = nn.Dense(
            config.hidden_size,
            kernel_init=logical(init, "embed", "embedding"),
            bias_init=logical(nn.initializers.zeros, "embedding"),
        )

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """The dense layer on the largest output of each filter, float32 [B, D].

        A filter of width w reads w tokens; behind the last token it reads zeros, so that short texts have outputs too.
        """
        plain = jnp.where(is_token[..., None], embedded, 0.0)
        largest = []
        for width, kernel, bias in zip(self.config.widths, self.kernels, self.biases, strict=True):
            padded = jnp.pad(plain, [(0, 0), (0, width - 1), (0, 0)])
            outputs = jax.lax.conv_general_dilated(
                padded, kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
            )
            outputs = nn.relu(outputs + bias)  # at least 0, so 0 at padding changes no maximum
            largest.append(jnp.max(jnp.where(is_token[..., None], outputs, 0.0), axis=1))
        head: jax.Array = self.head(jnp.concatenate(largest, axis=-1))
        return head


@register
@dataclasses.dataclass(frozen=True)
class ConvolutionConfig(WordTableConfig):
    """The convolutional encoder's shape; the defaults are those of AST's baseline.

    Attributes:
      widths: of the filters, in tokens, ascending.
      filters: of each width.
    """

    kind: ClassVar[str] = CONVOLUTION_KIND

    widths: tuple[int, ...] = (1, 2, 3, 4)
    filters: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_integers(filters=1)
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON has lists
        ascending = all(isinstance(width, int) for width in self.widths) and list(self.widths) == sorted(
            set(self.widths)
        )
        if not self.widths or not ascending or self.widths[0] < 1:
            raise ValueError(f"ConvolutionConfig.widths: got {self.widths!r}, expected positive widths, ascending")

    def module(self) -> nn.Module:
        """The `ConvolutionEncoder`."""
        return ConvolutionEncoder(self)

    def embed_flops(self, length: int) -> float:
        """FLOPs of `embed`: 2 L H F sum of widths, and 2 W F H of the dense layer, for W widths of F filters."""
        convolutions = 2.0 * length * self.hidden_size * self.filters * sum(self.widths)
        return convolutions + 2.0 * len(self.widths) * self.filters * self.hidden_size
