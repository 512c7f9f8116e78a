"""What pairing needs to know of every document, as arrays that a worker looks ids up in: 28 bytes a document."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...formats import files
from ..arrays import Ids
from .dates import DateStats


class DocumentTable:
    """Rows by document id (as a number), over sorted arrays.

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
        """Row of each document, int64 ``[P]``; -1 for one that is not there."""
        places = np.searchsorted(self.ids, ids)
        there = places < len(self.ids)
        there[there] = self.ids[places[there]] == ids[there]
        return np.where(there, places, -1)

    def publishers(self, ids: Ids) -> np.ndarray[Any, np.dtype[np.int32]]:
        """A number for the publisher of each document, all of which must be there: int32 ``[P]``."""
        return np.asarray(self._codes[self.places(ids), 0])

    def language(self, number: int) -> str:
        """Language of the document at a row."""
        return str(self._languages[self._codes[number, 1]])

    def date_stats(self, ids: Ids) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Entropy, own mass and expected gap of each document (see ``DateStats``), all of which must be there: float32 ``[P, 3]``.

        The first two as ranks in the corpus, from 0 to 1: what a number means depends on how well any article of a corpus can be dated.
        """
        return np.asarray(self._numbers[self.places(ids)])


def write_table(path: str, rows: Iterable[DateStats]) -> None:
    """Writes the table of all documents."""
    listed = sorted(rows, key=lambda row: row.doc_id)
    publishers, languages = sorted({row.publisher for row in listed}), sorted({row.language for row in listed})
    publisher_codes, language_codes = (
        {name: code for code, name in enumerate(names)} for names in (publishers, languages)
    )
    gaps = np.array([row.expected_gap for row in listed], np.float32)
    with files.open_write(path) as sink:
        np.savez(
            sink,
            ids=np.array([int(row.doc_id, 16) for row in listed], np.uint64),
            numbers=np.stack(
                [_ranks([row.entropy for row in listed]), _ranks([row.own_mass for row in listed]), gaps], axis=1
            ),
            codes=np.array(
                [(publisher_codes[row.publisher], language_codes[row.language]) for row in listed], np.int32
            ).reshape(-1, 2),
            publishers=np.array(publishers, str),
            languages=np.array(languages, str),
        )


def _ranks(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Share of the other values that are smaller, equal ones counted half; 0.5 for a value that is alone."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 0.5) / max(1, len(values)), np.float32)


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Reads the table once a process."""
    with files.open_read(path) as source:
        return DocumentTable(dict(np.load(source)))
