"""Bitext retrieval: each sentence looks for its translation among all sentences of the other language.

Protocol (Tatoeba, Artetxe and Schwenk 2019; T-MDE's tables). Line i of one file translates line i of the other; a sentence is right if the
highest cosine is that of its own translation. Both directions are given for each pair of languages, and ``accuracy`` over all is the mean
over directions and languages. Sentences tied for the highest cosine share the point, so that an encoder which maps everything to one vector
gets no luck. Files: ``tatoeba.XXX-eng.XXX`` beside ``tatoeba.XXX-eng.eng``, as LASER distributes them.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .benchmark import ALL, Score
from .encoders import Document, Embeddings, cosine_similarities
from .files import folder_entries, read_text

_REMEDY: Final = "get it from https://github.com/facebookresearch/LASER (data/tatoeba/v1); expected: tatoeba.XXX-eng.XXX and tatoeba.XXX-eng.eng"
_NAME: Final = re.compile(r"(?P<stem>.+\.(?P<first>\w+)-(?P<second>\w+))\.(?P=first)$")
_BLOCK: Final = 1024


@dataclasses.dataclass(frozen=True)
class BitextRetrieval:
    """Bitext retrieval over all pairs of files in one folder.

    Attributes:
      path: the folder.
      name: shown in tables.
      excluded: sentences to leave out with their translations, see ``leakage.py``.
    """

    path: str
    name: str = "tatoeba"
    excluded: frozenset[Document] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def protocol(self) -> Mapping[str, Any]:
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
                        f"{len(sides[0])} lines beside {len(sides[1])}",
                        path=os.path.join(self.path, name),
                        remedy="give both files whole",
                    )
                both = list(zip(*sides, strict=True))
                pairs[key] = [pair for pair in both if not {Document("", side) for side in pair} & self.excluded]
        if not pairs:
            raise InputError("no pairs of files in the folder", path=self.path, remedy=_REMEDY)
        return pairs

    def documents(self) -> Sequence[Document]:
        return [
            Document("", sentence)
            for pairs in self._pairs.values()
            for side in (0, 1)
            for sentence in (pair[side] for pair in pairs)
        ]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """``accuracy`` for all, and each way for each pair of languages."""
        scores, start = [], 0
        for (first, second), pairs in self._pairs.items():
            middle, end = start + len(pairs), start + 2 * len(pairs)
            one, two = embeddings[start:middle], embeddings[middle:end]
            scores += [
                Score("accuracy", retrieval_accuracy(one, two), f"{first}→{second}", len(pairs)),
                Score("accuracy", retrieval_accuracy(two, one), f"{second}→{first}", len(pairs)),
            ]
            start = end
        return [
            Score(
                "accuracy", float(np.mean([score.value for score in scores])), ALL, sum(score.count for score in scores)
            ),
            *scores,
        ]


def retrieval_accuracy(queries: Embeddings, candidates: Embeddings) -> float:
    """The share of rows whose highest cosine is at the same row of ``candidates``; k tied rows count 1/k each."""
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
