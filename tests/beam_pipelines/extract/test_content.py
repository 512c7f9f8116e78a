"""extract: which blocks of a page are its text, one rule at a time."""

import pytest
from newsembed.beam_pipelines.extract.content import main_content
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import parse
from newsembed.beam_pipelines.extract.trimming import is_boilerplate, is_portrait
from newsembed.tests.river_page import BODY, PARAGRAPHS, SENTENCE

TITLE = "Council raises embankment"


def layout_of(body):
    return lay_out(parse(f"<html><body>{body}</body></html>"))


def lines_of(body, **options):
    return main_content(layout_of(body), TITLE, **options).text.split("\n")


def test_a_block_weighs_its_characters_outside_links():
    linked = SENTENCE[:41]
    (block,) = layout_of(f"<p><a href=/x>{linked}</a>{SENTENCE[41:].strip()}</p>").blocks
    characters = len(SENTENCE.strip())
    assert block.text == SENTENCE.strip()
    assert block.link_share == pytest.approx(41 / characters)
    assert block.prose == pytest.approx(characters - 41)


def test_text_after_the_page_body_is_not_read():
    body = parse(f"<html><body>{BODY}</body></html>").find("body")
    body.tail = SENTENCE
    assert [block.text for block in lay_out(body).blocks] == PARAGRAPHS


def test_a_paragraph_that_repeats_the_title_is_left_out():
    assert lines_of(f"<article><p>{TITLE.upper()}</p>{BODY}</article>") == PARAGRAPHS


def test_a_heading_at_the_end_is_left_out_and_one_inside_stays():
    assert lines_of(f"<article>{BODY}<h3>The walls</h3></article>") == PARAGRAPHS
    assert lines_of(f"<article>{BODY}<h3>The walls</h3>{BODY}</article>") == [*PARAGRAPHS, "The walls", *PARAGRAPHS]


def test_hidden_text_inside_a_paragraph_is_left_out():
    for hidden in (
        '<span style="display: none">secret</span>',
        '<span class="sr-only">secret</span>',
        '<span class="photo-caption">secret</span>',
    ):
        assert lines_of(f"<article>{BODY.replace('</p>', hidden + '</p>', 1)}</article>") == PARAGRAPHS


def test_a_body_named_by_itemprop_is_the_article():
    other = "".join(f"<p>Another story of the day, {number}. {SENTENCE}</p>" for number in range(3))
    page = f'<div><div>{other}</div><div itemprop="articleBody">{BODY}</div></div>'
    assert lines_of(page) == PARAGRAPHS


def test_short_lines_stay_in_elements_of_the_kind_that_holds_the_prose():
    boxes = BODY.replace("<p>", "<div>").replace("</p>", "</div>")
    assert lines_of(f"<article>{boxes}<div>Nobody knows.</div>{boxes}</article>") == [
        *PARAGRAPHS,
        "Nobody knows.",
        *PARAGRAPHS,
    ]
    assert lines_of(f"<article>{BODY}<div>Nobody knows.</div>{BODY}</article>") == PARAGRAPHS * 2


def table(rows, before="<table>", after="</table>"):
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return before + "".join(f"<tr>{row}</tr>" for row in cells) + after


RESULTS = [("Party", "Share", "Seats"), ("Greens", "21 %", "14"), ("Liberals", "19 %", "13")]
RESULT_LINES = ["Party | Share | Seats", "Greens | 21 % | 14", "Liberals | 19 % | 13"]


@pytest.mark.parametrize(
    "around", [("<table>", "</table>"), ("<figure class=wp-block-table><table>", "</table></figure>")]
)
def test_rows_of_data_are_lines_of_the_text(around):
    assert lines_of(f"<article>{BODY}{table(RESULTS, *around)}</article>") == PARAGRAPHS + RESULT_LINES


@pytest.mark.parametrize(
    "rows",
    [
        RESULTS[:2],  # two rows may be anything
        [(row[0],) for row in RESULTS],  # one column
        [(f"<a href=/{row[0]}>{row[0]} party</a>", "") for row in RESULTS],  # links
        [*RESULTS, (table(RESULTS), "x", "y")],  # a table inside: the outer one arranges the page
        [
            (f"<a href=/{one}>Name {one}</a>", f"Office {one}", "x" * 30) for one in range(40)
        ],  # of links, longer than the text
    ],
    ids=["two rows", "one column", "links", "tables of tables", "long and linked"],
)
def test_other_tables_are_not_part_of_the_text(rows):
    found = lines_of(f"<article>{BODY}{table(rows)}</article>")
    assert found[:6] == PARAGRAPHS
    assert found[6:] in ([], RESULT_LINES)  # the inner table of the tables of tables has data


def test_other_figures_are_left_out():
    assert lines_of(f"<article>{BODY}<figure><p>{SENTENCE}As seen from the bank.</p></figure></article>") == PARAGRAPHS


def test_headings_that_link_to_themselves_or_introduce_a_paragraph_are_kept():
    own = '<h2 id=walls><a href="#walls">The walls</a></h2>'
    product = "<h3><a href=https://shop.example/1>River boots</a></h3>"
    body = BODY.replace("<p>", f"{own}<p>", 1) + f"{product}<p>{SENTENCE}They keep dry.</p>"
    expected = ["The walls", *PARAGRAPHS, "River boots", f"{SENTENCE}They keep dry."]
    assert lines_of(f"<article>{body}</article>") == expected
    teaser = f"<div><h3><a href=/other>Ferry runs aground</a></h3><p>{SENTENCE}It was a ferry.</p></div>"
    assert "Ferry runs aground" not in lines_of(f"<article>{BODY}{teaser}</article>")


def test_an_id_made_of_the_heading_does_not_say_what_the_element_is():
    text = f"<h2>Spring menu ideas</h2><p>{SENTENCE}In this section.</p>"
    kept = f"<section id=spring-menu-ideas>{text}</section>"
    left = f"<section id=spring-menu-box>{text}</section>"
    assert lines_of(f"<article>{BODY}{kept}</article>")[6:] == ["Spring menu ideas", f"{SENTENCE}In this section."]
    assert lines_of(f"<article>{BODY}{left}</article>") == PARAGRAPHS


def test_items_and_sentences_do_not_end_a_text():
    middle = "<ul><li>Contact and location of the office</li><li>Latest</li></ul><p>More on that later.</p>"
    body = BODY + middle + f"<p>{SENTENCE}The end.</p>"
    assert lines_of(f"<article>{body}</article>") == [
        *PARAGRAPHS,
        "Contact and location of the office",
        "Latest",
        f"{SENTENCE}The end.",
    ]


NOTE = f"<section class='compact-note'><p>{SENTENCE * 5}</p></section>"


def test_parts_of_a_body_are_joined_without_an_article_element():
    parts = "".join(
        f"<div class='row'><div class='story-text'>{''.join(f'<p>{text}</p>' for text in texts)}</div></div>"
        for texts in (PARAGRAPHS[:1], PARAGRAPHS[1:])
    )
    assert lines_of(f"<main><h1>{TITLE}</h1>{parts}</main>{NOTE}") == PARAGRAPHS


def test_parts_of_a_body_with_main_headings_of_their_own_are_several_stories():
    other = f"<div class='story-text'><h1>Ferry is sold</h1><p>{SENTENCE}The ferry.</p></div>"
    story = f"<div class='story-text'><h1>{TITLE}</h1>{BODY}</div>"
    assert lines_of(f"<main>{story}{other}</main>") == PARAGRAPHS


LEAD = [f"{SENTENCE}It was the third vote of the year.", f"{SENTENCE}Nobody spoke against it."]


def lead_page(lead, style=""):
    first = "".join(f"<p{style}>{text}</p>" for text in lead)
    return f"<h1>{TITLE}</h1><div class='opening'>{first}</div><div class='article-body'>{BODY * 2}</div>"


@pytest.mark.parametrize(
    "page",
    [
        lead_page(LEAD[:1]),  # one short paragraph is a summary
        lead_page(LEAD, " class='notice'"),  # the body's paragraphs look different
        lead_page(PARAGRAPHS[:2]),  # the body has them too
        lead_page([f"{SENTENCE}Other text {number}." for number in range(9)]),  # another story
        lead_page(LEAD).replace("<h1>", "<h2>").replace("</h1>", "</h2>"),  # no main heading
    ],
)
def test_other_text_before_the_body_is_not_a_lead(page):
    assert lines_of(page) == [*PARAGRAPHS, *PARAGRAPHS]


def cards(*titles, text=SENTENCE):
    items = (f"<div class='tile'><h4><a href=/s>{title}</a></h4><p>{text}</p></div>" for title in titles)
    return f"<div class='tiles'>{''.join(items)}</div>"


@pytest.mark.parametrize(
    "titles",
    [
        ["Ferry is sold today"],  # one may be a quotation from another page
        ["Why was the ferry sold?", "Who will use the bridge?"],
        [f"Walk number {number} along the river" for number in range(6)],  # the text itself is a list
    ],
)
def test_linked_titles_with_paragraphs_that_are_no_teasers(titles):
    assert SENTENCE.strip() in lines_of(f"<main><h1>{TITLE}</h1>{BODY}{cards(*titles)}</main>")


def test_a_sentence_that_is_mostly_a_link_is_part_of_the_text():
    linked = f"Before: <a href=/x>{SENTENCE.strip()[:-1]}</a>."
    title = f"<a href=/x>{SENTENCE.strip()[:-1]}</a>"
    lines = lines_of(f"<article>{BODY}<p>{linked}</p><p>{title}</p><p>{PARAGRAPHS[0]}</p></article>")
    assert lines == [*PARAGRAPHS, f"Before: {SENTENCE.strip()}", PARAGRAPHS[0]]


@pytest.mark.parametrize("names", ["hidden", "offer d-none", "is-hidden"])
def test_elements_that_a_class_hides_on_all_screens_are_left_out(names):
    assert lines_of(f"<article>{BODY}<div class='{names}'><p>{SENTENCE}Offer.</p></div></article>") == PARAGRAPHS


@pytest.mark.parametrize("names", ["hidden md:block", "d-none d-md-block", "hidden visible-lg", "hidden-gem"])
def test_elements_that_are_shown_on_some_screens_are_kept(names):
    lines = lines_of(f"<article>{BODY}<div class='{names}'><p>{SENTENCE}Kept.</p></div></article>")
    assert lines == [*PARAGRAPHS, f"{SENTENCE}Kept."]


@pytest.mark.parametrize(
    ("line", "is_about_the_author"),
    [
        ("Ann Lee Moss is the director of the river institute at Northbank.", True),
        ("(Bo Chen, a native of Northbank, is an associate professor of law.)", True),
        ("Lee is the director of the river institute.", False),  # a quoted person
        ("The river institute is led by a director.", False),
    ],
)
def test_portraits_of_authors_of_other_professions(line, is_about_the_author):
    assert is_portrait(line) == is_about_the_author


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("This is a breaking news story and will be updated.", True),
        ("Create an account or sign in to read on.", True),
        ("Do you like rivers? Our newsletter Upstream brings them to your inbox each week.", True),
        ("If you buy something through our links, we may earn a small commission.", True),
        ("The newsletter of the river institute was printed until 1997.", False),
        ("The links between the commission and the builder were not known.", False),
    ],
)
def test_notices_of_sites(line, expected):
    assert is_boilerplate(line) == expected


def links(*titles):
    return "".join(f"<li><a href=/{number}>{title}</a></li>" for number, title in enumerate(titles))


def test_a_list_of_links_stays_where_a_sentence_introduces_it():
    items = [f"Report of the harbour board {number}" for number in range(4)]
    intro = f"{SENTENCE}These are the reports:"
    assert lines_of(f"<article>{BODY}<p>{intro}</p><ul>{links(*items)}</ul>{BODY}</article>") == [
        *PARAGRAPHS,
        intro,
        *items,
        *PARAGRAPHS,
    ]
    assert lines_of(f"<article>{BODY}<p>{SENTENCE}</p><ul>{links(*items)}</ul>{BODY}</article>") == [
        *PARAGRAPHS,
        SENTENCE.strip(),
        *PARAGRAPHS,
    ]


@pytest.mark.parametrize("name", ["read-more", "ad-container", "topics", "story-list"])
def test_much_of_the_body_behind_a_weak_name_is_a_part_of_it(name):
    rest = [f"{SENTENCE}Rest {number}." for number in range(6)]
    part = "".join(f"<p>{text}</p>" for text in rest)
    assert lines_of(f"<div class=story-body>{BODY}<div class={name}>{part}</div></div>") == [*PARAGRAPHS, *rest]
    few = "".join(f"<p>{text}</p>" for text in rest[:2])
    assert lines_of(f"<div class=story-body>{BODY}<div class={name}>{few}</div></div>") == PARAGRAPHS
    assert lines_of(f"<div class=story-body>{BODY}<div class='{name} related'>{part}</div></div>") == PARAGRAPHS


def test_hidden_text_is_a_part_of_the_body_where_it_is_most_of_it():
    rest = [f"{SENTENCE}Rest {number}." for number in range(12)]
    parts = [f"<div class=hidden>{''.join(f'<p>{text}</p>' for text in rest[:count])}</div>" for count in (12, 6)]
    assert lines_of(f"<div class=story-body>{BODY}{parts[0]}</div>") == [*PARAGRAPHS, *rest]
    assert lines_of(f"<div class=story-body>{BODY}{parts[1]}</div>") == PARAGRAPHS


def test_a_list_of_the_text_is_not_a_list_of_posts():
    items = "".join(f"<li>{SENTENCE}Item {number}.</li>" for number in range(2))
    found = lines_of(f"<article>{BODY}<ul class=postList>{items}</ul>{BODY}</article>")
    assert found[6:8] == [f"{SENTENCE}Item 0.", f"{SENTENCE}Item 1."]


def test_a_table_longer_than_the_text_stays():
    rows = [(f"Name {number}", f"Office {number}", "x" * 30) for number in range(40)]
    assert len(lines_of(f"<article>{BODY}{table(rows)}</article>")) == len(PARAGRAPHS) + len(rows)


@pytest.mark.parametrize(
    "box",
    [
        "<p><strong>Te puede interesar: </strong><a href=/1>Los autobuses que nunca llegaron</a></p>",
        "<p>【関連記事】<a href=/1>市民会館の建て替え案を公表</a></p>",
        "<p>4 min read</p>",
        "<p>Lesedauer: 3 Min.</p>",
        "<p>10:00</p>",
        "<p>Schlagworte: Hafen, Boote</p>",
        "<p>#harbour #boats</p>",
        "<p>This website uses cookies to give you the best experience.</p>",
        "<p>(Except for the headline, this story has not been edited by our staff.)</p>",
        f"<div class=pie-foto>{SENTENCE}</div>",
        f"<div class=kommentare><p>{SENTENCE}So I think.</p></div>",
        "<p>Ann Lee covers the river for the River News. She joined it in 2015.</p>",
    ],
)
def test_boilerplate_of_more_templates_and_languages(box):
    assert lines_of(f"<article>{BODY}{box}</article>") == PARAGRAPHS


def test_a_byline_and_a_day_before_the_text_are_not_part_of_it():
    assert lines_of(f"<article><p>By Ann Lee</p><p>March 2, 2021</p>{BODY}</article>") == PARAGRAPHS
    assert lines_of(f"<article>{BODY}<p>March 2, 2021</p>{BODY}</article>")[6] == "March 2, 2021"


@pytest.mark.parametrize("tag", ["aside", "footer"])
def test_a_text_in_a_marginal_element_is_read_where_there_is_no_other(tag):
    assert lines_of(f"<h1>{TITLE}</h1><{tag}>{BODY[: 3 * len(BODY) // 6]}</{tag}>") == PARAGRAPHS[:3]
    assert not main_content(layout_of(f"<h1>{TITLE}</h1><{tag}>{BODY[: 2 * len(BODY) // 6]}</{tag}>")).text
