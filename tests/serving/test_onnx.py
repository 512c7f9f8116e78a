"""Exports in ONNX equal JAX, also in a process without newsembed, and search and embedding use them."""

import dataclasses
import importlib.util
import subprocess
import sys
import textwrap

import jax
import letters
import numpy as np
import onnxruntime
import pytest
from drawn_parameters import drawn
from json_lines import write_rows
from newsembed.formats.arrays import flatten
from newsembed.models.encoders.autoencoder import AutoencoderConfig
from newsembed.models.encoders.hybrid import HybridConfig
from newsembed.models.encoders.news import EncoderConfig
from newsembed.serving import onnx_engine
from newsembed.serving.encoder import JaxEncoder, load_encoder
from newsembed.serving.specs import encoder_from_spec
from refusals import refuses
from small_encoders import small

TITLES = ["Storm hits the coast", "", "Budget", "嵐 Küste", "", "goal " * 200]
BODIES = ["Wind and rain.", "a goal in the match", "", "Sturm! " * 30, "", ""]
SMALL = small(50, hidden_size=24, num_heads=3, mlp_size=40, max_length=20, embedding_size=10)


@pytest.fixture(scope="module")
def exported(model_dir, tmp_path_factory):
    return letters.exported(model_dir, tmp_path_factory.mktemp("onnx") / "model", format="onnx")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pooling": "mean"},
        {"relative_buckets": 32, "embedding_activation": "tanh"},
        {"layer_norm_epsilon": 1e-5, "pooling": "mean", "embedding_size": 24},
        {"pooling": "weighted"},
        {"pooling": "weighted", "lead_length": 4, "sublinear": True},
        {"window_length": 5},
        {"window_length": 5, "pooling": "weighted", "lead_length": 3, "relative_buckets": 32},
        {"window_length": 30, "pooling": "mean"},
        {"kind": HybridConfig, "lexical_size": 4},
        {"kind": HybridConfig, "lexical_size": 4, "lexical_lead_length": 0, "context_length": 6, "pooling": "mean"},
        {"kind": HybridConfig, "lexical_size": 4, "context_length": 8, "window_length": 3, "pooling": "weighted"},
    ],
    ids=str,
)
def test_the_graph_is_the_model(changes):
    changes = dict(changes)
    config = changes.pop("kind", EncoderConfig)(**SMALL.to_dict() | changes)
    tokens = np.random.default_rng(0).integers(5, 50, (4, 13)).astype(np.int32)
    tokens[0, 3:6] = tokens[0, 7]  # copies
    for row, length in enumerate((13, 5, 1, 0)):
        tokens[row, length:] = 0
    params = drawn(config, deviation=0.1)
    model = onnx_engine.build(config, flatten(params))
    expected = config.module().apply({"params": params}, tokens, method="embed")
    for engine in (_by_onnx_runtime, _by_openvino):
        found = engine(model.SerializeToString(), tokens)
        np.testing.assert_allclose(found[:3], expected[:3], atol=2e-6)
        assert np.isfinite(found).all()


def _by_onnx_runtime(graph, tokens):
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return session.run([onnx_engine.OUTPUT], {onnx_engine.INPUT: tokens})[0]


def _by_openvino(graph, tokens):
    core = onnx_engine.core()
    return core.compile_model(core.read_model(graph), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([tokens])[0]


def test_an_export_equals_jax_and_has_its_digest(model_dir, exported):
    assert exported.max_difference < 1e-5
    ours, theirs = load_encoder(model_dir), encoder_from_spec(f"model:{exported.output}")
    assert isinstance(theirs, onnx_engine.OnnxEncoder)
    assert theirs.digest == ours.digest
    np.testing.assert_allclose(theirs.encode(TITLES, BODIES), ours.encode(TITLES, BODIES), atol=1e-5)
    np.testing.assert_allclose(theirs.encode_queries(TITLES), ours.encode_queries(TITLES), atol=1e-5)
    assert theirs.encode([], []).shape == (0, theirs.dimensions)


def test_texts_of_one_batch_have_near_lengths(exported, monkeypatch):
    encoder, shapes = onnx_engine.read_export(exported.output), []

    def computed(inputs, inner=encoder._computed):
        shapes.append(inputs[0].shape)
        return inner(inputs)

    monkeypatch.setattr(encoder, "_computed", computed)
    lengths = [3, 20, 11, 19, 12, 16, 10, 15]  # with [CLS] and [SEP]
    rows = [np.array([2, *range(5, 3 + length), 3], np.int32) for length in lengths]
    found = encoder.encode_tokens(rows, are_queries=True)
    assert shapes == [(3, 20), (2, 15), (2, 11), (1, 3)]
    one_by_one = [encoder.encode_tokens([row], are_queries=True)[0] for row in rows]
    np.testing.assert_allclose(found, one_by_one, atol=1e-6)


def test_a_model_folder_is_computed_by_the_graph_where_that_is_installed(model_dir, monkeypatch):
    whole = load_encoder(model_dir)
    fast = encoder_from_spec(f"model:{model_dir}", progress=False)
    assert isinstance(fast, onnx_engine.OnnxEncoder)
    assert (fast.digest, fast.model.step) == (whole.digest, whole.model.step)
    np.testing.assert_allclose(fast.encode(TITLES, BODIES), whole.encode(TITLES, BODIES), atol=1e-5)
    monkeypatch.setattr(onnx_engine, "_LARGE_BYTES", 100)  # arrays stay outside of the graph
    np.testing.assert_allclose(
        encoder_from_spec(f"model:{model_dir}").encode(TITLES, BODIES), fast.encode(TITLES, BODIES)
    )
    monkeypatch.undo()
    monkeypatch.setattr(onnx_engine, "obstacle", lambda _: "another architecture")
    assert isinstance(encoder_from_spec(f"model:{model_dir}"), JaxEncoder)
    monkeypatch.undo()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert isinstance(encoder_from_spec(f"model:{model_dir}"), JaxEncoder)
    monkeypatch.undo()
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "openvino" else found(name))
    assert isinstance(encoder_from_spec(f"model:{model_dir}"), JaxEncoder)


def test_what_a_lift_writes_is_exported_and_read_without_its_class(tiny, tmp_path):
    """A hybrid whose layers read windows of a part of the text."""
    own = {"lexical_size": 6, "context_length": 16, "window_length": 8, "pooling": "weighted", "lead_length": 4}
    tiny.save_model(tmp_path / "model", HybridConfig(**tiny.config.to_dict() | own))
    assert letters.exported(tmp_path / "model", tmp_path / "out", format="onnx").max_difference < 1e-5
    whole = load_encoder(f"{tmp_path}/model")
    for spec in (f"model:{tmp_path}/out", f"model:{tmp_path}/model"):
        fast = encoder_from_spec(spec)
        assert isinstance(fast, onnx_engine.OnnxEncoder)
        assert (fast.digest, fast.dimensions) == (whole.digest, 8)
        np.testing.assert_allclose(fast.encode(TITLES, BODIES), whole.encode(TITLES, BODIES), atol=1e-5)


def test_bfloat16_where_the_cpu_has_it_is_close_and_the_same_encoder(model_dir, exported, monkeypatch):
    monkeypatch.delenv("NEWSEMBED_FLOAT32")
    rough, exact = (onnx_engine.read_export(exported.output, is_exact=is_exact) for is_exact in (False, True))
    assert rough.digest == exact.digest == load_encoder(model_dir).digest
    found, expected = (one.encode(TITLES, BODIES) for one in (rough, exact))
    assert np.sum(found * expected, axis=1).min() > 0.999
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=0.01)
    has_it = "BF16" in onnx_engine.core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    assert (np.abs(found - expected).max() > 1e-5) == has_it
    monkeypatch.setenv("NEWSEMBED_FLOAT32", "1")
    np.testing.assert_array_equal(onnx_engine.read_export(exported.output).encode(TITLES, BODIES), expected)


def in_a_process(script, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_the_graph_needs_no_newsembed_and_no_jax(model_dir, exported, tmp_path):
    script = """
        import sys
        import numpy as np, onnxruntime
        session = onnxruntime.InferenceSession(sys.argv[1])
        tokens = np.load(sys.argv[2])
        np.save(sys.argv[3], session.run(["embedding"], {"tokens": tokens})[0])
        assert not {"jax", "newsembed"} & set(sys.modules)
    """
    encoder = load_encoder(model_dir)
    row = encoder.tokenize(TITLES[:1], BODIES[:1])[0]
    np.save(tmp_path / "tokens.npy", row[None])
    paths = [f"{exported.output}/model.onnx", tmp_path / "tokens.npy", tmp_path / "vectors.npy"]
    in_a_process(script, *paths)
    expected = encoder.encode(TITLES[:1], BODIES[:1])
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-5)


def test_a_search_on_an_export_imports_no_jax(exported, tmp_path):
    articles = tmp_path / "articles.jsonl"
    rows = [{"title": title, "body": "text", "url": f"https://e.example/{title}"} for title in ("storm", "budget")]
    write_rows(articles, rows)
    index = ["index", "--model", exported.output, "--input", str(articles), "--output", f"{tmp_path}/index"]
    script = f"""
        import sys
        from newsembed.launch import cli
        assert cli.main({index!r}) == 0
        assert cli.main(["search", "--index", {f"{tmp_path}/index"!r}, "storm"]) == 0
        assert "jax" not in sys.modules and "tensorflow" not in sys.modules
    """
    in_a_process(script)


def test_openvino_tells_nobody_that_it_was_imported():
    script = """
        import sys
        from newsembed.serving import onnx_engine
        assert "openvino" in sys.modules
        assert not [name for name in sys.modules if "telemetry" in name or name == "multiprocessing"]
    """
    in_a_process(script)


def test_signals_are_handled_after_encoders_are_gone(exported):
    script = """
        import os, signal, sys
        from newsembed.serving import onnx_engine
        encoders = [onnx_engine.read_export(sys.argv[1]) for _ in range(2)]
        del encoders[0], encoders
        found = []
        signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
        os.kill(os.getpid(), signal.SIGTERM)
        assert found == [signal.SIGTERM]
    """
    in_a_process(script, exported.output)


def test_a_damaged_graph_is_named(exported, tmp_path):
    import shutil

    shutil.copytree(exported.output, tmp_path / "copy")
    path = tmp_path / "copy" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-9])
    refuses(r"model\.onnx", encoder_from_spec, f"model:{tmp_path}/copy")


def test_a_model_that_the_graph_does_not_have_is_named(model_dir, tmp_path, refused):
    assert "pooling is 'max'" in str(onnx_engine.obstacle(dataclasses.replace(SMALL, pooling="max")))
    assert onnx_engine.obstacle(dataclasses.replace(SMALL, num_layers=0)) == "it has no layers"
    assert "the architecture is 'autoencoder'" in str(onnx_engine.obstacle(AutoencoderConfig(vocab_size=10)))
    arguments = ["export", "--model", model_dir, "--format", "onnx", "--precision", "float16"]
    assert "the format onnx holds float32" in refused(*arguments, "--output", f"{tmp_path}/x")
