"""The folder of an archive: pointer, versions that share files, streams in parts."""

import contextlib
import datetime
import hashlib
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
)
from newsembed.formats.digests import differing
from newsembed.formats.manifest import read_manifest, recorded_digests
from newsembed.formats.parquet import read_stream, write_shard
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
    assert list(read_stream(f"{folder}/{ARTICLES}", Article)) == [article(row) for row in expected]


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


def files_in(folder, **contents):
    for name, content in contents.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder)


def test_a_first_run_may_start_in_what_a_first_run_leaves(tmp_path):
    archive.check_startable(str(tmp_path / "none"))
    archive.check_startable(files_in(tmp_path / "empty"))
    for name, contents in {
        "cut": {".work__base.json": "0", "versions__000001__x": "", ".lock": ""},
        "nothing_new": {"last_run.json": '{"version": 0}', ".lock": ""},
        "temporary": {"archive.json.0123.tmp": "", "last_run.json.0123.tmp": ""},
        "training": {".training__.lock": "", "trainings__.lock": ""},
        "complete": {"archive.json": "{}", "versions__000001__x": "", "notes.txt": ""},
    }.items():
        archive.check_startable(files_in(tmp_path / name, **contents))


@pytest.mark.parametrize(
    ("contents", "named"),
    [
        ({"versions__000001__x": ""}, "versions/000001"),
        ({".work__base.json": "3", "versions__000003__x": ""}, r"\.work/base\.json"),
        ({"last_run.json": '{"version": 4}'}, r"last_run\.json"),
        ({"trainings__000001__decision.json": "{}"}, "trainings/000001"),
        ({".training__plan.json": "{}"}, r"\.training/plan\.json"),
    ],
)
def test_an_archive_that_lost_its_pointer_is_not_taken_for_an_empty_folder(tmp_path, contents, named):
    folder = files_in(tmp_path, **contents, notes="")
    with pytest.raises(InputError, match=rf"has {named} of an archive, but no archive\.json") as caught:
        archive.check_startable(folder)
    assert (caught.value.path, caught.value.field) == (folder, "--archive")


def test_files_of_others_are_named_and_a_file_is_no_folder(tmp_path):
    with pytest.raises(InputError, match="not empty: it has b, z.tmp\n"):
        archive.check_startable(files_in(tmp_path / "two", **{"b": "", "z.tmp": ""}))
    folder = files_in(tmp_path / "five", **dict.fromkeys("abcde", ""))
    with pytest.raises(InputError, match="not empty: it has a, b, c, d, e\n"):
        archive.check_startable(folder)
    folder = files_in(tmp_path / "seven", **dict.fromkeys("gfedcba", ""))
    with pytest.raises(InputError, match="not empty: it has a, b, c, d, e and 2 more\n"):
        archive.check_startable(folder)
    with pytest.raises(InputError, match="--archive: is a file"):
        archive.check_startable(f"{folder}/a")


def test_the_current_version_is_compared_with_its_digests(tmp_path):
    folder = add_version(tmp_path, 1, list(range(1, 20)))
    pointer = read_pointer(str(tmp_path))
    assert read_version(str(tmp_path), pointer)["counts"] == {}
    (part,) = part_paths(folder, VECTORS)
    os.rename(part, f"{part}.away")
    with pytest.raises(InputError, match=r"changed since it was published: vectors/part-000001\.npy\n") as caught:
        read_version(str(tmp_path), pointer)
    assert caught.value.path == folder
    os.rename(f"{part}.away", part)
    with open(f"{folder}/manifest.json", "a", encoding="utf-8") as manifest:
        manifest.write("\n")
    with pytest.raises(InputError, match="the version that the pointer names is missing or damaged"):
        read_version(str(tmp_path), pointer)
    os.remove(f"{folder}/manifest.json")
    with pytest.raises(InputError, match="the version that the pointer names is missing or damaged"):
        read_version(str(tmp_path), pointer)


def test_files_that_a_run_does_not_read_are_not_compared_and_five_of_many_are_named(tmp_path):
    writer = VersionWriter(str(tmp_path), 1, None)
    for name in ("crawl_state/x.json.gz", "dead_letters/part-0.parquet", *(f"vectors/part-{n}.npy" for n in range(7))):
        with open(writer.path(name), "w", encoding="utf-8") as file:
            file.write(name)
    writer.add_history({})
    writer.finish({}, {})
    publish(str(tmp_path), 1)
    pointer = read_pointer(str(tmp_path))
    os.remove(f"{writer.folder}/crawl_state/x.json.gz")
    read_version(str(tmp_path), pointer)
    for number in range(7):
        os.remove(f"{writer.folder}/vectors/part-{number}.npy")
    with pytest.raises(InputError, match=r"vectors/part-0\.npy.*part-4\.npy and 2 more"):
        read_version(str(tmp_path), pointer)


def test_the_pointer_has_the_digest_of_the_index(tmp_path):
    writer = VersionWriter(str(tmp_path), 1, None)
    writer.add_history({})
    writer.finish({"threshold": 0.5}, {"in": 3})
    publish(str(tmp_path), 1)
    assert read_pointer(str(tmp_path)).index_sha256 == archive.index_digest(writer.folder) == ""
    manifest = read_manifest(writer.folder)
    assert (manifest["options"], manifest["counts"]) == ({"threshold": 0.5}, {"in": 3})
    with open(writer.path("index/SHA256SUMS"), "w", encoding="utf-8") as sums:
        sums.write("x")
    writer.finish({}, {})
    publish(str(tmp_path), 1)
    digest = hashlib.sha256(b"x").hexdigest()
    assert read_pointer(str(tmp_path)).index_sha256 == archive.index_digest(writer.folder) == digest


def test_a_version_takes_files_and_folders_of_the_one_before_and_adds_to_the_history(tmp_path, monkeypatch):
    first = VersionWriter(str(tmp_path), 1, None)
    first.carry("crawl_state")  # there is none before
    for name in ("parents.npy", "crawl_state/a/b.json"):
        with open(first.path(name), "w", encoding="utf-8") as file:
            file.write(name)
    first.add_history({"version": 1, "a": "ü"})
    first.finish({}, {})
    second = VersionWriter(str(tmp_path), 2, 1)
    for name in ("parents.npy", "crawl_state", "absent"):
        second.carry(name)
    second.add_history({"version": 2})
    for name in ("parents.npy", "crawl_state/a/b.json"):
        assert os.path.samefile(f"{first.folder}/{name}", f"{second.folder}/{name}")
    with open(f"{second.folder}/history.jsonl", encoding="utf-8") as history:
        assert history.read() == '{"a": "ü", "version": 1}\n{"version": 2}\n'
    assert sorted(os.listdir(second.folder)) == ["crawl_state", "history.jsonl", "parents.npy"]

    def no_links(*_):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", no_links)
    third = VersionWriter(str(tmp_path), 3, 1)
    third.carry("parents.npy")
    with open(f"{third.folder}/parents.npy", encoding="utf-8") as copied:
        assert copied.read() == "parents.npy"
    assert not os.path.samefile(f"{first.folder}/parents.npy", f"{third.folder}/parents.npy")


def test_what_a_run_that_was_cut_off_left_of_a_version_is_deleted(tmp_path):
    files_in(tmp_path, versions__000001__left="")
    assert os.listdir(VersionWriter(str(tmp_path), 1, None).folder) == []


def test_events_are_read_by_article(tmp_path):
    with pytest.raises(InputError, match=r"events/members\.parquet: no readable events"):
        archive.read_events(str(tmp_path))
    members = [archive.EventMember("a", "a", None), archive.EventMember("b", "a", datetime.date(2024, 1, 1))]
    write_shard(str(tmp_path / "events" / "members.parquet"), members, archive.EventMember)
    assert archive.read_events(str(tmp_path)) == {"a": "a", "b": "a"}


def test_temporary_files_next_to_the_pointer_are_removed_and_no_others(tmp_path):
    kept = {"archive.json", "archive.json.old", "last_run.json", "other.tmp", "versions"}
    files_in(tmp_path, **dict.fromkeys(kept - {"versions"}, ""), versions__000001__x="")
    files_in(tmp_path, **{"archive.json.12.tmp": "", "last_run.json.34.tmp": ""})
    archive.remove_temporary_files(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_other_versions_are_removed_whether_complete_or_not(tmp_path):
    assert remove_other_versions(str(tmp_path), set()) == []
    for number in (1, 3, 12):
        files_in(tmp_path, **{f"versions__{number:06d}__x": ""})
    files_in(tmp_path, versions__notes__x="")
    assert remove_other_versions(str(tmp_path), {3}) == [1, 12]
    assert sorted(os.listdir(tmp_path / "versions")) == ["000003", "notes"]


def test_json_is_written_as_a_whole_and_read_where_there_is_some(tmp_path):
    path = str(tmp_path / "new" / "a.json")
    archive.write_json(path, {"b": "ü", "a": [1]})
    with open(path, encoding="utf-8") as file:
        assert file.read() == '{\n "b": "ü",\n "a": [\n  1\n ]\n}\n'
    assert archive.read_json(path) == {"b": "ü", "a": [1]}
    assert archive.read_json(str(tmp_path / "none.json")) is None
    assert archive.read_json(files_in(tmp_path / "cut", x='{"a": ') + "/x") is None


def test_a_pointer_of_a_later_version_is_named(tmp_path):
    values = {"format": 2, "version": 1, "manifest_sha256": "a", "index_sha256": "b"}
    (tmp_path / "archive.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="format: got the format 2, expected 1") as caught:
        read_pointer(str(tmp_path))
    assert caught.value.remedy == "install a newer version of newsembed"
    assert read_pointer(str(tmp_path / "archive.json")) is None  # a file in place of the folder


def test_folders_of_an_archive_have_their_places():
    assert archive.version_folder("a", 31) == "a/versions/000031"
    assert (archive.work_folder("a"), archive.training_work("a")) == ("a/.work", "a/.training")
    assert archive.training_folder("a", 2) == "a/trainings/000002"
    assert archive.trained_model("a", 2) == "a/trainings/000002/model"
