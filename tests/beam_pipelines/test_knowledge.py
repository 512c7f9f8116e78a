"""Tables of names as users bring them, and those that are made from a Wikidata dump."""

import bz2
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.knowledge import make_table
from newsembed.errors import InputError
from newsembed.formats.names import KnownName, NameCounts, read_names
from newsembed.formats.wikidata import DumpCounts, names_of_entity


def item(number, labels, aliases=None, sitelinks=5, instance_of="Q5", **changes):
    """An entity in the format of Wikidata's dumps."""
    main = {"datavalue": {"value": {"entity-type": "item", "id": instance_of}, "type": "wikibase-entityid"}}
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {tag: {"language": tag, "value": value} for tag, value in labels.items()},
        "descriptions": {},
        "aliases": {
            tag: [{"language": tag, "value": value} for value in values] for tag, values in (aliases or {}).items()
        }
        or [],  # an empty object is an empty array in dumps
        "claims": {"P31": [{"mainsnak": {"snaktype": "value", "property": "P31", **main}, "rank": "normal"}]},
        "sitelinks": {f"w{n}wiki": {"site": f"w{n}wiki", "title": "x", "badges": []} for n in range(sitelinks)},
        **changes,
    }


ITEMS = [
    item(7747, {"en": "Vladimir Putin", "ar": "فلاديمير بوتين"}, {"en": ["Putin", "Vladimir Putin"]}, 8),
    item(283, {"en": "water", "de": "Wasser"}),
    item(9, {"en": "Mercury"}, instance_of="Q4167410"),
    {"type": "property", "id": "P31", "labels": {}},
    item(11, {"en": "Obscure Village"}, sitelinks=1),
    item(64, {"en": "Berlin", "zh": "柏林"}, sitelinks=3),
]


def dump(path, lines):
    text = "[\n" + ",\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n]\n"
    opened = {".gz": gzip.open, "bz2": bz2.open}.get(path.name[-3:], open)
    with opened(path, "wb") as sink:
        sink.write(text.encode())
    return str(path)


def rows(folder):
    return list(read_names(str(folder), NameCounts()))


EXPECTED = [
    KnownName("Q7747", "ar", "فلاديمير بوتين", 8),
    KnownName("Q7747", "en", "Vladimir Putin", 8),
    KnownName("Q7747", "en", "Putin", 4),
    KnownName("Q64", "en", "Berlin", 3),
    KnownName("Q64", "zh", "柏林", 3),
]


@pytest.mark.parametrize("name", ["dump.json.gz", "dump.json.bz2", "dump.json"])
def test_a_dump_becomes_a_table_and_every_line_is_counted(tmp_path, name):
    counts = make_table(dump(tmp_path / name, [*ITEMS, "{broken", '"text"']), str(tmp_path / "out"), frozenset(), 3)
    assert rows(tmp_path / "out") == EXPECTED
    assert counts == {
        "names": 5,
        "lines": 8,
        "broken": 2,
        "not_items": 1,
        "pages": 1,
        "few_sitelinks": 1,
        "not_names": 1,
        "other_languages": 0,
    }


def test_only_the_languages_asked_for_are_kept(tmp_path):
    items = [*ITEMS, item(5, {"zh-hant": "柏林"})]
    counts = make_table(dump(tmp_path / "dump.json", items), str(tmp_path / "out"), frozenset({"ar", "zh-Hant"}), 1)
    assert [name.alias for name in rows(tmp_path / "out")] == ["فلاديمير بوتين", "柏林"]
    assert counts["other_languages"] == 2  # Berlin and the village


@pytest.mark.parametrize("name", ["dump.json.gz", "dump.json.bz2"])
def test_a_run_that_was_cut_off_goes_on_after_the_last_complete_part(tmp_path, name):
    whole, out = dump(tmp_path / name, ITEMS), tmp_path / "out"
    expected = make_table(whole, str(tmp_path / "whole"), frozenset(), 3, 2)
    kept = (tmp_path / "whole" / "part-00000.parquet").read_bytes()
    state = json.loads((tmp_path / "whole" / "state.json").read_text())
    out.mkdir()
    (out / "part-00000.parquet").write_bytes(kept)
    (out / "part-00001.parquet").write_bytes(b"cut off")
    first = {**dict.fromkeys(expected, 0), "names": 3, "lines": 2, "not_names": 1}
    (out / "state.json").write_text(json.dumps({**state, "parts": 1, "complete": False, "counts": first}))
    assert make_table(whole, str(out), frozenset(), 3, 2) == expected
    assert rows(out) == EXPECTED
    assert (out / "part-00000.parquet").read_bytes() == kept
    assert make_table(whole, str(out), frozenset(), 3, 2) == expected  # it is complete


def test_a_truncated_dump_is_named_and_its_parts_are_kept(tmp_path):
    path = tmp_path / "dump.json.bz2"
    dump(path, ITEMS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot be read to its end") as caught:
        make_table(str(path), str(tmp_path / "out"), frozenset(), 3, 2)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("text", ["", "[\n]\n", "\n\n"])
def test_a_dump_without_entities_is_refused_and_leaves_no_table(tmp_path, text):
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(InputError, match=r"dump\.json: --wikidata: has no entities"):
        make_table(str(tmp_path / "dump.json"), str(tmp_path / "out"), frozenset(), 3)
    assert not (tmp_path / "out").exists()


def test_a_dump_that_gives_no_names_is_refused_with_the_reasons_each_time(tmp_path):
    path = dump(tmp_path / "dump.json", [*ITEMS, "{broken"])
    problem = r"none of its 7 entities gives a name \(1 broken, 4 few_sitelinks, 1 not_items, 1 pages\)"
    for _ in range(2):
        with pytest.raises(InputError, match=problem):
            make_table(path, str(tmp_path / "out"), frozenset(), 9)
    assert make_table(path, str(tmp_path / "out"), frozenset(), 3)["names"] == 5  # what the remedy says
    assert rows(tmp_path / "out") == EXPECTED
    with pytest.raises(InputError, match=r"none of its 1 entities gives a name \(1 other_languages\)"):
        make_table(dump(tmp_path / "one.json", ITEMS[:1]), str(tmp_path / "other"), frozenset({"xx"}), 3)


def test_a_folder_of_another_dump_is_not_continued(tmp_path):
    make_table(dump(tmp_path / "one.json", ITEMS), str(tmp_path / "out"), frozenset(), 3)
    with pytest.raises(InputError, match="another dump"):
        make_table(dump(tmp_path / "two.json", ITEMS[:2]), str(tmp_path / "out"), frozenset(), 3)
    with pytest.raises(InputError, match="other options"):
        make_table(str(tmp_path / "one.json"), str(tmp_path / "out"), frozenset({"en"}), 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["en", "value", "P31"]), inner),
)


@given(st.dictionaries(st.sampled_from(["labels", "aliases", "claims", "sitelinks"]), JSON))
def test_items_of_any_shape_give_names_or_are_counted(fields):
    counts = DumpCounts()
    line = json.dumps({"type": "item", "id": "Q1", **fields}).encode()
    for name in names_of_entity(line, (), 0, counts):
        assert name.alias.strip() == name.alias != ""
        assert name.prior >= 1
    assert counts.lines == 1


def test_names_are_read_from_tsv_and_parquet(tmp_path):
    (tmp_path / "t.tsv").write_text("Q1\ten\tNew  York\nQ1\tzh_Hant\t紐約\t0.5\n\nQ2\t\tX\nQ2\ten\t" + "a" * 201 + "\n")
    counts = NameCounts()
    found = list(read_names(str(tmp_path / "t.tsv"), counts))
    assert found == [KnownName("Q1", "en", "New York", 1), KnownName("Q1", "zh-Hant", "紐約", 0.5)]
    assert counts == NameCounts(rows=4, too_short=1, too_long=1)
    columns = {"entity": ["Q1", "Q1"], "alias": ["New York", "紐約"], "language": ["en", "zh-Hant"], "prior": [1, 0.5]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert list(read_names(str(tmp_path / "t.parquet"), NameCounts())) == found
    with gzip.open(tmp_path / "t.tsv.gz", "wb") as sink:
        sink.write((tmp_path / "t.tsv").read_bytes())
    assert list(read_names(str(tmp_path / "t.tsv.gz"), NameCounts())) == found


@pytest.mark.parametrize(
    "line", ["Q1\ten", "Q1", "\ten\tx y", "Q1\ten\t ", "Q1\ten\tParis\tmany", "Q1\ten\tParis\t0", "Q1\ten\ta b\t1\t2"]
)
def test_a_broken_row_is_named(tmp_path, line):
    (tmp_path / "t.tsv").write_text(f"Q1\ten\tParis\n{line}\n")
    with pytest.raises(InputError) as caught:
        list(read_names(str(tmp_path / "t.tsv"), NameCounts()))
    assert (caught.value.path, caught.value.field) == (str(tmp_path / "t.tsv"), "line 2")


def test_a_table_without_a_column_or_in_another_encoding_is_named(tmp_path):
    pq.write_table(pa.table({"entity": ["Q1"], "alias": ["Paris"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError) as caught:
        list(read_names(str(tmp_path / "t.parquet"), NameCounts()))
    assert caught.value.field == "language"
    (tmp_path / "t.tsv").write_bytes("Q1\ten\tMünchen\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_names(str(tmp_path / "t.tsv"), NameCounts()))
