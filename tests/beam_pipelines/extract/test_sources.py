"""Slices of input files, their records and rows, and the shards of articles that are made of them."""

import datetime
import gzip
import itertools
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.extract import sources, warc
from newsembed.beam_pipelines.extract.sources import Slice, groups_of, read_rows, read_warc, row_slices, warc_slices
from newsembed.beam_pipelines.extract.warc import Gap, Response


def pieces(*records):
    return [Slice(f"{place}.warc.gz", "warc", 0, -1, records=count) for place, count in enumerate(records)]


@pytest.mark.parametrize(
    ("records", "groups"),
    [
        ([3], [[0]]),
        ([1] * 8, [[place] for place in range(8)]),  # few already
        ([1] * 9, [[*range(9)]]),
        ([250] * 9, [[0, 1], [2, 3], [4, 5], [6, 7], [8]]),  # at least 500 to a shard
        ([100] * 80, [[*range(start, start + 10)] for start in range(0, 80, 10)]),  # eight shards
        ([200] * 200, [[*range(start, start + 20)] for start in range(0, 200, 20)]),  # at most 4,000 to a shard
        ([9_000, *[1] * 8], [[0], [*range(1, 9)]]),  # a slice is never cut
        ([1, None, 1, 1, None, 1, 1, 1, 1], [[0], [1], [2, 3], [4], [5, 6, 7, 8]]),  # files of a list
    ],
)
def test_consecutive_slices_are_a_shard(records, groups):
    assert [list(group) for group in groups_of(pieces(*records))] == groups


@given(st.lists(st.none() | st.integers(0, 5_000), min_size=1, max_size=60))
def test_each_slice_is_in_one_shard_and_none_is_too_large(records):
    groups = groups_of(pieces(*records))
    assert list(itertools.chain(*groups)) == list(range(len(records)))
    together = [sum(records[place] or 0 for place in group) for group in groups]
    assert all(total <= 4_000 or len(group) == 1 for group, total in zip(groups, together, strict=True))


def record(kind, url, content, content_type="application/http; msgtype=response", date="2024-01-15T12:30:00Z"):
    lines = ["WARC/1.1", f"WARC-Type: {kind}", f"WARC-Date: {date}", f"Content-Type: {content_type}"]
    lines += [f"WARC-Target-URI: {url}"] if url else []
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content + b"\r\n\r\n"


def http(body, status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def read(tmp_path, *records):
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(records))
    begun = set()
    (piece,) = warc_slices((str(path),))
    return list(read_warc(piece, begun)), begun


def test_a_response_has_the_fields_of_its_record_and_its_headers(tmp_path):
    content = http(b"<p>Not here", "404 Not Found", Content_Type="Text/HTML; charset=ISO-8859-1")
    found, begun = read(tmp_path, record("warcinfo", "", b"x"), record("response", "<http://a.example/x>", content))
    captured = datetime.datetime(2024, 1, 15, 12, 30, tzinfo=datetime.UTC)
    expected = Response("http://a.example/x", 404, "text/html", "ISO-8859-1", b"<p>Not here", captured)
    assert found == [expected]
    assert begun == {0, len(record("warcinfo", "", b"x"))}


def test_a_response_without_an_address_is_a_gap_and_other_records_are_nothing(tmp_path):
    nameless = record("response", "", http(b"x"))
    found, _ = read(tmp_path, nameless, record("metadata", "http://a.example/x", b"fetchTimeMs: 1", "text/plain"))
    assert found == [Gap(0, 0, "no WARC-Target-URI")]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        *((coding, gzip.compress(b"<p>A page", mtime=0)) for coding in ("gzip", "x-GZip")),
        ("deflate", zlib.compress(b"<p>A page")),
        # The archive has decoded it and kept the header.
        *((coding, b"<p>A page") for coding in ("gzip", "deflate", "br", "identity")),
    ],
)
def test_a_body_is_decoded_where_the_archive_kept_its_coding(tmp_path, coding, body):
    (found,), _ = read(tmp_path, record("response", "http://a.example/x", http(body, Content_Encoding=coding)))
    assert (found.payload, found.cut, found.oversized) == (b"<p>A page", "", False)


BOMB = gzip.compress(b"x" * 9_000, mtime=0)


@pytest.mark.parametrize(
    ("body", "headers", "payload", "oversized"),
    [
        (b"x" * 99, {}, b"x" * 99, False),
        (b"x" * 101, {}, b"x" * 100, True),
        (BOMB, {"Content_Encoding": "gzip"}, BOMB, True),
    ],
)
def test_what_exceeds_the_limit_is_cut_and_called_oversized(tmp_path, monkeypatch, body, headers, payload, oversized):
    monkeypatch.setattr(warc, "MAX_CONTENT_BYTES", 100)
    (found,), _ = read(tmp_path, record("response", "http://a.example/x", http(body, **headers)))
    assert (found.payload, found.oversized, found.cut) == (payload, oversized, "")


def test_the_end_of_a_file_inside_a_response_truncates_it(tmp_path):
    whole = record("response", "http://a.example/x", http(b"<p>A long page"))
    (found,), _ = read(tmp_path, whole[:-9])
    assert (found.payload, bool(found.cut), found.oversized) == (b"<p>A long", True, False)
    request = record("request", "http://a.example/x", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request")
    (lost,), _ = read(tmp_path, request[:-9])
    assert lost.problem == "the file ends inside this record, which is not a response"


@pytest.mark.parametrize("count", [400, 401])
def test_the_slices_of_a_file_have_two_hundred_records_each_and_all_of_them(tmp_path, count):
    each = [record("response", f"http://a.example/{n:03d}", http(b"x")) for n in range(count)]
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(each))
    found = warc_slices((str(path),))
    slices = [(0, 200, 200), (200, 200, 200), (400, -1, 1)] if count == 401 else [(0, 200, 200), (200, -1, 200)]
    expected = [("warc", start * len(each[0]), *rest) for start, *rest in slices]
    assert [(one.kind, one.start, one.count, one.records) for one in found] == expected
    urls = [response.url for one in found for response in read_warc(one)]
    assert urls == [f"http://a.example/{n:03d}" for n in range(count)]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_slices_of_rows_have_each_row_once_with_its_number(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sources, "LINES_PER_SLICE", 3)
    path = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f'{{"n": {n}}}\n' for n in range(1, 8)))
    else:
        pq.write_table(pa.table({"n": range(1, 8)}), path, row_group_size=2)
    pieces_of_file = row_slices((str(path),), "articles")
    assert [(one.start, one.count, one.records) for one in pieces_of_file] == [(0, 3, 3), (3, 3, 3), (6, -1, 1)]
    rows = [list(read_rows(one)) for one in pieces_of_file]
    assert [[row["n"] for _, row in part] for part in rows] == [[1, 2, 3], [4, 5, 6], [7]]
    assert [place for part in rows for place, _ in part] == [f"{path}:{n}" for n in range(1, 8)]
    for place in (1, 0, 2, 2, 1, 2, 0, 1):  # in any order
        assert list(read_rows(pieces_of_file[place])) == rows[place]
    next(read_rows(pieces_of_file[1]))  # and after one that was left
    assert list(read_rows(pieces_of_file[2])) == rows[2]


def test_a_process_that_reads_one_slice_after_another_reads_a_compressed_file_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LINES_PER_SLICE", 3)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"n": %d}\n' % n for n in range(20))))
    pieces, opened = row_slices((str(path),), "articles"), []
    monkeypatch.setattr(sources, "_lines", lambda path, read=sources._lines: opened.append(path) or read(path))
    rows = [row["n"] for piece in pieces[::2] for _, row in read_rows(piece)]  # another process has the others
    assert rows == [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19]
    assert opened == [str(path)]
