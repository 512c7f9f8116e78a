"""AST, the adaptive star encoder: two sparse attentions that learn how sparse they are.

Source: Danovitch 2020, which links posts to news articles with the Star-Transformer (Guo et al. 2019) and the learned
alpha-entmax of Correia et al. 2019. The paper's formula of the star has the context in the place of the query; here the
star asks, as in Guo et al. Padding is left out of the mean, the window and the maximum.
"""

import dataclasses
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..star_attention import SOFTMAX, RingAttention, StarAttention
from ..word_table import WordTableConfig, WordTableEncoder
from .registry import register

__all__ = ["STAR_KIND", "StarConfig", "StarEncoder"]

STAR_KIND: Final = "star"
_SLOPE: Final = 0.01  # of the leaky ReLU
_LOWEST: Final = float(jnp.finfo(jnp.float32).min)


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
        count = jnp.maximum(jnp.sum(is_token, axis=1, keepdims=True), 1)
        hidden, star = embedded, jnp.sum(embedded, axis=1, where=is_token[..., None]) / count
        for number, (ring, star_attention) in enumerate(zip(self.rings, self.stars, strict=True)):
            hidden = ring(hidden, embedded, star, is_token)
            if self.config.norm:
                hidden = self.ring_norms[number](nn.leaky_relu(hidden, _SLOPE))
            star = star_attention(star, hidden, is_token)
            if self.config.norm:
                star = self.star_norms[number](nn.leaky_relu(star, _SLOPE))
        largest = jnp.max(jnp.where(is_token[..., None], hidden, _LOWEST), axis=1)
        # A row without tokens has no largest; `embed` makes it 0.
        largest = jnp.where(jnp.any(is_token, axis=1)[:, None], largest, 0.0)
        return 0.5 * (largest + star)


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

    kind: ClassVar[str] = STAR_KIND

    num_heads: int = 10
    window: int = 2
    iterations: int = 1
    alpha: float | None = None
    norm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_integers(num_heads=1, window=0, iterations=1)
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"StarConfig.num_heads: got {self.num_heads}, expected a divisor of hidden_size = {self.hidden_size}"
            )
        if self.alpha is not None and not (self.alpha == SOFTMAX or 1.01 <= self.alpha <= 2):
            raise ValueError(f"StarConfig.alpha: got {self.alpha!r}, expected None, 1, or a number from 1.01 to 2")

    def module(self) -> nn.Module:
        """The `StarEncoder`."""
        return StarEncoder(self)

    def embed_flops(self, length: int) -> float:
        """FLOPs of `embed`: linear in the length L, with c neighbours on each side.

        For T iterations: T (2 H^2 (6 L + 2) + 4 H L (2 c + 3) + 2 H^2 (2 L + 4) + 4 H (L + 1)).
        """
        width, keys = self.hidden_size, 2 * self.window + 3
        ring = 2 * width * width * (6 * length + 2) + 4 * width * length * keys
        star = 2 * width * width * (2 * length + 4) + 4 * width * (length + 1)
        return float(self.iterations * (ring + star))

    def summary(self) -> str:
        """Iterations, heads and width."""
        sparsity = "learned alpha" if self.alpha is None else f"alpha {self.alpha:g}"
        return f"star, {self.iterations} x {self.num_heads} heads x {self.hidden_size}, {sparsity}"
