"""Cutoff dates: parsing, the number of articles up to each, and the months before and after it."""

import collections
import dataclasses
import datetime
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats.parquet import read_batches, shard_paths

_MONTH: Final = re.compile(r"^(\d{4})-(\d{2})$")
_DAYS_PER_MONTH: Final = 365.25 / 12


@dataclasses.dataclass(frozen=True, order=True)
class Cutoff:
    """The last day whose articles are mined, and the text that the user wrote for it."""

    last_day: datetime.date
    name: str


def parse_cutoffs(text: str) -> list[Cutoff]:
    """Cutoffs of "2018-01,2018-07-15", ascending; a month means its last day.

    Raises:
      InputError: for an invalid date, no date, or the same day twice.
    """
    found = sorted(_parse(part.strip()) for part in text.split(",") if part.strip())
    if not found:
        raise InputError("no cutoff", field="--cutoffs", remedy="give dates such as 2018-01,2018-07")
    if len({cutoff.last_day for cutoff in found}) < len(found):
        raise InputError(f"got the same cutoff twice: {text}", field="--cutoffs", remedy="give each once")
    return found


def _parse(text: str) -> Cutoff:
    month = _MONTH.match(text)
    try:
        if month:
            first = datetime.date(int(month[1]), int(month[2]), 1)
            return Cutoff((first + datetime.timedelta(days=31)).replace(day=1) - datetime.timedelta(days=1), text)
        return Cutoff(datetime.date.fromisoformat(text), text)
    except ValueError as error:
        raise InputError(
            f"got {text!r}, expected YYYY-MM or YYYY-MM-DD", field="--cutoffs", remedy="such as 2018-01,2018-07"
        ) from error


def count_by_day(work: str) -> collections.Counter[datetime.date]:
    """Numbers of the clean articles of a build, by byline date."""
    days: collections.Counter[datetime.date] = collections.Counter()
    for path in shard_paths(f"{work}/clean/articles"):
        for batch in read_batches(path, ["byline_date"]):
            days.update(date for date in batch.column(0).to_pylist() if date)
    return days


def check_articles(
    days: collections.Counter[datetime.date],
    cutoffs: Sequence[Cutoff],
    window_months: int | None,
    least: int,
    path: str,
) -> dict[str, int]:
    """Numbers of articles up to each cutoff, by its name.

    Raises:
      InputError: if a cutoff has fewer than ``least``.
    """
    left = {}
    for cutoff in cutoffs:
        first = first_day(cutoff, window_months) or datetime.date.min
        left[cutoff.name] = sum(number for day, number in days.items() if first <= day <= cutoff.last_day)
        if left[cutoff.name] < least:
            span = f"dated from {min(days)} to {max(days)}" if days else "none of which has a byline date"
            raise InputError(
                f"the cutoff {cutoff.name} leaves {left[cutoff.name]} of {days.total()} articles, {span}; "
                f"expected at least {least}",
                path=path,
                field="--cutoffs",
                remedy="choose a later cutoff (a negative is a year away from its anchor, so keep much more than a "
                "year of articles), or lower --min_articles",
            )
    return left


def check_later_days(days: Sequence[datetime.date], cutoffs: Sequence[Cutoff], path: str) -> None:
    """Checks that there are held-out documents after each cutoff.

    Args:
      days: of the held-out documents.
      cutoffs: those of the study.
      path: of the documents.

    Raises:
      InputError: naming the first cutoff that none is after.
    """
    for cutoff in cutoffs:
        if max(days) <= cutoff.last_day:
            raise InputError(
                f"no document is later than the cutoff {cutoff.name}; their days are {min(days)} to {max(days)}",
                path=path,
                field="--cutoffs",
                remedy="choose an earlier cutoff: staleness is what a model loses after it",
            )


def first_day(cutoff: Cutoff, window_months: int | None) -> datetime.date | None:
    """The first day whose articles are mined; None for all before the cutoff."""
    if window_months is None:
        return None
    return cutoff.last_day - datetime.timedelta(days=round(window_months * _DAYS_PER_MONTH) - 1)


def months_since(days: Sequence[datetime.date], cutoff: Cutoff) -> npt.NDArray[np.int64]:
    """Months from a cutoff to each day, int64 ``[N]``: 1 is the first month after it, 0 the last month up to it."""
    gaps = np.array([(day - cutoff.last_day).days for day in days], np.float64)
    return np.ceil(gaps / _DAYS_PER_MONTH).astype(np.int64)
