"""Parses days as pages write them: ISO 8601, RFC 2822, digits, and month names in the most common languages of news."""

import datetime
import email.utils
import re
from typing import Any

from ...formats.articles import utc_day

_ISO_DAY = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DIGITS = re.compile(r"(19\d\d|20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?")
_EPOCH = re.compile(r"(1\d{9})(?:\d{3})?")
_CJK_DAY = re.compile(r"(?<!\d)(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]")
_URL_DAY = re.compile(r"/(20\d\d|19\d\d)[/-](0?[1-9]|1[0-2])[/-](0?[1-9]|[12]\d|3[01])(?=[/-])")
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar enero janvier gennaio janeiro января ene janv gen",
            "feb february februar febrero février fevrier febbraio fevereiro февраля févr",
            "mar march märz maerz marzo mars março marco марта mär",
            "apr april abril avril aprile апреля abr avr",
            "may mai mayo maggio maio мая mag",
            "jun june juni junio juin giugno junho июня giu",
            "jul july juli julio juillet luglio julho июля juil lug",
            "aug august agosto août aout августа ago",
            "sep sept september septiembre septembre settembre setembro сентября set",
            "oct october oktober octubre octobre ottobre outubro октября okt ott out",
            "nov november noviembre novembre novembro ноября",
            "dec december dezember diciembre décembre decembre dicembre dezembro декабря dez dic déc",
        ),
        1,
    )
    for name in names.split()
}
_NAMED = "|".join(_MONTHS)
_MONTH_FIRST = re.compile(rf"\b({_NAMED})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE)
_DAY_FIRST = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?[\s-]+(?:de\s+)?({_NAMED})\.?,?[\s-]+(?:de\s+|del\s+)?(\d{{4}})\b",
    re.IGNORECASE,
)
_MAX_TEXT = 200
_LIKE_A_DAY = re.compile(r"\s*\d{4,}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\s*(?:19|20)\d{6}\s*$")


def parse_day(value: Any) -> datetime.date | None:
    """Returns the UTC day of a date or time; ``None`` if there is none.

    Dates, and times without a zone, are not converted. Dates with an ambiguous order of day and month ("3/4/2016") are
    not accepted.

    >>> parse_day("2021-03-01T23:30:00-05:00"), parse_day("Saturday, December 27, 2014, 12:06 PM")
    (datetime.date(2021, 3, 2), datetime.date(2014, 12, 27))
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    text = value.strip()[:_MAX_TEXT]
    moment = _moment(text)
    if moment is not None:
        return utc_day(moment)
    if found := _DIGITS.fullmatch(text):
        return _day(*map(int, found.groups()))
    return day_in_text(text)


def _moment(text: str) -> datetime.datetime | None:
    if found := _EPOCH.fullmatch(text):
        return datetime.datetime.fromtimestamp(int(found.group(1)), datetime.UTC)
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass  # most texts have another form, which is tried next; callers count days that do not exist
    if "," in text[:5]:  # "Tue, 08 Nov 2016 23:00:00 -0500"
        try:
            return email.utils.parsedate_to_datetime(text)
        except (ValueError, IndexError, TypeError):
            pass  # the day may still be read without its time
    return None


def day_in_text(text: str) -> datetime.date | None:
    """Returns the first day in a short text with an unambiguous year and month; ``None`` if there is none.

    >>> day_in_text("Published 10:41, 6 de diciembre de 2012")
    datetime.date(2012, 12, 6)
    """
    text = text[:_MAX_TEXT]
    if found := _ISO_DAY.search(text) or _CJK_DAY.search(text):
        return _day(*map(int, found.groups()))
    if found := _MONTH_FIRST.search(text):
        return _day(int(found.group(3)), _MONTHS[found.group(1).lower()], int(found.group(2)))
    if found := _DAY_FIRST.search(text):
        return _day(int(found.group(3)), _MONTHS[found.group(2).lower()], int(found.group(1)))
    return None


def is_impossible(value: Any) -> bool:
    """Returns whether a value is written as year, month and day, but no such day exists.

    >>> is_impossible("2024-02-30"), is_impossible("99999-12-31"), is_impossible("2024-02-29"), is_impossible("soon")
    (True, True, False, False)
    >>> is_impossible("Fri, 30 Feb 2024 10:00:00 GMT"), is_impossible("May 31, 2024")
    (True, False)
    """
    if not isinstance(value, str | int):
        return False
    text = str(value)[:_MAX_TEXT]
    written = _LIKE_A_DAY.match(text) or _CJK_DAY.search(text) or _MONTH_FIRST.search(text) or _DAY_FIRST.search(text)
    return written is not None and parse_day(value) is None


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
        return None  # callers count it: see is_impossible
