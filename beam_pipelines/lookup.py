"""Rows of all documents, looked up by document id, in parts of which a worker maps those that it uses.

A document's row is in the part that `shards.shard_of` gives, so no worker needs an index of all documents. The parts
are mapped files: pages are read when they are used, and the kernel may drop them.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ..formats import files
from .arrays import Array, Ids, doc_id_of, map_file, write_array
from .shards import Shard, shard_numbers, shard_of


def write_part(shard: Shard, stream: str, rows: Array) -> None:
    """Writes one part.

    Args:
      shard: its index is the number of the part.
      stream: of the parts.
      rows: of the documents of the part, a structured array with a field ``id``, in any order.
    """
    write_array(shard.path(stream, "npy"), rows[np.argsort(rows["id"], kind="stable")])


class Lookup:
    """Finds rows by document id.

    Args:
      folder: of the parts that :func:`write_part` wrote; may be without parts.
    """

    def __init__(self, folder: str) -> None:
        self._paths = files.list_files(f"{folder.rstrip('/')}/part-*.npy")
        self._parts: dict[int, Array] = {}

    def rows(self, ids: Ids) -> Iterator[tuple[Array, Array]]:
        """Yields the first row of each document that has one, part by part: numbers of ids and their rows, ``[P]``."""
        if not self._paths:
            return
        numbers = shard_numbers(ids, len(self._paths))
        for number in np.unique(numbers).tolist():
            asked = np.flatnonzero(numbers == number)
            part = self._part(number)
            places = np.searchsorted(part["id"], ids[asked])
            there = np.flatnonzero(places < len(part))
            there = there[part["id"][places[there]] == ids[asked[there]]]
            yield asked[there], part[places[there]]

    def row(self, doc_id: int) -> Any:
        """Returns the first row of one document, ``None`` if there is none."""
        rows = self.all_rows(doc_id)
        return rows[0] if len(rows) else None

    def all_rows(self, doc_id: int) -> Array:
        """Returns the rows of one document, in the order in which :func:`write_part` got them."""
        if not self._paths:
            return np.zeros(0)
        part = self._part(shard_of(doc_id_of(doc_id), len(self._paths)))
        start, end = (int(np.searchsorted(part["id"], np.uint64(doc_id), side=side)) for side in ("left", "right"))
        return part[start:end]

    def _part(self, number: int) -> Array:
        if number not in self._parts:
            self._parts[number] = map_file(self._paths[number])
        return self._parts[number]


@lru_cache(maxsize=2)
def open_lookup(folder: str) -> Lookup:
    """Returns the rows of a folder in a workspace, whose content does not change; opened once per process."""
    return Lookup(folder)
