"""JSON lines come back whole from every packing, and a cut or broken file is never taken for a whole one."""

import bz2
import gzip
import io
import json
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import jsonl

PACK = {".jsonl": bytes, ".jsonl.gz": gzip.compress, ".jsonl.bz2": bz2.compress, ".jsonl.xz": lzma.compress}
PACK[".jsonl.zst"] = zstandard.compress


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_round_trip(tmp_path, monkeypatch, suffix, chunk):
    monkeypatch.setattr(jsonl, "_CHUNK_BYTES", chunk)
    rows = [{"text": "línea \ufeff\u2028 " * number, "n": number} for number in range(9)]
    raw = "\ufeff".encode() + "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    path = tmp_path / f"rows{suffix}"
    packed = PACK[suffix](raw[:90]) + PACK[suffix](raw[90:])  # as joined files are
    path.write_bytes(packed + bytes(512 if suffix.endswith("gz") else 0))  # and padded ones
    found = list(jsonl.read_jsonl(str(path)))
    assert [row for _, row in found] == rows
    assert found[1][0] == f"{path}:3"


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.bz2", ".jsonl.xz", ".jsonl.zst"])
@given(data=st.data())
def test_a_cut_file_is_never_whole(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("cut") / f"r{suffix}"
    packed = PACK[suffix](b"".join(b'{"a": %d}\n' % i for i in range(200)))
    path.write_bytes(packed[: data.draw(st.integers(1, len(packed) - 1))])
    with pytest.raises(InputError, match="cannot be read"):
        list(jsonl.read_jsonl(str(path)))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{}\n{", "r:2: not JSON"),
        (b"{}\na\xff", "r:2: not JSON in UTF-8: .* byte 0xff in position 1"),
        (b"[1]", "expected an object"),
    ],
)
def test_bad_lines(tmp_path, raw, message):
    (tmp_path / "r").write_bytes(raw)
    with pytest.raises(InputError, match=message):
        list(jsonl.read_jsonl(str(tmp_path / "r")))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.bz2", ".jsonl.xz", ".jsonl.zst"])
@pytest.mark.parametrize("bad", ["cut", "overwritten"])
def test_lines_before_the_damage_are_read(tmp_path, monkeypatch, suffix, bad):
    monkeypatch.setattr(jsonl, "_CHUNK_BYTES", 64)
    lines = [b"one", b"two", b"three", b"four"]
    parts = [PACK[suffix](line + b"\n") for line in lines]  # one after another, they are one compressed file
    parts[-1] = parts[-1][:-6] if bad == "cut" else bytes(len(parts[-1])) + b"x"
    packed = b"".join(parts)
    path, found = tmp_path / f"r{suffix}", []
    path.write_bytes(packed)
    with path.open("rb") as source, pytest.raises(EOFError):
        found.extend(jsonl.read_lines(source, str(path)))
    assert found[:3] == lines[:3]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_that_is_not_compressed_as_its_name_says_is_told_apart(tmp_path, suffix):
    path = tmp_path / f"plain{suffix}"
    path.write_bytes(b'{"a": 1}\n' * 9)
    with path.open("rb") as source, pytest.raises(jsonl.CompressionError):
        list(jsonl.read_lines(source, str(path)))


def test_missing_file_and_wrong_packing(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(jsonl.read_jsonl(str(tmp_path / "none.jsonl")))
    (tmp_path / "plain.zst").write_bytes(b'{"a": 1}\n')
    with pytest.raises(InputError, match="cannot be read"):
        list(jsonl.read_jsonl(str(tmp_path / "plain.zst")))


@pytest.mark.parametrize("chunk", [7, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        '[{"a": "ä"}, {"a": [1, {}]},\n {"a": 3}]',
        '{\n "a": "ä"\n}\n{"a": [1, {}]}\n{\n"a": 3}',
        '\ufeff[ {"a":"ä"},{"a":[1,{}]},{"a":3} ]\n',
    ],
)
def test_json_that_is_one_array_or_takes_several_lines(tmp_path, monkeypatch, text, chunk):
    monkeypatch.setattr(jsonl, "_CHUNK_BYTES", chunk)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    rows = list(jsonl.read_jsonl(str(tmp_path / "a.json")))
    assert rows == [(f"{tmp_path}/a.json:{n}", {"a": value}) for n, value in enumerate(("ä", [1, {}], 3), 1)]


ROW = {"title": "Storm", "text": "It rained."}


@pytest.mark.parametrize("lines", [None, 1])
@pytest.mark.parametrize(
    "answer",
    [
        {"totalArticles": 9, "articles": [ROW]},
        {"pagination": {"limit": 1}, "data": [ROW]},
        {"articles": {"results": [ROW], "page": 1}},
        {"_type": "News", "sort": [{"id": "relevance"}], "value": [ROW]},
        {"status": "ok", "feed": {"title": "A News", "links": [{"href": "/"}]}, "items": [ROW]},
        {"kind": "Listing", "data": {"after": "x", "children": [ROW]}},
        {"took": 1, "hits": {"total": {"value": 1}, "hits": [ROW]}},
        {"rss": {"channel": {"title": "A News", "item": [ROW]}}},
        {"version": "https://jsonfeed.org/version/1.1", "title": "A News", "items": [ROW]},
        {"storms": [ROW]},
    ],
)
def test_the_articles_of_answers_and_dumps(tmp_path, answer, lines):
    path = tmp_path / "r.json"
    path.write_text("\n".join([json.dumps(answer, indent=lines)] * 2))
    assert [row for _, row in jsonl.read_jsonl(str(path))] == [ROW] * 2


@pytest.mark.parametrize(
    "row", [ROW | {"data": [{"id": 1}], "items": []}, {"head": "Storm", "items": []}, {"a": [1], "b": [{}]}, {}]
)
def test_lists_in_articles_and_in_unknown_objects_are_theirs(tmp_path, row):
    (tmp_path / "r.jsonl").write_text(json.dumps(row))
    assert [found for _, found in jsonl.read_jsonl(str(tmp_path / "r.jsonl"))] == [row]


def test_an_array_that_is_cut_names_its_last_element(tmp_path):
    (tmp_path / "a.json").write_text('[{"a": 1}, {"a": ')
    with pytest.raises(InputError, match=r"a\.json:2: not JSON"):
        list(jsonl.read_jsonl(str(tmp_path / "a.json")))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_tables_as_excel_saves_them(tmp_path, monkeypatch, separator, charset):
    monkeypatch.setattr(jsonl, "_CHUNK_BYTES", 7)
    names = f"title{separator}text\r\n"
    stated = f"sep={separator}\r\n" if charset == "utf-8-sig" else ""
    mark = "\ufeff" if charset == "utf-16-le" else ""
    table = f'{mark}{stated}{names}Übung{separator}"Regen, Wind;\r\n\tund 雪"\r\n'
    (tmp_path / "a.csv").write_bytes(table.encode(charset))
    rows = [row for _, row in jsonl.read_jsonl(str(tmp_path / "a.csv"))]
    assert [{**row, "text": row["text"].replace("\r", "")} for row in rows] == [
        {"title": "Übung", "text": "Regen, Wind;\n\tund 雪"}
    ]


@pytest.mark.parametrize("first", ["N1\tnews\thttps://a.example/1", f"N1\tnews\t{'It rains. ' * 9}"])
def test_the_columns_of_a_table_without_names_have_numbers(tmp_path, first):
    (tmp_path / "a.tsv").write_text(f"{first}\nN2\tsport\tshort\n")
    rows = [row for _, row in jsonl.read_jsonl(str(tmp_path / "a.tsv"))]
    assert rows == [dict(zip("123", first.split("\t"), strict=True)), {"1": "N2", "2": "sport", "3": "short"}]


@pytest.mark.parametrize("separator", ["\t", "|"])
def test_quotes_that_quote_no_cell(tmp_path, separator):
    rows = [
        ('"Stay," says Ann', '"No"'),
        ('"Half', "It rained"),
        ("Sea", '"All" is well'),
        ('"A', "B"),
        ('Or "so"', "E"),
        ('"C"', "D"),
    ]
    path = tmp_path / ("r.tsv" if separator == "\t" else "r.csv")
    path.write_text("\n".join(separator.join(row) for row in [("title", "text"), *rows]))
    found = [tuple(row.values()) for _, row in jsonl.read_jsonl(str(path))]
    assert found == [('"Stay," says Ann', '"No"'), *rows[1:5], ("C", "D")]


def test_a_row_with_more_cells_than_names_is_no_object_and_says_why(tmp_path):
    (tmp_path / "a.csv").write_text("title,text\nA,b,c\n")
    with (tmp_path / "a.csv").open("rb") as source:
        assert list(jsonl.read_values(source, "a.csv")) == [b"3 cells, the first row has 2: A,b,c"]


def test_an_answer_of_many_lines_is_not_read_again_with_each_line(monkeypatch):
    read, decode = [], json.JSONDecoder.raw_decode
    monkeypatch.setattr(
        json.JSONDecoder, "raw_decode", lambda self, text, idx=0: read.append(len(text)) or decode(self, text, idx)
    )
    rows = [{"title": f"title {number}", "body": "rain"} for number in range(2_000)]
    raw = json.dumps({"articles": rows}, indent=1).encode()
    assert [json.loads(row) for row in jsonl.read_values(io.BytesIO(raw), "a.json")] == rows
    assert sum(read[: -len(rows)]) < 5 * len(raw)


def test_an_empty_answer_does_not_hide_those_after_it():
    answers = [{"status": "ok", "articles": rows} for rows in ([], [{"title": "a"}], [], [{"title": "b"}])]
    raw = "\n".join(map(json.dumps, answers)).encode()
    first, *found = map(json.loads, jsonl.read_values(io.BytesIO(raw), "a.jsonl"))
    assert (first, found) == (answers[0], [{"title": "a"}, {"title": "b"}])
