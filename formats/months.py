"""Months of the Unicode CLDR's languages by name (``babel``), and days of other calendars as Gregorian ones."""

# ruff: noqa: RUF001 - letters of many scripts

import datetime
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Final

_CORE: Final = ("ru", "pt", "it", "fr", "es", "de", "en")  # known on every page; a later language wins
# Locales of countries whose months differ from those of their language.
_VARIANTS: Final = ("ar_LB", "ar_DZ", "ar_MA", "ar_MR", "de_AT", "en_AU", "en_GB", "es_UY", "fa_AF", "fr_CA", "pt_PT")
_PARTICLES: Final = re.compile(r"^(?:de |di |d['’]|mes )")
_MIN_INFLECTED: Final = 3
_MARKS: Final = re.compile("[\u0300-\u036f\u0640\u064b-\u0655\u0670\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_LETTERS: Final = str.maketrans("يكىıđłøʼ", "یکیidlo'")
LONG_WORD: Final = re.compile(r"[^\s\d.,،/|()·-]{2,}")
_OTHER_DIGIT: Final = re.compile(r"[^\D0-9]")
_PERSIAN, _ISLAMIC, _ETHIOPIC = 100, 200, 300  # added to the number of a month
_OTHER_NAMES: Final = {
    0: (
        " một hai ba tư năm sáu bảy tám chín mười mười_một mười_hai".replace(" ", " tháng_"),
        "студзеня лютага сакавіка красавіка траўня чэрвеня ліпеня жніўня верасня кастрычніка лістапада снежня",
    ),
    _PERSIAN: (
        "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند",
        "حمل ثور جوزا سرطان اسد سنبله میزان عقرب قوس جدی دلو حوت",
        "وری غویی غبرګولی چنګاښ زمری وږی تله لړم لیندۍ مرغومی سلواغه کب",
    ),
    _ISLAMIC: (
        "محرم صفر ربيع_الأول ربيع_الآخر جمادى_الأولى جمادى_الآخرة رجب شعبان رمضان شوال ذو_القعدة ذو_الحجة",
        "محرم صفر ربیع‌الاول ربيع_الثاني جمادی‌الاول جمادى_الثانية رجب شعبان رمضان شوال ذی‌القعده ذی‌الحجه",
        "muharram safar rabiʻ_i rabiʻ_ii jumada_i jumada_ii rajab shaʻban ramadan shawwal dhuʻl-qiʻdah dhuʻl-hijjah",
    ),
    _ETHIOPIC: (
        "መስከረም ጥቅምት ኅዳር ታኅሣሥ ጥር የካቲት መጋቢት ሚያዝያ ግንቦት ሰኔ ሐምሌ ነሐሴ ጳጉሜን",
        "መስከረም ጥቅምት ህዳር ታህሳስ ጥር የካቲት መጋቢት ሚያዚያ ግንቦት ሰኔ ሀምሌ ነሃሴ ጳጉሜ",
    ),
}


def folded(text: str) -> str:
    """Returns a text in lower case, without accents, with Latin digits; letters of Arabic script in one form."""
    text = text.casefold()
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text))).translate(_LETTERS)
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def locale_of(name: str) -> Any:
    """Returns babel's locale of a name such as "pt_BR"; ``None`` if there is none."""
    from babel import Locale
    from babel.core import UnknownLocaleError

    try:
        return Locale.parse(name)
    except (UnknownLocaleError, ValueError, TypeError):
        return None


@functools.cache
def calendar_words(languages: frozenset[str]) -> frozenset[str]:
    """Returns the names of weekdays and months in some languages, as CLDR writes them, also short and with a capital.

    >>> sorted(calendar_words(frozenset({"en"})) & {"Monday", "Oct", "Trump"})
    ['Monday', 'Oct']
    """
    from babel import Locale, localedata

    known = {language.partition("-")[0] for language in languages} & {*localedata.locale_identifiers()}
    found: set[str] = set()
    for locale in map(Locale.parse, sorted(known)):
        for form in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                found.update(locale.days[form][width].values(), locale.months[form][width].values())
    found = {word.rstrip(".") for word in found}
    return frozenset(found | {word[:1].upper() + word[1:] for word in found})


@functools.lru_cache(maxsize=100)
def months_of(language: str) -> tuple[dict[str, int], re.Pattern[str]]:
    """Returns the months by name for a page in a language, and the pattern that finds their names."""
    from babel import localedata

    scripts = [name for name in localedata.locale_identifiers() if re.fullmatch(rf"{language}_[A-Z][a-z]+", name)]
    variants = [name for name in _VARIANTS if name.startswith((f"{language}_", "en"))]
    names = [*_CORE, *variants, *sorted(scripts), language]
    months = {name: number for locale in names for name, number in _names(locale)}
    months |= {"sept": 9} | {
        folded(name.replace("_", " ")): calendar + number
        for calendar, lines in _OTHER_NAMES.items()
        for line in lines
        for number, name in enumerate(line.split(), 1)
    }
    return months, months_pattern(months)


def _names(name: str) -> Iterator[tuple[str, int]]:
    locale = locale_of(name) if name else None
    if locale is None:
        return
    for form in ("stand-alone", "format"):
        for width in ("abbreviated", "wide"):
            for number, month in locale.months[form][width].items():
                short = _PARTICLES.sub("", folded(month)).rstrip(".").strip()
                if len(short) > 1 and re.search(r"[^\W\d_]", short) and not re.search("[月월]", short):
                    yield short, number


def months_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern for names of months: whole words, longer ones also with an ending ("maiatzaren")."""
    long = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?<![^\W\d_])[בܒ]?({long})(?:(?<=[^\W\d_]{{{_MIN_INFLECTED}}})[^\W\d_]{{1,4}})?(?!\d(?<=\d\d))(?![^\W\d_])"
    )


@functools.cache
def all_months() -> dict[str, list[tuple[str, int]]]:
    """Returns (name, number) of the months of all languages by the name's first word, where all agree on the number."""
    from babel import localedata

    numbers: dict[str, set[int]] = {}
    for locale in localedata.locale_identifiers():
        if re.fullmatch(r"[a-z]+(_[A-Z][a-z]+)?", locale) or locale in _VARIANTS:
            for name, number in _names(locale):
                numbers.setdefault(name, set()).add(number)
    known: dict[str, list[tuple[str, int]]] = {}
    for name, found in numbers.items():
        word = LONG_WORD.match(name)
        if word and len(found) == 1 and (len(name) > 2 or not name.isascii()):
            known.setdefault(word[0], []).append((name, min(found)))
    return known


def is_month(word: str) -> bool:
    """Returns whether a word is the name of a month in a common language of news."""
    return months_of("")[1].fullmatch(folded(word)) is not None


def gregorian(year: int, month: int, day: int) -> datetime.date | None:
    """Returns the day of a month in its calendar; ``None`` if there is no such day.

    Args:
      year: of the calendar; years that only another calendar may mean are read in that one.
      month: 1 to 12; more by 100, 200 or 300 for Persian, Islamic and Ethiopic months (see :func:`months_of`).
      day: 1 to 31.
    """
    calendar, month = month - month % 100, month % 100
    if not 1 <= day <= 31 or not 1 <= month <= 13:
        return None
    if calendar == _ISLAMIC:
        ordinal = 227_014 + 354 * (year - 1) + (3 + 11 * year) // 30 + 29 * (month - 1) + month // 2 + day
    elif calendar == _ETHIOPIC:
        ordinal = 2_795 + 365 * (year - 1) + year // 4 + 30 * (month - 1) + day
    elif calendar == _PERSIAN or 1_200 <= year <= 1_500:  # digits of Persian pages: 1403/02/23
        cycle = year + 1_595
        months = 31 * (month - 1) if month < 7 else 30 * (month - 7) + 186
        ordinal = 365 * cycle + cycle // 33 * 8 + (cycle % 33 + 3) // 4 + months + day - 356_033
    else:
        return existing_day(year - 543 if 2_400 <= year <= 2_650 else year, month, day)  # the Buddhist year of Thailand
    return datetime.date.fromordinal(ordinal)


def existing_day(year: int, month: int, day: int) -> datetime.date | None:
    """Returns a day of our calendar; ``None`` if it does not exist."""
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None  # another source may state a day
