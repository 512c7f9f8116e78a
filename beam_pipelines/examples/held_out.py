"""The held-out days: the last days of a corpus, whose documents no run trains on."""

import datetime
from typing import Final

import numpy as np

from ...formats import files
from ...formats.parquet import read_records
from ...formats.records import Triplet
from ..arrays import Array, Ids, read_array, write_array
from ..shards import Shard
from ..token_store import date_of, day_number, open_store
from .options import ExamplesOptions

_ANCHORS: Final = "_anchors"


def list_anchors(shard: Shard, path: str) -> None:
    """Writes the ids of the anchors of one Parquet shard of triplets."""
    anchors = np.array([int(triplet.anchor, 16) for triplet in read_records(path, Triplet)], np.uint64)
    write_array(shard.path(_ANCHORS, "npy"), np.unique(anchors))


def first_held_out_day(workspace: str, options: ExamplesOptions) -> datetime.date | None:
    """Returns the first day that is held out, ``None`` if nothing is.

    Args:
      workspace: of the job; for a share it has the token store and what :func:`list_anchors` wrote.
      options: see `ExamplesOptions.held_out_from` and `ExamplesOptions.held_out_share`.
    """
    if not options.held_out_share:
        return options.held_out_from
    parts: list[Ids] = [read_array(path) for path in files.list_files(f"{workspace}/{_ANCHORS}/part-*.npy")]
    days = open_store(f"{workspace}/_tokens").days(np.unique(np.concatenate(parts)))
    dated = days[days > 0]
    return date_of(last_days(dated, options.held_out_share)) if len(dated) else None


def last_days(days: Array, share: float) -> int:
    """Returns the latest day such that it and the later days have at least this share of the items.

    >>> last_days(np.array([1, 1, 1, 1, 1, 1, 1, 2, 3, 3]), 0.25)
    2

    Args:
      days: the day of each item, int ``[N]``, N > 0.
      share: above 0, below 1.
    """
    ordered = np.sort(days)[::-1]
    return int(ordered[int(np.ceil(share * len(ordered))) - 1])


def is_held_out(day: int, first: datetime.date | None) -> bool:
    """Whether a document of this day is held out; a document without a known day never is.

    Args:
      day: days since 1970-01-01, 0 if unknown.
      first: see :func:`first_held_out_day`.
    """
    return first is not None and day >= day_number(first) and day > 0
