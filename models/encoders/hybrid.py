"""The hybrid encoder: the document embedding of a transformer and a weighted bag of word pieces.

Events differ by names, places and numbers. A transformer that reads for meaning blurs them, and counting words (TF-IDF)
finds them but misses paraphrases. The embedding holds both, each with its share of the cosine::

    embedding = [sqrt(1 - g) dense, sqrt(g) words],  g = sigmoid(lexical_gate) n / (n + 64)

for a text of n tokens: a sentence has too few words to count, and is compared by its meaning.
``dense`` is the `NewsEncoder`'s embedding. ``words`` is the weighted mean of a table of vectors over the word pieces of
the text, scaled to length 1: a static model, which `training.lexical` trains first or computes from TF-IDF. All of it
can be trained. Hybrids of sparse and dense retrieval: Luan et al. 2021, "Sparse, Dense, and Attentional Representations
for Text Retrieval".

Shapes as in `news`, and K units of the lexical part.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Final

import flax.linen as nn
import jax
import jax.numpy as jnp

from ..architecture import Capability, register
from ..attention import PAD_ID, of_unit_length, term_weights
from ..blocks import normal, parameter
from ..transformer import HALF_LENGTH
from .news import EncoderConfig, NewsEncoder, stop_rows

HYBRID_KIND: Final = "hybrid"


class HybridEncoder(NewsEncoder):
    """A `NewsEncoder` whose embedding has a lexical part; parameters of the former keep their names."""

    config: "HybridConfig"

    def setup(self) -> None:
        """Declares the parameters of the `NewsEncoder`, and of the lexical part."""
        super().setup()
        config, start = self.config, normal(self.config.lexical_size**-0.5)
        shape = (config.vocab_size, config.lexical_size)
        self.lexical_table = parameter(self, "lexical_table", start, shape, "vocab", "embedding")
        self.lexical_logits = parameter(self, "lexical_logits", nn.initializers.zeros, (config.vocab_size,), "vocab")
        self.lexical_gate = self.param("lexical_gate", nn.initializers.zeros, (), jnp.float32)

    def embed_hidden(self, hidden: jax.Array, tokens: jax.Array, stopped: jax.Array | None = None) -> jax.Array:
        """Embeddings [B, D] from the tokens [B, L] and the vectors of the first of them, [B, M, H] from `encode`.

        The lexical part learns nothing from rows that are `stopped`, bool [B].
        """
        count = jnp.sum((tokens != PAD_ID).astype(jnp.float32), axis=-1, keepdims=True)
        share = jax.nn.sigmoid(self.lexical_gate) * count / (count + HALF_LENGTH)
        dense, words = super().embed_hidden(hidden, tokens, stopped), stop_rows(self.embed_words(tokens), stopped)
        return jnp.concatenate([jnp.sqrt(1 - share) * dense, jnp.sqrt(share) * words], axis=-1)

    def pool(self, hidden: jax.Array, tokens: jax.Array) -> jax.Array:
        """The pooled vector of the part of each row that the layers read: [B, M, H] -> float32 [B, H]."""
        read = min(hidden.shape[1], self._context(tokens).shape[1])
        return super().pool(hidden[:, :read], tokens[:, :read])

    def embed_words(self, tokens: jax.Array) -> jax.Array:
        """The lexical part, float32 [B, K] of length 1, or 0 for a text without words.

        The pieces of a text are weighted by ``exp(lexical_logits)``, their place and the logarithm of their number.
        """
        config = self.config
        weights = jnp.exp(self.lexical_logits[tokens]) * (tokens != PAD_ID)
        weights *= term_weights(tokens, tokens != PAD_ID, lead_length=config.lexical_lead_length, sublinear=True)
        return of_unit_length(jnp.einsum("bl,blk->bk", weights, self.lexical_table[tokens]))

    def _context(self, tokens: jax.Array) -> jax.Array:
        return tokens[:, : self.config.context_length or None]


@register
@dataclasses.dataclass(frozen=True)
class HybridConfig(EncoderConfig):
    """The hybrid encoder's shape: the `TransformerConfig` of its transformer, and its lexical part.

    A run may train with another `context_length` than its start: the parameters do not depend on it.

    Attributes:
      embedding_size: width of the whole embedding, D; the dense part has ``embedding_size - lexical_size`` units.
      lexical_size: units of the lexical part, K.
      lexical_lead_length: a piece at position p of its text counts 1 / (1 + p / lexical_lead_length); 0: all the same.
      context_length: tokens of a text that the layers read; the lexical part reads all `max_length`. 0: all of them.
    """

    kind: ClassVar[str] = HYBRID_KIND
    module_class: ClassVar[type[nn.Module]] = HybridEncoder
    free_options: ClassVar[tuple[str, ...]] = (*EncoderConfig.free_options, "context_length")

    least: ClassVar[Mapping[str, int]] = {
        **EncoderConfig.least,
        **dict.fromkeys(("lexical_lead_length", "context_length"), 0),
    }

    lexical_size: int = 512
    lexical_lead_length: int = 256
    context_length: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        rest = f"less than embedding_size = {self.embedding_size}: the rest is the dense part"
        self.require("lexical_size", self.lexical_size < self.embedding_size, rest)

    @property
    def dense_size(self) -> int:
        """Units of the dense part."""
        return self.embedding_size - self.lexical_size

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a `NewsEncoder` can do, without the layouts of `transformers`, which have no lexical part.

        The lexical part is not in the pooled vector, so it is never static.
        """
        return super().capabilities - {Capability.HUGGING_FACE, Capability.STATIC}

    def summary(self) -> str:
        """Layers and width, and the lexical part."""
        return f"{super().summary()} and {self.lexical_size} lexical units"
