"""Encoders over a plain table of word vectors: what they share, and the two baselines of AST.

Convolution: filters of several widths over word vectors, and the largest over time (Kim 2014, "Convolutional Neural
Networks for Sentence Classification"). Recurrence: a GRU in one direction or both, and its last state (Cho et al. 2014,
"Learning Phrase Representations using RNN Encoder-Decoder").

Shapes: B rows, L tokens, H hidden units, D embedding units, V word pieces.
"""

import dataclasses
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability, register
from ..attention import PAD_ID, of_unit_length
from ..blocks import dense, parameter
from ..recurrence import Gru

_TABLE_STDDEV: Final = 0.3  # a vector of 300 numbers is then as long as GloVe's are on average, about 5


class WordTableEncoder(nn.Module):
    """An encoder that reads a row of word vectors. Subclasses define `encode_vectors`.

    Attributes:
      config: its shape.
    """

    config: "WordTableConfig"

    def setup(self) -> None:
        """Declares the table."""
        start, shape = nn.initializers.normal(_TABLE_STDDEV), (self.config.vocab_size, self.config.hidden_size)
        self.token_embedding = parameter(self, "token_embedding", start, shape, "vocab", "embed")

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """The same as `embed`, which touches every parameter."""
        return self.embed(tokens)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """Document embeddings, float32 [B, D] of length 1; rows of padding alone give 0.

        Args:
          tokens: int32 [B, L], `PAD_ID` where empty.
          deterministic: there is no dropout, so it changes nothing.
        """
        del deterministic
        is_token = tokens != PAD_ID
        vectors = self.encode_vectors(self.token_embedding[tokens], is_token)
        return of_unit_length(jnp.where(jnp.any(is_token, axis=1)[:, None], vectors, 0.0))

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """Texts, float32 [B, D] of any length; padding must not change them.

        Args:
          embedded: vectors of the tokens, [B, L, H].
          is_token: bool [B, L], False at padding, which may be at the end only.

        Raises:
          NotImplementedError: here; subclasses define it.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class WordTableConfig(Architecture):
    """What the configurations of these encoders share.

    Attributes:
      vocab_size: word pieces in the vocabulary file, V.
      max_length: the longest row that the model reads; no parameter depends on it.
      hidden_size: width of the table, H.
    """

    free_options: ClassVar[tuple[str, ...]] = ("max_length",)
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.WORD_VECTORS})

    vocab_size: int
    max_length: int = 512
    hidden_size: int = 300

    @property
    def embedding_size(self) -> int:
        """Width of the document embedding, D."""
        return self.hidden_size


class ConvolutionEncoder(WordTableEncoder):
    """Filters that begin at every token, ReLU, the largest over the tokens, and a dense layer."""

    config: "ConvolutionConfig"

    def setup(self) -> None:
        """Declares the table, the filters of each width and the dense layer."""
        super().setup()
        config = self.config
        init, shape = nn.initializers.glorot_uniform(), (config.hidden_size, config.filters)
        axes = ("position", "embed", "embed_out")
        self.kernels = [
            parameter(self, f"filter_{width}_kernel", init, (width, *shape), *axes) for width in config.widths
        ]
        zeros = nn.initializers.zeros
        self.biases = [
            parameter(self, f"filter_{width}_bias", zeros, (config.filters,), "embed_out") for width in config.widths
        ]
        self.head = dense(config.hidden_size, ("embed", "embedding"), None, initializer=init)

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
        return self.head(jnp.concatenate(largest, axis=-1))


@register
@dataclasses.dataclass(frozen=True)
class ConvolutionConfig(WordTableConfig):
    """The convolutional encoder's shape; the defaults are those of AST's baseline.

    Attributes:
      widths: of the filters, in tokens, ascending.
      filters: of each width.
    """

    kind: ClassVar[str] = "convolution"
    module_class: ClassVar[type[nn.Module]] = ConvolutionEncoder

    widths: tuple[int, ...] = (1, 2, 3, 4)
    filters: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON has lists
        integers = bool(self.widths) and all(isinstance(width, int) for width in self.widths)
        ascending = integers and self.widths[0] > 0 and list(self.widths) == sorted(set(self.widths))
        self.require("widths", ascending, "positive widths, ascending")


class RecurrentEncoder(WordTableEncoder):
    """One layer of GRU cells; the embedding is the state after the last token, of both directions one after another."""

    config: "RecurrentConfig"

    def setup(self) -> None:
        """Declares the table and a cell for each direction."""
        super().setup()
        directions = 2 if self.config.bidirectional else 1
        cells = [Gru(self.config.hidden_size // directions, jnp.float32) for _ in range(directions)]
        self.forward, self.backward = cells[0], cells[-1]

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """The last state of each direction, float32 [B, D]."""
        last: jax.Array = self.forward(embedded, is_token)[:, -1]
        if not self.config.bidirectional:
            return last
        return jnp.concatenate([last, self.backward(embedded, is_token, backward=True)[:, 0]], axis=-1)


@register
@dataclasses.dataclass(frozen=True)
class RecurrentConfig(WordTableConfig):
    """The recurrent encoder's shape; the defaults are AST's GRU.

    Attributes:
      bidirectional: two directions of half the width each, AST's Bi-GRU.
    """

    kind: ClassVar[str] = "recurrent"
    module_class: ClassVar[type[nn.Module]] = RecurrentEncoder

    bidirectional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("hidden_size", not self.bidirectional or self.hidden_size % 2 == 0, "an even number")

    def summary(self) -> str:
        """Directions and width."""
        return f"{'two directions' if self.bidirectional else 'one direction'} of GRU x {self.hidden_size}"
