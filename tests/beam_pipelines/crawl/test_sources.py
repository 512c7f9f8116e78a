"""Sources of URLs: sitemaps of every form, feeds and pages, including broken and hostile ones."""

import datetime
import gzip

import pytest
from crawling import HTML
from newsembed.beam_pipelines.crawl import sources
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.sources import SOURCES, Entry, Outlinks, outlinks_of
from newsembed.formats.codings import BrokenCodingError

URL = "http://a.example/news/index.html"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
NEWS = f"""{HEAD}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"
 xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><image:image><image:loc>http://a.example/i.png</image:loc></image:image><loc> http://a.example/1 </loc>
<lastmod>2024-05-09</lastmod>
<news:news><news:publication_date>2024-03-01T23:30:00-05:00</news:publication_date><news:title>One</news:title></news:news></url>
<url><loc>http://a.example/2?a=1&amp;b=2</loc><lastmod>2024-02-03T10:00:00Z</lastmod></url>
<url><loc>http://a.example/3</loc></url><url><lastmod>2024-01-01</lastmod></url></urlset>"""


def day(text):
    return datetime.date.fromisoformat(text)


def locations(*names):
    return "".join(f"<url><loc>http://a.example/{name}</loc></url>" for name in names)


def outlinks(body, kind=HTML, **changes):
    raw = body.encode() if isinstance(body, str) else body
    return outlinks_of(Fetched(URL, 200, "OK", (("Content-Type", kind),), raw), **changes)


def urls(found):
    return [entry.url for entry in found.entries]


@pytest.mark.parametrize("pack", [lambda raw: raw, gzip.compress, lambda raw: b"\xef\xbb\xbf\n" + raw])
def test_a_news_sitemap_lists_urls_with_their_days(pack):
    days = {"1": day("2024-03-02"), "2?a=1&b=2": day("2024-02-03"), "3": None}  # the first is of publication, UTC
    entries = tuple(Entry(f"http://a.example/{path}", one) for path, one in days.items())
    assert outlinks(pack(NEWS.encode()), "") == Outlinks("sitemap", entries)


def test_an_index_lists_sitemaps():
    index = (
        f"{HEAD}<sm:sitemapindex xmlns:sm='x'><sm:sitemap><sm:loc>/s1.xml</sm:loc><sm:lastmod>2024-01-01"
        f"</sm:lastmod></sm:sitemap></sm:sitemapindex>"
    )
    assert outlinks(index) == Outlinks("index", (Entry("http://a.example/s1.xml", day("2024-01-01")),))


def test_text_is_a_sitemap_only_where_one_is_expected():
    text = "http://a.example/1\r\n\nhttp://a.example/2\n"
    found = outlinks(text, "text/plain", visit_kind="sitemap")
    assert (found.kind, urls(found)) == ("sitemap", ["http://a.example/1", "http://a.example/2"])
    assert outlinks(text, "text/plain").entries == ()
    assert outlinks("Hello\nhttp://a.example/2", "text/plain", visit_kind="sitemap").kind == "page"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (f"{HEAD}<urlset>{locations(1, 2)}<url><loc>http://a.exam", 2),
        (f"{HEAD}<urlset>{locations(1)}</wrong>{locations(2)}</urlset>", 1),
        (f"{HEAD}<urlset>{locations(1)} & {locations(2)}</urlset>", 2),
        (f"{HEAD}<urlset></urlset>", 0),
        (f"{HEAD}<urlset", 0),
    ],
)
def test_broken_xml_is_read_up_to_the_error(raw, expected):
    found = outlinks(raw)
    assert found.kind == "sitemap"
    assert len(found.entries) >= expected


def test_entities_are_not_expanded_and_nothing_is_read_from_disk(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("http://a.example/secret")
    found = outlinks(
        f'{HEAD}<!DOCTYPE u [<!ENTITY f SYSTEM "file://{secret}"><!ENTITY a "xxxxxxxxxx">'
        f'<!ENTITY b "&a;&a;&a;">]><urlset><url><loc>&f;&b;</loc></url>{locations(1)}</urlset>'
    )
    assert found.kind == "sitemap"
    assert "secret" not in str(found)
    assert "xxx" not in str(found)


def test_no_more_than_the_protocol_allows_is_taken(monkeypatch):
    monkeypatch.setattr(sources, "MAX_SITEMAP_ENTRIES", 3)
    found = outlinks(f"{HEAD}<urlset>{locations(*range(5))}</urlset>")
    assert (len(found.entries), found.dropped) == (3, 2)
    monkeypatch.setattr(sources, "MAX_SITEMAP_BYTES", 10_000)
    bomb = gzip.compress(f"{HEAD}<urlset>{' ' * 20_000}{locations(1)}</urlset>".encode())
    for broken in (bomb, bomb[:40]):  # the walk counts them
        with pytest.raises(BrokenCodingError):
            outlinks(broken, "application/gzip", visit_kind="sitemap")


def test_days_decide_what_is_followed():
    since, until = day("2024-02-01"), day("2024-02-29")
    cases = {"2024-01-31": False, "2024-02-01": True, "2024-02-29": True, "2024-03-01": False}
    for text, expected in cases.items():
        for entry in (Entry("http://a.example/x", day(text)), Entry(f"http://a.example/{text.replace('-', '/')}/x")):
            assert bool(SOURCES["feed"].chosen((entry,), since, until)) is expected
            assert SOURCES["page"].chosen((entry,), since, until) == [entry], "links of pages have no day"
    assert SOURCES["feed"].chosen((Entry("http://a.example/x"),), since, until), "undated"
    later, earlier = Entry("s.xml", day("2024-03-01")), Entry("s.xml", day("2024-01-31"))
    assert SOURCES["index"].chosen((later, earlier), since, until) == [later], "it may list earlier days"


def test_the_newest_come_first_and_the_undated_last():
    days = [None, day("2020-01-01"), day("2024-01-01"), None]
    entries = tuple(Entry(str(number), moment) for number, moment in enumerate(days))
    for kind, order in (("sitemap", "2103"), ("index", "2103"), ("feed", "0123")):
        assert "".join(entry.url for entry in SOURCES[kind].chosen(entries, None, None)) == order


def test_a_page_leads_to_its_links_its_feeds_and_its_image():
    found = outlinks(
        '<html><head><link rel="alternate" type="application/rss+xml" href="/rss">'
        '<link rel="alternate" hreflang="de" href="/de"><meta property="og:image" content="i.png"></head>'
        '<body><a href="1">one</a><a href=" /2 ">two</a><a name="x">none</a></body></html>'
    )
    assert urls(found) == ["http://a.example/news/1", "http://a.example/2", "http://a.example/rss"]
    assert (found.kind, found.image) == ("page", "http://a.example/news/i.png")


@pytest.mark.parametrize(
    ("base", "expected"), [("http://b.example/x/", "http://b.example/x/1"), ("http://[::1", "http://a.example/news/1")]
)
def test_a_page_may_name_another_base(base, expected):
    assert urls(outlinks(f'<head><base href="{base}"></head><body><a href="1">one</a></body>')) == [expected]


def test_a_page_has_a_bounded_number_of_different_links_and_the_rest_is_counted():
    body = "".join(f'<a href="{number // 2}">A</a>' for number in range(12))
    found = outlinks('<link rel="alternate" type="application/rss+xml" href="/rss">' + body, max_links=4)
    assert urls(found) == [*(f"http://a.example/news/{number}" for number in range(4)), "http://a.example/rss"]
    assert found.dropped == 2
    assert outlinks(body).dropped == 0


RSS = "<rss><item><title>1</title><link>/1</link><pubDate>Wed, 01 May 2024 23:00:00 -0500</pubDate></item></rss>"
ITEM = '{"url": "/1", "date_published": "2024-05-02T04:00:00Z"}'
JSON = f'{{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items": [{ITEM}]}}'


@pytest.mark.parametrize(("body", "kind"), [(RSS, "application/rss+xml"), (JSON, "application/feed+json"), (RSS, HTML)])
def test_a_feed_leads_to_its_entries_with_their_days(body, kind):
    assert outlinks(body, kind) == Outlinks("feed", (Entry("http://a.example/1", datetime.date(2024, 5, 2)),))


@pytest.mark.parametrize(
    "body",
    [
        *("", " ", "<", b"\0\1\2", b"\xff\xfe<\0", "<html>" * 5_000, "<!-- ", "<?xml", "<rss", "<feed><entry>", "{"),
        *("[1]", "\x0c", b"\x1f\x8bno gzip", gzip.compress(NEWS.encode(), mtime=0)[:60], "<rss><channel/></rss>"),
    ],
)
@pytest.mark.parametrize("kind", [HTML, "application/rss+xml", ""])
def test_broken_bytes_lead_nowhere(body, kind):
    assert outlinks(body, kind).entries == ()


def test_a_new_source_is_one_entry_of_the_registry(monkeypatch):
    """Its kind, its count of what is beyond the limit and its order are all that the walk asks for."""
    read = lambda fetched, *_: ((Entry(f"{fetched.url}#1"),), "", 3) if fetched.body == b"hub" else None  # noqa: E731
    monkeypatch.setattr(sources, "SOURCES", {"hub": sources.Source(read, "x")} | SOURCES)
    assert outlinks("hub") == Outlinks("hub", (Entry(f"{URL}#1"),), dropped=3)
    assert outlinks("other").kind == "page"
