"""Bitext retrieval: find the translation of each sentence among all sentences of the other language.

Protocol (Tatoeba, Artetxe and Schwenk 2019; T-MDE's tables). Line i of one file translates line i of the other. A
sentence counts as correct if its own translation has the highest cosine. ``accuracy`` is reported for both directions
of each pair of languages; ``accuracy`` over all is the mean over directions and languages. Sentences that tie for the
highest cosine share the point, so an encoder that maps everything to one vector does not score by luck. Files:
``tatoeba.XXX-eng.XXX`` and ``tatoeba.XXX-eng.eng``, as LASER distributes them.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .benchmark import ALL, PathBenchmark, Score
from .encoders import Document, Embeddings, cosine_similarities
from .files import folder_entries, read_text

_REMEDY: Final = (
    "get it from https://github.com/facebookresearch/LASER (data/tatoeba/v1); "
    "expected: tatoeba.XXX-eng.XXX and tatoeba.XXX-eng.eng"
)
_NAME: Final = re.compile(r"(?P<stem>.+\.(?P<first>\w+)-(?P<second>\w+))\.(?P=first)$")
_BLOCK: Final = 1024


@dataclasses.dataclass(frozen=True)
class BitextRetrieval(PathBenchmark):
    """Bitext retrieval over all pairs of files in one folder.

    Attributes:
      path: the folder.
      name: the name in tables.
      excluded: sentences to leave out together with their translations, see ``leakage.py``.
    """

    path: str
    name: str = "tatoeba"
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        return {"suite": "tatoeba", "similarity": "cosine", "excluded": len(self.excluded)}

    @functools.cached_property
    def _pairs(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        pairs = {}
        for name in folder_entries(self.path, _REMEDY):
            if match := _NAME.match(name):
                key = (match["first"], match["second"])
                sides = [_sentences(os.path.join(self.path, f"{match['stem']}.{language}")) for language in key]
                if len(sides[0]) != len(sides[1]):
                    raise InputError(
                        f"{len(sides[0])} lines, but {len(sides[1])} in the other language",
                        path=os.path.join(self.path, name),
                        remedy="give both files complete",
                    )
                both = list(zip(*sides, strict=True))
                pairs[key] = [pair for pair in both if not {Document("", side) for side in pair} & self.excluded]
        if not pairs:
            raise InputError("no pairs of files in the folder", path=self.path, remedy=_REMEDY)
        return pairs

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [
            Document("", sentence)
            for pairs in self._pairs.values()
            for side in (0, 1)
            for sentence in (pair[side] for pair in pairs)
        ]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``accuracy`` over all, and for each direction of each pair of languages."""
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
    lines = [line.strip() for line in read_text(path, _REMEDY).rstrip("\n").split("\n")]
    empty = [number for number, line in enumerate(lines, 1) if not line]
    if empty:
        raise InputError(
            f"{len(empty)} lines are empty", path=f"{path}:{empty[0]}", remedy="remove them from both files"
        )
    return lines
