"""Semantic textual similarity: Spearman's rank correlation between people's scores and cosines.

Protocol. Each pair's two sentences are embedded as documents without a title; the predicted score is their cosine; SciPy's Spearman
correlation (ties share their mean rank) over all pairs of the file, as MTEB does. STS-B is also scored by genre (the paper's Table 4).
Layouts are told apart by their first lines, each as it is distributed: SemEval's ``score<TAB>sentence1<TAB>sentence2``, a fourth column
naming the part (a language, a genre) that is scored by itself too; STS-B's ``sts-*.csv``
(tab-separated, no header, no quoting: genre, file, year, number, score, sentence1, sentence2, …); SICK's with its header line.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..tasks.errors import InputError
from .benchmark import ALL, Score
from .encoders import Document, Embeddings, paired_cosines

_LAYOUTS: Final = "score<TAB>sentence1<TAB>sentence2[<TAB>part], STS-B's sts-*.csv, or SICK's annotated .txt"


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, people's similarity score, and the genre ("" where the layout has none)."""

    score: float
    first: str
    second: str
    genre: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    name: str
    score: int
    first: int
    second: int
    genre: int | None = None
    header: bool = False

    @property
    def columns(self) -> int:
        return max(self.score, self.first, self.second) + 1


_SEMEVAL: Final = _Layout("SemEval", 0, 1, 2)
_PARTED: Final = _Layout("SemEval with a part", 0, 1, 2, genre=3)
_STSB: Final = _Layout("STS-B", 4, 5, 6, genre=0)


@dataclasses.dataclass(frozen=True)
class Sts:
    """An STS benchmark over one file; ``name`` is shown in tables."""

    path: str
    name: str = "sts"

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def protocol(self) -> Mapping[str, Any]:
        return {"suite": "sts", "similarity": "cosine", "correlation": "spearman", "aggregation": "concatenation"}

    @functools.cached_property
    def _pairs(self) -> list[Pair]:
        return read_pairs(self.path)

    def documents(self) -> Sequence[Document]:
        return [Document("", pair.first) for pair in self._pairs] + [Document("", pair.second) for pair in self._pairs]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """``Spearman`` over all pairs and by genre.

        Raises:
          InputError: if all cosines are equal, which has no correlation.
        """
        count = len(self._pairs)
        predicted = paired_cosines(embeddings[:count], embeddings[count:])
        gold = np.array([pair.score for pair in self._pairs])
        genres = np.array([pair.genre for pair in self._pairs])
        scores = [_spearman(gold, predicted, ALL)]
        for genre in sorted(set(genres) - {""}):
            members = genres == genre
            if len(set(gold[members])) > 1:
                scores.append(_spearman(gold[members], predicted[members], str(genre)))
        return scores


def read_pairs(path: str) -> list[Pair]:
    """Reads the scored pairs of one file; pairs without a score (SemEval leaves some out) are skipped.

    Raises:
      InputError: on a missing file, wrong columns, a score that is no number, an empty sentence, or one score for all pairs.
    """
    lines = _lines(path)
    layout = _layout(lines, path)
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
    pairs = [_pair(columns, layout, f"{path}:{number}") for number, columns in rows[int(layout.header) :]]
    scored = [pair for pair in pairs if pair is not None]
    if len({pair.score for pair in scored}) < 2:
        raise InputError(
            f"{len(scored)} scored pairs with fewer than two distinct scores", path=path, remedy="give a file whose scores differ"
        )
    return scored


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().split("\n")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy=f"give a file as distributed: {_LAYOUTS}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error}", path=path, remedy="convert it to UTF-8") from error


def _layout(lines: list[str], path: str) -> _Layout:
    first = next((line for line in lines if line.strip()), "").rstrip("\r").split("\t")
    if {"sentence_A", "sentence_B", "relatedness_score"} <= set(first):
        return _Layout("SICK", first.index("relatedness_score"), first.index("sentence_A"), first.index("sentence_B"), header=True)
    if len(first) >= _STSB.columns and _number(first[_STSB.score]) is not None:
        return _STSB
    if len(first) == _SEMEVAL.columns + 1 and _number(first[_PARTED.score]) is not None:
        return _PARTED
    if len(first) == _SEMEVAL.columns and (not first[0].strip() or _number(first[0]) is not None):
        return _SEMEVAL
    raise InputError(f"the first line has {len(first)} tab-separated columns of no known layout", path=path, remedy=f"give {_LAYOUTS}")


def _pair(columns: list[str], layout: _Layout, where: str) -> Pair | None:
    if len(columns) < layout.columns:
        raise InputError(
            f"got {len(columns)} tab-separated columns, expected at least {layout.columns} ({layout.name})",
            path=where,
            remedy="mend the line",
        )
    text = columns[layout.score].strip()
    if not text:
        return None
    score = _number(text)
    if score is None:
        raise InputError(f"got {text!r}, expected a number", path=where, field="score", remedy="mend the line")
    first, second = columns[layout.first].strip(), columns[layout.second].strip()
    if not first or not second:
        raise InputError("a sentence is empty", path=where, field="sentence2" if first else "sentence1", remedy="mend or remove the line")
    return Pair(score, first, second, "" if layout.genre is None else columns[layout.genre])


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _spearman(gold: Any, predicted: Any, part: str) -> Score:
    from scipy.stats import spearmanr

    if len(set(predicted.tolist())) < 2:
        raise InputError(
            f"all {len(predicted)} cosines of {part} are equal, so there is no correlation",
            remedy="the encoder maps all texts to one point",
        )
    return Score("Spearman", float(spearmanr(gold, predicted).statistic), part, len(gold))
