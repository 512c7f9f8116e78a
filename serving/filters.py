"""What a search is restricted to: byline dates, languages, publishers."""

import contextlib
import dataclasses
import datetime
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.archive import any_of

DayArray = npt.NDArray[np.datetime64]
Dates = Sequence[datetime.date | None]
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHOWN: Final = 5  # values in an error


@dataclasses.dataclass(frozen=True, slots=True)
class DateRange:
    """Byline dates from `since` to `until` (inclusive); None leaves that end open.

    An article without a date is outside of every range that has an end.

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
        with contextlib.suppress(OverflowError):
            if days >= 0:
                return cls(date - datetime.timedelta(days), date + datetime.timedelta(days))
        problem = f"got {days} around {date}, expected a number of days, at least 0 and within the calendar"
        raise InputError(problem, field="days")


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """What the articles of an answer must be.

    Attributes:
      dates: their byline dates.
      languages: their languages as they are written in the archive; none for all.
      publishers: their publishers as they are written in the archive; none for all.
    """

    dates: DateRange = DateRange()
    languages: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The filters in SQL; "" where there are none."""
        parts = [any_of("language", self.languages)] if self.languages else []
        parts += [any_of("publisher", self.publishers)] if self.publishers else []
        parts += [f"byline_date >= date '{self.dates.since}'"] if self.dates.since else []
        parts += [f"byline_date <= date '{self.dates.until}'"] if self.dates.until else []
        return " AND ".join(parts)


ALL_DATES: Final = DateRange()
NO_FILTERS: Final = Filters()


def known_value(given: str, known: Iterable[str], field: str) -> str:
    """A value of a filter that articles have.

    Args:
      given: in any case.
      known: the values of the articles, in lower case.
      field: "language" or "publisher".

    Raises:
      InputError: if no article has it; it names the nearest values.
    """
    values = sorted(set(known) - {""})
    value = given.strip().lower()
    if value in values:
        return value
    within = [one for one in values if value and value in one][:_SHOWN]  # "BBC" is far from "bbc news" by its letters
    near = within or difflib.get_close_matches(value, values, n=3, cutoff=0.6) or values[:_SHOWN]
    more = f" and {len(values) - len(near)} more" if len(near) < len(values) else ""
    remedy = f"the index has {', '.join(near)}{more}" if near else f"leave it out; no article has a {field}"
    raise InputError(f"no article of the index has the {field} {given!r}", field=field, remedy=remedy)


def as_days(dates: Dates) -> DayArray:
    """The dates as datetime64[D], NaT for None."""
    return np.array(dates, "datetime64[D]")


def parse_day(text: object) -> datetime.date:
    """The day of "YYYY-MM-DD".

    Raises:
      ValueError: for all else, such as a number of seconds (1714521600) or of a day (20240501), and days that no
        calendar has.
    """
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and _DAY.fullmatch(text):
            return datetime.date.fromisoformat(text)
    raise ValueError(f"got {str(text)[:40]!r}, expected a day as YYYY-MM-DD")
