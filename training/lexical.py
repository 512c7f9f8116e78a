"""The start of a hybrid encoder: a public checkpoint, and words from a static model, from TF-IDF, or from both."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.vocabulary import PAD_ID, SPECIAL_TOKENS
from ..models.encoders import Architecture, Capability, HybridConfig
from ..models.encoders.news import EncoderConfig
from ..models.pooling import term_weights

_NO_WEIGHT: Final = -200.0  # exp of it is 0 in float32: special tokens are not words
_PIECES_AT_A_TIME: Final = 4096
_TEXTS_AT_A_TIME: Final = 32


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


def random_projection_of_tfidf(
    frequencies: npt.NDArray[Any], texts: int, size: int, *, lead_length: int = 64, seed: int = 0
) -> LexicalPart:
    """The lexical part that projects TF-IDF at random; it needs no training.

    The weights are scikit-learn's smooth inverse document frequency, ln((1 + n) / (1 + df)) + 1. The entries of the
    table are normal with variance 1 / K, which keeps cosines up to an error of about 1 / sqrt(K) (Johnson and
    Lindenstrauss 1984).

    Args:
      frequencies: texts with each piece, [V], see `document_frequencies`.
      texts: n.
      size: K.
      lead_length: see `LexicalPart`.
      seed: of the projection.
    """
    table = np.random.default_rng(seed).normal(scale=size**-0.5, size=(len(frequencies), size))
    weights = np.log((1 + texts) / (1 + frequencies)) + 1
    logits = np.log(weights)
    logits[: len(SPECIAL_TOKENS)] = _NO_WEIGHT
    return LexicalPart(table.astype(np.float32), logits.astype(np.float32), lead_length)


def document_frequencies(rows: Iterable[npt.NDArray[np.integer[Any]]], vocab_size: int) -> tuple[npt.NDArray[Any], int]:
    """How many texts have each piece, int64 [V], and the number of texts; each row is the ids of one text."""
    counts, number = np.zeros(vocab_size, np.int64), 0
    for row in rows:
        counts[np.unique(row)] += 1
        number += 1
    return counts, number


def joined(parts: Sequence[LexicalPart], rows: Iterable[npt.NDArray[np.integer[Any]]]) -> LexicalPart:
    """The lexical part that has the vectors of several parts side by side, each with an equal share of the cosine.

    The vector of a text has one length in the hybrid, so the shares are equal on average over texts: each part is
    divided by the mean length of its vectors of `rows`.

    Args:
      parts: each with its own table [V, K_i]; all with one lead length.
      rows: the ids of some texts, each [L].

    Returns:
      A part with a table [V, K_1 + K_2 + ...] of rows of length 1.

    Raises:
      ValueError: for parts with several lead lengths, or if there are no texts with words.
    """
    leads = {part.lead_length for part in parts}
    if len(leads) != 1:
        raise ValueError(f"got parts with the lead lengths {sorted(leads)}, expected one")
    texts = list(rows)
    scaled = [np.exp(part.logits)[:, None] * part.table / mean_length(part, texts) for part in parts]
    table = np.concatenate(scaled, axis=1)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    has_weight = lengths > 0
    logits = np.where(has_weight, np.log(np.where(has_weight, lengths, 1)), _NO_WEIGHT)[:, 0]
    table = table / np.where(has_weight, lengths, 1)
    return LexicalPart(table.astype(np.float32), logits.astype(np.float32), leads.pop())


def mean_length(part: LexicalPart, rows: Sequence[npt.NDArray[np.integer[Any]]]) -> float:
    """The mean length of a part's vectors of texts, before they are scaled to length 1.

    Args:
      part: the lexical part.
      rows: the ids of each text, [L].

    Raises:
      ValueError: if no text has words.
    """
    lengths = _lengths(part, rows)
    if not lengths.any():
        raise ValueError(f"got {len(rows)} texts without words, expected some with words")
    return float(lengths[lengths > 0].mean())


def _lengths(part: LexicalPart, rows: Sequence[npt.NDArray[np.integer[Any]]]) -> npt.NDArray[np.float32]:
    """The length of the vector of each text, [N]; texts are computed a few at a time, padded to one shape."""
    longest = max((len(row) for row in rows), default=0)
    weights, table = jnp.exp(part.logits), jnp.asarray(part.table)

    @jax.jit
    def of(tokens: jax.Array) -> jax.Array:
        present = tokens != PAD_ID
        counts = term_weights(tokens, present, lead_length=part.lead_length, sublinear=True)
        return jnp.linalg.norm(jnp.einsum("bl,blk->bk", weights[tokens] * present * counts, table[tokens]), axis=-1)

    found = []
    for start in range(0, len(rows), _TEXTS_AT_A_TIME):
        some = rows[start : start + _TEXTS_AT_A_TIME]
        tokens = np.full((_TEXTS_AT_A_TIME, longest), PAD_ID, np.int32)
        for place, row in enumerate(some):
            tokens[place, : len(row)] = row
        found.append(np.asarray(of(tokens))[: len(some)])
    return np.concatenate(found) if found else np.zeros(0, np.float32)


def lexical_part_of(config: Architecture, params: Mapping[str, Any], *, path: str) -> LexicalPart:
    """The lexical part that computes what a static model computes.

    In a model without layers the vector of a token depends on its piece alone, and the head of a weighted mean is the
    weighted mean of the heads.

    Args:
      config: of a `NewsEncoder` with ``num_layers=0``, weighted pooling and sublinear counts.
      params: its parameters.
      path: its folder, to name in errors.

    Raises:
      InputError: for a model that is not static, or pools in another way.
    """
    if not isinstance(config, EncoderConfig) or Capability.STATIC not in config.capabilities:
        problem = (
            f"got {config.summary()}, expected a static model (num_layers = 0, weighted pooling, no learned positions)"
        )
        raise InputError(problem, path=path, field="model", remedy="Train it with runs/train_static.gin.")
    if not config.sublinear:
        problem, remedy = "copies of a piece count in full", "Train it with SUBLINEAR = True, as train_static.gin."
        raise InputError(problem, path=path, field="model", remedy=remedy)
    module = config.module()

    @jax.jit
    def vectors(params: Any, pieces: jax.Array) -> jax.Array:
        hidden = module.apply({"params": params}, pieces[:, None], method="encode")[:, 0]
        head = params["embedding_head"]
        result: jax.Array = hidden.astype(jnp.float32) @ head["kernel"] + head["bias"]
        return result

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


def hybrid_params(
    params: Mapping[str, Any], config: HybridConfig, words: LexicalPart, *, share: float
) -> dict[str, Any]:
    """The parameters of a hybrid: those of its start, with positions for one window, and the lexical part.

    Args:
      params: of the start; it may lack the weights of weighted pooling, which then are equal.
      config: see `hybrid_config`.
      words: the lexical part.
      share: of the lexical part in the cosine, between 0 and 1.

    Raises:
      ValueError: for a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"got a share of {share}, expected a number between 0 and 1")
    result = dict(params)
    if "position_embedding" in result:
        result["position_embedding"] = result["position_embedding"][: config.position_count]
    if config.pooling == "weighted":
        result.setdefault("pooling_logits", np.zeros(config.vocab_size, np.float32))
    gate = np.asarray(np.log(share / (1 - share)), np.float32)
    return result | {"lexical_table": words.table, "lexical_logits": words.logits, "lexical_gate": gate}
