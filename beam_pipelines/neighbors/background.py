"""The similarities of articles some weeks apart, in all spaces: a background for `triplets` to compare with.

They share the subjects of their weeks, and stories that run for long, but seldom report one event.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...formats import parquet
from ...formats.records import Space
from ..arrays import doc_numbers_of
from .rows import Ids, Rows

FAR_PAIRS: Final = "far_pairs"  # the stream: one array for each shard
LEAST_DAYS: Final = 8
MOST_DAYS: Final = 28
_MOST_PAIRS: Final = 2_000_000  # of all shards
_PAIRS_AT_ONCE: Final = 4_096

Codes = np.ndarray[Any, np.dtype[np.int64]]


def background(
    rows: Rows, publishers: Codes, spaces: tuple[Space, ...], most_pairs: int
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns the similarities of pairs of documents 8 to 28 days apart.

    Args:
      rows: the documents of one shard, N of them; shards are drawn by document id, so one shard is a sample of the
        corpus.
      publishers: int64 ``[N]``, equal for documents of one publisher.
      spaces: those of the neighbors.
      most_pairs: with more pairs than this, every second, third, … pair is taken.

    Returns:
      float32 ``[P, len(spaces)]``. NaN where one of the documents has no vector, and in all spaces for two documents of
      one publisher, which are never a positive.
    """
    order = np.lexsort((rows.ids, rows.days))
    days = rows.days[order]
    first = np.searchsorted(days, days + LEAST_DAYS)
    counts = np.searchsorted(days, days + MOST_DAYS, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.arange(0, total, max(1, -(-total // most_pairs)))
    left = np.searchsorted(ends, numbers, side="right")
    right = order[first[left] + numbers - (ends[left] - counts[left])]
    left = order[left]
    apart = np.flatnonzero(publishers[left] != publishers[right])
    found = np.full((len(numbers), len(spaces)), np.nan, np.float32)
    for column, space in enumerate(spaces):
        vectors, present = rows.vectors[space], rows.present[space]
        known = apart[present[left[apart]] & present[right[apart]]]
        for start in range(0, len(known), _PAIRS_AT_ONCE):
            part = known[start : start + _PAIRS_AT_ONCE]
            found[part, column] = np.einsum("pd,pd->p", vectors[left[part]], vectors[right[part]])
    return found


def pairs_of_shard(shard_count: int) -> int:
    """Returns the most pairs of one shard, so that one worker can hold those of all."""
    return max(1_000, _MOST_PAIRS // shard_count)


def read_publishers(paths: Mapping[Space, str], ids: Ids) -> Codes:
    """Returns a number for the publisher of each document, int64 ``[N]``, equal for documents of one publisher.

    Args:
      paths: of one shard of the vectors, by space.
      ids: uint64 ``[N]``, the documents of the shard, sorted.
    """
    names: dict[str, int] = {}
    codes = np.zeros(len(ids), np.int64)
    for path in paths.values():
        for batch in parquet.read_batches(path, ["doc_id", "publisher"]):
            numbers = [names.setdefault(name, len(names)) for name in batch.column("publisher").to_pylist()]
            codes[np.searchsorted(ids, doc_numbers_of(batch.column("doc_id")))] = numbers
    return codes
