"""What pairing needs to know of every document, as arrays that a worker looks ids up in: 28 bytes a document."""

import dataclasses
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import files
from .dates import DateStats


@dataclasses.dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document's row of the table."""

    publisher: str
    language: str
    entropy: float
    own_mass: float
    expected_gap: float


class DocumentTable:
    """Rows by doc_id, over sorted arrays."""

    def __init__(self, arrays: Any) -> None:
        self._ids = arrays["ids"]
        self._numbers = arrays["numbers"]
        self._codes = arrays["codes"]
        self._publishers = arrays["publishers"].tolist()
        self._languages = arrays["languages"].tolist()

    def __len__(self) -> int:
        return len(self._ids)

    def doc_ids(self) -> list[str]:
        """All ids, sorted."""
        return [f"{int(number):016x}" for number in self._ids]

    def get(self, doc_id: str) -> DocumentRow | None:
        """The row of a document; ``None`` for one that is not there."""
        wanted = np.uint64(int(doc_id, 16))
        place = int(np.searchsorted(self._ids, wanted))
        if place == len(self._ids) or self._ids[place] != wanted:
            return None
        publisher, language = self._codes[place]
        entropy, own_mass, gap = (float(number) for number in self._numbers[place])
        return DocumentRow(self._publishers[publisher], self._languages[language], entropy, own_mass, gap)


def write_table(path: str, rows: Iterable[DateStats]) -> None:
    """Writes the table of all documents."""
    listed = sorted(rows, key=lambda row: row.doc_id)
    publishers, languages = sorted({row.publisher for row in listed}), sorted({row.language for row in listed})
    publisher_codes, language_codes = ({name: code for code, name in enumerate(names)} for names in (publishers, languages))
    with files.open_write(path) as sink:
        np.savez(
            sink,
            ids=np.array([int(row.doc_id, 16) for row in listed], np.uint64),
            numbers=np.array([(row.entropy, row.own_mass, row.expected_gap) for row in listed], np.float32).reshape(-1, 3),
            codes=np.array([(publisher_codes[row.publisher], language_codes[row.language]) for row in listed], np.int32).reshape(-1, 2),
            publishers=np.array(publishers, str),
            languages=np.array(languages, str),
        )


@lru_cache(maxsize=2)
def read_table(path: str) -> DocumentTable:
    """Reads the table once a process."""
    with files.open_read(path) as source:
        return DocumentTable(dict(np.load(source)))
