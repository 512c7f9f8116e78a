"""Exports equal JAX: the SavedModel in a process of its own with TensorFlow alone, safetensors bit by bit."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from letters import exported, run
from newsembed.errors import InputError
from newsembed.serving import export, saved_model
from newsembed.serving.batching import Batcher, BatchOptions
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from refusals import refuses

TITLES = ["Storm hits the coast", "", "Budget", "嵐 Küste", "", "goal " * 200, "cup"]
BODIES = ["Wind and rain.", "a goal in the match", "", "Sturm! " * 30, "", "", "the vote of parliament, 2024. " * 9]


@pytest.fixture(scope="module")
def saved(model_dir, tmp_path_factory):
    output = str(tmp_path_factory.mktemp("export") / "saved")
    return export.export(export.ExportOptions(model=model_dir, output=output))


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
    refuses("TensorFlow cannot read it", SavedModelEncoder, str(tmp_path / "copy"))


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
        from tensorflow.core.protobuf import saved_model_pb2
        from tensorflow.python.framework import op_def_registry
        folder, inputs, output = sys.argv[1:]
        with open(f"{folder}/saved_model.pb", "rb") as file:
            graph = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs[0].graph_def
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        print(*sorted({node.op for node in nodes if op_def_registry.get(node.op) is None}))
        import tensorflow_text
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
    # TensorFlow Serving has those of TensorFlow Text 2.12, and since 2026 of 2.20.
    assert done.stdout.split() == ["CaseFoldUTF8", "FastBertNormalize", "FastWordpieceTokenizeWithOffsets"]
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
    batcher = Batcher(encoder, BatchOptions(batch_documents=5))
    documents, queries = batcher.documents(texts, [""] * 12), [batcher.query(text) for text in texts]
    np.testing.assert_allclose(documents.result(60), expected, atol=1e-5)
    np.testing.assert_allclose(np.stack([query.result(60) for query in queries]), expected, atol=1e-5)
    batcher.close()


def test_what_xla_logs_when_it_first_compiles_is_not_shown(saved, monkeypatch, capfd):
    saved_model._compile_unheard.cache_clear()
    monkeypatch.setattr("tensorflow.function", lambda *_, **__: lambda _: os.write(2, b"Compiled cluster using XLA!"))
    SavedModelEncoder(saved.output)
    os.write(2, b"an error")
    assert capfd.readouterr().err == "an error"


def test_safetensors_round_trip(model_dir, tmp_path):
    report = exported(f"{model_dir}@10", tmp_path / "weights", format="safetensors")
    assert report.step == 10
    again, original = load_encoder(report.output), load_encoder(model_dir, 10)
    assert again.digest == original.digest
    assert np.array_equal(again.encode(TITLES, BODIES), original.encode(TITLES, BODIES))
    refuses("one step only", load_encoder, report.output, 10)
    (tmp_path / "weights/model.safetensors").write_bytes(b"junk")
    refuses("no readable safetensors", load_encoder, report.output)


def test_command_with_shorter_length_step_and_bfloat16(tmp_path, tiny, capsys):
    config = dataclasses.replace(tiny.config, dtype="bfloat16", num_layers=1, norm="pre", pooling="mean")
    model, output = str(tmp_path / "model"), str(tmp_path / "saved")
    tiny.save_model(tmp_path / "model", config)
    arguments = ("--model", f"{model}@10", "--output", output, "--max_length", "20", "--platforms", "cpu")
    assert run(export, *arguments) == 0
    said = capsys.readouterr()
    assert said.err == f"exporting {model}@10 as savedmodel\n"  # it takes a while
    assert "step 10 exported" in said.out
    encoder = SavedModelEncoder(output)
    assert (encoder.facts["length_buckets"], encoder.facts["step"]) == ([20], 10)
    expected = load_encoder(model, 10, max_length=20).encode(TITLES, BODIES)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), expected, atol=2e-2)
    refuses("exists already", run, export, *arguments)
    weights = ("--model", model, "--output", output, "--format", "safetensors", "--overwrite")
    assert run(export, *weights) == 0
    assert load_encoder(output).model.config == config


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--platforms", "abacus"), "platforms"),
        (("--max_length", "2"), "at least 3"),
        (("--precision", "int8", "--format", "safetensors"), "the format safetensors holds float32 or float16"),
        (("--platforms", ""), "got none"),
        (("--model", "no/such"), r"model\.json: cannot be read: .*\n.*import-hf"),
    ],
)
def test_command_refuses(model_dir, tmp_path, arguments, message):
    refuses(message, run, export, "--model", model_dir, "--output", tmp_path / "o", *arguments)
    assert not list(tmp_path.iterdir())


def test_a_difference_from_jax_is_no_export(model_dir, tmp_path, monkeypatch):
    def broken(self, texts):
        return np.full((len(texts), 8), np.nan)

    monkeypatch.setattr(SavedModelEncoder, "encode_queries", broken)
    with pytest.raises(RuntimeError, match="differs from JAX"):
        exported(model_dir, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_other_folders_are_refused(tmp_path, model_dir):
    refuses(r"no saved_model\.pb", SavedModelEncoder, model_dir)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    refuses(r"newsembed\.json: cannot be read", SavedModelEncoder, str(tmp_path))
    (tmp_path / "newsembed.json").write_text("{}")
    refuses("lacks digest, dimensions, format_version", SavedModelEncoder, str(tmp_path))
