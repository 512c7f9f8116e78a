"""The fields of every document that pairing needs, as arrays with lookup by id: 28 bytes per document."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...formats import files
from ...formats.arrays import write_arrays
from ..arrays import Ids
from .dates import DateStats


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


def write_table(path: str, rows: Iterable[DateStats]) -> None:
    """Writes the table of all documents."""
    listed = sorted(rows, key=lambda row: row.doc_id)
    publishers, languages = sorted({row.publisher for row in listed}), sorted({row.language for row in listed})
    publisher_codes, language_codes = (
        {name: code for code, name in enumerate(names)} for names in (publishers, languages)
    )
    gaps = np.array([row.expected_gap for row in listed], np.float32)
    arrays = {
        "ids": np.array([int(row.doc_id, 16) for row in listed], np.uint64),
        "numbers": np.stack(
            [_ranks([row.entropy for row in listed]), _ranks([row.own_mass for row in listed]), gaps], axis=1
        ),
        "codes": np.array(
            [(publisher_codes[row.publisher], language_codes[row.language]) for row in listed], np.int32
        ).reshape(-1, 2),
        "publishers": np.array(publishers, str),
        "languages": np.array(languages, str),
    }
    write_arrays(path, arrays)


def _ranks(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns mid-ranks scaled to (0, 1): the share of smaller values plus half the share of equal values."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - 0.5) / max(1, len(values)), np.float32)


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Reads the table, once per process."""
    with files.open_read(path) as source:
        return DocumentTable(dict(np.load(source)))
