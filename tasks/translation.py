"""The task of translation: a text and its translation into a pivot language, for an encoder and a decoder (T-MDE)."""

from typing import Final

from ..formats.tfrecords.schema import LANGUAGES, PIECES, FeatureSpec
from .registry import Task
from .rows import TEXT

_TOKENS: Final = "WordPiece ids, [CLS] … [SEP]"

TRANSLATION: Final = Task(
    "translation",
    (
        FeatureSpec("source_tokens", "int", (None,), f"{_TOKENS}, of the text", PIECES),
        FeatureSpec("target_tokens", "int", (None,), f"{_TOKENS}, of its translation", PIECES),
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
