"""One page: its text, title, authors and days, and whether it is an article, a hub or neither."""

import datetime
import json

import pytest
from newsembed.beam_pipelines.extract.content import main_content
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import extract_page, parse
from newsembed.beam_pipelines.extract.structured import read_structured
from newsembed.beam_pipelines.extract.trimming import without_repeats
from newsembed.formats.records import Rejection
from newsembed.tests.river_page import BODY, PARAGRAPHS, SENTENCE

URL = "http://rivernews.example/town/1"


def page(body, head=""):
    return f"<html><head><title>Council raises embankment</title>{head}</head><body>{body}</body></html>"


def text_of(body, **options):
    return main_content(lay_out(parse(page(body))), "Council raises embankment", **options)


def test_scripts_without_spaces_are_prose_too():
    line = "梁振英在接受质询前的发言中说，回顾事件，我虽然从无任何存心隐瞒的意图，但必须承认自己有处理疏忽。"
    assert text_of("".join(f"<p>{line}{number}</p>" for number in range(4))).text.count(line) == 4


def test_posts_of_a_live_blog_are_all_its_text():
    posts = "".join(f'<div class="post"><div class="story-body"><p>{text}</p></div></div>' for text in PARAGRAPHS)
    assert text_of(posts, live_blog=True).text.split("\n") == PARAGRAPHS


def test_passages_that_are_there_twice_are_kept_once():
    first, second = [[f"{letter}{number} " + "w" * 331 for number in range(4)] for letter in "ab"]
    assert without_repeats([*first, *second, *first]) == [*first, *second]
    assert without_repeats([*first, *first, *first, "end"]) == [*first, "end"]
    assert without_repeats([*first, *second, *first[1:4]]) == [*first, *second]
    short = [line[:-1] for line in first[1:]]  # 999 characters
    for lines in (first, [*first, *first[:2]], [*short, *second, *short], ["a", "b", "c"] * 3, [first[0]] * 5, []):
        assert without_repeats(lines) == lines


def ld(**fields):
    return f'<script type="application/ld+json">{json.dumps({"@type": "NewsArticle", **fields})}</script>'


def test_each_field_says_where_it_was_read():
    paper = {"@type": "Organization", "name": "River News"}
    head = ld(headline="Council raises embankment", datePublished="2021-03-01", author=paper)
    head += '<meta property=og:site_name content="River News"><meta name=news_keywords content="flood, council">'
    head += '<meta property=article:modified_time content="2021-03-04T10:00:00Z">'
    body = f"<p class=byline>By Ann Lee and <b>Bo Chen</b></p><article>{BODY}</article>"
    article = extract_page(page(body, head), URL).article
    assert article.authors == ("Ann Lee", "Bo Chen"), "the page names people where its metadata name the paper"
    assert (article.byline_date, article.modified_date) == (datetime.date(2021, 3, 1), datetime.date(2021, 3, 4))
    sources = "authors: markup, body: markup, byline_date: json-ld, keywords: meta, modified_date: meta, title: json-ld"
    assert ", ".join(article.sources) == sources


@pytest.mark.parametrize(
    "broken",
    [
        '{"@type": "NewsArticle", "headline": "A title",}',
        '<!-- {"@type": "NewsArticle", "headline": "A title"} -->',
        '//<![CDATA[\n{"@type": ["Thing", "schema:NewsArticle"], "headline": "A &amp;quot;title&amp;quot;"}\n//]]>',
        '\ufeff/* x */ {"@type": "NewsArticle",\n // y\n"headline": "A title"}',
        "// it\n" + '{"@type": "Person", "name": "O\\\'Neill"} {"@type": "NewsArticle", "headline": "A title"}',
        "{&quot;@type&quot;: &quot;NewsArticle&quot;, &quot;headline&quot;: &quot;A title&quot;}",
    ],
)
def test_json_ld_as_templates_write_it(broken):
    found = read_structured(parse(page(BODY, f'<script type="application/ld+json">{broken}</script>')), URL)
    assert found.is_article
    assert found.headline.replace('"', "") in ("A title",)


SOURCES = ("body: json-ld", "title: json-ld")


def test_the_posts_of_a_paywalled_live_blog_are_read_from_json_ld():
    posts = [{"@type": "BlogPosting", "articleBody": text} for text in PARAGRAPHS]
    script = ld(
        **{"@type": "LiveBlogPosting", "headline": "The count, live", "liveBlogUpdate": posts},
        isAccessibleForFree="False",
    )
    article = extract_page(page("<div id=app></div>", script), URL).article
    assert (article.live_blog, article.paywalled, article.sources) == (True, True, SOURCES)
    assert article.body.split("\n") == PARAGRAPHS


def test_the_text_in_json_ld_is_used_where_the_page_shows_only_its_start():
    whole = ld(headline="A title", articleBody="\n".join(PARAGRAPHS))
    article = extract_page(page(f"<article><p>{PARAGRAPHS[0]}</p></article>", whole), URL).article
    assert (article.body.split("\n"), article.sources) == (PARAGRAPHS, SOURCES)


def list_of(texts):
    entries = (f'<li><a href="/b/{number}">{text}</a></li>' for number, text in enumerate(texts))
    return f"<ul>{''.join(entries)}</ul>"


def test_section_pages_large_and_small():
    entries = list_of(["A headline about something, number 1"] * 4)
    assert extract_page(page(f"<h1>Town</h1>{entries}"), "http://rivernews.example/town").hub_title == "Town"
    item = page(f"<h1>A film</h1><p>Nothing much.</p>{entries}")
    film = page(f"<p>Nothing much.</p>{entries}", '<meta property="og:type" content="video.other">')
    for found, path in ((item, "a-film-of-the-great-flood-12345"), (film, "films")):
        assert extract_page(found, f"http://rivernews.example/{path}").rejection is Rejection.NOT_AN_ARTICLE


MANY = ["A headline about something, number 1"] * 300


def test_a_page_of_running_text_with_many_links_is_an_article():
    found = extract_page(page(f"{list_of(MANY)}<div>{BODY * 2}</div>"), URL)
    assert found.article is not None
    assert len(found.links) == 300


def test_a_page_of_links_with_readers_comments_is_a_hub():
    found = extract_page(page(f'{list_of(MANY)}<div class="comments"><div>{BODY * 2}</div></div>'), URL)
    assert found.article is None
    assert found.hub_title


@pytest.mark.parametrize(
    ("path", "text", "count", "title"),
    [
        ("all-the-news-of-the-town", "A long headline", 8, "Town"),  # a URL that looks like that of an article
        ("all-the-news-of-the-town", "A long headline", 7, None),
        ("all-the-news-of-the-town", "Two words", 8, None),
        ("town", "One two three four", 3, "Town"),
        ("town", "One two three four", 2, None),
        ("town", "A long headline", 3, None),
        (
            "all-the-news-of-the-town",
            "議会は堤防を高くする",
            8,
            "Town",
        ),  # three letters of such scripts count as a word
        ("all-the-news-of-the-town", "議会は堤防を高く", 8, None),
    ],
)
def test_a_hub_has_eight_headlines_of_three_words_or_as_a_section_three_of_four(path, text, count, title):
    found = extract_page(page(f"<h1>Town</h1>{list_of([text] * count)}"), f"http://rivernews.example/{path}")
    assert (found.hub_title, len(found.links)) == (title, count)


def test_an_article_has_200_characters_of_text():
    line = "The council voted to raise the embankment before the rains. "
    for characters, is_article in ((200, True), (199, False)):
        text = (line * 4)[: characters - 1].strip()
        text = text.ljust(characters - 1, "s") + "."
        assert len(text) == characters
        found = extract_page(page(f"<article><p>{text}</p></article>"), URL)
        assert (found.article is not None) == is_article
        assert extract_page(page(f"<article><p>{text}</p></article>", ld(headline="A title")), URL).article is not None


def cards(count, before=""):
    card = "<div><h3><a href=/b/{0}>A headline about something, {0}</a></h3><p>{1}</p></div>"
    return page(
        f"<h1>Town</h1>{before}{''.join(card.format(number, SENTENCE) for number in range(count))}{list_of(MANY[:8])}"
    )


def test_a_section_page_has_six_teasers_and_more_of_them_where_it_declares_to_be_an_article():
    for count, before, kinds in ((9, 2, "hh"), (9, 8, "ah"), (6, 7, "aa"), (6, 0, "hh"), (5, 0, "ah")):
        teasers = cards(count, f"<p>{SENTENCE * before}</p>" if before else "")
        found = (teasers.replace("</head>", f"{ld(headline='Town')}</head>"), teasers)
        pages = [extract_page(html, "http://rivernews.example/town") for html in found]
        assert ["ah"[bool(one.hub_title)] for one in pages] == [*kinds], (count, before)
    assert extract_page(cards(9), "http://rivernews.example/a-town-by-the-river").article is not None


def test_a_page_of_fifteen_linked_lines_beside_a_text_is_a_section_without_running_text():
    boxes = "".join(f"<div><p>{SENTENCE} Box {number}.</p></div>" for number in range(12))
    for count, text, is_hub in ((15, boxes, True), (14, boxes, False), (15, f"<div>{BODY}</div>", False)):
        html = page(f"<h1>Town</h1>{text}{list_of(f'One two three four {number}' for number in range(count))}")
        assert bool(extract_page(html, "http://rivernews.example/town").hub_title) == is_hub, count
        assert extract_page(html, "http://rivernews.example/a-town-by").article is not None


def test_a_page_with_the_name_in_its_url_as_heading_is_a_section_without_a_title_in_json_ld():
    og, title = '<meta property="og:type" content="article">', ld(headline="Town")
    for heading, path, head, is_hub in (
        ("Town", "town", og, True),
        ("Town news", "sections/town", og, True),
        ("Town", "town", og + title, False),
        ("Town", "river", og, False),
        ("News of the town", "town", og, False),
        ("Town", "town-12345", og, False),
    ):
        html = page(f"<h1>{heading}</h1><p>{SENTENCE}</p>{list_of(f'One two three four {n}' for n in range(15))}", head)
        assert bool(extract_page(html, f"http://rivernews.example/{path}").hub_title) == is_hub, (heading, path)


def test_a_short_text_among_headlines_is_an_article_where_the_url_has_the_words_of_its_heading():
    for heading, path, is_hub in (
        ("The bridge is open again", "the-bridge-is-open/a-1234567", False),
        ("Le pont est réouvert", "le-pont-est-r%C3%A9ouvert", False),
        ("The bridge is open again", "what-the-council-says-1234567", True),
        ("Bridge open again", "bridge-open-again-now", True),
    ):
        text = f"<h1>{heading}</h1><p>{SENTENCE * 3}</p>"
        found = extract_page(page(f"{text}{list_of(MANY[:20])}"), f"http://rivernews.example/{path}")
        assert bool(found.hub_title) == is_hub, path
    query = page(f"<h1>The bridge</h1><p>{SENTENCE * 8}</p>{list_of(MANY[:20])}")
    assert extract_page(query, "http://rivernews.example/spip.php?article717").article is not None
    assert extract_page(query, "http://rivernews.example/spip.php?page=town").hub_title


def test_a_letter_of_a_script_without_spaces_counts_as_three():
    line = "議会は火曜日の夜、秋の雨が降る前に川沿いの町の堤防を高くすることを賛成多数で決めた。"
    for characters, is_article in ((71, True), (66, False)):
        found = extract_page(page(f"<article><p>{(line * 2)[: characters - 1]}。</p></article>"), URL)
        assert (found.article is not None) == is_article
    links = "".join(f"<p><a href=/b/{number}>議会は堤防を高くする、第{number}報</a></p>" for number in range(40))
    text = f"<div>{f'<p>{line * 2}</p>' * 4}</div>"
    for body, kind in ((text, "article"), (f"<p>{line * 2}</p>", "hub_title")):
        assert getattr(extract_page(page(f"<h1>港</h1>{body}{links}"), "http://rivernews.example/harbour"), kind)


def test_short_articles_have_a_heading_prose_and_the_url_of_an_item():
    text = "The bridge over the river is open again, the council said on Monday. Buses use it from Tuesday on."
    short = page(f"<h1>The bridge is open again</h1><p>{text} {text}</p>"[:190])
    assert extract_page(short, "http://rivernews.example/news/12345-bridge").article.body.startswith(text)
    assert extract_page(short, "http://rivernews.example/news").rejection is Rejection.NOT_AN_ARTICLE


def test_an_item_with_text_beside_many_headlines_is_no_hub():
    links = [f"<p><a href=/b/{number}>A headline about something, {number}</a></p>" for number in range(40)]
    between = "".join(f"<p>{SENTENCE}</p>{links[number]}" for number in range(6))
    found = page(f"<h1>Harbour</h1><div>{between}</div>{''.join(links)}")
    assert extract_page(found, "http://rivernews.example/what-the-harbour-is").article is not None
    assert extract_page(found, "http://rivernews.example/harbour").hub_title == "Harbour"
    front = {query: extract_page(found, f"http://rivernews.example/{query}").hub_title for query in ("", "?p=31228")}
    assert front == {"": "Harbour", "?p=31228": None}
