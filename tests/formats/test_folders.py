"""Folders that commands write: nothing of others is removed, and readers see a whole one or none."""

import ctypes
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.formats import folders
from newsembed.formats.digests import write_sums
from newsembed.formats.folders import check_output, empty, locked, written

ROOT = Path(folders.__file__).parents[1]
NAMES = ("news [2024]", "*", "a?", "{a}", " lead and end ", "line\nbreak", "~", "50%", "Zürich 新聞", "x" * 200)


def write(path, text="x", **options):
    with written(str(path), **options) as target:
        Path(target, "file").write_text(text)
        write_sums(target)


def found(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name(tmp_path, name):
    (tmp_path / "other").mkdir()
    write(tmp_path / name)
    write(tmp_path / name, "new", overwrite=True)
    assert found(tmp_path) == sorted(["other", name, f"{name}/SHA256SUMS", f"{name}/file"])
    assert (tmp_path / name / "file").read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error_and_nothing_was_changed(tmp_path, error):
    write(tmp_path / "out")
    before = found(tmp_path)

    def fail():
        with written(str(tmp_path / "out"), overwrite=True) as target:
            Path(target, "file").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert found(tmp_path) == before
    assert (tmp_path / "out" / "file").read_text() == "x"


def test_a_folder_that_is_there_is_replaced_only_if_asked_and_only_if_a_command_wrote_all_of_it(tmp_path):
    write(tmp_path / "out")
    with pytest.raises(InputError, match="--output: exists already"):
        write(tmp_path / "out")
    (tmp_path / "out" / "notes").mkdir()
    (tmp_path / "out" / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="does not list, so no command wrote them: notes/mine.txt"):
        write(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "notes" / "mine.txt").read_text() == "mine"
    (tmp_path / "file").write_text("a file")
    with pytest.raises(InputError, match="is a file, the output is a folder"):
        write(tmp_path / "file", overwrite=True)
    (tmp_path / "unlisted").mkdir()
    for number in range(7):
        (tmp_path / "unlisted" / f"{number}").write_text("")
    with pytest.raises(InputError, match="wrote them: 0, 1, 2, 3, 4 and 2 more"):
        check_output(str(tmp_path / "unlisted"), overwrite=True)


def test_what_came_while_the_folder_was_written_stays(tmp_path):
    write(tmp_path / "out")
    with pytest.raises(InputError, match="wrote them: mine"), written(str(tmp_path / "out"), overwrite=True):
        (tmp_path / "out" / "mine").write_text("mine")
    assert found(tmp_path / "out") == ["SHA256SUMS", "file", "mine"]
    with pytest.raises(InputError, match="exists already"), written(str(tmp_path / "new")):
        write(tmp_path / "new", "of another run")
    assert (tmp_path / "new" / "file").read_text() == "of another run"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "new"}


def test_temporary_folders_of_others_stay(tmp_path):
    (tmp_path / "out.tmp").mkdir()
    (tmp_path / "out.tmp" / "mine").write_text("mine")
    write(tmp_path / "out")
    write(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out.tmp" / "mine").read_text() == "mine"


def test_an_output_does_not_overlap_with_an_input_whatever_they_are_called(tmp_path):
    write(tmp_path / "model" / "inner")
    write_sums(str(tmp_path / "model"))
    (tmp_path / "link").symlink_to(tmp_path / "model")
    for output in ("model", "model/../model", "link", "model/inner", "link/inner", "."):
        with pytest.raises(InputError, match="--output: overlaps with the input"):
            check_output(str(tmp_path / output), overwrite=True, inputs=[str(tmp_path / "link")])
    check_output(str(tmp_path / "model-2"), overwrite=True, inputs=[str(tmp_path / "model")])


def test_the_folder_where_a_command_runs_is_not_replaced(tmp_path, monkeypatch):
    write(tmp_path / "out")
    (tmp_path / "out" / "inner").mkdir()
    for place in (tmp_path / "out", tmp_path / "out" / "inner"):
        monkeypatch.chdir(place)
        with pytest.raises(InputError, match="--output: is where this command runs"):
            write(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "file").exists()


def test_the_folder_behind_a_link_is_replaced_and_the_link_stays(tmp_path):
    write(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"


@pytest.mark.parametrize("has_exchange", [True, False])
def test_folders_change_their_names(tmp_path, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    folders._exchange(str(tmp_path / "one"), str(tmp_path / "other"))
    assert found(tmp_path) == ["one", "one/other", "other", "other/one"]


def test_readers_never_miss_a_folder_that_is_replaced(tmp_path):
    write(tmp_path / "out")
    end, missed = threading.Event(), []

    def read():
        while not end.is_set():
            try:
                (tmp_path / "out" / "file").read_text()
            except FileNotFoundError as error:
                missed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(100):
        write(tmp_path / "out", overwrite=True)
    end.set()
    thread.join()
    assert not missed


KILLED = """
import os, sys
from newsembed.formats import folders
folders._exchange = lambda *_: os.kill(os.getpid(), 9)
with folders.written(sys.argv[1], overwrite=True) as target:
    open(target + "/file", "w").write("new")
"""


def test_a_run_that_is_killed_leaves_the_folder_as_it_was(tmp_path):
    write(tmp_path / "out")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], env=environment, check=False)
    assert done.returncode == -9
    assert found(tmp_path / "out") == ["SHA256SUMS", "file"]
    assert (tmp_path / "out" / "file").read_text() == "x"
    write(tmp_path / "out", "newer", overwrite=True)


def test_a_folder_is_emptied_but_for_its_lock(tmp_path):
    folder = tmp_path / "[work]"
    with locked(str(folder)):
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "link").symlink_to(tmp_path)
        empty(str(folder))
        assert found(folder) == [".lock"]
    (tmp_path / "other").mkdir()
    empty(str(tmp_path / "other"))
    empty(str(tmp_path / "nowhere"))
    assert found(tmp_path) == []


def test_one_function_of_the_product_removes_folders():
    product = (
        path
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "docs", ".venv", "build")
    )
    calls = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in product
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"rmtree|removedirs|\brm -r", line)
    ]
    assert calls == ["formats/files.py: shutil.rmtree(path)"]
