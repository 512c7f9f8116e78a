"""Groups of similar documents by embeddings: pairs above a threshold, connected components, average-link clusters."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.index import IndexedDocument
from ..formats.whole import writing_text
from .dates import as_days
from .interface import FloatArray

_BLOCK: Final = 2048  # rows of the similarity matrix in memory: 2048 x 100 000 floats are 800 MB at most
_MOST_DAYS: Final = 3_652_059  # from the first to the last date that there is
AGGLOMERATIVE_LIMIT: Final = 20_000  # the distance matrix of more documents exceeds 3 GB

IntArray = npt.NDArray[np.int64]


def pairs_above(embeddings: FloatArray, threshold: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yields blocks of (first, second, cosine) of all pairs first < second with a cosine of at least ``threshold``.

    Exact: every pair is compared, N²/2 products of D.

    Args:
      embeddings: unit rows ``[N, D]``.
      threshold: in (-1, 1].

    Raises:
      InputError: if the threshold is out of range.
    """
    check_threshold(threshold)
    for start in range(0, len(embeddings), _BLOCK):
        block = embeddings[start : start + _BLOCK] @ embeddings[start:].T
        first, second = np.nonzero(block >= threshold)
        above = first < second
        first, second = first[above], second[above]
        yield first + start, second + start, block[first, second]


def pairs_within_days(
    embeddings: FloatArray, dates: Sequence[datetime.date | None], threshold: float, days: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Those of :func:`pairs_above` whose byline dates are at most ``days`` apart; a document without a date is in none.

    Only documents of near days are compared, so that an archive of many years takes time in proportion to its length,
    not to its square.

    Args:
      embeddings: unit rows ``[N, D]``.
      dates: of each row.
      threshold: in (-1, 1].
      days: from 0.

    Raises:
      InputError: if the threshold or the number of days is out of range.
    """
    check_threshold(threshold)
    if not 0 <= days <= _MOST_DAYS:
        raise InputError(f"got {days} days, expected 0 to {_MOST_DAYS}", field="--max_day_gap", remedy="try 3")
    unsorted = as_days(dates)
    order = np.argsort(unsorted, kind="stable")[
        : len(unsorted) - np.isnat(unsorted).sum()
    ]  # those without a date come last
    sorted_days, rows = unsorted[order], embeddings[order]
    ends = np.searchsorted(sorted_days, sorted_days + np.timedelta64(days, "D"), side="right")
    for start in range(0, len(rows), _BLOCK):
        stop = min(start + _BLOCK, len(rows))
        block = rows[start:stop] @ rows[start : ends[stop - 1]].T
        first, second = np.nonzero(block >= threshold)
        near = (first < second) & (second + start < ends[first + start])
        first, second = first[near], second[near]
        ours, theirs = order[first + start], order[second + start]
        yield np.minimum(ours, theirs), np.maximum(ours, theirs), block[first, second]


def pairs_in_time(
    embeddings: FloatArray, dates: Sequence[datetime.date | None], threshold: float, days: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Those of :func:`pairs_within_days`, and the pairs of two documents without dates.

    A document without a date is in no pair with one that has a date: it could join events that are years apart.

    Raises:
      InputError: if the threshold or the number of days is out of range.
    """
    yield from pairs_within_days(embeddings, dates, threshold, days)
    undated = np.flatnonzero(np.isnat(as_days(dates)))
    for first, second, cosine in pairs_above(embeddings[undated], threshold):
        yield undated[first], undated[second], cosine


def components(count: int, pairs: Iterable[tuple[IntArray, IntArray, FloatArray]]) -> IntArray:
    """Group number ``[N]`` of each document, by first appearance; documents joined by a chain of pairs share one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    blocks = [(first, second) for first, second, _ in pairs]
    first = np.concatenate([np.zeros(0, np.int64), *(block[0] for block in blocks)])
    second = np.concatenate([np.zeros(0, np.int64), *(block[1] for block in blocks)])
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(count, count))
    return in_order(connected_components(graph, directed=False)[1])


def agglomerative(embeddings: FloatArray, threshold: float) -> IntArray:
    """Group number ``[N]`` by average linkage: two groups merge while their mean cosine is at least ``threshold``.

    Unlike :func:`components` it does not chain along borderline pairs. Memory is N² floats.

    Raises:
      InputError: if there are too many documents or the threshold is out of range.
    """
    check_threshold(threshold)
    if len(embeddings) > AGGLOMERATIVE_LIMIT:
        raise InputError(
            f"{len(embeddings)} documents are too many for average linkage, at most {AGGLOMERATIVE_LIMIT}",
            remedy="use --method graph",
        )
    if len(embeddings) < 2:
        return np.zeros(len(embeddings), np.int64)
    from sklearn.cluster import AgglomerativeClustering

    distances = np.maximum(1 - embeddings @ embeddings.T, 0)
    np.fill_diagonal(distances, 0)
    # scikit-learn merges below the threshold, not at it.
    limit = np.nextafter(np.float32(1 - threshold), np.float32(3))
    model = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=float(limit)
    )
    return in_order(model.fit_predict(distances))


def in_order(labels: npt.NDArray[np.int32]) -> IntArray:
    """The same groups numbered 0, 1, … by first appearance: the output does not depend on a library's numbering."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse], np.int64)


def check_threshold(threshold: float) -> None:
    """Refuses a threshold that separates nothing.

    Raises:
      InputError: if it is not a cosine above -1.
    """
    if not -1 < threshold <= 1:
        raise InputError(
            f"got the threshold {threshold}, expected a cosine above -1 and up to 1",
            field="--threshold",
            remedy="try 0.8",
        )


def write_groups(
    path: str, labels: IntArray, documents: Sequence[IndexedDocument], smallest: int = 1
) -> tuple[int, int]:
    """Writes a TSV with a line for each document of a group of at least ``smallest``; largest groups first.

    Returns:
      (groups written, documents in them).
    """
    sizes = np.bincount(labels)
    order = sorted(
        (group for group in range(len(sizes)) if sizes[group] >= smallest), key=lambda group: (-sizes[group], group)
    )
    number = {group: position for position, group in enumerate(order)}
    members = sorted((number[label], row) for row, label in enumerate(labels.tolist()) if label in number)
    with writing_text(path) as file:
        file.write("group\tsize\tdoc_id\tdate\tpublisher\ttitle\turl\n")
        for group, row in members:
            document = documents[row]
            date = document.byline_date.isoformat() if document.byline_date else ""
            fields = (
                str(group),
                str(sizes[order[group]]),
                document.doc_id,
                date,
                document.publisher,
                document.title,
                document.url,
            )
            file.write("\t".join(" ".join(field.split()) for field in fields) + "\n")
    return len(order), len(members)
