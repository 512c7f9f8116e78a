"""The recurrent baselines of AST: a GRU over word vectors, in one direction or both, and its last state.

Source: Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder"; the cell is flax's `GRUCell`.
"""

import dataclasses
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..word_table import WordTableConfig, WordTableEncoder
from .registry import register

__all__ = ["RECURRENT_KIND", "RecurrentConfig", "RecurrentEncoder"]

RECURRENT_KIND: Final = "recurrent"


class RecurrentEncoder(WordTableEncoder):
    """One layer of GRU cells; the embedding is the state after the last token, of both directions one after another."""

    config: "RecurrentConfig"

    def setup(self) -> None:
        """Declares the table and a cell for each direction."""
        super().setup()
        size = self.config.hidden_size
        if self.config.bidirectional:
            self.forward = nn.RNN(nn.GRUCell(size // 2), return_carry=True)
            # The padding stays behind: the reversed texts begin with their last token.
            self.backward = nn.RNN(nn.GRUCell(size // 2), return_carry=True, reverse=True)
        else:
            self.forward = nn.RNN(nn.GRUCell(size), return_carry=True)

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """The last state of each direction, float32 [B, D]."""
        # flax reads one token of an empty row; `embed` makes such a row 0.
        lengths = jnp.maximum(jnp.sum(is_token, axis=1), 1)
        last, _ = self.forward(embedded, seq_lengths=lengths)
        if not self.config.bidirectional:
            state: jax.Array = last
            return state
        first, _ = self.backward(embedded, seq_lengths=lengths)
        return jnp.concatenate([last, first], axis=-1)


@register
@dataclasses.dataclass(frozen=True)
class RecurrentConfig(WordTableConfig):
    """The recurrent encoder's shape; the defaults are AST's GRU.

    Attributes:
      bidirectional: two directions of half the width each, AST's Bi-GRU.
    """

    kind: ClassVar[str] = RECURRENT_KIND

    bidirectional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bidirectional and self.hidden_size % 2:
            raise ValueError(f"RecurrentConfig.hidden_size: got {self.hidden_size}, expected an even number")

    def module(self) -> nn.Module:
        """The `RecurrentEncoder`."""
        return RecurrentEncoder(self)

    def embed_flops(self, length: int) -> float:
        """FLOPs of `embed`: 6 L S (H + S) for each direction of S units."""
        size = self.hidden_size // 2 if self.bidirectional else self.hidden_size
        return 6.0 * length * size * (self.hidden_size + size) * (2 if self.bidirectional else 1)

    def summary(self) -> str:
        """Directions and width."""
        return f"{'two directions' if self.bidirectional else 'one direction'} of GRU x {self.hidden_size}"
