"""The newsroom that studies run on by default: generated, crawled and mined as the demo does."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...formats import files
from ...launch.demo import make_newsroom
from ...launch.demo.road import Places
from .arguments import NEWSROOM_SEED

# Half the demo's width and two or three sentences of each text: a core does a step in a quarter of a second.
_NARROW: Final = ("EncoderConfig.hidden_size = 64", "EncoderConfig.embedding_size = 64", "EncoderConfig.mlp_size = 256")
PRETRAIN_GIN: Final = (*_NARROW, "BATCH_SIZE = 16")
TRAIN_GIN: Final = (
    *_NARROW,
    "BATCH_SIZE = 32",
    # The demo's 1e-3 costs so small a model, in so few steps, more of its pretraining than it gains.
    "LEARNING_RATE = 5e-4",
    'TASK_FEATURE_LENGTHS = {"anchor_tokens": 48, "positive_tokens": 48, "negative_tokens": 48, "tokens": 48, "topic_ids": 64}',
)
DEFAULTS: Final[Mapping[str, Any]] = {
    "base": "runs/train_demo.gin",
    "pretrain_base": "runs/pretrain_demo.gin",
    "gin": TRAIN_GIN,
    "pretrain_gin": PRETRAIN_GIN,
    "steps": 60,
    "pretrain_steps": 60,
    "seeds": 3,
    "parallel": 2,
    # A phase on so few articles takes less time than starting workers for it.
    "beam": ("--direct_num_workers=1",),
}
_SCALE: Final = 0.5


def find_newsroom(named: str, output: str, turnover: float = 0.0, beam_args: Sequence[str] = ()) -> Places:
    """The newsroom in the folder ``named``, or in ``output`` if that is "": one that is there as it is, else a new one; mined in either case."""
    folder = named or f"{output}/newsroom"
    places = Places(folder.rstrip("/"))
    known = (
        files.read_json(places.diary)
        if os.path.exists(places.diary)
        else {"seed": NEWSROOM_SEED, "scale": _SCALE, "turnover": turnover}
    )
    return make_newsroom(
        folder, int(known["seed"]), float(known["scale"]), float(known.get("turnover", 0.0)), beam_args
    )
