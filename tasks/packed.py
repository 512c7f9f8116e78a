"""The pretraining tasks: packed documents (mlm) and packed translation pairs (tlm), for a masked language model."""

from typing import Final

from ..formats.tfrecords.schema import PIECES, FeatureSpec
from .registry import Task
from .rows import CutOrPad

_ALONG: Final = CutOrPad(like="tokens")
_FEATURES: Final = (
    FeatureSpec("tokens", "int", (None,), "WordPiece ids of the packed row, [L]", PIECES),
    FeatureSpec("segment_ids", "int", (None,), "1-based number of the packed piece, 0 on padding, [L]"),
    FeatureSpec("positions", "int", (None,), "position inside the piece, restarting at 0, [L]"),
    FeatureSpec(
        "word_ids",
        "int",
        (None,),
        "1-based number of the whole word inside the row, 0 on special tokens and padding, [L]",
    ),
)
_RULES: Final = {"tokens": CutOrPad(), "segment_ids": _ALONG, "positions": _ALONG, "word_ids": _ALONG}

MLM: Final = Task("mlm", _FEATURES, _RULES, mixtures=("pretrain",), is_packed=True)
TLM: Final = Task("tlm", _FEATURES, _RULES, mixtures=("pretrain",), is_packed=True)
