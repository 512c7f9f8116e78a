"""Parquet streams and TFRecord shards: round trips, schemas, bad files."""

import dataclasses
import datetime

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import parquet, records
from newsembed.formats.tfrecord_writer import TFRecordShardWriter, serialize_example
from newsembed.tasks.features import PRETRAINING_FEATURES, TOPIC_FEATURES, doc_id_to_words, words_to_doc_id

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
    with pytest.raises(InputError, match=r"part-00000-of-00001\.parquet: no Parquet file"):
        list(parquet.read_records(str(broken), records.Hub))
    foreign = str(tmp_path / "part-00001-of-00001.parquet")
    parquet.write_shard(foreign, [records.TopicLabels("a", (1,), (0,))], records.TopicLabels)
    with pytest.raises(InputError, match="hub_id"):
        list(parquet.read_records(foreign, records.Hub))
    with pytest.raises(InputError, match=r"no part-\*\.parquet shards"):
        parquet.shard_paths(str(tmp_path / "empty"))


def test_tensorflow_reads_our_tfrecords(tmp_path):
    import tensorflow as tf

    path = str(tmp_path / "part-00000-of-00001.tfrecord")
    rows = [
        {"tokens": [2, 7, 3], "topic_ids": [5], "topic_labels": [1], "doc_id": [-1, 4]},
        {"tokens": [], "topic_ids": [], "topic_labels": [], "doc_id": [0, 0]},
    ]
    with TFRecordShardWriter(path) as writer:
        for row in rows:
            writer.write(row, TOPIC_FEATURES)
    read = []
    for raw in tf.data.TFRecordDataset(path):
        example = tf.train.Example.FromString(raw.numpy())
        read.append({name: list(example.features.feature[name].int64_list.value) for name in rows[0]})
    assert read == rows


def test_examples_outside_the_contract_are_refused():
    with pytest.raises(ValueError, match="got the features"):
        serialize_example({"tokens": [1]}, PRETRAINING_FEATURES)
    with pytest.raises(ValueError, match="doc_id: got 1 values, expected 2"):
        serialize_example({"tokens": [], "topic_ids": [], "topic_labels": [], "doc_id": [0]}, TOPIC_FEATURES)


@given(st.integers(0, 2**64 - 1))
def test_document_ids_survive_two_words(number):
    doc_id = f"{number:016x}"
    words = doc_id_to_words(doc_id)
    assert all(-(2**31) <= word < 2**31 for word in words)
    assert words_to_doc_id(words) == doc_id
