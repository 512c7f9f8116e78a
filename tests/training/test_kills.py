"""A run that is killed at chosen moments, in the middle of a save or at a random moment ends as one that was not."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from json_lines import read_rows
from newsembed.training.gin_config import run_training
from toy_corpus import tiny_bindings, write_corpus, write_vocabulary


@pytest.mark.long  # `make attack`
def test_any_series_of_kills_without_tensorflow_ends_bit_identical(tmp_path):
    corpus = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")

    def bindings(name):
        return tiny_bindings(tmp_path / name, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=2, INITIAL_CHECKPOINT_PATH=None)

    run_training(["runs/train_demo.gin"], bindings("whole"))
    command = [sys.executable, str(Path(__file__).with_name("kill_cases.py")), *bindings("killed")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    whole, killed = (
        ocp.StandardCheckpointer().restore(tmp_path / name / "checkpoints" / "8" / "params")
        for name in ("whole", "killed")
    )
    jax.tree.map(np.testing.assert_array_equal, whole, killed)
    records = [read_rows(tmp_path / name / "metrics.jsonl") for name in ("whole", "killed")]
    assert [record["step"] for record in records[1]] == [2, 4, 6, 8]
    for left, right in zip(*records, strict=True):
        for name in left:
            if name.startswith(("loss", "accuracy", "gradient", "padding", "learning")):
                assert left[name] == right[name], name
