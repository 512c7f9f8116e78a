"""Parquet streams: records survive the disk, every record type has a schema, bad files are named."""

import dataclasses
import datetime
import errno
import hashlib
import typing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import parquet, records

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = {
    str: TEXT,
    bytes: st.binary(max_size=9),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(width=32, allow_nan=False),
    bool: st.booleans(),
    datetime.date: st.dates(),
    datetime.datetime: st.datetimes(min_value=datetime.datetime(1970, 1, 1), timezones=st.just(datetime.UTC)),
}
RECORDS = [kind for kind in vars(records).values() if dataclasses.is_dataclass(kind)]


def values_of(hint):
    """Any values of a field's type."""
    inner = [argument for argument in typing.get_args(hint) if argument not in (type(None), Ellipsis)]
    if typing.get_origin(hint) is tuple:
        return st.lists(SCALARS[inner[0]], max_size=3).map(tuple)
    return st.none() | SCALARS[inner[0]] if inner else SCALARS[hint]


@pytest.mark.parametrize("record_type", RECORDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_records_of_every_type_survive_the_disk(tmp_path_factory, record_type, data):
    fields = {name: values_of(hint) for name, hint in typing.get_type_hints(record_type).items()}
    written = data.draw(st.lists(st.builds(record_type, **fields), max_size=4))
    path = str(tmp_path_factory.mktemp("stream") / "part-00000-of-00001.parquet")
    assert parquet.write_shard(path, written, record_type) == len(written)
    assert list(parquet.read_records(path, record_type)) == written
    assert pq.read_schema(path).names == [field.name for field in dataclasses.fields(record_type)]


def test_only_optional_fields_may_be_null():
    nullable = {field.name for field in parquet.schema_of(records.Article) if field.nullable}
    hints = typing.get_type_hints(records.Article)
    assert nullable == {name for name, hint in hints.items() if type(None) in typing.get_args(hint)} != set()


def test_many_records_are_several_row_groups_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_ROWS_PER_GROUP", 3)
    path = str(tmp_path / "part-00000-of-00001.parquet")
    written = [records.TopicLabels(str(number), (number,), (1,)) for number in range(8)]
    with parquet.ParquetShardWriter(path, records.TopicLabels) as writer:
        for record in written[:4]:
            writer.write(record)
        columns = {
            name: [getattr(record, name) for record in written[4:]] for name in ("doc_id", "topic_ids", "labels")
        }
        writer.write_columns(columns)
    assert writer.rows == 8
    assert [pq.read_metadata(path).row_group(group).num_rows for group in range(3)] == [3, 1, 4]
    assert list(parquet.read_records(path, records.TopicLabels)) == written
    assert [batch.num_rows for batch in parquet.read_batches(path, ["labels"], rows=5)] == [5, 3]


def test_a_field_that_parquet_cannot_hold_is_refused():
    @dataclasses.dataclass
    class Nested:
        words: dict

    with pytest.raises(TypeError, match="field words: got the type"):
        parquet.schema_of(Nested)


def test_shards_are_compressed_and_a_damaged_page_is_named(tmp_path):
    path = tmp_path / "part-00000-of-00001.parquet"
    written = [records.TopicLabels(f"{number:016x}", (number,), (1,)) for number in range(300)]
    with parquet.ParquetShardWriter(str(path), records.TopicLabels) as writer:
        for record in written:
            writer.write(record)
    raw = path.read_bytes()
    assert writer.sha256 == hashlib.sha256(raw).hexdigest()
    column = pq.read_metadata(path).row_group(0).column(1)
    assert column.compression == "ZSTD"
    # The last byte of a page's data: zstd has no checksum here, so that only the page's own finds the change.
    end = column.dictionary_page_offset + column.total_compressed_size
    for place in range(column.dictionary_page_offset + 40, end, 97):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(InputError, match="not a Parquet file, or damaged: "):
            list(parquet.read_records(str(path), records.TopicLabels))


def test_errors_of_the_disk_are_not_taken_for_damage():
    with pytest.raises(OSError, match="No space left"), parquet.damage_named("a.parquet"):
        raise OSError(errno.ENOSPC, "No space left on device")
    for error in (OSError("Corrupt snappy data\nmore"), pa.ArrowInvalid("Corrupt snappy data\nmore")):
        with (
            pytest.raises(InputError, match=r"damaged: Corrupt snappy data\n") as caught,
            parquet.damage_named("a.parquet", "--articles"),
        ):
            raise error
        assert (caught.value.path, caught.value.field) == ("a.parquet", "--articles")
    with pytest.raises(InputError, match="damaged: ArrowInvalid"), parquet.damage_named("a.parquet"):
        raise pa.ArrowInvalid("")
    with (
        pytest.raises(InputError, match=r"not enough memory to read it, or damaged: malloc of size 9 failed") as caught,
        parquet.damage_named("a.parquet"),
    ):
        raise pa.lib.ArrowMemoryError("malloc of size 9 failed")
    assert caught.value.remedy.startswith("give the process more memory; if it has plenty, write the file again")


def test_bounds_of_a_column_are_in_the_footer(tmp_path):
    path, day = str(tmp_path / "a.parquet"), datetime.date(2020, 1, 2)
    days = [day, None, day.replace(year=2019), day.replace(month=3)]
    for values, expected in ((days, [day, day, *2 * [days[2]], *2 * [days[3]]]), ([None, None], []), ([], [])):
        table = pa.table({"n": list(range(len(values))), "day": pa.array(values, pa.date32())})
        parquet.pq.write_table(table, path, row_group_size=1)
        assert parquet.column_bounds(path, "day") == expected


def test_a_missing_column_is_named_with_those_that_are_there(tmp_path):
    path = str(tmp_path / "part-00000-of-00001.parquet")
    parquet.write_shard(path, [records.TopicLabels("a", (1,), (0,))], records.TopicLabels)
    with pytest.raises(InputError, match=r"got the columns .*doc_id.*, expected \['a', 'z'\] too") as caught:
        list(parquet.read_batches(path, ["z", "labels", "a"]))
    assert caught.value.field == "a"
    assert [batch.num_columns for batch in parquet.read_batches(path)] == [3]


def test_a_file_in_place_of_the_folder_of_a_job_is_named(tmp_path):
    with pytest.raises(RuntimeError), parquet.ParquetShardWriter(str(tmp_path / "a.parquet"), records.Hub):
        raise RuntimeError("boom")
    assert list(tmp_path.iterdir()) == []  # a writer that failed leaves nothing
    (tmp_path / "articles.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="is a file, expected a folder that a job wrote") as caught:
        parquet.shard_paths(f"{tmp_path}/articles.jsonl/articles")
    assert caught.value.path == f"{tmp_path}/articles.jsonl"
    assert "newsembed extract" in caught.value.remedy
    with pytest.raises(InputError, match="no part-"):
        parquet.shard_paths(f"{tmp_path}/other/articles")
