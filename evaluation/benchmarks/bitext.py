"""Translations: find that of each sentence (Tatoeba), and find the pairs among many sentences that have none (BUCC).

Tatoeba (Artetxe and Schwenk 2019; T-MDE's tables). Line i of one file translates line i of the other. A
sentence counts as correct if its own translation has the highest cosine. ``accuracy`` is reported for both directions
of each pair of languages; ``accuracy`` over all is the mean over directions and languages. Sentences that tie for the
highest cosine share the point, so an encoder that maps everything to one vector does not score by luck. Files:
``tatoeba.XXX-eng.XXX`` and ``tatoeba.XXX-eng.eng``, as LASER distributes them.

BUCC (Zweigenbaum, Sharoff and Rapp, "Overview of the Third BUCC Shared Task", 2018; the scores of Artetxe and
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
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError
from ...tasks.margin import (
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
from ..benchmark import ALL, Benchmark, Score, Suite, here
from ..encoders import Document, Embeddings, cosine_similarities
from ..files import folder_entries, read_text

_TATOEBA: Final = (
    "get it from https://github.com/facebookresearch/LASER (data/tatoeba/v1); "
    "expected: tatoeba.XXX-eng.XXX and tatoeba.XXX-eng.eng"
)
_TATOEBA_NAME: Final = re.compile(r"(?P<stem>.+\.(?P<first>\w+)-(?P<second>\w+))\.(?P=first)$")
_BUCC: Final = (
    "get it from https://comparable.limsi.fr/bucc2018; expected for each pair of languages: xx-en.test.xx and "
    "xx-en.test.en (id, tab, sentence) and xx-en.test.gold (two ids)"
)
_BUCC_NAME: Final = re.compile(r"(?P<stem>(?P<first>[a-z]{2,3})-(?P<second>[a-z]{2,3})\.\w+)\.gold$")
_BLOCK: Final = 1024


@dataclasses.dataclass(frozen=True)
class BitextRetrieval(Benchmark):
    """Bitext retrieval over all pairs of files in one folder."""

    def _facts(self) -> dict[str, Any]:
        return {"suite": "tatoeba", "similarity": "cosine"}

    @functools.cached_property
    def _pairs(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        pairs = {}
        for name in folder_entries(self.path, _TATOEBA):
            if match := _TATOEBA_NAME.match(name):
                key = (match["first"], match["second"])
                sides = [_sentences(os.path.join(self.path, f"{match['stem']}.{language}")) for language in key]
                if len(sides[0]) != len(sides[1]):
                    problem = f"{len(sides[0])} lines, but {len(sides[1])} in the other language"
                    raise InputError(problem, path=os.path.join(self.path, name), remedy="give both files complete")
                both = zip(*sides, strict=True)
                pairs[key] = [(one, two) for one, two in both if self.keeps(Document("", one), Document("", two))]
        if not pairs:
            raise InputError("no pairs of files in the folder", path=self.path, remedy=_TATOEBA)
        return pairs

    def _texts(self) -> Sequence[Document]:
        return [Document("", pair[side]) for pairs in self._pairs.values() for side in (0, 1) for pair in pairs]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        scores, start = [], 0
        for (first, second), pairs in self._pairs.items():
            middle, end = start + len(pairs), start + 2 * len(pairs)
            one, two = embeddings[start:middle], embeddings[middle:end]
            scores += [
                Score("accuracy", retrieval_accuracy(one, two), f"{first}→{second}", len(pairs)),
                Score("accuracy", retrieval_accuracy(two, one), f"{second}→{first}", len(pairs)),
            ]
            start = end
        mean = float(np.mean([score.value for score in scores]))
        return [Score("accuracy", mean, ALL, sum(score.count for score in scores)), *scores]


def retrieval_accuracy(queries: Embeddings, candidates: Embeddings) -> float:
    """Returns the share of queries whose highest cosine is with the same row of ``candidates``; k tied rows count 1/k.

    Args:
      queries: float32 ``[N, D]`` of unit length, dense or CSR.
      candidates: the translations of the queries, ``[N, D]``.
    """
    total = 0.0
    for start in range(0, queries.shape[0], _BLOCK):
        similarities = cosine_similarities(queries[start : start + _BLOCK], candidates)
        best = similarities == similarities.max(axis=1, keepdims=True)
        rows = np.arange(len(similarities))
        total += float((best[rows, start + rows] / best.sum(axis=1)).sum())
    return total / queries.shape[0]


def _sentences(path: str) -> list[str]:
    lines = [line.strip() for line in read_text(path, _TATOEBA).rstrip("\n").split("\n")]
    if empty := [number for number, line in enumerate(lines, 1) if not line]:
        problem, remedy = f"{len(empty)} lines are empty", "remove them from both files"
        raise InputError(problem, path=f"{path}:{empty[0]}", remedy=remedy)
    return lines


class _Set(NamedTuple):
    """One pair of files: the sentences of both sides, and the gold pairs as row numbers."""

    left: Sequence[str]
    right: Sequence[str]
    gold: frozenset[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class BitextMining(Benchmark):
    """Mining of translations over all pairs of files in one folder."""

    def _facts(self) -> dict[str, Any]:
        return {"suite": "bucc", "margin": "ratio", "neighbors": NEIGHBORS, "default_margin": DEFAULT_MARGIN}

    @functools.cached_property
    def _sets(self) -> dict[str, _Set]:
        sets = {}
        for name in folder_entries(self.path, _BUCC):
            if match := _BUCC_NAME.match(name):
                stem = os.path.join(self.path, match["stem"])
                sets[f"{match['first']}-{match['second']}"] = self._read(stem, match["first"], match["second"])
        if not sets:
            raise InputError("no file xx-yy.test.gold in the folder", path=self.path, remedy=_BUCC)
        return sets

    def _read(self, stem: str, first: str, second: str) -> _Set:
        sides, rows = [], []
        for language in (first, second):
            table = _two_columns(f"{stem}.{language}")
            kept = {key: text for key, text in table if self.keeps(Document("", text))}
            known = {key for key, _ in table}
            if len(known) < len(table) or not kept:
                problem = "an id occurs twice" if kept else "no sentence is left"
                raise InputError(problem, path=f"{stem}.{language}", remedy=_BUCC)
            sides.append(list(kept.values()))
            rows.append(dict.fromkeys(known, -1) | {key: row for row, key in enumerate(kept)})
        gold = set()
        for left, right in _two_columns(f"{stem}.gold"):
            if left not in rows[0] or right not in rows[1]:
                remedy = "give the three files of one set"
                raise InputError(f"the pair {left}, {right} is not in both files", path=f"{stem}.gold", remedy=remedy)
            gold.add((rows[0][left], rows[1][right]))
        gold = {pair for pair in gold if min(pair) >= 0}
        if not gold:
            raise InputError("no gold pair is left", path=f"{stem}.gold", remedy=_BUCC)
        return _Set(sides[0], sides[1], frozenset(gold))

    def _texts(self) -> Sequence[Document]:
        return [Document("", text) for own in self._sets.values() for text in (*own.left, *own.right)]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        by_pair, start = {}, 0
        for languages, own in self._sets.items():
            middle = start + len(own.left)
            end = middle + len(own.right)
            by_pair[languages] = mining_scores(embeddings[start:middle], embeddings[middle:end], own.gold)
            start = end
        counts = {languages: len(own.gold) for languages, own in self._sets.items()}
        scores = []
        for metric in next(iter(by_pair.values())):
            values = {pair: found[metric] for pair, found in by_pair.items()}
            scores.append(Score(metric, float(np.mean(list(values.values()))), ALL, sum(counts.values())))
            scores += [Score(metric, value, pair, counts[pair]) for pair, value in values.items()]
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
    for number, line in enumerate(read_text(path, _BUCC).rstrip("\n").split("\n"), 1):
        first, tab, second = line.partition("\t")
        if not tab or not first or not second.strip():
            raise InputError("expected two columns with a tab between", path=f"{path}:{number}", remedy=_BUCC)
        rows.append((first, second.strip()))
    return rows


def _has(prefix: str, suffix: str) -> Any:
    return here(lambda _, names: any(name.startswith(prefix) and name.endswith(suffix) for name in names))


SUITES: Final = {
    "tatoeba": Suite(BitextRetrieval, find=_has("tatoeba.", ".eng")),
    "bucc": Suite(BitextMining, find=_has("", ".gold")),
}
