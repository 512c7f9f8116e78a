"""Reads days as people and machines write them, in the languages and calendars of the Unicode CLDR (by ``babel``).

One reader serves pages, feeds, sitemaps and rows. If a text has several days, the words around each say which of them
is the day of publication.
"""

# ruff: noqa: RUF001 - words and digits of many scripts

import contextlib
import datetime
import email.utils
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .files import packaged
from .months import LONG_WORD, all_months, existing_day, folded, gregorian, locale_of, months_of, months_pattern

PUBLISHED, UPDATED, EVENT = "published", "updated", "event"
_MAX_TEXT: Final = 200
RELEASED: Final = datetime.date(2026, 1, 1)  # a clock that says an earlier day is wrong
_EARLIEST_YEAR: Final = 1600  # the first newspapers
# Zero, or no value, in the clocks of computers and databases.
_PLACEHOLDERS: Final = "1601-01-01 1753-01-01 1899-12-30 1899-12-31 1900-01-01 1904-01-01 1969-12-31 1970-01-01"
_DIGITS: Final = re.compile(r"(19\d\d|20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?")
_EPOCH: Final = re.compile(r"(?i)(?:/date\()?(\d{9,19}(?:\.\d*)?|\d\.\d+e\+?\d+)(?:[+-]\d{4})?(?:\)/)?")
_EPOCH_UNITS: Final = (1, 1e3, 1e6, 1e9)  # seconds to nanoseconds
_WEEKDAY: Final = re.compile(r"[A-Za-z]{3,9},\s*\d(?!.*\s00\d\d\b)")  # Python takes the year 1 for 2001
_YEAR_FIRST: Final = re.compile(r"(?<!\d)(\d{4})\s?[-/.]\s?(\d{1,2})\s?[-/.]\s?(\d{1,2})(?!\d)")
_YEAR_LAST: Final = re.compile(
    r"(?<![\d./-])(?:(\d{1,2})\s?[-/.]\s?(\d{1,2})(?:\s?[-/.]\s?|\s)(\d{4})|(\d\d)([./])(\d\d)\5(\d\d))(?![\d/-])"
)
_HAN: Final = "〇一二三四五六七八九"
_HAN_NUMBER: Final = re.compile(rf"(?<![{_HAN}零十廿卅元])[{_HAN}零十廿卅元]++(?=\s*[年月日号號])")
_ERAS: Final = {"令和": 2018, "平成": 1988, "昭和": 1925, "民國": 1911, "民国": 1911}
_EAST_ASIAN: Final = re.compile(
    rf"(?<!\d)(?:({'|'.join(_ERAS)})\s*)?(\d{{1,4}})\s*[年년]\s*(\d{{1,2}})\s*[月월]\s*(\d{{1,2}})\s*[日号號일]"
)
# Around the name of a month: a day with a short suffix or word ("12th of", "12. "), and a year ("de 2024", "năm 2024").
_DAY_BEFORE: Final = re.compile(
    r"(?<!\d)(?<!\d:)(\d{1,2})(?:-?[^\W\d_]{1,3})?[.,/]?[\s'’-]*(?:[^\W\d_]{1,4}[\s'’.]+)?$"
)
_YEAR_BEFORE: Final = re.compile(r"(?<!\d)(\d{4})[^\d|·•;\n]{0,8}$")
_YEAR_DAY_BEFORE: Final = re.compile(r"(?<!\d)(\d{4})[^\d|·•;\n]{1,8}(\d{1,2})[.,]?[\s-]*$")
_CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?(?:\s?(?:gmt|utc)?[+-]\d\d:?\d\d\b)?"
_YEAR_AFTER: Final = re.compile(  # also "نيسان / أبريل 2020", which names the month twice
    rf"(?:\s?/\s?[^\W\d_]{{3,15}}(?=\s\d{{4}}))?[\s.,،'’/-]*(?:{_CLOCK}\s)?(?:[^\W\d_]{{1,4}}[\s.,'’]+){{0,2}}(\d{{4}})(?!\d)"
)
_THAI_YEAR_AFTER: Final = re.compile(r"\.?\s*(\d\d)(?!\d)")
_DAY_YEAR_AFTER: Final = re.compile(
    rf"[.,]?[\s'’-]*(\d{{1,2}})(?!\d)(?:[^\W\d_]{{1,3}}(?![^\W\d_]))?[.,،]?[\s-]*(?:{_CLOCK}[^\d|·•;\n]{{1,20}})?"
    r"(?:[^\W\d_]{1,4}[\s.,'’]+)?(\d{4})(?!\d)"
)
_DAY_AFTER: Final = re.compile(r"\.?[\s,'’-]*(\d{1,2})(?!\d)")
# "8 PM EDT", "20:00:21 CEST", "20:00 GMT+0200 (CEST)"
_TIME: Final = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d\d)(?::\d\d)?(?:\.\d+)?)?\s*([ap])?\.?(?<=[\dap.])(?:m\b\.?)?\s*\(?"
    r"(?:(?:gmt|utc)?([+-])(\d\d):?(\d\d)|([a-z]{1,4})\b)"
)
_HOURS: Final = (
    "0 utc gmt ut z wet, 1 cet mez bst west, 2 cest mesz eet sast cat, 3 eest msk trt eat, 5 pkt, 5.5 ist, 7 wib ict, "
    "8 hkt sgt pht awst, 9 kst jst, 10 aest, 11 aedt, 12 nzst, 13 nzdt, -3 adt brt art, -4 ast edt, -5 est cdt, "
    "-6 cst mdt, -7 mst pdt, -8 pst akdt, -9 akst, -10 hst"
)
_ZONES: Final = {name: float(hours) for hours, *names in map(str.split, _HOURS.split(", ")) for name in names}
# Country domains that stand for no country.
_GENERIC: Final = re.compile("ai|bz|cc|co|eu|fm|gg|im|io|la|ly|me|nu|sh|tk|to|tv|vc|ws")
_HAS_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_WORD: Final = re.compile(r"[^\W\d_]+:?|©")
_SEPARATORS: Final = re.compile(r"[|·•;\n]|\s[-–—/]\s")
# "9. bis 23. Mai 2024", "3 May 2024 - 5 May 2024", "3 May 2024, 13:15 - 19:00": of what happens, not "part 3 - 5 May".
_TO: Final = r"(?:bis|to|until|al|au|até|t/m|till)"
_FROM_DAY: Final = re.compile(rf"(?<![\d.:/-])\d{{1,2}}(?:[-–—]|\.\s?[-–—]\s?|\.?\s(?:[^\W\d_]{{3,12}}\.?\s)?{_TO}\s)$")
_BETWEEN_DAYS: Final = re.compile(rf"\s?[-–—]\s?|\s{_TO}\s")
_HOURS_AFTER: Final = re.compile(rf"[^\d|·•;\n]{{0,8}}(?>{_CLOCK})(?:\s?(?:uhr|[ap]m|h))?\s?(?:[-–—]|{_TO})\s?{_CLOCK}")


class Day(NamedTuple):
    """A day in a text.

    Attributes:
      day: the day.
      role: PUBLISHED, UPDATED or EVENT by the words around it; "" if they do not say.
      guessed: whether the order of day and month, or the day of a calendar that is kept by sight, is a guess.
    """

    day: datetime.date
    role: str = ""
    guessed: bool = False


class _Match(NamedTuple):
    start: int
    end: int
    year: int
    month: int
    day: int
    guessed: bool = False


def parse_day(value: Any, place: str = "") -> datetime.date | None:
    """Returns the UTC day of a date or time in any form; ``None`` if there is none that can be believed.

    Numbers are seconds since 1970, or milliseconds and less. Dates, midnight, and times without a zone are not
    converted. A day such as the year 1, 1970-01-01 or one in the future is a placeholder and not believed.

    >>> parse_day("2021-03-01T23:30:00-05:00"), parse_day("Saturday, December 27, 2014, 12:06 PM")
    (datetime.date(2021, 3, 2), datetime.date(2014, 12, 27))
    >>> parse_day("3/4/2016"), parse_day("3/4/2016", "en-US"), parse_day("3/4/2016", "de")
    (None, datetime.date(2016, 3, 4), datetime.date(2016, 4, 3))

    Args:
      value: a text, a number, or a date of Python, JSON or MongoDB.
      place: language and country, such as "en-GB" (see :func:`place_of`), for the order of day and month.
    """
    found = read_day(value, place)
    return found.day if found else None


def day_order(values: Iterable[Any]) -> str:
    """The order of day and month that the dates of one file show: "dmy", "mdy", or "" if none or both are there.

    >>> day_order(["3/4/2016", "13/4/2016"]), day_order(["4/13/2016"]), day_order(["13/4/2016", "4/13/2016"])
    ('dmy', 'mdy', '')
    """
    found = set()
    for match in itertools.chain.from_iterable(_YEAR_LAST.finditer(str(value)[:_MAX_TEXT]) for value in values):
        if match[1] and "." not in match[0] and (int(match[1]) > 12) != (int(match[2]) > 12):
            found.add("dmy" if int(match[1]) > 12 else "mdy")
    return found.pop() if len(found) == 1 else ""


def place_of(language: str, url: str, order: str = "") -> str:
    """Returns language and country of a page, such as "pt-BR"; the country of the domain counts before the tag's.

    An order of :func:`day_order` takes the place of the country.

    >>> place_of("en-US", "http://a.example.co.uk/1"), place_of("", "http://b.example.pl/1"), place_of("fr", "")
    ('en-GB', 'pl-PL', 'fr')
    """
    name, *parts = re.split("[-_]", language.strip())
    name, country = name.lower(), next((part.upper() for part in parts if len(part) == 2), "")
    host = re.match(r"\w+://([^/?#:]*)", url)
    domain = host[1].rpartition(".")[2].lower() if host else ""
    if len(domain) == 2 and domain.isalpha() and not _GENERIC.fullmatch(domain):
        country = "GB" if domain == "uk" else domain.upper()
        if not name:
            from babel.languages import get_official_languages

            name = next(iter(get_official_languages(country, de_facto=True)), "")
    if order:
        return f"{name}-{order}"
    return f"{name}-{country}" if name and country else name


def read_day(value: Any, place: str = "") -> Day | None:
    """Returns what :func:`parse_day` returns, and whether the order of day and month is guessed.

    >>> [read_day(text, "en").guessed for text in ("3/4/2016", "13/4/2016")], read_day("3/4/2016", "en-GB").guessed
    ([True, False], False)
    """
    if isinstance(value, Mapping) and len(value) == 1:  # {"$date": {"$numberLong": "1715587200000"}}
        return read_day(next(iter(value.values())), place)
    if isinstance(value, list | tuple) and len(value) >= 3:  # [2024, 5, 13, 8, 0, 21]
        value = "-".join(map(str, value[:3]))
    if isinstance(value, datetime.date):
        return _believed(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return _read_text(str(value).strip()[:_MAX_TEXT], place)


@functools.lru_cache(maxsize=1_000)
def _read_text(text: str, place: str) -> Day | None:
    if (moment := _moment(text)) is not None:
        return _believed(moment)
    if found := _DIGITS.fullmatch(text):
        return _believed(gregorian(*map(int, found.groups())))
    text = folded(text)
    days = stated_days(text, place)
    by_role = {day.role: day for day in reversed(days)}
    chosen = next((by_role[role] for role in (PUBLISHED, "", UPDATED, EVENT) if role in by_role), None)
    return chosen and _believed(_in_zone(text, chosen.day), chosen.guessed)


def _moment(text: str) -> datetime.datetime | None:
    if (found := _EPOCH.fullmatch(text)) and not _DIGITS.fullmatch(text):
        number = float(found[1])
        unit = next((unit for unit in _EPOCH_UNITS if number < 1e11 * unit), None)
        return datetime.datetime.fromtimestamp(number // unit, datetime.UTC) if unit else None
    with contextlib.suppress(ValueError):  # most texts have another form
        return datetime.datetime.fromisoformat(text)
    with contextlib.suppress(ValueError, IndexError, TypeError):  # the day may still be read without its time
        if _WEEKDAY.match(text):  # "Tue, 08 Nov 2016 23:00:00 -0500", "Sunday, 06-Nov-94 08:49:37 GMT"
            return email.utils.parsedate_to_datetime(text)
    return None


def _believed(moment: datetime.date | None, guessed: bool = False) -> Day | None:
    try:
        day = utc_day(moment) if isinstance(moment, datetime.datetime) else moment
    except ValueError:  # pandas.NaT, which is a time without a day
        return None
    return Day(day, guessed=guessed) if day and is_plausible(day) else None


def _in_zone(text: str, day: datetime.date) -> datetime.datetime:
    """Returns the time of a day, in its zone if the text states one."""
    moment = datetime.datetime.combine(day, datetime.time())
    for found in _TIME.finditer(text):
        hour, minute, half, sign, hours, minutes, zone = found.groups()
        offset = _ZONES.get(zone) if zone else (int(hours) + int(minutes) / 60) * (-1 if sign == "-" else 1)
        if offset is None or (minute is None and not half) or int(hour) > 23:
            continue
        hour = int(hour) % 12 + 12 * (half == "p") if half else int(hour)
        if not hour and not int(minute or 0):
            return moment  # of a day without a time
        return moment + datetime.timedelta(hours=hour - offset, minutes=int(minute or 0))
    return moment


def utc_day(moment: datetime.datetime) -> datetime.date:
    """The UTC day of a time; one without a zone counts as UTC, and midnight is that of a day without a time.

    >>> utc_day(datetime.datetime.fromisoformat("2021-03-01T23:30:00-05:00"))
    datetime.date(2021, 3, 2)
    """
    if not moment.tzinfo or moment.time() == datetime.time():
        return moment.date()
    try:
        return moment.astimezone(datetime.UTC).date()
    except OverflowError:  # the conversion leaves the years 1 to 9999
        return moment.date()


def is_plausible(day: datetime.date) -> bool:
    """Returns whether news may be of this day: it is no placeholder and not after the next year."""
    return _EARLIEST_YEAR <= day.year <= _next_year() and str(day) not in _PLACEHOLDERS


@functools.cache
def _next_year() -> int:
    return max(datetime.datetime.now(datetime.UTC).date(), RELEASED).year + 1


def stated_days(text: str, place: str = "") -> list[Day]:
    """Returns the days in the first 200 characters of a text, in order, with what the words around them say.

    >>> [(str(day.day), day.role) for day in stated_days("Updated May 14, 2024 · Published May 12, 2024")]
    [('2024-05-14', 'updated'), ('2024-05-12', 'published')]

    Args:
      text: the text.
      place: language and country, see :func:`place_of`.
    """
    text = folded(text[:_MAX_TEXT])
    found = [
        (match, day)
        for match in _matches(text, place)
        if (day := gregorian(match.year, match.month, match.day)) is not None
    ]
    ends = [0, *(match.end for match, _ in found)]
    starts = [*(match.start for match, _ in found), len(text)]
    gaps = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    leads = [_roles(_SEPARATORS.split(gap)[-1]) for gap in gaps]
    # "12 May 2024 (updated)": a word stands after its day where none stands before the first one.
    tails = [_roles(_SEPARATORS.split(re.split(r"\d", gap)[0] if gap != gaps[-1] else gap)[0]) for gap in gaps[1:]]
    follow = bool(found) and not _roles(gaps[0]) and bool(tails[-1]) and not re.search(r"\d", gaps[-1])
    said = [tail[:1] for tail in tails] if follow else [lead[-1:] for lead in leads[:-1]]
    return [
        Day(
            day,
            "".join(said[i]) or (EVENT if _is_range(gaps[i], gaps[i + 1], i > 0, i + 1 < len(found)) else ""),
            match.guessed,
        )
        for i, (match, day) in enumerate(found)
    ]


def _is_range(before: str, after: str, follows: bool, precedes: bool) -> bool:
    """Returns whether the texts around a day, up to one that it follows or precedes, say that it is of a range."""
    return bool(
        _FROM_DAY.search(before)
        or _HOURS_AFTER.match(after)
        or (follows and _BETWEEN_DAYS.fullmatch(before))
        or (precedes and _BETWEEN_DAYS.fullmatch(after))
    )


def _roles(gap: str) -> list[str]:
    """Returns the roles that the words of a text name, in order."""
    stems, unspaced = _role_words()
    found = [
        (word.start(), role)
        for word in _WORD.finditer(gap)
        for stem, role in stems.get(word[0][:2], ())
        if word[0].startswith(stem) and (len(stem) > 3 or word[0] == stem)
    ]
    if not gap.isascii():
        found += [(match.start(), str(match.lastgroup)) for match in unspaced.finditer(gap)]
    return [role for _, role in sorted(found)]


@functools.cache
def _role_words() -> tuple[dict[str, list[tuple[str, str]]], re.Pattern[str]]:
    """Returns the beginnings of words by their first two letters, and a pattern for scripts where they stand inside."""
    stems: dict[str, list[tuple[str, str]]] = {}
    inside: dict[str, list[str]] = {}
    for line in packaged(__package__, "words_of_days.txt").splitlines():
        role, *words = folded(line).split()
        for word in words:
            if word[0] < "\u0590":
                stems.setdefault(word[:2], []).append((word, role))
            else:
                inside.setdefault(role, []).append(word)
    return stems, re.compile("|".join(f"(?P<{role}>{'|'.join(words)})" for role, words in inside.items()))


def _matches(text: str, place: str) -> list[_Match]:
    """Returns what is written as a day, in order; of two that overlap, the first."""
    if not any(letter.isdecimal() or letter in _HAN for letter in text):
        return []
    found = [_Match(*match.span(), int(match[1]), int(match[2]), int(match[3])) for match in _YEAR_FIRST.finditer(text)]
    found += _east_asian(text)
    found += _year_last(text, place)
    found += _named(text, place)
    ordered: list[_Match] = []
    for match in sorted(found):
        if not ordered or match.start >= ordered[-1].end:
            ordered.append(match)
    return ordered


def _east_asian(text: str) -> Iterator[_Match]:
    if not any(word in text for word in ("年", "년", "оны")):
        return
    # The lengths of numbers in words may change, which only shifts the words around the day.
    for match in _EAST_ASIAN.finditer(_HAN_NUMBER.sub(lambda number: _han(number[0]), text)):
        era, year = match[1], int(match[2])
        yield _Match(*match.span(), year + _ERAS[era] if era else year, int(match[3]), int(match[4]))


def _han(number: str) -> str:
    """Returns a number in Chinese characters as digits.

    >>> _han("二〇二四"), _han("十二"), _han("三十"), _han("元")
    ('2024', '12', '30', '1')
    """
    number = number.replace("零", "〇").replace("元", "一").replace("廿", "二十").replace("卅", "三十")
    tens, is_ten, ones = number.partition("十")
    digits = "".join(str(_HAN.index(letter)) for letter in (tens or "一") + (ones or "〇")) if is_ten else ""
    return digits or "".join(str(_HAN.index(letter)) for letter in number)


def _year_last(text: str, place: str) -> Iterator[_Match]:
    for match in _YEAR_LAST.finditer(text):
        short = match[4] is not None
        first, second, year = (int(match[group]) for group in ((4, 6, 7) if short else (1, 2, 3)))
        order, certain = ("dmy", True) if "." in match[0] and _order(place)[0] != "ymd" else _order(place)
        if short:
            if order == "ymd":
                first, year = year, first
            year += 2000 if year < 50 else 1900
        if first <= 12 and second <= 12 and first != second and not order:
            continue  # nothing says which is the day
        swapped = second > 12 or (first <= 12 and order == "mdy")
        day, month = (second, first) if swapped else (first, second)
        if order == "ymd" and short:
            day, month = first, second
        yield _Match(*match.span(), year, month, day, short or (not certain and day <= 12 and day != month))


@functools.cache
def _order(place: str) -> tuple[str, bool]:
    """Returns the order of day, month and year in a place ("dmy", "mdy" or "ymd"), and whether it is certain."""
    language, _, country = place.partition("-")
    if country in ("dmy", "mdy"):
        return country, True
    for name in filter(None, (place.replace("-", "_"), "en_001" if language == "en" and country else language)):
        if locale := locale_of(name):
            order = "".join(dict.fromkeys(re.sub(r"[^dmy]", "", locale.date_formats["short"].pattern.lower())))
            return order, order[-1] == "y" and (language != "en" or bool(country))
    return "", False


def _named(text: str, place: str = "") -> Iterator[_Match]:
    """Yields the days whose month has a name: of the page's language, of common ones, or of any that CLDR has."""
    language = place.partition("-")[0]
    if not _HAS_YEAR.search(text) and language != "th":
        return
    months, pattern = months_of("" if language == "en" else language)  # one table: all pages know English
    found = False
    for month in pattern.finditer(text):
        if match := _around(text, month, months[month[1]], language):
            found = True
            yield match
    if found:
        return
    # Words between a day and a year, whatever their language.
    words = [word[0] for word in LONG_WORD.finditer(text) if word[0] not in months and _around(text, word, 1, "")]
    if likely := {name: number for word in words for name, number in all_months().get(word, ())}:
        for month in months_pattern(likely).finditer(text):
            if match := _around(text, month, likely[month[1]], ""):
                yield match


def _around(text: str, found: re.Match[str], month: int, language: str) -> _Match | None:
    start, end = found.span()
    before, after = text[max(0, start - 30) : start], text[end : end + 50]
    offset = start - len(before)
    day, year = _DAY_BEFORE.search(before), _YEAR_AFTER.match(after)
    if day and language == "th" and not year and (year := _THAI_YEAR_AFTER.match(after)):
        return _Match(offset + day.start(), end + year.end(), 2500 + int(year[1]), month, int(day[1]))
    if day and year:
        return _Match(offset + day.start(), end + year.end(), int(year[1]), month, int(day[1]))
    if both := _DAY_YEAR_AFTER.match(after):
        return _Match(start, end + both.end(), int(both[2]), month, int(both[1]))
    if (both := _YEAR_DAY_BEFORE.search(before)) is not None:
        return _Match(offset + both.start(), end, int(both[1]), month, int(both[2]))
    year, day = _YEAR_BEFORE.search(before), _DAY_AFTER.match(after)
    if year and day:
        return _Match(offset + year.start(), end + day.end(), int(year[1]), month, int(day[1]))
    return None


_URL_DAY = re.compile(r"/(20\d\d|19\d\d)[/-](0?[1-9]|1[0-2])[/-](0?[1-9]|[12]\d|3[01])(?=[/-])")


def day_in_url(url: str) -> datetime.date | None:
    """Returns the day in a URL, as in ``/2016/11/08/``; ``None`` if there is none."""
    found = _URL_DAY.search(url)
    return existing_day(*map(int, found.groups())) if found else None
