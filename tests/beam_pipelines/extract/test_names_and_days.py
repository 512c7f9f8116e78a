"""extract: people, titles, days, and lines that are not part of an article, by values worked by hand."""

import datetime
import time

import pytest
from newsembed.beam_pipelines.extract import people as people_module
from newsembed.beam_pipelines.extract.dates import (
    day_in_text,
    day_in_url,
    has_impossible_day,
    impossible_days_in,
    is_impossible,
    parse_day,
    states_impossible_day,
)
from newsembed.beam_pipelines.extract.hints import Name, classify_names, is_body_name, is_hidden_name, judge_name
from newsembed.beam_pipelines.extract.page import parse
from newsembed.beam_pipelines.extract.people import names_person, people
from newsembed.beam_pipelines.extract.title import clean_title, element_title, headings_of
from newsembed.beam_pipelines.extract.trimming import ends_article, is_boilerplate, is_portrait

URL = "http://rivernews.example/town/1"


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2016-11-8T23:59", (2016, 11, 8)),
        ("2016/1/2 10:01", (2016, 1, 2)),
        ("2016-11-081", None),
        ("201611081200", (2016, 11, 8)),
        ("20161108120030", (2016, 11, 8)),
        ("2016110812", None),
        ("18991108", (1899, 11, 8)),
        ("1899-11-08", (1899, 11, 8)),
        ("999999999", None),  # nine digits are too few for seconds since 1970
        ("2000000000", None),
        ("1.1.2016", None),
        ("Nov. 8, 2016", (2016, 11, 8)),
        ("november 8th 2016", (2016, 11, 8)),
        ("8th Nov 2016", (2016, 11, 8)),
        ("8-Nov-2016", (2016, 11, 8)),
        ("1er mars 2016", (2016, 3, 1)),
        ("8 de mayo del 2016", (2016, 5, 8)),
        ("8º maggio 2016", (2016, 5, 8)),
        ("31 June 2016", None),
        ("Nov 8, 16", None),
        ("2016년 11월 8일", (2016, 11, 8)),
        ("Mon, 08 Nov 2016 23:00:00 -0500", (2016, 11, 9)),
        ("Mon, no day", None),
        ("0001-01-01T00:00:00+14:00", (1, 1, 1)),  # the UTC day would be before the first year
        ("x" * 192 + " 2016-11-08", None),  # only 200 characters are read
        ("x" * 180 + " 2016-11-08", (2016, 11, 8)),
        (3.5, None),
        ([], None),
    ],
)
def test_days_as_pages_write_them(written, day):
    assert parse_day(written) == (datetime.date(*day) if day else None)


@pytest.fixture(params=["America/New_York", "Asia/Tokyo"])
def _other_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_other_zone")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-02-30", True),
        ("2024-02-29", False),
        ("2023/2/29", True),
        ("12024-01-01", True),  # a year of five digits
        ("  20240230 ", True),
        ("20240230x", False),
        (20240230, True),
        (20240228, False),
        ("30 February 2024", True),
        ("February 30, 2024", True),
        ("2024年2月30日", True),
        ("published 2024-02-30", False),  # such a day is looked for at the beginning only
        ("x" * 180 + " 30 February 2024", True),
        ("x" * 190 + " 30 February 2024", False),  # only 200 characters are read
        ("soon", False),
        (None, False),
        (20240230.0, False),
    ],
)
def test_values_that_are_written_as_a_day_which_does_not_exist(value, expected):
    assert is_impossible(value) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2024-02-30", True),
        ("on 2024/2/31 and 2024.02.30", True),
        ("on 2024-02-30 and 2024-02-29", False),  # another day of the month
        ("on 2024-03-32", False),  # of another month
        ("12024-02-30", False),
        ("2024-02-301", False),
        ("no day", False),
    ],
)
def test_texts_with_an_impossible_day_of_a_month_and_no_other(text, expected):
    assert states_impossible_day(text, datetime.date(2024, 2, 1)) is expected


def test_impossible_days_of_texts_are_counted():
    assert impossible_days_in("2024-02-30, 2024/02/31, 2024.2.29 and 2023-2-29") == 3
    assert impossible_days_in("2024-00-01 2024-13-01 2024-12-32") == 0  # numbers of something else
    assert impossible_days_in("2024-01-00") == 1
    assert impossible_days_in("2024-12-31 2024-01-01") == 0


def test_impossible_days_of_urls():
    assert has_impossible_day("http://a.example/2024/02/30/x")
    assert not has_impossible_day("http://a.example/2024/02/29/x")
    assert not has_impossible_day("http://a.example/2024/2/x")


def test_days_do_not_depend_on_the_zone_of_the_machine():
    assert parse_day("2021-03-01T23:30:00") == datetime.date(2021, 3, 1)
    assert parse_day("2021-03-01T00:30:00") == datetime.date(2021, 3, 1)
    assert parse_day("1614643199") == datetime.date(2021, 3, 1)  # one second before the next day
    assert parse_day("1614643200") == datetime.date(2021, 3, 2)


def test_a_day_in_a_text_needs_its_month_by_name_or_in_order():
    assert day_in_text("at 10:41 on 6 de diciembre de 2012, updated 7 December 2012") == datetime.date(2012, 12, 6)
    assert day_in_text("May 2016") is None
    assert day_in_text("5/6/2016") is None
    assert day_in_text("from 2016-13-08") is None


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("/2016/11/08/a", (2016, 11, 8)),
        ("/2016/1/2/a", (2016, 1, 2)),
        ("/2016-11-08-a", (2016, 11, 8)),
        ("/1999/12/31/", (1999, 12, 31)),
        ("/2016/13/08/a", None),
        ("/2016/11/32/a", None),
        ("/2016/02/30/a", None),
        ("/1899/11/08/a", None),
        ("/x2016/11/08/a", None),
        ("/2016/11/081/a", None),
        ("/2016/11/a", None),
    ],
)
def test_days_in_urls(path, day):
    assert day_in_url(f"http://s.example{path}") == (datetime.date(*day) if day else None)


@pytest.mark.parametrize(
    ("byline", "names"),
    [
        ("By Ann Lee with Bo Chen & Cy Day", ("Ann Lee", "Bo Chen", "Cy Day")),
        ("Ann Lee – Bo Chen", ("Ann Lee", "Bo Chen")),
        ("Ann Lee-Chen", ("Ann Lee-Chen",)),
        ("Updated by Ann Lee", ("Ann Lee",)),
        ("Author: Ann Lee", ("Ann Lee",)),
        ("Byron Lee", ("Byron Lee",)),
        ("Ann Lee [River News] <ann@x.example>", ("Ann Lee",)),
        ("Prof. Ann Lee", ("Ann Lee",)),
        ("Dr. Ann", ("Dr. Ann",)),  # a title stays before a single name
        ("Ann Lee, PhD, Bo Chen Sr.", ("Ann Lee", "Bo Chen Sr")),
        ("Ann Lee, III", ("Ann Lee III.",)),
        ("Jr., Ann Lee", ("Ann Lee",)),
        ("Reuters; Ann Lee", ("Ann Lee",)),
        ("Reuters", ("Reuters",)),
        ("Staff Writer; Reuters", ("Staff Writer", "Reuters")),
        ("Ann Lee for the River News", ("Ann Lee",)),
        ("Ann Lee in Berlin", ("Ann Lee",)),
        ("ann lee-o'neill", ("Ann Lee-O'Neill",)),
        ("Ann LEE", ("Ann LEE",)),
        ("ZORRO", ("ZORRO",)),
        ("X", ()),
        ("Bo", ("Bo",)),
        ("Ann 2016", ()),
        ("Read more: Ann", ()),
        ("Unknown", ()),
        ("梁振英, Zorro", ("梁振英",)),  # a name without spaces is a full name outside ASCII
        ("A" * 61, ()),
        ("A" * 60, ("A" * 60,)),
        ("one two three four five six", ("One Two Three Four Five Six",)),
    ],
)
def test_bylines(byline, names):
    assert people(byline) == names


def test_the_first_spelling_of_a_name_counts_and_ten_names_at_most():
    assert people(("ann lee", "Ann LEE", "Bo Chen")) == ("Ann Lee", "Bo Chen")
    assert len(people("; ".join(f"Ann {letter}ee" for letter in "ABCDEFGHIJKL"))) == people_module._MAX_AUTHORS == 10
    assert people("Ann Lee; " + "x" * 1990 + "; Bo Chen") == ("Ann Lee",), "2,000 characters are read"


def test_a_person_is_neither_a_site_nor_an_agency_nor_a_job():
    assert names_person(("Reuters", "Ann Lee"))
    assert not names_person(("Reuters", "Staff Writer", "The Associated Press"))
    assert not names_person(("Riverine-24",), site="Riverine 24")
    assert names_person(("Riverine-24",), site="")
    assert names_person(("Apple Lee",)), "AP only as the whole name"
    assert not names_person(())


@pytest.mark.parametrize(
    ("title", "clean"),
    [
        ("Walls rise | River News | River News | River News", "Walls rise"),
        ("Walls rise » River News", "Walls rise"),
        ("Walls rise ~ rivernews", "Walls rise"),  # the host
        ("Walls rise-River News", "Walls rise-River News"),  # a hyphen needs spaces
        ("Walls rise|River News", "Walls rise"),
        ("The River News - The walls rise", "The walls rise"),
        ("River News - Walls rise", "River News - Walls rise"),  # two words are too few
        ("- River News", "- River News"),
        ("River News | ", "River News |"),
        ("Walls\n rise", "Walls rise"),
        ("", ""),
        ("x" * 600, "x" * 500),
    ],
)
def test_titles_without_the_name_of_the_site(title, clean):
    assert clean_title(title, ["River News"], URL) == clean


def test_the_name_that_the_site_gives_itself_need_not_be_its_host():
    for title in ("Walls rise | Daily Flood", "Walls rise | The Daily Flood", "Daily Flood: Walls rise again"):
        assert clean_title(title, ["Other", "Daily Flood"], URL).startswith("Walls rise")
        assert "Flood" not in clean_title(title, ["Other", "Daily Flood"], URL)


def test_hosts_name_the_site_with_and_without_their_parts():
    for name, url in (
        ("news.rivertown.example", "http://www.news.rivertown.example/1"),
        ("News Rivertown", "http://news.rivertown.example/1"),
        ("Rivertown", "http://news.rivertown.example/1"),
        ("The Rivertown", "http://news.rivertown.example/1"),
    ):
        assert clean_title(f"Walls rise again | {name}", [], url) == "Walls rise again", name
    assert clean_title("Walls rise again | Example", [], "http://news.rivertown.example/1") != "Walls rise again"
    assert clean_title("Plan | B", ["B"], "http://x.example/1") == "Plan | B", "one letter names no site"
    assert clean_title("Plan | The B", ["B"], "http://x.example/1") == "Plan | The B"


def test_headings_and_the_title_element():
    tree = parse(
        "<html><head><title> Walls\n rise </title></head><body><h1></h1>"
        + "".join(f"<h1>Heading <b>{number}</b></h1>" for number in range(6))
    )
    assert headings_of(tree) == [f"Heading {number}" for number in range(4)], "the first of five is empty"
    assert element_title(tree) == "Walls rise"
    assert element_title(parse("<p>None</p>")) == ""
    heading = "Council raises embankment"
    assert clean_title(f"{heading}s", [], URL, [heading]) == f"{heading}s", "no separator follows"
    assert clean_title(f"{heading}: more", [], URL, ["Other", heading]) == heading


@pytest.mark.parametrize(
    ("names", "kind", "is_body"),
    [
        ("123 --", Name.NEUTRAL, False),
        ("", Name.NEUTRAL, False),
        ("Sidebar", Name.BOILERPLATE, False),
        ("sidebarred", Name.NEUTRAL, False),
        ("widgetText", Name.BOILERPLATE, False),
        ("story sidebar comments", Name.NEVER, False),
        ("no-comments", Name.NEUTRAL, False),
        ("storyReadMore", Name.BOILERPLATE, False),
        ("articlebody", Name.NEUTRAL, True),
        ("articleBody", Name.NEUTRAL, True),
        ("x-entry-content", Name.NEUTRAL, True),
        ("content-entry", Name.NEUTRAL, False),
        ("article-photo-body", Name.NEUTRAL, False),
    ],
)
def test_names_of_blocks(names, kind, is_body):
    assert judge_name(names) is kind
    assert is_body_name(names) is is_body
    assert classify_names(names) == (kind, is_body)


def test_names_are_read_up_to_a_thousand_characters():
    for length, seen in ((1000, True), (1001, False)):
        filler = "x" * (length - len(" sidebar"))
        assert (judge_name(f"{filler} sidebar") is Name.BOILERPLATE) == seen
    for length, seen in ((1000, True), (1001, False)):
        assert is_body_name("x" * (length - len(" storybody")) + " storybody") == seen
        assert is_hidden_name("x" * (length - len(" sr-only")) + " sr-only") == seen


def test_names_of_hidden_text():
    assert is_hidden_name("text Screen-Reader-Text")
    assert is_hidden_name("imgCaption")
    assert not is_hidden_name("captioned")
    assert not is_hidden_name("screen-reader-texts")


def test_lengths_of_lines_that_are_no_part_of_an_article():
    assert is_boilerplate("Photo:" + "x" * 160)
    assert not is_boilerplate("Photo:" + "x" * 161)
    rights = " All rights reserved"
    assert is_boilerplate("x" * (400 - len(rights)) + rights)
    assert not is_boilerplate("x" * (401 - len(rights)) + rights)
    assert is_boilerplate("The walls. (Courtesy of the town).")
    assert is_boilerplate("The walls. (Courtesy of the town)...")
    assert not is_boilerplate("The walls. (Courtesy of the town)....")
    assert not is_boilerplate("The walls (Courtesy of the town) rise again.")
    assert ends_article("Comments" + "." * 92)
    assert not ends_article("Comments" + "." * 93)
    portrait = "Follow her on Twitter"
    assert is_portrait("x" * (799 - len(portrait)) + " " + portrait)
    assert not is_portrait("x" * (800 - len(portrait)) + " " + portrait)


@pytest.mark.parametrize(
    ("line", "portrait"),
    [
        ("Ann Lee is a writer.", True),
        ("Reach her at ann@river.example", True),
        ("Ann Lee can be reached at the desk, ann@river.example", True),
        ("Reach the top of the walls", False),
        ("Twitter: @annlee", True),
        ("The mayor was the first to speak of the walls.", False),
    ],
)
def test_portraits_of_authors(line, portrait):
    assert is_portrait(line) is portrait


@pytest.mark.parametrize(
    ("heading", "ends"),
    [
        ("Comments", True),
        ("Comments on the walls divide the town", False),
        ("You may also like", True),
        ("About the author", True),
        ("About the walls", False),
        ("Around the web", True),
        ("Latest news", True),
        ("Latest walls", False),
    ],
)
def test_headings_after_the_end(heading, ends):
    assert ends_article(heading) is ends
