"""Sitemaps of every form, including broken and hostile ones."""

import datetime
import gzip

import pytest
from newsembed.beam_pipelines.crawl import sitemaps
from newsembed.beam_pipelines.crawl.sitemaps import Entry, in_date_range, newest_first, parse_sitemap

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


def urls(*names):
    return "".join(f"<url><loc>http://a.example/{name}</loc></url>" for name in names)


@pytest.mark.parametrize("pack", [lambda raw: raw, gzip.compress, lambda raw: b"\xef\xbb\xbf\n" + raw])
def test_a_news_sitemap_lists_urls_with_their_days(pack):
    found = parse_sitemap(pack(NEWS.encode()))
    assert not found.is_index
    assert found.entries == (
        Entry("http://a.example/1", day("2024-03-02")),  # of publication, UTC
        Entry("http://a.example/2?a=1&b=2", day("2024-02-03")),
        Entry("http://a.example/3", None),
    )


def test_an_index_lists_sitemaps():
    index = (
        f"{HEAD}<sm:sitemapindex xmlns:sm='x'><sm:sitemap><sm:loc>/s1.xml</sm:loc><sm:lastmod>2024-01-01"
        f"</sm:lastmod></sm:sitemap></sm:sitemapindex>"
    )
    found = parse_sitemap(index.encode())
    assert found.is_index
    assert found.entries == (Entry("/s1.xml", day("2024-01-01")),)


def test_text_is_a_sitemap_only_where_one_is_expected():
    text = b"http://a.example/1\r\n\nhttp://a.example/2\n"
    assert [entry.url for entry in parse_sitemap(text, text=True).entries] == [
        "http://a.example/1",
        "http://a.example/2",
    ]
    assert parse_sitemap(text) is None
    assert parse_sitemap(b"Hello\nhttp://a.example/2", text=True) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html><body>no</body></html>",
        b"<rss><channel/></rss>",
        b"\x1f\x8bno gzip",
        gzip.compress(NEWS.encode(), mtime=0)[:60],
        b"\0" * 99,
    ],
)
def test_other_bytes_are_not_a_sitemap(raw):
    assert parse_sitemap(raw) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (f"{HEAD}<urlset>{urls(1, 2)}<url><loc>http://a.exam", 2),
        (f"{HEAD}<urlset>{urls(1)}</wrong>{urls(2)}</urlset>", 1),
        (f"{HEAD}<urlset>{urls(1)} & {urls(2)}</urlset>", 2),
        (f"{HEAD}<urlset></urlset>", 0),
        (f"{HEAD}<urlset", 0),
    ],
)
def test_broken_xml_is_read_up_to_the_error(raw, expected):
    assert len(parse_sitemap(raw.encode()).entries) >= expected


def test_entities_are_not_expanded_and_nothing_is_read_from_disk(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("http://a.example/secret")
    raw = (
        f'{HEAD}<!DOCTYPE u [<!ENTITY f SYSTEM "file://{secret}"><!ENTITY a "xxxxxxxxxx">'
        f'<!ENTITY b "&a;&a;&a;">]><urlset><url><loc>&f;&b;</loc></url>{urls(1)}</urlset>'
    )
    found = parse_sitemap(raw.encode())
    assert "secret" not in str(found)
    assert "xxx" not in str(found)


def test_no_more_than_the_protocol_allows_is_taken(monkeypatch):
    monkeypatch.setattr(sitemaps, "MAX_ENTRIES", 3)
    found = parse_sitemap(f"{HEAD}<urlset>{urls(*range(5))}</urlset>".encode())
    assert (len(found.entries), found.dropped) == (3, 2)


def test_a_decompression_bomb_is_not_a_sitemap(monkeypatch):
    monkeypatch.setattr(sitemaps, "MAX_BYTES", 10_000)
    assert parse_sitemap(gzip.compress(f"{HEAD}<urlset>{' ' * 20_000}</urlset>".encode())) is None


def test_days_decide_what_is_followed():
    since, until = day("2024-02-01"), day("2024-02-29")
    cases = {"2024-01-31": False, "2024-02-01": True, "2024-02-29": True, "2024-03-01": False}
    for text, expected in cases.items():
        assert in_date_range(Entry("http://a.example/x", day(text)), since, until) is expected
        assert in_date_range(Entry(f"http://a.example/{text.replace('-', '/')}/x", None), since, until) is expected, (
            "the day in the URL"
        )
    assert in_date_range(Entry("http://a.example/x", None), since, until)
    assert in_date_range(Entry("s.xml", day("2024-03-01")), since, until, is_index=True), (
        "a sitemap changed later may list earlier days"
    )
    assert not in_date_range(Entry("s.xml", day("2024-01-31")), since, until, is_index=True)


def test_the_newest_come_first_and_the_undated_last():
    entries = tuple(
        Entry(str(number), moment) for number, moment in enumerate([None, day("2020-01-01"), day("2024-01-01"), None])
    )
    assert [entry.url for entry in newest_first(entries)] == ["2", "1", "0", "3"]
