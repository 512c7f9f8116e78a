"""The kinds of training data: one declaration each.

* ``mlm``, ``tlm``: packed documents and packed translation pairs, for a masked language model.
* ``triplets``: an anchor, a positive of the same event, and one or several hard negatives (InfoNCE).
* ``topics``: documents with positive and negative topic labels (binary cross entropy). A record has several documents,
  three in the paper: a step of B rows then has 3 B documents, as many as a step of B triplets has texts.
* ``pairs``: two texts that belong together and no mined negative; the other pairs of a batch are negatives.
* ``translation``: a text and its translation into a pivot language, for an encoder and a decoder (T-MDE).
* ``pair_classification``, ``token_classification``, ``question_answering``: what XTREME fine-tunes on.
"""

import enum
from typing import Final

from ..formats.tfrecords import LABELS, LANGUAGES, PIECES, FeatureSpec
from ..formats.tfrecords import TOPICS as TOPIC_IDS
from .registry import TEXT, CutOrPad, Ids, Parts, Task, Texts, register

NEGATIVES: Final = "negatives"  # in TASK_FEATURE_LENGTHS: how many hard negatives of a record are read; 1 where absent
DOCUMENTS: Final = "documents"  # documents of each record of topics; the manifest of the data tells
NO_LABEL: Final = -1  # pads `topic_labels`: such a slot carries no loss
_TOKENS: Final = "WordPiece ids, [CLS] … [SEP]"
_DOC_ID: Final = "high and low 32 bits of the 64-bit document id, two's complement (see doc_id_to_words)"
_EVENT: Final = "the two words of the id of its event, 0 if unknown, and its day since 1970-01-01, 0 if unknown"
_ALONG: Final = CutOrPad(like="tokens")


class Augmentation(enum.IntEnum):
    """The rows of the paper's Table 1: the text of the anchor document and the texts of the others."""

    TITLE_TO_BODY = 0  # anchor: title; positive: its own body; negative: a body
    ANCHOR_TEXT_TO_DOCUMENT = 1  # anchor: link text to the document; positive: its own title and body
    TITLE_TO_DOCUMENT = 2  # anchor: title; positive: title and body of the positive document
    DOCUMENT_TO_DOCUMENT = 3  # anchor: title and body; positive: title and body of the positive document


def _values(name: str, meaning: str, holds: str = "", *, optional: bool = False) -> FeatureSpec:
    """Integers whose number varies."""
    return FeatureSpec(name, "int", (None,), meaning, holds, optional)


_PACKED: Final = (
    _values("tokens", "WordPiece ids of the packed row, [L]", PIECES),
    _values("segment_ids", "1-based number of the packed piece, 0 on padding, [L]"),
    _values("positions", "position inside the piece, restarting at 0, [L]"),
    _values("word_ids", "1-based number of the whole word inside the row, 0 on special tokens and padding, [L]"),
)
_PACKED_RULES: Final = {"tokens": CutOrPad(), "segment_ids": _ALONG, "positions": _ALONG, "word_ids": _ALONG}
MLM: Final = register(Task("mlm", _PACKED, _PACKED_RULES, mixtures=("pretrain",), is_packed=True))
TLM: Final = register(Task("tlm", _PACKED, _PACKED_RULES, mixtures=("pretrain",), is_packed=True))

TRIPLETS: Final = register(
    Task(
        "triplets",
        (
            _values("anchor_tokens", _TOKENS, PIECES),
            _values("positive_tokens", _TOKENS, PIECES),
            _values("negative_tokens", f"{_TOKENS}, of one negative or of several one after another", PIECES),
            FeatureSpec("augmentation", "int", (), "row of Table 1, see Augmentation"),
            FeatureSpec("translated", "int", (), "1 if positive and negative were machine-translated to English"),
            FeatureSpec("language", "bytes", (), "BCP-47 tag of the anchor"),
            FeatureSpec("anchor_doc_id", "int", (2,), _DOC_ID),
            FeatureSpec("positive_doc_id", "int", (2,), _DOC_ID),
            _values("negative_doc_id", f"{_DOC_ID}, of each negative"),
            FeatureSpec("anchor_event", "int", (3,), _EVENT, optional=True),
            FeatureSpec("positive_event", "int", (3,), _EVENT, optional=True),
            _values("negative_event", f"{_EVENT}, of each negative", optional=True),
        ),
        {
            "anchor_tokens": TEXT,
            "positive_tokens": TEXT,
            "negative_tokens": Texts(NEGATIVES),
            "negative_doc_id": Ids(NEGATIVES),
            "negative_event": Ids(NEGATIVES, size=3),
        },
        mixtures=("weak_supervision",),
        text="positive_tokens",  # an anchor may be a title alone
        day="anchor_event",
    )
)

TOPICS: Final = register(
    Task(
        "topics",
        (
            _values("tokens", "WordPiece ids, [CLS] title [SEP] body [SEP] of each document", PIECES),
            _values(
                "topic_ids",
                "labelled topics of each document, as many slots of each; unlisted topics carry no loss",
                TOPIC_IDS,
            ),
            _values("topic_labels", "1 positive, 0 negative, -1 an empty slot; one per topic_ids"),
            _values("doc_id", f"{_DOC_ID}, of each document"),
        ),
        {
            "tokens": Texts(DOCUMENTS, is_exact=True),
            "topic_ids": Parts(DOCUMENTS, CutOrPad()),
            "topic_labels": Parts(DOCUMENTS, CutOrPad(like="topic_ids", padding=NO_LABEL)),
            "doc_id": Ids(DOCUMENTS, is_exact=True),
        },
        mixtures=("weak_supervision",),
    )
)

PAIRS: Final = register(
    Task(
        "pairs",
        (
            _values("anchor_tokens", f"{_TOKENS}: an article, or a part of it", PIECES),
            _values("positive_tokens", f"{_TOKENS}: its title, a post, a link text, its other half", PIECES),
            FeatureSpec("language", "bytes", (), "BCP-47 tag of the anchor"),
            FeatureSpec("anchor_doc_id", "int", (2,), _DOC_ID),
            FeatureSpec(
                "positive_doc_id", "int", (2,), f"{_DOC_ID}; a post has the id of the article that it links to"
            ),
            FeatureSpec("day", "int", (), "byline day of the anchor since 1970-01-01, 0 if unknown", optional=True),
        ),
        {"anchor_tokens": TEXT, "positive_tokens": TEXT},
        text="anchor_tokens",  # a positive may be a title alone
        day="day",
    )
)

TRANSLATION: Final = register(
    Task(
        "translation",
        (
            _values("source_tokens", f"{_TOKENS}, of the text", PIECES),
            _values("target_tokens", f"{_TOKENS}, of its translation", PIECES),
            FeatureSpec(
                "target_language",
                "int",
                (),
                "0-based place of the translation's language among the pivots, which the manifest lists",
                LANGUAGES,
            ),
        ),
        {"source_tokens": TEXT, "target_tokens": TEXT},
        text="source_tokens",
    )
)

PAIR_CLASSIFICATION: Final = register(
    Task(
        "pair_classification",
        (
            _values("tokens", f"{_TOKENS}, of both texts, each with its [SEP]", PIECES),
            FeatureSpec("label", "int", (), "of the pair, from 1", LABELS),
        ),
        {"tokens": TEXT},
    )
)

TOKEN_CLASSIFICATION: Final = register(
    Task(
        "token_classification",
        (
            _values("tokens", f"{_TOKENS}, of words", PIECES),
            _values("label", "of the word at its first piece, from 1; 0 elsewhere", LABELS),
        ),
        {"tokens": TEXT, "label": _ALONG},
    )
)

QUESTION_ANSWERING: Final = register(
    Task(
        "question_answering",
        (
            _values("tokens", f"{_TOKENS}, of a question and of a part of its document, each with its [SEP]", PIECES),
            FeatureSpec("start", "int", (), "place of the first token of the answer; 0, [CLS], where it is not here"),
            FeatureSpec("end", "int", (), "place of its last token"),
        ),
        {"tokens": TEXT},
    )
)
