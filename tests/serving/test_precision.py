"""Exports in fewer bits: what is stored, how far embeddings move, and what is refused."""

import argparse
import os

import numpy as np
import orbax.checkpoint as ocp
import pytest
from newsembed.errors import InputError
from newsembed.formats.weights import flatten, read_safetensors, unflatten
from newsembed.serving import export, precision
from newsembed.serving.checkpoint import load_model
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder

TITLES = ["Storm hits the coast", "", "Budget", "goal " * 50]
BODIES = ["Wind and rain.", "a goal in the match", "", "the vote"]


def cosines(left, right):
    return np.sum(left * right, axis=1)


def test_int8_has_a_scale_for_each_row_or_each_output():
    value = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [254.0, 1.0, -3.0]], np.float32)
    rows, scales = precision.quantized(value, is_kernel=False)
    assert (rows.dtype, scales.shape) == (np.int8, (3, 1))
    np.testing.assert_allclose(scales[:, 0], [2 / 127, 1 / 127, 2])
    np.testing.assert_array_equal(rows, [[64, -127, 32], [0, 0, 0], [127, 0, -2]])  # ties go to the even number
    outputs, scales = precision.quantized(value, is_kernel=True)
    np.testing.assert_allclose(scales[0], [2, 2 / 127, 3 / 127])
    np.testing.assert_array_equal(outputs[:, 1], [-127, 0, 64])


def test_int8_errs_by_half_a_scale_at_most():
    value = np.random.default_rng(0).normal(size=(7, 4, 5)).astype(np.float32)
    for name, axis in (("layer.kernel", 0), ("table", -1)):
        stored = precision.stored({name: value}, "int8", path="model")
        assert set(stored) == {name, f"{name}.scale"}
        error = np.abs(precision.restored(stored)[name] - value)
        largest = np.abs(value).max(axis=axis, keepdims=True)
        assert (error <= largest / 127 * 0.50001).all()
        assert error.max() > 0


def test_vectors_and_real_scales_stay_as_they_are():
    params = {"norm.scale": np.ones(3, np.float32), "norm.bias": np.full(3, 0.1, np.float32)}
    found = precision.restored(precision.stored(params, "int8", path="model"))
    assert set(found) == set(params)
    np.testing.assert_array_equal(found["norm.bias"], params["norm.bias"])


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_a_smaller_saved_model_computes_what_its_rounded_numbers_say(model_dir, tmp_path, kind):
    whole = export.export_saved_model(model_dir, str(tmp_path / "whole"))
    report = export.export_saved_model(model_dir, str(tmp_path / kind), precision=kind)
    assert whole.least_cosine is None
    assert precision.LEAST_COSINE[kind] <= report.least_cosine < 1
    assert report.max_difference <= 1e-5
    encoder, exact = SavedModelEncoder(report.output), load_encoder(model_dir)
    found, expected = encoder.encode(TITLES, BODIES), exact.encode(TITLES, BODIES)
    assert (cosines(found, expected) >= precision.LEAST_COSINE[kind]).all()
    assert np.abs(found - expected).max() > 1e-6  # they are rounded
    flat = flatten(exact.model.params)
    rounded = precision.restored(precision.stored(flat, kind, path=""))
    exact.params = unflatten(rounded)
    np.testing.assert_allclose(found, exact.encode(TITLES, BODIES), atol=1e-5)
    assert encoder.facts["precision"] == kind
    assert encoder.digest != SavedModelEncoder(whole.output).digest
    sizes = [os.path.getsize(f"{one.output}/variables/variables.data-00000-of-00001") for one in (whole, report)]
    matrices = 4 * sum(value.size for value in flat.values() if value.ndim > 1)
    saved = {"float16": 0.5, "int8": 0.6}[kind]  # the rows of this model are short, so its scales are many
    assert sizes[0] - sizes[1] >= saved * matrices * 0.9


def test_float16_safetensors_come_back_as_the_rounded_model(model_dir, tmp_path):
    report = export.export_safetensors(model_dir, str(tmp_path / "half"), precision="float16")
    arrays = read_safetensors(f"{report.output}/model.safetensors")
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float16)}
    exact = load_model(model_dir)
    again = load_model(report.output)
    for name, value in flatten(exact.params).items():
        np.testing.assert_array_equal(flatten(again.params)[name], value.astype(np.float16).astype(np.float32))
    assert again.digest != exact.digest
    found = load_encoder(report.output).encode(TITLES, BODIES)
    assert (cosines(found, load_encoder(model_dir).encode(TITLES, BODIES)) >= 0.9999).all()


def parse(*arguments):
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("form", "kind", "held"),
    [
        ("safetensors", "int8", "float32 or float16"),
        ("huggingface", "float16", "float32"),
        ("huggingface", "int8", "float32"),
    ],
)
def test_a_format_without_such_numbers_is_refused(model_dir, tmp_path, form, kind, held):
    output = tmp_path / "out"
    with pytest.raises(InputError, match=rf"--precision: got {kind}, the format {form} holds {held}"):
        export.run(parse("--model", model_dir, "--output", str(output), "--format", form, "--precision", kind))
    assert not output.exists()


def test_the_command_prints_what_was_lost(model_dir, tmp_path, capsys):
    output = str(tmp_path / "out")
    assert export.run(parse("--model", model_dir, "--output", output, "--precision", "int8", "--inputs", "tokens")) == 0
    assert "cosine to float32 at least 0.99" in capsys.readouterr().out
    found = SavedModelEncoder(output).encode(TITLES, BODIES)
    assert (cosines(found, load_encoder(model_dir).encode(TITLES, BODIES)) >= 0.99).all()


def test_numbers_that_do_not_fit_are_refused(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    params = tiny.save_model(folder, steps=(10,))[10]
    monkeypatch.setitem(precision.LEAST_COSINE, "int8", 1.1)
    with pytest.raises(InputError, match="in int8 an embedding has the cosine"):
        export.export_saved_model(str(folder), str(tmp_path / "out"), precision="int8")
    for step, value, message in (
        (20, 1e6, r"got the value 1e\+06, the largest float16 is 65504"),
        (30, np.nan, "holds NaN"),
    ):
        head = params["embedding_head"]
        params["embedding_head"] = {**head, "bias": np.full_like(head["bias"], value)}
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder / "checkpoints" / str(step) / "params", params)
        with pytest.raises(InputError, match=f"embedding_head.bias: {message}"):
            export.export_safetensors(str(folder), str(tmp_path / "out"), precision="float16")
    assert not (tmp_path / "out").exists()
