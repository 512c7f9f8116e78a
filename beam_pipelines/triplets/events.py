"""Events of documents: to limit the anchors of one event, and to recognise two reports of one event in a batch.

So that a big story does not flood the training set, `crowded_out` limits the anchors of one event. Its events are found
by leader clustering: documents are visited by falling number of positives, and each takes those of its positives that
no earlier document has taken. Unlike connected components, this does not merge stories that pass into each other day by
day.

`stories_of` gives connected components, so that two reports are found to belong together although only a third one
links them. Such a story may last for weeks; to decide whether two documents report one event, compare their days, too.
"""

import functools
import hashlib
from typing import Any, Final

import numpy as np

from ...formats import files
from ...formats.arrays import write_arrays
from ..arrays import Array, doc_id_of, map_arrays

Ids = np.ndarray[Any, np.dtype[np.uint64]]
STORIES: Final = "documents/stories.npz"  # in the folder of ``triplets``


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


def stories_of(pairs: Array) -> tuple[Ids, Ids]:
    """Groups documents into the connected components of pairs.

    Args:
      pairs: uint64 ``[P, 2]``, document ids as numbers; the direction does not matter.

    Returns:
      The documents, uint64 ``[N]``, sorted, and the smallest document id in the component of each, uint64 ``[N]``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    documents, numbers = np.unique(pairs, return_inverse=True)
    left, right = numbers.reshape(-1, 2).T
    links = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(len(documents), len(documents)))
    _, components = connected_components(links, directed=False)
    _, first = np.unique(components, return_index=True)  # documents are sorted, so the first one has the smallest id
    return documents, documents[first[components]]


def links_of(pairs: Array) -> Array:
    """Returns pairs with the same connected components, one less than documents in each: of some pairs or all.

    Args:
      pairs: uint64 ``[P, 2]``, see :func:`stories_of`; the documents of a pair differ.
    """
    links = np.stack(stories_of(pairs), axis=1)
    return links[links[:, 0] != links[:, 1]]


def write_stories(path: str, documents: Ids, stories: Ids) -> None:
    """Writes the result of :func:`stories_of`."""
    write_arrays(path, {"documents": documents, "stories": stories})


class Stories:
    """The story of each document, looked up by document id as a number."""

    def __init__(self, documents: Ids, stories: Ids) -> None:
        self._documents, self._stories = documents, stories

    def of(self, doc_id: int) -> int:
        """Returns the story of a document, 0 if it has none."""
        place = int(np.searchsorted(self._documents, np.uint64(doc_id)))
        is_known = place < len(self._documents) and int(self._documents[place]) == doc_id
        return int(self._stories[place]) if is_known else 0


@functools.lru_cache(maxsize=2)
def read_stories(path: str) -> Stories:
    """Maps what :func:`write_stories` wrote, once per process; triplets of older versions have no such file."""
    if not files.exists(path):
        none = np.zeros(0, np.uint64)
        return Stories(none, none)
    arrays = map_arrays(path)
    return Stories(arrays["documents"], arrays["stories"])
