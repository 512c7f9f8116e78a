"""The task of topics: documents with positive and negative topic labels (binary cross-entropy)."""

from typing import Final

from ..formats.tfrecords.schema import PIECES, FeatureSpec
from ..formats.tfrecords.schema import TOPICS as TOPIC_IDS
from .registry import Task
from .rows import TEXT, CutOrPad

NO_LABEL: Final = -1  # pads `topic_labels`: such a slot carries no loss

TOPICS: Final = Task(
    "topics",
    (
        FeatureSpec("tokens", "int", (None,), "WordPiece ids, [CLS] title [SEP] body [SEP]", PIECES),
        FeatureSpec(
            "topic_ids",
            "int",
            (None,),
            "labelled topics of this document; unlisted topics carry no loss",
            TOPIC_IDS,
        ),
        FeatureSpec("topic_labels", "int", (None,), "1 positive, 0 negative, one per topic_ids"),
        FeatureSpec(
            "doc_id",
            "int",
            (2,),
            "high and low 32 bits of the 64-bit document id, two's complement (see doc_id_to_words)",
        ),
    ),
    {
        "tokens": TEXT,
        "topic_ids": CutOrPad(),
        "topic_labels": CutOrPad(like="topic_ids", padding=NO_LABEL),
    },
    mixtures=("weak_supervision",),
)
