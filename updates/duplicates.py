"""Duplicates among the new articles and those of the archive, by the rule of ``newsembed clean``.

Articles with the same URL, with the same body, or with a common band and a similarity of the threshold or more are
joined; of each connected component the earliest article is kept, in the text that came last with its URL and date. The
result is that of ``newsembed clean`` over all articles so far, whatever the number of runs that brought them. So an
article that arrives late with an earlier date, or again with a corrected text, takes the place of the one that the
archive has kept.

Only the connections count, so two articles that are connected already are not compared. A bucket of many near
duplicates then takes time in proportion to their number.
"""

import collections
import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..beam_pipelines.clean.duplicates import REASONS, similarity
from ..beam_pipelines.clean.options import CleanOptions
from ..formats.archive_parts import SIGNATURES, SKETCHES, part_paths, read_array_part
from ..formats.arrays import Array
from ..formats.records import Rejection
from .signatures import SKETCH_TYPE, signature_type

_URL, _BODY, _NEAR = range(len(REASONS))
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Found:
    """What the search found. Rows count the signatures of the archive and after them the new ones.

    Attributes:
      parents: int64 ``[N + n]``, the row that each row duplicates, directly or through others; its own if it is kept.
      reasons: of the new rows that are not kept, by row.
      superseded: rows that the archive kept before and a new row takes the place of, sorted.
    """

    parents: Rows
    reasons: dict[int, Rejection]
    superseded: Rows

    def root(self, row: int) -> int:
        """The row that is kept in place of a row."""
        while self.parents[row] != row:
            row = int(self.parents[row])
        return row


class Archive:
    """The signatures and sketches of all articles so far.

    Args:
      version: folder of the current version; "" before the first.
      options: of the rules.
    """

    def __init__(self, version: str, options: CleanOptions) -> None:
        parts = [read_array_part(path) for path in part_paths(version, SIGNATURES)]
        self.signatures: Array = np.concatenate([np.zeros(0, signature_type(options)), *parts])
        self._sketches = [read_array_part(path) for path in part_paths(version, SKETCHES)]
        self._sketch_ends = np.cumsum(self.signatures["sketch"].astype(np.int64))
        self._part_ends = np.cumsum([len(part) for part in self._sketches], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.signatures)

    def knows(self, signatures: Array) -> npt.NDArray[np.bool_]:
        """Whether each article is in the archive, or a duplicate of one there, with the same texts and date."""
        return np.isin(signatures["record"], self.signatures["record"])

    def sketch(self, row: int) -> npt.NDArray[np.uint32]:
        """The sketch of a row."""
        end = int(self._sketch_ends[row])
        start = end - int(self.signatures["sketch"][row])
        if start == end:
            return np.zeros(0, SKETCH_TYPE)
        part = int(np.searchsorted(self._part_ends, start, side="right"))
        offset = int(self._part_ends[part]) - len(self._sketches[part])
        return np.asarray(self._sketches[part][start - offset : end - offset])


def find(archive: Archive, parents: Rows, signatures: Array, sketches: Array, threshold: float) -> Found:
    """Compares new articles with those of the archive and with one another.

    Args:
      archive: its signatures.
      parents: int64 ``[N]``, as an earlier run found them.
      signatures: of the new articles ``[n]``, in the order of the input.
      sketches: theirs, one after another.
      threshold: least Jaccard similarity of near duplicates.
    """
    count = len(archive)
    bounds = np.cumsum([0, *signatures["sketch"].tolist()])

    def sketch(row: int) -> npt.NDArray[np.uint32]:
        if row < count:
            return archive.sketch(row)
        return np.asarray(sketches[bounds[row - count] : bounds[row - count + 1]])

    joined = _Components(np.concatenate([archive.signatures[["ordinal", "doc_id"]], signatures[["ordinal", "doc_id"]]]))
    joined.parents[:count] = parents
    for reason, column in ((_URL, "doc_id"), (_BODY, "body")):
        _join_equal(joined, reason, archive.signatures[column], signatures[column])
    for band in range(signatures["bands"].shape[1]):
        old, new = archive.signatures["bands"][:, band], signatures["bands"][:, band]
        _join_similar(joined, old, new, lambda one, two: similarity(sketch(one), sketch(two)) >= threshold)
    roots = np.array([joined.root(row) for row in range(count, len(joined.parents))], np.int64)
    joined.parents[count:] = roots
    before = np.flatnonzero(parents == np.arange(count))
    reasons = {
        row: REASONS[joined.reasons.get(row, _NEAR)]
        for row in range(count, len(joined.parents))
        if roots[row - count] != row
    }
    return Found(joined.parents, reasons, before[joined.parents[before] != before])


class _Components:
    """Connected components; the earliest row of each is its root.

    Args:
      ages: ``[N]`` with ``ordinal`` and ``doc_id``; of rows with the same of both, the last one counts as the earliest.
    """

    def __init__(self, ages: Array) -> None:
        self.parents: Rows = np.arange(len(ages))
        self.reasons: dict[int, int] = {}
        self._ages = ages

    def root(self, row: int) -> int:
        """The root of a row; halves the path to it."""
        while (above := int(self.parents[row])) != row:
            self.parents[row] = self.parents[above]
            row = int(self.parents[row])
        return row

    def join(self, one: int, two: int, reason: int) -> None:
        """Joins the components of two rows."""
        for row in (one, two):
            self.reasons[row] = min(reason, self.reasons.get(row, reason))
        first, second = sorted((self.root(one), self.root(two)), key=self._age)
        self.parents[second] = first

    def _age(self, row: int) -> tuple[int, int, int]:
        return int(self._ages["ordinal"][row]), int(self._ages["doc_id"][row]), -row


def _join_equal(joined: _Components, reason: int, old: Array, new: Array) -> None:
    """Joins each new row with the first row that has the same value."""
    first: dict[int, int] = {}
    for row in np.flatnonzero(np.isin(old, new)).tolist():
        first.setdefault(int(old[row]), row)
    for row, value in enumerate(new.tolist(), len(old)):
        other = first.setdefault(value, row)
        if other != row:
            joined.join(other, row, reason)


def _join_similar(joined: _Components, old: Array, new: Array, alike: Callable[[int, int], bool]) -> None:
    """Joins each new row with the rows of its bucket that are alike."""
    buckets = collections.defaultdict[int, list[int]](list)
    for row in np.flatnonzero(np.isin(old, new)).tolist():
        buckets[int(old[row])].append(row)
    for row, value in enumerate(new.tolist(), len(old)):
        bucket = buckets[value]
        for other in bucket:
            if joined.root(other) != joined.root(row) and alike(other, row):
                joined.join(other, row, _NEAR)
        bucket.append(row)
