"""Counting the records of a WARC file against its index: what the index lists and the file lacks is a dead letter."""

import gzip
import io
import json
import random

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.warc import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.cdx import Part, indexes_beside, read_listing
from newsembed.beam_pipelines.extract.job import warc_digest
from newsembed.beam_pipelines.extract.warc import read_frames
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import DeadLetter

RESPONSES = 150  # with requests and warcinfo more records than one slice holds
PACKED = pytest.mark.parametrize("packed", [True, False], ids=["gz", "plain"])


def archive(host="s.example"):
    """A WARC file in gzip members and its index."""
    sink = io.BytesIO()
    writer = WarcWriter(sink, "test")
    for number in range(RESPONSES):
        # Neighbors differ in length by more than their random record ids do once they are compressed.
        text = "".join(f"{number * place:x}" for place in range(20 * (number % 7)))
        body = f"<html><body><p>{number}{text}</p></body></html>".encode()
        kinds = (("Content-Type", "text/html"),)
        writer.write(Fetched(f"http://{host}/{number}", 200, "OK", kinds, body, request=b"GET / HTTP/1.1\r\n\r\n"))
    return sink.getvalue(), writer.index


def offsets(raw):
    return [frame.offset for frame in read_frames(io.BytesIO(raw), places_only=True)]


def save(tmp_path, raw, index, *, packed, name="a"):
    """Writes the file with its index beside it; returns the path and the offsets of the responses."""
    path = tmp_path / (f"{name}.warc.gz" if packed else f"{name}.warc")
    if packed:
        path.write_bytes(raw)
        (tmp_path / f"{name}.cdxj").write_bytes(index(path.name))
    else:  # the same records, so the nth begins elsewhere
        plain = gzip.decompress(raw)
        path.write_bytes(plain)
        moved = dict(zip(offsets(raw), offsets(plain), strict=True))
        lines = index(path.name).decode().splitlines()
        rows = [(line[: line.index("{")], json.loads(line[line.index("{") :])) for line in lines]
        placed = [f"{key}{json.dumps(row | {'offset': moved[int(row['offset'])]})}\n" for key, row in rows]
        (tmp_path / f"{name}.cdxj").write_text("".join(placed))
    return path, offsets(path.read_bytes())[2::2]


def extract(tmp_path, *paths, **more):
    inputs = {"warc": [str(path) for path in paths], **more}
    manifest = jobs.execute(JOB, inputs, str(tmp_path / "out"), beam_args=["--direct_num_workers=1"]).manifest
    counts = manifest["counts"]
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    letters = [
        letter
        for shard in sorted((tmp_path / "out/dead_letters/read").glob("*.parquet"))
        for letter in parquet.read_records(str(shard), DeadLetter)
        if letter.outcome == "failed"
    ]
    return counts, manifest["phases"]["read"]["tallies"], letters


@PACKED
def test_a_whole_file_has_what_its_index_lists(tmp_path, packed):
    path, _ = save(tmp_path, *archive(), packed=packed)
    counts, tallies, letters = extract(tmp_path, path)
    assert (counts["in"], letters, tallies["records_in_index"]) == (RESPONSES, [], RESPONSES)


@PACKED
def test_records_that_were_cut_out_are_named_with_their_offset_and_url(tmp_path, packed):
    path, starts = save(tmp_path, *archive(), packed=packed)
    raw = path.read_bytes()
    path.write_bytes(raw[: starts[-2]])  # between records, so the file itself shows nothing
    counts, tallies, letters = extract(tmp_path, path)
    assert counts["in"] == RESPONSES
    assert counts["failed"] == {"missing_record": 2}
    assert [letter.key for letter in letters] == [f"{path}:{start}" for start in starts[-2:]]
    assert letters[0].detail == (
        f"listed in {tmp_path}/a.cdxj, but no record begins here; http://s.example/{RESPONSES - 2}"
    )
    assert tallies["records_in_index"] == RESPONSES


@PACKED
def test_records_that_moved_are_missing_where_the_index_has_them(tmp_path, packed):
    path, starts = save(tmp_path, *archive(), packed=packed)
    raw = path.read_bytes()
    path.write_bytes(raw[: starts[-3]] + raw[starts[-2] :])
    counts, _, letters = extract(tmp_path, path)
    # The response after the cut begins where the one that is gone began; those after it begin elsewhere.
    assert counts["failed"] == {"missing_record": 2}
    assert [letter.key for letter in letters] == [f"{path}:{start}" for start in starts[-2:]]


@PACKED
def test_a_damaged_record_is_counted_once_and_those_in_its_gap_are_named(tmp_path, packed):
    path, starts = save(tmp_path, *archive(), packed=packed)
    raw = bytearray(path.read_bytes())
    raw[starts[50] : starts[52] + 12] = b"\xff" * (starts[52] + 12 - starts[50])  # three responses
    path.write_bytes(raw)
    counts, _, letters = extract(tmp_path, path)
    # Without gzip the request before them is not closed either, so the gap begins there.
    gap = starts[50] if packed else offsets(raw)[2 * 50 + 1]
    assert counts["failed"] == {"broken_record": 1, "missing_record": 2 if packed else 3}
    assert {letter.key for letter in letters} == {f"{path}:{place}" for place in (gap, *starts[50:53])}
    assert counts["in"] == (RESPONSES if packed else RESPONSES + 1)


@PACKED
def test_an_index_of_another_file_is_named_and_not_counted(tmp_path, packed):
    raw, index = archive()
    path, _ = save(tmp_path, raw, lambda _: index("b.warc.gz"), packed=packed)
    counts, tallies, letters = extract(tmp_path, path)
    assert counts["failed"] == {"other_index": 1}
    assert (letters[0].key, letters[0].detail) == (f"{tmp_path}/a.cdxj", f"lists b.warc.gz, not {path.name}")
    assert tallies.get("records_in_index", 0) == 0


def test_a_given_index_serves_files_of_a_list_and_must_name_one_of_them(tmp_path):
    raw, index = archive()
    path, starts = save(tmp_path, raw, index, packed=True)
    path.write_bytes(raw[: starts[-1]])
    (tmp_path / "a.cdxj").rename(tmp_path / "all.cdxj")
    (tmp_path / "warc.paths").write_text("a.warc.gz\n")
    counts, _, letters = extract(tmp_path, tmp_path / "warc.paths", cdx=[str(tmp_path / "all.cdxj")])
    assert counts["failed"] == {"missing_record": 1}
    assert letters[0].key == f"{path}:{starts[-1]}"
    (tmp_path / "other.cdxj").write_bytes(index("c.warc.gz"))
    with pytest.raises(InputError, match=r"other\.cdxj.*--cdx.*names none of the WARC files, but c\.warc\.gz"):
        extract(tmp_path, path, cdx=[str(tmp_path / "other.cdxj")])


def test_lines_of_an_index_that_cannot_be_read_are_dead_letters(tmp_path):
    path, _ = save(tmp_path, *archive(), packed=True)
    lines = (tmp_path / "a.cdxj").read_text().splitlines()
    broken = ["one two", "k 2024 {}", 'k 2024 {"filename": "a.warc.gz", "offset": "-"}']
    (tmp_path / "a.cdxj").write_text("\n".join([*lines[:10], *broken, *lines[10:]]))
    counts, tallies, letters = extract(tmp_path, path)
    assert counts["failed"] == {"broken_record": 3}
    assert [letter.key for letter in letters] == [f"{tmp_path}/a.cdxj:{number}" for number in (11, 12, 13)]
    assert tallies["records_in_index"] == RESPONSES


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (" CDX N b a m s k r M S V g", "k 2024 http://s.example/1 text/html 200 D - - 99 1234 some/a.warc.gz"),
        ("", "k 2024 http://s.example/1 text/html 200 D - - 99 1234 a.warc.gz"),
        ("", "k 2024 http://s.example/1 text/html 200 D - 1234 a.warc.gz"),
        ("", "k 2024 http://s.example/1 text/html 200 D - - 1234 a.warc.gz"),
        (" CDX a v g", "http://s.example/1 1234 a.warc.gz"),
        ("!OpenWayback-CDXJ 1.0", 'k 2024 {"url": "http://s.example/1", "offset": 1234, "filename": "x/a.warc.gz"}'),
        ("", '{"url": "http://s.example/1", "offset": "1234", "filename": "a.warc.gz"}'),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_known_formats_of_an_index_say_the_same(tmp_path, header, line, ending):
    raw = f"{header}\n{line}\n".encode()
    index = tmp_path / f"i.cdx{ending}"
    index.write_bytes(gzip.compress(raw) if ending else raw)
    found = read_listing("/elsewhere/a.warc.gz", Part((str(index),)))
    assert [(entry.offset, entry.url) for entry in found.entries] == [(1234, "http://s.example/1")]
    assert (found.broken, found.others) == ((), ())


def test_the_parts_of_a_file_share_the_index_without_overlap(tmp_path):
    index = tmp_path / "i.cdx"
    index.write_text("".join(f"k 2024 u text/html 200 D - {offset} a.warc.gz\n" for offset in (30, 0, 10, 20)) + "x\n")
    parts = [Part((str(index),), 0, 10), Part((str(index),), 10, 30), Part((str(index),), 30)]
    found = [read_listing("a.warc.gz", part) for part in parts]
    assert [[entry.offset for entry in one.entries] for one in found] == [[0], [10, 20], [30]]
    assert [len(one.broken) for one in found] == [1, 0, 0]


def test_an_index_that_is_cut_is_used_as_far_as_it_goes(tmp_path):
    lines = "".join(f"k{number} 2024 u text/html 200 D - {number * 37} a.warc.gz\n" for number in range(9_000))
    index = tmp_path / "i.cdx.gz"
    index.write_bytes(gzip.compress(lines.encode())[:-9_000])
    found = read_listing("a.warc.gz", Part((str(index),)))
    assert 0 < len(found.entries) < 9_000
    ((where, problem),) = found.broken
    assert where.startswith(f"{index}:")
    assert problem.startswith(("the index is cut", "no line of an index"))


def test_an_index_without_its_compression_is_refused(tmp_path):
    (tmp_path / "i.cdx.gz").write_text("k 2024 u text/html 200 D - 1 a.warc.gz\n")
    with pytest.raises(InputError, match="the compression differs"):
        read_listing("a.warc.gz", Part((str(tmp_path / "i.cdx.gz"),)))


@pytest.mark.parametrize("folder", ["plain", "odd [1]*"])
def test_indexes_beside_a_file_have_its_name(tmp_path, folder):
    place = tmp_path / folder
    place.mkdir()
    for name in ("a.cdxj", "a.warc.gz.cdx", "a.warc.cdx.gz", "ab.cdxj", "b.cdx", "a.cdx.txt"):
        (place / name).write_text("")
    assert indexes_beside(f"{place}/a.warc.gz") == (f"{place}/a.cdxj", f"{place}/a.warc.gz.cdx")


def test_another_index_makes_it_another_input(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"x")
    digests = {warc_digest(str(path))}
    for text in ("one", "two"):
        (tmp_path / "a.cdxj").write_text(text)
        digests.add(warc_digest(str(path)))
    assert len(digests) == 3


def test_a_damaged_index_is_read_as_far_as_its_lines_are_whole(tmp_path):
    _, index = archive()
    whole = index("a.warc.gz")
    path, generator = tmp_path / "i.cdxj", random.Random(4)
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(len(damaged))
            damaged[place : place + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
        path.write_bytes(damaged[: generator.choice((len(damaged), generator.randrange(len(damaged))))])
        found = read_listing("a.warc.gz", Part((str(path),)))
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        assert len(found.entries) + len(found.broken) >= min(len(lines), RESPONSES) - 6


def test_another_index_at_the_same_path_is_read_again(tmp_path):
    index = tmp_path / "a.cdxj"
    for offset in (7, 9):
        index.write_text(f'k 20240101000000 {{"filename": "a.warc.gz", "offset": "{offset}"}}\n')
        listing = read_listing(str(tmp_path / "a.warc.gz"), Part((str(index),)))
        assert [entry.offset for entry in listing.entries] == [offset]
