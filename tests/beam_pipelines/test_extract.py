"""extract: pages, feeds, rows, joins, and broken inputs of all kinds."""

import datetime
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.warc import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.dates import day_in_url, parse_day
from newsembed.beam_pipelines.extract.feeds import parse_feed
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.beam_pipelines.extract.people import people
from newsembed.beam_pipelines.extract.urls import canonical_url, registered_domain
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, DeadLetter, Hub, Rejection, make_doc_id

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


def letters(tmp_path):
    return [
        letter
        for path in sorted((tmp_path / "out/dead_letters").rglob("*.parquet"))
        for letter in parquet.read_records(str(path), DeadLetter)
    ]


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
    assert (article.title, article.authors, article.publisher) == (
        "Council raises embankment",
        ("Ann Lee", "Bo Chen"),
        "s.example",
    )
    assert (article.byline_date, article.modified_date, article.date_source) == (
        datetime.date(2021, 3, 2),
        datetime.date(2021, 3, 4),
        "json-ld",
    )
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
    assert {letter.key for letter in letters(tmp_path)} >= {"http://s.example/junk", "http://s.example/gone"}


def test_a_feed_supplies_dates_and_authors_that_pages_lack(tmp_path):
    bare = f"<html><head><title>Council raises embankment</title></head><body><article>{BODY}</article></body></html>"
    feed = """<rss xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Floods</title>
      <item><title>One</title><link>http://s.example/a/1</link><pubDate>Mon, 01 Mar 2021 23:30:00 -0500</pubDate>
        <dc:creator>By Ann Lee and Bo Chen</dc:creator></item>
      <item><title>Two</title><link>http://s.example/a/2</link><pubDate>Tue, 09 Mar 2021 10:00:00 GMT</pubDate></item>
      </channel></rss>"""
    path = warc(
        tmp_path / "a.warc.gz",
        [
            ("http://s.example/a/1", "text/html", bare),
            ("http://s.example/a/2", "text/html", article_page()),
            ("http://s.example/f", "text/xml", feed),
        ],
    )
    assert run(tmp_path, warc=[path])["out"] == 3
    one, two = sorted(parquet.read_stream(str(tmp_path / "out/articles"), Article), key=lambda article: article.url)
    assert (one.byline_date, one.date_source, one.authors) == (
        datetime.date(2021, 3, 2),
        "feed",
        ("Ann Lee", "Bo Chen"),
    )
    assert one.sources == ("authors: feed", "body: markup", "byline_date: feed", "title: markup")
    assert (two.byline_date, two.date_source) == (datetime.date(2021, 3, 2), "json-ld"), (
        "the page's own word goes first"
    )


def test_a_hub_whose_address_lost_a_slash_has_its_publisher(tmp_path):
    path = warc(
        tmp_path / "a.warc.gz",
        [
            ("http:/www.s.example/weather", "text/html", hub_page()),
            ("http://s.example/a/1", "text/html", article_page()),
        ],
    )
    run(tmp_path, warc=[path])
    (hub,) = parquet.read_stream(str(tmp_path / "out/hubs"), Hub)
    assert (hub.url, hub.publisher) == ("http://s.example/weather", "s.example")


def test_link_texts_that_most_pages_use_come_first_and_are_capped(tmp_path):
    pages = [("http://s.example/a/1", "text/html", article_page())]
    for number in range(30):
        texts = [f"A text of hub {number} only", "The text of every hub"]
        links = "".join(f'<li><a href="http://s.example/a/1">{text}</a></li>' for text in texts)
        others = "".join(
            f'<li><a href="http://s.example/b/{n}">Another headline, number {n}</a></li>' for n in range(9)
        )
        pages.append(
            (
                f"http://s.example/hub-{number}",
                "text/html",
                f"<html><title>Hub {number}</title><body><ul>{links}{others}</ul></body></html>",
            )
        )
    run(tmp_path, warc=[warc(tmp_path / "a.warc.gz", pages)])
    (article,) = parquet.read_stream(str(tmp_path / "out/articles"), Article)
    assert len(article.anchor_texts) == 20
    assert article.anchor_texts[0] == "The text of every hub"


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
    assert (first.url, first.title, first.byline_date, first.publisher) == (
        "http://n.example/1",
        "A title",
        datetime.date(2020, 5, 1),
        "n.example",
    )
    assert second.byline_date is None
    (hub,) = parquet.read_stream(str(tmp_path / "out/hubs"), Hub)
    assert (hub.title, hub.publisher, len(hub.doc_ids)) == ("top/us", "n.example", 2)
    found = {letter.key.rpartition(":")[2]: letter for letter in letters(tmp_path)}
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
    (letter,) = letters(tmp_path)
    assert letter.key == f"{file}:{counts['out'] + 1}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jsonl.gz", "compression differs from the file extension"),
        ("a.jsonl.zst", "compression differs from the file extension"),
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


def test_a_front_page_is_a_hub_whatever_it_says_of_itself():
    teasers = "".join(
        f"<p><a href='/a/{n}'>A headline about something number {n}</a> {SENTENCE}</p>" for n in range(12)
    )
    html = (
        f'<html><head><title>Site</title><meta property="og:type" content="article"></head><body>{teasers}'
        f"</body></html>"
    )
    assert extract_page(html, "http://s.example/").hub_title == "Site"
    assert extract_page(html, "http://s.example/a/99").article is not None


def test_invalid_inputs_are_rejected_with_a_remedy(tmp_path):
    for name, content, message in (
        ("a.warc.gz", b"PK not a warc", "expected gzip or WARC"),
        ("a.csv", b"a,b", "unknown type of article file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            run(tmp_path, **{"warc" if "warc" in name else "articles": [str(tmp_path / name)]})
    with pytest.raises(InputError, match="--warc, --articles: no input"):
        run(tmp_path)


def test_pages_without_a_title_or_text_are_rejected():
    assert extract_page("<html><body><p>hi</p></body></html>", "http://s.example/x").rejection in (
        Rejection.NOT_AN_ARTICLE,
        Rejection.NO_CONTENT,
    )
    page = extract_page(hub_page(), "http://s.example/weather")
    assert page.hub_title == "Weather"
    assert len(page.links) == 12


def test_dates_people_and_urls():
    assert parse_day("2021-02-30") is None
    assert parse_day("0001-01-01T00:00:00+05:00") == datetime.date(1, 1, 1)
    assert day_in_url("http://s.example/2016/11/08/story") == datetime.date(2016, 11, 8)
    assert day_in_url("http://s.example/2016/13/08/story") is None
    assert people("By Ann Lee and Bo Chen, bo@x.org; Ann Lee") == ("Ann Lee", "Bo Chen")
    assert people("Por Luis Ruiz") == ("Luis Ruiz",)
    assert registered_domain("http://news.bbc.co.uk/1") == "bbc.co.uk"
    assert registered_domain("http://127.0.0.1:80/") == "127.0.0.1"
    assert canonical_url("http:/www.s.example/a") == "http://s.example/a"
    assert canonical_url("javascript:void(0)") == ""


@given(
    st.from_regex(
        r"https?://[a-z]{1,5}\.[a-z]{2,3}(:[0-9]{2,4})?(/[a-z0-9%/.]{0,10})?(\?[a-z=&0-9_]{0,12})?(#[a-z]*)?",
        fullmatch=True,
    )
)
def test_canonical_urls_are_stable(url):
    once = canonical_url(url)
    assert canonical_url(once) == once
    assert "#" not in once
    assert (
        canonical_url(url.replace("http:", "https:", 1)) == canonical_url(url.replace("https:", "http:", 1))
        or ":" in url[8:]
    )


@given(st.binary(max_size=300))
def test_any_bytes_are_a_feed_or_not(raw):
    for start in (b"", b"<rss>", b"<feed", b"{"):
        feed = parse_feed(start + raw)
        assert feed is None or isinstance(feed.entries, tuple)


def test_days_that_do_not_exist_are_counted_and_no_other_day_takes_their_place(tmp_path):
    row = {"url": "https://n.example/1", "title": "A title", "body": "text"}
    stated = ["2024-02-30", "99999-12-31", "2024-13-01T10:00:00Z", "2024-02-29", "1/21", None]
    lines = [json.dumps({**row, "url": f"https://n.example/{n}", "byline_date": day}) for n, day in enumerate(stated)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    counts = run(tmp_path, articles=[str(path)])
    assert (counts["out"], counts["tallies"]["impossible_dates"]) == (6, 3)
    found = {article.url[-1]: article for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    days = [found[str(number)].byline_date for number in range(6)]
    assert days == [None, None, None, datetime.date(2024, 2, 29), None, None]


@pytest.mark.parametrize("day", ["2024-02-30", "2024-02-30T10:00:00Z", "99999-12-31"])
def test_a_page_that_states_a_day_that_does_not_exist_has_none(day):
    meta = f'<meta property="article:published_time" content="{day}">'
    html = f"<html><head><title>Council raises embankment</title>{meta}</head><body><article>{BODY}</article></body>"
    article = extract_page(html, "http://s.example/a/1").article
    assert (article.byline_date, article.date_source) == (None, "")


def test_titles_of_rows_are_cleaned_and_cut_as_those_of_pages(tmp_path):
    titles = ["Council raises embankment - The River News", "Council \0raises\n embankment | n.example", "word " * 400]
    lines = [
        json.dumps({"url": f"https://n.example/{n}", "title": title, "body": "text", "publisher": "The River News"})
        for n, title in enumerate(titles)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    run(tmp_path, articles=[str(path)])
    found = {article.url[-1]: article.title for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    assert found["0"] == found["1"] == "Council raises embankment"
    assert found["2"] == ("word " * 400)[:500]


def test_dead_letters_of_images_are_the_same_in_every_run(tmp_path):
    path = warc(tmp_path / "a.warc.gz", [("http://s.example/i.png", "image/png", b"no image")])
    run(tmp_path, warc=[path])
    (letter,) = letters(tmp_path)
    assert letter.detail == "UnidentifiedImageError: cannot identify image file <_io.BytesIO object>"


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
    assert done.manifest["counts"]["tallies"] == {
        "hubs": 2,
        "links_beyond_limit": 3,
        "feed_entries_beyond_5000": 2,
    }
    with pytest.raises(InputError, match="--max_links_per_page: got 0, expected at least 1"):
        ExtractOptions(max_links_per_page=0)


def test_days_that_do_not_exist_are_counted_for_pages_and_feeds(tmp_path):
    def page(number, head="", body="", path="a"):
        html = f"<html><head><title>Council {number} votes</title>{head}</head><body><article>{body}{BODY}</article>"
        return (f"http://s.example/{path}/{number}", "text/html", f"{html}</body></html>")

    meta = '<meta property="article:published_time" content="2024-02-30">'
    entry = "<item><title>T</title><link>http://s.example/a/1</link><pubDate>{}</pubDate></item>"
    days = ("Fri, 30 Feb 2024 10:00:00 GMT", "2024-02-31", "2024-02-29", "soon")
    responses = [
        page(1, head=meta),
        page(2, body='<time datetime="2023-02-29">today</time>', head='<meta name="date" content="2023-02-28">'),
        page(3, path="2024/02/30"),
        page(4, body="<p>Published 2024-06-31</p>"),
        page(5, head='<meta name="date" content="2024-02-29">', body='<time datetime="2024-02-29">today</time>'),
        page(6),
        (
            "http://s.example/rss",
            "text/xml",
            FEED.replace("</channel>", "".join(map(entry.format, days)) + "</channel>"),
        ),
    ]
    counts = run(tmp_path, warc=[warc(tmp_path / "a.warc.gz", responses)])
    assert counts["tallies"] == {"articles": 6, "hubs": 1, "impossible_dates": 4 + 2}
    found = {
        article.url: article.byline_date for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)
    }
    days = {url.rpartition("/")[2]: day for url, day in found.items()}
    assert days["1"] == datetime.date(2024, 2, 29)  # from the feed
    assert (days["2"], days["5"]) == (datetime.date(2023, 2, 28), datetime.date(2024, 2, 29))
    assert days["3"] is days["4"] is days["6"] is None
