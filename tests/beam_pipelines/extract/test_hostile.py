"""Pages made to stop a reader: bounded and counted, and the shard continues."""

import os
import pickle
import struct
import threading

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.warc import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.decoding import decode
from newsembed.beam_pipelines.extract.isolation import (
    Limits,
    PageMemoryError,
    PageReadError,
    PageTimeoutError,
    Reader,
    reader,
)
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.beam_pipelines.extract.page import ArticlePage, ExtractedPage, PageTooLargeError, extract_page
from newsembed.beam_pipelines.extract.wire import pack
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, DeadLetter

SENTENCE = (
    "The council of the river town voted late on Tuesday to raise the embankment "
    "before the autumn rains arrive, it said. "
)
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
ANSWERS = 4  # the descriptor by which the reading process answers: the second one that it opens
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
        "<div>" * 200_000 + BODY,
        "<a href=/x>x" * 40_000,
        "<table><tr><td>" * 60_000,
        "<p>" + "a" * 12_000_000,
        "<!--" * 1_000,
        "<",
        "",
    ],
)
def test_a_page_of_nothing_else_is_a_page_without_an_article(html):
    page = extract_page(html, URL)
    assert isinstance(page, ExtractedPage)
    assert page.article is None


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        (
            "naïve – “déjà vu”".encode(),
            "iso-8859-1",
            "naïve – “déjà vu”",
        ),  # a header that every server of a company sends
        ("naïve “déjà”".encode("windows-1252"), "utf-8", "naïve “déjà”"),
        ("<meta charset=shift_jis>日本の記事".encode("shift_jis"), "", "<meta charset=shift_jis>日本の記事"),
        ("<meta charset=utf-4>naïve".encode("latin-1"), "zip", "<meta charset=utf-4>naïve"),
        ("\ufeffmarked".encode("utf-16-le"), "", "marked"),
        (b"\xef\xbb\xbfmarked", "", "marked"),
    ],
)
def test_the_bytes_count_more_than_the_declared_charset(raw, charset, text):
    assert decode(raw, charset) == text


def test_binary_data_is_not_text():
    assert decode(bytes(range(256)) * 20, "utf-8") is None


def spin():
    while True:
        pass


def swallow():
    kept = []
    while True:
        kept.append(bytearray(1 << 24))


def test_the_child_process_ends_at_its_limits_and_the_next_call_works():
    bounded = Reader(Limits(seconds=0.5, megabytes=256))
    try:
        assert bounded.call(max, 3, 4) == 4
        first = bounded.call(os.getpid)
        assert bounded.call(os.getpid) == first != os.getpid()
        with pytest.raises(PageTimeoutError, match=r"longer than 0\.5 seconds"):
            bounded.call(eval, "sum(1 for _ in iter(int, 1))")  # never returns to Python's loop of signals
        with pytest.raises(PageMemoryError, match="256 MB"):
            bounded.call(bytearray, 1 << 30)
        with pytest.raises(PageMemoryError, match="ended with 3"):
            bounded.call(eval, "__import__('os')._exit(3)")  # by its name: `make coverage` replaces the function
        with pytest.raises(PageReadError, match="ValueError: invalid literal"):
            bounded.call(int, "x")
        with pytest.raises(PageReadError, match="TypeError: got a value of type complex"):
            bounded.call(complex, 1, 2)
        assert bounded.call(max, 5, 6) == 6
    finally:
        bounded.close()


def test_what_a_taken_over_process_sends_is_never_run(tmp_path):
    class Harm:
        def __reduce__(self):
            return open, (str(tmp_path / "harmed"), "w")

    bounded = Reader(Limits(seconds=5.0, megabytes=256))
    try:
        bounded.call(os.getpid)
        for raw in (pickle.dumps(("value", Harm())), b"", b"\xff" * 99, pack(("value", 1))[:-1], pack(7)):
            sent = struct.pack("<Q", len(raw)) + raw
            # The child writes an answer of its own before the one that Reader waits for.
            script = f"__import__('os').write({ANSWERS}, {sent!r})"
            with pytest.raises(PageReadError, match="the reading process gave no answer"):
                bounded.call(eval, script)
            assert bounded.call(max, 5, 6) == 6
        huge = struct.pack("<Q", 1 << 40)
        with pytest.raises(PageReadError, match="a message of 1099511627776 bytes"):
            bounded.call(eval, f"__import__('os').write({ANSWERS}, {huge!r})")
    finally:
        bounded.close()
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
    writer_path = tmp_path / "a.warc.gz"
    with writer_path.open("wb") as sink:
        writer = WarcWriter(sink, "test")
        for number, html in enumerate((GOOD, slow, GOOD, "<i>" * 1_000_000, GOOD)):
            writer.write(
                Fetched(
                    f"http://s.example/a/{number}",
                    200,
                    "OK",
                    (("Content-Type", "text/html; charset=utf-8"),),
                    html.encode(),
                )
            )
    done = jobs.execute(
        JOB,
        {"warc": [str(writer_path)]},
        str(tmp_path / "out"),
        ExtractOptions(page_seconds=3.0, page_megabytes=2_000),
        beam_args=["--direct_num_workers=1"],
    )
    counts = done.manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"]) == (5, 3, {})
    assert counts["failed"]["too_large"] == counts["failed"].get("timeout") == 1, counts
    assert {article.title for article in parquet.read_stream(str(tmp_path / "out/articles"), Article)} == {
        "Council raises embankment"
    }
    letters = [
        letter
        for path in (tmp_path / "out/dead_letters").rglob("*.parquet")
        for letter in parquet.read_records(str(path), DeadLetter)
    ]
    assert {letter.key: letter.reason for letter in letters} == {
        "http://s.example/a/1": "timeout",
        "http://s.example/a/3": "too_large",
    }


def test_limits_that_would_reject_every_page_are_rejected():
    with pytest.raises(InputError, match="--page_seconds: got 0, expected at least"):
        ExtractOptions(page_seconds=0)
    assert isinstance(extract_page(GOOD, URL).article, ArticlePage)
