"""Parquet streams: records survive the disk, every record type has a schema, bad files are named."""

import dataclasses
import datetime

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import parquet, records

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ARTICLES = st.builds(
    records.Article,
    doc_id=TEXT,
    url=TEXT,
    publisher=TEXT,
    title=TEXT,
    body=TEXT,
    authors=st.lists(TEXT, max_size=3).map(tuple),
    byline_date=st.none() | st.dates(),
    language=TEXT,
    image_hash=st.none() | st.binary(min_size=8, max_size=8),
    # hypothesis wants naive bounds and adds the timezone itself
    fetched_at=st.none() | st.datetimes(min_value=datetime.datetime(1970, 1, 1), timezones=st.just(datetime.UTC)),
)


@settings(max_examples=30, deadline=None)
@given(articles=st.lists(ARTICLES, max_size=5))
def test_records_survive_the_disk(tmp_path_factory, articles):
    path = str(tmp_path_factory.mktemp("stream") / "part-00000-of-00001.parquet")
    assert parquet.write_shard(path, articles, records.Article) == len(articles)
    assert list(parquet.read_records(path, records.Article)) == articles
    assert pq.read_schema(path).equals(parquet.schema_of(records.Article))


@pytest.mark.parametrize(
    "record_type",
    [
        records.Article,
        records.Hub,
        records.Vector,
        records.Neighbor,
        records.Triplet,
        records.TopicLabels,
        records.DeadLetter,
    ],
)
def test_every_stream_type_has_a_schema(record_type):
    assert parquet.schema_of(record_type).names == [field.name for field in dataclasses.fields(record_type)]


def test_a_failed_writer_leaves_no_shard(tmp_path):
    path = tmp_path / "part-00000-of-00001.parquet"
    with pytest.raises(RuntimeError), parquet.ParquetShardWriter(str(path), records.TopicLabels):
        raise RuntimeError("boom")
    assert not path.exists()


def test_broken_and_foreign_files_are_named(tmp_path):
    broken = tmp_path / "part-00000-of-00001.parquet"
    broken.write_bytes(b"PAR1 but no more")
    with pytest.raises(InputError, match=r"part-00000-of-00001\.parquet: not a Parquet file"):
        list(parquet.read_records(str(broken), records.Hub))
    foreign = str(tmp_path / "part-00001-of-00001.parquet")
    parquet.write_shard(foreign, [records.TopicLabels("a", (1,), (0,))], records.TopicLabels)
    with pytest.raises(InputError, match="hub_id"):
        list(parquet.read_records(foreign, records.Hub))
    with pytest.raises(InputError, match=r"no part-\*\.parquet shards"):
        parquet.shard_paths(str(tmp_path / "empty"))
