"""NTDV over two frozen translators, with and without the distance (thesis, Table 3.2)."""

from typing import Final

from ....beam_pipelines.translations import TranslationsOptions
from ....beam_pipelines.workflow import Step
from ...shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS
from ..table import Direction, Row, Table

_DATA: Final = "translations"
_LANGUAGES: Final = ("en", "de")  # translator k writes language k
_PAIR: Final = ("english", "german")
# Of the recipe before the parts say their direction.
_ANY: Final = ("MIXTURE_OR_TASK_NAME = 'translation'",)


def _row(name: str, differs: str, gin_file: str | None, expected: Direction = "lower") -> Row:
    return Row(name, differs, gin_file, start="none", expected=expected, data=_DATA)


def _printed(to_german: float, to_english: float) -> dict[str, float]:
    return {"RCV english→german": to_german, "RCV german→english": to_english}


TABLE: Final = Table(
    "ntdv",
    "NTDV: layers between two frozen translators",
    (
        _row("cNV_con", "nothing: the heads' means side by side", None),
        _row("cNV_sum", "three quarters of the vector: the sum of the heads' means", "runs/ntdv_sum.gin"),
        _row("NV", "the distance: translation alone", "runs/ntdv_without_distance.gin"),
    ),
    note=(
        "Expected is the thesis's order of accuracy across languages (Table 3.2, RCV1/RCV2, SVM): cNV_con, cNV_sum "
        "and, far below, NV. All rows of a seed have the same translators."
    ),
    counted=("translation",),
    steps=(Step(_DATA, {"bitext": "@bitext", "vocabulary": "vocabulary"}),),
    options={_DATA: TranslationsOptions(pivots=_LANGUAGES)},
    parts={
        "translators_0": ("MIXTURE_OR_TASK_NAME = 'translation/de-en'",),
        "translators_1": ("MIXTURE_OR_TASK_NAME = 'translation/en-de'",),
    },
    newsroom_suites=(("mldoc_svm", "mldoc"),),
    # Six folds, from each of both languages to the other (section 3.4).
    evaluation={"folds": 6, "languages": _PAIR},
    test="paired t-test over six folds, with the variance of Nadeau and Bengio",
    group="Cross",
    defaults={
        **DEFAULTS,
        "base": "runs/ntdv_paper.gin",
        "pretrain_base": "runs/ntdv_translator_paper.gin",
        "pretrain_gin": _ANY,
        "evaluations": 1,
    },
    newsroom_defaults={
        **NEWSROOM_DEFAULTS,
        "base": "runs/ntdv_small.gin",
        "gin": (),
        "pretrain_base": "runs/ntdv_translator_small.gin",
        "pretrain_gin": (),
        "steps": 300,
        "pretrain_steps": 600,
        "evaluations": 1,
    },
    printed={"cNV_con": _printed(0.898, 0.810), "cNV_sum": _printed(0.889, 0.791), "NV": _printed(0.356, 0.419)},
)
