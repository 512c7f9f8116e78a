"""The task of triplets: an anchor, a positive of the same event, and one or several hard negatives (InfoNCE)."""

import dataclasses
import enum
from typing import Final

import numpy as np

from ..errors import InputError
from ..formats.tfrecords.schema import PIECES, FeatureSpec
from ..formats.vocabulary import CLS_ID
from .registry import Task
from .rows import TEXT, CutOrPad, Lengths

NEGATIVES: Final = "negatives"  # in TASK_FEATURE_LENGTHS: how many hard negatives of a record are read; 1 where absent
_TOKENS: Final = "WordPiece ids, [CLS] … [SEP]"
_EVENT: Final = "the two words of the id of its event, 0 if unknown, and its day since 1970-01-01, 0 if unknown"
_DOC_ID: Final = "high and low 32 bits of the 64-bit document id, two's complement (see doc_id_to_words)"


class Augmentation(enum.IntEnum):
    """The rows of the paper's Table 1: the text of the anchor document and the texts of the others."""

    TITLE_TO_BODY = 0  # anchor: title; positive: its own body; negative: a body
    ANCHOR_TEXT_TO_DOCUMENT = 1  # anchor: link text to the document; positive: its own title and body
    TITLE_TO_DOCUMENT = 2  # anchor: title; positive: title and body of the positive document
    DOCUMENT_TO_DOCUMENT = 3  # anchor: title and body; positive: title and body of the positive document


@dataclasses.dataclass(frozen=True)
class NegativeTexts:
    """Texts one after another, each cut or padded; texts that a record does not have are padding."""

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:
        """``(length,)`` for one negative, ``(negatives, length)`` for several.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        length, negatives = lengths.length(feature), lengths.number(NEGATIVES)
        return (length,) if negatives == 1 else (negatives, length)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The first texts of `values`, each of which begins with [CLS], int32 of `shape`."""
        *several, length = shape
        negatives = several[0] if several else 1
        texts = np.split(values, np.flatnonzero(values == CLS_ID)[1:])
        rows = [TEXT.fit(text, (length,)) for text in texts[:negatives]]
        return np.stack(rows + [np.zeros_like(rows[0])] * (negatives - len(rows))) if several else rows[0]


@dataclasses.dataclass(frozen=True)
class NegativeIds:
    """Ids of the negatives one after another, some integers each; those that a record does not have are 0.

    Attributes:
      size: integers of each negative.
    """

    size: int = 2

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:  # noqa: ARG002
        """``(size * negatives,)``.

        Raises:
          InputError: for a number of negatives that is not positive.
        """
        return (self.size * lengths.number(NEGATIVES),)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The first ids of `values`, int32 of `shape`.

        Raises:
          InputError: for a number of values that is not a multiple of `size`.
        """
        if values.size % self.size:
            raise InputError(
                f"got {values.size} values, expected {self.size} for each negative",
                field="negative_doc_id" if self.size == 2 else "negative_event",
                remedy="Write the records again.",
            )
        return CutOrPad().fit(values, shape)


TRIPLETS: Final = Task(
    "triplets",
    (
        FeatureSpec("anchor_tokens", "int", (None,), _TOKENS, PIECES),
        FeatureSpec("positive_tokens", "int", (None,), _TOKENS, PIECES),
        FeatureSpec(
            "negative_tokens", "int", (None,), f"{_TOKENS}, of one negative or of several one after another", PIECES
        ),
        FeatureSpec("augmentation", "int", (), "row of Table 1, see Augmentation"),
        FeatureSpec("translated", "int", (), "1 if positive and negative were machine-translated to English"),
        FeatureSpec("language", "bytes", (), "BCP-47 tag of the anchor"),
        FeatureSpec("anchor_doc_id", "int", (2,), _DOC_ID),
        FeatureSpec("positive_doc_id", "int", (2,), _DOC_ID),
        FeatureSpec("negative_doc_id", "int", (None,), f"{_DOC_ID}, of each negative"),
        FeatureSpec("anchor_event", "int", (3,), _EVENT, optional=True),
        FeatureSpec("positive_event", "int", (3,), _EVENT, optional=True),
        FeatureSpec("negative_event", "int", (None,), f"{_EVENT}, of each negative", optional=True),
    ),
    {
        "anchor_tokens": TEXT,
        "positive_tokens": TEXT,
        "negative_tokens": NegativeTexts(),
        "negative_doc_id": NegativeIds(),
        "negative_event": NegativeIds(3),
    },
    mixtures=("weak_supervision",),
    text="positive_tokens",  # an anchor may be a title alone
    day="anchor_event",
)
