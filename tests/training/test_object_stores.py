"""Training where all paths are in an object store: the same losses and parameters as on a disk."""

import json
import os

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats import files, remote, tfrecords
from newsembed.formats.digests import SUMS
from newsembed.formats.manifest import DataSet
from newsembed.formats.model_folder import ModelFolder
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.tests import object_store
from newsembed.training.gin_config import run_training
from test_processes import run_together
from toy_corpus import BOUNDS, LENGTHS, tiny_bindings, write_corpus, write_vocabulary

RUN = ["runs/train_demo.gin"]


@pytest.fixture(scope="module")
def store():
    with object_store.running() as found, object_store.used(found):
        yield found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, store):
    """A folder with data and vocabulary, which are also in the store."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "data")
    write_vocabulary(folder / "vocab.txt")
    remote.upload(str(folder), store.folder, files.sizes_below(str(folder)))
    return str(folder)


def train(folder, model, steps, **names):
    fixed = {"TRAIN_STEPS": steps, "CHECKPOINT_PERIOD": 2, "INITIAL_CHECKPOINT_PATH": None}
    return run_training(RUN, tiny_bindings(model, f"{folder}/data", f"{folder}/vocab.txt", **(fixed | names)))


def state(model):
    folder = remote.local_folder(model)
    with open(f"{folder}/metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    losses = [{name: line[name] for name in line if name.startswith(("step", "loss"))} for line in lines]
    return ModelFolder(folder).read_params()[0], losses


def test_a_run_in_a_store_is_that_on_a_disk_also_when_it_is_resumed(tmp_path, store, corpus, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored, local = f"{store.folder}/model", "model"
    for steps in (2, 6):
        train(corpus, local, steps)
        result = train(store.folder, stored, steps, KEEP_CHECKPOINTS=1)
        assert (result.step, result.model_dir) == (steps, stored)
    assert result.origin.startswith(f"resumed from step 2 of {stored}/checkpoints")
    names = files.sizes_below(stored)
    assert remote.complete_steps(names) == [6]
    assert {"model.json", "vocab.txt", "config.gin", "metrics.jsonl"} <= names.keys()
    (expected, losses), (found, found_losses) = state(local), state(stored)
    assert found_losses == losses
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, name)
    assert os.listdir(".") == ["model"]
    # Another run starts from its parameters.
    started = train(store.folder, f"{tmp_path}/next", 2, INITIAL_CHECKPOINT_PATH=stored)
    assert "parameters restored from" in started.origin


def test_a_cut_off_upload_leaves_the_step_before_and_is_removed(store, corpus, monkeypatch):
    model = f"{store.folder}/cut"
    train(store.folder, model, 2)

    def cut(folder, uri, names):
        names = list(names)
        if any(name.startswith("checkpoints/4/") for name in names):
            upload(folder, uri, [name for name in names if not name.endswith(SUMS)][:2])
            raise InputError("the store does not answer", path=uri)
        upload(folder, uri, names)

    upload = remote.upload
    with monkeypatch.context() as patch:
        patch.setattr(remote, "upload", cut)
        with pytest.raises(InputError, match="does not answer"):
            train(store.folder, model, 4)
    names = files.sizes_below(model)
    assert remote.complete_steps(names) == [2]
    assert any(name.startswith("checkpoints/4/") for name in names)
    assert train(store.folder, model, 2).step == 2
    assert not any(name.startswith("checkpoints/4/") for name in files.sizes_below(model))


def test_a_store_that_fails_for_a_while_ends_no_run(store, corpus, monkeypatch, capsys):
    model, failed = f"{store.folder}/failing", []

    def fail_once(folder, uri, names):
        names = list(names)
        if names and names[0].startswith("checkpoints/2/") and not failed:
            failed.append(names)
            raise InputError("the store does not answer", path=uri)
        upload(folder, uri, names)

    upload = remote.upload
    monkeypatch.setattr(remote, "upload", fail_once)
    assert train(store.folder, model, 4).step == 4
    assert failed
    assert remote.complete_steps(files.sizes_below(model)) == [2, 4]
    assert "the checkpoint of step 2 was not uploaded" in capsys.readouterr().err


@pytest.mark.long  # `make stores`
def test_two_processes_that_share_no_disk_save_and_resume_as_one_on_a_disk(store, corpus, tmp_path, monkeypatch):
    """One of them gets SIGTERM at step 5."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    fixed = {"TRAIN_STEPS": 8, "CHECKPOINT_PERIOD": 2, "INITIAL_CHECKPOINT_PATH": None}
    folder, model = store.folder, f"{store.folder}/two"
    job = {"gin": RUN[0], "bindings": tiny_bindings(model, f"{folder}/data", f"{folder}/vocab.txt", **fixed)}
    first, second = run_together(tmp_path, [job | {"stop_at": 5}, job])
    assert first[0]["code"] == second[0]["code"] == 143
    assert first[1]["origin"].startswith(f"resumed from step 6 of {model}")
    train(corpus, f"{tmp_path}/alone", 8)
    (expected, _), (found, _) = state(f"{tmp_path}/alone"), state(model)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("count", [1, 2])
def test_a_set_too_large_to_copy_is_read_by_block_and_shared_alike(store, tmp_path, monkeypatch, count):
    monkeypatch.setattr(tfrecords, "BLOCK_RECORDS", 4)
    folder, data_set = str(tmp_path), DataSet("triplets", "en")
    write_corpus(tmp_path, count=60)
    paths = files.list_files(f"{folder}/{data_set.stream}/*")
    blocks = {path[len(folder) + 1 :]: tfrecords.RecordFile(path).blocks for path in paths}
    manifest = files.read_json(f"{folder}/manifest.json")
    manifest["blocks"] = {name: [places.records, *places.offsets] for name, places in blocks.items()}
    files.write_json(f"{folder}/manifest.json", manifest)
    uri = f"{store.folder}/large-{count}"
    remote.upload(folder, uri, files.sizes_below(folder))

    def opened(index, of, directory):
        options = BatchOptions(directory, LENGTHS, 8 // of, BOUNDS, process_index=index, process_count=of)
        return GrainBatches(data_set, options, copied_gigabytes=0.0)

    shares = [opened(index, count, uri) for index in range(count)]
    local = {row.tobytes() for row in next_rows(opened(0, 1, folder), 60)}
    steps = [np.concatenate([next(share)["anchor_doc_id"] for share in shares]) for _ in range(8)]
    assert {row.tobytes() for row in np.concatenate(steps)} <= local
    whole = opened(0, 1, uri)
    expected = [next(whole)["anchor_doc_id"] for _ in range(8)]
    np.testing.assert_array_equal(steps, expected)
    assert len({row.tobytes() for row in np.concatenate(expected)[:56]}) >= 48
    resumed = opened(0, 1, uri)
    middle = opened(0, 1, uri)
    for _ in range(3):
        next(middle)
    resumed.set_state(middle.get_state())
    np.testing.assert_array_equal(next(resumed)["anchor_doc_id"], expected[3])
    with pytest.raises(InputError, match="the data are now"):
        opened(0, 1, folder).set_state(middle.get_state())


def next_rows(batches, count):
    rows = []
    while len(rows) < 2 * count:
        rows += list(next(batches)["anchor_doc_id"])
    return rows
