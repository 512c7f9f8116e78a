"""Parameters that embedding reads: what is missing or of another shape, and the digest of a model."""

import hashlib
import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.serving.parameters import matched, model_digest

EXPECTED = {"a.kernel": (2, 3), "a.bias": (3,), "b": ()}
FOUND = {"a.kernel": np.arange(6, dtype=np.float64).reshape(2, 3), "a.bias": np.ones(3, np.float16), "b": np.float32(7)}


def test_what_is_read_is_nested_and_float32_and_the_rest_left_out():
    found = matched({**FOUND, "head": np.ones(9)}, EXPECTED, "p")
    assert (set(found), set(found["a"])) == ({"a", "b"}, {"kernel", "bias"})
    assert {values.dtype for values in (found["a"]["kernel"], found["a"]["bias"], found["b"])} == {np.dtype(np.float32)}
    assert found["a"]["kernel"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_missing_parameters_are_counted_and_the_first_three_named():
    expected = dict.fromkeys("wxyz", ()) | EXPECTED
    with pytest.raises(InputError, match="^p: 4 parameters are missing: w, x, y") as raised:
        matched(FOUND, expected, "p")
    assert "z" not in raised.value.problem


@pytest.mark.parametrize(("name", "shape"), [("a.kernel", (3, 2)), ("a.bias", (3, 1)), ("b", (1,))])
def test_another_shape_is_another_architecture(name, shape):
    with pytest.raises(InputError, match="another architecture") as raised:
        matched({**FOUND, name: np.ones(shape)}, EXPECTED, "p")
    assert raised.value.field == name
    assert raised.value.problem == f"got shape {shape}, expected {EXPECTED[name]}: another architecture"


def test_a_digest_is_over_the_configuration_the_vocabulary_and_the_parameters_in_order(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n[UNK]\n")
    params = {"b": np.arange(2, dtype=np.float32), "a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3).T}}

    def by_hand(identity):
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
        digest.update(hashlib.sha256(b"[PAD]\n[UNK]\n").digest())
        for name, values in (("a.kernel", [0, 3, 1, 4, 2, 5]), ("b", [0, 1])):
            digest.update(name.encode() + np.array(values, np.float32).tobytes())
        return digest.hexdigest()

    vocabulary = str(tmp_path / "vocab.txt")
    assert model_digest({"z": 1, "y": 2}, None, vocabulary, params) == by_hand({"y": 2, "z": 1})
    assert model_digest({"z": 1}, "static", vocabulary, params) == by_hand({"kind": "static", "z": 1})
