"""extract: bylines and days that only the reader sees, by values worked by hand."""

import datetime

import pytest
from newsembed.beam_pipelines.extract.bylines import bylines, days
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.lists import Region
from newsembed.beam_pipelines.extract.page import parse

SENTENCE = "The council of the river town voted on Tuesday to raise the embankment before the autumn rains, it says."
PROSE = f"<p>{SENTENCE}</p>"
MARCH = datetime.date(2021, 3, 1)


def shown(body):
    tree = parse(f"<html><body>{body}</body></html>")
    return bylines(tree, Region(lay_out(tree)))


def found(body):
    """The published and the modified day."""
    tree = parse(f"<html><body>{body}</body></html>")
    return tuple(day and day.day for day in days(tree, Region(lay_out(tree))))


@pytest.mark.parametrize(
    "body",
    [
        "<span itemprop=author>Ann Lee</span><p class=byline>Bo Chen</p>",
        "<a rel=author>Ann Lee</a>",
        "<p class=byline>Ann Lee</p><p class=author>Bo Chen</p>",
        *(f"<p {name}>Ann Lee</p>" for name in ("id=main-byline", "data-testid=byline-1", "class=storyAuthor")),
        "<div itemprop=author><meta itemprop=name content='Ann Lee'></div>",
        "<div itemprop=author content='Ann Lee'></div>",
    ],
)
def test_a_byline_by_its_marks(body):
    assert shown(f"<div>{body}</div>") == ("Ann Lee",)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("<p class=byline>Ann Lee</p><p class=byline>Ann Lee</p><p class=byline>Bo Chen</p>", ("Ann Lee", "Bo Chen")),
        ("<p class=byline><b itemprop=name>Ann Lee</b>, <b itemprop=name>Bo Chen</b> x</p>", ("Ann Lee, Bo Chen",)),
        ("<p class=byline><b><i>By</i><i>by Ann Lee</i></b><b>Staff</b></p>", ("By | by Ann Lee | | Staff |",)),
        ("<p class=byline>Ann</p>", ()),  # three letters are not a name
        ("<p class=byline>Anna</p>", ("Anna",)),
        ("<p class=byline>12:30</p>", ()),
        ("<meta itemprop=author content='Ann Lee'>", ()),
        (f"<p class=byline>{'A' * 200}</p>", ("A" * 200,)),
        (f"<p class=byline>{'A' * 201}</p>", ()),
        ("", ()),
    ],
)
def test_bylines_by_their_marks(body, names):
    assert shown(f"<div>{body}</div>") == names


@pytest.mark.parametrize(
    "around", ["<aside>{}</aside>", "<footer>{}</footer>", "<nav>{}</nav>", "<div class=comments>{}</div>"]
)
def test_bylines_and_days_of_other_parts_of_the_page_do_not_count(around):
    assert shown(around.format("<p><b class=byline>Ann Lee</b></p>")) == ()
    assert found(around.format("<p><time datetime=2021-03-01></time></p>")) == (None, None)
    assert shown("<p class='byline comment'>Ann Lee</p>") == ()
    assert shown(around.format("<b class=byline>Ann Lee</b>") + "<p class=byline>Bo Chen</p>") == ("Bo Chen",)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("By Ann Lee", ("By Ann Lee",)),
        ("Written by: Ann Lee", ("Written by: Ann Lee",)),
        ("By the river", ()),
        ("by boat today", ()),
        ("By Ann", ()),
        ("Stand by Ann Lee", ()),
        (f"By Ann Lee {'x' * 89}", (f"By Ann Lee {'x' * 89}",)),  # 100 characters
        (f"By Ann Lee {'x' * 90}", ()),
    ],
)
def test_a_line_that_begins_like_a_byline_is_one(line, names):
    assert shown(f"<div>{line}</div>{PROSE}") == names


@pytest.mark.parametrize(("before", "is_read"), [(3, True), (4, False)])
def test_such_a_line_is_searched_to_the_third_paragraph(before, is_read):
    assert bool(shown(f"{PROSE * before}<div>By Ann Lee</div>")) == is_read


# The published and the modified day of a page.
DAYS = """
2021-03-01 None: <b itemprop=datePublished content=2021-03-01></b><time datetime=2020-01-01></time>
2021-03-01 None: <time datetime=2021-03-01>yesterday</time><b class=date>May 5, 2020</b>
2021-03-01 None: <time>March 1, 2021</time>
2021-03-01 None: <abbr class=published title=2021-03-01>x</abbr>
None None: <abbr title=2021-03-01>no word says what the day is</abbr>
2021-03-01 None: <b class=timestamp>March 1, 2021</b>
2021-03-01 None: <b class=posted data-timestamp=1614600000></b>
2021-03-01 None: <b id=date data-date=2021-03-01></b>
2021-03-01 None: <time datetime=2021-03-01></time><time datetime=2021-03-05></time>
None 2021-03-05: <time itemprop=dateModified datetime=2021-03-05></time>
2021-03-01 2021-03-05: <time>Updated March 5, 2021</time><time datetime=2021-03-01></time>
None 2021-03-05: <time class=updated datetime=2021-03-05></time><time class=updated datetime=2021-03-06></time>
2021-03-01 None: <time datetime=1989-12-31>March 1, 2021</time>
None None: <time datetime=1989-12-31></time>
1990-01-01 None: <time datetime=1990-01-01></time>
None None: <time datetime=2100-12-31></time>
None None: <time>soon</time>
None None: <time>March 1, 1989</time>
"""


@pytest.mark.parametrize("case", DAYS.strip().split("\n"))
def test_days_by_their_marks(case):
    expected, _, body = case.partition(": ")
    assert " ".join(map(str, found(f"<div>{body}</div>"))) == expected


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("River town, March 1, 2021", MARCH),
        ("Updated March 1, 2021", None),
        ("March 1, 1989", None),
        (f"1 March 2021 {'x' * 87}", MARCH),  # 100 characters
        (f"1 March 2021 {'x' * 88}", None),
        (f"On March 1, 2021 the council met. {'x' * 30}.", None),  # prose
    ],
)
def test_a_short_line_with_a_day_before_the_text_is_its_day(line, day):
    assert found(f"<div>{line}</div>{PROSE}")[0] == day
