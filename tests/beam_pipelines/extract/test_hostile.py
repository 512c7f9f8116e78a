"""Pages made to stop a reader: bounded and counted, and the shard continues; messages of the reading process."""

import contextlib
import datetime
import io
import os
import pickle
import re
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.feeds import Feed
from newsembed.beam_pipelines.extract.isolation import Limits, PageError, Reader, pack, read_payload, reader, unpack
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.beam_pipelines.extract.page import ExtractedPage, PageTooLargeError, extract_page
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Rejection
from newsembed.tests.example_inputs import dead_letters, manifest_of
from newsembed.tests.river_page import SENTENCE
from newsembed.tests.warcs import write_warc
from PIL import Image

BODY = "".join(f"<p>{SENTENCE * 2} Paragraph {number}.</p>" for number in range(6))
GOOD = (
    f"<html><head><title>Council raises embankment</title><meta name='date' content='2021-03-01'></head>"
    f"<body><article>{BODY}</article></body></html>"
)
URL = "http://s.example/a/1"

READ = {
    "a nesting bomb after the text": GOOD.replace("</article>", "</article>" + "<div>" * 100_000),
    "huge spans": GOOD.replace(
        "<article>", f"<table><tr><td colspan=1000000000 rowspan=999999999>{SENTENCE}</td></tr></table><article>"
    ),
    "an entity bomb": '<!DOCTYPE html [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
    + GOOD.replace("<article>", "<p>&c;&c;&c;</p><article>"),
    "NUL bytes": GOOD.replace("council", "coun\x00cil").replace("<article", "\x00<article"),
    "half a surrogate pair": GOOD.replace("<article>", "<article>\ud83d"),
    "deep JSON": GOOD.replace("</head>", '<script type="application/ld+json">' + "[" * 100_000 + "</script></head>"),
    "a root that is closed": "<html lang='en'/>" + GOOD.removeprefix("<html>"),
    "no address": GOOD,
}
REFUSED = {
    "50 MB of one tag": "<p>" * 17_000_000,
    "a million tags": "<i>" * 1_000_000,
    "a tag with 300 000 attributes": "<div " + " ".join(f"a{number}=b" for number in range(300_000)) + ">",
}


@pytest.mark.parametrize("name", READ)
def test_the_text_around_is_still_read(name):
    page = extract_page(READ[name], "http://[x" if name == "no address" else URL)
    assert page.article is not None
    assert page.article.title == "Council raises embankment"
    assert page.article.body.count("Paragraph") == 6


@pytest.mark.parametrize("name", REFUSED)
def test_excessive_pages_are_rejected_before_parsing(name):
    with pytest.raises(PageTooLargeError, match="got .* expected at most"):
        extract_page(REFUSED[name], URL)


@pytest.mark.parametrize(
    "html",
    [
        *("<div>" * 200_000 + BODY, "<a href=/x>x" * 40_000, "<table><tr><td>" * 60_000),
        *("<p>" + "a" * 12_000_000, "<!--" * 1_000, "<", ""),
    ],
)
def test_a_page_of_nothing_else_is_a_page_without_an_article(html):
    page = extract_page(html, URL)
    assert isinstance(page, ExtractedPage)
    assert page.article is None


def test_the_child_process_ends_at_its_limits_and_the_next_call_works():
    with contextlib.closing(Reader(Limits(seconds=0.5, megabytes=256))) as bounded:
        assert bounded.call(max, 3, 4) == 4
        first = bounded.call(os.getpid)
        assert bounded.call(os.getpid) == first != os.getpid()
        with pytest.raises(PageError, match=r"longer than 0\.5 seconds"):
            bounded.call(eval, "sum(1 for _ in iter(int, 1))")  # never returns to Python's loop of signals
        with pytest.raises(PageError, match="256 MB"):
            bounded.call(bytearray, 1 << 30)
        with pytest.raises(PageError, match="ended with 3"):
            bounded.call(eval, "__import__('os')._exit(3)")  # by its name: `make coverage` replaces the function
        with pytest.raises(PageError, match="ValueError: invalid literal"):
            bounded.call(int, "x")
        with pytest.raises(PageError, match="TypeError: got a value of type complex"):
            bounded.call(complex, 1, 2)
        assert bounded.call(max, 5, 6) == 6


def written(bounded, raw):
    """A script that writes bytes to the pipe of the child that runs it."""
    if bounded._child is None:
        bounded.call(os.getpid)
    descriptor = re.search(r"serve\((\d+)", bounded._child.args[-1])[1]
    return f"__import__('os').write({descriptor}, {raw!r})"


def test_what_a_taken_over_process_sends_is_never_run(tmp_path):
    class Harm:
        def __reduce__(self):
            return open, (str(tmp_path / "harmed"), "w")

    with contextlib.closing(Reader(Limits(seconds=5.0, megabytes=256))) as bounded:
        bounded.call(os.getpid)
        harmful = pickle.dumps(("value", Harm()))
        for raw in (harmful, b"", b"\xff" * 99, pack(("value", 1))[:-1], pack(7)):
            # The child writes an answer of its own before the one that Reader waits for.
            script = written(bounded, struct.pack("!i", len(raw)) + raw)
            with pytest.raises(PageError, match="the reading process gave no answer"):
                bounded.call(eval, script)
            assert bounded.call(max, 5, 6) == 6
        huge = struct.pack("!iQ", -1, 1 << 40)
        with pytest.raises(PageError, match="gave no answer: bad message length"):
            bounded.call(eval, written(bounded, huge))
    assert not (tmp_path / "harmed").exists()


def test_each_thread_has_a_reader():
    limits = Limits(5.0, 256)
    pids = [reader(limits).call(os.getpid)]
    thread = threading.Thread(target=lambda: pids.append(reader(limits).call(os.getpid)))
    thread.start()
    thread.join()
    assert len(set(pids)) == 2
    assert reader(limits).call(os.getpid) == pids[0]


def test_the_bounds_hold_inside_a_beam_worker(tmp_path):
    """The slow page is slow in C code, which only the kernel can stop: the parser compares all pairs of attributes."""
    slow = "<html>" + "".join("<p " + " ".join(f"a{number}=b" for number in range(900)) + ">" for _ in range(3_000))
    pages = enumerate((GOOD, slow, GOOD, "<i>" * 1_000_000, GOOD))
    responses = [(f"http://s.example/a/{number}", "text/html; charset=utf-8", html) for number, html in pages]
    inputs = {"warc": [write_warc(tmp_path / "a.warc.gz", *responses)]}
    options = ExtractOptions(page_seconds=2.0, page_megabytes=2_000)
    counts = manifest_of(JOB, inputs, tmp_path / "out", options)["counts"]
    assert (counts["in"], counts["out"], counts["rejected"]) == (5, 3, {})
    assert counts["failed"]["too_large"] == counts["failed"].get("timeout") == 1, counts
    titles = {article.title for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)}
    assert titles == {"Council raises embankment"}
    letters = {letter.key: letter.reason for letter in dead_letters(tmp_path / "out")}
    assert letters == {"http://s.example/a/1": "timeout", "http://s.example/a/3": "too_large"}


DAY = datetime.date(2021, 3, 1)
ARTICLE = Article(
    *("00", "http://s.example/1", "s.example", "A\u2028 title \ud800", "One.\n\nTwo."),
    authors=("Ann Lee", "Bo Chen"),
    byline_date=DAY,
    live_blog=True,
    sources=("title: markup",),
)
VALUES = [
    ExtractedPage(article=ARTICLE, links=(("http://s.example/2", "Two"), ("http://s.example/3", "")), links_beyond=4),
    ExtractedPage(rejection=Rejection.NO_CONTENT, detail="0 characters"),
    ExtractedPage(hub_title="Weather"),
    Feed("F", (("/1", "One"),), (("/1", DAY, ("Ann Lee",)), ("/2", None, ())), 3),
    b"\x00\xff",
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=[type(value).__name__ for value in VALUES])
def test_what_the_process_answers_arrives_unchanged(value):
    kind, found = unpack(pack(("value", value)))
    assert kind == "value"
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, ExtractedPage):
        assert type(found.rejection) is type(value.rejection)


@given(st.binary(max_size=40))
def test_other_bytes_are_no_message(damage):
    raw = pack(("value", VALUES[0]))
    for damaged in (damage, raw[: len(raw) // 2], raw + damage[:1]):
        with contextlib.suppress(ValueError):
            unpack(damaged)
    with pytest.raises(TypeError, match="type set"):
        pack({1})
    with pytest.raises(ValueError, match="KeyError: 'Popen'"):
        unpack(pack({"=": "Popen", "args": ["true"]}))


def png(size, *, flip=False):
    picture = Image.linear_gradient("L").resize((size, size))
    buffer = io.BytesIO()
    (picture.rotate(90) if flip else picture).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_payload_is_read_by_its_kind():
    """A page may turn out to be a feed; images have one hash in every size, and another if they show something else."""

    def read(kind, raw, charset=""):
        return read_payload(99, kind, raw, charset, URL)

    german = GOOD.replace("raises", "räumt").encode("latin-1")
    assert read("page", german, "latin-1").article.title == "Council räumt embankment"
    feed = b"<rss><channel><title>F</title><item><title>One</title><link>/1</link></item></channel></rss>"
    assert read("page", feed) == read("feed", feed) == Feed("F", (("http://s.example/1", "One"),))
    assert read("feed", GOOD.encode()) is None
    assert read("page", bytes(range(256)) * 20) is None
    one, same, other = (read("image", raw) for raw in (png(64), png(200), png(64, flip=True)))
    assert one == same != other
    assert len(one) == 8


def test_an_image_that_would_fill_the_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1_000)
    with pytest.raises(Image.DecompressionBombWarning):
        read_payload(99, "image", png(40), "", URL)


@pytest.mark.parametrize("option", ["page_seconds", "max_links_per_page"])
def test_limits_that_would_reject_every_page_or_link_are_rejected(option):
    with pytest.raises(InputError, match=f"--{option}: got 0, expected at least"):
        ExtractOptions(**{option: 0})
