"""What all reports share: escaping, numbers to the right, one self-contained page, and the same in Markdown."""

import re

import pytest
from newsembed.evaluation.statistics import Interval
from newsembed.studies.shared.pages import (
    Cell,
    Folded,
    Heading,
    Included,
    Missing,
    Part,
    Plot,
    Table,
    bullets,
    escaped,
    markdown,
    number,
    page,
    with_interval,
)

FACTS = Table(["", ""], [("written", "<today>")])
PARTS = [
    Part(
        "one",
        "First <part>",
        [
            "Some <b>words.",
            Table(["name", "share | of"], [["a", "12%"], [Cell("b|", note="more"), "-1,234.5e-3"]], "c < d"),
            Heading(Cell("Über <uns>", language="de", note="a note")),
            Missing("no text"),
            Plot('<svg fill="#000000" stroke="#ffffff"></svg>'),
            Folded(
                "job-why",
                "job: why",
                "3 of 4",
                Table(["key"], [[Cell("met", mark="good")], [Cell("2", folded=("a 1", "b 2"))]]),
            ),
        ],
        note="What it means.",
    )
]


def test_a_page_escapes_text_and_needs_nothing_else():
    made = page("A & B", FACTS, PARTS)
    for shown in (
        "<title>A &amp; B</title>", "<h1>A &amp; B</h1>", '<h2 class="part">First &lt;part&gt;</h2>',
        "<tr><td>written</td><td>&lt;today&gt;</td></tr>", '<p class="dim">What it means.</p>',
        '<p class="dim">Some &lt;b&gt;words.</p>', "<caption>c &lt; d</caption>",
        '<th scope="col" class="n">share | of</th>',
        '<td class="n">12%</td>', '<td>b|<br><span class="dim">more</span></td>',
        '<h3><span lang="de">Über &lt;uns&gt;</span><br><span class="dim">a note</span></h3>',
        '<p class="missing">Missing: no text.</p>', '<svg fill="currentColor" stroke="none">',
        '<details id="job-why"><summary>job: why <span class="dim">3 of 4</span></summary>',
        '<span class="good">met</span>', "<details><summary>2</summary>a 1<br>b 2<br></details>",
    ):  # fmt: skip
        assert shown in made
    assert not re.search(r"<script|<link|<img|src=|https?:", made)
    assert '<a href="#one">' not in made  # one part needs no list of parts
    assert '<a href="#one">First &lt;part&gt;</a> <a href="#two">' in page(
        "A", None, [*PARTS, Part("two", "Second", [])]
    )
    assert made.count("<tr>") == 1 + 3 + 3  # the facts have no row of headings


def test_the_same_in_markdown_without_what_only_pages_show():
    lines = [line for line in markdown("A", [*PARTS, "end", *bullets("Failed:", ["x"])], FACTS).splitlines() if line]
    assert lines == [
        "# A", "|  |  |", "| --- | --- |", "| written | &lt;today> |", "## First <part>", "What it means.",
        "Some <b>words.", r"| name | share \| of |", "| --- | ---: |", "| a | 12% |", r"| b\| | -1,234.5e-3 |",
        "### Über &lt;uns>", "Missing: no text.", "end", "Failed:", "- x",
    ]  # fmt: skip
    assert bullets("Failed:", []) == []
    assert markdown("A", [Included("none.html", {})]) == "# A\n"
    assert escaped("a\n b < 1 </p>") == "a b < 1 &lt;/p>"


@pytest.mark.parametrize(
    ("cells", "is_right"),
    [
        (("+1.50 ± 0.25", "-"), True),
        (("< 0.001", "0.250"), True),
        (("-2.00 (-3.00 to -1.00)", ""), True),
        (("2 of 3", "0 of -"), True),
        (("1 to 1,024", "1,000 or more"), True),
        (("1.2e+06", "3"), True),
        (("2.0 s, 4/s", "-"), True),
        (("1", "x"), False),
        (("-", ""), False),
        (("3 killed in flood", "2"), False),
        (("agrees",), False),
    ],
)
def test_columns_of_numbers_are_found(cells, is_right):
    assert (Table(["a"], [[cell] for cell in cells]).right == {0}) == is_right


def test_numbers_are_short():
    assert [number(value) for value in (0.123456, 1234567.0, 3, "x")] == ["0.1235", "1.235e+06", "3", "x"]
    assert with_interval(Interval(-0.5, -1.0, 0.25), "+.2f") == "-0.50 (-1.00 to +0.25)"
    assert with_interval(Interval(0.5, None, 0.25), ".1f") == "0.5"
    assert with_interval(None, ".1f") == "-"
