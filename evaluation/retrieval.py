"""Same-event retrieval: find the other documents about the event of each document.

Protocol. Queries and candidates are the documents of one JSONL file (``events.py``). The candidates of query q are all
other documents that the options admit; a candidate is relevant if it has the event of q. Queries without a relevant
candidate are left out; ``count`` is the number of the others. Scores are means over queries, for all queries and by the
language of the query:

- ``mAP``: scikit-learn's average precision, without interpolation.
- ``hit@1``: the share of relevant documents among the candidates that tie for the highest cosine, so an encoder that
  maps everything to one point does not score by luck.
- with ``at_k``, where R is the number of relevant candidates: ``mAP@k``, the sum of the precisions at the relevant
  ranks up to k, divided by min(k, R); ``R-precision``, the share of relevant documents among the first R; and
  scikit-learn's ``nDCG@k``. Among tied candidates the irrelevant ones come first for mAP@k; R-precision and nDCG take
  the mean over orders.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .benchmark import ALL, PathBenchmark, Score
from .encoders import Document, Embeddings, cosine_similarities
from .events import EventDocument, codes, read_events
from .intervals import FloatArray, Interval, mean_interval, resampled_means

_QUERY_BLOCK: Final = 256  # rows of the similarity matrix held at once: 256 x 100 000 candidates are 100 MB
_NO_DAY: Final = np.iinfo(np.int64).min // 2

BoolArray = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class SameEventRetrieval(PathBenchmark):
    """The same-event retrieval benchmark over one file.

    Attributes:
      path: JSONL file, see ``events.py``.
      name: the name in tables.
      cross_publisher: whether to leave out candidates of the query's publisher; they are neither relevant nor
        distractors.
      cross_language: whether to leave out candidates in the query's language.
      exclude_near_copies: whether to leave out candidates in the query's ``duplicate_group``, so that only paraphrases
        count.
      max_day_gap: candidates whose byline date is more days away are left out; ``None`` admits all.
      at_k: k of mAP@k, R-precision and nDCG@k; ``None`` leaves them out.
      excluded: documents to leave out, see ``leakage.py``.
      intervals: whether scores have bootstrap intervals over events.
      draws: whether scores keep their values on the resamples of events, for paired tests.
    """

    path: str
    name: str = "events"
    cross_publisher: bool = False
    cross_language: bool = False
    exclude_near_copies: bool = False
    max_day_gap: int | None = None
    at_k: int | None = None
    excluded: frozenset[Document] = frozenset()
    intervals: bool = False
    draws: bool = False

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        options = dataclasses.asdict(self)
        hidden = {"path", "name", "excluded", "intervals", *(() if self.draws else ("draws",))}
        shown = {key: options[key] for key in options if key not in hidden}
        return {"suite": "events"} | shown | {"excluded": len(self.excluded)}

    @functools.cached_property
    def _rows(self) -> list[EventDocument]:
        rows = [row for row in read_events(self.path) if row.document not in self.excluded]
        if self.at_k is not None and self.at_k < 1:
            raise InputError(f"got {self.at_k}, expected at least 1", field="at_k", remedy="give a positive number")
        self._require("publisher", self.cross_publisher, [row.publisher for row in rows])
        self._require("language", self.cross_language, [row.language for row in rows])
        self._require("byline_date", self.max_day_gap is not None, [row.byline_date for row in rows])
        if len({row.event for row in rows if row.event}) < 2:
            raise InputError(
                "fewer than two events", path=self.path, field="event", remedy="give documents of several events"
            )
        return rows

    def rows(self) -> Sequence[EventDocument]:
        """All documents with their labels, in the order of :meth:`documents`."""
        return self._rows

    def documents(self) -> Sequence[Document]:
        """Returns all documents, in the order in which ``score`` expects their embeddings."""
        return [row.document for row in self._rows]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns the metrics over all queries and by language.

        Raises:
          InputError: if no query has a relevant candidate under the options.
        """
        rows = self._rows
        metrics = self.query_scores(embeddings)
        if np.isnan(metrics["mAP"]).all():
            raise InputError(
                "no document has another one of its event among its candidates",
                path=self.path,
                field="event",
                remedy="relax the options (cross_publisher, cross_language, max_day_gap) or label more documents",
            )
        languages = np.array([row.language for row in rows])
        parts = [(ALL, np.ones(len(rows), bool))]
        if len(set(languages)) > 1:
            parts += [(language or "unknown", languages == language) for language in sorted(set(languages))]
        events = np.array([row.event for row in rows])
        return [score for part, members in parts for score in self._means(part, members, metrics, events)]

    def _means(
        self, part: str, members: BoolArray, metrics: Mapping[str, FloatArray], events: npt.NDArray[Any]
    ) -> Iterator[Score]:
        """Yields means over the queries of a part, given the metrics and the events of all documents."""
        queries = members & ~np.isnan(metrics["mAP"])
        if not (count := int(queries.sum())):
            return
        for name, values in metrics.items():
            mean, own = float(np.nanmean(values[members])), (values[queries], events[queries])
            found = mean_interval(*own) if self.intervals else Interval(mean)
            draws = tuple(resampled_means(*own).tolist()) if self.draws else ()
            yield Score(name, mean, part, count, low=found.low, high=found.high, draws=draws)

    def query_scores(self, embeddings: Embeddings) -> dict[str, npt.NDArray[np.float64]]:
        """Returns the metrics of each document as a query, ``[N]``; NaN without a relevant candidate."""
        metrics: dict[str, npt.NDArray[np.float64]] = {}
        for queries, relevant, candidate in self._blocks():
            similarities = cosine_similarities(embeddings[queries], embeddings)
            for metric, values in ranking_scores(similarities, relevant, candidate, self.at_k).items():
                metrics.setdefault(metric, np.full(len(self._rows), np.nan))[queries] = values
        return metrics

    def _require(self, field: str, needed: bool, values: list[Any]) -> None:
        missing = sum(not value for value in values)
        if needed and missing:
            raise InputError(
                f"{missing} of {len(values)} documents lack it, but the chosen options need it",
                path=self.path,
                field=field,
                remedy=f"fill in {field} or drop the option",
            )

    def _blocks(self) -> Iterator[tuple[slice, BoolArray, BoolArray]]:
        """Yields (queries, relevant ``[Q, N]``, candidate ``[Q, N]``)."""
        rows = self._rows
        event = codes([row.event for row in rows])
        publisher = codes([row.publisher for row in rows])
        language = codes([row.language for row in rows])
        group = codes([row.duplicate_group for row in rows])
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
    similarities: npt.NDArray[np.float32], relevant: BoolArray, candidate: BoolArray, at_k: int | None = None
) -> dict[str, npt.NDArray[np.float64]]:
    """Computes the metrics of each query.

    Args:
      similarities: ``[Q, N]``.
      relevant: ``[Q, N]``, only read where ``candidate`` is true.
      candidate: ``[Q, N]``.
      at_k: k of mAP@k and nDCG@k; ``None`` computes mAP and hit@1 only.

    Returns:
      Arrays ``[Q]`` by metric, NaN for queries without a relevant candidate.
    """
    from sklearn.metrics import average_precision_score

    names = ["mAP", "hit@1", *([] if at_k is None else [f"mAP@{at_k}", "R-precision", f"nDCG@{at_k}"])]
    found = {name: np.full(len(similarities), np.nan) for name in names}
    for query in np.flatnonzero((relevant & candidate).any(axis=1)):
        scores, labels = similarities[query, candidate[query]], relevant[query, candidate[query]]
        values = [average_precision_score(labels, scores), labels[scores == scores.max()].mean()]
        if at_k is not None:
            values += [precision_at(scores, labels, at_k), r_precision(scores, labels), _ndcg(scores, labels, at_k)]
        for name, value in zip(names, values, strict=True):
            found[name][query] = value
    return found


def precision_at(scores: npt.NDArray[np.float32], labels: BoolArray, k: int) -> float:
    """Returns the average precision cut off at rank k; among ties the irrelevant candidates come first.

    Args:
      scores: ``[N]``.
      labels: ``[N]``, whether each candidate is relevant; at least one is.
      k: the last rank that counts.
    """
    order = np.lexsort((labels, -scores))[:k]
    hits = labels[order]
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precisions * hits).sum() / min(k, labels.sum()))


def r_precision(scores: npt.NDArray[np.float32], labels: BoolArray) -> float:
    """Returns the share of relevant candidates among the first R, the mean over the orders of tied candidates.

    Args:
      scores: ``[N]``.
      labels: ``[N]``, whether each candidate is relevant; R >= 1 are.
    """
    total = int(labels.sum())
    threshold = np.sort(scores)[-total]
    above, tied = scores > threshold, scores == threshold
    return float((labels[above].sum() + labels[tied].mean() * (total - above.sum())) / total)


def _ndcg(scores: npt.NDArray[np.float32], labels: BoolArray, k: int) -> float:
    from sklearn.metrics import ndcg_score

    if len(labels) == 1:
        return 1.0  # scikit-learn rejects a single candidate; it is relevant, or there would be no query
    return float(ndcg_score(labels[None].astype(float), scores[None], k=k))
