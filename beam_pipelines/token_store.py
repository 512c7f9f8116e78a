"""Random access to the tokens of every document, so that texts do not have to pass through a GroupByKey.

Each shard of articles has four arrays, which are memory-mapped and never read as a whole::

    <folder>/part-….languages.npy  ASCII bytes [n], by document id
    <folder>/part-….first.npy      int64 [n + 1], number of the first part of each document
    <folder>/part-….offsets.npy    int64 [parts + 1], start of each part in the ids
    <folder>/part-….ids.npy        int32 [tokens]

The parts of a document are its title, its body, then its usable anchor texts. Where a document is, and its day, is in
``<folder>_index``, see `Lookup`: :func:`store_documents` sends it there, and :func:`write_index` receives it.

A :class:`Lookup` has rows of all documents in parts, of which a worker maps those that it uses: a document's row is in
the part that `shards.shard_of` gives, so no worker needs an index of all documents.
"""

import datetime
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..formats import files
from .arrays import Array, Ids, doc_id_of, find, map_file, write_array
from .graph import Received, Rows, send
from .shards import Shard, shard_numbers, shard_of

TOKENS: Final = "_tokens"  # the stream of all documents
_PLACE: Final = np.dtype([("id", "<u8"), ("row", "<i8"), ("shard", "<i4"), ("day", "<i4")])
_ARRAYS: Final = ("languages", "first", "offsets", "ids")
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()


class DocumentTokens(NamedTuple):
    """Token ids of one document, without special tokens: int32 arrays, cut to the stored length.

    Attributes:
      doc_id: 16 hex digits.
      language: BCP-47 tag, ``und`` if unknown.
      title: ids, may be empty.
      body: ids, may be empty.
      anchor_texts: ids of the link texts that may represent the document.
      day: byline day, in days since 1970-01-01; 0 if unknown.
    """

    doc_id: str
    language: str
    title: np.ndarray
    body: np.ndarray
    anchor_texts: tuple[np.ndarray, ...]
    day: int = 0


def day_number(date: datetime.date | None) -> int:
    """Returns the days since 1970-01-01, 0 if unknown.

    >>> day_number(datetime.date(1970, 2, 1))
    31
    """
    return 0 if date is None else date.toordinal() - _EPOCH


def date_of(day: int) -> datetime.date:
    """Returns the date of a :func:`day_number`."""
    return datetime.date.fromordinal(day + _EPOCH)


def is_held_out(day: int, first: datetime.date | None) -> bool:
    """Whether a document of this day is held out; a document without a known day never is.

    Args:
      day: see :func:`day_number`.
      first: the first day that is held out, ``None`` if nothing is.
    """
    return first is not None and day >= day_number(first) and day > 0


# Rows of all documents by id


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
      folder: of the parts that :func:`write_part` wrote.
    """

    def __init__(self, folder: str) -> None:
        paths = files.list_files("part-*.npy", folder)
        self._count = len(paths)
        self._part = functools.cache(lambda number: map_file(paths[number]))

    def rows(self, ids: Ids) -> Iterator[tuple[Array, Array]]:
        """Yields the first row of each document that has one, part by part: numbers of ids and their rows, ``[P]``."""
        numbers = shard_numbers(ids, self._count)
        for number in np.unique(numbers).tolist():
            asked = np.flatnonzero(numbers == number)
            part = self._part(number)
            places = find(part["id"], ids[asked])
            yield asked[places >= 0], part[places[places >= 0]]

    def row(self, doc_id: int) -> Any:
        """Returns the first row of one document, ``None`` if there is none."""
        rows = self.all_rows(doc_id)
        return rows[0] if len(rows) else None

    def all_rows(self, doc_id: int) -> Array:
        """Returns the rows of one document, in the order in which :func:`write_part` got them."""
        part = self._part(shard_of(doc_id_of(doc_id), self._count))
        start, end = (int(np.searchsorted(part["id"], np.uint64(doc_id), side=side)) for side in ("left", "right"))
        return part[start:end]


open_lookup = functools.lru_cache(maxsize=2)(Lookup)  # once per process: a folder in a workspace does not change


# Tokens


def store_documents(shard: Shard, stream: str, documents: Sequence[DocumentTokens]) -> None:
    """Writes the documents of one shard, and sends their places to the index, which has as many shards.

    Args:
      shard: of the documents.
      stream: the folder.
      documents: all of the shard, in any order.
    """
    ordered = sorted(documents, key=lambda document: document.doc_id)
    parts = [[document.title, document.body, *document.anchor_texts] for document in ordered]
    flat = [part for of_document in parts for part in of_document]
    ids = np.array([int(document.doc_id, 16) for document in ordered], np.uint64)
    arrays = {
        "languages": np.array([document.language for document in ordered], "S"),
        "first": np.cumsum([0, *map(len, parts)], dtype=np.int64),
        "offsets": np.cumsum([0, *map(len, flat)], dtype=np.int64),
        "ids": np.concatenate([np.zeros(0, np.int32), *flat]).astype(np.int32),
    }
    for name, values in arrays.items():
        write_array(shard.path(stream, f"{name}.npy"), values)
    places = np.zeros(len(ordered), _PLACE)
    places["id"], places["day"] = ids, [document.day for document in ordered]
    places["row"], places["shard"] = np.arange(len(ordered)), shard.index
    send(shard, places_sent(stream).stream, places, shard_numbers(ids, shard.count))


def places_sent(stream: str) -> Rows:
    """Returns what :func:`store_documents` sends."""
    return Rows(f"{stream}_places", _PLACE)


def write_index(shard: Shard, received: Received, stream: str) -> None:
    """Writes one part of the index of a stream."""
    write_part(shard, f"{stream}_index", received.rows[places_sent(stream).stream])


class TokenStore:
    """Reads documents by id from a folder of shards.

    Args:
      folder: local or remote; shards of a remote folder are copied to local disk on first use.
    """

    def __init__(self, folder: str) -> None:
        prefixes = [path.removesuffix(".ids.npy") for path in files.list_files("part-*.ids.npy", folder)]
        self._arrays = functools.cache(lambda shard: [map_file(f"{prefixes[shard]}.{name}.npy") for name in _ARRAYS])
        self._index = Lookup(f"{folder.rstrip('/')}_index")

    def get(self, doc_id: str) -> DocumentTokens | None:
        """Returns the document, or ``None`` if no shard has it."""
        place = self._index.row(int(doc_id, 16))
        if place is None:
            return None
        row = int(place["row"])
        languages, firsts, offsets, ids = self._arrays(int(place["shard"]))
        first, end = firsts[row : row + 2].tolist()
        bounds = offsets[first : end + 1].tolist()
        title, body, *anchors = (np.array(ids[start:stop]) for start, stop in itertools.pairwise(bounds))
        return DocumentTokens(doc_id, languages[row].decode("ascii"), title, body, tuple(anchors), int(place["day"]))

    def day(self, doc_id: str) -> int:
        """Returns the byline day of a document; 0 if it is unknown or no shard has the document."""
        place = self._index.row(int(doc_id, 16))
        return 0 if place is None else int(place["day"])

    def places(self, doc_ids: Ids) -> Array:
        """Returns rows ``[P]`` with the ``shard`` and the ``day`` of each document; zeros where no shard has it."""
        places = np.zeros(len(doc_ids), _PLACE)
        for numbers, found in self._index.rows(doc_ids):
            places[numbers] = found
        return places


open_store = functools.lru_cache(maxsize=2)(TokenStore)  # once per process
