"""AST against its baselines and its own attention with softmax: linking titles, which stand in for posts, to articles.

The printed figures are those of Danovitch 2020 (tables 1 and 2), on 3,300 held-out posts. The row with softmax is no
part of that paper: it removes what the system adds to the Star-Transformer's attention. The paper reports no test of
significance, and AST leads alone only from P@2000 on, so a loss within error to the convolution is its own picture.
"""

from typing import Final

from ....beam_pipelines.pairs import PairsOptions
from ....beam_pipelines.workflow import Step
from ...shared.recipe import NEWSROOM_DEFAULTS
from ..table import Row, Table

_NARROW: Final = ("WHITENING_ROWS = 1024",)  # of about 1,000 articles


def _baseline(name: str, removes: str) -> Row:
    return Row(name, removes, f"runs/ast_{name}.gin", start="none", data="pairs")


TABLE: Final = Table(
    "ast",
    "AST: linking posts to articles",
    (
        Row("ast", "nothing", "runs/ast_small.gin", start="none", data="pairs"),
        _baseline("softmax", "sparse attention: softmax, alpha = 1, in all heads"),
        _baseline("cnn", "the star: convolutions of widths 1 to 4"),
        _baseline("gru", "the star: a GRU"),
        _baseline("bigru", "the star: a GRU in both directions"),
    ),
    note="Expected is the order of AP that Danovitch 2020 prints; softmax is not among its rows.",
    counted=("pairs",),
    newsroom_suites=(("title_links", "heldout.jsonl"),),
    evaluation={"draws": True},
    test="paired bootstrap over articles",
    defaults={
        "base": "models/linking_small.gin",
        "pretrain_base": "runs/pretrain_small.gin",
        "seeds": 3,
        "parallel": 1,
        "evaluations": 2,
    },
    newsroom_defaults={
        **NEWSROOM_DEFAULTS,
        "base": "models/linking_small.gin",
        "gin": _NARROW,
        "steps": 200,
        "evaluations": 2,
    },
    steps=(Step("pairs", {"articles": "clean", "vocabulary": "vocabulary"}),),
    options={"pairs": PairsOptions(of="titles")},
    printed={
        "ast": {"AP": 0.5301, "ROC AUC": 0.975, "mRP": 0.8131, "P@3000": 0.579},
        "cnn": {"AP": 0.4981, "ROC AUC": 0.9709, "mRP": 0.8105, "P@3000": 0.5553},
        "gru": {"AP": 0.4353, "ROC AUC": 0.9603, "mRP": 0.7668, "P@3000": 0.4993},
        "bigru": {"AP": 0.4758, "ROC AUC": 0.9605, "mRP": 0.8029, "P@3000": 0.5427},
    },
)
