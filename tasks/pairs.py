"""The task of pairs: two texts that belong together and no mined negative; the other pairs of a batch are negatives."""

from typing import Final

from ..formats.tfrecords.schema import PIECES, FeatureSpec
from .registry import Task
from .rows import TEXT

_TOKENS: Final = "WordPiece ids, [CLS] … [SEP]"
_DOC_ID: Final = "high and low 32 bits of the 64-bit document id, two's complement (see doc_id_to_words)"

PAIRS: Final = Task(
    "pairs",
    (
        FeatureSpec("anchor_tokens", "int", (None,), f"{_TOKENS}: an article, or a part of it", PIECES),
        FeatureSpec(
            "positive_tokens", "int", (None,), f"{_TOKENS}: its title, a post, a link text, its other half", PIECES
        ),
        FeatureSpec("language", "bytes", (), "BCP-47 tag of the anchor"),
        FeatureSpec("anchor_doc_id", "int", (2,), _DOC_ID),
        FeatureSpec("positive_doc_id", "int", (2,), f"{_DOC_ID}; a post has the id of the article that it links to"),
        FeatureSpec("day", "int", (), "byline day of the anchor since 1970-01-01, 0 if unknown", optional=True),
    ),
    {"anchor_tokens": TEXT, "positive_tokens": TEXT},
    text="anchor_tokens",  # a positive may be a title alone
    day="day",
)
