"""Retrieval sets in the format of BEIR (Thakur et al. 2021), TREC-News among them: ``nDCG@10`` and ``recall@100``.

A folder has ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
``qrels/test.tsv`` with the header ``query-id``, ``corpus-id``, ``score``. Queries get the encoder's prompt of queries.
Scores are means over the queries of the qrels file, as trec_eval computes them:

- The gain of a document is its score, the discount of rank i is ``1 / log2(i + 1)``. The best order has all documents
  of the qrels, also those that the corpus lacks. A query without a relevant document scores 0.
- Among tied documents, the one with the greater id comes first.

As BEIR does, a document with the id of the query is no candidate (ArguAna). A document without text is none, either.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError, refusing
from ...formats.command_line import option
from ...formats.jsonl import read_jsonl
from ..benchmark import Benchmark, Score, Suite, has
from ..encoders import Document, Embeddings, cosine_similarities
from ..files import read_rows

DEPTHS: Final = {"nDCG": 10, "recall": 100}
_CELLS: Final = 1 << 25  # of the similarity matrix held at once: 128 MiB
_HEADER: Final = ["query-id", "corpus-id", "score"]
_REMEDY: Final = (
    "get the set from https://github.com/beir-cellar/beir; expected: corpus.jsonl with _id, title and text, "
    "queries.jsonl with _id and text, qrels/test.tsv with the header query-id, corpus-id, score"
)

Judged = Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeirRetrieval(Benchmark):
    """One retrieval set in BEIR's format."""

    qrels: str = option("test", "beir: the file of qrels, without .tsv; dev for MS MARCO", metavar="NAME")

    def _facts(self) -> dict[str, Any]:
        return {"suite": "beir", "qrels": self.qrels}

    @functools.cached_property
    def _judged(self) -> Judged:
        return read_qrels(os.path.join(self.path, "qrels", f"{self.qrels}.tsv"))

    @functools.cached_property
    def _corpus(self) -> dict[str, Document]:
        """The candidates by id, the greatest id first, as trec_eval ranks ties."""
        rows = _read(os.path.join(self.path, "corpus.jsonl"), ("title", "text"))
        found = {one: document for one, document in rows if document.text and self.keeps(document)}
        return dict(sorted(found.items(), key=lambda item: item[0].encode(), reverse=True))

    @functools.cached_property
    def _queries(self) -> list[Document]:
        path = os.path.join(self.path, "queries.jsonl")
        found = dict(_read(path, ("text",)))
        if absent := [one for one in self._judged if not (one in found and found[one].text)]:
            problem = f"no text of {len(absent)} queries of qrels/{self.qrels}.tsv, such as {absent[0]!r}"
            raise InputError(problem, path=path, field="_id", remedy=_REMEDY)
        return [found[one] for one in self._judged]

    def _texts(self) -> Sequence[Document]:
        if not self._corpus:
            raise InputError("no documents", path=os.path.join(self.path, "corpus.jsonl"), remedy=_REMEDY)
        return [*self._queries, *self._corpus.values()]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        count, ids = len(self._judged), [*self._corpus]
        scores: dict[str, list[float]] = {f"{name}@{depth}": [] for name, depth in DEPTHS.items()}
        ranked = rankings(embeddings[:count], embeddings[count:], max(DEPTHS.values()) + 1)
        for (query, judged), rows in zip(self._judged.items(), ranked, strict=True):
            for metric, value in query_scores([ids[row] for row in rows if ids[row] != query], judged).items():
                scores[metric].append(value)
        return [Score(metric, float(np.mean(values)), count=count) for metric, values in scores.items()]


def rankings(queries: Embeddings, documents: Embeddings, depth: int) -> Iterator[Any]:
    """Yields the rows of the nearest ``depth`` documents of each query, nearest first; of tied ones the first row."""
    at_once = max(1, _CELLS // documents.shape[0])
    for start in range(0, queries.shape[0], at_once):
        for cosines in cosine_similarities(queries[start : start + at_once], documents):
            last = max(len(cosines) - depth, 0)
            near = np.flatnonzero(cosines >= np.partition(cosines, last)[last])
            yield near[np.argsort(-cosines[near], kind="stable")[:depth]]


def query_scores(ranked: Sequence[str], judged: Mapping[str, int]) -> dict[str, float]:
    """Returns the metrics of one query, see the module.

    Args:
      ranked: ids of documents, the best first.
      judged: the score of each judged document; those of 0 or less are not relevant.
    """
    gains = [max(judged.get(one, 0), 0) for one in ranked]
    best = sorted((score for score in judged.values() if score > 0), reverse=True)
    discounts = 1 / np.log2(np.arange(2, DEPTHS["nDCG"] + 2))
    dcg, ideal = (float(np.dot(row[: len(discounts)], discounts[: len(row)])) for row in (gains, best))
    found = sum(gain > 0 for gain in gains[: DEPTHS["recall"]])
    values = (dcg / ideal, found / len(best)) if best else (0.0, 0.0)
    return {f"{name}@{depth}": value for (name, depth), value in zip(DEPTHS.items(), values, strict=True)}


def _read(path: str, fields: tuple[str, ...]) -> Iterator[tuple[str, Document]]:
    """(id, document) of each line; those without the field ``title`` are queries."""
    seen = set()
    is_query = "title" not in fields
    for where, row in read_jsonl(path, remedy=_REMEDY):
        texts = {"title": "", **row}
        for field in ("_id", *fields):
            if not isinstance(texts.get(field), str):
                problem = f"got {texts.get(field)!r}, expected a string"
                raise InputError(problem, path=where, field=field, remedy=_REMEDY)
        if row["_id"] in seen:
            raise InputError(f"{row['_id']!r} is there twice", path=where, field="_id", remedy="make ids unique")
        seen.add(row["_id"])
        yield row["_id"], Document("" if is_query else texts["title"].strip(), row["text"].strip(), is_query=is_query)


def read_qrels(path: str) -> Judged:
    """Reads a file of qrels: the score of each judged document, by query.

    Raises:
      InputError: for a file that cannot be read, another header, a score that is no integer, and no rows.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, (where, row) in enumerate(read_rows(path, _REMEDY, quoted=False, columns=len(_HEADER))):
        if number == 0:
            if row != _HEADER:
                raise InputError(f"got the header {' '.join(row)!r}", path=where, field="header", remedy=_REMEDY)
            continue
        problem = f"got {row[2]!r}, expected an integer"
        with refusing(problem, ValueError, path=where, field="score", remedy=_REMEDY):
            judged.setdefault(row[0], {})[row[1]] = int(row[2])
    if not judged:
        raise InputError("no rows", path=path, remedy=_REMEDY)
    return judged


SUITES: Final = {"beir": Suite(BeirRetrieval, find=has("corpus.jsonl", "queries.jsonl", "qrels"))}
