"""Table 10 of the paper: the system without each of its parts.

The wording and the numbers of the paper's table were not available. What each row removes is our reading (see the run
files ``gin/runs/ablation_*.gin``), and every row is expected to score lower, as the paper argues for each part.
"""

import dataclasses
from typing import Any, Final

from ....tasks.triplets import Augmentation
from ...shared.mining import Change, changed
from ..table import Needed, Row, Table

_TOPICS: Final = Needed("examples", "examples", "topics/")
_TRIPLETS: Final = Needed("examples", "examples", "triplets/")
_MLM: Final = Needed("pack", "examples", "mlm/")
_TLM: Final = Needed("pack", "examples", "tlm/")


def _without_weight(augmentation: Augmentation) -> Change:
    """Draws the augmentations from the other rows of Table 1, so that batches keep their size."""

    def change(options: Any) -> Any:
        weights = [0.0 if number == augmentation else weight for number, weight in enumerate(options.weights)]
        return dataclasses.replace(options, weights=tuple(weights))

    return change


def _augmentation_row(augmentation: Augmentation) -> Row:
    name = augmentation.name.lower()
    return Row(
        f"without_{name}",
        f"the augmentation {name.replace('_', ' ')}",
        f"runs/ablation_without_{name}.gin",
        mining={"examples": _without_weight(augmentation)},
        needs=(Needed("examples", "tallies", f"augmentation/{name}"),),
    )


_ROWS: Final = (
    Row("full", "nothing", needs=(_TRIPLETS,)),
    Row(
        "without_pretraining",
        "pretraining: random parameters at the start",
        "runs/ablation_without_pretraining.gin",
        start="none",
    ),
    Row(
        "pretraining_without_mlm",
        "documents from pretraining: TLM alone",
        "runs/ablation_pretraining_without_mlm.gin",
        start="own",
        needs=(_MLM, _TLM),
    ),
    Row(
        "pretraining_without_tlm",
        "translation pairs from pretraining: MLM alone",
        "runs/ablation_pretraining_without_tlm.gin",
        start="own",
        needs=(_MLM, _TLM),
    ),
    Row("without_triplets", "triplets: topics alone", "runs/ablation_without_triplets.gin", needs=(_TRIPLETS, _TOPICS)),
    Row("without_topics", "topics: triplets alone", "runs/ablation_without_topics.gin", needs=(_TRIPLETS, _TOPICS)),
    Row("without_hard_negatives", "mined negatives", "runs/ablation_without_hard_negatives.gin", needs=(_TRIPLETS,)),
    Row(
        "without_evergreen_filter",
        "the evergreen filter: triplets mined without it",
        "runs/ablation_without_evergreen_filter.gin",
        mining={"triplets": changed(max_evergreen_score=1.0)},
        needs=(Needed("triplets", "tallies", "negatives dropped as evergreen"),),
    ),
    *map(_augmentation_row, Augmentation),
    Row(
        "without_translation",
        "translation: the same triplets in their own language",
        "runs/ablation_without_translation.gin",
        mining={"examples": changed(translate_share=0.0)},
        not_needed=("translation_models",),
        needs=(Needed("examples", "tallies", "translation/translated"),),
    ),
)
TABLE: Final = Table(
    "newsembed",
    "Ablation",
    _ROWS,
    note="Expected is what the paper argues for each part; its own table was not available.",
    newsroom_suites=(
        ("events", "heldout.jsonl"),
        ("events", "paraphrases.jsonl"),
        ("topic_clustering", "heldout.jsonl"),
        ("sts", "sts.tsv"),
    ),
)
