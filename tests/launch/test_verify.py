"""`newsembed verify`: which lists are found, which files differ, and what is said about older results."""

import argparse
import hashlib
import json

import pytest
from newsembed.errors import InputError
from newsembed.formats.digests import write_sums
from newsembed.launch import verify as module
from newsembed.launch.verify import Verified, verify


def write(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def write_job(folder, *, digests=True, **contents):
    write(folder, **contents)
    manifest = {"job": "x", "files": {name: len(content) for name, content in contents.items()}}
    if digests:
        manifest["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def work(tmp_path):
    write_job(tmp_path / "job", a=b"one", b=b"two")
    write_job(tmp_path / "old", digests=False, a=b"one")
    (tmp_path / "oldest").mkdir()
    (tmp_path / "oldest" / "manifest.json").write_text('{"job": "x"}')
    write(tmp_path / "model" / "8", c=b"three", d=b"four", e=b"five")
    write_sums(str(tmp_path / "model" / "8"))
    return tmp_path


def found(folder):
    return {result.folder.removeprefix(f"{folder}/"): result for result in verify(f"{folder}/")}


def test_every_result_below_a_folder_is_compared(work):
    assert {place: (one.files, one.wrong, one.is_digested) for place, one in found(work).items()} == {
        "job": (2, (), True), "old": (1, (), False), "oldest": (0, (), False), "model/8": (3, (), True),
    }  # fmt: skip
    assert [one.folder for one in verify(str(work / "job"))] == [str(work / "job")]


def test_files_that_are_missing_or_differ_are_named_in_order(work):
    (work / "job" / "b").write_bytes(b"twO")
    (work / "job" / "a").write_bytes(b"one more")
    (work / "old" / "a").write_bytes(b"One")  # its size is all that is known
    (work / "model" / "8" / "e").unlink()
    (work / "model" / "8" / "c").write_bytes(b"thre3")
    (work / "model" / "8" / "not listed").write_bytes(b"")
    wrong = {place: one.wrong for place, one in found(work).items()}
    assert wrong == {"job": ("a", "b"), "old": (), "oldest": (), "model/8": ("c", "e")}
    (work / "old" / "a").write_bytes(b"On")
    assert found(work)["old"].wrong == ("a",)


def test_a_folder_s_own_digests_count_and_those_of_the_whole_only_for_a_held_out_part_without_any(tmp_path):
    for part, has_own in (("held_out", True), ("held_out", False), ("other", False)):
        whole = tmp_path / f"{part}{has_own}"
        write_job(whole / part, digests=has_own, a=b"one")
        wrong = {f"{part}/a": hashlib.sha256(b"another").hexdigest()}
        (whole / "manifest.json").write_text(json.dumps({"job": "x", "files": {}, "sha256": wrong}))
        (result,) = verify(str(whole / part))
        is_of_whole = part == "held_out" and not has_own
        assert (result.wrong, result.is_digested) == (("a",) if is_of_whole else (), has_own or is_of_whole)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Verified("f", 1, (), True), "f: 1 file, as written"),
        (Verified("f", 2, (), True), "f: 2 files, as written"),
        (Verified("f", 2, ("a",), True), "f: 2 files, 1 missing or changed"),
        (Verified("f", 2, (), False), "f: 2 files, as written, sizes only; an older version of newsembed wrote it"),
        (Verified("f", 0, (), False), "f: lists no files; an older version of newsembed wrote it"),
    ],
)
def test_the_line_of_a_result(result, line):
    assert module._line(result) == line


def test_the_exit_code_is_one_where_a_file_differs(work, capsys):
    folders = [str(work / "job"), str(work / "old")]
    assert module.run(argparse.Namespace(folders=folders)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (work / "job" / "b").unlink()
    assert module.run(argparse.Namespace(folders=folders)) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"{work}/job: 2 files, 1 missing or changed",
        "  missing or changed: b",
    ]


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        list(verify(str(tmp_path / "absent")))
    write(tmp_path / "empty", a=b"")
    with pytest.raises(InputError, match=r"neither manifest\.json nor SHA256SUMS is here or below"):
        list(verify(str(tmp_path / "empty")))
