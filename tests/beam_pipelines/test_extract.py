"""extract: pages, feeds, rows, joins, and broken inputs of all kinds."""

import datetime
import io
import json
import math

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Hub, make_doc_id
from newsembed.tests.example_inputs import dead_letters

ONE = ["--direct_num_workers=1"]
SENTENCE = (
    "The council of the river town voted late on Tuesday to raise the embankment before the autumn rains arrive. "
)
BODY = "".join(f"<p>{SENTENCE * 3} Paragraph {number}.</p>" for number in range(6))


def article_page(title="Council raises embankment", extra="", url_image="http://s.example/i.png"):
    ld = json.dumps(
        {
            "@type": "NewsArticle",
            "headline": title,
            "datePublished": "2021-03-01T23:30:00-05:00",
            "dateModified": "2021-03-04",
            "author": [{"name": "Ann Lee"}, {"name": "By Bo Chen"}],
        }
    )
    return (
        f'<html lang="en"><head><title>{title} - Site</title><meta property="og:image" content="{url_image}">'
        f'<meta name="keywords" content="flood, council"><script type="application/ld+json">{ld}</script>'
        f"</head><body><article><h1>{title}</h1>{BODY}{extra}</article></body></html>"
    )


def hub_page():
    links = "".join(
        f'<li><a href="http://s.example/a/{n}">A headline about something number {n}</a></li>' for n in range(12)
    )
    return f"<html><head><title>Weather</title></head><body><h1>Weather</h1><ul>{links}</ul></body></html>"


FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>Floods</title><item>'
    "<title>Embankment to rise, says council</title><link>http://s.example/a/1</link></item></channel>"
    "</rss>"
)


def png():
    from PIL import Image

    buffer = io.BytesIO()
    image = Image.new("L", (64, 64))
    image.putdata([int(127 + 120 * math.sin(x / 9) * math.cos(y / 7)) for y in range(64) for x in range(64)])
    image.save(buffer, "PNG")
    return buffer.getvalue()


def warc(path, responses, cut=0):
    buffer = io.BytesIO()
    writer = WarcWriter(buffer, "test")
    for url, kind, body, *status in responses:
        writer.write(
            Fetched(
                url,
                status[0] if status else 200,
                "OK",
                (("Content-Type", kind),),
                body if isinstance(body, bytes) else body.encode(),
            )
        )
    path.write_bytes(buffer.getvalue()[: -cut or None])
    return str(path)


def run(tmp_path, **inputs):
    return jobs.execute(JOB, inputs, str(tmp_path / "out"), beam_args=ONE).manifest["counts"]


def test_pages_feeds_and_images_are_joined(tmp_path):
    path = warc(
        tmp_path / "a.warc.gz",
        [
            ("http://www.s.example/a/1?utm_source=x", "text/html", article_page()),
            ("http://s.example/weather", "text/html; charset=utf-8", hub_page()),
            ("http://s.example/feed", "application/rss+xml", FEED),
            ("http://s.example/i.png", "image/png", png()),
        ],
    )
    counts = run(tmp_path, warc=[path])
    assert counts == {
        "in": 4,
        "out": 4,
        "rejected": {},
        "failed": {},
        "tallies": {"articles": 1, "hubs": 2, "images": 1},
    }
    (article,) = parquet.read_stream(str(tmp_path / "out/articles"), Article)
    assert article.doc_id == make_doc_id("http://s.example/a/1")
    assert article.title == "Council raises embankment"
    assert article.authors == ("Ann Lee", "Bo Chen")
    assert article.publisher == "s.example"
    assert article.byline_date == datetime.date(2021, 3, 2)
    assert article.modified_date == datetime.date(2021, 3, 4)
    assert article.date_source == "json-ld"
    assert article.keywords == ("flood", "council")
    assert article.anchor_texts == ("A headline about something number 1", "Embankment to rise, says council")
    assert len(article.image_hash) == 8
    hubs = {hub.title: hub for hub in parquet.read_stream(str(tmp_path / "out/hubs"), Hub)}
    assert set(hubs) == {"Weather", "Floods"}
    assert hubs["Weather"].doc_ids == (article.doc_id,), "members that are not articles of the corpus are dropped"
    assert article.hubs == tuple(sorted(hub.hub_id for hub in hubs.values()))


def test_every_broken_response_gets_a_reason_and_nothing_else_is_lost(tmp_path):
    path = warc(
        tmp_path / "a.warc.gz",
        [
            ("http://s.example/junk", "text/html", bytes(range(256)) * 20),
            ("http://s.example/gone", "text/html", "gone", 404),
            ("http://s.example/i.png", "image/png", b"no image"),
            ("http://s.example/x.css", "text/css", "a{}"),
            ("http://s.example/empty", "text/html", "<html><body></body></html>"),
            ("http://s.example/a/1", "text/html", article_page()),
            ("http://s.example/a/2", "text/html", article_page() * 3),
        ],
        cut=400,
    )
    counts = run(tmp_path, warc=[path])
    assert counts["in"] == 7
    assert counts["out"] == 1
    assert counts["rejected"] == {"not_ok_status": 1, "not_html": 1, "no_content": 1}
    assert sum(counts["failed"].values()) == 3
    assert counts["failed"]["undecodable"] == 1
    assert counts["failed"]["parser_error"] == 1
    assert {letter.key for letter in dead_letters(tmp_path / "out")} >= {
        "http://s.example/junk",
        "http://s.example/gone",
    }


def test_rows_of_jsonl_and_parquet(tmp_path):
    import zstandard

    good = {
        "url": "https://www.n.example/1",
        "title": " A  title ",
        "body": "text",
        "authors": ["Ann Lee"],
        "published_at": "2020-05-01T23:00:00Z",
        "feeds": ["top/us"],
    }
    lines = [
        json.dumps(good),
        "{no json",
        json.dumps({**good, "title": ""}),
        "",
        json.dumps({**good, "url": "/relative"}),
        json.dumps({**good, "url": "https://n.example/2", "byline_date": "1/21", "published_at": None}),
    ]
    file = tmp_path / "rows.jsonl.zst"
    file.write_bytes(zstandard.compress("\n".join(lines).encode()))
    counts = run(tmp_path, articles=[str(file)])
    assert (counts["in"], counts["out"], counts["failed"]) == (5, 2, {"broken_record": 1, "missing_field": 2})
    first, second = parquet.read_stream(str(tmp_path / "out/articles"), Article)
    assert first.url == "http://n.example/1"
    assert first.title == "A title"
    assert first.byline_date == datetime.date(2020, 5, 1)
    assert first.publisher == "n.example"
    assert second.byline_date is None
    (hub,) = parquet.read_stream(str(tmp_path / "out/hubs"), Hub)
    assert (hub.title, hub.publisher, len(hub.doc_ids)) == ("top/us", "n.example", 2)
    found = {letter.key.rpartition(":")[2]: letter for letter in dead_letters(tmp_path / "out")}
    assert found["2"].reason == "broken_record"
    assert found["3"].detail.startswith("title:")
    assert found["5"].detail.startswith("url: got '/relative'")


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_lines_before_a_cut_are_kept_and_the_cut_is_counted(tmp_path, kind):
    import gzip
    import random

    import zstandard

    draw = random.Random(3)
    lines = [
        json.dumps({"url": f"http://n.example/{n}", "title": f"T {n}", "body": draw.randbytes(400).hex()})
        for n in range(400)
    ]
    raw = "\n".join(lines).encode()
    packed = gzip.compress(raw) if kind == "gz" else zstandard.ZstdCompressor(write_content_size=False).compress(raw)
    file = tmp_path / f"rows.jsonl.{kind}"
    file.write_bytes(packed[: len(packed) // 2])
    counts = run(tmp_path, articles=[str(file)])
    assert counts["failed"] == {"truncated": 1}
    assert counts["in"] == counts["out"] + 1
    assert [article.title for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)] == [
        f"T {n}" for n in range(counts["out"])
    ]
    (letter,) = dead_letters(tmp_path / "out")
    assert letter.key == f"{file}:{counts['out'] + 1}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jsonl.gz", "compression differs from its name"),
        ("a.jsonl.zst", "compression differs from its name"),
        ("a.parquet", "not a Parquet file"),
    ],
)
def test_a_file_that_does_not_match_its_extension_is_rejected(tmp_path, name, message):
    (tmp_path / name).write_bytes(b'{"url": "http://n.example/1"}\n')
    with pytest.raises(InputError, match=message) as raised:
        run(tmp_path, articles=[str(tmp_path / name)])
    assert raised.value.path == str(tmp_path / name)


def test_unpaired_surrogates_are_replaced(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"url": "http://n.example/\\ud83d", "title": "cut \\ud83d", "body": "text \\udc00", '
        '"authors": ["Ann \\ud83d Lee"]}\n'
    )
    page = article_page("Council raises embankment @@").replace("@@", "\\ud83d")
    feed = (
        '{"version": "https://jsonfeed.org/version/1.1", "title": "a \\ud83d", "items": '
        '[{"url": "http://s.example/\\ud83d", "title": "\\udc00"}]}'
    )
    path = warc(
        tmp_path / "a.warc.gz",
        [("http://s.example/a/1", "text/html", page), ("http://s.example/f", "application/feed+json", feed)],
    )
    assert run(tmp_path, articles=[str(file)], warc=[path])["out"] == 3
    titles = {article.title for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    assert titles == {"cut \ufffd", "Council raises embankment \ufffd"}


def test_invalid_inputs_are_rejected_with_a_remedy(tmp_path):
    for name, content, message in (
        ("a.warc.gz", b"PK not a warc", "expected gzip or WARC"),
        ("a.txt", b"a,b", "unknown type of file of articles"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            run(tmp_path, **{"warc" if "warc" in name else "articles": [str(tmp_path / name)]})
    with pytest.raises(InputError, match="--warc, --articles: no input"):
        run(tmp_path)


def test_links_and_entries_beyond_the_limit_are_counted(tmp_path):
    item = "<item><title>T</title><link>http://s.example/a/1</link></item>"
    feed = FEED.replace("</channel>", f"{item * 5_001}</channel>")
    path = warc(
        tmp_path / "a.warc.gz",
        [("http://s.example/weather", "text/html", hub_page()), ("http://s.example/rss", "text/xml", feed)],
    )
    done = jobs.execute(
        JOB, {"warc": [path]}, str(tmp_path / "out"), ExtractOptions(max_links_per_page=9), beam_args=ONE
    )
    assert done.manifest["counts"]["tallies"] == {"hubs": 2, "links_beyond_limit": 3, "feed_entries_beyond_5000": 2}
    with pytest.raises(InputError, match="--max_links_per_page: got 0, expected at least 1"):
        ExtractOptions(max_links_per_page=0)


def test_a_day_that_does_not_exist_gives_way_to_that_of_the_feed(tmp_path):
    def page(number, head=""):
        html = f"<html><head><title>Council {number} votes</title>{head}</head><body><article>{BODY}</article>"
        return (f"http://s.example/a/{number}", "text/html", f"{html}</body></html>")

    meta = '<meta property="article:published_time" content="2024-02-30">'
    entry = "<item><title>T</title><link>http://s.example/a/1</link><pubDate>{}</pubDate></item>"
    days = ("Fri, 30 Feb 2024 10:00:00 GMT", "2024-02-31", "2024-02-29", "soon")
    feed = FEED.replace("</channel>", "".join(map(entry.format, days)) + "</channel>")
    responses = [page(1, meta), page(2), ("http://s.example/rss", "text/xml", feed)]
    counts = run(tmp_path, warc=[warc(tmp_path / "a.warc.gz", responses)])
    assert counts["tallies"] == {"articles": 2, "hubs": 1}
    articles = parquet.read_stream(str(tmp_path / "out/articles"), Article)
    assert {article.url[-1]: article.byline_date for article in articles} == {
        "1": datetime.date(2024, 2, 29),  # from the feed
        "2": None,
    }


def test_a_canonical_url_that_many_articles_share_is_of_none(tmp_path):
    def page(number, shared):
        link = f'<link rel="canonical" href="/a/{shared}-story-of-the-day">'
        return article_page(f"Story number {number} of the day").replace("<head>", f"<head>{link}")

    own = [f"http://s.example/news/{number}-story-of-the-day" for number in range(5)]
    responses = [(url, "text/html", page(number, number // 3).encode()) for number, url in enumerate(own)]
    run(tmp_path, warc=[warc(tmp_path / "a.warc.gz", responses)])
    articles = list(parquet.read_stream(f"{tmp_path}/out/articles", Article))
    two = ["http://s.example/a/1-story-of-the-day"] * 2  # may be two versions of one article
    assert sorted(one.url for one in articles) == sorted([*own[:3], *two])
    assert all(one.doc_id == make_doc_id(one.url) for one in articles)


def test_what_feeds_say_reaches_an_article_however_their_links_lead_there(tmp_path):
    """By redirects in several steps, a refresh, another form of an escape, and the page's own URL."""
    links = ("/r/1", "/go/2", "/%64%c3%bc-3", "/4?from=feed")
    items = "".join(
        f"<item><title>The story behind {link}</title><link>{link}</link><pubDate>2021-03-05</pubDate></item>"
        for link in links
    )
    refresh = '<html><head><meta http-equiv="refresh" content="0; url=/a/2"></head><body>Moved</body></html>'
    own = '<link rel="canonical" href="/a/4">'

    def story(title, head=""):
        return f"<html><head><title>{title}</title>{head}</head><body><article><h1>{title}</h1>{BODY}</article></body>"

    pages = [
        ("http://s.example/feed", 200, f"<rss><channel><title>Floods</title>{items}</channel></rss>", "text/xml", ""),
        ("http://s.example/r/1", 301, "", "text/html", "/R/1"),
        ("http://s.example/R/1", 302, "", "text/html", "https://www.s.example/a/1"),
        ("http://s.example/a/1", 200, story("Council raises embankment"), "text/html", ""),
        ("http://s.example/go/2", 200, refresh, "text/html", ""),
        ("http://s.example/a/2", 200, story("Council lowers embankment"), "text/html", ""),
        ("http://s.example/d%C3%BC-3", 200, story("Council paints embankment"), "text/html", ""),
        ("http://s.example/4?from=feed", 200, story("Council sells embankment", own), "text/html", ""),
    ]
    buffer = io.BytesIO()
    writer = WarcWriter(buffer, "test")
    for url, status, body, kind, location in pages:
        headers = (("Content-Type", kind), *([("Location", location)] if location else []))
        writer.write(Fetched(url, status, "OK", headers, body.encode()))
    (tmp_path / "a.warc.gz").write_bytes(buffer.getvalue())
    counts = run(tmp_path, warc=[str(tmp_path / "a.warc.gz")])
    assert (counts["in"], counts["out"]) == (8, 5)
    articles = {article.url: article for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    assert sorted(articles) == [f"http://s.example/{path}" for path in ("a/1", "a/2", "a/4", "d%C3%BC-3")]
    (hub,) = parquet.read_stream(str(tmp_path / "out/hubs"), Hub)
    assert hub.doc_ids == tuple(sorted(article.doc_id for article in articles.values()))
    for article in articles.values():
        assert (article.byline_date, article.date_source) == (datetime.date(2021, 3, 5), "feed")
        assert article.hubs == (hub.hub_id,)
        assert len(article.anchor_texts) == 1


def test_hubs_have_the_articles_whose_canonical_url_many_pages_share(tmp_path):
    items = "".join(f"<item><title>No. {number}</title><link>/{number}</link></item>" for number in range(3))
    own = '<link rel="canonical" href="/section/index.html">'
    pages = [
        (
            f"http://s.example/{number}",
            "text/html",
            f"<html><head><title>{title}</title>{own}</head><body><article><h1>{title}</h1>{BODY}</article></body>",
        )
        for number, title in enumerate(("Council raises embankment", "Owl settles on library", "Tunnel is shut"))
    ]
    feed = ("http://s.example/feed", "text/xml", f"<rss><channel><title>F</title>{items}</channel></rss>")
    run(tmp_path, warc=[warc(tmp_path / "a.warc.gz", [feed, *pages])])
    articles = {article.url: article for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    (hub,) = parquet.read_stream(str(tmp_path / "out/hubs"), Hub)
    assert sorted(articles) == [f"http://s.example/{number}" for number in range(3)]
    assert hub.doc_ids == tuple(sorted(article.doc_id for article in articles.values()))
    assert [articles[url].anchor_texts for url in sorted(articles)] == [(f"No. {number}",) for number in range(3)]
