"""Counting the records of a WARC file against its index: what the index lists and the file lacks is a dead letter."""

import gzip
import io

import pytest
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.job import warc_digest
from newsembed.beam_pipelines.extract.sources import Slice, indexes_beside, lost_records
from newsembed.beam_pipelines.extract.warc import read_frames
from newsembed.errors import InputError
from newsembed.tests.example_inputs import dead_letters, manifest_of

RESPONSES = 150  # with requests and warcinfo more records than one slice holds


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


def save(tmp_path, raw, index):
    """Writes the file with its index beside it; returns the path and the offsets of the responses."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(raw)
    (tmp_path / "a.cdxj").write_bytes(index(path.name))
    return path, offsets(raw)[2::2]


def extract(tmp_path, *paths, **more):
    inputs = {"warc": [str(path) for path in paths], **more}
    manifest = manifest_of(JOB, inputs, tmp_path / "out")
    counts = manifest["counts"]
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    letters = [letter for letter in dead_letters(tmp_path / "out", "read") if letter.outcome == "failed"]
    return counts, manifest["phases"]["read"]["tallies"], letters


def test_records_that_were_cut_out_are_named_with_their_offset_and_url(tmp_path):
    path, starts = save(tmp_path, *archive())
    raw = path.read_bytes()
    path.write_bytes(raw[: starts[-2]])  # between records, so the file itself shows nothing
    counts, tallies, letters = extract(tmp_path, path)
    assert counts["in"] == RESPONSES
    assert counts["failed"] == {"missing_record": 2}
    assert [letter.key for letter in letters] == [f"{path}:{start}" for start in starts[-2:]]
    url = f"http://s.example/{RESPONSES - 2}"
    assert letters[0].detail == f"listed in {tmp_path}/a.cdxj, but no record begins here; {url}"
    assert tallies["records_in_index"] == RESPONSES


def test_a_damaged_record_is_counted_once_and_those_in_its_gap_are_named(tmp_path):
    path, starts = save(tmp_path, *archive())
    raw = bytearray(path.read_bytes())
    raw[starts[50] : starts[52] + 12] = b"\xff" * (starts[52] + 12 - starts[50])  # three responses
    path.write_bytes(raw)
    counts, _, letters = extract(tmp_path, path)
    assert counts["failed"] == {"broken_record": 1, "missing_record": 2}
    assert {letter.key for letter in letters} == {f"{path}:{place}" for place in starts[50:53]}
    assert counts["in"] == RESPONSES


def test_a_given_index_serves_files_of_a_list_and_must_name_one_of_them(tmp_path):
    raw, index = archive()
    path, starts = save(tmp_path, raw, index)
    path.write_bytes(raw[: starts[-1]])
    (tmp_path / "a.cdxj").rename(tmp_path / "all.cdxj")
    (tmp_path / "warc.paths").write_text("a.warc.gz\n")
    counts, _, letters = extract(tmp_path, tmp_path / "warc.paths", cdx=[str(tmp_path / "all.cdxj")])
    assert counts["failed"] == {"missing_record": 1}
    assert letters[0].key == f"{path}:{starts[-1]}"
    (tmp_path / "other.cdxj").write_bytes(index("c.warc.gz"))
    with pytest.raises(InputError, match=r"other\.cdxj.*--cdx.*names none of the WARC files, but c\.warc\.gz"):
        extract(tmp_path, path, cdx=[str(tmp_path / "other.cdxj")])


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
    detail = f"listed in {index}, but no record begins here; http://s.example/1"
    lost = [("missing_record", "/elsewhere/a.warc.gz:1234", detail)]
    piece = Slice("/elsewhere/a.warc.gz", "warc", 0, -1, indexes=(str(index),))
    assert lost_records(piece, {1233}) == (1, lost)
    assert lost_records(piece, {1234}) == (1, [])


BOUNDS = ((0, 10), (10, 30), (30, 1 << 63))


def test_the_parts_of_a_file_share_the_index_without_overlap(tmp_path):
    index = tmp_path / "i.cdx"
    index.write_text("".join(f"k 2024 u text/html 200 D - {offset} a.warc.gz\n" for offset in (30, 0, 10, 20)) + "x\n")
    parts = [Slice("a.warc.gz", "warc", start, 1, indexes=(str(index),), end=end) for start, end in BOUNDS]
    found = [[key.rpartition(":")[2] for _, key, _ in lost_records(part, ())[1]] for part in parts]
    assert found == [["0", "5"], ["10", "20"], ["30"]]  # the fifth line is broken


def test_an_index_that_is_cut_is_used_as_far_as_it_goes(tmp_path):
    lines = "".join(f"k{number} 2024 u text/html 200 D - {number * 37} a.warc.gz\n" for number in range(9_000))
    index = tmp_path / "i.cdx.gz"
    index.write_bytes(gzip.compress(lines.encode())[:-9_000])
    listed, lost = lost_records(Slice("a.warc.gz", "warc", 0, -1, indexes=(str(index),)), range(9_000 * 37))
    assert 0 < listed < 9_000
    ((_, where, problem),) = lost
    assert where.startswith(f"{index}:")
    assert problem.startswith(("the index is cut", "no line of an index"))


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


def test_another_index_at_the_same_path_is_read_again(tmp_path):
    index = tmp_path / "a.cdxj"
    for offset in (7, 9):
        index.write_text(f'k 20240101000000 {{"filename": "a.warc.gz", "offset": "{offset}"}}\n')
        piece = Slice(str(tmp_path / "a.warc.gz"), "warc", 0, -1, indexes=(str(index),))
        assert lost_records(piece, {offset}) == (1, [])
