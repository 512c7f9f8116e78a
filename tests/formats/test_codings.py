"""Codings of HTTP messages are undone, alone and combined; what is cut is said, and a bomb costs little time."""

import gzip
import time
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats.codings import TooLargeError, gunzip, undo_codings

NEWS = b"<html>All the news. " * 5_000


def packed(raw):
    return gzip.compress(raw, mtime=0)  # the same bytes, and so the same name of a test, in every process


def raw_deflate(body):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def chunked(body, size=999, end=b"0\r\nX-Sum: 1\r\n\r\n"):
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


PACKERS = {
    "gzip": packed,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "chunked": chunked,
}


@pytest.mark.parametrize(
    ("body", "codings"),
    [
        *((pack(NEWS), name) for name, pack in PACKERS.items()),
        *((NEWS, name) for name in PACKERS),  # the header stayed when the body was decoded
        (NEWS, ""),
        (NEWS, "identity, utf-8, no-coding"),
        (packed(NEWS), "X-GZip "),
        (packed(NEWS[:100]) + packed(b"") + packed(NEWS[100:]), "gzip"),
        (zstandard.compress(NEWS[:100]) + b"\x50\x2a\x4d\x18\x01\0\0\0x" + zstandard.compress(NEWS[100:]), "zstd"),
        (packed(NEWS) + b"\0\0\0\0", "gzip"),
        (packed(NEWS), "gzip, gzip"),  # said twice
        (raw_deflate(NEWS), "deflate"),
        (packed(zlib.compress(NEWS)), "deflate, gzip"),
        (chunked(brotli.compress(packed(NEWS)), 7), "gzip, br,, chunked"),
    ],
)
def test_codings_are_undone(body, codings):
    assert undo_codings(body, codings, len(NEWS)) == (NEWS, "")


@pytest.mark.parametrize("name", PACKERS)
def test_what_is_cut_or_broken_is_said_and_what_came_before_is_kept(name):
    body = PACKERS[name](NEWS)
    for cut in (body[: len(body) // 2], body[:-9]):
        found, problem = undo_codings(cut, name, len(NEWS))
        assert NEWS.startswith(found)
        assert "cut" in problem or found == NEWS  # of what follows the last chunk
    assert undo_codings(b"", name, 10) == (b"", "")


def test_a_problem_of_an_outer_coding_is_that_of_the_whole():
    found, problem = undo_codings(chunked(packed(NEWS), end=b""), "gzip, chunked", len(NEWS))
    assert (found, "chunked" in problem) == (NEWS, True)
    assert undo_codings(packed(NEWS)[:99] + b"broken" * 20, "gzip", len(NEWS))[1].startswith("broken compressed data")
    assert "30 codings" in undo_codings(NEWS, "gzip," * 30, len(NEWS))[1]


def test_text_that_begins_with_a_number_has_no_chunks():
    assert undo_codings(b"10\r\nten green bottles", "chunked", 99) == (b"10\r\nten green bottles", "")


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_stopped_at_the_limit(name):
    bomb = PACKERS[name](b"\0" * 4_000_000)
    with pytest.raises(TooLargeError):
        undo_codings(bomb, name, 1_000_000)


@pytest.mark.parametrize("empty", [packed(b""), zstandard.compress(b"")])
def test_many_empty_members_take_linear_time(empty):
    name, started = ("gzip" if empty[0] == 0x1F else "zstd"), time.process_time()
    assert undo_codings(empty * 50_000 + PACKERS[name](b"x"), name, 99) == (b"x", "")
    with pytest.raises(TooLargeError):
        undo_codings(empty * 300_000, name, 99)
    assert time.process_time() - started < 5


@settings(deadline=None)
@given(st.binary(max_size=3_000), st.integers(1, 9))
def test_gunzip_is_the_inverse_of_gzip(body, level):
    assert gunzip(gzip.compress(body, level), len(body)) == (body, "")
