"""XTREME's metrics, as its ``evaluate.py`` computes them, between 0 and 1.

Pairs have accuracy. Words have the F1 of `seqeval` over the entities of PAN-X, and likewise over the parts of speech of
UD-POS, where neighbouring words of one tag are an entity. Answers have SQuAD's F1 and exact match (Rajpurkar et al.
2016), those of MLQA with the articles and words of each language (Lewis et al. 2020, ``mlqa_evaluation_v1.py``).
"""

import collections
import re
import statistics
import string
import sys
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from ...errors import InputError
from . import XtremeTask
from .readers import Gold

# MLQA's. The Arabic pattern is that of the official script, where ^ stands behind the article.
_ARTICLES: Final = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",  # noqa: RUF001
}
_CHARACTERS: Final = re.compile("[\u4e00-\u9fa5]")  # each is a word


def scores(task: XtremeTask, language: str, gold: Gold, found: Gold) -> dict[str, float]:
    """The metrics of a test file by name, XTREME's main one first.

    Args:
      task: whose.
      language: of the file.
      gold: its labels.
      found: predictions in the form of `gold`; of questions, one answer by key.

    Raises:
      InputError: for another number of predictions than labels.
    """
    if task.head == "span":
        return answer_scores(gold, found, normalizer(language if task.name == "mlqa" else None))
    lengths = [1 if task.head == "pair" else len(row) for row in gold]
    if lengths != [1 if task.head == "pair" else len(row) for row in found]:
        problem = f"{sum(lengths)} labels in {len(gold)} rows, but the test file has other rows or words"
        raise InputError(problem, path=task.labels_file.format(language), remedy="give the labels of this test file")
    if task.head == "pair":
        return {"accuracy": statistics.fmean(one == two for one, two in zip(gold, found, strict=True))}
    return tag_scores(gold, found)


def tag_scores(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1, precision and recall of entities, and the accuracy of words.

    Args:
      gold: the labels of each sentence.
      found: as many.
    """
    from seqeval import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that parts of speech are no entities, and of figures that are 0
        names = {"F1": metrics.f1_score, "precision": metrics.precision_score, "recall": metrics.recall_score}
        entities = {name: float(of(list(map(list, gold)), list(map(list, found)))) for name, of in names.items()}
    return {**entities, "accuracy": float(metrics.accuracy_score(gold, found))}


def answer_scores(
    gold: Mapping[str, Sequence[str]], found: Mapping[str, str], normalize: Callable[[str], str]
) -> dict[str, float]:
    """F1 of words and exact match; of several answers to a question the nearest counts, and a missing one scores 0.

    Args:
      gold: the answers to each question.
      found: the predicted answer.
      normalize: see `normalizer`.
    """
    f1, exact = 0.0, 0.0
    for key, answers in gold.items():
        mine = [normalize(found[key])] * len(answers) if key in found else []
        pairs = list(zip(mine, map(normalize, answers), strict=False))
        f1 += max((_word_f1(one.split(), two.split()) for one, two in pairs), default=0.0)
        exact += any(one == two for one, two in pairs)
    return {"F1": f1 / len(gold), "exact match": exact / len(gold)}


def _word_f1(found: list[str], gold: list[str]) -> float:
    common = (collections.Counter(found) & collections.Counter(gold)).total()
    return 2 * common / (len(found) + len(gold)) if common else 0.0


def normalizer(language: str | None) -> Callable[[str], str]:
    """What answers are compared by: words in lower case without punctuation and articles.

    >>> normalizer(None)("The Eiffel Tower!"), normalizer("de")("Der Turm"), normalizer("zh")("北京, China")
    ('eiffel tower', 'turm', '北 京 china')

    Args:
      language: of MLQA; None for SQuAD's English rules, which XTREME applies to all languages of XQuAD and TyDiQA.
    """
    dropped = str.maketrans(dict.fromkeys(string.punctuation if language is None else _punctuation()))
    articles = _ARTICLES.get(language or "en")

    def normalize(answer: str) -> str:
        words = answer.lower().translate(dropped)
        words = re.sub(articles, " ", words) if articles else words
        if language == "zh":
            words = _CHARACTERS.sub(r" \g<0> ", words)
        return " ".join(words.split())

    return normalize


@cache
def _punctuation() -> str:
    every = map(chr, range(sys.maxunicode))
    return "".join(sign for sign in every if unicodedata.category(sign).startswith("P")) + string.punctuation
