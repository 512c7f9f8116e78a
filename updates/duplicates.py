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
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..beam_pipelines.clean.duplicates import REASONS, sign, similarity
from ..beam_pipelines.clean.rules import CleanOptions
from ..formats.archive import SEEN, Archive
from ..formats.arrays import Array
from ..formats.articles import ArticleText
from ..formats.records import Article, Rejection

_URL, _BODY, _NEAR = range(len(REASONS))
_SKETCH: Final = np.dtype("<u4")
Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Signature:
    """What the search for duplicates knows of an article: a row of `signature_type`, and its sketch, both as bytes."""

    digests: bytes
    sketch: bytes


def signature_type(options: CleanOptions) -> np.dtype[np.void]:
    """The dtype of digests: about 160 bytes with the default of 16 bands.

    ``ordinal`` is the byline date, ``doc_id`` and ``body`` are what exact duplicates share, ``bands`` are the buckets
    of near duplicates, and ``record`` is equal if nothing that the archive compares has changed.
    """
    bands = options.bands if options.near_duplicate_threshold <= 1 else 0
    numbers = [(name, "<u8") for name in ("doc_id", "body", "record")]
    return np.dtype([("ordinal", "<i4"), *numbers, ("bands", "<u8", (bands,))])


def signature(article: Article, options: CleanOptions) -> Signature:
    """The signature of a clean article."""
    entries, sketch = sign(article, 0, 0, options)
    row = np.zeros((), signature_type(options))
    row["ordinal"], row["record"] = entries["ordinal"][0], record_digest(article)
    row["doc_id"], row["body"], row["bands"] = entries["digest"][0], entries["digest"][1], entries["digest"][2:]
    return Signature(row.tobytes(), sketch.astype(_SKETCH).tobytes())


def record_digest(article: Article | ArticleText) -> int:
    """64 bits of the URL, the texts and the byline date: an article that has the same again is already known."""
    parts = (article.doc_id, article.title, article.body, str(article.byline_date))
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big")


@dataclasses.dataclass(frozen=True)
class Duplicates:
    """The result of a search. Rows count the signatures of the archive and after them the new ones.

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


@dataclasses.dataclass(frozen=True)
class Seen:
    """What an archive knows of every article that passed the rules of a run, duplicates included, oldest first.

    Attributes:
      digests: ``[N]``, see `signature_type`.
      sketches: theirs, as bytes.
      parents: int64 ``[N]``, the row that each row duplicates, directly or through others; its own if it is kept.
    """

    digests: Array
    sketches: Sequence[bytes]
    parents: Rows

    @classmethod
    def of(cls, signatures: Iterable[Signature], options: CleanOptions) -> Self:
        """Articles with these signatures, all of them kept."""
        known = list(signatures)
        digests = np.frombuffer(b"".join(one.digests for one in known), signature_type(options))
        return cls(digests, [one.sketch for one in known], np.arange(len(known)))

    @classmethod
    def read(cls, archive: Archive | None, options: CleanOptions) -> Self:
        """Those of an archive; none before its first version."""
        rows = archive.whole(SEEN) if archive else None
        if rows is None:
            return cls.of([], options)
        rows = rows.sort_by("row")
        pairs = zip(*(rows[name].to_pylist() for name in ("digests", "sketch")), strict=True)
        known = cls.of((Signature(*pair) for pair in pairs), options)
        return dataclasses.replace(known, parents=rows["parent"].to_numpy())

    def __len__(self) -> int:
        return len(self.digests)

    def knows(self, digests: Array) -> npt.NDArray[np.bool_]:
        """Whether each article is in the archive, or a duplicate of one there, with the same texts and date."""
        return np.isin(digests["record"], self.digests["record"])

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Seen":
        """Some of the articles, as if there were no others."""
        rows = np.flatnonzero(chosen).tolist()
        return Seen(self.digests[chosen], [self.sketches[row] for row in rows], np.arange(len(rows)))

    def table(self, start: int, parents: Rows) -> pa.Table:
        """The rows of the table `SEEN`, from a row on."""
        digests = pa.array([row.tobytes() for row in self.digests], pa.binary())
        columns = {"digests": digests, "sketch": pa.array(self.sketches, pa.large_binary())}
        return pa.table({"row": np.arange(start, start + len(self)), "parent": parents, **columns})


def find(seen: Seen, new: Seen, threshold: float) -> Duplicates:
    """Compares new articles with those of the archive and with one another.

    Args:
      seen: of the archive.
      new: in the order of the input.
      threshold: least Jaccard similarity of near duplicates.
    """
    count, old, digests, sketches = len(seen), seen.digests, new.digests, [*seen.sketches, *new.sketches]

    def alike(one: int, two: int) -> bool:
        return similarity(*(np.frombuffer(sketches[row], _SKETCH) for row in (one, two))) >= threshold

    joined = _Components(np.concatenate([old[["ordinal", "doc_id"]], digests[["ordinal", "doc_id"]]]))
    joined.parents[:count] = seen.parents
    joined.join_equal(_URL, old["doc_id"], digests["doc_id"])
    joined.join_equal(_BODY, old["body"], digests["body"])
    for band in range(digests["bands"].shape[1]):
        joined.join_equal(_NEAR, old["bands"][:, band], digests["bands"][:, band], alike)
    roots = np.array([joined.root(row) for row in range(count, len(joined.parents))], np.int64)
    joined.parents[count:] = roots
    kept = np.flatnonzero(seen.parents == np.arange(count))
    duplicates = [row for row, root in enumerate(roots.tolist(), count) if root != row]
    reasons = {row: REASONS[joined.reasons.get(row, _NEAR)] for row in duplicates}
    return Duplicates(joined.parents, reasons, kept[joined.parents[kept] != kept])


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

    def join_equal(self, reason: int, old: Array, new: Array, alike: Callable[[int, int], bool] | None = None) -> None:
        """Joins each new row with the first row of the same value, or with all of them that are alike."""
        buckets = collections.defaultdict[int, list[int]](list)
        for row in np.flatnonzero(np.isin(old, new)).tolist():
            buckets[int(old[row])].append(row)
        for row, value in enumerate(new.tolist(), len(old)):
            for other in buckets[value] if alike else buckets[value][:1]:
                if self.root(other) != self.root(row) and (alike is None or alike(other, row)):
                    self._join(other, row, reason)
            buckets[value].append(row)

    def _join(self, one: int, two: int, reason: int) -> None:
        for row in (one, two):
            self.reasons[row] = min(reason, self.reasons.get(row, reason))
        first, second = sorted((self.root(one), self.root(two)), key=lambda row: (*self._ages[row].item(), -row))
        self.parents[second] = first
