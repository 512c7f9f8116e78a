"""`newsembed verify`: which lists are found, which files differ."""

import hashlib
import json

import pytest
from newsembed.errors import InputError
from newsembed.formats.digests import write_sums
from newsembed.launch.verify import verify


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
    write_job(tmp_path / "sizes", digests=False, a=b"one")
    write(tmp_path / "model" / "8", c=b"three", d=b"four", e=b"five")
    write_sums(str(tmp_path / "model" / "8"))
    return tmp_path


def found(folder):
    return {result.folder.removeprefix(f"{folder}/"): (result.files, result.wrong) for result in verify(f"{folder}/")}


def test_every_result_below_a_folder_is_compared(work):
    assert found(work) == {"job": (2, ()), "sizes": (1, ("a",)), "model/8": (3, ())}
    assert [one.folder for one in verify(str(work / "job"))] == [str(work / "job")]


def test_files_that_are_missing_or_differ_are_named_in_order(work):
    (work / "job" / "b").write_bytes(b"twO")
    (work / "job" / "a").write_bytes(b"one more")
    (work / "sizes" / "a").write_bytes(b"On")
    (work / "model" / "8" / "e").unlink()
    (work / "model" / "8" / "c").write_bytes(b"thre3")
    (work / "model" / "8" / "not listed").write_bytes(b"")
    assert {place: wrong for place, (_, wrong) in found(work).items()} == {
        "job": ("a", "b"), "sizes": ("a",), "model/8": ("c", "e"),
    }  # fmt: skip


@pytest.mark.parametrize(("part", "has_own"), [("held_out", True), ("held_out", False), ("other", False)])
def test_a_held_out_part_without_digests_has_those_of_the_whole(tmp_path, part, has_own):
    write_job(tmp_path / part, digests=has_own, a=b"one")
    wrong = {f"{part}/a": hashlib.sha256(b"another").hexdigest()}
    (tmp_path / "manifest.json").write_text(json.dumps({"job": "x", "files": {}, "sha256": wrong}))
    (result,) = verify(str(tmp_path / part))
    assert result.wrong == (() if has_own else ("a",))  # the whole has another digest, and another part none


def test_the_exit_code_is_one_where_a_file_differs(work, ended):
    folders = [str(work / "job"), str(work / "model" / "8")]
    whole = f"{work}/job: 2 files, as written\n{work}/model/8: 3 files, as written\n"
    assert ended(0, "verify", *folders).out == whole
    (work / "job" / "b").unlink()
    changed = f"{work}/job: 2 files, 1 missing or changed\n  missing or changed: b\n"
    assert ended(1, "verify", *folders).out.startswith(changed)


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        list(verify(str(tmp_path / "absent")))
    write(tmp_path / "empty", a=b"")
    with pytest.raises(InputError, match=r"neither manifest\.json nor SHA256SUMS is here or below"):
        list(verify(str(tmp_path / "empty")))
