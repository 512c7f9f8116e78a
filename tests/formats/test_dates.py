"""Dates in all languages, calendars and forms, and what the words around them say."""

import datetime
import unicodedata

import pytest
from babel import Locale, localedata
from babel.dates import format_date
from newsembed.formats.dates import parse_day, place_of, read_day, stated_days

DAY = datetime.date(2024, 5, 12)
# Languages in which news is written, and in whose CLDR formats our reader finds each day.
LANGUAGES = """
af am ar az be bg bn bs ca cs cy da de el en es et eu fa fi fil fr ga gl gu ha he hi hr hu hy id is it ja ka kk km kn ko
ky lo lt lv mk ml mn mr ms my nb ne nl or pa pl ps pt ro ru si sk sl so sq sr sv sw ta te th tr uk ur uz vi zh zu
""".split()


@pytest.mark.parametrize("language", LANGUAGES)
def test_days_as_cldr_writes_them(language):
    locale = Locale.parse(language)
    for day in (DAY, datetime.date(2023, 11, 3), datetime.date(2021, 1, 31), datetime.date(2019, 12, 25)):
        for form in ("long", "full"):
            assert parse_day(format_date(day, form, locale), language) == day, format_date(day, form, locale)


def test_nearly_all_languages_of_cldr_are_read():
    names = [name for name in localedata.locale_identifiers() if "_" not in name]
    read = [parse_day(format_date(DAY, "long", Locale.parse(name)), name) == DAY for name in names]
    assert sum(read) >= 0.96 * len(names)


FORMS = """
Sun May 12 08:00:21 CEST 2024 | Sun May 12 08:00:21 2024 | Sun May 12 08:00:21 +0000 2024 |
Sun May 12 08:00:21 America/New_York 2024 | Sun 12 May 08:00:21 CEST 2024 | 12/May/2024:08:00:21 +0000 |
12 Tháng Năm, 2024 | Sun, 12 May 2024 08:00:21 GMT | Sunday, 12-May-24 08:00:21 GMT |
Sat May 11 2024 23:00:21 GMT-0400 (EDT) | Sat May 11 23:00:21 EDT 2024 | May 11, 2024, 9:00 PM EST |
May 12, 2024, 8:00 PM | 2024-05-11 23:30:00 -0400 | 1.7155008e+12 | 1715500800000000 | /Date(1715500800000)/ |
20240512T080000Z | 12 maja 2024 | 12 MAYIS 2024 | 12 מאי 2024 | १२ मई २०२४ | 二〇二四年五月十二日 |
令和6年5月12日 | 民國113年5月12日 | 12 พฤษภาคม 2567 | ۲۳ اردیبهشت ۱۴۰۳ | 4 ذو القعدة 1445 | ግንቦት 4 ቀን 2016 |
12 كانون الثاني 2024 | 2024-05-12T00:00:00+08:00 |
Sun May 12 2024 00:00:00 GMT+0800 (CST) | 12 May 2024 12:00 AM IST
"""


@pytest.mark.parametrize(
    "written",
    [
        *(text.strip() for text in FORMS.split("|")),  # no language is given
        *(1715500800, 1715500800000, 1715500800.5, {"$date": {"$numberLong": "1715500800000"}}),
        *([2024, 5, 12, 8, 0, 21], datetime.datetime(2024, 5, 12, 8)),
    ],
)
def test_forms_and_calendars(written):
    expected = datetime.date(2024, 1, 12) if "كانون" in str(written) else DAY
    assert parse_day(written, "ar" if expected != DAY else "") == expected


@pytest.mark.parametrize(
    "written",
    ["0001-01-01T00:00:00", "-0001-11-30T00:00:00+00:00", "1970-01-01T00:00:00Z", "9999-12-31", "2099-01-01", 0, "0"]
    + ["Mon, 01 Jan 0001 00:00:00 +0000"],
)
def test_placeholders_are_not_believed(written):
    assert parse_day(written) is None


@pytest.mark.parametrize(
    ("written", "place", "day", "guessed"),
    [
        ("05/12/2024", "", None, False),
        ("05/12/2024", "en", (2024, 5, 12), True),
        ("05/12/2024", "en-US", (2024, 5, 12), False),
        ("05/12/2024", "en-GB", (2024, 12, 5), False),
        ("05/12/2024", "de", (2024, 12, 5), False),
        ("13/12/2024", "", (2024, 12, 13), False),
        ("12.05.24", "de", (2024, 5, 12), True),
        ("12. 5. 2024", "cs", (2024, 5, 12), False),
    ],
)
def test_order_of_day_and_month(written, place, day, guessed):
    found = read_day(written, place)
    assert found == (None if day is None else (datetime.date(*day), "", guessed))


def test_a_month_may_have_two_names():
    for text in ("24 نيسان / أبريل 2020", "24 نيسان/أبريل 2020"):
        assert parse_day(text, "ar") == datetime.date(2020, 4, 24)


def test_places():
    assert place_of("en-US", "http://a.example.co.uk/") == "en-GB"
    assert place_of("", "http://a.example.pl/") == "pl-PL"
    assert place_of("pt_BR", "http://a.example.com/") == "pt-BR"
    assert place_of("fr", "http://a.example.io/") == "fr"


@pytest.mark.parametrize(
    "text",
    [
        "Updated May 14, 2024 · Published May 12, 2024",
        "Last updated on May 14, 2024. First published on May 12, 2024",
        "Published May 12, 2024 | Updated 2024-05-14",
        "12. Mai 2024, zuletzt aktualisiert 14. Mai 2024",
        "Mis à jour le 14 mai 2024, publié le 12 mai 2024",
        "Обновлено 14 мая 2024, опубликовано 12 мая 2024",
        "2024年5月12日 公開 2024年5月14日 更新",
        "12 Mayıs 2024 tarihinde yayınlandı, 14 Mayıs 2024'te güncellendi",
        "تحديث 14 مايو 2024 - نشر 12 مايو 2024",
        "Event: June 1, 2024 | Posted May 12, 2024",
        "Updated Tue, May 14, 2024 at 9:00 AM EDT / Published Sun, May 12, 2024",  # no word of events begins so
        "Capital News, May 12, 2024, corrected May 14, 2024",
        "Mis en ligne le 12 mai 2024, mis à jour le 14 mai 2024",
    ],
)
def test_words_around_a_day_say_which_it_is(text):
    published = [day.day for day in stated_days(text) if day.role in ("published", "")]
    assert published == [DAY]
    assert parse_day(text) == DAY
    assert parse_day(unicodedata.normalize("NFD", text)) == DAY


@pytest.mark.parametrize(
    "text",
    ["Ausstellung vom 9. bis 12. Mai 2024", "9-12 May 2024", "9. - 12. Mai 2024", "9 al 12 de mayo de 2024"]
    + ["April 28 to May 12, 2024", "12 May 2024, 13:15 Uhr - 19:00 Uhr", "12 May 2024 10:00 am to 11:30"],
)
def test_the_end_of_a_range_and_opening_hours_are_of_an_event(text):
    assert stated_days(text) == [(DAY, "event", False)]


def test_two_days_are_a_range_only_without_other_words():
    assert {day.role for day in stated_days("12 May 2024 - 3 June 2024")} == {"event"}
    for text in (
        "Part 3 - 12 May 2024",
        "12.05.2024 09:30 - 4 min",
        "- 12 May 2024",
        "12 May 2024 -",
        "08:30 - 12.05.2024",
    ):
        assert [day.role for day in stated_days(text, "de")] == [""]


def test_a_word_after_the_only_day():
    assert [day.role for day in stated_days("May 14, 2024 (updated)")] == ["updated"]
    assert [day.role for day in stated_days("May 14, 2024 Updated: 3 hours ago")] == [""]
