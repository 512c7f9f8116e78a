"""Mining of translations (BUCC): find the pairs of sentences that translate each other among many that do not.

Protocol (Zweigenbaum, Sharoff and Rapp, "Overview of the Third BUCC Shared Task", 2018; the scores of Artetxe and
Schwenk 2019, table 2): for each pair of files all sentences of both sides are embedded and scored by the ratio margin
with k = 4 (``tasks.margin``); of the best candidates of both directions each sentence keeps one. ``F1``, ``precision``
and ``recall`` are those at the threshold of the highest F1, which the gold pairs choose, as in the paper's training
set; ``F1 at 1.1``, ``precision at 1.1`` and ``recall at 1.1`` those at the default margin of ``newsembed bitext``. The
scores over all are means over the pairs of languages. Files, as BUCC distributes them:
``de-en.test.de`` and ``de-en.test.en`` with an id, a tab and a sentence on each line, and ``de-en.test.gold`` with the
ids of a pair on each line.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..tasks.margin import (
    DEFAULT_MARGIN,
    NEIGHBORS,
    Threshold,
    at_margin,
    best_f1,
    best_pairs,
    find_neighborhoods,
    one_to_one,
    thresholds,
)
from .benchmark import ALL, PathBenchmark, Score
from .encoders import Document, Embeddings
from .files import folder_entries, read_text

_REMEDY: Final = (
    "get it from https://comparable.limsi.fr/bucc2018; expected for each pair of languages: xx-en.test.xx and "
    "xx-en.test.en (id, tab, sentence) and xx-en.test.gold (two ids)"
)
_NAME: Final = re.compile(r"(?P<stem>(?P<first>[a-z]{2,3})-(?P<second>[a-z]{2,3})\.\w+)\.gold$")


@dataclasses.dataclass(frozen=True)
class _Set:
    """One pair of files: the sentences of both sides, and the gold pairs as row numbers."""

    sides: tuple[tuple[str, ...], tuple[str, ...]]
    gold: frozenset[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class BitextMining(PathBenchmark):
    """Mining of translations over all pairs of files in one folder.

    Attributes:
      path: the folder.
      name: the name in tables.
      excluded: sentences to leave out, with the gold pairs that they are in, see ``leakage.py``.
    """

    path: str
    name: str = "bucc"
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        margin = {"margin": "ratio", "neighbors": NEIGHBORS, "default_margin": DEFAULT_MARGIN}
        return {"suite": "bucc", **margin, "excluded": len(self.excluded)}

    @functools.cached_property
    def _sets(self) -> dict[str, _Set]:
        sets = {}
        for name in folder_entries(self.path, _REMEDY):
            if match := _NAME.match(name):
                stem = os.path.join(self.path, match["stem"])
                sets[f"{match['first']}-{match['second']}"] = self._read(stem, match["first"], match["second"])
        if not sets:
            raise InputError("no file xx-yy.test.gold in the folder", path=self.path, remedy=_REMEDY)
        return sets

    def _read(self, stem: str, first: str, second: str) -> _Set:
        sides, rows = [], []
        for language in (first, second):
            table = _two_columns(f"{stem}.{language}")
            kept = [(key, text) for key, text in table if Document("", text) not in self.excluded]
            known = {key for key, _ in table}
            if len(known) < len(table) or not kept:
                problem = "an id occurs twice" if kept else "no sentence is left"
                raise InputError(problem, path=f"{stem}.{language}", remedy=_REMEDY)
            sides.append(tuple(text for _, text in kept))
            rows.append(
                {key: row for row, (key, _) in enumerate(kept)} | dict.fromkeys(known - {k for k, _ in kept}, -1)
            )
        gold = set()
        for left, right in _two_columns(f"{stem}.gold"):
            if left not in rows[0] or right not in rows[1]:
                remedy = "give the three files of one set"
                raise InputError(f"the pair {left}, {right} is not in both files", path=f"{stem}.gold", remedy=remedy)
            gold.add((rows[0][left], rows[1][right]))
        gold = {pair for pair in gold if min(pair) >= 0}
        if not gold:
            raise InputError("no gold pair is left", path=f"{stem}.gold", remedy=_REMEDY)
        return _Set((sides[0], sides[1]), frozenset(gold))

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [Document("", text) for found in self._sets.values() for side in found.sides for text in side]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``F1``, ``precision`` and ``recall`` at the best and the default threshold, by pair and over all."""
        by_pair, start = {}, 0
        for languages, found in self._sets.items():
            middle = start + len(found.sides[0])
            end = middle + len(found.sides[1])
            by_pair[languages] = mining_scores(embeddings[start:middle], embeddings[middle:end], found.gold)
            start = end
        counts = {languages: len(found.gold) for languages, found in self._sets.items()}
        scores = []
        for metric in next(iter(by_pair.values())):
            values = [found[metric] for found in by_pair.values()]
            scores.append(Score(metric, float(np.mean(values)), ALL, sum(counts.values())))
            scores += [Score(metric, found[metric], pair, counts[pair]) for pair, found in by_pair.items()]
        return scores


def mining_scores(left: Embeddings, right: Embeddings, gold: frozenset[tuple[int, int]]) -> dict[str, float]:
    """Returns the scores of one set by metric.

    Args:
      left: float32 ``[N, D]`` of unit length, dense or CSR.
      right: float32 ``[M, D]``.
      gold: the pairs of rows that translate each other.
    """
    pairs = best_pairs(find_neighborhoods(left, right))
    pairs = pairs.take(one_to_one(pairs))
    is_true = np.array([pair in gold for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)], bool)
    found = thresholds(pairs.margins, is_true, ~is_true, len(gold))
    best, default = best_f1(found), at_margin(found, DEFAULT_MARGIN)
    return {**_named(best, ""), "best margin": min(best.margin, 99.0), **_named(default, f" at {DEFAULT_MARGIN:g}")}


def _named(found: Threshold, suffix: str) -> dict[str, float]:
    return {f"F1{suffix}": found.f1, f"precision{suffix}": found.precision, f"recall{suffix}": found.recall}


def _two_columns(path: str) -> list[tuple[str, str]]:
    rows = []
    for number, line in enumerate(read_text(path, _REMEDY).rstrip("\n").split("\n"), 1):
        first, tab, second = line.partition("\t")
        if not tab or not first or not second.strip():
            raise InputError("expected two columns with a tab between", path=f"{path}:{number}", remedy=_REMEDY)
        rows.append((first, second.strip()))
    return rows
