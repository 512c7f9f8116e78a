"""The fields of every document that pairing needs, as arrays with lookup by id: 28 bytes per document."""

import dataclasses
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...formats import parquet
from ...formats.arrays import write_arrays
from ..arrays import Ids, doc_numbers_of, map_arrays
from .dates import DateStats

TABLE: Final = "documents/table.npz"


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


def write_table(path: str, stream: str) -> None:
    """Writes the table of all documents.

    Args:
      path: of the npz file.
      stream: folder of the records, `DateStats`. Their columns become arrays of about 60 bytes per document.
    """
    columns = [field.name for field in dataclasses.fields(DateStats)]
    publishers, languages = _Codes(), _Codes()
    ids, numbers = [np.zeros(0, np.uint64)], [np.zeros((0, 3), np.float32)]
    for shard in parquet.shard_paths(stream):
        for batch in parquet.read_batches(shard, columns):
            values = {name: batch.column(name) for name in columns}
            ids.append(doc_numbers_of(values["doc_id"]))
            publishers.add(values["publisher"])
            languages.add(values["language"])
            of_batch = [values[name].to_numpy() for name in ("entropy", "own_mass", "expected_gap")]
            numbers.append(np.stack(of_batch, axis=1))
    every = np.concatenate(ids)
    order = np.argsort(every, kind="stable")
    entropy, own_mass, gaps = np.concatenate(numbers)[order].T
    arrays = {
        "ids": every[order],
        "numbers": np.stack([_ranks(entropy), _ranks(own_mass), gaps], axis=1),
        "codes": np.stack([publishers.codes()[order], languages.codes()[order]], axis=1),
        "publishers": np.array(publishers.names(), str),
        "languages": np.array(languages.names(), str),
    }
    write_arrays(path, arrays)


class _Codes:
    """Gives each text the number of its place among all texts, sorted."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._parts = [np.zeros(0, np.int32)]

    def add(self, texts: pa.Array) -> None:
        encoded = texts.dictionary_encode()
        known = [self._numbers.setdefault(text, len(self._numbers)) for text in encoded.dictionary.to_pylist()]
        self._parts.append(np.array(known, np.int32)[encoded.indices.to_numpy()])

    def names(self) -> list[str]:
        return sorted(self._numbers)

    def codes(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        places = np.zeros(len(self._numbers), np.int32)
        for place, name in enumerate(self.names()):
            places[self._numbers[name]] = place
        return places[np.concatenate(self._parts)]


def _ranks(values: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns mid-ranks scaled to (0, 1): the share of smaller values plus half the share of equal values."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 0.5) / max(1, len(values)), np.float32)


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Maps the table, once per process."""
    return DocumentTable(map_arrays(path))
