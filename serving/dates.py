"""Ranges of byline dates: the articles of one event are days apart, and an archive holds many similar events."""

import argparse
import dataclasses
import datetime
import re
from collections.abc import Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError

DayArray = npt.NDArray[np.datetime64]
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclasses.dataclass(frozen=True, slots=True)
class DateRange:
    """Byline dates from `since` to `until` (inclusive); None leaves that end open.

    A document without a date is outside of every range that has an end.

    Raises:
      InputError: if `since` comes after `until`.
    """

    since: datetime.date | None = None
    until: datetime.date | None = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.since > self.until:
            raise InputError(f"got {self.since}, after until = {self.until}", field="since", remedy="swap them")

    @classmethod
    def around(cls, date: datetime.date, days: int) -> Self:
        """The range of days around a date.

        Raises:
          InputError: if `days` is negative, or so large that a calendar does not have the range.
        """
        problem = InputError(
            f"got {days} around {date}, expected a number of days, at least 0 and within the calendar", field="days"
        )
        if days < 0:
            raise problem
        try:
            return cls(date - datetime.timedelta(days), date + datetime.timedelta(days))
        except OverflowError as error:
            raise problem from error

    @property
    def is_bounded(self) -> bool:
        """Whether it has a first or a last day."""
        return bool(self.since or self.until)

    def holds(self, days: DayArray) -> npt.NDArray[np.bool_]:
        """Whether each day is in the range, bool; days are datetime64[D], NaT for none."""
        inside = ~np.isnat(days) if self.is_bounded else np.ones(days.shape, np.bool_)
        if self.since:
            inside &= days >= np.datetime64(self.since)
        if self.until:
            inside &= days <= np.datetime64(self.until)
        return inside


ALL_DATES: Final = DateRange()


def as_days(dates: Sequence[datetime.date | None]) -> DayArray:
    """The dates as datetime64[D], NaT for None."""
    return np.array(dates, "datetime64[D]")


def add_date_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--since`` and ``--until``."""
    parser.add_argument("--since", type=_day, metavar="YYYY-MM-DD", help="articles of this day and later only")
    parser.add_argument("--until", type=_day, metavar="YYYY-MM-DD", help="articles of this day and earlier only")


def parse_day(text: object) -> datetime.date:
    """The day of "YYYY-MM-DD".

    Raises:
      ValueError: for all else, such as a number of seconds (1714521600) or of a day (20240501), and days that no
        calendar has.
    """
    problem = ValueError(f"got {str(text)[:40]!r}, expected a day as YYYY-MM-DD")
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        raise problem
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise problem from error


def _day(text: str) -> datetime.date:
    try:
        return parse_day(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
