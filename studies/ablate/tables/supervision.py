"""What each of three teachers is worth: topics, entities that cross languages, and mined translation pairs.

The translation pairs of pretraining are those that the bitext job finds in the articles of the build; files of
``--bitext`` are not read.
"""

from typing import Final

from ....beam_pipelines.workflow import Step
from ...shared.mining import changed
from ...shared.newsroom import ACROSS_LANGUAGES
from ..table import Needed, Row, Table

_TRIPLETS: Final = Needed("examples", "examples", "triplets/")
_TOPICS: Final = Needed("examples", "examples", "topics/")
_TLM: Final = Needed("pack", "examples", "tlm/")

TABLE: Final = Table(
    "supervision",
    "Supervision",
    (
        Row("all", "nothing", needs=(_TRIPLETS,)),
        Row("without_topics", "topics: triplets alone", "runs/ablation_without_topics.gin", needs=(_TRIPLETS, _TOPICS)),
        Row(
            "without_entities_across",
            "entities of several languages: each language has its own",
            mining={"entities": changed(across_languages=False)},
            # One teacher at a time: labels and pairs stay.
            keeps=("bitext", "pack", "topics"),
            needs=(Needed("entities", "tallies", "mentions"),),
        ),
        Row(
            "without_mined_pairs",
            "mined translation pairs from pretraining: MLM alone",
            "runs/ablation_pretraining_without_tlm.gin",
            start="own",
            needs=(_TLM,),
        ),
    ),
    note="Expected is the paper's argument that each teacher helps; it has no table for them.",
    steps=(
        Step(
            "bitext",
            {"articles": "clean", "vectors": "vectors", "encoder": "@bitext_encoder", "known_pairs": "@known_pairs"},
        ),
        Step("pack", {"articles": "clean", "vocabulary": "vocabulary", "bitext": "bitext"}),
    ),
    keeps_options=True,
    newsroom_suites=(("events", "heldout.jsonl"), ("events_across", ACROSS_LANGUAGES)),
    evaluation={"draws": True},
    by_part=True,
    test="paired bootstrap over events",
)
