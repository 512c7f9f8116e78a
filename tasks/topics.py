"""The task of topics: documents with positive and negative topic labels (binary cross-entropy).

A record has several documents, three in the paper: a step of B rows then has 3 B documents, as many as a step of B
triplets has texts. Records of older versions have one document.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

import numpy as np

from ..errors import InputError
from ..formats.tfrecords.schema import PIECES, FeatureSpec
from ..formats.tfrecords.schema import TOPICS as TOPIC_IDS
from ..formats.vocabulary import CLS_ID
from .registry import Task
from .rows import TEXT, CutOrPad, Lengths

NO_LABEL: Final = -1  # pads `topic_labels`: such a slot carries no loss
DOCUMENTS: Final = "documents"  # documents of each record; the data tell
_WORDS_OF_ID: Final = 2


@dataclasses.dataclass(frozen=True)
class OfDocuments:
    """Values of several documents one after another, as many of each; the rule of one document fits each of them.

    Attributes:
      rule: of one document.
    """

    rule: CutOrPad

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:
        """``(length,)`` for one document, ``(documents, length)`` for several.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        return _of_documents(lengths, *self.rule.shape(feature, lengths))

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The values of each document cut or padded, int32 of `shape`.

        Raises:
          InputError: for a number of values that the documents do not divide.
        """
        *several, length = shape
        if not several:
            return self.rule.fit(values, shape)
        if values.size % several[0]:
            raise InputError(**_other_number(f"{values.size} values", several[0]))
        return np.stack([self.rule.fit(part, (length,)) for part in values.reshape(several[0], -1)])


@dataclasses.dataclass(frozen=True)
class DocumentTexts:
    """Texts of documents one after another, each from [CLS] on; places without a document are padding."""

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:
        """``(length,)`` for one document, ``(documents, length)`` for several.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        return _of_documents(lengths, lengths.length(feature))

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The texts cut or padded, int32 of `shape`.

        Raises:
          InputError: for more texts than documents.
        """
        *several, length = shape
        if not several:
            return TEXT.fit(values, shape)
        texts = np.split(values, np.flatnonzero(values == CLS_ID)[1:])
        if len(texts) > several[0]:
            raise InputError(**_other_number(f"{len(texts)} texts", several[0]))
        rows = [TEXT.fit(text, (length,)) for text in texts]
        return np.stack(rows + [np.zeros_like(rows[0])] * (several[0] - len(rows)))


@dataclasses.dataclass(frozen=True)
class DocumentIds:
    """The two words of the id of each document, zeros in places without a document."""

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:  # noqa: ARG002
        """``(2 * documents,)``.

        Raises:
          InputError: for a number of documents that is not positive.
        """
        return (_WORDS_OF_ID * lengths.number(DOCUMENTS),)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The ids, int32 of `shape`.

        Raises:
          InputError: for another number of documents.
        """
        if values.shape != shape:
            found = f"{values.size // _WORDS_OF_ID} documents"
            raise InputError(**_other_number(found, shape[0] // _WORDS_OF_ID))
        return values


def labels_of_documents(record: Mapping[str, np.ndarray]) -> list[int]:
    """The number of labels of each document of a record."""
    labels, (documents,) = record["topic_labels"], documents_of(record)
    if labels.size % documents:
        return [labels.size]  # a damaged record, which no row rule takes
    return [int(count) for count in (labels.reshape(documents, -1) != NO_LABEL).sum(axis=1)]


def documents_of(record: Mapping[str, np.ndarray]) -> list[int]:
    """The number of documents of a record, places without a document included."""
    return [max(1, record["doc_id"].size // _WORDS_OF_ID)]


TOPICS: Final = Task(
    "topics",
    (
        FeatureSpec("tokens", "int", (None,), "WordPiece ids, [CLS] title [SEP] body [SEP] of each document", PIECES),
        FeatureSpec(
            "topic_ids",
            "int",
            (None,),
            "labelled topics of each document, as many slots of each; unlisted topics carry no loss",
            TOPIC_IDS,
        ),
        FeatureSpec("topic_labels", "int", (None,), "1 positive, 0 negative, -1 an empty slot; one per topic_ids"),
        FeatureSpec(
            "doc_id",
            "int",
            (None,),
            "high and low 32 bits of the 64-bit id of each document, two's complement (see doc_id_to_words)",
        ),
    ),
    {
        "tokens": DocumentTexts(),
        "topic_ids": OfDocuments(CutOrPad()),
        "topic_labels": OfDocuments(CutOrPad(like="topic_ids", padding=NO_LABEL)),
        "doc_id": DocumentIds(),
    },
    mixtures=("weak_supervision",),
    sizes={DOCUMENTS: documents_of, "topic_ids": labels_of_documents},
)


def _of_documents(lengths: Lengths, length: int) -> tuple[int, ...]:
    documents = lengths.number(DOCUMENTS)
    return (length,) if documents == 1 else (documents, length)


def _other_number(found: str, documents: int) -> dict[str, str]:
    return {
        "problem": f"got {found} in a record, expected those of {documents}",
        "field": DOCUMENTS,
        "remedy": "Leave 'documents' out of TASK_FEATURE_LENGTHS, so that it is read from the manifest of the data.",
    }
