"""The held-out days: the last days of a corpus, whose documents no run trains on."""

import collections
import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...formats import files
from ...formats.parquet import read_records
from ...formats.records import Triplet
from ...tasks.triplets import TRIPLETS
from ..arrays import read_array, write_array
from ..shards import Shard
from ..texts import shuffle_key
from ..token_store import TOKENS, date_of, day_number, open_store
from .options import ExamplesOptions

_ANCHOR_DAYS: Final = "_anchor_days"
_FIRST_DAY: Final = "_held_out/first_day.json"


def count_anchor_days(shard: Shard, path: str) -> None:
    """Counts the anchors of one Parquet shard of triplets by day. All triplets of an anchor are in one shard."""
    anchors = np.array([int(triplet.anchor, 16) for triplet in read_records(path, Triplet)], np.uint64)
    days = open_store(f"{shard.workspace}/{TOKENS}").days(np.unique(anchors))
    write_array(shard.path(_ANCHOR_DAYS, "npy"), np.stack(np.unique(days, return_counts=True), axis=1))


def first_held_out_day(workspace: str, options: ExamplesOptions) -> datetime.date | None:
    """Returns the first day that is held out, ``None`` if nothing is.

    Args:
      workspace: of the job; for a share it has what :func:`write_first_day` wrote.
      options: see `ExamplesOptions.held_out_from` and `ExamplesOptions.held_out_share`.
    """
    if not options.held_out_share:
        return options.held_out_from
    day = files.read_json(f"{workspace}/{_FIRST_DAY}")["day"]
    return None if day is None else date_of(day)


def write_first_day(shard: Shard, options: ExamplesOptions) -> None:
    """Writes the first day that is held out for `ExamplesOptions.held_out_share`, from the anchors of each day."""
    anchors: collections.Counter[int] = collections.Counter()
    for path in files.list_files(f"{shard.workspace}/{_ANCHOR_DAYS}/part-*.npy"):
        for day, count in read_array(path).tolist():
            if day > 0:  # else it is unknown
                anchors[day] += count
    first = last_days(anchors, options.held_out_share) if anchors else None
    files.write_json(f"{shard.workspace}/{_FIRST_DAY}", {"day": first})


def last_days(counts: Mapping[int, int], share: float) -> int:
    """Returns the latest day such that it and the later days have at least this share of the items.

    >>> last_days({1: 7, 2: 1, 3: 2}, 0.25)
    2

    Args:
      counts: items by day; at least one item in all.
      share: above 0, below 1.
    """
    days = sorted(counts, reverse=True)
    reached = np.cumsum([counts[day] for day in days])
    return days[int(np.searchsorted(reached, np.ceil(share * reached[-1])))]


def is_held_out(day: int, first: datetime.date | None) -> bool:
    """Whether a document of this day is held out; a document without a known day never is.

    Args:
      day: days since 1970-01-01, 0 if unknown.
      first: see :func:`first_held_out_day`.
    """
    return first is not None and day >= day_number(first) and day > 0


def without_held_out_negatives(rows: Sequence[Any], first: datetime.date, day_of: Callable[[str], int]) -> list[Any]:
    """Replaces held-out negatives of triplets that are not held out by another negative of the same anchor.

    A row stays as it is if its anchor has no other negative, or already has each of them with this positive.

    Args:
      rows: rows of `receive_rows`, all of an anchor among them.
      first: see :func:`first_held_out_day`.
      day_of: the day of a document, 0 if unknown.

    Returns:
      As many rows, in order.
    """

    def held_out(*doc_ids: str) -> bool:
        return any(is_held_out(day_of(doc_id), first) for doc_id in doc_ids)

    triplets = {row for row in rows if row[0] == TRIPLETS.name}
    others: dict[str, list[str]] = {}
    for _, anchor, _, negative, _ in sorted(triplets):
        if not held_out(negative) and negative not in others.setdefault(anchor, []):
            others[anchor].append(negative)
    replaced = []
    for row in rows:
        if row in triplets and held_out(row[3]) and not held_out(*row[1:3]):
            new = [(*row[:3], negative, row[4]) for negative in others.get(row[1], ())]
            unused = [one for one in new if one not in triplets]
            if unused:
                row = min(unused, key=lambda one: shuffle_key(*one))  # noqa: PLW2901 - the row in its place
                triplets.add(row)
        replaced.append(row)
    return replaced
