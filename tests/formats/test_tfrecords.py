"""TFRecords: round trips without TensorFlow, its bytes, damage named by file and byte, foreign records by feature."""

import functools
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import tfrecords
from newsembed.formats.tfrecords import (
    PIECES,
    Blocks,
    FeatureSpec,
    RecordFile,
    TFRecordShardWriter,
    decode_example,
    encode_example,
    frame,
    masked_crc32c,
)

SCHEMA = (
    FeatureSpec("tokens", "int", (None,), "ids of word pieces", PIECES),
    FeatureSpec("doc_id", "int", (2,), "a document id"),
    FeatureSpec("translated", "int", (), "0 or 1"),
    FeatureSpec("language", "bytes", (), "BCP-47 tag"),
)
INT32 = st.integers(-(2**31), 2**31 - 1)
ROWS = st.fixed_dictionaries(
    {
        "tokens": st.lists(INT32, max_size=20),
        "doc_id": st.tuples(INT32, INT32).map(list),
        "translated": INT32,
        "language": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    }
)
ROW = {"tokens": [2, 7, 3], "doc_id": [-1, 1], "translated": 1, "language": "pt-BR"}


def write(path, records):
    path.write_bytes(b"".join(map(frame, records)))
    return str(path)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_records_come_back_in_any_order(tmp_path_factory, records):
    file = RecordFile(write(tmp_path_factory.mktemp("records") / "part-0.tfrecord", records))
    assert [file[number] for number in reversed(range(len(file)))] == records[::-1]


def test_the_checksum_is_that_of_the_format():
    # RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 0x8a9136aa; rotated right by 15 bits and offset as TFRecord
    # does.
    rotated = ((0x8A9136AA >> 15) | (0x8A9136AA << 17)) & 0xFFFFFFFF
    assert masked_crc32c(bytes(32)) == (rotated + 0xA282EAD8) % (1 << 32)


@pytest.mark.parametrize("cut", [1, 4, 10, 20, 25])
def test_a_cut_file_names_itself_and_the_byte(tmp_path, cut):
    path = tmp_path / "part-0.tfrecord"
    write(path, [b"first one!", b"second one"])
    path.write_bytes(path.read_bytes()[: 26 + cut])
    with pytest.raises(InputError, match=rf"{path}: .*ends inside .* byte 26|no TFRecord header at byte 26") as raised:
        len(RecordFile(str(path)))
    assert raised.value.remedy


def test_a_flipped_byte_is_found(tmp_path):
    path = tmp_path / "part-0.tfrecord"
    for byte, message in ((0, "no TFRecord header at byte 0"), (14, "checksum mismatch in record 0 at byte 0")):
        write(path, [b"first one!", b"second one"])
        content = bytearray(path.read_bytes())
        content[byte] ^= 1
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            RecordFile(str(path))[0]


@given(ROWS)
def test_an_example_comes_back_with_the_declared_types_and_ranks(row):
    decoded = decode_example(encode_example(row, SCHEMA), SCHEMA, "file")
    assert {name: array.tolist() for name, array in decoded.items()} == row | {"language": row["language"].encode()}
    assert {name: str(array.dtype) for name, array in decoded.items()} == {
        "tokens": "int32",
        "doc_id": "int32",
        "translated": "int32",
        "language": "object",
    }
    assert [decoded[spec.name].ndim for spec in SCHEMA] == [1, 1, 0, 0]


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_the_bytes_are_those_of_tensorflow(row):
    import tensorflow as tf

    example = tf.train.Example()
    for name in ("tokens", "doc_id"):
        example.features.feature[name].int64_list.value.extend(row[name])
    example.features.feature["translated"].int64_list.value.append(row["translated"])
    example.features.feature["language"].bytes_list.value.append(row["language"].encode())
    assert encode_example(row, SCHEMA) == example.SerializeToString(deterministic=True)


def test_tensorflow_reads_our_files(tmp_path):
    import tensorflow as tf

    path = str(tmp_path / "part-00000-of-00001.tfrecord")
    rows = [ROW, ROW | {"tokens": []}]
    with TFRecordShardWriter(path) as writer:
        for row in rows:
            writer.write(row, SCHEMA)
    assert writer.rows == 2
    read = [tf.train.Example.FromString(raw.numpy()).features.feature for raw in tf.data.TFRecordDataset(path)]
    assert [list(features["tokens"].int64_list.value) for features in read] == [[2, 7, 3], []]
    assert [list(features["language"].bytes_list.value) for features in read] == [[b"pt-BR"]] * 2


def test_rows_outside_the_schema_are_refused():
    with pytest.raises(ValueError, match=r"got the features \['tokens'\], expected \['doc_id', 'language'"):
        encode_example({"tokens": [1]}, SCHEMA)
    with pytest.raises(ValueError, match="doc_id: got 1 values, expected 2"):
        encode_example(ROW | {"doc_id": [0]}, SCHEMA)


@pytest.mark.parametrize(
    ("written", "spec", "message"),
    [
        ("other", "int", r"part-7: tokens: got the features other, expected tokens \(ids of word pieces\)"),
        ("tokens", "bytes", "tokens: got bytes values, expected int"),
    ],
)
def test_a_record_of_another_schema_is_named(written, spec, message):
    shape = (None,) if spec == "int" else ()
    value = [1] if spec == "int" else "text"
    record = encode_example({written: value}, (FeatureSpec(written, spec, shape, ""),))
    with pytest.raises(InputError, match=message):
        decode_example(record, SCHEMA[:1], "part-7")


@pytest.mark.parametrize(
    ("values", "message"), [([1, 2, 3], "got 3 values, expected 2"), ([1, 1 << 40], "got a value beyond 32 bits")]
)
def test_values_that_do_not_fit_are_named(values, message):
    record = encode_example({"doc_id": values}, (FeatureSpec("doc_id", "int", (None,), ""),))
    with pytest.raises(InputError, match=f"part-7: doc_id: {message}"):
        decode_example(record, SCHEMA[1:2], "part-7")


def test_what_is_no_example_is_named():
    with pytest.raises(InputError, match="not a tf.train.Example"):
        decode_example(b"\xff\xff\xff", SCHEMA, "file")


OPTIONAL = (
    *SCHEMA,
    FeatureSpec("day", "int", (), "absent in older records", optional=True),
    FeatureSpec("words", "int", (2,), "absent in older records", optional=True),
    FeatureSpec("more", "int", (None,), "absent in older records", optional=True),
)


def test_an_optional_feature_that_a_record_lacks_is_zeros():
    needed = {"tokens": [1], "doc_id": [2, 3], "translated": 0, "language": "en"}
    found = decode_example(encode_example(needed, OPTIONAL), OPTIONAL, "part-0")
    assert {name: found[name].tolist() for name in ("day", "words", "more")} == {"day": 0, "words": [0, 0], "more": []}
    assert encode_example(needed, OPTIONAL) == encode_example(needed, SCHEMA)
    given = {"day": 4, "words": [5, 6], "more": [7]}
    found = decode_example(encode_example(needed | given, OPTIONAL), OPTIONAL, "part-0")
    assert {name: found[name].tolist() for name in given} == given
    with pytest.raises(ValueError, match="got the features"):
        encode_example(given, OPTIONAL)
    short = (*SCHEMA, FeatureSpec("words", "int", (None,), "of another shape"))
    record = encode_example(needed | {"words": [5]}, short)
    with pytest.raises(InputError, match="words: got 1 values, expected 2"):
        decode_example(record, OPTIONAL, "part-0")


def test_threads_that_begin_at_once_share_one_class(monkeypatch):
    built, build = [], tfrecords._example_class.__wrapped__

    def slowly():
        built.append(build())
        time.sleep(0.05)
        return built[-1]

    monkeypatch.setattr(tfrecords, "_example_class", functools.cache(slowly))
    numbers = (FeatureSpec("words", "int", (None,), "of any number"),)
    with ThreadPoolExecutor(8) as pool:
        records = [*pool.map(lambda number: encode_example({"words": [number]}, numbers), range(8))]
        read = pool.map(lambda record: decode_example(record, numbers, "part-0")["words"].tolist(), records)
    assert [*read] == [[number] for number in range(8)]
    assert len(built) == 1


@pytest.fixture
def blocks_of_three(monkeypatch):
    monkeypatch.setattr(tfrecords, "BLOCK_RECORDS", 3)


def written(folder, count):
    """A file of so many records, of which a writer says where they are."""
    with TFRecordShardWriter(f"{folder}/part-0.tfrecord") as writer:
        for number in range(count):
            writer.write_bytes(b"x" * number)
    return writer


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9])
def test_a_file_is_read_where_its_writer_says_that_the_records_are(tmp_path, blocks_of_three, count):
    writer = written(tmp_path, count)
    file, scanned = RecordFile(writer.path, writer.blocks), RecordFile(writer.path)
    assert scanned.blocks == writer.blocks
    assert [file[number] for number in reversed(range(count))] == [b"x" * number for number in reversed(range(count))]
    assert file.sizes() == scanned.sizes() == [3] * (count // 3) + [count % 3] * (count % 3 > 0)


def test_blocks_of_another_file_are_noticed_when_they_are_read(tmp_path, blocks_of_three):
    writer = written(tmp_path, 9)
    offsets = writer.blocks.offsets
    for wrong, message in (((0, offsets[2]), "got 6 records in the block"), ((0, offsets[1] + 1), "ends inside")):
        with pytest.raises(InputError, match=message) as raised:
            RecordFile(writer.path, Blocks(6, wrong))[1]
        assert str(raised.value).startswith(writer.path)


def test_a_block_in_a_store_is_read_once_until_others_take_its_place(tmp_path, blocks_of_three, monkeypatch):
    writer, asked = written(tmp_path, 9), []

    def read(path, start, end):
        asked.append(start)
        with open(path, "rb") as source:
            return source.read()[start:end]

    monkeypatch.setattr(tfrecords, "read_range", read)
    size, cache = os.path.getsize(writer.path), tfrecords.BlockCache(2)
    file = RecordFile(writer.path, writer.blocks, cache=cache, size=size)
    file.fetch(1)
    for number in (3, 0, 4, 1, 5):
        assert file[number] == b"x" * number
    assert sorted(asked) == [0, writer.blocks.offsets[1]]
    assert file[8] == b"x" * 8
    assert file[0] == b""
    assert asked[2:] == [writer.blocks.offsets[2], 0]


def test_a_block_that_could_not_be_read_is_asked_for_again():
    answers = iter([InputError("no answer"), "block"])

    def read():
        answer = next(answers)
        if isinstance(answer, InputError):
            raise answer
        return answer

    cache = tfrecords.BlockCache(2)
    with pytest.raises(InputError, match="no answer"):
        cache.get("key", read)
    assert cache.get("key", read) == "block"
