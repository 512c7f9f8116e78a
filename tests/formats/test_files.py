"""Files on local disk: complete or absent, listed in order, digested by size and ends; outputs that are refused."""

import os

import pytest
from newsembed.errors import InputError
from newsembed.formats import files, stores
from newsembed.formats.files import check_output, replacing, writing_text


def test_a_file_is_written_complete_with_its_folder_and_without_remains(tmp_path):
    path = tmp_path / "inner" / "deeper" / "a.gz"
    files.write_whole(str(path), b"first")
    files.write_whole(str(path), b"not gzip")
    assert files.list_files(f"{tmp_path}/**") == [str(path)]
    with files.open_read(str(path)) as source:
        assert source.read() == b"not gzip"
    with pytest.raises(TypeError):
        files.write_whole(str(path), "not bytes")
    assert path.read_bytes() == b"not gzip"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", "a.txt b.txt"),
        ("?.txt", "a.txt b.txt"),
        ("[ab].txt", "a.txt b.txt"),
        ("*/d.txt", "inner/d.txt"),
        ("in*/d.txt", "inner/d.txt"),
        ("**.txt", "a.txt b.txt inner/d.txt"),
        ("**/.h*", ".hidden"),
        ("inner", ""),
        ("*.json", ""),
    ],
)
def test_a_pattern_lists_files_in_the_order_of_their_paths(tmp_path, monkeypatch, pattern, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "inner/d.txt", ".hidden"):
        files.write_whole(name, b"xy")
    assert files.list_files(pattern) == expected.split()
    assert files.list_files(f"{tmp_path}/{pattern}") == [f"{tmp_path}/{name}" for name in expected.split()]
    assert files.total_bytes(pattern) == 2 * len(expected.split())


def test_a_file_that_goes_while_sizes_are_added_does_not_count(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"abc")
    monkeypatch.setattr(files, "list_files", lambda _: [str(tmp_path / "gone.tmp"), str(tmp_path / "a")])
    assert files.total_bytes(f"{tmp_path}/*") == 3


def test_moving_replaces_the_target_and_copying_keeps_the_source(tmp_path):
    pairs = [(str(tmp_path / f"from/{name}"), str(tmp_path / f"to/{name}/new")) for name in "abc"]
    for source, _ in pairs:
        files.write_whole(source, source[-1:].encode())
    files.write_whole(pairs[1][1], b"old")
    files.move_all(pairs)
    assert [(tmp_path / f"to/{name}/new").read_bytes() for name in "abc"] == [b"a", b"b", b"c"]
    assert list((tmp_path / "from").iterdir()) == []
    with pytest.raises(OSError, match="from/a"):
        files.move_all(pairs[:1])
    files.copy([pairs[1][1]], str(tmp_path / "folder"))
    assert (tmp_path / "folder/new").read_bytes() == (tmp_path / "to/b/new").read_bytes() == b"b"


def test_deleting_ignores_what_does_not_exist(tmp_path):
    files.write_whole(str(tmp_path / "folder" / "a"), b"")
    files.write_whole(str(tmp_path / "b"), b"")
    for _ in range(2):
        files.delete([str(tmp_path / name) for name in ("none", "folder", "b")])
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


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("none", "no such file"),
        ("", "is a folder, expected a file.*\n.*/\\*'"),
        ("nowhere://a", "no filesystem is installed"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, path, problem):
    path = path if "://" in path else str(tmp_path / path)
    for read in (files.open_read, files.size_of, files.file_digest):
        with pytest.raises(InputError, match=f"^{path}: {problem}"):
            read(path)


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


def test_objects_that_mark_folders_are_not_listed_among_the_files_of_a_store(monkeypatch):
    found = {f"s3://b/f/{name}": 3 for name in ("c/z", "", "c/", "a")}  # some tools write such markers
    asked = []
    monkeypatch.setattr(stores, "sizes_below", lambda pattern: asked.append(pattern) or found)
    assert list(files.sizes_below("s3://b/f/").items()) == [("a", 3), ("c/z", 3)]
    assert asked == ["s3://b/f"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_file_is_replaced_when_it_is_complete_and_stays_after_an_error(tmp_path, begun):
    path = tmp_path / "file"
    path.write_text("before")

    def write(*, fails):
        with replacing(str(path)) as temporary, replacing(str(path)) as other:
            assert os.path.dirname(temporary) == str(tmp_path)
            assert os.path.basename(temporary).startswith("file.")
            assert temporary.endswith(".tmp")
            assert temporary != other  # of two writers
            for name in (temporary, other)[: 2 * (begun or not fails)]:
                with open(name, "w") as file:
                    file.write("after")
            assert path.read_text() == "before"
            if fails:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(fails=True)
    assert path.read_text() == "before"
    write(fails=False)
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["file"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with writing_text(path) as file:
        file.write("one\n")
    assert os.read(reader, 9) == b"one\n"
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("is_folder", "problem"),
    [(True, "is a file, the output is a folder"), (False, "is a folder, the output is a file")],
)
def test_an_output_of_the_other_kind_is_refused(tmp_path, is_folder, problem):
    file = tmp_path / "file"
    file.write_text("")
    wrong, right = (file, tmp_path) if is_folder else (tmp_path, file)
    with pytest.raises(InputError) as raised:
        check_output(str(wrong), is_folder=is_folder)
    assert (raised.value.problem, raised.value.path, raised.value.field) == (problem, str(wrong), "--output")
    check_output(str(right), is_folder=is_folder)
    check_output(str(tmp_path / "absent" / "deep"), is_folder=is_folder)
    check_output("/dev/null", is_folder=False)  # a device is written to as it is
    assert os.listdir(tmp_path) == ["file"]
    for path in ("/proc/new", "/proc/new/deep"):
        with pytest.raises(InputError, match="cannot be written: /proc: No such file") as raised:
            check_output(path, is_folder=is_folder)
        assert (raised.value.path, raised.value.field) == (path, "--output")


def test_names_as_long_as_the_file_system_takes_are_written_and_longer_ones_named(tmp_path):
    for name in ("n" * 255, "ü" * 127):
        files.write_whole(str(tmp_path / name), b"x")
        files.check_output(str(tmp_path / name), is_folder=False)
        assert (tmp_path / name).read_bytes() == b"x"
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(InputError, match="--output: cannot be written: .*File name too long") as raised:
        files.check_output(str(tmp_path / ("n" * 256)), is_folder=True)
    assert "shorter name" in raised.value.remedy
