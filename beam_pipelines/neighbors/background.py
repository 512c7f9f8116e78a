"""The similarity of articles some weeks apart in the learned space: a background for `triplets` to compare with.

They share the subjects of their weeks, and stories that run for long, but seldom report one event.
"""

from typing import Final

import numpy as np

from ...formats.records import Space
from ..arrays import CosineHistogram, cosine_histogram
from .rows import Rows

BACKGROUND: Final = "background"  # the stream: one histogram for each shard
LEAST_DAYS: Final = 8
MOST_DAYS: Final = 28
_MOST_PAIRS: Final = 200_000  # of a shard
_PAIRS_AT_ONCE: Final = 4_096


def background(rows: Rows, most_pairs: int = _MOST_PAIRS) -> CosineHistogram:
    """Counts pairs of documents 8 to 28 days apart by their cosine in the learned space.

    Args:
      rows: the documents of one shard; shards are drawn by document id, so one shard is a sample of the corpus.
      most_pairs: with more pairs than this, every second, third, … pair counts.

    Returns:
      int64 ``[bins]``, see :func:`cosine_histogram`.
    """
    chosen = rows.having(Space.LEARNED)
    chosen = chosen[np.lexsort((rows.ids[chosen], rows.days[chosen]))]
    days, vectors = rows.days[chosen], rows.vectors[Space.LEARNED][chosen]
    first = np.searchsorted(days, days + LEAST_DAYS)
    counts = np.searchsorted(days, days + MOST_DAYS, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.arange(0, total, max(1, -(-total // most_pairs)))
    left = np.searchsorted(ends, numbers, side="right")
    right = first[left] + numbers - (ends[left] - counts[left])
    found = cosine_histogram(np.zeros(0))
    for start in range(0, len(numbers), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        found += cosine_histogram(np.einsum("pd,pd->p", vectors[left[part]], vectors[right[part]]))
    return found
