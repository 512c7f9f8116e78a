"""The table of categories, and the seeded draw of a positive and a negative for an anchor.

Documents of one language in one category form a group, and so do all documents of a language that are in any category.
Both are sorted by day, so that "at most this many days apart" is a range of a group.
"""

import array
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
    columns = _Columns()
    for member in members:
        if member.categories:
            columns.add(member)
    counts = np.bincount(columns.groups, minlength=len(columns.group_names))
    languages = np.array([language for language, _ in columns.group_names], np.int64)
    of_language = np.bincount(columns.languages, minlength=len(columns.language_names))[languages]
    rare = counts < least
    wide = (counts > max_share * of_language) & ~rare
    write_arrays(path, _arrays(columns, ~rare & ~wide))
    return Sizes(int((~rare & ~wide).sum()), int(rare.sum()), int(wide.sum()))


class _Columns:
    """The documents with a category as columns of numbers; names are numbered in the order of their first use."""

    def __init__(self) -> None:
        self.ids, self.days, self.sizes = array.array("Q"), array.array("i"), array.array("i")
        self.publishers, self.languages, self.groups = (array.array("i") for _ in range(3))
        self.publisher_names: dict[str, int] = {}
        self.language_names: dict[str, int] = {}
        self.group_names: dict[tuple[int, str], int] = {}  # number of the language, name of the category

    def add(self, member: Member) -> None:
        language = self.language_names.setdefault(member.language, len(self.language_names))
        self.ids.append(int(member.doc_id, 16))
        self.days.append(member.day)
        self.sizes.append(len(member.categories))
        self.publishers.append(self.publisher_names.setdefault(member.publisher, len(self.publisher_names)))
        self.languages.append(language)
        for name in member.categories:
            self.groups.append(self.group_names.setdefault((language, name), len(self.group_names)))


def _arrays(columns: _Columns, is_kept: Array) -> dict[str, Array]:
    """The arrays of the table, with the documents that have a group which is kept, sorted by id."""
    languages = list(columns.language_names)
    names = [(languages[language], name) for language, name in columns.group_names]
    kept_names = sorted((name, number) for number, name in enumerate(names) if is_kept[number])
    numbers = np.full(len(names), -1)
    numbers[[number for _, number in kept_names]] = np.arange(len(kept_names))
    group_of = numbers[np.asarray(columns.groups)]
    row_of = np.repeat(np.arange(len(columns.ids), dtype=np.int64), columns.sizes)[group_of >= 0]
    group_of = group_of[group_of >= 0]
    has_group = np.zeros(len(columns.ids), bool)
    has_group[row_of] = True
    order = np.argsort(np.asarray(columns.ids), kind="stable")
    order = order[has_group[order]]
    place = np.zeros(len(columns.ids), np.int64)
    place[order] = np.arange(len(order))
    rows = place[row_of]
    by_row = np.lexsort((group_of, rows))
    rows, groups = rows[by_row], group_of[by_row]
    days = np.asarray(columns.days)[order]
    by_group = np.lexsort((rows, days[rows], groups))
    codes = _codes(columns.language_names, np.asarray(columns.languages)[order])
    by_language = np.lexsort((np.arange(len(order)), days, codes))
    return {
        "ids": np.asarray(columns.ids)[order],
        "days": days,
        "publishers": _codes(columns.publisher_names, np.asarray(columns.publishers)[order]),
        "languages": codes,
        "groups": groups,
        "group_starts": _starts(np.bincount(rows, minlength=len(order))),
        "members": rows[by_group],
        "member_starts": _starts(np.bincount(groups, minlength=len(kept_names))),
        "pools": by_language,
        "pool_starts": _starts(np.bincount(codes)),
    }


def _codes(names: Mapping[str, int], numbers: Array) -> Array:
    """Gives each name the number of its place among those in use, sorted: int32, shaped like ``numbers``."""
    known = list(names)
    used = sorted(np.unique(numbers).tolist(), key=known.__getitem__)
    places = np.zeros(len(known), np.int32)
    places[used] = np.arange(len(used))
    return places[numbers]


def _starts(sizes: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


@functools.lru_cache(maxsize=2)
def read_table(path: str) -> CategoryTable:
    """Maps what `write_table` wrote, once per process."""
    return CategoryTable(map_arrays(path))
