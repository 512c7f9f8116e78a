"""Random access to the tokens of every document, so that texts do not have to pass through a GroupByKey.

Each shard of articles has six arrays, which are memory-mapped and never read as a whole::

    <folder>/part-….doc_ids.npy    uint64 [n], sorted
    <folder>/part-….languages.npy  ASCII bytes [n]
    <folder>/part-….days.npy       int32 [n], byline days
    <folder>/part-….first.npy      int64 [n + 1], number of the first part of each document
    <folder>/part-….offsets.npy    int64 [parts + 1], start of each part in the ids
    <folder>/part-….ids.npy        int32 [tokens]

The parts of a document are its title, its body, then its usable anchor texts.
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
from .arrays import Ids, doc_id_of, map_array, read_array, write_array

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


def write_shard(prefix: str, documents: Sequence[DocumentTokens]) -> None:
    """Writes the arrays of one shard; ``prefix`` is their path without ``.<array>.npy``."""
    ordered = sorted(documents, key=lambda document: document.doc_id)
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

    def get(self, doc_id: str) -> DocumentTokens | None:
        """Returns the document, or ``None`` if no shard has it."""
        doc_ids, places, starts = self._index
        wanted = np.uint64(int(doc_id, 16))
        number = int(np.searchsorted(doc_ids, wanted))
        if number == len(doc_ids) or doc_ids[number] != wanted:
            return None
        place = int(places[number])
        shard = int(np.searchsorted(starts, place, side="right")) - 1
        return self._shard(shard).document(place - int(starts[shard]))

    def day(self, doc_id: str) -> int:
        """Returns the byline day of a document; 0 if it is unknown or no shard has the document."""
        return int(self.days(np.array([int(doc_id, 16)], np.uint64))[0])

    def days(self, doc_ids: Ids) -> np.ndarray:
        """Returns the byline day of each document, int32 ``[P]``; 0 if it is unknown or no shard has the document."""
        known, places, _ = self._index
        numbers = np.searchsorted(known, doc_ids)
        there = numbers < len(known)
        there[there] = known[numbers[there]] == doc_ids[there]
        days = np.zeros(len(doc_ids), np.int32)
        days[there] = self._days[places[numbers[there]]]
        return days

    @functools.cached_property
    def _days(self) -> np.ndarray:
        """The days of all documents by row number over all shards; takes 4 bytes per document."""
        parts = [read_array(f"{prefix}.days.npy") for prefix in self._prefixes]
        return np.concatenate([np.zeros(0, np.int32), *parts])

    @functools.cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All document ids, sorted; their row numbers over all shards; the first row number of each shard.

        Takes 16 bytes per document.
        """
        parts = [read_array(f"{prefix}.doc_ids.npy") for prefix in self._prefixes]
        doc_ids = np.concatenate([np.zeros(0, np.uint64), *parts])
        places = np.argsort(doc_ids, kind="stable")
        return doc_ids[places], places, np.cumsum([0, *map(len, parts[:-1])])

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
