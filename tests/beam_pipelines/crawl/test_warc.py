"""The files: WARC 1.1 that FastWARC, warcio and extract can read, with valid digests."""

import datetime
import gzip
import io
import json
import re

import pytest
from crawling import crawl, page, stored
from fastwarc.warc import ArchiveIterator, WarcRecordType
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter

URL = "http://www.a.example/1"


@pytest.fixture
def path(tmp_path, web):
    """A crawl of one page, sent gzipped and chunked."""
    raw = gzip.compress(page(text="Ein Gruß.").encode())
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: "
        b"gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    web.add(URL, lambda out: out.write(head + b"%x\r\n" % len(raw) + raw + b"\r\n0\r\n\r\n"))
    crawl(tmp_path, web, URL)
    assert stored(tmp_path) == {URL: page(text="Ein Gruß.").encode()}
    return tmp_path / "out/warc/a.example.warc.gz"


def test_records_name_one_another(path):
    with path.open("rb") as source:
        records = [
            (record.record_type, dict(record.headers), record.verify_block_digest())
            for record in ArchiveIterator(source, parse_http=False)
        ]
    kinds, headers, digests = zip(*records, strict=True)
    assert kinds == (WarcRecordType.warcinfo, WarcRecordType.request, WarcRecordType.response)
    assert all(digests)
    info, request, response = headers
    assert request["WARC-Warcinfo-ID"] == response["WARC-Warcinfo-ID"] == info["WARC-Record-ID"]
    assert response["WARC-Concurrent-To"] == request["WARC-Record-ID"]
    assert request["WARC-Target-URI"] == response["WARC-Target-URI"] == URL
    assert request["Content-Type"] == "application/http; msgtype=request"


def test_the_index_lists_each_response_where_it_begins(path):
    lines = path.with_name("a.example.cdxj").read_text().splitlines()
    raw = path.read_bytes()
    with path.open("rb") as source:
        start, response = next(
            (record.stream_pos, dict(record.headers))
            for record in ArchiveIterator(source, record_types=WarcRecordType.response)
        )
    (line,) = lines
    key, time, rest = line.split(" ", 2)
    fields = json.loads(rest)
    assert key == "example,a,www)/1"
    assert time == re.sub(r"\D", "", response["WARC-Date"])
    assert fields == {
        "url": URL,
        "mime": "text/html",
        "status": "200",
        "filename": path.name,
        "offset": str(start),
        "length": str(len(raw) - start),
        "digest": response["WARC-Payload-Digest"].removeprefix("sha1:"),
    }


def test_the_index_is_sorted_and_has_one_word_for_each_url():
    writer = WarcWriter(io.BytesIO(), "test")
    for url in ("http://b.example/", "http://a.example:8080/Ü b?Q=1", "http://[::1]/"):
        writer.write(Fetched(url, 200, "OK", (), b"", date=datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)))
    lines = writer.index("x.warc.gz").decode().splitlines()
    assert [line.split(" {")[0] for line in lines] == [
        "::1)/ 20240301120000",
        "example,a:8080)/%C3%BC%20b?q=1 20240301120000",
        "example,b)/ 20240301120000",
    ]
    assert json.loads(lines[2][lines[2].index("{") :])["mime"] == "unk"


def test_the_body_is_decoded_and_its_headers_say_so(path):
    raw = gzip.decompress(path.read_bytes())
    assert raw.startswith(b"WARC/1.1\r\n")
    body = page(text="Ein Gruß.").encode()
    head = b"X-Crawler-Content-Encoding: gzip\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n"
    assert head % len(body) + body in raw
    assert b"\r\nContent-Encoding" not in raw
    assert b"conformsTo: http://iipc.github.io/warc-specifications" in raw


def test_warcio_reads_and_checks_it(path):
    warcio = pytest.importorskip("warcio", reason="warcio is a second reader, of the dev extra")
    from warcio.archiveiterator import ArchiveIterator as WarcioIterator

    assert warcio
    found = {}
    with path.open("rb") as source:
        for record in WarcioIterator(source, check_digests="raise", verify_http=True):
            body = record.content_stream().read()
            assert record.digest_checker.passed is not False, record.digest_checker.problems
            if record.rec_type == "response":
                assert record.digest_checker.passed is True
                assert record.http_headers.get_statuscode() == "200"
                found[record.rec_headers.get_header("WARC-Target-URI")] = body
    assert found == {URL: page(text="Ein Gruß.").encode()}


@pytest.mark.parametrize(
    ("path", "reason", "headers", "body"),
    [
        ("", "OK", (), b""),
        ("", "", (("X", ""), ("Set-Cookie", "a"), ("Set-Cookie", "b")), b"\r\n\r\nWARC/1.1\r\n\r\n"),
        ("\u00fc", "Grüße", (("X", "ü\udc80"), ("Content-Length", "7")), bytes(range(256)) * 999),
    ],
)
def test_odd_responses_make_whole_records(path, reason, headers, body):
    sink = io.BytesIO()
    writer = WarcWriter(sink, "test")
    for _ in range(2):
        writer.write(Fetched(f"http://a.example/{path}", 200, reason, headers, body))
    sink.seek(0)
    for record in ArchiveIterator(sink, record_types=WarcRecordType.response):
        assert record.reader.read() == body
    sink.seek(0)
    assert sum(1 for _ in ArchiveIterator(sink)) == 3
