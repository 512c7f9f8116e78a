"""A static model by NumPy equals the same model in JAX and its SavedModel's graph."""

import dataclasses

import numpy as np
import pytest
from letters import exported
from newsembed.formats.arrays import flatten
from newsembed.serving import specs
from newsembed.serving.encoder import load_encoder, load_model
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.static import StaticEncoder, expected, is_static
from refusals import refuses

TITLES = ["Storm hits the coast", "", "Budget", "嵐 Küste", "", "goal " * 200, "cup", "a a a b of of"]
BODIES = ["Wind and rain.", "a goal", "", "Sturm! " * 30, "", "", "the vote of parliament, 2024. " * 9, "the the"]
SHAPES = {
    "static.gin": {"pooling": "weighted", "lead_length": 64, "sublinear": True, "embedding_init": "t5"},
    "mean": {"pooling": "mean", "biases": False, "embedding_activation": "tanh"},
    "lead": {"pooling": "weighted", "lead_length": 3, "layer_norm_epsilon": 1e-5},
}


ROWS = {"num_layers": 0, "positions": "rotary", "norm": "pre", "pooling": "mean"}


def static_config(tiny, **options):
    return dataclasses.replace(tiny.config, **{**ROWS, **options})


@pytest.fixture(scope="module", params=SHAPES, ids=SHAPES)
def folder(request, tmp_path_factory, tiny):
    path = tmp_path_factory.mktemp("static")
    tiny.save_model(path, static_config(tiny, **SHAPES[request.param]), steps=(10, 20))
    return str(path)


def test_equals_jax(folder):
    static, jax = StaticEncoder(folder), load_encoder(folder)
    assert (static.digest, static.dimensions, static.max_length) == (jax.digest, jax.dimensions, jax.max_length)
    np.testing.assert_allclose(static.encode(TITLES, BODIES), jax.encode(TITLES, BODIES), atol=1e-6)
    np.testing.assert_allclose(static.encode_queries(BODIES), jax.encode_queries(BODIES), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(static.encode(TITLES, BODIES), axis=1), 1, atol=1e-6)
    assert static.encode([], []).shape == (0, jax.dimensions)
    assert StaticEncoder(folder, 10).digest == load_encoder(folder, 10).digest != static.digest
    assert StaticEncoder(folder, max_length=7).digest == load_encoder(folder, max_length=7).digest


def test_reads_the_parameters_that_embed_has_in_jax(folder):
    model = load_model(folder)
    assert expected(model.config) == {name: value.shape for name, value in flatten(model.params).items()}


def test_commands_take_it_for_models_without_layers_only(folder, model_dir):
    assert isinstance(specs.make_encoder("model", f"{folder}@10"), StaticEncoder)
    assert not is_static(model_dir)


@pytest.mark.parametrize(
    "other", [{"dtype": "bfloat16"}, {"positions": "learned"}, {"norm": "post"}, {"pooling": "max"}], ids=str
)
def test_other_models_without_layers_are_left_to_jax(other, tiny, tmp_path):
    tiny.save_model(tmp_path, static_config(tiny, **other), steps=(1,))
    assert not is_static(str(tmp_path))


@pytest.mark.parametrize("how", ["head", "windows"])
def test_long_documents_are_read_as_in_jax_and_in_the_graph(tiny, tmp_path, how):
    model, output = tmp_path / "model", str(tmp_path / "saved")
    tiny.save_model(model, static_config(tiny, **SHAPES["static.gin"]), steps=(1,))
    tiny.describe(model, long_documents="windows")
    options = {"max_length": 10, "long_documents": how}
    exported(model, output, **options)
    jax = load_encoder(str(model), **options)
    expected = jax.encode(TITLES, BODIES)
    for encoder in (StaticEncoder(str(model), **options), SavedModelEncoder(output)):
        np.testing.assert_allclose(encoder.encode(TITLES, BODIES), expected, atol=1e-6)
        assert encoder.digest.endswith(jax.digest)
    windows = StaticEncoder(str(model), max_length=10)  # as model.json says
    assert windows.long_documents == "windows"
    assert (np.abs(windows.encode(TITLES, BODIES) - expected).max() < 1e-6) == (how == "windows")


def test_float16_safetensors_are_read_as_in_jax(tiny, tmp_path):
    tiny.save_model(tmp_path / "model", static_config(tiny), steps=(1,))
    half = str(tmp_path / "half")
    exported(tmp_path / "model", half, precision="float16", format="safetensors")
    static, jax = StaticEncoder(half), load_encoder(half)
    assert static.digest == jax.digest
    np.testing.assert_allclose(static.encode(TITLES, BODIES), jax.encode(TITLES, BODIES), atol=1e-6)


def test_parameters_of_another_shape_are_refused(tiny, tmp_path):
    tiny.save_model(tmp_path, static_config(tiny), steps=(1,))
    tiny.describe(tmp_path, {"embedding_size": 9})
    refuses(r"got shape \(8,\), expected \(9,\)", StaticEncoder, str(tmp_path))
    tiny.describe(tmp_path, {"pooling": "middle"})
    refuses("model.json: cannot be read: .*middle", StaticEncoder, str(tmp_path))
