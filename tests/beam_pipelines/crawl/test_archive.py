"""Sitemaps in a crawl: from robots.txt or seeds, nested, dated, broken, endless; feeds of other domains."""

import datetime
import gzip

import pytest
from crawling import crawl, feed, letters, page, stored
from newsembed.beam_pipelines.crawl.options import Scope, Sitemaps

XML = "application/xml"
HOME = "http://www.a.example"


def listing(root, item, entries):
    days = ((path, f"<lastmod>{day}</lastmod>" if day else "") for path, day in entries)
    listed = "".join(f"<{item}><loc>{HOME}{path}</loc>{day}</{item}>" for path, day in days)
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</{root}>'


def urlset(*entries):
    return listing("urlset", "url", entries)


def index(*entries):
    return listing("sitemapindex", "sitemap", entries)


@pytest.fixture
def archive(web):
    """A site whose front page shows nothing and whose sitemaps lead to three months, one of them gzipped."""
    web.add(f"{HOME}/robots.txt", f"User-agent: *\nDisallow: /no\nSitemap: {HOME}/sitemap.xml\n", "text/plain")
    web.add(f"{HOME}/", page())
    maps = ("/2020-01.xml.gz", "2020-02-01"), ("/2023-05.xml", "2023-06-01"), ("/2024-01.xml", "2024-02-01")
    web.add(f"{HOME}/sitemap.xml", index(*maps), XML)
    oldest = gzip.compress(urlset(("/old", "2020-01-05"), ("/no", "2020-01-06")).encode())
    web.add(f"{HOME}/2020-01.xml.gz", oldest, "application/x-gzip")
    web.add(f"{HOME}/2023-05.xml", urlset(("/may", "2023-05-05"), ("/2023/05/30/late", "")), XML)
    web.add(f"{HOME}/2024-01.xml", urlset(("/new", "2024-01-05"), ("/undated", "")), "text/xml")
    for path in ("old", "no", "may", "2023/05/30/late", "new", "undated"):
        web.add(f"{HOME}/{path}", page())
    return web


def paths(tmp_path):
    return {url.removeprefix(HOME) for url in stored(tmp_path)}


def test_an_archive_is_found_through_robots_txt(tmp_path, archive):
    counts = crawl(tmp_path, archive, f"{HOME}/", sitemaps=Sitemaps.AUTO)
    articles = {"/", "/old", "/may", "/2023/05/30/late", "/new", "/undated"}
    assert paths(tmp_path) == articles | {"/sitemap.xml", "/2020-01.xml.gz", "/2023-05.xml", "/2024-01.xml"}
    assert counts["tallies"] == {"pages": 6, "sitemaps": 4}
    assert letters(tmp_path) == {f"{HOME}/no": "robots_disallowed"}
    new, old, may = (archive.requests.index(f"{HOME}/{name}") for name in ("new", "old", "2023-05.xml"))
    assert new < old, "the newest first"
    assert new < may, "one sitemap at a time"


@pytest.mark.parametrize(
    ("since", "until", "expected", "outside"),
    [
        ("2024-01-01", None, {"/new", "/undated"}, 2),  # both older sitemaps, unread
        ("2023-01-01", "2023-12-31", {"/may", "/2023/05/30/late", "/undated"}, 2),
        (None, "2020-12-31", {"/old", "/undated"}, 3),
        ("2023-05-10", "2023-06-10", {"/2023/05/30/late", "/undated"}, 3),
    ],
)
def test_dates_choose_from_an_archive(tmp_path, archive, since, until, expected, outside):
    days = {name: datetime.date.fromisoformat(text) for name, text in (("since", since), ("until", until)) if text}
    counts = crawl(tmp_path, archive, f"{HOME}/", sitemaps=Sitemaps.AUTO, **days)
    assert {path for path in paths(tmp_path) if "xml" not in path} == {"/"} | expected
    assert counts["tallies"]["entries_outside_dates"] == outside


def test_indexes_that_list_themselves_are_read_once(tmp_path, web):
    web.add(f"{HOME}/sitemap.xml", index(("/sitemap.xml", ""), ("/other.xml", "")), XML)
    web.add(f"{HOME}/other.xml", index(("/sitemap.xml", ""), ("/other.xml?", "")), XML)
    counts = crawl(tmp_path, web, f"{HOME}/sitemap.xml")
    assert counts["tallies"] == {"sitemaps": 2}
    assert len(set(web.requests)) == len(web.requests)


def test_broken_lists_are_stored_and_lead_nowhere(tmp_path, web):
    broken = [
        ("<rss><channel><item><link>", "application/rss+xml"),
        ("<urlset><url><loc>http://[", XML),
        (b"\x1f\x8b\x08 no gzip", "application/gzip"),
        (b"\xff\xfe\x00<\x00", XML),
        ('{"version": "https://jsonfeed.org/version/1", "items": [null, {"url": "http://[::1"}]}', "application/json"),
        ("<html>" * 3_000, "text/html"),
        (b"\0\0\0", "text/html"),
    ]
    seeds = [f"http://h{number}.example/sitemap.xml" for number in range(len(broken))]
    for seed, (body, kind) in zip(seeds, broken, strict=True):
        web.add(seed, body, kind)
    counts = crawl(tmp_path, web, *seeds)
    assert (counts["in"], counts["out"]) == (7, 7)


def test_entries_on_other_domains_are_counted_and_followed_when_asked_for(tmp_path, web):
    entries = f"{HOME}/1", "http://c.example/2", "http://feeds.b.example/3"
    web.add("http://feeds.b.example/rss", feed(*entries), "application/rss+xml")
    web.add(f"{HOME}/1", page("/deeper", "http://c.example/9", image="http://img.d.example/i.png"))
    web.add("http://c.example/2", page(image="http://img.d.example/i.png"))
    web.add("http://c.example/robots.txt", "User-agent: *\nDisallow: /2\n", "text/plain")
    web.add("http://feeds.b.example/3", page())
    web.add("http://img.d.example/i.png", b"png", "image/png")
    counts = crawl(tmp_path, web, "http://feeds.b.example/rss")
    assert counts["tallies"] == {"pages": 2, "entries_elsewhere": 2}
    counts = crawl(tmp_path, web, "http://feeds.b.example/rss", scope=Scope.FEEDS, fetch_images=True, out="wide")
    names = ("feeds.b.example/rss", "feeds.b.example/3", "www.a.example/1", "img.d.example/i.png")
    assert set(stored(tmp_path, "wide")) == {f"http://{name}" for name in names}
    assert letters(tmp_path, "wide") == {"http://c.example/2": "robots_disallowed"}
    assert counts["tallies"] == {"pages": 3, "images": 1, "listed_entries": 2, "listed_images": 1}


def test_entries_of_a_site_that_is_crawled_itself_are_fetched_once(tmp_path, web):
    web.add("http://feeds.b.example/rss", feed(f"{HOME}/1"), "application/rss+xml")
    web.add(f"{HOME}/", page("/1"))
    web.add(f"{HOME}/1", page())
    counts = crawl(tmp_path, web, "http://feeds.b.example/rss", f"{HOME}/", scope=Scope.FEEDS)
    assert counts["tallies"] == {"pages": 3, "listed_entries": 1, "listed_again": 1}
    assert web.count(f"{HOME}/1") == 1
