"""Checkpoints: which stay, what a damaged one does, a disk that is full, iterators of several processes."""

import dataclasses
import errno
import gc
import json
import os
import shutil
import sys
import warnings

import jax
import numpy as np
import optax
import pytest
from full_disk import small_files
from newsembed.errors import InputError
from newsembed.formats.vocabulary import read_vocabulary
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import NewsEncoder
from newsembed.training import checkpoints as module
from newsembed.training.checkpoints import Checkpoints, find_checkpoint, start_state
from newsembed.training.options import CheckpointOptions
from newsembed.training.train_state import plan_state
from small_encoders import small
from toy_corpus import write_vocabulary

CONFIG = small(64, num_layers=1, max_length=16, num_topics=4)


@pytest.fixture(scope="module")
def layout():
    partitioner = Partitioner()
    return plan_state(NewsEncoder(CONFIG), optax.adam(0.1), partitioner, partitioner.make_mesh(jax.devices()[:1]))


@pytest.fixture(scope="module")
def states(layout):
    return {
        step: layout.create(jax.random.key(step)).replace(step=jax.numpy.asarray(step, np.int32)) for step in (4, 8)
    }


@pytest.fixture(scope="module")
def saved(states, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints") / "model"
    with Checkpoints(str(folder)) as checkpoints:
        for step, state in states.items():
            checkpoints.save(step, state, b"at %d" % step)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture(autouse=True)
def no_late_noise():
    """Collects what TensorStore's coroutines leave behind where a read fails, while nobody listens to it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        gc.collect()
        sys.unraisablehook = hook


def start(folder, layout, tmp_path, initial=None):
    vocabulary = read_vocabulary(write_vocabulary(tmp_path / "vocab.txt"))
    with Checkpoints(str(folder)) as checkpoints:
        return start_state(checkpoints, initial, layout, jax.random.key(0), CONFIG, vocabulary)


def assert_is(state, expected):
    jax.tree.map(np.testing.assert_array_equal, state, expected)


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def change(folder, changed):
    """Changes all files that hold arrays: which of them are read depends on how Orbax merged what it wrote."""
    paths = [path for path in folder.rglob("d/*") if path.is_file()]
    assert paths
    for path in paths:
        path.write_bytes(changed(path.read_bytes()))


def flipped(raw):
    return raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :]


def half(raw):
    return raw[: len(raw) // 2]


DAMAGES = {
    "bits of parameters flipped": lambda step: change(step / "params", flipped),
    "parameters cut off": lambda step: change(step / "params", half),
    "parameters gone": lambda step: shutil.rmtree(step / "params"),
    "index gone": lambda step: (step / "training" / "manifest.ocdbt").unlink(),
    "position cut off": lambda step: truncate(step / "iterators" / "metadata"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_is_set_aside_and_the_one_before_counts(copy, layout, states, tmp_path, damage):
    DAMAGES[damage](copy / "checkpoints" / "8")
    resumed = start(copy, layout, tmp_path)
    assert (resumed.step, resumed.iterators) == (4, b"at 4")
    assert "step 8 cannot be read" in resumed.origin
    assert f"set aside as {copy / 'damaged-checkpoints' / '8'}" in resumed.origin
    assert_is(resumed.state, states[4])
    assert os.listdir(copy / "checkpoints") == ["4"]
    with Checkpoints(str(copy)) as checkpoints:
        checkpoints.save(8, states[8], b"again")  # its number is free again
    assert start(copy, layout, tmp_path).iterators == b"again"


def test_without_one_before_it_the_run_ends(copy, layout, tmp_path):
    shutil.rmtree(copy / "checkpoints" / "4")
    change(copy / "checkpoints" / "8" / "params", half)
    with pytest.raises(
        InputError, match=r"checkpoints/8: the checkpoint cannot be read .*\n.*No checkpoint before it is left"
    ):
        start(copy, layout, tmp_path)
    assert os.listdir(copy / "checkpoints") == ["8"]


def test_a_damaged_checkpoint_to_start_from_is_named(copy, layout, tmp_path):
    change(copy / "checkpoints" / "8" / "params", half)
    with pytest.raises(InputError, match="8/params: the checkpoint cannot be read") as raised:
        start(tmp_path / "new", layout, tmp_path, initial=str(copy))
    assert "Name another step" in raised.value.remedy


def test_another_architecture_is_no_damage(copy, tmp_path):
    partitioner = Partitioner()
    wider = NewsEncoder(dataclasses.replace(CONFIG, mlp_size=48))
    other = plan_state(wider, optax.adam(0.1), partitioner, partitioner.make_mesh(jax.devices()[:1]))
    with pytest.raises(InputError, match="another architecture") as raised:
        start(copy, other, tmp_path)
    assert raised.value.path == str(copy / "checkpoints/8/params")
    assert sorted(os.listdir(copy / "checkpoints")) == ["4", "8"]


def test_the_best_the_newest_and_each_period_stay(states, tmp_path):
    keeping = CheckpointOptions(keep=1, keep_period=6, keep_best="eval/loss")
    with Checkpoints(str(tmp_path), keeping) as checkpoints:
        for step, loss in ((2, 3.0), (4, 1.0), (6, 2.0), (8, 2.5), (10, 4.0), (11, None)):
            checkpoints.save(step, states[8], b"", None if loss is None else {"eval/loss": loss})
            checkpoints.wait()
    assert sorted(map(int, os.listdir(tmp_path / "checkpoints"))) == [4, 6, 11]
    with Checkpoints(str(tmp_path), keeping) as checkpoints:  # the numbers are known after a restart
        checkpoints.save(12, states[8], b"", {"eval/loss": 0.5})
    assert sorted(map(int, os.listdir(tmp_path / "checkpoints"))) == [6, 12]


def test_iterators_that_differ_need_as_many_processes(copy, states, layout, tmp_path, monkeypatch):
    with Checkpoints(str(copy)) as checkpoints, monkeypatch.context() as patch:
        patch.setattr(module, "gather_bytes", lambda state: [state, b"of another process"])
        checkpoints.save(9, states[8], b"mine")
    with pytest.raises(InputError, match="states of 2 processes differ, and now there are 1") as raised:
        start(copy, layout, tmp_path)
    assert "Continue with 2 processes" in raised.value.remedy
    assert json.loads((copy / "checkpoints" / "9" / "iterators" / "metadata").read_text()) == {
        "states": ["mine", "of another process"]
    }


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def save_on_a_full_disk(folder, step, state):
    with Checkpoints(str(folder)) as checkpoints, small_files(1024):
        checkpoints.save(step, state, b"")
        checkpoints.wait()


def test_every_save_has_its_digests_and_a_full_disk_names_the_one_that_is_safe(states, tmp_path):
    with Checkpoints(str(tmp_path)) as checkpoints:
        checkpoints.save(4, states[4], b"")
        checkpoints.save(8, states[8], b"", {"eval/loss": 1.0})  # no rule needs it
        assert (tmp_path / "checkpoints/4/SHA256SUMS").exists()
        checkpoints.wait()
        assert (tmp_path / "checkpoints/8/SHA256SUMS").exists()
        assert (checkpoints.latest_step(), checkpoints.best_step(), checkpoints.steps()) == (8, None, [8, 4])
    with pytest.raises(InputError) as raised:
        save_on_a_full_disk(tmp_path, 12, states[8])
    assert "a checkpoint of step 12 cannot be written" in raised.value.problem
    assert "step 8 is safe" in raised.value.problem
    assert raised.value.path == str(tmp_path / "checkpoints")
    with Checkpoints(str(tmp_path)) as checkpoints:
        assert checkpoints.latest_step() == 8


def leave_with(error, folder):
    """Leaves checkpoints with an error of the run, or None, while the last save cannot be written."""
    with Checkpoints(str(folder)) as checkpoints, pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints._manager, "wait_until_finished", full_disk)
        checkpoints.__exit__(type(error) if error else None, error, None)


def test_a_run_that_fails_shows_its_own_error_and_not_what_follows_from_it(tmp_path):
    no_checkpoint = "a checkpoint cannot be written: No space left on device; no earlier checkpoint exists"
    leave_with(KeyError("own"), tmp_path)
    with pytest.raises(InputError, match=no_checkpoint):
        leave_with(None, tmp_path)


def test_all_damaged_ones_are_set_aside_until_one_can_be_read(copy, layout, states, tmp_path):
    with Checkpoints(str(copy)) as checkpoints:
        checkpoints.save(12, states[8], b"at 12")
    assert find_checkpoint(str(copy)) == str(copy / "checkpoints/12")
    assert find_checkpoint(str(copy / "checkpoints/4")) == str(copy / "checkpoints/4")
    for step in (8, 12):
        truncate(copy / "checkpoints" / str(step) / "iterators" / "metadata")
    resumed = start(copy, layout, tmp_path)
    assert (resumed.step, resumed.iterators, resumed.is_random) == (4, b"at 4", False)
    notes = resumed.origin.split("; ")
    assert notes[0] == f"resumed from step 4 of {copy / 'checkpoints'}"
    for note, step in zip(notes[1:], (12, 8), strict=True):
        assert note.startswith(f"step {step} cannot be read (ValueError: not the content that SHA256SUMS lists")
        assert note.endswith(f"), set aside as {copy / 'damaged-checkpoints' / str(step)}")


def test_a_run_that_does_not_resume_begins_at_step_zero(saved, layout, states, tmp_path):
    drawn = start(tmp_path / "one", layout, tmp_path)
    assert (drawn.step, drawn.iterators, drawn.origin, drawn.is_random) == (0, None, "initialised at random", True)
    assert_is(drawn.state, layout.create(jax.random.key(0)))
    taken = start(tmp_path / "two", layout, tmp_path, initial=str(saved))
    assert (taken.step, taken.iterators, taken.is_random) == (0, None, False)
    assert taken.origin == f"parameters restored from {saved / 'checkpoints/8'}"
    assert_is(taken.state, drawn.state.replace(params=states[8].params))
