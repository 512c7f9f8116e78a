"""Tables of names as users bring them, and those that are made from a Wikidata dump."""

import bz2
import collections
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.knowledge import KnowledgeOptions, make_table, names_of_entity
from newsembed.errors import InputError
from newsembed.formats.names import KnownName, NameCounts, read_names


def text(tag, value):
    return {"language": tag, "value": value}


def item(number, labels, aliases=None, sitelinks=5, instance_of="Q5", **changes):
    """An entity in the format of Wikidata's dumps."""
    main = {"datavalue": {"value": {"entity-type": "item", "id": instance_of}, "type": "wikibase-entityid"}}
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {tag: text(tag, value) for tag, value in labels.items()},
        "descriptions": {},
        # An empty object is an empty array in dumps.
        "aliases": {tag: [text(tag, value) for value in values] for tag, values in (aliases or {}).items()} or [],
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


def make(dump, folder, languages=(), least=3, lines_of_a_part=100):
    options = KnowledgeOptions(wikidata=str(dump), output=str(folder), languages=languages, min_sitelinks=least)
    return make_table(options, lines_of_a_part)


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
    counts = make(dump(tmp_path / name, [*ITEMS, "{broken", '"text"']), tmp_path / "out")
    assert rows(tmp_path / "out") == EXPECTED
    lost = {"broken": 2, "not_items": 1, "pages": 1, "few_sitelinks": 1, "not_names": 1, "other_languages": 0}
    assert counts == {"names": 5, "lines": 8, **lost}


def test_only_the_languages_asked_for_are_kept(tmp_path):
    items = [*ITEMS, item(5, {"zh-hant": "柏林"})]
    counts = make(dump(tmp_path / "dump.json", items), tmp_path / "out", ("ar,zh-Hant",), 1)
    assert [name.alias for name in rows(tmp_path / "out")] == ["فلاديمير بوتين", "柏林"]
    assert counts["other_languages"] == 2  # Berlin and the village


def test_a_run_that_was_cut_off_goes_on_after_the_last_complete_part_and_says_where_it_is(tmp_path, capsys):
    whole, out = dump(tmp_path / "dump.json.bz2", ITEMS), tmp_path / "out"
    expected = make(whole, tmp_path / "whole", lines_of_a_part=2)
    kept = (tmp_path / "whole" / "part-00000.parquet").read_bytes()
    state = json.loads((tmp_path / "whole" / "state.json").read_text())
    out.mkdir()
    (out / "part-00000.parquet").write_bytes(kept)
    (out / "part-00001.parquet").write_bytes(b"cut off")
    first = {**dict.fromkeys(expected, 0), "names": 3, "lines": 2, "not_names": 1}
    (out / "state.json").write_text(json.dumps({**state, "parts": 1, "complete": False, "counts": first}))
    capsys.readouterr()
    assert make(whole, out, lines_of_a_part=2) == expected
    assert capsys.readouterr().err.startswith("knowledge: 2 lines, 3 names …\nknowledge: 4 lines, 3 names …\n")
    assert rows(out) == EXPECTED
    assert (out / "part-00000.parquet").read_bytes() == kept
    assert make(whole, out, lines_of_a_part=2) == expected  # it is complete


def test_a_dump_that_is_truncated_or_without_entities_is_refused(tmp_path):
    path = tmp_path / "dump.json.bz2"
    dump(path, ITEMS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"dump\.json\.bz2: cannot be read: (.|\n)*parts that were written are kept"):
        make(path, tmp_path / "out", lines_of_a_part=2)
    (tmp_path / "dump.json").write_text("[\n]\n")
    with pytest.raises(InputError, match=r"dump\.json: --wikidata: has no entities"):
        make(tmp_path / "dump.json", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_dump_that_gives_no_names_is_refused_with_the_reasons_each_time(tmp_path):
    path = dump(tmp_path / "dump.json", [*ITEMS, "{broken"])
    problem = r"none of its 7 entities gives a name \(1 broken, 4 few_sitelinks, 1 not_items, 1 pages\)"
    for _ in range(2):
        with pytest.raises(InputError, match=problem):
            make(path, tmp_path / "out", least=9)
    assert make(path, tmp_path / "out")["names"] == 5  # what the remedy says
    assert rows(tmp_path / "out") == EXPECTED
    with pytest.raises(InputError, match=r"none of its 1 entities gives a name \(1 other_languages\)"):
        make(dump(tmp_path / "one.json", ITEMS[:1]), tmp_path / "other", ("xx",))


def test_a_folder_of_another_dump_is_not_continued(tmp_path):
    make(dump(tmp_path / "one.json", ITEMS), tmp_path / "out")
    with pytest.raises(InputError, match="another dump"):
        make(dump(tmp_path / "two.json", ITEMS[:2]), tmp_path / "out")
    with pytest.raises(InputError, match="other options"):
        make(tmp_path / "one.json", tmp_path / "out", ("en",))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["en", "value", "P31"]), inner),
)


@given(st.dictionaries(st.sampled_from(["labels", "aliases", "claims", "sitelinks"]), JSON))
def test_items_of_any_shape_give_names_or_are_counted(fields):
    counts = collections.Counter()
    line = json.dumps({"type": "item", "id": "Q1", **fields}).encode()
    for name in names_of_entity(line, (), 0, counts):
        assert name.alias.strip() == name.alias != ""
        assert name.prior >= 1
    assert counts["lines"] == 1


def test_names_are_read_from_tsv_and_parquet(tmp_path):
    (tmp_path / "t.tsv").write_text("Q1\ten\tNew  York\nQ1\tzh_Hant\t紐約\t0.5\n\nQ2\t\tX\nQ2\ten\t" + "a" * 201 + "\n")
    counts = NameCounts()
    found = list(read_names(str(tmp_path / "t.tsv"), counts))
    assert found == [KnownName("Q1", "en", "New York", 1), KnownName("Q1", "zh-Hant", "紐約", 0.5)]
    assert counts == NameCounts(rows=4, too_short=1, too_long=1)
    columns = {"entity": ["Q1", "Q1"], "alias": ["New York", "紐約"], "language": ["en", "zh-Hant"], "prior": [1, 0.5]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert rows(tmp_path / "t.parquet") == found
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress((tmp_path / "t.tsv").read_bytes()))
    assert rows(tmp_path / "t.tsv.gz") == found
    del columns["language"]
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: language: got the columns"):
        rows(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    "line",
    [
        *("Q1\ten", "\ten\tx y", "Q1\ten\t ", "Q1\ten\tParis\tmany", "Q1\ten\tParis\t0"),
        *("Q1\ten\ta b\t1\t2", "Q1\ten\t\udcfc"),
    ],
)
def test_a_broken_row_is_named(tmp_path, line):
    (tmp_path / "t.tsv").write_bytes(f"Q1\ten\tParis\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"t\.tsv:( line )?2: "):
        rows(tmp_path / "t.tsv")
