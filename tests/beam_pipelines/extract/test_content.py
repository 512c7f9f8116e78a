"""extract: which blocks of a page are its text, one rule at a time."""

import pytest
from newsembed.beam_pipelines.extract.content import main_content
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import parse
from newsembed.beam_pipelines.extract.trimming import is_appeal, is_boilerplate, is_portrait
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


def table(rows):
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


RESULTS = [("Party", "Share", "Seats"), ("Greens", "21 %", "14"), ("Liberals", "19 %", "13")]
RESULT_LINES = ["Party | Share | Seats", "Greens | 21 % | 14", "Liberals | 19 % | 13"]


OTHER = (
    "<p>A reader thinks that the whole affair is a scandal of the first order, and "
    "says so at great length, again and again. </p>"
)
ITEMS = "".join(f"<li><a href=/{number}>Report of the harbour board {number}</a></li>" for number in range(4))
# What the pages and lines below are made of.
PARTS = {
    "title": TITLE,
    "body": BODY,
    "first": f"<p>{PARAGRAPHS[0]}</p>",
    "rest": BODY.partition("</p>")[2],
    "boxes": BODY.replace("<p>", "<div>").replace("</p>", "</div>"),
    "breaks": "<br><br>".join(PARAGRAPHS),
    "wrapped": "".join(f"<div class=p><div>{text}</div></div>" for text in PARAGRAPHS),
    "start": BODY[: len(BODY) // 2],
    "end": BODY[len(BODY) // 2 :],
    "sentence": SENTENCE.strip(),
    "clause": SENTENCE.strip()[:-1],
    "other": OTHER,
    "others": OTHER * 30,
    "note": f"<section class='compact-note'><p>{SENTENCE * 5}</p></section>",
    "items": ITEMS,
    "table": table(RESULTS),
}
LINES = {"sentence": SENTENCE.strip(), "body": " / ".join(PARAGRAPHS), "results": " / ".join(RESULT_LINES)}
LINES |= {"items": " / ".join(f"Report of the harbour board {number}" for number in range(4))}
# What is special about a page: the page. Its text is all paragraphs of the body, or what follows "->". A line that is
# indented continues the one before.
PAGES = """
paragraphs in an article: <nav><a href=/>Home</a></nav><article><h1>{title}</h1>{body}</article>
a wrapper whose name is of boilerplate: <div class="content-sidebar-wrap"><div id="overlay">{body}</div></div>
a page hidden until a script shows it: <div hidden><main style="display: none">{body}</main></div>
a form around the page: <form id="aspnetForm"><div>{body}</div><form><input>Search</form></form>
a page named for its comments:
  <div class="post comments-open overflow-hidden category-video"><h1>{title}</h1>{body}</div>
lines with breaks: <div>{breaks}</div>
tables for layout: <table><tr><td><a href=/>Home</a><td>{body}</td></tr></table>
each paragraph in a box: {wrapped}
parts that advertisements cut: <article><div><div class="article-body">{start}</div></div><div class=ad>Buy</div>
  <div><div class="article-body">{end}</div></div></article>
readers' comments longer than the article: <article>{body}</article><div class="comments">{others}</div>
a gallery longer than the article:
  <div id=overlay><article>{body}<div class="story-gallery">{others}</div></article></div>
the next story below: <article><h1>{title}</h1>{body}</article><article><h1>Another</h1>{other}{other}{other}</article>
boxes between paragraphs: <article>{body}<aside>{other}</aside><figure><figcaption>{other}</figcaption></figure>
  <p class="wp-caption-text">{clause}</p><blockquote class="twitter-tweet"><p>{other}</blockquote></article>
other stories at the end: <div>{body}<h3>More from the river</h3>{other}</div>
a list of links at the end: <article>{body}<ul>{items}</ul></article>
calls between paragraphs: <article>{body}<p>Read more: <a href=/b>Another headline</a></p>
  <p>Sign up for our newsletter</p><p>Ann Lee is a reporter at the River News.</p></article>
a paragraph that repeats the title: <article><p>COUNCIL RAISES EMBANKMENT</p>{body}</article>
a heading at the end: <article>{body}<h3>The walls</h3></article>
a heading inside: <article>{body}<h3>The walls</h3>{body}</article> -> {body} / The walls / {body}
a body named by itemprop: <div><div><p>Another story of the day. {sentence}</p><p>One more story. {sentence}</p>
  <p>The last story. {sentence}</p></div><div itemprop="articleBody">{body}</div></div>
a short line between boxes with the prose: <article>{boxes}<div>Nobody knows.</div>{boxes}</article>
  -> {body} / Nobody knows. / {body}
a short line in a box between paragraphs: <article>{body}<div>Nobody knows.</div>{body}</article> -> {body} / {body}
rows of data: <article>{body}{table}</article> -> {body} / {results}
rows of data in a figure: <article>{body}<figure class=wp-block-table>{table}</figure></article> -> {body} / {results}
another figure: <article>{body}<figure><p>{sentence} As seen from the bank.</p></figure></article>
a heading that links to itself: <article><h2 id=walls><a href="#walls">The walls</a></h2>{body}</article>
  -> The walls / {body}
a linked heading that introduces a paragraph: <article>{body}<h3><a href=https://shop.example/1>River boots</a></h3>
  <p>{sentence} They keep dry.</p></article> -> {body} / River boots / {sentence} They keep dry.
a teaser below a linked heading: <article>{body}<div><h3><a href=/other>Ferry runs aground</a></h3>
  <p>{sentence} It was a ferry.</p></div></article> -> {body} / {sentence} It was a ferry.
an id made of the heading: <article>{body}<section id=spring-menu-ideas><h2>Spring menu ideas</h2>
  <p>{sentence} In this section.</p></section></article> -> {body} / Spring menu ideas / {sentence} In this section.
an id that says what the element is: <article>{body}<section id=spring-menu-box><h2>Spring menu ideas</h2>
  <p>{sentence} In this section.</p></section></article>
items and sentences that do not end a text: <article>{body}<ul><li>Contact and location of the office</li>
  <li>Latest</li></ul><p>More on that later.</p><p>{sentence} The end.</p></article>
  -> {body} / Contact and location of the office / Latest / {sentence} The end.
a beginning of the body that is named a teaser: <article><div class='teaser-content'><div class='article-body'>{start}
  </div></div><div class='article-body'>{end}</div></article>
parts of a body without an article element: <main><h1>{title}</h1><div class='row'><div class='story-text'>{first}</div>
  </div><div class='row'><div class='story-text'>{rest}</div></div></main>{note}
a part with a main heading of its own: <main><div class='story-text'><h1>{title}</h1>{body}</div>
  <div class='story-text'><h1>Ferry is sold</h1><p>{sentence} The ferry.</p></div></main>
a sentence that is mostly a link: <article>{body}<p>Before: <a href=/x>{clause}</a>.</p>{first}</article>
  -> {body} / Before: {sentence} / {sentence} Paragraph 0.
a title that is a link: <article>{body}<p><a href=/x>{clause}</a></p>{first}</article>
  -> {body} / {sentence} Paragraph 0.
a list of links that a sentence introduces:
  <article>{body}<p>{sentence} These are the reports:</p><ul>{items}</ul>{body}</article>
  -> {body} / {sentence} These are the reports: / {items} / {body}
a list of links after a sentence: <article>{body}<p>{sentence}</p><ul>{items}</ul>{body}</article>
  -> {body} / {sentence} / {body}
a list of the text that is named a list of posts: <article>{body}<ul class=postList><li>{sentence} One.</li>
  <li>{sentence} Two.</li></ul>{body}</article> -> {body} / {sentence} One. / {sentence} Two. / {body}
a byline and a day before the text: <article><p>By Ann Lee</p><p>March 2, 2021</p>{body}</article>
a day inside of the text: <article>{body}<p>March 2, 2021</p>{body}</article> -> {body} / March 2, 2021 / {body}
"""


@pytest.mark.parametrize("case", PAGES.replace("\n  ", "").strip().split("\n"), ids=lambda case: case.partition(":")[0])
def test_the_text_is_all_of_the_article_and_nothing_else(case):
    page, _, lines = case.partition(":")[2].partition("->")
    found = main_content(layout_of(page.strip().format(**PARTS)), TITLE)
    assert found.text.split("\n") == (lines.strip() or "{body}").format(**LINES).split(" / ")
    assert found.confidence > 0.5


@pytest.mark.parametrize("names", ['style="display: none"', "class=sr-only", "class=photo-caption"])
def test_hidden_text_inside_a_paragraph_is_left_out(names):
    hidden = f"<span {names}>secret</span></p>"
    assert lines_of(f"<article>{BODY.replace('</p>', hidden, 1)}</article>") == PARAGRAPHS


BOXES = """
<p><strong>Te puede interesar: </strong><a href=/1>Los autobuses que nunca llegaron</a></p>
<p>【関連記事】<a href=/1>市民会館の建て替え案を公表</a></p>
<p>4 min read</p>
<p>Lesedauer: 3 Min.</p>
<p>10:00</p>
<p>Schlagworte: Hafen, Boote</p>
<p>#harbour #boats</p>
<p>This website uses cookies to give you the best experience.</p>
<p>(Except for the headline, this story has not been edited by our staff.)</p>
<div class=pie-foto>{sentence}</div>
<div class=kommentare><p>{sentence} So I think.</p></div>
<p>Ann Lee covers the river for the River News. She joined it in 2015.</p>
<div class=hidden><p>{sentence} Offer.</p></div>
<div class='offer d-none'><p>{sentence} Offer.</p></div>
<div class=is-hidden><p>{sentence} Offer.</p></div>
"""


@pytest.mark.parametrize("box", BOXES.strip().split("\n"))
def test_boilerplate_of_more_templates_and_languages_and_what_a_class_hides_are_left_out(box):
    assert lines_of(f"<article>{BODY}{box.format(**PARTS)}</article>") == PARAGRAPHS


@pytest.mark.parametrize("names", ["hidden md:block", "d-none d-md-block", "hidden visible-lg", "hidden-gem"])
def test_elements_that_are_shown_on_some_screens_are_kept(names):
    lines = lines_of(f"<article>{BODY}<div class='{names}'><p>{SENTENCE}Kept.</p></div></article>")
    assert lines == [*PARAGRAPHS, f"{SENTENCE}Kept."]


RULES = {"boilerplate": is_boilerplate, "appeal": is_appeal, "portrait": is_portrait}
# A rule, whether it holds, and the line.
LINES_OF_SITES = """
boilerplate yes Advertisement
boilerplate yes Read more: Another story of the day
boilerplate yes Follow us on Twitter and Facebook
boilerplate yes The bank, seen in 2016. (Ann Lee/The River News)
boilerplate yes © 2016 The River News. All rights reserved.
boilerplate yes This is a breaking news story and will be updated.
boilerplate yes Create an account or sign in to read on.
boilerplate yes Do you like rivers? Our newsletter Upstream brings them to your inbox each week.
boilerplate yes If you buy something through our links, we may earn a small commission.
boilerplate yes Czytaj także: Most znowu otwarty
boilerplate yes Läs också: Bron är öppen igen
boilerplate yes Lue myös
boilerplate yes Διαβάστε επίσης: Άνοιξε η γέφυρα
boilerplate yes Читайте також – Міст відкрито
boilerplate yes 为你推荐
boilerplate yes ข่าวที่เกี่ยวข้อง
boilerplate no Läs mer om bron i morgondagens tidning.
boilerplate no Διαβάστε και πείτε μας τι πιστεύετε.
boilerplate no Read the letter that he sent, and you will see what the town fears.
boilerplate no He said it was over (for now).
boilerplate no Share prices fell on Tuesday.
boilerplate no Watch what they do, not what they say.
boilerplate no The newsletter of the river institute was printed until 1997.
boilerplate no The links between the commission and the builder were not known.
appeal yes For the latest stories from the river, sign up for our newsletters.
appeal yes Do you have a story to tell? Email: desk@news.example
appeal yes Our website is the place for the latest breaking news.
appeal yes Der Newsletter der Stadt informiert Sie jeden Morgen.
appeal yes Il vous reste 57.09% de cet article à lire. La suite est réservée aux abonnés.
appeal yes ¿Quieres añadir otro usuario a tu suscripción?
appeal yes 有料会員になると会員限定の有料記事もお読みいただけます。
appeal no The company lost two million subscribers in a year.
appeal no The mayor said that the dam was the place for the town to meet.
appeal no Le maire lit son discours aux habitants.
portrait yes Ann Lee Moss is the director of the river institute at Northbank.
portrait yes (Bo Chen, a native of Northbank, is an associate professor of law.)
portrait no Lee is the director of the river institute.
portrait no The river institute is led by a director.
"""


@pytest.mark.parametrize("case", LINES_OF_SITES.strip().split("\n"))
def test_lines_that_are_not_part_of_an_article(case):
    rule, holds, line = case.split(" ", 2)
    assert RULES[rule](line) is (holds == "yes")


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


@pytest.mark.parametrize("name", ["read-more", "ad-container", "topics", "story-list"])
def test_much_of_the_body_behind_a_weak_name_is_a_part_of_it(name):
    rest = [f"{SENTENCE}Rest {number}." for number in range(6)]
    part = "".join(f"<p>{text}</p>" for text in rest)
    for inner in (part, f"<div class='{name} inner'>{part}</div>"):
        assert lines_of(f"<div class=story-body>{BODY}<div class={name}>{inner}</div></div>") == [*PARAGRAPHS, *rest]
    few = "".join(f"<p>{text}</p>" for text in rest[:2])
    assert lines_of(f"<div class=story-body>{BODY}<div class={name}>{few}</div></div>") == PARAGRAPHS
    assert lines_of(f"<div class=story-body>{BODY}<div class='{name} related'>{part}</div></div>") == PARAGRAPHS


def test_hidden_text_is_a_part_of_the_body_where_it_is_most_of_it():
    rest = [f"{SENTENCE}Rest {number}." for number in range(12)]
    parts = [f"<div class=hidden>{''.join(f'<p>{text}</p>' for text in rest[:count])}</div>" for count in (12, 6)]
    assert lines_of(f"<div class=story-body>{BODY}{parts[0]}</div>") == [*PARAGRAPHS, *rest]
    assert lines_of(f"<div class=story-body>{BODY}{parts[1]}</div>") == PARAGRAPHS


def test_a_table_longer_than_the_text_stays():
    rows = [(f"Name {number}", f"Office {number}", "x" * 30) for number in range(40)]
    assert len(lines_of(f"<article>{BODY}{table(rows)}</article>")) == len(PARAGRAPHS) + len(rows)


@pytest.mark.parametrize("tag", ["aside", "footer"])
def test_a_text_in_a_marginal_element_is_read_where_there_is_no_other(tag):
    assert lines_of(f"<h1>{TITLE}</h1><{tag}>{BODY[: 3 * len(BODY) // 6]}</{tag}>") == PARAGRAPHS[:3]
    assert not main_content(layout_of(f"<h1>{TITLE}</h1><{tag}>{BODY[: 2 * len(BODY) // 6]}</{tag}>")).text
