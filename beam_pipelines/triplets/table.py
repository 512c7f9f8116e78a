"""The fields of every document that pairing needs, as arrays with lookup by id: 28 bytes per document.

The table is sorted by id, and has ranks within the corpus, but no worker holds it while it is made:

1. :func:`send_stats` sends the numbers of a shard's documents to ranges of values, and the rest to ranges of ids; it
   also sends the ids to the shards of the anchors, so that these need not look through the table.
2. :func:`rank_numbers` ranks the numbers of a range of values, and sends the ranks to the ranges of ids.
3. :func:`sort_documents` joins both in a range of ids.
4. :func:`write_table` writes the ranges one after another.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ...formats import files
from ..arrays import (
    Array,
    Ids,
    PartedArray,
    map_arrays,
    read_array,
    text_digests,
    write_array,
    write_part_arrays,
)
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from .dates import DateStats

TABLE: Final = "documents/table.npz"
_RANKED: Final = ("entropy", "own_mass")  # columns
_DIGEST: Final = "<u8"  # of a publisher or a language
NUMBERS: Final = Rows("_numbers", np.dtype([("id", "<u8"), ("value", "<f4"), ("column", "<i4")]))
# ``twice``: twice the rank within the range; equal values have their mean rank.
RANKS: Final = Rows("_ranks", np.dtype([("id", "<u8"), ("twice", "<i8"), ("range", "<i4"), ("column", "<i4")]))
FACTS: Final = Rows(
    "_facts", np.dtype([("id", "<u8"), ("publisher", _DIGEST), ("language", _DIGEST), ("expected_gap", "<f4")])
)
ANCHORS: Final = Rows("_anchors", np.dtype("<u8"))
_DOCUMENT: Final = np.dtype([*FACTS.dtype.descr, ("twice", "<i8", (2,)), ("range", "<i4", (2,))])
_NAMES, _SIZES, _SORTED = "_names", "_range_sizes", "_documents"


class DocumentTable:
    """A table of documents, looked up by document id as a number.

    Attributes:
      ids: uint64 ``[N]``, sorted.
    """

    def __init__(self, arrays: Any) -> None:
        self.ids: Ids = arrays["ids"]
        self._numbers = arrays["numbers"]
        self._codes = arrays["codes"]
        self._languages = arrays["languages"].tolist()

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: Ids) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the row of each document, int64 ``[P]``; -1 if it is not in the table."""
        places = np.searchsorted(self.ids, ids)
        there = places < len(self.ids)
        there[there] = self.ids[places[there]] == ids[there]
        return np.where(there, places, -1)

    def publishers(self, ids: Ids) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Returns the publisher code of each document, int32 ``[P]``; all documents must be in the table."""
        return np.asarray(self._codes[self.places(ids), 0])

    def language(self, number: int) -> str:
        """Returns the language of the document in a row."""
        return str(self._languages[self._codes[number, 1]])

    def date_stats(self, ids: Ids) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Returns entropy, own mass and expected gap of each document (see ``DateStats``): float32 ``[P, 3]``.

        Entropy and own mass are ranks within the corpus, from 0 to 1, because their scale depends on how well the
        articles of a corpus can be dated. All documents must be in the table.
        """
        return np.asarray(self._numbers[self.places(ids)])


def range_splits(sample: Iterable[DateStats], ranges: int) -> Array:
    """Returns the bounds of ranges that have about equally many values, float32 ``[2, ranges - 1]``.

    Args:
      sample: of the corpus, drawn at random.
      ranges: their number.
    """
    values = _values(list(sample))
    if not len(values):
        return np.zeros((2, ranges - 1), np.float32)
    return np.quantile(values, np.arange(1, ranges) / ranges, axis=0).T.astype(np.float32)


def _values(stats: Sequence[DateStats]) -> Array:
    """The numbers that are ranked, float32 ``[N, 2]``."""
    return np.array([[getattr(one, name) for name in _RANKED] for one in stats], np.float32).reshape(-1, len(_RANKED))


def send_stats(shard: Shard, stats: Sequence[DateStats], splits: Array, anchor_shards: int) -> None:
    """Sends the documents of a shard.

    Args:
      shard: of the documents.
      stats: of all of its documents.
      splits: see :func:`range_splits`.
      anchor_shards: number of shards of anchors, which get the ids of their documents.
    """
    ids = np.array([int(one.doc_id, 16) for one in stats], np.uint64)
    values = _values(stats)
    numbers = np.zeros((len(_RANKED), len(stats)), NUMBERS.dtype)
    receivers = np.zeros(numbers.shape, np.int64)
    for column, bounds in enumerate(splits):
        numbers[column]["id"], numbers[column]["value"], numbers[column]["column"] = ids, values[:, column], column
        receivers[column] = np.searchsorted(bounds, values[:, column], side="right")
    send(shard, NUMBERS.stream, numbers.ravel(), receivers.ravel())
    facts = np.zeros(len(stats), FACTS.dtype)
    facts["id"], facts["expected_gap"] = ids, [one.expected_gap for one in stats]
    for name in ("publisher", "language"):
        facts[name] = text_digests([getattr(one, name) for one in stats])
    send(shard, FACTS.stream, facts, _range_of(ids, splits.shape[1] + 1))
    send(shard, ANCHORS.stream, ids, shard_numbers(ids, anchor_shards))
    names = {name: sorted({getattr(one, name) for one in stats}) for name in ("publisher", "language")}
    files.write_json(shard.path(_NAMES, "json"), names)


def rank_numbers(shard: Shard, received: Received, ranges: int) -> None:
    """Ranks the numbers of one of so many ranges of values."""
    numbers = received.rows[NUMBERS.stream]
    ranks = np.zeros(len(numbers), RANKS.dtype)
    ranks["id"], ranks["column"], ranks["range"] = numbers["id"], numbers["column"], shard.index
    for column in range(len(_RANKED)):
        own = np.flatnonzero(numbers["column"] == column)
        _, place, counts = np.unique(numbers["value"][own], return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks["twice"][own] = (2 * ends - counts + 1)[place]
    send(shard, RANKS.stream, ranks, _range_of(ranks["id"], ranges))
    write_array(shard.path(_SIZES, "npy"), np.bincount(numbers["column"], minlength=len(_RANKED)))


def sort_documents(shard: Shard, received: Received) -> None:
    """Writes the documents of one range of ids, sorted.

    Raises:
      RuntimeError: if a document is there without its ranks, or twice.
    """
    facts, ranks = received.rows[FACTS.stream], received.rows[RANKS.stream]
    facts, ranks = facts[np.argsort(facts["id"])], ranks[np.lexsort((ranks["id"], ranks["column"]))]
    if not np.array_equal(ranks["id"], np.tile(facts["id"], len(_RANKED))) or (np.diff(facts["id"]) == 0).any():
        raise RuntimeError(f"got {len(ranks)} ranks for {len(facts)} documents, or documents with the same id")
    documents = np.zeros(len(facts), _DOCUMENT)
    for name in FACTS.dtype.names or ():
        documents[name] = facts[name]
    for name in ("twice", "range"):
        documents[name] = ranks[name].reshape(len(_RANKED), -1).T
    write_array(shard.path(_SORTED, "npy"), documents)


def write_table(workspace: str) -> None:
    """Writes the table from what :func:`sort_documents` wrote; one range of ids is in memory at a time."""
    sizes = np.stack([read_array(path) for path in files.list_files(f"{workspace}/{_SIZES}/part-*.npy")])
    total, before = int(sizes[:, 0].sum()), np.cumsum(sizes, axis=0) - sizes
    names = {name: _all_names(workspace, name) for name in ("publisher", "language")}
    digests = {name: text_digests(known) for name, known in names.items()}
    orders = {name: np.argsort(known) for name, known in digests.items()}

    def ids(part: Array) -> Array:
        return np.ascontiguousarray(part["id"])

    def numbers(part: Array) -> Array:
        # Mid-ranks scaled to (0, 1): the share of smaller values plus half the share of equal values.
        twice = part["twice"] + 2 * np.take_along_axis(before, part["range"], axis=0)
        ranks = ((twice / 2 - 0.5) / max(1, total)).astype(np.float32)
        return np.concatenate([ranks, part["expected_gap"][:, None]], axis=1)

    def codes(part: Array) -> Array:
        places = [np.searchsorted(digests[name], part[name], sorter=orders[name]) for name in names]
        return np.stack([order[place] for order, place in zip(orders.values(), places, strict=True)], 1).astype("<i4")

    paths = files.list_files(f"{workspace}/{_SORTED}/part-*.npy")
    arrays = {
        "ids": PartedArray((total,), np.dtype("<u8"), map(ids, map(read_array, paths))),
        "numbers": PartedArray((total, 3), np.dtype("<f4"), map(numbers, map(read_array, paths))),
        "codes": PartedArray((total, 2), np.dtype("<i4"), map(codes, map(read_array, paths))),
    }
    for name, known in names.items():
        values = np.array(known, str)
        arrays[f"{name}s"] = PartedArray(values.shape, values.dtype, [values])
    write_part_arrays(f"{workspace}/{TABLE}", arrays)


def _all_names(workspace: str, name: str) -> list[str]:
    """All publishers or languages, sorted: the place of one is its code."""
    paths = files.list_files(f"{workspace}/{_NAMES}/part-*.json")
    return sorted({one for path in paths for one in files.read_json(path)[name]})


def _range_of(ids: Ids, ranges: int) -> Array:
    """The range of each id; ids are digests, so that all ranges have about equally many."""
    return ((ids >> np.uint64(32)) * np.uint64(ranges)) >> np.uint64(32)


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Maps the table, once per process."""
    return DocumentTable(map_arrays(path))
