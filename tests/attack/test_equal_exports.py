"""Exports of one model have equal bytes from run to run, wherever newsembed is installed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import newsembed
import pytest
from newsembed.formats.arrays import read_safetensors, write_safetensors
from targets import written_model


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["savedmodel", "safetensors", "huggingface", "onnx"])
def test_two_exports_have_equal_bytes(tmp_path, kind):
    written_model(tmp_path / "model")
    others = shutil.ignore_patterns(".*", "tests", "build", "demo-output", "__pycache__")
    for seed in ("1", "2"):
        site = tmp_path / f"site-{seed}"  # one installation each, in folders of different names
        shutil.copytree(Path(newsembed.__file__).parent, site / "newsembed", ignore=others)
        command = [sys.executable, "-m", "newsembed", "export", "--model", str(tmp_path / "model"), "--format", kind]
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
        subprocess.run([*command, "--output", str(tmp_path / seed / "out")], env=environment, check=True)
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


def test_the_facts_in_safetensors_are_sorted(tmp_path):
    import numpy as np
    from safetensors import safe_open

    facts = {name: name * 3 for name in "hgfedcba"}
    for name in ("one", "other"):
        write_safetensors(str(tmp_path / name), {"b": np.ones((2, 3), np.float32), "a": np.zeros(5, np.float16)}, facts)
    raw = (tmp_path / "one").read_bytes()
    assert raw == (tmp_path / "other").read_bytes()
    assert [raw.index(f'"{name}"'.encode()) for name in "abc"] == sorted(
        raw.index(f'"{name}"'.encode()) for name in "abc"
    )
    with safe_open(tmp_path / "one", "numpy") as file:
        assert file.metadata() == facts
    found = read_safetensors(str(tmp_path / "one"))
    assert (found["b"].tolist(), found["a"].shape) == ([[1, 1, 1], [1, 1, 1]], (5,))
