"""Events of anchors, and a limit on the anchors of one event, so that a big story does not flood the training set.

Events are found by leader clustering: documents are visited by falling number of positives, and each takes those of its
positives that no earlier document has taken. Unlike connected components, this does not merge stories that pass into
each other day by day.
"""

import hashlib
from typing import Any

import numpy as np

from ..arrays import Array, doc_id_of

Ids = np.ndarray[Any, np.dtype[np.uint64]]


def events_of(pairs: Array) -> tuple[Ids, Ids]:
    """Groups the documents of positive pairs into events.

    Args:
      pairs: uint64 ``[P, 2]``, document ids as numbers; the direction does not matter.

    Returns:
      The documents, uint64 ``[N]``, sorted, and the leader of the event of each, uint64 ``[N]``.
    """
    documents, numbers = np.unique(pairs, return_inverse=True)
    links = np.unique(np.concatenate([numbers.reshape(-1, 2), numbers.reshape(-1, 2)[:, ::-1]]), axis=0)
    starts = np.searchsorted(links[:, 0], np.arange(len(documents) + 1))
    leaders = np.full(len(documents), -1)
    for leader in np.lexsort((documents, -np.diff(starts))).tolist():
        if leaders[leader] < 0:
            others = links[starts[leader] : starts[leader + 1], 1]
            leaders[others[leaders[others] < 0]] = leader
            leaders[leader] = leader
    return documents, documents[leaders]


def crowded_out(anchors: Ids, pairs: Array, most: int) -> Ids:
    """Returns the anchors beyond the first ``most`` of their event, in an order drawn by digest; sorted.

    Args:
      anchors: uint64 ``[A]``, all in the pairs.
      pairs: uint64 ``[P, 2]``, see :func:`events_of`.
      most: largest number of anchors of one event.
    """
    documents, leaders = events_of(pairs)
    leader = leaders[np.searchsorted(documents, anchors)]
    keys = np.array(
        [hashlib.blake2b(doc_id_of(anchor).encode(), digest_size=8).digest() for anchor in anchors.tolist()], "S8"
    )
    order = np.lexsort((anchors, keys, leader))
    ordered = leader[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.sort(anchors[order[rank >= most]])
