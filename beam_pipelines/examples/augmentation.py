"""The augmentations of Table 1 of the paper: which text of the anchor is paired with which text of the others.

Pure functions over tokens. The positive and the negative text always have the same type (body, or title and body).
Otherwise the encoder would learn to distinguish types instead of events.
"""

from collections.abc import Sequence

import numpy as np

from ...tasks.kinds import Augmentation
from ...tasks.vocabulary import join_document
from ..texts import uniform_draw
from ..token_store import DocumentTokens

_NOTHING = np.zeros(0, np.int32)
_FEWEST_ANCHOR_TOKENS = 3  # "here", "read more"
_LEAST_OVERLAP = 0.5  # of an anchor text with the title
_MOST_ANCHOR_TEXTS = 8  # of a document


def token_overlap(anchor_text: np.ndarray, title: np.ndarray) -> float:
    """Returns the share of the distinct tokens of an anchor text that are in the title, in [0, 1].

    An anchor text with fewer than three distinct tokens gets 0. Works for every script, because it compares token ids
    and not words separated by spaces.
    """
    tokens = np.unique(anchor_text)
    return float(np.isin(tokens, title).mean()) if tokens.size >= _FEWEST_ANCHOR_TOKENS else 0.0


def usable_anchor_texts(anchor_texts: Sequence[np.ndarray], title: np.ndarray) -> list[np.ndarray]:
    """Returns the anchor texts that are similar enough to the title, without repeats, the most similar first.

    Args:
      anchor_texts: int32 ids of the texts of links to the document.
      title: int32 ids of its title.
    """
    scored = {tuple(text.tolist()): token_overlap(text, title) for text in anchor_texts}
    best = sorted((-score, ids) for ids, score in scored.items() if score >= _LEAST_OVERLAP)[:_MOST_ANCHOR_TEXTS]
    return [np.array(ids, np.int32) for _, ids in best]


def possible_augmentations(
    anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
) -> tuple[Augmentation, ...]:
    """Returns the rows of Table 1 for which all texts exist."""
    own, others, far = (bool(one.title.size or one.body.size) for one in (anchor, positive, negative))
    conditions = {
        Augmentation.TITLE_TO_BODY: anchor.title.size and anchor.body.size and negative.body.size,
        Augmentation.ANCHOR_TEXT_TO_DOCUMENT: anchor.anchor_texts and far and own,
        Augmentation.TITLE_TO_DOCUMENT: anchor.title.size and others and far,
        Augmentation.DOCUMENT_TO_DOCUMENT: own and others and far,
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
    row: Augmentation, anchor: DocumentTokens, others: Sequence[DocumentTokens], max_length: int, key: str
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the texts of one row of Table 1: the anchor's, and those of the positive and the negatives.

    Args:
      row: one of :func:`possible_augmentations`.
      anchor: anchor document.
      others: the :func:`positive_document` and the negatives, or their translations.
      max_length: largest length of each text in tokens, including special tokens.
      key: seed for choosing one of several anchor texts.
    """
    title, body = anchor.title, _NOTHING
    if row is Augmentation.DOCUMENT_TO_DOCUMENT:
        body = anchor.body
    elif row is Augmentation.ANCHOR_TEXT_TO_DOCUMENT:
        title = anchor.anchor_texts[int(uniform_draw("anchor text", key) * len(anchor.anchor_texts))]
    titles = [_NOTHING if row is Augmentation.TITLE_TO_BODY else one.title for one in others]
    texts = [join_document(own, one.body, max_length) for own, one in zip(titles, others, strict=True)]
    return join_document(title, body, max_length), texts
