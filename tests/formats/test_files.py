"""Files through Beam's filesystems, on local disk: complete or absent, listed in order, digested by size and ends."""

import hashlib
import os
import types

import pytest
from apache_beam.io.filesystem import FileMetadata
from newsembed.errors import InputError
from newsembed.formats import files


def test_a_file_is_written_complete_with_its_folder_and_without_remains(tmp_path):
    path = tmp_path / "inner" / "deeper" / "a.bin"
    files.write_whole(str(path), b"first")
    files.write_whole(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert files.list_files(f"{tmp_path}/**") == [str(path)]
    with files.open_read(str(path)) as source:
        assert source.read() == b"second"


def test_compressed_files_are_read_as_they_are_stored(tmp_path):
    path = str(tmp_path / "a.gz")
    with files.open_write(path) as sink:
        sink.write(b"not gzip")
    with files.open_read(path) as source:
        assert source.read() == b"not gzip"


def test_files_are_listed_in_the_order_of_their_paths(tmp_path):
    for name in ("b.txt", "a.txt", "c.tsv", "inner/d.txt"):
        files.write_whole(str(tmp_path / name), b"xy")
    assert files.list_files(f"{tmp_path}/*.txt") == [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert files.total_bytes(f"{tmp_path}/**.txt") == 6
    assert files.list_files(f"{tmp_path}/*.json") == []


@pytest.mark.parametrize("pattern", ["*.txt", "?.txt", "[ab].txt", "*/d.txt", "in*/d.txt", "**d.txt"])
def test_a_pattern_that_begins_with_a_wildcard_matches_in_the_working_directory(tmp_path, monkeypatch, pattern):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "inner/d.txt"):
        files.write_whole(str(tmp_path / name), b"xy")
    expected = ["inner/d.txt"] if "d" in pattern else ["a.txt", "b.txt"]
    assert files.list_files(pattern) == expected
    assert files.total_bytes(pattern) == 2 * len(expected)


def test_moving_replaces_the_target_and_copying_keeps_the_source(tmp_path):
    for name in ("a", "b"):
        files.write_whole(str(tmp_path / name), name.encode())
    files.move(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"a"
    assert not (tmp_path / "a").exists()
    files.copy([str(tmp_path / "b")], str(tmp_path / "folder"))
    assert (tmp_path / "folder" / "b").read_bytes() == (tmp_path / "b").read_bytes() == b"a"


def test_deleting_ignores_what_does_not_exist(tmp_path):
    files.write_whole(str(tmp_path / "folder" / "a"), b"")
    files.delete([str(tmp_path / "none"), str(tmp_path / "folder")])
    files.delete([str(tmp_path / "none")])
    assert list(tmp_path.iterdir()) == []


def test_equal_values_give_equal_json(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(str(path), {"b": "ü", "a": [1]})
    assert path.read_text(encoding="utf-8") == '{\n "a": [\n  1\n ],\n "b": "ü"\n}\n'
    assert files.read_json(str(path)) == {"a": [1], "b": "ü"}
    path.write_text("{")
    with pytest.raises(InputError, match=r"a\.json: not valid JSON"):
        files.read_json(str(path))


def test_the_digest_sees_the_size_and_both_ends_only(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_DIGEST_BYTES", 2)
    digests = {}
    for content in (b"abcdef", b"abXXef", b"Xbcdef", b"abcdeX", b"abcdXf", b"abccdef", b"abc", b"abX"):
        path = tmp_path / content.decode()
        path.write_bytes(content)
        digests[content] = files.file_digest(str(path))
    assert digests[b"abcdef"] == digests[b"abXXef"]
    assert len(set(digests.values())) == len(digests) - 1
    assert {len(digest) for digest in digests.values()} == {16}


@pytest.mark.parametrize("read", [files.open_read, files.size_of, files.file_digest, files.read_json])
def test_a_missing_file_is_named(tmp_path, read):
    with pytest.raises(InputError, match=f"{tmp_path}/none: no such file"):
        read(str(tmp_path / "none"))


def test_sizes_and_existence(tmp_path):
    files.write_whole(str(tmp_path / "a"), b"abc")
    assert files.size_of(str(tmp_path / "a")) == 3
    assert [files.exists(str(tmp_path / name)) for name in ("a", "b")] == [True, False]
    files.make_folder(str(tmp_path / "x" / "y"))
    files.make_folder(str(tmp_path / "x" / "y"))
    assert (tmp_path / "x" / "y").is_dir()


def test_a_path_without_a_filesystem_is_named():
    with pytest.raises(InputError, match=r"nowhere://a: no filesystem is installed"):
        files.exists("nowhere://a")


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    with pytest.raises(InputError, match="is a folder, expected a file") as caught:
        files.open_read(str(tmp_path))
    assert caught.value.path == str(tmp_path)
    assert f"'{tmp_path}/*'" in caught.value.remedy


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        files.write_whole(str(path), "not bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_moved_together_into_new_folders_and_replace_their_targets(tmp_path):
    pairs = [(str(tmp_path / f"from/{name}"), str(tmp_path / f"to/{name}/new")) for name in "abc"]
    for source, _ in pairs:
        files.write_whole(source, source[-1:].encode())
    files.write_whole(pairs[1][1], b"old")
    files.move_all(pairs)
    assert [(tmp_path / f"to/{name}/new").read_bytes() for name in "abc"] == [b"a", b"b", b"c"]
    assert list((tmp_path / "from").iterdir()) == []
    with pytest.raises(OSError, match="from/a"):
        files.move_all(pairs[:1])


def test_several_files_are_copied_under_their_names(tmp_path):
    sources = [str(tmp_path / name) for name in ("one/a", "two/b")]
    for source in sources:
        files.write_whole(source, source.encode())
    files.copy(sources, str(tmp_path / "all"))
    assert {path.name: path.read_text() for path in (tmp_path / "all").iterdir()} == {"a": sources[0], "b": sources[1]}


def test_sizes_below_a_folder_follow_links_but_never_in_a_circle(tmp_path):
    files.write_whole(str(tmp_path / "folder" / "b"), b"12")
    files.write_whole(str(tmp_path / "folder" / "a" / "z"), b"123")
    files.write_whole(str(tmp_path / "other" / "c"), b"1")
    (tmp_path / "folder" / "a" / "up").symlink_to(tmp_path / "folder")
    (tmp_path / "folder" / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "folder" / "twice").symlink_to(tmp_path / "other")
    (tmp_path / "folder" / "broken").symlink_to(tmp_path / "none")
    expected = {"a/z": 3, "b": 2, "broken": 0, "linked/c": 1, "twice/c": 1}
    for folder in (tmp_path / "folder", f"{tmp_path}/folder/"):
        found = files.sizes_below(str(folder))
        assert found == expected
        assert list(found) == list(expected)
    assert files.sizes_below(str(tmp_path / "none")) == files.sizes_below(str(tmp_path / "folder" / "b")) == {}


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        files.make_folder(str(tmp_path / "file" / "inner"))
    files.make_folder("")  # the folder of a path without one


def test_a_digest_is_that_of_the_size_and_of_a_mebibyte_of_each_end(tmp_path):
    raw = os.urandom(1 << 20) + b"middle" + os.urandom(1 << 20)
    (tmp_path / "a").write_bytes(raw)
    ends = raw[: 1 << 20] + raw[-(1 << 20) :]
    assert files.file_digest(str(tmp_path / "a")) == hashlib.sha256(str(len(raw)).encode() + ends).hexdigest()[:16]
    (tmp_path / "b").write_bytes(raw[: 1 << 20])
    short = hashlib.sha256(str(1 << 20).encode() + raw[: 1 << 20]).hexdigest()[:16]
    assert files.file_digest(str(tmp_path / "b")) == short


def test_temporary_names_are_in_the_folder_of_the_file_and_never_the_same():
    names = [files.temporary_name("folder/a.bin") for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("folder/a.bin.") and name.endswith(".tmp") for name in names)


def test_objects_that_mark_folders_are_not_listed_among_the_files_of_a_store(monkeypatch):
    found = [FileMetadata(f"s3://b/f/{name}", 3) for name in ("c/z", "", "c/", "a")]  # some tools write such markers
    asked = []

    def match(patterns):
        asked.extend(patterns)
        return [types.SimpleNamespace(metadata_list=found)]

    monkeypatch.setattr(files.FileSystems, "match", match)
    assert list(files.sizes_below("s3://b/f/").items()) == [("a", 3), ("c/z", 3)]
    assert asked == ["s3://b/f/**"]
