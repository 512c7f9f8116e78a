"""extract: pages, feeds, rows, joins, and broken inputs of all kinds."""

import dataclasses
import datetime
import gzip
import io
import json
import random

import pytest
import zstandard
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Hub, make_doc_id
from newsembed.tests.example_inputs import dead_letters, manifest_of
from newsembed.tests.river_page import SENTENCE
from newsembed.tests.warcs import write_warc
from PIL import Image

HOST = "http://s.example"
BODY = "".join(f"<p>{SENTENCE * 3} Paragraph {number}.</p>" for number in range(6))


def story(title="Council raises embankment", head=""):
    return (
        f"<html><head>{head}<title>{title}</title></head><body><article><h1>{title}</h1>{BODY}</article></body></html>"
    )


def stated_story(title="Council raises embankment"):
    """A story with JSON-LD."""
    authors = [{"name": "Ann Lee"}, {"name": "By Bo Chen"}]
    days = {"datePublished": "2021-03-01T23:30:00-05:00", "dateModified": "2021-03-04"}
    ld = json.dumps({"@type": "NewsArticle", "headline": title, "author": authors, **days})
    meta = f'<meta property="og:image" content="{HOST}/i.png"><meta name="keywords" content="flood, council">'
    return story(title, f'{meta}<script type="application/ld+json">{ld}</script>')


def hub_page():
    links = "".join(f'<li><a href="/a/{n}">A headline about something number {n}</a></li>' for n in range(12))
    return f"<html><head><title>Weather</title></head><body><h1>Weather</h1><ul>{links}</ul></body></html>"


def feed(*items, title="Floods"):
    """A feed of items given as (link, title, day)."""
    listed = (f"<title>{words}</title><link>{link}</link><pubDate>{day}</pubDate>" for link, words, day in items)
    return f"<rss><channel><title>{title}</title>{''.join(f'<item>{item}</item>' for item in listed)}</channel></rss>"


def png():
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((64, 64)).save(buffer, "PNG")
    return buffer.getvalue()


def run(tmp_path, *responses, cut=0, options=None, **inputs):
    """Runs the job on a WARC file of responses whose URLs lack the host; returns its counts."""
    if responses:
        found = [(f"{HOST}{path}", *response) for path, *response in responses]
        inputs["warc"] = [write_warc(tmp_path / "a.warc.gz", *found, cut=cut)]
    return manifest_of(JOB, inputs, tmp_path / "out", options)["counts"]


def articles_of(tmp_path):
    return list(parquet.read_stream(f"{tmp_path}/out/articles", Article))


def hubs_of(tmp_path):
    return list(parquet.read_stream(f"{tmp_path}/out/hubs", Hub))


def test_pages_feeds_and_images_are_joined(tmp_path):
    counts = run(
        tmp_path,
        ("/a/1?utm_source=x", "text/html", stated_story()),
        ("/weather", "text/html; charset=utf-8", hub_page()),
        ("/feed", "application/rss+xml", feed((f"{HOST}/a/1", "Embankment to rise, says council", ""))),
        ("/i.png", "image/png", png()),
    )
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (4, 4, {}, {})
    assert counts["tallies"] == {"articles": 1, "hubs": 2, "images": 1}
    (article,) = articles_of(tmp_path)
    hubs = {hub.title: hub for hub in hubs_of(tmp_path)}
    assert set(hubs) == {"Weather", "Floods"}
    assert hubs["Weather"].doc_ids == (article.doc_id,), "members that are not articles of the corpus are dropped"
    assert len(article.image_hash) == 8
    assert dataclasses.replace(article, body="", image_hash=None, fetched_at=None, sources=()) == Article(
        make_doc_id(f"{HOST}/a/1"),
        f"{HOST}/a/1?utm_source=x",
        "s.example",
        "Council raises embankment",
        "",
        ("Ann Lee", "Bo Chen"),
        datetime.date(2021, 3, 2),
        modified_date=datetime.date(2021, 3, 4),
        date_source="json-ld",
        keywords=("flood", "council"),
        anchor_texts=("A headline about something number 1", "Embankment to rise, says council"),
        image_url=f"{HOST}/i.png",
        hubs=tuple(sorted(hub.hub_id for hub in hubs.values())),
    )


def test_every_broken_response_gets_a_reason_and_nothing_else_is_lost(tmp_path):
    counts = run(
        tmp_path,
        ("/junk", "text/html", bytes(range(256)) * 20),
        ("/gone", "text/html", "gone", 404),
        ("/i.png", "image/png", b"no image"),
        ("/x.css", "text/css", "a{}"),
        ("/empty", "text/html", "<html><body></body></html>"),
        ("/a/1", "text/html", stated_story()),
        ("/a/2", "text/html", stated_story() * 3),
        cut=400,
    )
    assert (counts["in"], counts["out"]) == (7, 1)
    assert counts["rejected"] == {"not_ok_status": 1, "not_html": 1, "no_content": 1}
    assert sum(counts["failed"].values()) == 3
    assert counts["failed"]["undecodable"] == counts["failed"]["parser_error"] == 1
    assert {letter.key for letter in dead_letters(tmp_path / "out")} >= {f"{HOST}/junk", f"{HOST}/gone"}


def test_rows_of_jsonl_and_parquet(tmp_path):
    good = {"url": "https://www.n.example/1", "title": " A  title ", "body": "text", "authors": ["Ann Lee"]}
    good |= {"published_at": "2020-05-01T23:00:00Z", "feeds": ["top/us"]}
    second = {"url": "https://n.example/2", "byline_date": "1/21", "published_at": None}
    rows = [good, None, {**good, "title": ""}, "", {**good, "url": "/relative", "feeds": []}, {**good, **second}]
    lines = ["{no json" if row is None else row and json.dumps(row) for row in rows]
    file = tmp_path / "rows.jsonl.zst"
    file.write_bytes(zstandard.compress("\n".join(lines).encode()))
    counts = run(tmp_path, articles=[str(file)])
    assert (counts["in"], counts["out"], counts["failed"]) == (5, 3, {"broken_record": 1, "missing_field": 1})
    first, unlinked, second = articles_of(tmp_path)
    assert (first.url, first.title, first.publisher) == ("https://www.n.example/1", "A title", "n.example")
    assert (unlinked.url, unlinked.publisher) == ("", "")
    assert (first.byline_date, second.byline_date) == (datetime.date(2020, 5, 1), None)
    (hub,) = hubs_of(tmp_path)
    assert (hub.title, hub.publisher, len(hub.doc_ids)) == ("top/us", "n.example", 2)
    found = {letter.key.rpartition(":")[2]: letter for letter in dead_letters(tmp_path / "out")}
    assert found["2"].reason == "broken_record"
    assert found["3"].detail.startswith("title:")


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_lines_before_a_cut_are_kept_and_the_cut_is_counted(tmp_path, kind):
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
    assert [article.title for article in articles_of(tmp_path)] == [f"T {n}" for n in range(counts["out"])]
    (letter,) = dead_letters(tmp_path / "out")
    assert letter.key == f"{file}:{counts['out'] + 1}"


@pytest.mark.parametrize(
    ("stream", "name", "message"),
    [
        ("articles", "a.jsonl.gz", "compression differs from its name"),
        ("articles", "a.jsonl.zst", "compression differs from its name"),
        ("articles", "a.parquet", "not a Parquet file"),
        ("articles", "a.txt", "unknown type of file of articles"),
        ("warc", "a.warc.gz", "expected gzip or WARC"),
    ],
)
def test_a_file_that_does_not_match_its_extension_is_rejected(tmp_path, stream, name, message):
    (tmp_path / name).write_bytes(b'{"url": "http://n.example/1"}\n')
    with pytest.raises(InputError, match=message) as raised:
        run(tmp_path, **{stream: [str(tmp_path / name)]})
    assert raised.value.path == str(tmp_path / name)


def test_no_input_is_an_error(tmp_path):
    with pytest.raises(InputError, match="--warc, --articles: no input"):
        run(tmp_path)


def test_unpaired_surrogates_are_replaced(tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        '{"url": "http://n.example/\\ud83d", "title": "cut \\ud83d", "body": "text \\udc00", "authors": ["\\ud83d"]}\n'
    )
    items = '[{"url": "http://s.example/\\ud83d", "title": "\\udc00"}]'
    json_feed = f'{{"version": "https://jsonfeed.org/version/1.1", "title": "a \\ud83d", "items": {items}}}'
    page = ("/a/1", "text/html", stated_story("Council raises embankment @@").replace("@@", "\\ud83d"))
    rows = [str(tmp_path / "rows.jsonl")]
    assert run(tmp_path, page, ("/f", "application/feed+json", json_feed), articles=rows)["out"] == 3
    assert {one.title for one in articles_of(tmp_path)} == {"cut \ufffd", "Council raises embankment \ufffd"}


def test_links_and_entries_beyond_the_limit_are_counted(tmp_path):
    entries = ("/rss", "text/xml", feed(*[("/a/1", "T", "")] * 5_002))
    counts = run(tmp_path, ("/weather", "text/html", hub_page()), entries, options=ExtractOptions(max_links_per_page=9))
    assert counts["tallies"] == {"hubs": 2, "links_beyond_limit": 3, "feed_entries_beyond_5000": 2}


def test_a_day_that_does_not_exist_gives_way_to_that_of_the_feed(tmp_path):
    meta = '<meta property="article:published_time" content="2024-02-30">'
    days = ("Fri, 30 Feb 2024 10:00:00 GMT", "2024-02-31", "2024-02-29", "soon")
    pages = [("/a/1", "text/html", story("Council 1 votes", meta)), ("/a/2", "text/html", story("Council 2 votes"))]
    counts = run(tmp_path, *pages, ("/rss", "text/xml", feed(*(("/a/1", "T", day) for day in days))))
    assert counts["tallies"] == {"articles": 2, "hubs": 1}
    found = {article.url[-1]: article.byline_date for article in articles_of(tmp_path)}
    assert found == {"1": datetime.date(2024, 2, 29), "2": None}


def test_a_canonical_url_that_many_articles_share_is_of_none(tmp_path):
    paths = [f"/news/{number}-story-of-the-day" for number in range(5)]
    links = [f'<link rel="canonical" href="/a/{number // 3}-story-of-the-day">' for number in range(5)]
    titles = [f"Story number {number} of the day" for number in range(5)]
    run(tmp_path, *((path, "text/html", story(*of)) for path, *of in zip(paths, titles, links, strict=True)))
    articles = articles_of(tmp_path)
    two = ["/a/1-story-of-the-day"] * 2  # may be two versions of one article
    assert sorted(one.url for one in articles) == sorted(f"{HOST}{path}" for path in [*paths[:3], *two])
    assert all(one.doc_id == make_doc_id(one.url) for one in articles)


def test_what_feeds_say_reaches_an_article_however_their_links_lead_there(tmp_path):
    """By redirects in several steps, a refresh, another form of an escape, and the page's own URL."""
    links = ("/r/1", "/go/2", "/%64%c3%bc-3", "/4?from=feed")
    refresh = '<html><head><meta http-equiv="refresh" content="0; url=/a/2"></head><body>Moved</body></html>'
    counts = run(
        tmp_path,
        ("/feed", "text/xml", feed(*((link, f"The story behind {link}", "2021-03-05") for link in links))),
        ("/r/1", "text/html", "", 301, "/R/1"),
        ("/R/1", "text/html", "", 302, "https://www.s.example/a/1"),
        ("/a/1", "text/html", story("Council raises embankment")),
        ("/go/2", "text/html", refresh),
        ("/a/2", "text/html", story("Council lowers embankment")),
        ("/d%C3%BC-3", "text/html", story("Council paints embankment")),
        ("/4?from=feed", "text/html", story("Council sells embankment", '<link rel="canonical" href="/a/4">')),
    )
    assert (counts["in"], counts["out"]) == (8, 5)
    articles = {article.url: article for article in articles_of(tmp_path)}
    assert sorted(articles) == [f"{HOST}/{path}" for path in ("a/1", "a/2", "a/4", "d%C3%BC-3")]
    (hub,) = hubs_of(tmp_path)
    assert hub.doc_ids == tuple(sorted(article.doc_id for article in articles.values()))
    for article in articles.values():
        assert (article.byline_date, article.date_source) == (datetime.date(2021, 3, 5), "feed")
        assert article.hubs == (hub.hub_id,)
        assert len(article.anchor_texts) == 1


def test_hubs_have_the_articles_whose_canonical_url_many_pages_share(tmp_path):
    own = '<link rel="canonical" href="/section/index.html">'
    titles = ("Council raises embankment", "Owl settles on library", "Tunnel is shut")
    pages = [(f"/{number}", "text/html", story(title, own)) for number, title in enumerate(titles)]
    run(tmp_path, ("/feed", "text/xml", feed(*((f"/{number}", f"No. {number}", "") for number in range(3)))), *pages)
    articles = {article.url: article for article in articles_of(tmp_path)}
    (hub,) = hubs_of(tmp_path)
    assert sorted(articles) == [f"{HOST}/{number}" for number in range(3)]
    assert hub.doc_ids == tuple(sorted(article.doc_id for article in articles.values()))
    assert [articles[url].anchor_texts for url in sorted(articles)] == [(f"No. {number}",) for number in range(3)]
