"""The table of categories, and the seeded draw of a positive and a negative for an anchor.

Documents of one language in one category form a group, and so do all documents of a language that are in any category.
Both are sorted by day, so that "at most this many days apart" is a range of a group.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from ...formats.arrays import write_arrays
from ...formats.records import Rejection
from ..arrays import Array, Ids, map_arrays

NO_DAY: Final = np.iinfo(np.int32).min
_TRIES: Final = 32  # random tries before all candidates are looked at
_Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A document as pairing by category sees it.

    Attributes:
      doc_id: see ``Article``.
      publisher: see ``Article``.
      language: BCP-47 tag, "und" if unknown.
      day: days since 1970-01-01, `NO_DAY` if unknown.
      categories: names of its categories, distinct and sorted.
    """

    doc_id: str
    publisher: str
    language: str
    day: int
    categories: tuple[str, ...]


class Drawn(NamedTuple):
    """The documents of a triplet, as rows of the table."""

    positive: int
    negative: int


class CategoryTable:
    """All documents with a category.

    Attributes:
      ids: uint64 ``[N]``, sorted.
      days: int32 ``[N]``.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.ids: Ids = arrays["ids"]
        self.days: Array = arrays["days"]
        self._publishers, self._languages = arrays["publishers"], arrays["languages"]
        # Row r has the groups groups[group_starts[r] : group_starts[r + 1]]; likewise the members of a group.
        self._groups, self._group_starts = arrays["groups"], arrays["group_starts"]
        self._members, self._member_starts = arrays["members"], arrays["member_starts"]
        self._pools, self._pool_starts = arrays["pools"], arrays["pool_starts"]

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, doc_id: str) -> int:
        """The row of a document, -1 if it is in no category."""
        number = np.uint64(int(doc_id, 16))
        place = int(np.searchsorted(self.ids, number))
        return place if place < len(self.ids) and self.ids[place] == number else -1

    def groups(self, row: int) -> Array:
        """The groups of a document, sorted; a group is a category in one language."""
        return self._groups[self._group_starts[row] : self._group_starts[row + 1]]

    def members(self, group: int) -> _Rows:
        """The rows of a group by day."""
        return self._members[self._member_starts[group] : self._member_starts[group + 1]]

    def pool(self, row: int) -> _Rows:
        """The rows of all documents of the language of a document, by day."""
        language = int(self._languages[row])
        return self._pools[self._pool_starts[language] : self._pool_starts[language + 1]]

    def publisher(self, row: int) -> int:
        """The code of the publisher of a document."""
        return int(self._publishers[row])

    def near(self, rows: _Rows, row: int, days: int | None) -> _Rows:
        """Those of rows, which are sorted by day, that are at most ``days`` from a document; all for ``None``."""
        if days is None:
            return rows
        day = int(self.days[row])
        if day == NO_DAY:
            return rows[:0]
        sorted_days = self.days[rows]
        return rows[np.searchsorted(sorted_days, day - days) : np.searchsorted(sorted_days, day + days, side="right")]

    def is_apart(self, row: int, other: int) -> bool:
        """Whether two documents share no category."""
        return not np.isin(self.groups(row), self.groups(other), assume_unique=True).any()


@dataclasses.dataclass(frozen=True)
class Rules:
    """What may be drawn.

    Attributes:
      seed: other seeds draw other triplets.
      max_positive_days, max_negative_days: largest day gaps to the anchor; ``None`` for any.
      cross_publisher: whether the positive is of another publisher.
    """

    seed: int
    max_positive_days: int | None
    max_negative_days: int | None
    cross_publisher: bool


def draw(table: CategoryTable, row: int, number: int, rules: Rules) -> Drawn | Rejection:
    """Draws a positive and a negative of an anchor, or says which of them does not exist.

    The group of the positive is drawn among those of the anchor in which there is one, each with the same probability.
    The draw depends on the seed, the document id and ``number`` alone.

    Args:
      table: all documents.
      row: of the anchor.
      number: of the triplet of this anchor, from 0.
      rules: see :class:`Rules`.
    """
    key = f"{rules.seed}\0{int(table.ids[row])}\0{number}".encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))

    def may_be_positive(other: int) -> bool:
        is_other_publisher = table.publisher(other) != table.publisher(row)
        return other != row and (is_other_publisher or not rules.cross_publisher)

    positive = None
    for group in rng.permutation(table.groups(row)).tolist():
        near = table.near(table.members(group), row, rules.max_positive_days)
        positive = _draw(rng, near, may_be_positive)
        if positive is not None:
            break
    if positive is None:
        return Rejection.NO_POSITIVE
    near = table.near(table.pool(row), row, rules.max_negative_days)
    negative = _draw(rng, near, functools.partial(table.is_apart, row))
    return Rejection.NO_NEGATIVE if negative is None else Drawn(positive, negative)


def _draw(rng: np.random.Generator, rows: _Rows, accepts: Callable[[int], bool]) -> int | None:
    """One of the accepted rows, each with the same probability; ``None`` if there is none."""
    if not len(rows):
        return None
    for place in rng.integers(0, len(rows), _TRIES).tolist():
        if accepts(int(rows[place])):
            return int(rows[place])
    accepted = [row for row in rows.tolist() if accepts(row)]
    return int(accepted[rng.integers(0, len(accepted))]) if accepted else None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many (language, category) groups there are, and how many separate too little.

    Attributes:
      kept: groups of the table.
      rare: with fewer documents than asked.
      wide: with a larger share of the documents of their language than asked.
    """

    kept: int
    rare: int
    wide: int


def write_table(path: str, members: Iterable[Member], least: int, max_share: float) -> Sizes:
    """Writes the table of all documents that stay in a group.

    Args:
      path: of the npz file.
      members: with categories; documents without one are left out.
      least: documents of a group.
      max_share: of the documents of a language that a group may have.
    """
    listed = sorted((member for member in members if member.categories), key=lambda member: int(member.doc_id, 16))
    language_counts: dict[str, int] = {}
    group_counts: dict[tuple[str, str], int] = {}
    for member in listed:
        language_counts[member.language] = language_counts.get(member.language, 0) + 1
        for name in member.categories:
            group_counts[member.language, name] = group_counts.get((member.language, name), 0) + 1
    rare = {group for group, count in group_counts.items() if count < least}
    wide = {group for group, count in group_counts.items() if count > max_share * language_counts[group[0]]} - rare
    numbers = {group: number for number, group in enumerate(sorted(set(group_counts) - rare - wide))}
    found = [[numbers[key] for name in one.categories if (key := (one.language, name)) in numbers] for one in listed]
    kept = [(member, sorted(groups)) for member, groups in zip(listed, found, strict=True) if groups]
    write_arrays(path, _arrays(kept, len(numbers)))
    return Sizes(len(numbers), len(rare), len(wide))


def _arrays(kept: list[tuple[Member, list[int]]], group_count: int) -> dict[str, Array]:
    languages, publishers = (
        {name: code for code, name in enumerate(sorted({getattr(member, field) for member, _ in kept}))}
        for field in ("language", "publisher")
    )
    days = np.array([member.day for member, _ in kept], np.int32)
    sizes = np.array([len(groups) for _, groups in kept], np.int64)
    groups = np.array([group for _, of_member in kept for group in of_member], np.int64)
    rows = np.repeat(np.arange(len(kept)), sizes)
    by_group = np.lexsort((rows, days[rows], groups))
    codes = np.array([languages[member.language] for member, _ in kept], np.int64)
    by_language = np.lexsort((np.arange(len(kept)), days, codes))
    return {
        "ids": np.array([int(member.doc_id, 16) for member, _ in kept], np.uint64),
        "days": days,
        "publishers": np.array([publishers[member.publisher] for member, _ in kept], np.int32),
        "languages": codes.astype(np.int32),
        "groups": groups,
        "group_starts": _starts(sizes),
        "members": rows[by_group],
        "member_starts": _starts(np.bincount(groups, minlength=group_count)),
        "pools": by_language,
        "pool_starts": _starts(np.bincount(codes, minlength=len(languages))),
    }


def _starts(sizes: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


@functools.lru_cache(maxsize=2)
def read_table(path: str) -> CategoryTable:
    """Maps what `write_table` wrote, once per process."""
    return CategoryTable(map_arrays(path))
