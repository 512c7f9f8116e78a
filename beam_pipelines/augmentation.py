"""The augmentations of Table 1 of the paper: which text of the anchor is paired with which text of the others.

Pure functions over tokens. The positive and the negative text always have the same type (body, or title and body).
Otherwise the encoder would learn to distinguish types instead of events.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ..tasks.triplets import Augmentation
from ..tasks.vocabulary import join_document
from .texts import uniform_draw
from .token_store import DocumentTokens

Similarity = Callable[[np.ndarray, np.ndarray], float]  # of an anchor text to a title, both int32 ids, in [0, 1]
_NOTHING = np.zeros(0, np.int32)
_FEWEST_ANCHOR_TOKENS = 3  # "here", "read more"


@dataclasses.dataclass(frozen=True)
class AugmentedTriplet:
    """One training example.

    Attributes:
      augmentation: row of Table 1.
      anchor_tokens: int32 ids with special tokens.
      positive_tokens: int32 ids with special tokens.
      negative_tokens: int32 ids with special tokens.
      positive_doc_id: document of the positive text.
      negative_doc_id: document of the negative text.
      translated: whether the positive and the negative text were translated into English.
    """

    augmentation: Augmentation
    anchor_tokens: np.ndarray
    positive_tokens: np.ndarray
    negative_tokens: np.ndarray
    positive_doc_id: str
    negative_doc_id: str
    translated: bool


def token_overlap(anchor_text: np.ndarray, title: np.ndarray) -> float:
    """Returns the share of the distinct tokens of an anchor text that are in the title, in [0, 1].

    An anchor text with fewer than three distinct tokens gets 0. Works for every script, because it compares token ids
    and not words separated by spaces.
    """
    tokens = np.unique(anchor_text)
    if tokens.size < _FEWEST_ANCHOR_TOKENS:
        return 0.0
    return float(np.isin(tokens, title).mean())


def usable_anchor_texts(
    anchor_texts: Sequence[np.ndarray], title: np.ndarray, similarity: Similarity, least: float, limit: int
) -> tuple[np.ndarray, ...]:
    """Returns the anchor texts that are similar enough to the title, without repeats, the most similar first.

    Args:
      anchor_texts: int32 ids of the texts of links to the document.
      title: int32 ids of its title.
      similarity: similarity of an anchor text to a title.
      least: texts that are less similar are left out.
      limit: largest number of texts to return.
    """
    scored = {tuple(text.tolist()): similarity(text, title) for text in anchor_texts}
    best = sorted((-score, ids) for ids, score in scored.items() if ids and score >= least)[:limit]
    return tuple(np.array(ids, np.int32) for _, ids in best)


def possible_augmentations(
    anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
) -> tuple[Augmentation, ...]:
    """Returns the rows of Table 1 for which all texts exist."""
    has_negative = bool(negative.title.size or negative.body.size)
    has_positive = bool(positive.title.size or positive.body.size)
    conditions = {
        Augmentation.TITLE_TO_BODY: anchor.title.size and anchor.body.size and negative.body.size,
        Augmentation.ANCHOR_TEXT_TO_DOCUMENT: anchor.anchor_texts
        and has_negative
        and (anchor.title.size or anchor.body.size),
        Augmentation.TITLE_TO_DOCUMENT: anchor.title.size and has_positive and has_negative,
        Augmentation.DOCUMENT_TO_DOCUMENT: (anchor.title.size or anchor.body.size) and has_positive and has_negative,
    }
    return tuple(row for row, holds in conditions.items() if holds)


def draw_augmentations(
    possible: Sequence[Augmentation], weights: Sequence[float], count: int, key: str
) -> list[Augmentation]:
    """Draws up to ``count`` distinct rows, each in proportion to its weight among the rows that are left.

    Args:
      possible: rows for which all texts exist.
      weights: weight of each row of Table 1; a row of weight 0 is never drawn.
      count: number of rows to draw.
      key: seed of the draw: the same key draws the same rows.
    """
    left = [row for row in possible if weights[row] > 0]
    drawn: list[Augmentation] = []
    while left and len(drawn) < count:
        shares = np.cumsum([weights[row] for row in left])
        place = int(np.searchsorted(shares, uniform_draw("augmentation", key, len(drawn)) * shares[-1], side="right"))
        drawn.append(left.pop(min(place, len(left) - 1)))  # rounding may push a tiny weight past the end
    return drawn


def positive_document(row: Augmentation, anchor: DocumentTokens, positive: DocumentTokens) -> DocumentTokens:
    """Returns the document of a row's positive text: rows 0 and 1 use the anchor's own text."""
    return anchor if row in (Augmentation.TITLE_TO_BODY, Augmentation.ANCHOR_TEXT_TO_DOCUMENT) else positive


def augment(
    row: Augmentation,
    anchor: DocumentTokens,
    positive: DocumentTokens,
    negative: DocumentTokens,
    max_length: int,
    key: str,
    english: tuple[DocumentTokens, DocumentTokens] | None = None,
) -> AugmentedTriplet:
    """Returns the texts of one row of Table 1.

    Args:
      row: one of :func:`possible_augmentations`.
      anchor: anchor document.
      positive: positive document, see :func:`positive_document`.
      negative: negative document.
      max_length: largest length of each text in tokens, including special tokens.
      key: seed for choosing one of several anchor texts.
      english: translations of the row's positive document and of the negative, whose texts replace the originals.
    """
    other, negative = english or (positive_document(row, anchor, positive), negative)
    with_title = row is not Augmentation.TITLE_TO_BODY
    return AugmentedTriplet(
        row,
        _anchor_tokens(row, anchor, max_length, key),
        join_document(other.title if with_title else _NOTHING, other.body, max_length),
        join_document(negative.title if with_title else _NOTHING, negative.body, max_length),
        other.doc_id,
        negative.doc_id,
        english is not None,
    )


def _anchor_tokens(row: Augmentation, anchor: DocumentTokens, max_length: int, key: str) -> np.ndarray:
    if row is Augmentation.DOCUMENT_TO_DOCUMENT:
        return join_document(anchor.title, anchor.body, max_length)
    if row is Augmentation.ANCHOR_TEXT_TO_DOCUMENT:
        place = int(uniform_draw("anchor text", key) * len(anchor.anchor_texts))
        return join_document(anchor.anchor_texts[place], _NOTHING, max_length)
    return join_document(anchor.title, _NOTHING, max_length)
