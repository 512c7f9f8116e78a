"""SimLTE without each of its parts: halves of articles as pairs, sentences as units, the masked language model.

The printed figures are those of Table 2 of the paper (an anonymous ACL submission) on BBC News; its SimCSE_long is the
row of one text twice, its BERT the model before any of this training. The other rows are not part of the paper.
"""

import json
from typing import Final

from ....beam_pipelines.pairs import PairsOptions
from ....beam_pipelines.workflow import Step
from ...shared.mining import changed
from ...shared.recipe import NEWSROOM_DEFAULTS
from ..table import Row, Table

_DATA: Final = "pairs"
_LENGTHS: Final = {"anchor_tokens": 48, "positive_tokens": 48}
_NARROW: Final = (
    "EncoderConfig.hidden_size = 64",
    "EncoderConfig.embedding_size = 64",
    "EncoderConfig.mlp_size = 128",
    "BATCH_SIZE = 32",
    f"TASK_FEATURE_LENGTHS = {json.dumps(_LENGTHS)}",
)


def _row(name: str, removes: str, gin_file: str | None = None, unit: str = "") -> Row:
    mining = {_DATA: changed(unit=unit)} if unit else {}
    return Row(name, removes, gin_file, start="none", mining=mining, data=_DATA)


TABLE: Final = Table(
    "simlte",
    "SimLTE: halves of articles",
    (
        _row("halves", "nothing"),
        _row("mlm_only", "the contrastive loss: masked words alone", "runs/simlte_mlm_only.gin"),
        _row("without_mlm", "the masked language model: the contrastive loss alone", "runs/simlte_without_mlm.gin"),
        _row("same_text", "halves: one text twice, which dropout tells apart", unit="none"),
        _row("words", "sentences: words are dealt to the two texts", unit="word"),
    ),
    note=(
        "Expected is the paper's argument that every part helps; it has no row for words. All rows start from random "
        "parameters; the paper's start from BERT."
    ),
    counted=(_DATA,),
    newsroom_suites=(("topic_clustering", "heldout.jsonl"), ("events", "heldout.jsonl")),
    # Few-shot alone: BBC News and AG News as in the section of the paper on few examples.
    evaluation={"tasks": ("few_shot",), "shots": (5,)},
    metric="5-shot macro-F1",
    defaults={
        "base": "runs/simlte_small.gin",
        "pretrain_base": "runs/pretrain_small.gin",
        "seeds": 3,
        "parallel": 1,
        "evaluations": 1,
    },
    newsroom_defaults={
        **NEWSROOM_DEFAULTS,
        "base": "runs/simlte_small.gin",
        "gin": _NARROW,
        "steps": 60,
        "evaluations": 1,
    },
    steps=(Step(_DATA, {"articles": "clean", "vocabulary": "vocabulary"}),),
    options={_DATA: PairsOptions(of="halves")},
    printed={
        "halves (SimLTE_bert)": {"BBC MLP macro-F1": 0.9558, "BBC 5-shot macro-F1": 0.8631},
        "same_text (SimCSE_long)": {"BBC MLP macro-F1": 0.943, "BBC 5-shot macro-F1": 0.8396},
        "(BERT)": {"BBC MLP macro-F1": 0.9034, "BBC 5-shot macro-F1": 0.5273},
    },
)
