"""The training-data contract: names, dtypes and shapes of the features of every TFRecord.

Pipelines write by these tables and trainers read by them, so the two cannot drift apart. A record is one
``tf.train.Example``; integers are stored as ``int64_list`` and read back as int32. Files lie at
``<dir>/task=<task>/language=<language>/part-*.tfrecord`` with the record counts in ``<dir>/manifest.json``
under ``"examples"`` as ``{"<task>/<language>": count}``.
"""

import enum
from typing import Final

# Moved to formats; re-exported until every module imports them from there.
from ..formats.records import doc_id_to_words, words_to_doc_id  # noqa: F401
from ..formats.tfrecords.schema import PIECES, TOPICS, FeatureSpec
from ..formats.vocabulary import CLS_ID, MASK_ID, PAD_ID, SEP_ID, SPECIAL_TOKENS, UNK_ID  # noqa: F401


class TaskName(enum.StrEnum):
    """The four training tasks; a (language, task) pair names one set of TFRecords."""

    MLM = "mlm"  # packed documents, masked language model
    TLM = "tlm"  # packed translation pairs, masked language model
    TRIPLETS = "triplets"  # (anchor, positive, negative), InfoNCE
    TOPICS = "topics"  # document-topic labels, BCE


class Augmentation(enum.IntEnum):
    """The rows of the paper's Table 1: which text of the anchor document meets which text of the others."""

    TITLE_TO_BODY = 0  # anchor: title; positive: its own body; negative: a body
    ANCHOR_TEXT_TO_DOCUMENT = 1  # anchor: link text to the document; positive: its own title and body
    TITLE_TO_DOCUMENT = 2  # anchor: title; positive: title and body of the positive document
    DOCUMENT_TO_DOCUMENT = 3  # anchor: title and body; positive: title and body of the positive document


_TOKENS = "WordPiece ids"
_DOC_ID = "high and low 32 bits of the 64-bit document id, two's complement (see doc_id_to_words)"

PRETRAINING_FEATURES: Final = (
    FeatureSpec("tokens", "int", (None,), f"{_TOKENS} of the packed row, [L]", PIECES),
    FeatureSpec("segment_ids", "int", (None,), "1-based number of the packed piece, 0 on padding, [L]"),
    FeatureSpec("positions", "int", (None,), "position inside the piece, restarting at 0, [L]"),
    FeatureSpec(
        "word_ids",
        "int",
        (None,),
        "1-based number of the whole word inside the row, 0 on special tokens and padding, [L]",
    ),
)

TRIPLET_FEATURES: Final = (
    FeatureSpec("anchor_tokens", "int", (None,), f"{_TOKENS}, [CLS] … [SEP]", PIECES),
    FeatureSpec("positive_tokens", "int", (None,), f"{_TOKENS}, [CLS] … [SEP]", PIECES),
    FeatureSpec(
        "negative_tokens",
        "int",
        (None,),
        f"{_TOKENS}, [CLS] … [SEP], of one negative or of several one after another",
        PIECES,
    ),
    FeatureSpec("augmentation", "int", (), "row of Table 1, see Augmentation"),
    FeatureSpec("translated", "int", (), "1 if positive and negative were machine-translated to English"),
    FeatureSpec("language", "bytes", (), "BCP-47 tag of the anchor"),
    FeatureSpec("anchor_doc_id", "int", (2,), _DOC_ID),
    FeatureSpec("positive_doc_id", "int", (2,), _DOC_ID),
    FeatureSpec("negative_doc_id", "int", (None,), f"{_DOC_ID}, of each negative"),
)

TOPIC_FEATURES: Final = (
    FeatureSpec("tokens", "int", (None,), f"{_TOKENS}, [CLS] title [SEP] body [SEP]", PIECES),
    FeatureSpec("topic_ids", "int", (None,), "labelled topics of this document; unlisted topics carry no loss", TOPICS),
    FeatureSpec("topic_labels", "int", (None,), "1 positive, 0 negative, one per topic_ids"),
    FeatureSpec("doc_id", "int", (2,), _DOC_ID),
)

FEATURES: Final[dict[TaskName, tuple[FeatureSpec, ...]]] = {
    TaskName.MLM: PRETRAINING_FEATURES,
    TaskName.TLM: PRETRAINING_FEATURES,
    TaskName.TRIPLETS: TRIPLET_FEATURES,
    TaskName.TOPICS: TOPIC_FEATURES,
}
