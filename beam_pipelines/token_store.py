"""Random access to the tokens of every document, so that texts do not have to pass through a GroupByKey.

Each shard of articles has six arrays, which are memory-mapped and never read as a whole::

    <folder>/part-….doc_ids.npy    uint64 [n], sorted
    <folder>/part-….languages.npy  ASCII bytes [n]
    <folder>/part-….days.npy       int32 [n], byline days
    <folder>/part-….first.npy      int64 [n + 1], number of the first part of each document
    <folder>/part-….offsets.npy    int64 [parts + 1], start of each part in the ids
    <folder>/part-….ids.npy        int32 [tokens]

The parts of a document are its title, its body, then its usable anchor texts. Where a document is, and its day, is in
``<folder>_index``, see `lookup`: :func:`store_documents` sends it there, and :func:`write_index` receives it.
"""

import dataclasses
import datetime
import functools
import itertools
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..formats import files
from .arrays import Array, Ids, doc_id_of, map_array, write_array
from .lookup import Lookup, write_part
from .shards import Shard, shard_numbers
from .shuffle import Received, Rows, send

PLACE: Final = np.dtype([("id", "<u8"), ("row", "<i8"), ("shard", "<i4"), ("day", "<i4")])
TOKENS: Final = "_tokens"  # the stream of all documents
ARRAYS: Final = ("doc_ids", "languages", "days", "first", "offsets", "ids")
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()


@dataclasses.dataclass(frozen=True)
class DocumentTokens:
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


def store_documents(shard: Shard, stream: str, documents: Sequence[DocumentTokens], shard_count: int) -> None:
    """Writes the documents of one shard, and sends their places to the index.

    Args:
      shard: of the documents.
      stream: the folder.
      documents: all of the shard, in any order.
      shard_count: number of shards of the index.
    """
    ordered = sorted(documents, key=lambda document: document.doc_id)
    write_shard(shard.path(stream, "").rstrip("."), ordered)
    places = places_of(ordered, shard.index)
    send(shard, places_sent(stream).stream, places, shard_numbers(places["id"], shard_count))


def places_sent(stream: str) -> Rows:
    """Returns what :func:`store_documents` sends."""
    return Rows(f"{stream}_places", PLACE)


def write_index(shard: Shard, received: Received, stream: str) -> None:
    """Writes one part of the index of a stream."""
    write_part(shard, f"{stream}_index", received.rows[places_sent(stream).stream])


def places_of(ordered: Sequence[DocumentTokens], shard: int) -> Array:
    """Returns where the documents of a shard are, dtype :data:`PLACE`; they are sorted by id."""
    places = np.zeros(len(ordered), PLACE)
    places["id"] = [int(document.doc_id, 16) for document in ordered]
    places["row"], places["shard"] = np.arange(len(ordered)), shard
    places["day"] = [document.day for document in ordered]
    return places


def write_shard(prefix: str, ordered: Sequence[DocumentTokens]) -> None:
    """Writes the arrays of one shard.

    Args:
      prefix: their path without ``.<array>.npy``.
      ordered: documents sorted by id.
    """
    parts = [[document.title, document.body, *document.anchor_texts] for document in ordered]
    flat = [part for of_document in parts for part in of_document]
    arrays = {
        "doc_ids": np.array([int(document.doc_id, 16) for document in ordered], np.uint64),
        "languages": np.array([document.language for document in ordered], "S"),
        "days": np.array([document.day for document in ordered], np.int32),
        "first": np.cumsum([0, *map(len, parts)], dtype=np.int64),
        "offsets": np.cumsum([0, *map(len, flat)], dtype=np.int64),
        "ids": np.concatenate(flat).astype(np.int32) if flat else np.zeros(0, np.int32),
    }
    for name in ARRAYS:
        write_array(f"{prefix}.{name}.npy", arrays[name])


class TokenStore:
    """Reads documents by id from a folder of shards.

    Args:
      folder: local or remote; shards of a remote folder are copied to local disk on first use.
    """

    def __init__(self, folder: str) -> None:
        paths = files.list_files(f"{folder.rstrip('/')}/part-*.ids.npy")
        self._prefixes = [path.removesuffix(".ids.npy") for path in paths]
        self._shards: dict[int, _Shard] = {}
        self._copies = tempfile.TemporaryDirectory(prefix="newsembed-tokens-") if "://" in folder else None
        self._index = Lookup(f"{folder.rstrip('/')}_index")

    def get(self, doc_id: str) -> DocumentTokens | None:
        """Returns the document, or ``None`` if no shard has it."""
        place = self._index.row(int(doc_id, 16))
        return None if place is None else self._shard(int(place["shard"])).document(int(place["row"]))

    def day(self, doc_id: str) -> int:
        """Returns the byline day of a document; 0 if it is unknown or no shard has the document."""
        place = self._index.row(int(doc_id, 16))
        return 0 if place is None else int(place["day"])

    def days(self, doc_ids: Ids) -> np.ndarray:
        """Returns the byline day of each document, int32 ``[P]``; 0 if it is unknown or no shard has the document."""
        days = np.zeros(len(doc_ids), np.int32)
        for numbers, places in self._index.rows(doc_ids):
            days[numbers] = places["day"]
        return days

    def _shard(self, index: int) -> "_Shard":
        if index not in self._shards:
            self._shards[index] = _Shard(self._local(self._prefixes[index]))
        return self._shards[index]

    def _local(self, prefix: str) -> str:
        if self._copies is None:
            return prefix
        target = os.path.join(self._copies.name, prefix.rpartition("/")[2])
        for name in ARRAYS:
            with files.open_read(f"{prefix}.{name}.npy") as source, open(f"{target}.{name}.npy", "wb") as sink:
                shutil.copyfileobj(source, sink)
        return target


class _Shard:
    def __init__(self, prefix: str) -> None:
        arrays = {name: map_array(f"{prefix}.{name}.npy") for name in ARRAYS}
        self._doc_ids, self._languages = arrays["doc_ids"], arrays["languages"]
        self._first, self._offsets, self._ids = arrays["first"], arrays["offsets"], arrays["ids"]
        self._days = arrays["days"]

    def document(self, row: int) -> DocumentTokens:
        first, end = int(self._first[row]), int(self._first[row + 1])
        bounds = self._offsets[first : end + 1].tolist()
        parts = [np.array(self._ids[start:stop]) for start, stop in itertools.pairwise(bounds)]
        doc_id = doc_id_of(int(self._doc_ids[row]))
        language, day = self._languages[row].decode("ascii"), int(self._days[row])
        return DocumentTokens(doc_id, language, parts[0], parts[1], tuple(parts[2:]), day)


@functools.lru_cache(maxsize=2)
def open_store(folder: str) -> TokenStore:
    """Returns the store of a folder; opened once per process."""
    return TokenStore(folder)
