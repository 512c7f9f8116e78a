"""Content codings: correct for servers, bounded for attackers."""

import gzip
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.crawl.coding import BrokenCodingError, TooLargeError, decode, gunzip

TEXT = b"All the news. " * 5_000


def packed(raw):
    return gzip.compress(raw, mtime=0)  # the same bytes, and so the same name of a test, in every process


def raw_deflate(body):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (packed(TEXT), "gzip"),
        (packed(TEXT), "x-gzip"),
        (packed(TEXT), "GZip "),
        (packed(TEXT[:100]) + packed(TEXT[100:]), "gzip"),
        (packed(TEXT) + b"\0\0\0\0", "gzip"),
        (zlib.compress(TEXT), "deflate"),
        (raw_deflate(TEXT), "deflate"),
        (packed(zlib.compress(TEXT)), "deflate, gzip"),
        (TEXT, "gzip"),  # a server that only says so
    ],
)
def test_codings_are_undone(body, coding):
    assert decode(body, coding, len(TEXT)) == TEXT


@pytest.mark.parametrize("coding", ["gzip", "deflate", "identity"])
def test_an_empty_body_stays_empty(coding):
    assert decode(b"", coding, 10) == b""


@pytest.mark.parametrize("pack", [(packed, "gzip"), (zlib.compress, "deflate"), (raw_deflate, "deflate")])
def test_a_decompression_bomb_is_stopped_at_the_limit(pack):
    bomb = pack[0](b"\0" * 20_000_000)
    assert len(bomb) < 30_000
    with pytest.raises(TooLargeError):
        decode(bomb, pack[1], 1_000_000)
    with pytest.raises(TooLargeError):
        decode(packed(b"a" * 600) + packed(b"b" * 600), "gzip", 1_000)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (packed(TEXT)[:-9], "gzip"),
        (zlib.compress(TEXT)[:-5], "deflate"),
        (b"no deflate at all", "deflate"),
        (packed(TEXT)[:20] + b"broken" * 20, "gzip"),
        (TEXT, "br"),
        (TEXT, "zstd, gzip"),
    ],
)
def test_broken_and_unknown_codings_are_refused(body, coding):
    with pytest.raises(BrokenCodingError):
        decode(body, coding, 10_000_000)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # of a machine that has other work
@given(st.binary(max_size=3_000), st.integers(1, 9))
def test_gunzip_is_the_inverse_of_gzip(body, level):
    assert gunzip(gzip.compress(body, level), len(body)) == body
