"""The four rows of the paper's Table 1: which text of the anchor meets which text of the others. Pure functions over tokens.

A positive and a negative always are of the same type (body, or title and body): otherwise the encoder would learn to tell
types apart instead of events.
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
    """One training example: int32 ids with special tokens, the documents of its texts, and whether two were put into English."""

    augmentation: Augmentation
    anchor_tokens: np.ndarray
    positive_tokens: np.ndarray
    negative_tokens: np.ndarray
    positive_doc_id: str
    negative_doc_id: str
    translated: bool = False


def token_overlap(anchor_text: np.ndarray, title: np.ndarray) -> float:
    """Share of the anchor text's different tokens that the title holds, in [0, 1]; 0 for a text of a word or two.

    Works in every script, since it compares ids and not words at spaces.
    """
    tokens = np.unique(anchor_text)
    if tokens.size < _FEWEST_ANCHOR_TOKENS:
        return 0.0
    return float(np.isin(tokens, title).mean())


def usable_anchor_texts(
    anchor_texts: Sequence[np.ndarray], title: np.ndarray, similarity: Similarity, least: float, limit: int
) -> tuple[np.ndarray, ...]:
    """Anchor texts that are similar enough to the title to stand for the document, each once, the most similar first.

    Args:
      anchor_texts: int32 ids of the texts of links to the document.
      title: int32 ids of its title.
      similarity: of an anchor text to a title.
      least: texts that are less similar are left out.
      limit: at most so many.
    """
    scored = {tuple(text.tolist()): similarity(text, title) for text in anchor_texts}
    best = sorted((-score, ids) for ids, score in scored.items() if ids and score >= least)[:limit]
    return tuple(np.array(ids, np.int32) for _, ids in best)


def possible_augmentations(
    anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
) -> tuple[Augmentation, ...]:
    """Rows of Table 1 whose texts are all there."""
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
    """Draws up to ``count`` different rows, each with the probability of its weight among those that are left.

    Args:
      possible: rows whose texts are there.
      weights: by row of Table 1; a row of weight 0 is never drawn.
      count: rows to draw.
      key: the same key draws the same rows.
    """
    left = [row for row in possible if weights[row] > 0]
    drawn: list[Augmentation] = []
    while left and len(drawn) < count:
        shares = np.cumsum([weights[row] for row in left])
        place = int(np.searchsorted(shares, uniform_draw("augmentation", key, len(drawn)) * shares[-1], side="right"))
        drawn.append(left.pop(min(place, len(left) - 1)))  # the smallest weights round up to the very end
    return drawn


def positive_document(row: Augmentation, anchor: DocumentTokens, positive: DocumentTokens) -> DocumentTokens:
    """The document of a row's positive text: rows 0 and 1 take the anchor's own text."""
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
    """The texts of one row of Table 1.

    Args:
      row: one of :func:`possible_augmentations`.
      anchor: document.
      positive: document, see :func:`positive_document`.
      negative: document.
      max_length: of each text in tokens, special tokens included.
      key: draws the anchor text, if there are several.
      english: translations of the row's positive document and of the negative, whose texts stand in for theirs.
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
