"""Days in URLs, and days in the text of a page that do not exist."""

import datetime
import re

_ISO_DAY = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_URL_DAY = re.compile(r"/(20\d\d|19\d\d)[/-](0?[1-9]|1[0-2])[/-](0?[1-9]|[12]\d|3[01])(?=[/-])")


def states_impossible_day(text: str, month: datetime.date) -> bool:
    """Returns whether a text has a day of this month that does not exist, and no other day of it.

    Readers of dates then guess the first of the month.

    >>> states_impossible_day("<time>2024-02-30</time>", datetime.date(2024, 2, 1))
    True
    """
    found = re.findall(rf"(?<!\d){month.year}[-/.]0?{month.month}[-/.](\d{{1,2}})(?!\d)", text)
    return bool(found) and all(_day(month.year, month.month, int(day)) is None for day in found)


def day_in_url(url: str) -> datetime.date | None:
    """Returns the day in a URL, as in ``/2016/11/08/``; ``None`` if there is none."""
    found = _URL_DAY.search(url)
    return _day(*map(int, found.groups())) if found else None


def has_impossible_day(url: str) -> bool:
    """Returns whether the day in a URL does not exist."""
    return _URL_DAY.search(url) is not None and day_in_url(url) is None


def impossible_days_in(text: str) -> int:
    """Returns the number of days in a text, written as year-month-day, that do not exist.

    >>> impossible_days_in("<p>2024-02-30, 2024-02-28, 2023/2/29 and build 2024-99-1")
    2
    """
    found = (tuple(map(int, match.groups())) for match in _ISO_DAY.finditer(text))
    return sum(1 <= month <= 12 and day <= 31 and _day(year, month, day) is None for year, month, day in found)


def _day(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None  # callers count it
