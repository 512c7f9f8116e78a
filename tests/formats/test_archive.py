"""The folder of an archive: pointer, versions that share files, streams in parts."""

import contextlib
import datetime
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed import __version__
from newsembed.errors import InputError
from newsembed.formats import archive
from newsembed.formats.archive import (
    Pointer,
    VersionWriter,
    copy_folder,
    current_index,
    is_archive,
    publish,
    read_pointer,
    read_version,
    remove_other_versions,
)
from newsembed.formats.archive_parts import (
    ARTICLES,
    VECTORS,
    append_arrays,
    append_articles,
    part_paths,
    read_array_part,
    read_columns,
)
from newsembed.formats.digests import differing
from newsembed.formats.manifest import read_manifest, recorded_digests
from newsembed.formats.parquet import read_stream
from newsembed.formats.records import Article

FIELDS = ("format", "version", "manifest_sha256", "index_sha256")


def article(number):
    return Article(f"{number:016x}", f"https://a.example/{number}", "a.example", "Title", "Body " * number, ("A",))


def add_version(folder, number, new, removed=None):
    writer = VersionWriter(str(folder), number, number - 1 if number > 1 else None)
    append_articles(writer, [article(one) for one in new], removed)
    append_arrays(writer, VECTORS, np.array(new, np.float32).reshape(-1, 1), removed)
    writer.add_history({"version": number})
    writer.finish({}, {})
    publish(str(folder), number)
    return writer.folder


def rows_of(folder):
    vectors = np.concatenate([read_array_part(path) for path in part_paths(folder, VECTORS)])
    articles = list(read_stream(f"{folder}/{ARTICLES}", Article))
    assert [one.doc_id for one in articles] == [f"{int(value):016x}" for value in vectors[:, 0]]
    return vectors[:, 0].astype(int).tolist()


def test_parts_are_the_rows_in_order_and_few(tmp_path):
    draw = np.random.default_rng(0)
    expected, folder = [], ""
    for version in range(1, 25):
        removed = draw.random(len(expected)) < 0.03
        new = (version * 100 + np.arange(draw.integers(0, 6))).tolist()
        folder = add_version(tmp_path, version, new, removed)
        expected = [row for row, gone in zip(expected, removed, strict=True) if not gone] + new
        assert rows_of(folder) == expected
        assert len(part_paths(folder, VECTORS)) <= 1 + math.log2(max(len(expected), 1))
    assert read_columns(folder, ["doc_id"]).column("doc_id").to_pylist() == [f"{row:016x}" for row in expected]
    assert list(read_stream(f"{folder}/{ARTICLES}", Article))[0] == article(expected[0])


def test_a_small_addition_shares_the_large_part(tmp_path):
    first = add_version(tmp_path, 1, list(range(1, 20)))
    second = add_version(tmp_path, 2, [20])
    assert [os.path.basename(path) for path in part_paths(second, VECTORS)] == ["part-000001.npy", "part-000002.npy"]
    for stream in (VECTORS, ARTICLES):
        assert os.path.samefile(part_paths(first, stream)[0], part_paths(second, stream)[0])
    assert remove_other_versions(str(tmp_path), {2}) == [1]
    assert rows_of(second) == list(range(1, 21))


def test_a_removed_row_leaves_the_version_before_as_it_was(tmp_path):
    first = add_version(tmp_path, 1, [1, 2, 3])
    second = add_version(tmp_path, 2, [], np.array([False, True, False]))
    assert (rows_of(first), rows_of(second)) == ([1, 2, 3], [1, 3])
    assert part_paths(add_version(tmp_path, 3, [], np.array([True, True])), VECTORS) == []


def test_the_manifest_has_the_digest_of_every_file(tmp_path):
    add_version(tmp_path, 1, list(range(1, 20)))
    folder = add_version(tmp_path, 2, [20])
    digests = recorded_digests(read_version(str(tmp_path), read_pointer(str(tmp_path))), folder)
    assert len(digests) == 5  # two parts of each stream, and the history
    assert differing(folder, digests) == []


def test_what_a_version_adds_is_on_the_disk_before_the_pointer_names_it(tmp_path, monkeypatch):
    first = add_version(tmp_path, 1, list(range(1, 20)))
    synced = []
    monkeypatch.setattr(archive, "_sync", lambda path: synced.append(os.path.relpath(path, tmp_path)))
    folder = add_version(tmp_path, 2, [20])
    files = recorded_digests(read_manifest(folder), folder)
    new = {name for name in files if not os.path.exists(f"{first}/{name}")} | {"history.jsonl"}
    assert 0 < len(new) < len(files), "the large parts are shared"
    here = os.path.relpath(folder, tmp_path)
    assert sorted(synced[: len(new)]) == sorted(f"{here}/{name}" for name in new)
    *folders, pointer, whole = synced[len(new) :]
    assert folders == [f"{here}/manifest.json", here, "versions"]
    assert pointer.startswith("archive.json.")
    assert whole == "."


def test_the_manifest_names_the_program_and_a_digest_of_all_files(tmp_path):
    first, second = (read_manifest(add_version(tmp_path / name, 1, [1, 2])) for name in ("one", "two"))
    other = read_manifest(add_version(tmp_path / "three", 1, [1, 3]))
    assert (first["job"], first["code_version"]) == ("update", __version__)
    assert first["digest"] == second["digest"] != other["digest"]


@pytest.mark.parametrize(("new", "parts"), [(9, 2), (10, 1)])
def test_a_part_of_at_most_twice_what_comes_after_it_is_joined_with_it(tmp_path, new, parts):
    add_version(tmp_path, 1, list(range(20)))
    assert len(part_paths(add_version(tmp_path, 2, list(range(20, 20 + new))), VECTORS)) == parts


def test_the_pointer_names_the_version_and_changes_with_it(tmp_path):
    assert (is_archive(str(tmp_path)), read_pointer(str(tmp_path))) == (False, None)
    add_version(tmp_path, 1, [1])
    first = read_pointer(str(tmp_path))
    VersionWriter(str(tmp_path), 2, 1)
    assert read_pointer(str(tmp_path)) == first
    add_version(tmp_path, 2, [2])
    assert (first.version, read_pointer(str(tmp_path)).version) == (1, 2)
    assert current_index(str(tmp_path)) == str(tmp_path / "versions" / "000002" / "index")
    assert current_index(str(tmp_path / "other")) == str(tmp_path / "other")


def test_trainings_are_in_the_archive_and_numbered(tmp_path):
    folder = str(tmp_path)
    assert archive.trainings(folder) == []
    assert os.path.dirname(archive.training_work(folder)) == folder
    for number in (10, 2):
        os.makedirs(archive.trained_model(folder, number))
    (tmp_path / "trainings" / "notes").mkdir()
    assert archive.trainings(folder) == [2, 10]
    assert archive.decision_file(folder, 2) == str(tmp_path / "trainings" / "000002" / "decision.json")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "version": "x"}'])
def test_a_damaged_pointer_is_named(tmp_path, content):
    (tmp_path / "archive.json").write_text(content)
    with pytest.raises(InputError, match=r"archive\.json: a damaged pointer"):
        read_pointer(str(tmp_path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)


@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40))
def test_any_content_of_a_pointer_is_read_or_named(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("any")
    (folder / "archive.json").write_bytes(content)
    with contextlib.suppress(InputError):
        assert isinstance(read_pointer(str(folder)), Pointer)


def test_a_folder_is_copied_as_a_whole(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("content")
    (tmp_path / "target.tmp").mkdir()
    (tmp_path / "target.tmp" / "left").write_text("by a run that was cut off")
    copy_folder(str(tmp_path / "source"), str(tmp_path / "target"))
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["file"]
    copy_folder(str(tmp_path / "none"), str(tmp_path / "empty"))
    assert list((tmp_path / "empty").iterdir()) == []


def test_dates_and_lists_of_articles_come_back(tmp_path):
    one = Article("1" * 16, "u", "p", "t", "b", ("A", "B"), datetime.date(2024, 1, 1), image_hash=b"12345678")
    writer = VersionWriter(str(tmp_path), 1, None)
    append_articles(writer, [one])
    assert list(read_stream(f"{writer.folder}/{ARTICLES}", Article)) == [one]
