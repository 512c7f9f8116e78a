"""Exports equal JAX: the SavedModel in a process of its own with TensorFlow alone, safetensors bit by bit."""

import argparse
import ctypes
import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.saved_model import DEFAULT_SIGNATURE as SIGNATURE
from newsembed.formats.saved_model import read_arrays
from newsembed.serving import export, saved_model
from newsembed.serving.batching import Batcher, BatchOptions
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder

TITLES = ["Storm hits the coast", "", "Budget", "嵐 Küste", "", "goal " * 200, "cup"]
BODIES = ["Wind and rain.", "a goal in the match", "", "Sturm! " * 30, "", "", "the vote of parliament, 2024. " * 9]


@pytest.fixture(scope="module")
def saved(model_dir, tmp_path_factory):
    output = str(tmp_path_factory.mktemp("export") / "saved")
    return export.export_saved_model(model_dir, output)


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "missing"])
def test_a_damaged_saved_model_is_refused_and_named(saved, tmp_path, damage):
    files = [path.relative_to(saved.output) for path in sorted(Path(saved.output).rglob("*")) if path.is_file()]
    changed = [name for name in files if name.name != "SHA256SUMS" and (Path(saved.output) / name).stat().st_size]
    assert len(changed) >= 4
    for name in changed:
        shutil.copytree(saved.output, tmp_path / "copy")
        path = tmp_path / "copy" / name
        raw = path.read_bytes()
        path.unlink()
        if damage != "missing":
            half = len(raw) // 2
            flipped = raw[:half] + bytes([raw[half] ^ 1]) + raw[half + 1 :]
            path.write_bytes({"cut": raw[:half], "empty": b"", "flipped": flipped}[damage])
        with pytest.raises(InputError) as raised:
            SavedModelEncoder(str(tmp_path / "copy"))
        assert str(tmp_path / "copy") in str(raised.value.path), name
        assert raised.value.remedy, name
        shutil.rmtree(tmp_path / "copy")


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_without_digests_tensorflow_s_error_is_named(saved, tmp_path, name):
    shutil.copytree(saved.output, tmp_path / "copy")
    (tmp_path / "copy/SHA256SUMS").unlink()
    path = tmp_path / "copy" / name
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="TensorFlow cannot read it"):
        SavedModelEncoder(str(tmp_path / "copy"))


def test_reloads_with_tensorflow_alone_and_equals_jax(model_dir, saved, tmp_path):
    script = textwrap.dedent("""
        import json, sys
        import numpy as np
        class Absent:  # TensorFlow itself imports jax where it finds it
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("jax", "jaxlib", "flax", "newsembed", "seqio"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Absent())
        import tensorflow as tf
        import tensorflow_text
        folder, inputs, output = sys.argv[1:]
        titles, bodies = json.load(open(inputs))
        model = tf.saved_model.load(folder)
        parts, text = model.signatures["serving_default"], model.signatures["text"]
        both = parts(title=tf.constant(titles), body=tf.constant(bodies))["embedding"].numpy()
        rows = [parts(title=tf.constant([t]), body=tf.constant([b])) for t, b in zip(titles[:2], bodies)]
        single = np.concatenate([row["embedding"].numpy() for row in rows])
        texts = text(text=tf.constant(bodies[:2]))["embedding"].numpy()
        none = text(text=tf.constant([], tf.string))["embedding"].numpy()
        assert both.dtype == np.float32 and none.shape == (0, both.shape[1]), (both.dtype, none.shape)
        assert not {name.split(".")[0] for name in sys.modules} & {"jax", "jaxlib", "flax", "newsembed", "seqio"}
        np.savez(output, both=both, single=single, texts=texts)
    """)
    (tmp_path / "inputs.json").write_text(json.dumps([TITLES, BODIES]))
    command = [sys.executable, "-c", script, saved.output, str(tmp_path / "inputs.json"), str(tmp_path / "out.npz")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "out.npz")
    encoder = load_encoder(model_dir)
    expected = encoder.encode(TITLES, BODIES)
    np.testing.assert_allclose(found["both"], expected, atol=1e-5)
    np.testing.assert_allclose(found["single"], expected[:2], atol=1e-5)
    np.testing.assert_allclose(found["texts"], encoder.encode(["", ""], BODIES[:2]), atol=1e-5)


def test_requests_get_what_a_single_call_gives(saved):
    encoder = SavedModelEncoder(saved.output)
    next(encoder.preparations())()
    texts = ["storm " * (1 + number) for number in range(12)]
    expected = encoder.encode(texts, [""] * 12)
    batcher = Batcher(encoder, BatchOptions(documents=5))
    documents, queries = batcher.documents(texts, [""] * 12), [batcher.query(text) for text in texts]
    np.testing.assert_allclose(documents.result(60), expected, atol=1e-5)
    np.testing.assert_allclose(np.stack([query.result(60) for query in queries]), expected, atol=1e-5)
    batcher.close()


def test_report_and_facts(model_dir, saved):
    assert saved.step == 20
    assert saved.max_difference <= 1e-5
    encoder = SavedModelEncoder(saved.output)
    assert (encoder.dimensions, encoder.facts["max_length"], encoder.facts["step"]) == (8, 80, 20)
    assert encoder.digest == f"savedmodel-{load_encoder(model_dir).digest}"


def test_lines_of_xla_follow_the_level_of_tensorflow(saved, monkeypatch):
    import tensorflow as tf

    framework = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(), "libtensorflow_framework.so.2"))
    level = framework._ZN4absl12lts_2025012711MinLogLevelEv
    before = level()
    for value, expected in (("3", 3), ("0", 0), ("2", 2), ("", 2)):  # no value leaves the level
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", value)
        SavedModelEncoder(saved.output)
        assert level() == expected
    framework._ZN4absl12lts_2025012714SetMinLogLevelENS0_18LogSeverityAtLeastE(before)


def test_jax_computes_a_saved_model_for_few_texts_without_tensorflow(model_dir, saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # an import fails
    encoder, expected = SavedModelEncoder(saved.output, few_texts=True), load_encoder(model_dir)
    assert encoder.engine == "JAX"
    assert encoder.digest == f"savedmodel-{expected.digest}"
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), expected.encode(TITLES, BODIES), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(BODIES), expected.encode_queries(BODIES), atol=1e-6)
    assert encoder.count_tokens(TITLES, BODIES) == expected.count_tokens(TITLES, BODIES)


@pytest.mark.parametrize("why", ["earlier version", "no JAX", "unheard of", "many texts"])
def test_tensorflow_computes_what_jax_cannot(saved, tmp_path, monkeypatch, why):
    folder, few = shutil.copytree(saved.output, tmp_path / "copy"), why != "many texts"
    (folder / "SHA256SUMS").unlink()
    if why == "earlier version":
        (folder / "assets.extra/arrays.json").unlink()
    elif why == "unheard of":
        facts = json.loads((folder / "newsembed.json").read_text())
        (folder / "newsembed.json").write_text(json.dumps(facts | {"kind": "unheard_of"}))
    elif why == "no JAX":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "jax" else True)
    monkeypatch.setattr(saved_model, "_load_graph", lambda path: types.SimpleNamespace(signatures={SIGNATURE: path}))
    encoder = SavedModelEncoder(str(folder), few_texts=few)
    assert (encoder.engine, encoder._signature) == ("TensorFlow", str(folder))


def test_an_export_that_jax_reads_otherwise_is_no_export(model_dir, tmp_path, monkeypatch):
    swapped = lambda folder: {name: -value for name, value in read_arrays(folder).items()}  # noqa: E731
    monkeypatch.setattr(saved_model, "read_arrays", swapped)
    with pytest.raises(RuntimeError, match="differs from JAX"):
        export.export_saved_model(model_dir, str(tmp_path / "saved"), platforms=("cpu",))
    assert not (tmp_path / "saved").exists()


def test_saved_model_encoder_keeps_the_order(model_dir, saved):
    titles, bodies = TITLES * 11, BODIES * 11  # more than a batch
    found = SavedModelEncoder(saved.output).encode(titles, bodies)
    np.testing.assert_allclose(found, load_encoder(model_dir).encode(titles, bodies), atol=1e-5)
    with pytest.raises(ValueError, match="titles"):
        SavedModelEncoder(saved.output).encode(["a"], [])


def test_safetensors_round_trip(model_dir, tmp_path):
    report = export.export_safetensors(model_dir, str(tmp_path / "weights"), step=10)
    assert report.step == 10
    again, original = load_encoder(report.output), load_encoder(model_dir, 10)
    assert again.digest == original.digest
    assert np.array_equal(again.encode(TITLES, BODIES), original.encode(TITLES, BODIES))
    with pytest.raises(InputError, match="one step only"):
        load_encoder(report.output, 10)
    (tmp_path / "weights/model.safetensors").write_bytes(b"junk")
    with pytest.raises(InputError, match="no readable safetensors"):
        load_encoder(report.output)


def parse(*arguments):
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    return parser.parse_args(arguments)


def test_command_with_shorter_length_step_and_bfloat16(tmp_path, tiny, capsys):
    config = dataclasses.replace(tiny.config, dtype="bfloat16", num_layers=1, norm="pre", pooling="mean")
    model, output = str(tmp_path / "model"), str(tmp_path / "saved")
    tiny.save_model(tmp_path / "model", config)
    arguments = ("--model", f"{model}@10", "--output", output, "--max_length", "20", "--platforms", "cpu")
    assert export.run(parse(*arguments)) == 0
    assert "step 10 exported" in capsys.readouterr().out
    encoder = SavedModelEncoder(output)
    assert encoder.facts["length_buckets"] == [20]
    expected = load_encoder(model, 10, max_length=20).encode(TITLES, BODIES)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), expected, atol=2e-2)
    with pytest.raises(InputError, match="exists already"):
        export.run(parse(*arguments))
    weights = ("--model", model, "--output", output, "--format", "safetensors", "--overwrite")
    assert export.run(parse(*weights)) == 0
    assert load_encoder(output).model.config == config


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--platforms", "abacus"), "platforms"),
        (("--max_length", "2"), "at least 3"),
        (("--model", "no/such"), "cannot be read"),
    ],
)
def test_command_refuses(model_dir, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        export.run(parse("--model", model_dir, "--output", str(tmp_path / "o"), *arguments))
    assert not list(tmp_path.iterdir())


def test_a_difference_from_jax_is_no_export(model_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_write_saved_model", lambda *_: None)
    monkeypatch.setattr(export, "_difference", lambda *_: float("nan"))
    with pytest.raises(RuntimeError, match="differs from JAX"):
        export.export_saved_model(model_dir, str(tmp_path / "saved"), platforms=("cpu",))
    assert not (tmp_path / "saved").exists()


def test_other_folders_are_refused(tmp_path, model_dir):
    with pytest.raises(InputError, match=r"no saved_model\.pb"):
        SavedModelEncoder(model_dir)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError, match=r"newsembed\.json: cannot be read"):
        SavedModelEncoder(str(tmp_path))
    (tmp_path / "newsembed.json").write_text("{}")
    with pytest.raises(InputError, match="lacks digest, dimensions"):
        SavedModelEncoder(str(tmp_path))
