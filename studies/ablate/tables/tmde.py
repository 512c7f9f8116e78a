"""T-MDE with and without the distance, and with other encoders (thesis, Tables 4.3, 4.4 and 4.6)."""

from typing import Final

from ....beam_pipelines.translations import TranslationsOptions
from ....beam_pipelines.workflow import Step
from ...shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS
from ..table import Direction, Row, Table

_DATA: Final = "translations"
_PIVOTS: Final = ("en", "es")


def _row(name: str, differs: str, gin_file: str | None, expected: Direction = "higher") -> Row:
    return Row(name, differs, gin_file, start="none", expected=expected, data=_DATA)


TABLE: Final = Table(
    "tmde",
    "T-MDE",
    (
        _row("T-MDE", "nothing: a transformer whose vector alone is translated", None),
        _row("cT-MDE", "the missing distance: with it and its negatives", "runs/tmde_contrastive.gin"),
        _row(
            "cT-MDE_P", "pooling by the first token: learned vectors pool; with distance", "runs/tmde_contrastive_p.gin"
        ),
        _row("T-MDE_F", "the bottleneck: the decoder reads all outputs", "runs/tmde_f.gin", "lower"),
        _row("LASER", "the transformer: a BiLSTM and an LSTM", "runs/laser_paper.gin", "lower"),
        _row("cLASER", "the transformer: a BiLSTM and an LSTM; with distance", "runs/laser_contrastive.gin", "lower"),
    ),
    note=(
        "Expected is the thesis's order of the mean accuracy over 20 pairs of languages of MLDoc (Cross): T-MDE 73.5, "
        "cT-MDE 75.2, cT-MDE_P 76.0, T-MDE_F 60.7, LASER_6 70.3, cLASER_6 72.6."
    ),
    counted=("translation",),
    steps=(Step(_DATA, {"bitext": "@bitext", "vocabulary": "vocabulary"}),),
    options={_DATA: TranslationsOptions(pivots=_PIVOTS)},
    # Ten folds of the official parts together, and the mean over pairs of different languages (Table 4.4).
    newsroom_suites=(("mldoc_laser", "mldoc"),),
    evaluation={"folds": 10},
    test="paired t-test over ten folds, with the variance of Nadeau and Bengio",
    group="Cross",
    defaults={**DEFAULTS, "base": "runs/tmde_paper.gin", "evaluations": 4},
    newsroom_defaults={
        **NEWSROOM_DEFAULTS,
        "base": "runs/tmde_small.gin",
        "gin": (
            "TASK_FEATURE_LENGTHS = {'source_tokens': 32, 'target_tokens': 32}",
            "BATCH_SIZE = 32",
            # Three thousand documents are read once for each model: their first third is enough for the topic.
            "TEXT_LENGTH = 96",
        ),
        "steps": 300,
        "evaluations": 1,
    },
)
