"""Damage to WARC files: a damaged record costs only itself, and its place is named."""

import base64
import gzip
import hashlib
import io
import random
import re

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.sources import read_warc, warc_slices
from newsembed.beam_pipelines.extract.warc import Frame, Gap, read_frames
from newsembed.tests.example_inputs import dead_letters

pytestmark = pytest.mark.long  # `make attack`

RESPONSES = 206


def pages(seed):
    """Pages whose text does not compress to nothing, so that flips hit their content."""
    generator = random.Random(seed)
    for number in range(RESPONSES):
        words = " ".join(f"{generator.getrandbits(32):x}" for _ in range(generator.randrange(20, 400)))
        yield f"http://s.example/{number}", f"<html><body><p>{words}</p></body></html>".encode()


def archive(seed=0, headers=lambda _url: ()):
    buffer = io.BytesIO()
    writer = WarcWriter(buffer, "test")
    for url, body in pages(seed):
        kinds = (("Content-Type", "text/html"), *headers(url))
        writer.write(Fetched(url, 200, "OK", kinds, body, request=b"GET / HTTP/1.1\r\n\r\n"))
    return buffer.getvalue()


def plain(raw):
    return gzip.decompress(raw)


def read(path):
    """The bodies by URL, and the places that could not be read."""
    found = [response for piece in warc_slices((str(path),)) for response in read_warc(piece)]
    bodies = {response.url: response.payload for response in found if not isinstance(response, Gap)}
    return bodies, [gap for gap in found if isinstance(gap, Gap)]


@pytest.mark.parametrize("packing", ["member", "none"])
def test_one_flipped_bit_costs_at_most_two_of_206_responses_and_is_named(tmp_path, packing):
    whole, truth = archive(), dict(pages(0))
    whole = whole if packing == "member" else plain(whole)
    path = tmp_path / "a.warc.gz"
    generator = random.Random(1)
    for place in [0, 1, 2, 3, 9, len(whole) - 1, *(generator.randrange(len(whole)) for _ in range(30))]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        bodies, gaps = read(path)
        right = {url for url, body in bodies.items() if truth.get(url) == body}
        assert len(right) >= RESPONSES - 2, (place, len(right), gaps)
        if packing == "member":  # a checksum covers each record
            assert right == set(bodies), place
        else:  # a digest covers each body, and nothing the address in the header
            assert set(bodies.values()) <= set(truth.values()), place
        assert len(bodies) == RESPONSES or gaps, place
        for gap in gaps:
            assert gap.problem
            assert gap.offset <= place < max(gap.end, gap.offset + 20_000)


def test_without_damage_nothing_is_lost(tmp_path):
    for name, raw in (
        ("untyped.warc", plain(archive()).replace(b"Content-Type: application/http", b"X-Type: a")),
        ("a.warc.gz", archive()),
        ("a.warc", plain(archive())),
        ("one.warc.gz", gzip.compress(plain(archive()))),
    ):
        (tmp_path / name).write_bytes(raw)
        assert read(tmp_path / name) == (dict(pages(0)), []), name


@pytest.mark.parametrize("packing", ["member", "none", "one member"])
def test_the_end_that_is_cut_off_is_named(tmp_path, packing):
    raw = archive()
    raw = {"member": raw, "none": plain(raw), "one member": gzip.compress(plain(raw))}[packing]
    path, truth, generator = tmp_path / "a.warc.gz", dict(pages(0)), random.Random(2)
    for _ in range(20):
        cut = generator.randrange(len(raw) // 2, len(raw) - 20)
        path.write_bytes(raw[:cut])
        found = [response for piece in warc_slices((str(path),)) for response in read_warc(piece)]
        whole = [response for response in found if not isinstance(response, Gap) and not response.cut]
        starts = [frame.offset for frame in read_frames(io.BytesIO(raw), places_only=True)]
        assert all(truth[response.url] == response.payload for response in whole)
        if packing != "one member" and cut not in starts:
            assert len(found) == len(whole) + 1, cut
            assert all(offset < cut for offset in starts[: len(whole)])
        assert len(whole) >= RESPONSES // 4


@pytest.mark.parametrize("spelling", ["sha1 base32", "sha1 hexadecimal", "sha-256", "unknown", "none"])
def test_the_digest_of_a_block_is_compared_where_there_is_one(spelling):
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>One</p>"
    sha1, sha256 = hashlib.sha1(body, usedforsecurity=False), hashlib.sha256(body)
    stated = {
        "sha1 base32": f"WARC-Block-Digest: sha1:{base64.b32encode(sha1.digest()).decode()}\r\n",
        "sha1 hexadecimal": f"warc-block-digest: SHA1:{sha1.hexdigest()}\r\n",
        "sha-256": f"WARC-Block-Digest: sha-256:{sha256.hexdigest()}\r\n",
        "unknown": "WARC-Block-Digest: xxh3:0123456789abcdef\r\n",
        "none": "",
    }[spelling]
    header = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://s.example/1\r\n{stated}"
    whole = f"{header}Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"
    (frame,) = read_frames(io.BytesIO(whole))
    assert isinstance(frame, Frame)
    damaged = whole.replace(b"One", b"Onf") + whole
    first, second = read_frames(io.BytesIO(damaged))
    assert isinstance(second, Frame)
    assert second.offset == len(whole)
    if spelling in ("unknown", "none"):
        assert isinstance(first, Frame)
    else:
        place = (0, len(whole), "its content differs from WARC-Block-Digest", "http://s.example/1")
        assert (first.offset, first.end, first.problem, first.url) == place
    assert len(list(read_frames(io.BytesIO(damaged), places_only=True))) == 2  # slices count the same records


@pytest.mark.parametrize("change", [bytes, bytes.lower, bytes.upper], ids=["as written", "lower case", "upper case"])
def test_names_of_headers_are_read_in_any_case(tmp_path, change):
    header, name = re.compile(rb"^WARC/1.*?\r\n\r\n", re.M | re.S), re.compile(rb"^[\w-]+(?=:)", re.M)
    renamed = header.sub(lambda found: name.sub(lambda one: change(one[0]), found[0]), plain(archive()))
    (tmp_path / "a.warc").write_bytes(renamed)
    assert read(tmp_path / "a.warc") == (dict(pages(0)), [])


@pytest.mark.parametrize("packing", ["member", "none"])
def test_a_header_without_end_costs_only_its_record(tmp_path, packing):
    many = tuple(("Set-Cookie", f"a{number}=b") for number in range(100_000))
    raw = archive(headers=lambda url: many if url.endswith("/50") else ())
    path = tmp_path / "a.warc.gz"
    path.write_bytes(raw if packing == "member" else plain(raw))
    bodies, gaps = read(path)
    assert bodies.keys() == dict(pages(0)).keys() - {"http://s.example/50"}
    assert [gap.problem for gap in gaps] == ["OSError: Maximum header length exceeded."]


def test_bytes_that_were_removed_or_added_between_records_cost_the_record_beside_them(tmp_path):
    whole, truth, generator = plain(archive()), dict(pages(0)), random.Random(3)
    path = tmp_path / "a.warc"
    for size in (1, 2, 4, 7, 300, 5_000):
        place = generator.randrange(2_000, len(whole) - 10_000)
        for damaged in (whole[:place] + whole[place + size :], whole[:place] + b"\0x" * size + whole[place:]):
            path.write_bytes(damaged)
            bodies, gaps = read(path)
            right = sum(truth.get(url) == body for url, body in bodies.items())
            assert right >= RESPONSES - 4
            assert gaps or right == RESPONSES, (size, place)


def test_zeros_and_line_ends_after_the_last_record_are_no_damage():
    for raw in (archive(), plain(archive())):
        found = list(read_frames(io.BytesIO(raw + b"\r\n" + bytes(10_000)), places_only=True))
        assert len(found) == 2 * RESPONSES + 1
        assert all(isinstance(frame, Frame) and not frame.cut for frame in found)


def test_a_record_in_several_gzip_members_is_read_as_one():
    raw = plain(archive())
    pieces = [gzip.compress(raw[start : start + 700]) for start in range(0, len(raw), 700)]
    found = list(read_frames(io.BytesIO(b"".join(pieces))))
    assert [frame.raw for frame in found] == [frame.raw for frame in read_frames(io.BytesIO(raw))]


def test_the_job_counts_each_damaged_record_and_names_its_file_and_offset(tmp_path):
    whole = archive()
    starts = [frame.offset for frame in read_frames(io.BytesIO(whole), places_only=True)]
    damaged = bytearray(whole)
    for number in (2, 200, 401):  # records are warcinfo, then request and response for each page
        damaged[starts[number] + 60] ^= 4
    path = tmp_path / "a.warc.gz"
    path.write_bytes(damaged)
    done = jobs.execute(JOB, {"warc": [str(path)]}, str(tmp_path / "out"), beam_args=["--direct_num_workers=1"])
    counts = done.manifest["counts"]
    # Request 401 is damaged too, so it is an additional record; two responses are lost.
    assert counts["in"] == RESPONSES + 1
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    assert counts["failed"] == {"broken_record": 3}
    letters = [letter for letter in dead_letters(tmp_path / "out", "read") if letter.reason == "broken_record"]
    assert [letter.key for letter in letters] == [f"{path}:{starts[number]}" for number in (2, 200, 401)]
    assert all("damaged gzip data" in letter.detail for letter in letters)
