"""extract: links and feeds, by values worked by hand."""

import datetime
import json

import pytest
from newsembed.beam_pipelines.extract import feeds as feeds_module
from newsembed.beam_pipelines.extract.feeds import Feed, parse_feed
from newsembed.beam_pipelines.extract.page import extract_page, links_of, parse

PAGE = "http://s.example/town/1"
DAY = datetime.date(2021, 3, 1)


def links(html, url=PAGE):
    return list(links_of(parse(f"<html><body>{html}</body></html>"), url)[0])


@pytest.mark.parametrize(
    "href", ["#top", "JavaScript:go()", "mailto:a@b.example", "tel:1", "data:,x", "about:blank", ""]
)
def test_links_that_lead_to_no_page_are_left_out(href):
    left_out = f'<a href="{href}">Go</a><a>No address</a><a href="/town/1">This page</a>'
    assert links(f'{left_out}<a href="/2">Two walls</a>') == [("http://s.example/2", "Two walls")]


@pytest.mark.parametrize("text", ["Read full story »", "Comments", "Next", "more" + "." * 56])  # 60 characters
def test_generic_texts_of_links_are_empty(text):
    assert links(f'<a href="/2">{text}</a>') == [("http://s.example/2", "")]


@pytest.mark.parametrize("text", ["12 comments", "Next steps", "more" + "." * 57])
def test_other_texts_of_links_are_kept(text):
    assert links(f'<a href="/2">{text}</a>') == [("http://s.example/2", text)]


@pytest.mark.parametrize(
    ("url", "head", "target"),
    [
        ("http://s.example/town/", "", "http://s.example/town/walls"),
        ("http://s.example/town", "", "http://s.example/walls"),
        ("http://s.example/town/", "<base href='/a/b/'>", "http://s.example/a/b/walls"),
    ],
)
def test_relative_links_are_joined_with_the_url_as_fetched_or_the_base(url, head, target):
    assert extract_page(f"{head}<a href='walls'>Two walls rise</a>", url).links == ((target, "Two walls rise"),)


def test_texts_of_links_have_at_most_300_characters():
    for spaces, letters, kept in ((0, 400, 300), (900, 400, 300), (1_200, 1, 0)):  # 1,200 characters are read
        text = " " * spaces + "x" * letters
        for inner in (text, f"<b>{text}</b>"):
            assert links(f'<a href="/2">{inner}</a>') == [("http://s.example/2", "x" * kept)]
    assert links('<a href="/2"> Two\n <b> walls</b></a>') == [("http://s.example/2", "Two walls")]


def test_a_page_has_a_bounded_number_of_links_and_the_rest_is_counted():
    def bounded(html):
        found, beyond = links_of(parse(f"<html><body>{html}</body></html>"), PAGE, max_links=3)
        return [url.removeprefix("http://s.example/") for url, _ in found], beyond

    anchors = "".join(f'<a href="/{number}">Story</a>' for number in range(9))
    assert bounded(anchors + "<a>No address</a>") == (["0", "1", "2"], 6)
    story = '<a href="/0">Story</a>'
    assert bounded(12 * story + '<a href="/1">Story</a>') == (["0"], 1), "four times as many anchors are looked at"
    assert bounded(11 * story + '<a href="/1">Story</a>') == (["0", "1"], 0)


def rss(*items, title="F"):
    return f"<rss><channel><title>{title}</title>{''.join(f'<item>{item}</item>' for item in items)}</channel></rss>"


def test_an_rss_feed_by_hand():
    raw = rss(
        "<title>One\n walls</title><link> http://s.example/1 </link><pubDate>Mon, 01 Mar 2021 08:00:00 GMT</pubDate>"
        "<author>Ann Lee</author>",
        "<title>Two</title><link>http://s.example/2</link>",
        "<title>No link</title><pubDate>Mon, 01 Mar 2021 08:00:00 GMT</pubDate>",
    )
    assert parse_feed(raw.encode()) == Feed(
        "F",
        (("http://s.example/1", "One walls"), ("http://s.example/2", "Two")),
        (("http://s.example/1", DAY, ("Ann Lee",)),),
    )


@pytest.mark.parametrize(
    "item",
    [
        "<guid>http://s.example/1</guid>",
        '<guid isPermaLink="TRUE"> http://s.example/1 </guid>',
        '<link href="http://s.example/1"/>',
        "<link> </link><guid>http://s.example/1</guid>",
        '<link rel="alternate" href="http://s.example/1"/><guid>http://s.example/2</guid>',
        "<link>http://s.example/1</link><guid>http://s.example/2</guid>",
    ],
)
def test_links_of_entries(item):
    assert parse_feed(rss(item).encode()).entries == (("http://s.example/1", ""),)


@pytest.mark.parametrize(
    "item",
    [
        '<guid isPermaLink="false">http://s.example/1</guid>',
        "<guid>tag:s.example,1</guid>",
        '<link rel="self" href="http://s.example/feed"/>',
    ],
)
def test_entries_without_a_link_are_left_out(item):
    assert parse_feed(rss(item).encode()).entries == ()


def test_days_and_authors_of_entries():
    link = "<link>http://s.example/1</link>"
    for name in ("pubDate", "published", "date", "issued", "created"):
        found = parse_feed(rss(f"{link}<{name}>2021-03-01</{name}>").encode())
        assert found.stated == (("http://s.example/1", DAY, ()),)
    both = f"{link}<pubDate>soon</pubDate><date>2021-03-01</date><created>2021-02-01</created>"
    assert parse_feed(rss(both).encode()).stated[0][1] == DAY, "the first that is a day"
    people = f"{link}<author><name>Ann  Lee</name><uri>x</uri></author><creator>Bo Chen</creator><author> </author>"
    assert parse_feed(rss(people).encode()).stated == (("http://s.example/1", None, ("Ann Lee", "Bo Chen")),)


def test_feeds_are_recognised_by_their_root():
    for raw in (b"", b"<html></html>", b"<html><!-- <rss --></html>", b"plain text <rss>", b"x<rss></rss>"):
        assert parse_feed(raw) is None
    assert parse_feed(b"\xef\xbb\xbf \n" + rss("<link>http://s.example/1</link>").encode()).title == "F"
    rdf = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        "<channel><title>F</title></channel><item><link>http://s.example/1</link></item></rdf:RDF>"
    )
    assert parse_feed(rdf.encode()) == Feed("F", (("http://s.example/1", ""),))


def json_feed(**fields):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "F", **fields}).encode()


def test_a_json_feed_by_hand():
    items = [
        {"url": "http://s.example/1", "title": "One", "date_published": "2021-03-01T08:00:00Z",
         "authors": [{"name": " Ann Lee "}, {"name": ""}, "Bo Chen"]},
        {"external_url": "http://s.example/2", "author": {"name": "Bo Chen"}},
        {"title": "No link"},
        "no item",
    ]  # fmt: skip
    assert parse_feed(json_feed(items=items)) == Feed(
        "F",
        (("http://s.example/1", "One"), ("http://s.example/2", "")),
        (("http://s.example/1", DAY, ("Ann Lee",)), ("http://s.example/2", None, ("Bo Chen",))),
    )
    assert parse_feed(json_feed()) == Feed("F", ())
    assert parse_feed(b'{"version": "2", "items": []}') is None
    assert parse_feed(b"{broken") is None


def test_a_feed_has_a_bounded_number_of_entries_and_authors(monkeypatch):
    monkeypatch.setattr(feeds_module, "MAX_ENTRIES", 2)
    items = [
        f"<link>http://s.example/{number}</link>{''.join(f'<author>Ann {place}</author>' for place in range(12))}"
        for number in range(3)
    ]
    found = parse_feed(rss(*items).encode())
    assert [len(authors) for _, _, authors in found.stated] == [10, 10]
    listed = [{"url": f"http://s.example/{number}"} for number in range(3)]
    parsed = parse_feed(json_feed(items=listed))
    assert len(parsed.entries) == 2
    assert found.dropped == parsed.dropped == 1
