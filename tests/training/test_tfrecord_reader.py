"""The TensorFlow-free reader: round trip, damage is named by file and byte, records that break the contract by feature."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.examples import decode_example, encode_example
from newsembed.formats.tfrecord_reader import RecordFile, masked_crc32c
from newsembed.tasks.features import PRETRAINING_FEATURES, TOPIC_FEATURES, TRIPLET_FEATURES
from toy_corpus import packed_row, topics, write_records


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_records_come_back_in_any_order(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("records") / "part-0.tfrecord"
    write_records(path, records)
    file = RecordFile(str(path))
    assert [file[number] for number in reversed(range(len(file)))] == records[::-1]
    assert len(pickle.loads(pickle.dumps(file))) == len(records)


def test_checksum_is_that_of_the_format():
    # RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 0x8a9136aa; rotated right by 15 bits and offset as TFRecord does.
    rotated = ((0x8A9136AA >> 15) | (0x8A9136AA << 17)) & 0xFFFFFFFF
    assert masked_crc32c(bytes(32)) == (rotated + 0xA282EAD8) % (1 << 32)


@pytest.mark.parametrize("cut", [1, 4, 10, 20, 25])
def test_a_cut_file_names_itself_and_the_byte(tmp_path, cut):
    path = tmp_path / "part-0.tfrecord"
    write_records(path, [b"first one!", b"second one"])
    path.write_bytes(path.read_bytes()[: 26 + cut])
    with pytest.raises(InputError, match=rf"{path}: .*ends inside .* byte 26|no TFRecord header at byte 26") as raised:
        len(RecordFile(str(path)))
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("byte", "message"), [(0, "no TFRecord header at byte 0"), (14, "checksum mismatch in record 0 at byte 0")]
)
def test_a_flipped_byte_is_found(tmp_path, byte, message):
    path = tmp_path / "part-0.tfrecord"
    write_records(path, [b"first one!", b"second one"])
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        RecordFile(str(path))[0]


def test_an_example_comes_back_with_the_declared_types():
    rng = np.random.default_rng(0)
    example = topics(rng, 0xFFFFFFFF00000001)
    decoded = decode_example(encode_example(example), TOPIC_FEATURES, "file")
    assert {name: values.tolist() for name, values in decoded.items()} == example
    assert {values.dtype for values in decoded.values()} == {np.dtype(np.int32)}
    assert decoded["doc_id"].tolist() == [-1, 1]


def test_scalars_and_bytes():
    values = {
        "anchor_tokens": [2, 3],
        "positive_tokens": [2, 3],
        "negative_tokens": [2, 3],
        "augmentation": [3],
        "translated": [1],
    }
    ids = {f"{name}_doc_id": [1, 2] for name in ("anchor", "positive", "negative")}
    decoded = decode_example(encode_example(values | ids | {"language": [b"pt-BR"]}), TRIPLET_FEATURES, "file")
    assert (decoded["augmentation"].shape, int(decoded["augmentation"])) == ((), 3)
    assert decoded["language"].item() == b"pt-BR"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": None}, r"part-7: tokens: got the features doc_id, topic_ids, topic_labels, expected tokens"),
        ({"tokens": [b"text"]}, "tokens: got bytes values, expected int"),
        ({"doc_id": [1, 2, 3]}, "doc_id: got 3 values, expected 2"),
        ({"doc_id": [1, 1 << 40]}, "doc_id: got a value beyond 32 bits"),
    ],
)
def test_a_record_of_another_feature_set_is_named(change, message):
    example = topics(np.random.default_rng(0), 1) | change
    record = encode_example({name: values for name, values in example.items() if values is not None})
    with pytest.raises(InputError, match=message):
        decode_example(record, TOPIC_FEATURES, "part-7")


def test_what_is_no_example_is_named():
    with pytest.raises(InputError, match="no tf.train.Example"):
        decode_example(b"\xff\xff\xff", PRETRAINING_FEATURES, "file")


def test_tensorflow_writes_the_same_bytes():
    tensorflow = pytest.importorskip("tensorflow")
    example = packed_row(np.random.default_rng(1))
    theirs = tensorflow.train.Example.FromString(encode_example(example))
    assert {name: list(theirs.features.feature[name].int64_list.value) for name in example} == example
    assert (
        decode_example(theirs.SerializeToString(), PRETRAINING_FEATURES, "file")["tokens"].tolist() == example["tokens"]
    )
