"""The rows of Table 10: what each leaves out, by which run file, with which other data, and what there must be to leave out.

The wording and the numbers of the paper's table were not at hand when this was written; what each row removes is our reading (see the run files
``gin/runs/ablation_*.gin``), and the direction expected of every row is what the paper argues for each part: without it the scores fall.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

from ...errors import InputError
from ...tasks.triplets import Augmentation
from ..shared.mining import Change, changed

FULL: Final = "full"
EXPECTED: Final = "lower"


@dataclasses.dataclass(frozen=True)
class Needed:
    """Something to leave out, as a job's manifest counts it.

    Attributes:
      job: of the build.
      section: "examples" or "tallies" of its manifest.
      prefix: of the names that count.
    """

    job: str
    section: Literal["examples", "tallies"]
    prefix: str


@dataclasses.dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
      name: on the command line and in tables.
      removes: what is left out, in words.
      gin_file: its run file; None for the full system.
      phase: which of the two trainings that file changes.
      mining: jobs whose options change, so that the row trains on other data than the full system.
      needs: where the mined data hold what the row removes; a count of 0 would make the row the full system under another name.
    """

    name: str
    removes: str
    gin_file: str | None = None
    phase: Literal["pretrain", "train"] = "train"
    mining: Mapping[str, Change] = dataclasses.field(default_factory=dict)
    needs: tuple[Needed, ...] = ()


def _without_weight(augmentation: Augmentation) -> Change:
    """Examples whose augmentations are drawn from the other rows of Table 1, so that batches keep their size."""

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


_TOPICS: Final = Needed("examples", "examples", "topics/")
_TRIPLETS: Final = Needed("examples", "examples", "triplets/")
_MLM, _TLM = Needed("pack", "examples", "mlm/"), Needed("pack", "examples", "tlm/")
_LIST: Final = (
    Row(FULL, "nothing", needs=(_TRIPLETS,)),
    Row("without_pretraining", "pretraining: random parameters at the start", "runs/ablation_without_pretraining.gin"),
    Row(
        "pretraining_without_mlm",
        "documents from pretraining: TLM alone",
        "runs/ablation_pretraining_without_mlm.gin",
        "pretrain",
        needs=(_MLM, _TLM),
    ),
    Row(
        "pretraining_without_tlm",
        "translation pairs from pretraining: MLM alone",
        "runs/ablation_pretraining_without_tlm.gin",
        "pretrain",
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
        needs=(Needed("examples", "tallies", "translation/translated"),),
    ),
)
ROWS: Final[Mapping[str, Row]] = {row.name: row for row in _LIST}


def choose_rows(names: str) -> list[Row]:
    """Rows by their names, comma-separated, or "all"; the full system is always among them and first.

    Raises:
      InputError: for a name that is none.
    """
    wanted = list(ROWS) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in ROWS]
    if unknown or not wanted:
        raise InputError(
            f"no such row: {', '.join(unknown) or 'none given'}",
            field="--rows",
            remedy=f"choose from all, {', '.join(ROWS)}",
        )
    return [row for row in ROWS.values() if row.name in {FULL, *wanted}]
