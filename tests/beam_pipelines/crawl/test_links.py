"""Outgoing links of responses: links of pages and entries of feeds, whatever their content type."""

import datetime

import pytest
from crawling import HTML
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.links import Outlinks, outlinks_of
from newsembed.beam_pipelines.crawl.sitemaps import Entry

URL = "http://a.example/news/index.html"


def outlinks(body, kind=HTML, **changes):
    return outlinks_of(
        Fetched(URL, 200, "OK", (("Content-Type", kind),), body.encode() if isinstance(body, str) else body), **changes
    )


def urls(found):
    return [entry.url for entry in found.entries]


def test_a_page_leads_to_its_links_its_feeds_and_its_image():
    found = outlinks(
        '<html><head><link rel="alternate" type="application/rss+xml" href="/rss">'
        '<link rel="alternate" hreflang="de" href="/de"><meta property="og:image" content="i.png"></head>'
        '<body><a href="1">one</a><a href=" /2 ">two</a><a name="x">none</a></body></html>'
    )
    assert urls(found) == ["http://a.example/news/1", "http://a.example/2", "http://a.example/rss"]
    assert (found.kind, found.image) == ("page", "http://a.example/news/i.png")


def test_a_page_may_name_another_base():
    assert urls(
        outlinks('<html><head><base href="http://b.example/x/"></head><body><a href="1">one</a></body></html>')
    ) == ["http://b.example/x/1"]
    assert urls(outlinks('<html><head><base href="http://[::1"></head><body><a href="1">one</a></body></html>')) == [
        "http://a.example/news/1"
    ]


def test_a_page_has_a_bounded_number_of_different_links_and_the_rest_is_counted():
    body = "".join(f'<a href="{number // 2}">A</a>' for number in range(12))
    feeds = '<link rel="alternate" type="application/rss+xml" href="/rss">'
    found = outlinks_of(Fetched(URL, 200, "OK", (("Content-Type", HTML),), (feeds + body).encode()), max_links=4)
    assert urls(found) == [*(f"http://a.example/news/{number}" for number in range(4)), "http://a.example/rss"]
    assert found.dropped == 2
    assert outlinks(body).dropped == 0


RSS = (
    "<rss><channel><title>F</title><item><title>1</title><link>/1</link><pubDate>Wed, "
    "01 May 2024 23:00:00 -0500</pubDate></item></channel></rss>"
)
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><link href="/1"/>'
    "<published>2024-05-02T04:00:00Z</published></entry></feed>"
)
JSON = (
    '{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items": [{"url": '
    '"/1", "date_published": "2024-05-02T04:00:00Z"}]}'
)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (RSS, "application/rss+xml"),
        (ATOM, "application/atom+xml"),
        (JSON, "application/feed+json"),
        (RSS, HTML),
        (RSS, ""),
    ],
)
def test_a_feed_leads_to_its_entries_with_their_days(body, kind):
    assert outlinks(body, kind) == Outlinks("feed", (Entry("http://a.example/1", datetime.date(2024, 5, 2)),))


@pytest.mark.parametrize(
    "body",
    [
        "",
        " ",
        "<",
        b"\0\1\2",
        b"\xff\xfe<\0",
        "<html>" * 5_000,
        "<!-- ",
        "<?xml",
        "<rss",
        "<feed><entry>",
        "{",
        "[1]",
        "\x0c",
    ],
)
@pytest.mark.parametrize("kind", [HTML, "application/rss+xml", "application/json", ""])
def test_broken_bytes_lead_nowhere(body, kind):
    assert outlinks(body, kind).entries == ()


def test_a_list_of_urls_is_a_sitemap_where_one_is_expected():
    assert outlinks("http://a.example/1\n", "text/plain").entries == ()
    assert outlinks("http://a.example/1\n", "text/plain", text_sitemap=True) == Outlinks(
        "sitemap", (Entry("http://a.example/1", None),)
    )
