"""extract: the thresholds of the rules that find an article's text, on pages whose paragraphs have round lengths."""

import pytest
from newsembed.beam_pipelines.extract.content import Content, main_content, running_text
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import parse

LINK = "<a href=/other>{}</a>"


def text(mark, length):
    """A sentence of so many characters, whose first word is the mark."""
    return f"{mark} {'x' * (length - len(mark) - 2)}."


def p(mark, length, tag="p"):
    return f"<{tag}>{text(mark, length)}</{tag.split()[0]}>"


def ps(mark, *lengths):
    """Paragraphs a1, a2, … for the mark "a"."""
    return "".join(p(f"{mark}{number}", length) for number, length in enumerate(lengths, 1))


def box(names, *inner):
    return f"<div class='{names}'>{''.join(inner)}</div>"


def content_of(html, **options):
    return main_content(lay_out(parse(f"<html><body>{html}</body></html>")), **options)


def marks(html, **options):
    """The first words of the lines of the text."""
    return " ".join(line.split(" ")[0] for line in content_of(html, **options).text.split("\n"))


# The share of the page


def test_confidence_and_share_of_a_text():
    page = box("story-body", p("a", 600)) + p("b", 200) + box("sidebar", p("c", 200)) + box("comments", p("d", 500))
    assert content_of(page) == Content(text("a", 600), 600 / 800, 600 / 1_000)
    assert content_of("<p>Short.</p>") == content_of("") == Content("", 0.0, 0.0)


def test_a_second_opinion_does_not_know_names_except_those_of_comments():
    page = box("story-body", p("a", 600)) + p("b", 200) + box("sidebar", p("c", 200)) + box("comments", p("d", 500))
    assert content_of(page, by_names=False).text.count("\n") == 2
    assert marks(page, by_names=False) == "a b c"


def test_further_marked_bodies_are_not_part_of_the_page_of_a_story():
    first, second = box("story-body", p("a", 1_000)), box("story-body", p("b", 400), box("entry-content", p("c", 600)))
    found = content_of(f"{first}<h2><a href=/b>Second</a></h2>{second}{p('d', 500)}")
    assert (found.text, found.confidence) == (text("a", 1_000), 1_000 / 1_500)
    articles = f"<article>{p('a', 1_000)}</article><article>{p('b', 1_000)}</article>{p('c', 500)}"
    found = content_of(articles)
    assert (found.text, found.confidence) == (text("a", 1_000), 1_000 / 2_500)


@pytest.mark.parametrize(("first", "expected"), [(700, "a"), (699, "a b")])
def test_a_live_blog_is_its_marked_body_only_if_that_has_most_of_the_prose(first, expected):
    page = box("story-body", ps("a", first - 100, 100)) + ps("b", 1_000 - first - 100, 100)
    assert marks(page) == "a1 a2"
    assert marks(page, live_blog=True) == " ".join(f"{mark}1 {mark}2" for mark in expected.split())


# Which names are released


# Boxes and the paragraph after them with their characters, and what is read of them.
RELEASES = """
sidebar 2400 free 600 -> free  # a fifth is left
sidebar 2401 free 599 -> sidebar free
sidebar 600 free 400 -> free
sidebar 601 free 399 -> sidebar free  # too little is left
sidebar 1600 related 1400 promo 600 free 400 -> sidebar free  # 40 % is released
sidebar 1300 related 1200 promo 1100 free 400 -> free
related 2000 sidebar 1600 free 400 -> related free  # the one with the most
sidebar 1600 related 2000 free 400 -> related free
sidebar 1800 related 1800 free 400 -> sidebar free
sidebar 2600 related 2500 promo 2500 free 400 -> free  # 5 % is left
sidebar 2601 related 2500 promo 2500 free 399 -> sidebar related promo free
"""


@pytest.mark.parametrize("case", RELEASES.strip().split("\n"))
def test_a_name_that_would_remove_most_of_the_prose_is_released(case):
    parts, expected = case.partition("  #")[0].split(" -> ")
    names, lengths = parts.split(" ")[::2], map(int, parts.split(" ")[1::2])
    paragraphs = (box(name, p(name, length)) for name, length in zip(names, lengths, strict=True))
    assert marks("".join(paragraphs)) == expected


def test_after_a_release_a_tenth_is_enough():
    related = box("related", p("b", 3_400))
    assert marks(box("sidebar", p("a", 600), related)) == "a"
    assert marks(box("sidebar", p("a", 300), related)) == "b"  # released too, and nearly all of the prose


@pytest.mark.parametrize(("around", "expected"), [(4, "a1 a2"), (5, "")])
def test_at_most_four_names_around_a_text_are_released(around, expected):
    page = ps("a", 600, 600)
    for name in ("sidebar", "related", "promo", "popular", "trending")[:around]:
        page = box(name, page)
    assert marks(page) == expected


def test_comments_are_never_released_but_a_page_is_no_comment():
    assert marks(box("comments", p("a", 5_000)) + p("b", 500)) == "b"
    assert marks(f"<div class='comments'><h1>Title</h1>{p('a', 500)}</div>") == "a"


@pytest.mark.parametrize(("body", "expected"), [(1_000, "a b"), (999, "b")])
def test_an_element_around_a_marked_body_with_a_quarter_of_the_prose_counts(body, expected):
    assert marks(box("sidebar", box("article-body", p("a", body))) + p("b", 4_000 - body)) == expected


# Which element is the article


@pytest.mark.parametrize(("length", "expected"), [(1_600, "a"), (1_599, "a b")])
def test_a_single_article_has_two_fifths_of_the_prose(length, expected):
    assert marks(f"<article>{p('a', length)}</article>{p('b', 4_000 - length)}") == expected


@pytest.mark.parametrize(
    ("first", "second", "rest", "expected"),
    [
        (1_000, 1_600, 1_400, "a"),  # a quarter of the prose
        (999, 1_600, 1_401, "b"),
        (800, 1_600, 800, "a"),  # half of the largest
        (799, 1_600, 700, "b"),
    ],
)
def test_the_first_of_several_large_articles_counts(first, second, rest, expected):
    page = f"<article>{p('a', first)}</article><article>{p('b', second)}</article>{p('c', rest)}"
    assert marks(page) == expected


@pytest.mark.parametrize(("first", "expected"), [(400, "a"), (399, "a b c")])
def test_a_marked_body_has_a_tenth_of_the_prose(first, expected):
    stories = box("story-body", p("a", first)) + "<h1>Second</h1>" + box("story-body", p("b", 700))
    page = stories + p("c", 3_300 - first)
    assert marks(page) == expected


@pytest.mark.parametrize(("inner", "expected"), [(1_900, "a"), (1_899, "a b")])
def test_the_text_of_an_article_is_its_child_with_nearly_all_of_the_prose(inner, expected):
    assert marks(f"<article><div>{p('a', inner)}</div>{p('b', 2_000 - inner)}</article>") == expected


@pytest.mark.parametrize(("inner", "expected"), [(1_700, "a"), (1_699, "a b")])
def test_the_text_of_a_page_is_its_child_with_most_of_the_prose(inner, expected):
    assert marks(f"<div>{p('a', inner)}</div>{p('b', 2_000 - inner)}") == expected


def test_two_children_of_one_name_are_parts_of_one_text():
    page = box("part", p("a", 1_900)) + box("part", p("b", 100))
    assert marks(f"<main>{page}</main>") == "a b"
    assert marks(f"<main>{page.replace('part', 'one', 1)}</main>") == "a"


@pytest.mark.parametrize(
    ("first", "second", "confidence"), [(300, 300, 1), (299, 301, 299 / 600), (301, 299, 301 / 600)]
)
def test_the_first_of_several_stories_with_headings_is_the_page(first, second, confidence):
    page = "".join(
        f"<article><h1>Title {mark}</h1>{p(mark, length)}</article>" for mark, length in (("a", first), ("b", second))
    )
    found = content_of(page)
    assert (found.text, found.confidence) == (text("a", first), pytest.approx(confidence))


@pytest.mark.parametrize(
    "page",
    [
        f"<article><h1>A</h1>{p('a', 600)}<article><h1>B</h1>{p('b', 400)}</article></article>",
        f"<article><article><h1>B</h1>{p('a', 400)}</article><h1>A</h1>{p('b', 600)}</article>",
    ],
)
def test_an_article_in_an_article_is_no_other_story(page):
    found = content_of(page + p("c", 500))
    assert [line[0] for line in found.text.split("\n")] == ["a", "b"]
    assert found.confidence == 1_000 / 1_500


@pytest.mark.parametrize(
    ("second", "between", "expected"),
    [
        (900, "", "a b"),
        (900, "<h2>Afterwards</h2>", "a Afterwards b"),
        (900, "<article class=related-story><h2>Another</h2></article>", "a b"),  # which has no prose
        (500, "<h2><a href=/b>Another</a></h2>", "a"),
        (499, "<h2><a href=/b>Another</a></h2>", "a b"),
        (499, "<h1>Another</h1>", "a"),
        (499, f"<article>{p('d', 100)}</article>", "a"),
    ],
)
def test_a_part_of_the_same_name_belongs_to_a_text_unless_it_is_another_story(second, between, expected):
    parts = f"<div>{box('story-text', p('a', 1_000))}</div>{between}<div>{box('story-text', p('b', second))}</div>"
    assert marks(f"<main>{parts}</main>{p('c', 400)}") == expected


def test_paragraphs_of_typo3_have_the_name_of_a_body_but_are_none():
    assert marks(f"<main>{p('a', 500)}<p class=bodytext>{text('b', 900)}</p>{p('c', 500)}</main>") == "a b c"


# The lead


@pytest.mark.parametrize(
    ("lead", "body", "expected"),
    [((100, 100), 1_000, "a1 a2 b"), ((100, 99), 1_000, "b"), ((200, 100), 1_000, "a1 a2 b"), ((200, 101), 1_000, "b")],
)
def test_a_lead_has_200_characters_and_three_tenths_of_the_body(lead, body, expected):
    page = f"<h1>Title</h1><div>{ps('a', *lead)}</div>{box('article-body', p('b', body))}"
    assert marks(page) == expected


def test_the_paragraphs_of_a_lead_look_like_those_of_the_body_and_are_not_in_boxes():
    first, second = p("a", 150, "p class='text first'"), p("b", 150, "p class='text'")
    aside = box("sidebar", p("c", 150, "p class='text'"))
    body = box("article-body", p("d", 1_000, "p class='text wide'"))
    assert marks(f"<h1>Title</h1><div>{first}{second}{aside}</div>{body}") == "a b d"


# Teasers


def tile(mark, title="{} is a title", length=150, between="", link=LINK):
    return f"<div><h4>{link.format(title.format(mark))}</h4>{between}{p(mark, length)}</div>"


@pytest.mark.parametrize(
    ("tiles", "is_teaser"),
    [
        (tile("b") + tile("c"), True),
        (tile("b", length=151) + tile("c"), False),  # more than three tenths of the prose
        (tile("b", "Is {} a question?") + tile("c"), True),
        (tile("b") + tile("c", "Is {} a question?"), True),
        (tile("b", "{} has words") + tile("c", "{} has words"), True),
        (tile("b", "{} words") + tile("c", "{} words"), False),
        (tile("b", link="{}") + tile("c", link="{}"), False),
        (tile("b", between="<div>By Ann</div><div>Today</div>") + tile("c"), True),
        (tile("b", between="<div>By Ann</div><div>By Bo</div><div>Today</div>") + tile("c"), False),
        (
            f"<h4>{LINK.format('b is a title')}</h4>{p('b', 150)}<h4>{LINK.format('c is a title')}</h4>{p('c', 150)}",
            False,
        ),
        (tile("b", length=100) + tile("c", length=100) + p("d", 100), False),  # the text goes on
    ],
)
def test_teasers_are_linked_titles_each_with_one_paragraph(tiles, is_teaser):
    found = marks(f"<main>{ps('a', 350, 350)}{tiles}</main>")
    assert ("b" not in found.split()) == is_teaser
    assert found.startswith("a1 a2")


# Tables


def table(*rows, before=""):
    return f"<table>{before}{''.join(f'<tr>{cells}</tr>' for cells in rows)}</table>"


def row(*cells):
    return "".join(f"<td>{cell}</td>" for cell in cells)


ROWS = (row("Party", "Seats"), row("Greens", "14"), row("Others", "13"))
LINES = ["Party | Seats", "Greens | 14", "Others | 13"]


def lines_after(html, body):
    return content_of(f"<article>{body}{html}</article>").text.split("\n")[1:]


def test_a_table_of_data_has_two_columns_and_no_caption_in_its_text():
    assert lines_after(table(*ROWS, before="<caption>Results</caption>"), p("a", 600)) == LINES


def test_paragraphs_of_a_table_outside_of_its_rows_are_lines_of_their_own():
    caption = "<caption><p>The results.</p><p>They are final.</p></caption>"
    assert lines_after(table(*ROWS, before=caption), p("a", 600)) == ["The results.", "They are final.", *LINES]


@pytest.mark.parametrize(("cells", "is_data"), [(400, True), (401, False)])
def test_cells_of_data_are_short(cells, is_data):
    parts = text("b", 200), text("c", cells - 200)
    found = lines_after(table(*ROWS, row("Long", "<br><br>".join(parts))), p("a", 3_000))
    assert (found[:3] == LINES) == is_data


@pytest.mark.parametrize(("prose", "is_data"), [(600, True), (599, False)])
def test_a_text_is_at_least_as_long_as_its_table_of_links(prose, is_data):
    rows = [row(text("b", 100), f"{text('c', 70)}<a href=/1>{text('d', 30)}</a>") for _ in range(3)]
    assert any(" | " in line for line in lines_after(table(*rows), p("a", prose))) == is_data


# Running text


def test_running_text_is_that_of_the_element_with_the_most_in_three_paragraphs():
    comments, lines = ("<br><br>".join(text(mark, length) for mark in "bcd") for length in (900, 200))
    page = f"{box('comments', comments)}<div>{lines}</div>{p('e', 5_000)}"
    layout = lay_out(parse(f"<html><body>{page}</body></html>"))
    assert running_text(layout) == 600


# Lists, boxes and short lines


@pytest.mark.parametrize(("linked", "is_kept"), [(60, True), (61, False)])
def test_a_box_with_more_than_three_fifths_of_its_text_in_links_is_left_out(linked, is_kept):
    inner = f"<p>{LINK.format(text('b', linked))}</p><p>{text('c', 100 - linked)}</p>"
    found = marks(f"<article>{p('a', 600)}<div><div>{inner}</div></div>{p('d', 600)}</article>")
    assert found == ("a c d" if is_kept else "a d")


def test_short_lines_are_kept_only_in_elements_of_the_kind_with_the_most_prose():
    page = f"<article>{ps('a', 200, 200)}<div>{text('b', 200)}</div><div>Nobody knows.</div>{p('c', 200)}</article>"
    assert marks(page) == "a1 a2 b c"


@pytest.mark.parametrize(("paragraphs", "is_kept"), [(3, True), (2, False)])
def test_a_linked_heading_is_kept_between_three_paragraphs_of_one_element(paragraphs, is_kept):
    products = f"<h3>{LINK.format('River boots')}</h3>{p('b', 200)}"
    page = f"<article><div>{ps('a', *[200] * (paragraphs - 1))}{products}</div></article>"
    assert ("River" in marks(page).split()) == is_kept


# The end


@pytest.mark.parametrize(
    ("label", "after", "expected"),
    [
        ("<h3>Related</h3>", 300, "a"),
        ("<h3>Related</h3>", 301, "a b"),
        ("<p>Related</p>", 100, "a"),
        ("<p>Related</p>", 101, "a b"),
        ("<p>Related.</p>", 100, "a b"),
        ("<p>Related.</p>", 0, "a"),
    ],
)
def test_a_label_ends_a_text_where_little_follows(label, after, expected):
    assert (
        marks(f"<article>{p('a', 1_000)}{label}{p('b', after) if after else '<p>More of it</p>'}</article>") == expected
    )


def test_the_prose_of_tables_counts_before_the_end():
    cells = row(text("b", 100), text("c", 100))
    page = f"<article>{p('a', 700)}{table(cells, cells, cells)}"
    end = "<h3>Related</h3>"
    assert marks(f"{page}{end}{p('d', 390)}</article>").split()[0::4] == ["a"]
    assert "d" in marks(f"{page}{end}{p('d', 391)}</article>").split()


@pytest.mark.parametrize(("before", "is_left_out"), [(4, True), (3, False)])
def test_an_appeal_at_the_end_is_left_out_after_four_lines(before, is_left_out):
    appeal = "Bookmark our homepage"
    found = content_of(f"<article>{ps('a', *[200] * before)}<p>{appeal}</p></article>").text.split("\n")
    assert (appeal not in found) == is_left_out
    assert len(found) == before + (not is_left_out)
