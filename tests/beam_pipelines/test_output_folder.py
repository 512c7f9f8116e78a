"""The output folder of a job: nothing of others is deleted, one run at a time, missing files are noticed."""

import dataclasses
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from newsembed.beam_pipelines import jobs, output_folder
from newsembed.beam_pipelines.output_lock import locked, process_start
from newsembed.errors import InputError
from newsembed.formats import files

ONE = ["--direct_num_workers=1"]
BEFORE = Path(__file__).parents[1] / "golden"


@dataclasses.dataclass(frozen=True)
class Options:
    number: int = 0
    state: str = dataclasses.field(default="", metadata={"lasting_folder": True})


def write_streams(names, shard, _):
    for name in names:
        files.write_whole(f"{shard.workspace}/{name}", name.encode())
    shard.read()
    shard.written()


STREAMS = ("a/part-00000-of-00002.txt", "a/part-00001-of-00002.txt", "b/c/part-00000-of-00001.txt", "table.tsv")


def make_job(names=STREAMS, before=lambda: None):
    def run(run_):
        before()
        run_.map_shards("one", functools.partial(write_streams, names), [None])

    inputs = (jobs.InputSpec("articles", "", required=False, many=True),)
    return jobs.Job("toy", "", "", inputs, Options, run)


def run(output, number=0, job=None, state="", articles=()):
    given = {"articles": [str(path) for path in articles]}
    return jobs.execute(job or make_job(), given, str(output), Options(number, state), ONE)


def tree(folder):
    kept = (path for path in folder.rglob("*") if path.is_file() and path.name != "timing.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def tree_of_a_run(folder):
    run(folder)
    return tree(folder)


@pytest.fixture
def out(tmp_path):
    run(tmp_path / "out")
    return tmp_path / "out"


def test_the_manifest_lists_the_published_files_with_their_sizes(out):
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["files"] == {name: len(name) for name in STREAMS}
    assert list(manifest["files"]) == sorted(STREAMS)


@pytest.mark.parametrize(
    "name", ["thesis.tex", "a/notes.txt", "deep/er/model.bin", ".hidden", ".work-mine/x", "b/table.tsv"]
)
def test_a_file_of_the_user_is_named_and_nothing_is_deleted(out, name):
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("mine")
    before = tree(out)
    with pytest.raises(InputError, match=f"--output: .*{name}") as raised:
        run(out, number=1)
    assert "move these files away" in raised.value.remedy
    assert tree(out) == before


def test_a_folder_without_a_manifest_is_not_cleared(tmp_path):
    for number in range(7):
        (tmp_path / f"{number}.txt").write_text("mine")
    with pytest.raises(InputError, match=r": 0\.txt, 1\.txt, 2\.txt, 3\.txt, 4\.txt and 2 more"):
        run(tmp_path)
    assert len(tree(tmp_path)) == 7


def test_the_manifest_of_another_program_is_not_ours(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "an extension", "files": {"page.html": 1}}')
    (tmp_path / "page.html").write_text("x")
    with pytest.raises(InputError, match=r"manifest\.json, page\.html"):
        run(tmp_path)
    assert len(tree(tmp_path)) == 2


def test_a_manifest_cannot_name_files_outside_its_folder(out, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"]["../thesis.tex"] = 4
    (out / "manifest.json").write_text(json.dumps(manifest))
    run(out, number=1)
    assert (tmp_path / "thesis.tex").exists()


def test_an_older_result_is_replaced_and_empty_folders_of_the_user_stay(out):
    (out / "mine").mkdir()
    (out / ".work-0123456789abcdef").mkdir()
    (out / ".work-0123456789abcdef/part").write_text("of another run")
    run(out, number=1, job=make_job(["new/part"]))
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "mine", "new", "timing.json"]


def test_linked_folders_are_seen(out, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/thesis.tex").write_text("mine")
    (out / "link").symlink_to(tmp_path / "elsewhere")
    (out / "loop").symlink_to(out)
    (out / "broken").symlink_to(tmp_path / "absent")
    with pytest.raises(InputError, match=r": broken, link/thesis\.tex$|: broken, link/thesis\.tex\n"):
        run(out, number=1)


@pytest.mark.parametrize("name", ["clean_before", "examples_before"])
def test_an_older_manifest_lists_no_files_so_ours_are_known_by_name(name, tmp_path):
    folder = shutil.copytree(BEFORE / name, tmp_path / "folder")
    before = tree(folder)
    (folder / "labels.tsv").write_text("mine")
    with pytest.raises(InputError, match="labels.tsv$|labels.tsv\n"):
        run(folder)
    (folder / "labels.tsv").unlink()
    assert tree(folder) == before
    run(folder, job=make_job(["new/part"]))
    assert tree(folder).keys() == {"manifest.json", "new/part"}


def test_an_older_result_is_read_as_input(tmp_path):
    (shutil.copytree(BEFORE / "clean_before", tmp_path / "clean") / "articles/part-x.parquet").write_text("")
    assert not run(tmp_path / "out", articles=[tmp_path / "clean"]).skipped


def test_a_publication_or_removal_that_was_cut_off_is_still_ours(out, monkeypatch):
    def killed(*_):
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(output_folder, "_remove_empty_folders", killed)
        with pytest.raises(OSError, match="power cut"):
            run(out, number=1)
    (out / "a").mkdir(exist_ok=True)
    (out / STREAMS[0]).write_text("not yet removed")
    with monkeypatch.context() as patch:
        patch.setattr(output_folder, "write_seconds", killed)
        with pytest.raises(OSError, match="power cut"):
            run(out, number=2)
    assert (out / STREAMS[0]).exists()
    run(out, number=3, job=make_job(["new/part"]))
    assert tree(out).keys() == {"manifest.json", "new/part"}


@pytest.mark.parametrize("written", ["x/../extract", "./extract", "extract/a/..", "link", "{here}/extract", "link/"])
def test_an_input_in_the_output_is_found_however_it_is_written(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to("extract")
    before, written = tree_of_a_run(tmp_path / "extract"), written.format(here=tmp_path)
    for output, path in (("extract", written), (written, "extract"), ("extract", f"{written}/table.tsv")):
        with pytest.raises(InputError, match="--articles: is in the output folder"):
            run(output, articles=[path])
        with pytest.raises(InputError, match="--state: is in the output folder"):
            run(output, state=path)
    assert tree(tmp_path / "extract") == before


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("gs://b/x/../out/a", "gs://b/out", True),
        ("gs://b//out/./a", "gs://b/out/", True),
        ("s3://b/out", "s3://b//out", True),
        ("s3://b/out", "gs://b/out", False),
        ("gs://b/output/a", "gs://b/out", False),
        ("gs://b/out", "gs://b/out/a", False),
        ("out", "gs://b/out", False),
        ("a/../b", "a", False),
        ("a/b/../../a/c", "a", True),
        ("/x", "/", True),
    ],
)
def test_paths_are_compared_in_their_normal_form(path, folder, inside):
    assert output_folder.is_inside(path, folder) == inside


def test_an_output_in_a_folder_of_inputs_is_allowed(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    assert not run(tmp_path / "out", articles=[tmp_path / "a.txt"]).skipped


def lock_of(pid, started, host=None):
    owner = {"pid": pid, "host": host or socket.gethostname(), "process_started": started}
    return json.dumps(owner | {"time": "2024-05-01T00:00:00"})


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_a_lock_is_respected_until_its_owner_is_dead(tmp_path, sleeper, caplog):
    lock = tmp_path / ".lock"
    lock.write_text(lock_of(sleeper.pid, process_start(sleeper.pid)))
    with pytest.raises(InputError, match=f"process {sleeper.pid} on .*, since 2024-05-01") as raised:
        run(tmp_path)
    assert raised.value.field == "--output"
    assert lock.exists()
    sleeper.kill()
    sleeper.wait()
    run(tmp_path)
    assert f"process {sleeper.pid}, which has ended, is taken over" in caplog.text
    assert not lock.exists()


def test_another_process_with_the_same_number_is_not_the_owner(tmp_path, sleeper):
    (tmp_path / ".lock").write_text(lock_of(sleeper.pid, "1"))
    assert not run(tmp_path).skipped


def test_a_process_that_has_ended_but_was_not_waited_for_is_dead(tmp_path, sleeper):
    (tmp_path / ".lock").write_text(lock_of(sleeper.pid, process_start(sleeper.pid)))
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not run(tmp_path).skipped


def test_the_owner_on_another_host_may_be_alive(tmp_path):
    (tmp_path / ".lock").write_text(lock_of(1, "1", host="another.example"))
    with pytest.raises(InputError, match="process 1 on another.example"):
        run(tmp_path)


def test_a_finished_job_is_skipped_while_another_run_has_the_lock(tmp_path):
    run(tmp_path)
    (tmp_path / ".lock").write_text(lock_of(1, "1", host="another.example"))
    assert run(tmp_path).skipped


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 0, "host": "x"}'])
def test_a_lock_without_an_owner_is_taken_over(tmp_path, text):
    (tmp_path / ".lock").write_text(text)
    assert not run(tmp_path).skipped
    assert not (tmp_path / ".lock").exists()


def test_a_lock_that_cannot_be_read_is_not_taken_over(tmp_path):
    lock = tmp_path / ".lock"
    lock.symlink_to(".lock")  # to itself: no user can read it, not even root
    with pytest.raises(OSError, match="symbolic links"), locked(str(tmp_path)):
        pass
    assert lock.is_symlink()


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it():
    refusal = pytest.raises(InputError, match="/proc/new: --archive: no folder can be made here")
    with refusal, locked("/proc/new", "--archive"):
        pass


def test_a_second_run_is_refused_and_the_first_writes_what_it_would_alone(tmp_path):
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); from test_output_folder import run; run(sys.argv[1], 1)"

    def second():
        with pytest.raises(InputError, match=f"process {os.getpid()} on"):
            run(tmp_path / "out", number=1)
        found = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "out")], check=False, capture_output=True, text=True
        )
        assert f"another run is writing to this folder: process {os.getpid()} on" in found.stderr
        assert (tmp_path / "out/.lock").exists()

    run(tmp_path / "out", job=make_job(before=second))
    run(tmp_path / "alone")
    assert tree(tmp_path / "out") == tree(tmp_path / "alone")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_lock_is_removed_after_errors(tmp_path, error):
    def fail():
        assert (tmp_path / "out/.lock").exists()
        raise error

    with pytest.raises(error):
        run(tmp_path / "out", job=make_job(before=fail))
    assert not (tmp_path / "out").exists()
    assert not run(tmp_path / "out").skipped


def test_only_the_own_lock_is_removed(tmp_path):
    with locked(str(tmp_path)):
        (tmp_path / ".lock").write_text(lock_of(1, "1"))
    assert (tmp_path / ".lock").exists()


def test_object_stores_are_not_locked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with locked("gs://bucket/out"), locked("gs://bucket/out"):
        assert not list(tmp_path.iterdir())


DAMAGES = {
    "missing: a/part-00001-of-00002.txt": lambda folder: (folder / STREAMS[1]).unlink(),
    "of another size than written: table.tsv": lambda folder: (folder / "table.tsv").write_text("cut"),
    "not written by the job: a/part-00002-of-00003.txt": lambda folder: (folder / "a/part-00002-of-00003.txt").touch(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_input_is_refused_until_it_is_back(out, tmp_path, damage):
    whole = shutil.copytree(out, tmp_path / "whole")
    DAMAGES[damage](out)
    with pytest.raises(InputError, match=f"--articles: not the files .*{damage}") as raised:
        run(tmp_path / "next", articles=[out])
    assert raised.value.path == str(out)
    assert "run the job that writes this folder again" in raised.value.remedy
    assert not (tmp_path / "next").exists()
    shutil.rmtree(out)
    whole.rename(out)
    assert not run(tmp_path / "next", articles=[out]).skipped


def test_of_a_stream_or_a_file_only_that_is_compared(out, tmp_path):
    (out / STREAMS[1]).unlink()
    assert not run(tmp_path / "table", articles=[out / "table.tsv"]).skipped
    with pytest.raises(InputError, match="missing: a/part"):
        run(tmp_path / "stream", articles=[out / "a"])


def test_what_the_user_adds_at_the_top_of_a_result_is_not_read(out, tmp_path):
    (out / "mine.tsv").write_text("")
    assert not run(tmp_path / "next", articles=[out]).skipped


@pytest.mark.parametrize("name", [STREAMS[0], "table.tsv"])
def test_a_finished_job_with_a_missing_or_changed_file_runs_again(out, name, caplog):
    before = tree(out)
    assert run(out).skipped
    (out / name).unlink()
    assert not run(out).skipped
    (out / name).write_text("other")
    assert not run(out).skipped
    assert f"{out}: 1 file missing or changed, first {name}; the job runs again" in caplog.text
    assert tree(out) == before
    assert run(out).skipped


def test_a_published_workspace_that_was_left_is_not_published_again(tmp_path, monkeypatch):
    before, delete = tree_of_a_run(tmp_path / "whole"), files.delete

    def killed_at_the_end(paths):
        paths = list(paths)
        if [path for path in paths if ".work-" in path.rpartition("/")[2]]:
            raise OSError("power cut")
        delete(paths)

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete", killed_at_the_end)
        with pytest.raises(OSError, match="power cut"):
            run(tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").exists()
    (tmp_path / "out" / STREAMS[0]).unlink()
    assert tree_of_a_run(tmp_path / "out") == before
