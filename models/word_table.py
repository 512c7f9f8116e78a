"""What the encoders over a plain table of word vectors share: the table, their configuration, and unit vectors.

Shapes: B rows, L tokens, H hidden units, D embedding units, V word pieces.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from .architecture import Capability
from .attention import PAD_ID
from .blocks import logical

_NORM_FLOOR: Final = 1e-12
_TABLE_STDDEV: Final = 0.3  # a vector of 300 numbers is then as long as GloVe's are on average, about 5


class WordTableEncoder(nn.Module):
    """An encoder that reads a row of word vectors. Subclasses define `encode_vectors`.

    Attributes:
      config: its shape.
    """

    config: "WordTableConfig"

    def setup(self) -> None:
        """Declares the table."""
        self.token_embedding = self.param(
            "token_embedding",
            logical(nn.initializers.normal(_TABLE_STDDEV), "vocab", "embed"),
            (self.config.vocab_size, self.config.hidden_size),
            jnp.float32,
        )

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
        return unit_rows(jnp.where(jnp.any(is_token, axis=1)[:, None], vectors, 0.0))

    def encode_vectors(self, embedded: jax.Array, is_token: jax.Array) -> jax.Array:
        """Texts, float32 [B, D] of any length; padding must not change them.

        Args:
          embedded: vectors of the tokens, [B, L, H].
          is_token: bool [B, L], False at padding, which may be at the end only.

        Raises:
          NotImplementedError: here; subclasses define it.
        """
        raise NotImplementedError


def unit_rows(vectors: jax.Array) -> jax.Array:
    """Rows [B, D] scaled to length 1; rows of zeros stay zeros, with gradient 0."""
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    # The root of 0 has no finite gradient, and a tiny floor would multiply by 1e36 on the way back.
    is_long = squares > _NORM_FLOOR**2
    return jnp.where(is_long, vectors * jax.lax.rsqrt(jnp.where(is_long, squares, 1.0)), 0.0)


@dataclasses.dataclass(frozen=True)
class WordTableConfig:
    """What the configurations of these encoders share; see `models.encoders.Architecture`.

    Attributes:
      vocab_size: word pieces in the vocabulary file, V.
      max_length: the longest row that the model reads; no parameter depends on it.
      hidden_size: width of the table, H.
    """

    kind: ClassVar[str] = ""
    execution_options: ClassVar[tuple[str, ...]] = ()
    free_options: ClassVar[tuple[str, ...]] = ("max_length",)
    num_topics: ClassVar[int] = 0
    dropout_rate: ClassVar[float] = 0.0
    dtype: ClassVar[str] = "float32"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.WORD_VECTORS})

    vocab_size: int
    max_length: int = 512
    hidden_size: int = 300

    def __post_init__(self) -> None:
        self.require_integers(vocab_size=1, max_length=1, hidden_size=1)

    def require_integers(self, **least: int) -> None:
        """Refuses fields that are not integers of at least these values.

        Raises:
          ValueError: naming the field.
        """
        for name, bound in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < bound:
                expected = f"expected an integer of at least {bound}"
                raise ValueError(f"{type(self).__name__}.{name}: got {value!r}, {expected}")

    @property
    def embedding_size(self) -> int:
        """Width of the document embedding, D."""
        return self.hidden_size

    def module(self) -> nn.Module:
        """The Flax module.

        Raises:
          NotImplementedError: here; subclasses define it.
        """
        raise NotImplementedError

    def portable(self) -> Self:
        """The same: it is computed by XLA's own kernels only."""
        return self

    def check(self, length: int) -> None:
        """Every device can compute rows of any length."""

    def flops(self, method: str, length: int) -> float:
        """Model FLOPs of one forward pass on one row: matrix products only, two FLOPs for each multiply-add.

        Raises:
          ValueError: for another method than "embed".
        """
        if method != "embed":
            raise ValueError(f"got the method {method!r}, expected embed")
        return self.embed_flops(length)

    def embed_flops(self, length: int) -> float:
        """FLOPs of `embed` on a row of this many tokens.

        Raises:
          NotImplementedError: here; subclasses define it.
        """
        raise NotImplementedError

    def summary(self) -> str:
        """Kind and width, such as "star x 300"."""
        return f"{self.kind} x {self.hidden_size}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`.

        Raises:
          ValueError: for unknown keys and values out of range.
        """
        unknown = sorted(set(values) - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise ValueError(f"unknown keys {', '.join(unknown)}")
        return cls(**values)
