"""Parameters: what embedding reads, the digest, and exports in fewer bits."""

import hashlib
import json
import os

import numpy as np
import orbax.checkpoint as ocp
import pytest
from letters import exported
from newsembed.formats.arrays import flatten, read_safetensors, unflatten
from newsembed.serving import model
from newsembed.serving.encoder import load_encoder, load_model
from newsembed.serving.model import matched, model_digest
from newsembed.serving.saved_model import SavedModelEncoder
from refusals import refuses

EXPECTED = {"a.kernel": (2, 3), "a.bias": (3,), "b": ()}
FOUND = {"a.kernel": np.arange(6, dtype=np.float64).reshape(2, 3), "a.bias": np.ones(3, np.float16), "b": np.float32(7)}
TITLES = ["Storm hits the coast", "", "Budget", "goal " * 50]
BODIES = ["Wind and rain.", "a goal in the match", "", "the vote"]


def cosines(left, right):
    return np.sum(left * right, axis=1)


def test_int8_has_a_scale_for_each_row_or_each_output():
    value = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [254.0, 1.0, -3.0]], np.float32)
    rows, scales = model.quantized(value, is_kernel=False)
    assert (rows.dtype, scales.shape) == (np.int8, (3, 1))
    np.testing.assert_allclose(scales[:, 0], [2 / 127, 1 / 127, 2])
    np.testing.assert_array_equal(rows, [[64, -127, 32], [0, 0, 0], [127, 0, -2]])  # ties go to the even number
    outputs, scales = model.quantized(value, is_kernel=True)
    np.testing.assert_allclose(scales[0], [2, 2 / 127, 3 / 127])
    np.testing.assert_array_equal(outputs[:, 1], [-127, 0, 64])


def test_int8_errs_by_half_a_scale_at_most():
    value = np.random.default_rng(0).normal(size=(7, 4, 5)).astype(np.float32)
    for name, axis in (("layer.kernel", 0), ("table", -1)):
        stored = model.stored({name: value}, "int8", path="model")
        assert set(stored) == {name, f"{name}.scale"}
        error = np.abs(model.restored(stored)[name] - value)
        largest = np.abs(value).max(axis=axis, keepdims=True)
        assert (error <= largest / 127 * 0.50001).all()
        assert error.max() > 0


def test_vectors_real_scales_and_the_head_stay_as_they_are():
    params = {
        "norm.scale": np.ones(3, np.float32),
        "norm.bias": np.full(3, 0.1, np.float32),
        "embedding_head.kernel": np.array([[0.1, 1], [1, 0.3]], np.float32),
    }
    found = model.restored(model.stored(params, "int8", path="model"))
    assert set(found) == set(params)
    for name, value in params.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.fixture(scope="module")
def whole(model_dir, tmp_path_factory):
    return exported(model_dir, tmp_path_factory.mktemp("whole") / "saved")


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_a_smaller_saved_model_computes_what_its_rounded_numbers_say(model_dir, whole, tmp_path, kind):
    report = exported(model_dir, tmp_path / kind, precision=kind)
    assert whole.least_cosine is None
    assert model.LEAST_COSINE[kind] <= report.least_cosine < 1
    assert report.max_difference <= 1e-5
    encoder, exact = SavedModelEncoder(report.output), load_encoder(model_dir)
    found, expected = encoder.encode(TITLES, BODIES), exact.encode(TITLES, BODIES)
    assert (cosines(found, expected) >= model.LEAST_COSINE[kind]).all()
    assert np.abs(found - expected).max() > 1e-6  # they are rounded
    flat = flatten(exact.model.params)
    rounded = model.restored(model.stored(flat, kind, path=""))
    exact.params = unflatten(rounded)
    np.testing.assert_allclose(found, exact.encode(TITLES, BODIES), atol=1e-5)
    assert encoder.facts["precision"] == kind
    assert encoder.digest != SavedModelEncoder(whole.output).digest
    sizes = [os.path.getsize(f"{one.output}/variables/variables.data-00000-of-00001") for one in (whole, report)]
    matrices = 4 * sum(value.size for value in flat.values() if value.ndim > 1)
    saved = {"float16": 0.5, "int8": 0.6}[kind]  # the rows of this model are short, so its scales are many
    assert sizes[0] - sizes[1] >= saved * matrices * 0.9


def test_float16_safetensors_come_back_as_the_rounded_model(model_dir, tmp_path):
    report = exported(model_dir, tmp_path / "half", precision="float16", format="safetensors")
    arrays = read_safetensors(f"{report.output}/model.safetensors")
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float16)}
    exact = load_model(model_dir)
    again = load_model(report.output)
    for name, value in flatten(exact.params).items():
        np.testing.assert_array_equal(flatten(again.params)[name], value.astype(np.float16).astype(np.float32))
    assert again.digest != exact.digest
    found = load_encoder(report.output).encode(TITLES, BODIES)
    assert (cosines(found, load_encoder(model_dir).encode(TITLES, BODIES)) >= 0.9999).all()


def test_numbers_that_do_not_fit_are_refused(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    params = tiny.save_model(folder, steps=(10,))[10]
    monkeypatch.setitem(model.LEAST_COSINE, "int8", 1.1)
    refuses("an embedding has the cosine", exported, folder, tmp_path / "out", precision="int8")
    for step, value, message in (
        (20, 1e6, r"got the value 1e\+06, the largest float16 is 65504"),
        (30, np.nan, "holds NaN"),
    ):
        head = params["embedding_head"]
        params["embedding_head"] = {**head, "bias": np.full_like(head["bias"], value)}
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder / "checkpoints" / str(step) / "params", params)
        half = {"precision": "float16", "format": "safetensors"}
        refuses(f"embedding_head.bias: {message}", exported, folder, tmp_path / "out", **half)
    assert not (tmp_path / "out").exists()


def test_what_is_read_is_nested_and_float32_and_the_rest_left_out():
    found = matched({**FOUND, "head": np.ones(9)}, EXPECTED, "p", lambda: ["head"])
    assert (set(found), set(found["a"])) == ({"a", "b"}, {"kernel", "bias"})
    assert {values.dtype for values in (found["a"]["kernel"], found["a"]["bias"], found["b"])} == {np.dtype(np.float32)}
    assert found["a"]["kernel"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_missing_parameters_are_counted_and_the_first_three_named():
    expected = dict.fromkeys("wxyz", ()) | EXPECTED
    raised = refuses("^p: 4 parameters are missing: w, x, y", matched, FOUND, expected, "p")
    assert "z" not in raised.problem


@pytest.mark.parametrize(("name", "shape"), [("a.kernel", (3, 2)), ("a.bias", (3, 1)), ("b", (1,))])
def test_another_shape_is_another_architecture(name, shape):
    raised = refuses("another architecture", matched, {**FOUND, name: np.ones(shape)}, EXPECTED, "p")
    assert raised.field == name
    assert raised.problem == f"got shape {shape}, expected {EXPECTED[name]}: another architecture"


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
