"""Digests: written with a folder, compared when it is read, understood by sha256sum."""

import hashlib
import io
import os
import shutil
import subprocess

import pytest
from newsembed.errors import InputError
from newsembed.formats import digests, files
from newsembed.formats.archive import connect
from newsembed.formats.digests import check_fetched, read_sums


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a file.txt").write_bytes(b"one")
    (tmp_path / "inner/b.bin").write_bytes(bytes(range(256)) * 9_000)
    digests.write_sums(str(tmp_path))
    return tmp_path


def test_sums_are_those_of_hashlib_and_sha256sum_agrees(folder):
    expected = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("a file.txt", "inner/b.bin")
    }
    assert digests.read_sums(str(folder)) == expected
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", "--quiet", digests.SUMS], cwd=folder, check=True)
    assert digests.damage(str(folder)) == ""
    digests.check_sums(str(folder), "none")


@pytest.mark.parametrize("change", ["bit", "shorter", "missing"])
def test_a_changed_file_is_named(folder, change):
    path = folder / "inner/b.bin"
    raw = bytearray(path.read_bytes())
    raw[1_500_000] ^= 1
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(raw if change == "bit" else raw[:-1])
    with pytest.raises(InputError, match=r"lists: inner/b\.bin\n  remedy: fetch"):
        digests.check_sums(str(folder), "fetch it again")
    digests.check_sums(str(folder), "none", ["a file.txt"])
    assert digests.damage(str(folder), ["inner"])


def test_only_names_whole_parts_of_a_path_and_a_folder_without_sums_is_not_compared(folder):
    (folder / "inner/b.bin").unlink()
    assert digests.damage(str(folder), ["inn", "inner/b"]) == ""
    assert digests.read_sums(str(folder / "inner")) is None
    assert digests.damage(str(folder / "inner")) == ""


def test_the_sink_digests_all_that_is_written():
    target = io.BytesIO()
    sink = digests.HashingSink(target)
    assert [sink.write(b"ab"), sink.write(memoryview(b"cde"))] == [2, 3]
    assert (sink.tell(), target.getvalue()) == (5, b"abcde")
    assert sink.sha256 == hashlib.sha256(b"abcde").hexdigest()
    sink.close()
    assert target.closed
    assert sink.closed


def test_a_file_is_read_again_only_if_it_changed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    before = path.stat().st_mtime_ns
    assert digests.file_sha256(str(path)) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")
    os.utime(path, ns=(before, before))  # as if it had not changed
    assert digests.file_sha256(str(path)) == hashlib.sha256(b"one").hexdigest()
    os.utime(path, ns=(before, before + 1))
    assert digests.file_sha256(str(path)) == hashlib.sha256(b"two").hexdigest()


def test_temporary_files_are_not_listed(folder):
    before = digests.read_sums(str(folder))
    (folder / "inner" / "c.tmp").write_bytes(b"half")
    digests.write_sums(str(folder))
    assert digests.read_sums(f"{folder}/") == before


@pytest.mark.parametrize(
    ("missing", "expected"), [(5, "f0, f1, f2, f3, f4"), (7, "f0, f1, f2, f3, f4 and 2 more")], ids=["five", "seven"]
)
def test_the_first_five_files_that_differ_are_named(tmp_path, missing, expected):
    digests.write_list(str(tmp_path), {f"f{number}": "0" * 64 for number in reversed(range(missing))})
    assert digests.damage(f"{tmp_path}") == f"not the content that SHA256SUMS lists: {expected}"
    assert digests.differing(f"{tmp_path}/", {"f1": "0" * 64, "a\0b": "0" * 64}) == ["a\0b", "f1"]


def test_lines_of_the_list_are_in_the_order_of_names_and_damage_is_named_by_line(tmp_path):
    digests.write_list(str(tmp_path), {"b": "1" * 64, "a": "2" * 64})
    assert (tmp_path / "SHA256SUMS").read_text() == f"{'2' * 64}  a\n{'1' * 64}  b\n"
    with (tmp_path / "SHA256SUMS").open("ab") as sums:
        sums.write(b"\xff\n")
    with pytest.raises(InputError, match="line 3: expected a SHA-256 digest"):
        digests.read_sums(str(tmp_path))


@pytest.mark.parametrize("name", ["model.json", "checkpoints/10/params/d/x", "SHA256SUMS"])
def test_a_folder_with_a_named_pipe_is_refused_before_anything_waits_on_it(tmp_path, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    for read in (read_sums, check_fetched, connect):
        with pytest.raises(InputError, match="is a named pipe, expected a file") as raised:
            read(str(tmp_path))
        assert raised.value.path == str(tmp_path / name)
    for read in (files.open_read, lambda path: files.read_bytes(path, "")):
        with pytest.raises(InputError, match="is a named pipe, expected a file"):
            read(str(tmp_path / name))
