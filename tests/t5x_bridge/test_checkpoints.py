"""Checkpoints of our trainer in T5X's form and back: nothing is lost, and our trainer continues what came back."""

import json
import shutil

import numpy as np
import pytest
from compare_exports import equals_flax
from newsembed.errors import InputError
from newsembed.formats import t5x
from newsembed.formats.model_folder import ModelFolder, read_tree
from newsembed.launch import cli
from newsembed.t5x_bridge.checkpoints import from_t5x, to_t5x
from newsembed.training.gin_config import run_training

import toy_corpus as toy  # isort: skip
from json_lines import read_rows


def train(model_dir, corpus, steps):
    bindings = toy.tiny_bindings(model_dir, *corpus, TRAIN_STEPS=steps, LEARNING_RATE=1e-2, LOG_PERIOD=1)
    return run_training(["architectures/tiny.gin", "models/weak_supervision.gin"], bindings)


def losses(model_dir):
    records = read_rows(model_dir / "metrics.jsonl")
    return {
        record["step"]: next(value for name, value in record.items() if name.startswith("loss/")) for record in records
    }


@pytest.fixture(scope="module")
def ours(tmp_path_factory, corpus):
    """A run of six steps with checkpoints at 2, 4 and 6."""
    folder = tmp_path_factory.mktemp("ours") / "model"
    train(folder, corpus, 6)
    return folder


@pytest.fixture(scope="module")
def theirs(ours, tmp_path_factory):
    """Its checkpoint of step 4 in the form of T5X."""
    folder = tmp_path_factory.mktemp("theirs") / "run"
    assert to_t5x(str(ours), str(folder), 4) == str(folder / "checkpoint_4")
    return folder


def leaves(tree, path=()):
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    if pairs is None:
        return {} if tree is None else {"/".join(map(str, path)): np.asarray(tree)}
    return {name: leaf for key, value in pairs for name, leaf in leaves(value, (*path, key)).items()}


def test_t5x_gets_every_array_the_step_and_the_position(ours, theirs):
    state = leaves(read_tree(str(theirs / "checkpoint_4" / "state")))
    params = leaves(read_tree(str(ours / "checkpoints" / "4" / "params")))
    training = leaves(read_tree(str(ours / "checkpoints" / "4" / "training")))
    expected = {f"target/{name}": array for name, array in params.items()}
    expected |= {
        name.replace("opt_state", "state/param_states") if name != "step" else "state/step": array
        for name, array in training.items()
    }
    assert state.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(state[name], array)
        assert state[name].dtype == array.dtype
    assert int(state["state/step"]) == 4
    position = t5x.DataPosition.read(t5x.position_file(str(theirs), 4))
    assert position.batches == 4
    assert json.loads(position.iterators).keys() == {"topics/en", "triplets/de", "triplets/en"}
    for name in ("model.json", "vocab.txt"):
        assert (theirs / name).read_bytes() == (ours / name).read_bytes()


def test_a_checkpoint_that_comes_back_continues_as_if_it_had_stayed(ours, theirs, corpus, tmp_path):
    back = tmp_path / "back"
    assert from_t5x(str(theirs), str(back)) == str(back / "checkpoints" / "4")
    result = train(back, corpus, 6)
    assert result.origin == f"resumed from step 4 of {back / 'checkpoints'}"
    expected = losses(ours)
    assert losses(back) == {step: expected[step] for step in (5, 6)}
    for item in ("params", "training"):
        left, right = (leaves(read_tree(str(folder / "checkpoints" / "6" / item))) for folder in (ours, back))
        assert left.keys() == right.keys()
        for name, array in left.items():
            np.testing.assert_array_equal(right[name], array)


def test_a_saved_model_embeds_as_the_parameters_of_the_checkpoint(theirs, tmp_path):
    output = tmp_path / "saved"
    assert cli.main(["t5x", "export", "--run", f"{theirs}@4", "--output", str(output), "--platforms", "cpu"]) == 0
    equals_flax(output, theirs / "checkpoint_4")


def test_a_run_of_another_optimizer_gives_its_parameters(theirs, ours, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(theirs, run)
    (run / "optimizer_state.json").unlink()
    back = tmp_path / "back"
    from_t5x(str(run), str(back))
    params, step, _ = ModelFolder(str(back)).read_params()
    expected, _, _ = ModelFolder(str(ours)).read_params(4)
    assert step == 4
    assert params.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(params[name], array)
    assert not (back / "checkpoints" / "4" / "training").exists()


def test_a_step_that_does_not_exist_is_refused(ours, theirs, tmp_path):
    with pytest.raises(InputError, match="got step 3, expected a checkpoint of 2, 4, 6"):
        to_t5x(str(ours), str(tmp_path / "x"), 3)
    with pytest.raises(InputError, match="got step 7, expected a checkpoint of 4"):
        from_t5x(str(theirs), str(tmp_path / "x"), 7)
    with pytest.raises(InputError, match="a checkpoint of step 4 is there"):
        to_t5x(str(ours), str(theirs), 4)
