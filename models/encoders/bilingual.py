"""NTDV: one space for two languages over two frozen translators.

Source: Wei Li, "Multilingual document embedding from translation", thesis at HKUST 2021, chapter 3 (NV, cNV_sum and
cNV_con). Two translators with attention (`attentive`), of which number k writes language k and reads the other one,
keep their parameters. Three layers between their encoders and decoders are shared by both languages and trained::

    z_t = GRU over the encoder's states
    p_i = mean over t of head i of a self-attention over z, i = 1 … r          P = [p_1 … p_r]
    h_t = linear map of [z_t; p_1 + … + p_r], which the decoder reads instead of the encoder's states

A document is the sum of the p_i (cNV_sum) or all of them side by side (cNV_con). The thesis does not describe the
third layer; the map is our reading, as are a self-attention without an output layer and a GRU in one direction.

The thesis knows the language of a text. Here a text is a row of word pieces, so the model tells the language itself, by
a score of each piece that training learns (the sum over a text is the log odds of language 1). Both translators read
every text, and the one of its language counts.

Shapes: B rows, L source tokens, T target tokens, D units of a head, R heads, V word pieces.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Architecture, Capability
from ..attention import PAD_ID, TYPES
from ..blocks import logical
from ..decoder import Reading, of_unit_length
from ..multi_head import linear
from ..recurrence import Gru, mean_of_tokens
from .attentive import AttentiveConfig, AttentiveTranslator, recurrent_flops
from .fields import FieldsConfig
from .registry import register

__all__ = ["Bilingual", "BilingualConfig"]

_PARTS = ("translators_0", "translators_1")
_VECTORS = ("concatenation", "sum")


class Bilingual(nn.Module):
    """Two translators, and the layers that are trained between their encoders and decoders."""

    config: "BilingualConfig"

    def setup(self) -> None:
        """Declares the translators, the shared layers and the scores of the languages."""
        config, dtype = self.config, TYPES[self.config.dtype]
        self.translators = [AttentiveTranslator(config.translator) for _ in _PARTS]
        self.shared_recurrence = Gru(config.vector_size, False, dtype)
        width = config.num_heads * config.vector_size
        self.shared_heads = linear(3 * width, ("embed", "heads"), dtype, "shared_heads")
        self.shared_states = linear(2 * config.hidden_size, ("embed", "mlp"), dtype, "shared_states")
        scores = logical(nn.initializers.zeros, "vocab")
        self.language_scores = self.param("language_scores", scores, (config.vocab_size,), jnp.float32)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Logits of the tokens as their own translation, summed over both translators, float32 [B, L, V]."""
        logits = self.language_logits(tokens)[:, None, None]
        for number in range(len(_PARTS)):
            states = self.write(self.read(tokens, number), tokens, number)
            logits = logits + self.translators[number].target_logits(states)
        return logits

    def read(self, tokens: jax.Array, number: int, *, deterministic: bool = True) -> Reading:
        """The `Reading` of texts int32 [B, L] that translator `number` reads, so not of language `number`.

        Its `sentence` is P, [B, R D], head by head, and its `states` are those that the decoder reads.
        """
        config = self.config
        _, states, is_token = self.translators[number].read(tokens, deterministic=deterministic)
        states = self.shared_recurrence(states, is_token)
        shape = (*tokens.shape, 3, config.num_heads, config.vector_size)
        query, key, value = jnp.moveaxis(self.shared_heads(states).reshape(shape), 2, 0)
        heads = jax.nn.dot_product_attention(query, key, value, mask=is_token[:, None, None, :], implementation="xla")
        width = config.num_heads * config.vector_size
        vector = mean_of_tokens(heads.reshape(*tokens.shape, width), is_token)
        total = jnp.broadcast_to(self._total(vector).astype(states.dtype)[:, None], states.shape)
        states = self.shared_states(jnp.concatenate([states, total], axis=-1))
        return Reading(vector, jnp.where(is_token[..., None], states, 0), is_token)

    def write(self, reading: Reading, inputs: jax.Array, number: int, *, deterministic: bool = True) -> jax.Array:
        """The states before the output table of translator `number`, at tokens int32 [B, T]: [B, T, E]."""
        languages = jnp.full(inputs.shape[0], number, jnp.int32)
        states: jax.Array = self.translators[number].write(reading, inputs, languages, deterministic=deterministic)
        return states

    def target_logits(self, states: jax.Array, number: int) -> jax.Array:
        """Logits of translator `number`, float32 [B, T, V]."""
        logits: jax.Array = self.translators[number].target_logits(states)
        return logits

    def target_table(self, number: int) -> tuple[jax.Array, jax.Array]:
        """Table [V, E] and bias [V] of translator `number`."""
        table: tuple[jax.Array, jax.Array] = self.translators[number].target_table()
        return table

    def language_logits(self, tokens: jax.Array) -> jax.Array:
        """The log odds that texts int32 [B, L] are in language 1, float32 [B]."""
        return jnp.sum(jnp.where(tokens != PAD_ID, self.language_scores[tokens], 0.0), axis=1)

    def sentence(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """P of texts int32 [B, L] in the language that they seem to be in, not scaled: float32 [B, R D]."""
        is_second = self.language_logits(tokens)[:, None] > 0
        # A translator reads the language that it does not write.
        first, second = (self.read(tokens, number, deterministic=deterministic).sentence for number in (1, 0))
        return jnp.where(is_second, second, first)

    def embed(self, tokens: jax.Array, *, deterministic: bool = True) -> jax.Array:
        """The document scaled to length 1, float32 [B, D] as a sum or [B, R D] side by side."""
        vector = self.sentence(tokens, deterministic=deterministic)
        return of_unit_length(self._total(vector) if self.config.vector == "sum" else vector)

    def _total(self, vector: jax.Array) -> jax.Array:
        """The sum of the heads' parts: [B, R D] -> [B, D]."""
        return jnp.sum(vector.reshape(-1, self.config.num_heads, self.config.vector_size), axis=1)


@register
@dataclasses.dataclass(frozen=True)
class BilingualConfig(FieldsConfig):
    """NTDV as an `Architecture`. The defaults are the thesis's.

    Attributes:
      vocab_size: word pieces of both languages together, V.
      max_length: the longest row that the model reads; the thesis trains on at most 50 words.
      token_size: of both translators, see `AttentiveConfig`.
      hidden_size: of both translators.
      vector_size: units of the shared GRU and of each head, D.
      num_heads: heads of the shared self-attention, R.
      vector: the document: "concatenation" of the heads' means (cNV_con) or their "sum" (cNV_sum). Both have the same
        loss, so that a model of one can be read as the other.
      dropout_rate: of both translators.
      dtype: of the products; states and parameters stay float32.
    """

    kind: ClassVar[str] = "bilingual"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.BILINGUAL, Capability.PARTS})
    free_options: ClassVar[tuple[str, ...]] = ("dtype", "dropout_rate", "max_length", "vector")
    num_languages: ClassVar[int] = 2

    vocab_size: int
    max_length: int = 1024
    token_size: int = 500
    hidden_size: int = 1024
    vector_size: int = 1024
    num_heads: int = 4
    vector: Literal["concatenation", "sum"] = "concatenation"
    dropout_rate: float = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vector not in _VECTORS:
            raise ValueError(f"BilingualConfig.vector: got {self.vector!r}, expected {' or '.join(_VECTORS)}")

    @property
    def translator(self) -> AttentiveConfig:
        """The shape of each translator."""
        names = ("vocab_size", "max_length", "token_size", "hidden_size", "num_languages", "dropout_rate", "dtype")
        return AttentiveConfig(**{name: getattr(self, name) for name in names})

    @property
    def parts(self) -> Mapping[str, Architecture]:
        """The translators, by the name of their parameters; number k writes language k."""
        return dict.fromkeys(_PARTS, self.translator)

    @property
    def embedding_size(self) -> int:
        """Width of the embedding, that of a head or of all."""
        return self.vector_size if self.vector == "sum" else self.num_heads * self.vector_size

    def module(self) -> nn.Module:
        """The `Bilingual`."""
        return Bilingual(self)

    def flops(self, method: str, length: int) -> float:
        """Model FLOPs of one forward pass on one row, of matrix products only.

        For L tokens, units H of a translator, D of a head, R heads; e and w are a translator's "embed" and "write"::

            read     e + L (6 D (2 H + D) + 6 R D^2 + 4 L R D + 8 D H)
            embed    2 read
            write    w

        Raises:
          ValueError: for another method.
        """
        if method == "write":
            return self.translator.flops(method, length)
        if method not in ("read", "embed"):
            raise ValueError(f"got the method {method!r}, expected embed, read or write")
        size, width = self.vector_size, self.num_heads * self.vector_size
        attention = 6 * size * width + 4 * length * width
        shared = recurrent_flops(2 * self.hidden_size, size) + attention + 8 * size * self.hidden_size
        read = self.translator.flops("embed", length) + length * shared
        return 2 * read if method == "embed" else read

    def summary(self) -> str:
        """The translators and the vector."""
        return f"two translators of GRUs x {self.hidden_size}, {self.num_heads} heads x {self.vector_size} between them"
