"""The start of a hybrid encoder: a public checkpoint, and words from a static model, from TF-IDF, or from both."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..formats.vocabulary import SPECIAL_TOKENS
from ..models.encoders import HybridConfig
from ..models.encoders.news import EncoderConfig

_NO_WEIGHT: Final = -200.0  # exp of it is 0 in float32: special tokens are not words
_PIECES_AT_A_TIME: Final = 4096


@dataclasses.dataclass(frozen=True)
class LexicalPart:
    """What a hybrid's lexical part starts from.

    Attributes:
      table: float32 [V, K].
      logits: float32 [V], the logarithms of the weights of the pieces.
      lead_length: see `HybridConfig.lexical_lead_length`.
    """

    table: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32]
    lead_length: int

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """The table times the weights, [V, K]; 0 for special tokens."""
        return np.exp(np.float32(self.logits))[:, None] * self.table


def random_projection_of_tfidf(weights: npt.NDArray[Any], size: int, *, lead_length: int) -> LexicalPart:
    """The lexical part that projects TF-IDF at random; it needs no training.

    The entries of the table are normal with variance 1 / K, which keeps cosines up to an error of about 1 / sqrt(K)
    (Johnson and Lindenstrauss 1984).

    Args:
      weights: the inverse document frequency of each piece, [V].
      size: K.
      lead_length: see `LexicalPart`.
    """
    table = np.random.default_rng(0).normal(scale=size**-0.5, size=(len(weights), size))
    logits = np.log(weights)
    logits[: len(SPECIAL_TOKENS)] = _NO_WEIGHT
    return LexicalPart(table.astype(np.float32), logits.astype(np.float32), lead_length)


def joined(parts: Sequence[LexicalPart], terms: Any) -> LexicalPart:
    """The lexical part that has the vectors of several parts side by side, each with an equal share of the cosine.

    The vector of a text has one length in the hybrid, so the shares are equal on average over texts: each part is
    divided by the mean length of its vectors of some texts.

    Args:
      parts: each with its own table [V, K_i]; all with one lead length.
      terms: sparse [N, V], what each piece counts in each of these texts apart from the weight of the piece, by this
        lead length; at least one of the texts has words.

    Returns:
      A part with a table [V, K_1 + K_2 + ...] of rows of length 1.
    """
    vectors = [part.vectors for part in parts]
    scaled = [own / np.linalg.norm(terms @ own, axis=1).mean() for own in vectors]
    return part_of(np.concatenate(scaled, axis=1), parts[0].lead_length)


def part_of(vectors: npt.NDArray[Any], lead_length: int) -> LexicalPart:
    """The lexical part of vectors that have the weights of their pieces, [V, K]; 0 for pieces that are not words."""
    lengths = np.linalg.norm(vectors, axis=1)
    known = lengths > 0
    logits = np.full(len(vectors), _NO_WEIGHT)
    logits[known] = np.log(lengths[known])
    table = vectors / np.where(known, lengths, 1)[:, None]
    return LexicalPart(table.astype(np.float32), logits.astype(np.float32), lead_length)


def lexical_part_of(config: EncoderConfig, params: Mapping[str, Any]) -> LexicalPart:
    """The lexical part that computes what a static model computes.

    In a model without layers the vector of a token depends on its piece alone, and the head of a weighted mean is the
    weighted mean of the heads.

    Args:
      config: of a `NewsEncoder` with ``num_layers=0``, weighted pooling and sublinear counts.
      params: its parameters.
    """
    module = config.module()

    @jax.jit
    def vectors(params: Any, pieces: jax.Array) -> jax.Array:
        hidden = module.apply({"params": params}, pieces[:, None], method="encode")[:, 0]
        head = params["embedding_head"]
        return hidden.astype(jnp.float32) @ head["kernel"] + head["bias"]

    # The vector of [PAD] is never read, and attention over nothing has no meaning.
    pieces = np.maximum(np.arange(config.vocab_size, dtype=np.int32), 1)
    cuts = range(_PIECES_AT_A_TIME, len(pieces), _PIECES_AT_A_TIME)
    parts = [vectors(dict(params), part) for part in np.split(pieces, cuts)]
    logits = np.asarray(params["pooling_logits"], np.float32)
    return LexicalPart(np.concatenate(parts).astype(np.float32), logits, config.lead_length)


def hybrid_config(start: EncoderConfig, words: LexicalPart, *, max_length: int, window_length: int) -> HybridConfig:
    """The shape of a hybrid of an encoder and words.

    Args:
      start: the shape of its transformer.
      words: its lexical part.
      max_length: tokens of a text that it reads.
      window_length: tokens that the layers read at a time.

    Raises:
      ValueError: for lengths out of range.
    """
    values = {field.name: getattr(start, field.name) for field in dataclasses.fields(start)}
    size = words.table.shape[1]
    changed = {"embedding_size": start.embedding_size + size, "max_length": max_length, "window_length": window_length}
    return HybridConfig(**values | changed, lexical_size=size, lexical_lead_length=words.lead_length)


def dense_part(config: HybridConfig, params: Mapping[str, Any]) -> tuple[EncoderConfig, dict[str, Any]]:
    """Returns the transformer of a hybrid alone, its shape and its parameters, which reads one window.

    Its embedding of a text within one window is the dense part of the hybrid's, scaled to length 1.

    Args:
      config: of the hybrid.
      params: of the hybrid.
    """
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(EncoderConfig)}
    changed = {"embedding_size": config.dense_size, "max_length": config.position_count, "window_length": 0}
    kept = {name: value for name, value in params.items() if not name.startswith("lexical_")}
    return EncoderConfig(**values | changed), kept


def hybrid_params(
    params: Mapping[str, Any], config: HybridConfig, words: LexicalPart, *, share: float
) -> dict[str, Any]:
    """The parameters of a hybrid: those of its start, with positions for one window, and the lexical part.

    Args:
      params: of the start; it may lack the weights of weighted pooling, which then are equal.
      config: see `hybrid_config`.
      words: the lexical part.
      share: of the lexical part in the cosine, between 0 and 1.
    """
    result = dict(params)
    if "position_embedding" in result:
        result["position_embedding"] = result["position_embedding"][: config.position_count]
    if config.pooling == "weighted":
        result.setdefault("pooling_logits", np.zeros(config.vocab_size, np.float32))
    gate = np.asarray(np.log(share / (1 - share)), np.float32)
    return result | {"lexical_table": words.table, "lexical_logits": words.logits, "lexical_gate": gate}
