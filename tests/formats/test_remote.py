"""Folders in an object store: what is copied to be read, and what is uploaded."""

import os

import pytest
from newsembed.errors import InputError
from newsembed.formats import files, remote, stores
from newsembed.formats.digests import write_sums
from newsembed.tests import object_store


@pytest.fixture(scope="module")
def store():
    with object_store.running() as found, object_store.used(found):
        yield found


def filled(store, name, names):
    for below in names:
        files.write_whole(f"{store.folder}/{name}/{below}", below.encode())
    return f"{store.folder}/{name}"


def test_of_a_model_folder_the_last_complete_step_is_copied_without_what_only_training_reads(store):
    uri = filled(
        store,
        "model",
        [
            "model.json",
            "1_Pooling/config.json",
            *(f"checkpoints/{step}/{name}" for step in (8, 16) for name in ("params/a", "training/b", "SHA256SUMS")),
            "checkpoints/24/params/a",  # its upload was cut off
        ],
    )
    described = ["1_Pooling/config.json", "model.json"]
    of_step = ["checkpoints/16/SHA256SUMS", "checkpoints/16/params/a"]
    assert sorted(files.sizes_below(remote.local_folder(f"{uri}/"))) == sorted([*described, *of_step])
    assert remote.local_folder(uri) == remote.local_folder(f"{uri}/")
    step = remote.local_folder(f"{uri}/checkpoints/8")
    assert step.endswith("/checkpoints/8")
    assert sorted(files.sizes_below(step)) == ["SHA256SUMS", "params/a"]
    assert os.path.exists(f"{step}/../../model.json")
    assert "checkpoints/8/params/a" in files.sizes_below(remote.local_folder(uri, 8))


def test_what_is_read_is_said_first_and_a_store_that_is_down_is_named_in_seconds(monkeypatch, capsys):
    def down(paths):
        raise InputError("cannot be reached", path=paths[0])

    monkeypatch.setattr(stores, "check_reachable", down)
    with pytest.raises(InputError, match="gs://bucket/model: cannot be reached"):
        remote.local_folder("gs://bucket/model")
    assert capsys.readouterr().err == "reading gs://bucket/model\n"


def test_a_local_folder_is_not_copied_and_an_empty_uri_is_named(store, tmp_path):
    assert remote.local_folder(str(tmp_path)) == str(tmp_path)
    with pytest.raises(InputError, match="nothing is stored") as raised:
        remote.local_folder(f"{store.folder}/nothing")
    assert f"{store.folder}/nothing" in str(raised.value)


def test_a_file_or_folder_is_copied_under_its_name(store, tmp_path):
    uri = filled(store, "sets", ["sts.tsv", "news/train/one", "news/two", "newsroom/three"])
    with open(remote.local_copy(f"{uri}/sts.tsv")) as file:
        assert (os.path.basename(file.name), file.read()) == ("sts.tsv", "sts.tsv")
    folder = remote.local_copy(f"{uri}/news/")
    assert (os.path.basename(folder), sorted(files.sizes_below(folder))) == ("news", ["train/one", "two"])
    assert remote.local_copy(f"{tmp_path}/") == f"{tmp_path}/"
    with pytest.raises(InputError, match="no such file"):
        remote.local_copy(f"{uri}/other")


def test_a_folder_is_uploaded_when_it_is_whole_and_replaced_only_if_asked(store):
    uri = f"{store.folder}/written"

    def write(names, overwrite=False, error=None):
        with remote.uploaded(uri, overwrite=overwrite) as folder:
            for name in names:
                files.write_whole(f"{folder}/{name}", b"x")
            write_sums(folder)
            if error:
                raise error

    with pytest.raises(OSError, match="full"):
        write(["a"], error=OSError("full"))
    assert files.sizes_below(uri) == {}
    write(["a", "b/c"])
    with pytest.raises(InputError, match="exists already"):
        write(["a"])
    write(["a", "d"], overwrite=True)
    assert sorted(files.sizes_below(uri)) == ["SHA256SUMS", "a", "d"]
    files.write_whole(f"{uri}/mine", b"x")
    with pytest.raises(InputError, match="no command wrote them: mine"):
        write(["a", "d"], overwrite=True)
    assert sorted(files.sizes_below(uri)) == ["SHA256SUMS", "a", "d", "mine"]


def test_the_digests_are_uploaded_after_all_other_files(store, tmp_path, monkeypatch):
    for name in ("SHA256SUMS", "z", "a/b"):
        files.write_whole(str(tmp_path / name), b"x")
    written, open_write = [], stores.open_write
    monkeypatch.setattr(stores, "open_write", lambda path: written.append(path) or open_write(path))
    remote.upload(str(tmp_path), f"{store.folder}/ordered", ["SHA256SUMS", "z", "a/b"])
    assert len(written) == 3
    assert written[-1].endswith("SHA256SUMS")
