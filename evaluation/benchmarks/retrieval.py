"""Retrieval: the other reports of the event of each document, and the articles to which posts link.

``events``. Queries and candidates are the documents of one JSONL file (``events.py``). The candidates of query q are
all other documents that the options admit; a candidate is relevant if it has the event of q. Queries without a relevant
candidate are left out; ``count`` is the number of the others. Scores are means over queries, for all queries and by the
language of the query:

- ``mAP``: scikit-learn's average precision, without interpolation.
- ``hit@1``: the share of relevant documents among the candidates that tie for the highest cosine, so an encoder that
  maps everything to one point does not score by luck.

``links`` (Danovitch 2020): how well one threshold on the cosine separates the pairs that belong together. The cosines
of every article with every post are pooled; a pair is relevant if the post links to the article. Over all pairs:

- ``P@r``: the share of relevant pairs among the r best, for r = 50, 100, 200, 500, 1000, 2000, 3000, 3300 as far as
  there are r relevant pairs, and for r = the number of relevant pairs (``P@R``). Among tied pairs it is the mean over
  orders.
- ``mRP``: the mean of these precisions. The printed one follows only with P@3300, a row that the print lacks.
- ``AP`` and ``ROC AUC``: scikit-learn's, over all pairs.

Its file is JSONL. Each line is ``{"title", "body", "post"}``: an article and a post that links to it; lines with the
same title and body are one article. Lines may have a ``language``: the articles of each are also scored alone, with the
posts of all. For ``title_links``, each line is an article, whose title is its post and whose body is the article.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.command_line import option
from ..benchmark import Benchmark, Score, Suite, by_language, draws_option, intervals_option
from ..encoders import Document, Embeddings, cosine_similarities
from ..events import EventDocument, codes, read_events
from ..files import read_texts
from ..statistics import FloatArray, Interval, mean_interval, resampled_means

_AT_ONCE: Final = 256  # rows of the similarity matrix held at once: 256 x 100 000 candidates are 100 MB
_NO_DAY: Final = np.iinfo(np.int64).min // 2
_RESAMPLES: Final = 200
DEPTHS: Final = (50, 100, 200, 500, 1000, 2000, 3000, 3300)

BoolArray = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SameEventRetrieval(Benchmark):
    """The same-event retrieval benchmark over one JSONL file, see ``events.py``."""

    cross_publisher: bool = option(False, "events: leave out candidates of the query's publisher")
    cross_language: bool = option(False, "events: leave out candidates in the query's language")
    max_day_gap: int | None = option(
        None, "events: leave out candidates whose byline date is more days away", ge=0, metavar="DAYS"
    )
    intervals: bool = intervals_option()
    draws: bool = draws_option()

    def _facts(self) -> dict[str, Any]:
        names = ("cross_publisher", "cross_language", "max_day_gap")
        return {"suite": "events", **{name: getattr(self, name) for name in names}}

    @functools.cached_property
    def rows(self) -> Sequence[EventDocument]:
        """All documents with their labels, in the order of :meth:`documents`."""
        rows = [row for row in read_events(self.path) if self.keeps(row.document)]
        needed = {
            "publisher": self.cross_publisher,
            "language": self.cross_language,
            "byline_date": self.max_day_gap is not None,
        }
        for field, is_needed in needed.items():
            if is_needed and (missing := sum(not getattr(row, field) for row in rows)):
                problem = f"{missing} of {len(rows)} documents lack it, but the chosen options need it"
                raise InputError(problem, path=self.path, field=field, remedy=f"fill in {field} or drop the option")
        if len({row.event for row in rows if row.event}) < 2:
            remedy = "give documents of several events"
            raise InputError("fewer than two events", path=self.path, field="event", remedy=remedy)
        return rows

    def _texts(self) -> Sequence[Document]:
        return [row.document for row in self.rows]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        metrics = self.query_scores(embeddings)
        if np.isnan(metrics["mAP"]).all():
            problem = "no document has another one of its event among its candidates"
            remedy = "relax the options (cross_publisher, cross_language, max_day_gap) or label more documents"
            raise InputError(problem, path=self.path, field="event", remedy=remedy)
        events, parts = np.array([row.event for row in self.rows]), by_language([row.language for row in self.rows])
        return [score for part, members in parts.items() for score in self._means(part, members, metrics, events)]

    def _means(
        self, part: str, members: BoolArray, metrics: Mapping[str, FloatArray], events: npt.NDArray[Any]
    ) -> Iterator[Score]:
        queries = members & ~np.isnan(metrics["mAP"])
        for name, values in metrics.items() if queries.any() else ():
            mean, own = float(np.nanmean(values[members])), (values[queries], events[queries])
            found = mean_interval(*own) if self.intervals else Interval(mean)
            draws = tuple(resampled_means(*own).tolist()) if self.draws else ()
            yield Score(name, mean, part, int(queries.sum()), low=found.low, high=found.high, draws=draws)

    def query_scores(self, embeddings: Embeddings) -> dict[str, FloatArray]:
        """Returns the metrics of each document as a query, ``[N]``; NaN without a relevant candidate."""
        metrics: dict[str, FloatArray] = {}
        for queries, relevant, candidate in self._blocks():
            similarities = cosine_similarities(embeddings[queries], embeddings)
            for metric, values in ranking_scores(similarities, relevant, candidate).items():
                metrics.setdefault(metric, np.full(len(self.rows), np.nan))[queries] = values
        return metrics

    def _blocks(self) -> Iterator[tuple[slice, BoolArray, BoolArray]]:
        """Yields (queries, relevant ``[Q, N]``, candidate ``[Q, N]``)."""
        rows = self.rows
        event, publisher, language = (
            codes([getattr(row, field) for row in rows]) for field in ("event", "publisher", "language")
        )
        day = np.array([row.byline_date.toordinal() if row.byline_date else _NO_DAY for row in rows])
        for start in range(0, len(rows), _AT_ONCE):
            queries = slice(start, min(start + _AT_ONCE, len(rows)))
            candidate = np.arange(len(rows))[queries, None] != np.arange(len(rows))
            if self.cross_publisher:
                candidate &= publisher[queries, None] != publisher
            if self.cross_language:
                candidate &= language[queries, None] != language
            if self.max_day_gap is not None:
                candidate &= np.abs(day[queries, None] - day) <= self.max_day_gap
            relevant = (event[queries, None] == event) & (event[queries, None] >= 0)
            yield queries, relevant, candidate


def ranking_scores(
    similarities: npt.NDArray[np.float32], relevant: BoolArray, candidate: BoolArray, at_k: int | None = None
) -> dict[str, FloatArray]:
    """Computes the metrics of each query.

    Args:
      similarities: ``[Q, N]``.
      relevant: ``[Q, N]``, only read where ``candidate`` is true.
      candidate: ``[Q, N]``.
      at_k: k of ``mAP@k``, the sum of the precisions at the relevant ranks up to k, divided by k or by the number of
        relevant candidates if that is less; among tied ones the irrelevant come first. ``None``: mAP and hit@1 only.

    Returns:
      Arrays ``[Q]`` by metric, NaN for queries without a relevant candidate.
    """
    from sklearn.metrics import average_precision_score

    names = ["mAP", "hit@1", *([] if at_k is None else [f"mAP@{at_k}"])]
    found = {name: np.full(len(similarities), np.nan) for name in names}
    for query in np.flatnonzero((relevant & candidate).any(axis=1)):
        scores, labels = similarities[query, candidate[query]], relevant[query, candidate[query]]
        values = [average_precision_score(labels, scores), labels[scores == scores.max()].mean()]
        if at_k is not None:
            hits = labels[np.lexsort((labels, -scores))[:at_k]]
            precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
            values.append((precisions * hits).sum() / min(at_k, labels.sum()))
        for name, value in zip(names, values, strict=True):
            found[name][query] = value
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class PostLinking(Benchmark):
    """The linking benchmark over one JSONL file.

    Attributes:
      titles: whether the title of each article is its post, see the module.
    """

    titles: bool = False
    draws: bool = draws_option()

    def _facts(self) -> dict[str, Any]:
        return {"suite": "links", "titles": self.titles, "depths": list(DEPTHS)}

    @functools.cached_property
    def _pairs(self) -> tuple[list[Document], list[Document], npt.NDArray[np.int64], list[str]]:
        """Articles, posts, the number of the article of each post, and the language of each article."""
        articles: dict[Document, int] = {}
        languages: dict[Document, str] = {}
        posts: list[Document] = []
        owners: list[int] = []
        fields = ("title", "body") if self.titles else ("title", "body", "post")
        remedy, may_be_empty = f"each line needs {', '.join(fields)}", () if self.titles else ("title",)
        for _, row in read_texts(self.path, fields, remedy, may_be_empty=may_be_empty):
            article = Document("" if self.titles else row["title"], row["body"])
            post = Document(row["title" if self.titles else "post"], "")
            if self.keeps(article, post):
                owners.append(articles.setdefault(article, len(articles)))
                posts.append(post)
                languages.setdefault(article, str(row.get("language") or ""))
        if len(articles) < 2:
            remedy = "give at least two, or look at what is left out"
            raise InputError("fewer than two articles", path=self.path, remedy=remedy)
        return list(articles), posts, np.array(owners), list(languages.values())

    def _texts(self) -> Sequence[Document]:
        articles, posts, *_ = self._pairs
        return [*articles, *posts]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        articles, _, owners, languages = self._pairs
        posts, starts = embeddings[len(articles) :], range(0, len(articles), _AT_ONCE)
        own = (embeddings[start : min(start + _AT_ONCE, len(articles))] for start in starts)
        cosines = np.concatenate([cosine_similarities(some, posts) for some in own])
        relevant = owners[None, :] == np.arange(len(articles))[:, None]
        found = [
            Score(metric, value, part, int(relevant[members].sum()))
            for part, members in by_language(languages).items()
            for metric, value in link_scores(cosines[members], relevant[members]).items()
        ]
        if self.draws:
            found[0] = dataclasses.replace(found[0], draws=tuple(resampled_ap(cosines, owners).tolist()))
        return found


def link_scores(cosines: npt.NDArray[Any], relevant: BoolArray) -> dict[str, float]:
    """Returns AP, ROC AUC, mRP and the precisions of pooled pairs, by name.

    Args:
      cosines: of all pairs, of any shape.
      relevant: which pairs belong together, of the same shape; some do and some do not.
    """
    from sklearn.metrics import auc, average_precision_score, roc_curve

    scores, truth = cosines.ravel(), relevant.ravel()
    total = int(truth.sum())
    depths = {f"P@{depth}": depth for depth in DEPTHS if depth <= total} | {"P@R": total}
    false, true, _ = roc_curve(truth, scores, drop_intermediate=False)
    # One point for each distinct score. Between two of them, the mean over orders of the tied pairs grows evenly.
    hits = np.rint(true * total)
    taken = hits + np.rint(false * (len(truth) - total))
    precisions = {name: float(np.interp(depth, taken, hits)) / depth for name, depth in depths.items()}
    return {
        "AP": float(average_precision_score(truth, scores)),
        "ROC AUC": float(auc(false, true)),
        "mRP": float(np.mean(list({depths[name]: value for name, value in precisions.items()}.values()))),
        **precisions,
    }


def resampled_ap(cosines: npt.NDArray[Any], owners: npt.NDArray[np.int64]) -> FloatArray:
    """Returns the pooled AP on each of 200 resamples of the articles.

    The articles of a resample depend on their number alone, so that differences between encoders are paired.

    Args:
      cosines: ``[A, P]``.
      owners: the number of the article of each post, ``[P]``.
    """
    from sklearn.metrics import average_precision_score

    articles = cosines.shape[0]
    times = np.random.default_rng(0).multinomial(articles, np.full(articles, 1 / articles), _RESAMPLES)
    # Pairs are sorted once, so that scikit-learn sorts what is sorted. A wrong pair counts as often as both of its
    # articles. A right one counts as often as its article: its square is 2 in the mean, and would raise AP.
    order = np.argsort(cosines, axis=None, kind="stable")
    article, post = np.unravel_index(order, cosines.shape)
    scores, owner = cosines.ravel()[order], owners[post]
    relevant = article == owner
    weights = (counts[owner] * np.where(relevant, 1, counts[article]) for counts in times)
    return np.array([average_precision_score(relevant, scores, sample_weight=some) for some in weights])


SUITES: Final = {
    "events": Suite(SameEventRetrieval),
    "events_across": Suite(SameEventRetrieval, {"cross_language": True}),
    "links": Suite(PostLinking),
    "title_links": Suite(PostLinking, {"titles": True}),
}
