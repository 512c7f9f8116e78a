"""Same-event retrieval: each document asks for the other documents about its event.

Protocol. Queries and candidates come from one JSONL file (``events.py``). A candidate of query q is every other document that the options
admit; it is relevant if it carries q's event. Queries without a relevant candidate are left out and their number shows in ``count``.
Average precision is scikit-learn's, without interpolation; hit@1 is the share of relevant ones among the candidates tied for the highest
cosine, so that an encoder which maps everything to one point gets no luck. Means are taken over queries, for all and by the query's language.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..tasks.errors import InputError
from .benchmark import ALL, Score
from .encoders import Document, Embeddings, cosine_similarities
from .events import EventDocument, read_events

_QUERY_BLOCK: Final = 256  # rows of the similarity matrix held at once: 256 x 100 000 candidates are 100 MB
_NO_DAY: Final = np.iinfo(np.int64).min // 2

BoolArray = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class SameEventRetrieval:
    """The same-event retrieval benchmark over one file.

    Attributes:
      path: JSONL file, see ``events.py``.
      name: shown in tables.
      cross_publisher: candidates of the query's own publisher are left out: neither relevant nor distractors.
      cross_language: candidates in the query's own language are left out.
      exclude_near_copies: candidates that share the query's ``duplicate_group`` are left out, so that only paraphrases count.
      max_day_gap: candidates whose byline date is further away are left out; ``None`` admits all.
    """

    path: str
    name: str = "events"
    cross_publisher: bool = False
    cross_language: bool = False
    exclude_near_copies: bool = False
    max_day_gap: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def protocol(self) -> Mapping[str, Any]:
        options = dataclasses.asdict(self)
        return {"suite": "events"} | {key: options[key] for key in options if key not in {"path", "name"}}

    @functools.cached_property
    def _rows(self) -> list[EventDocument]:
        rows = read_events(self.path)
        self._require("publisher", self.cross_publisher, [row.publisher for row in rows])
        self._require("language", self.cross_language, [row.language for row in rows])
        self._require("byline_date", self.max_day_gap is not None, [row.byline_date for row in rows])
        if len({row.event for row in rows if row.event}) < 2:
            raise InputError("fewer than two events", path=self.path, field="event", remedy="give documents of several events")
        return rows

    def documents(self) -> Sequence[Document]:
        return [row.document for row in self._rows]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """``mAP`` and ``hit@1`` over all queries and by language.

        Raises:
          InputError: if no query has a relevant candidate under the options.
        """
        rows = self._rows
        precision, hit = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        for queries, relevant, candidate in self._blocks():
            similarities = cosine_similarities(embeddings[queries], embeddings)
            precision[queries], hit[queries] = ranking_scores(similarities, relevant, candidate)
        if np.isnan(precision).all():
            raise InputError(
                "no document has another one of its event among its candidates",
                path=self.path,
                field="event",
                remedy="loosen the options (cross_publisher, cross_language, max_day_gap) or give more documents an event",
            )
        languages = np.array([row.language for row in rows])
        parts = [(ALL, np.ones(len(rows), bool))]
        if len(set(languages)) > 1:
            parts += [(language or "unknown", languages == language) for language in sorted(set(languages))]
        return [score for part, members in parts for score in _means(part, precision[members], hit[members])]

    def _require(self, field: str, needed: bool, values: list[Any]) -> None:
        missing = sum(not value for value in values)
        if needed and missing:
            raise InputError(
                f"{missing} of {len(values)} documents lack it, which the chosen options need",
                path=self.path,
                field=field,
                remedy=f"fill in {field} or drop the option",
            )

    def _blocks(self) -> Iterator[tuple[slice, BoolArray, BoolArray]]:
        """Yields (queries, relevant ``[Q, N]``, candidate ``[Q, N]``)."""
        rows = self._rows
        event = _codes([row.event for row in rows])
        publisher = _codes([row.publisher for row in rows])
        language = _codes([row.language for row in rows])
        group = _codes([row.duplicate_group for row in rows])
        day = np.array([row.byline_date.toordinal() if row.byline_date else _NO_DAY for row in rows])
        for start in range(0, len(rows), _QUERY_BLOCK):
            queries = slice(start, min(start + _QUERY_BLOCK, len(rows)))
            candidate = np.arange(len(rows))[queries, None] != np.arange(len(rows))
            if self.cross_publisher:
                candidate &= publisher[queries, None] != publisher
            if self.cross_language:
                candidate &= language[queries, None] != language
            if self.exclude_near_copies:
                candidate &= (group[queries, None] != group) | (group[queries, None] < 0)
            if self.max_day_gap is not None:
                candidate &= np.abs(day[queries, None] - day) <= self.max_day_gap
            relevant = (event[queries, None] == event) & (event[queries, None] >= 0)
            yield queries, relevant, candidate


def ranking_scores(
    similarities: npt.NDArray[np.float32], relevant: BoolArray, candidate: BoolArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Average precision and hit@1 of each query.

    Args:
      similarities: ``[Q, N]``.
      relevant: ``[Q, N]``, only read where ``candidate`` holds.
      candidate: ``[Q, N]``.

    Returns:
      Two ``[Q]`` arrays, NaN for queries without a relevant candidate.
    """
    from sklearn.metrics import average_precision_score

    precision, hit = np.full(len(similarities), np.nan), np.full(len(similarities), np.nan)
    for query in np.flatnonzero((relevant & candidate).any(axis=1)):
        scores, labels = similarities[query, candidate[query]], relevant[query, candidate[query]]
        precision[query] = average_precision_score(labels, scores)
        hit[query] = labels[scores == scores.max()].mean()
    return precision, hit


def _means(part: str, precision: npt.NDArray[np.float64], hit: npt.NDArray[np.float64]) -> list[Score]:
    count = int((~np.isnan(precision)).sum())
    if not count:
        return []
    return [Score("mAP", float(np.nanmean(precision)), part, count), Score("hit@1", float(np.nanmean(hit)), part, count)]


def _codes(values: list[str]) -> npt.NDArray[np.int64]:
    """One integer per distinct value, -1 for ""."""
    numbers = {value: number for number, value in enumerate(sorted(set(values) - {""}))}
    return np.array([numbers.get(value, -1) for value in values], np.int64)
