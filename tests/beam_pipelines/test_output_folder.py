"""The output folder of a job: nothing of others is deleted, one run at a time, missing files are noticed."""

import dataclasses
import functools
import json
import os
import shutil
import socket
import subprocess
import sys

import pytest
from newsembed.beam_pipelines import jobs, output_folder
from newsembed.errors import InputError
from newsembed.formats import files, folders
from newsembed.formats.folders import locked
from newsembed.tests.example_inputs import tree

ONE = ["--direct_num_workers=1"]


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
    return jobs.Job("toy", "", inputs, Options, run)


def run(output, number=0, job=None, state="", articles=()):
    given = {"articles": [str(path) for path in articles]}
    return jobs.execute(job or make_job(), given, str(output), Options(number, state), ONE)


def tree_of_a_run(folder):
    run(folder)
    return tree(folder)


@pytest.fixture
def out(tmp_path):
    run(tmp_path / "out")
    return tmp_path / "out"


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


def test_a_folder_that_outlives_the_output_is_no_file(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(InputError, match="/state: --state: is a file, expected a folder"):
        run(tmp_path / "out", state=f"{tmp_path}/state")


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
    "paths",
    [
        *("gs://b/x/../out/a in gs://b/out", "gs://b//out/./a in gs://b/out/", "s3://b/out in s3://b//out"),
        *("s3://b/out not in gs://b/out", "gs://b/output/a not in gs://b/out", "gs://b/out not in gs://b/out/a"),
        *("out not in gs://b/out", "a/../b not in a", "a/b/../../a/c in a", "/x in /"),
    ],
)
def test_paths_are_compared_in_their_normal_form(paths):
    path, *negated, _, folder = paths.split(" ")
    assert output_folder.is_inside(path, folder) == (not negated)


HOLDER = """
import sys, time
from newsembed.formats.folders import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_lock_is_respected_until_its_owner_is_killed(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "locked\n"
        owner = f"process {process.pid} on {socket.gethostname()}, since 20"
        with pytest.raises(InputError, match=owner) as raised:
            run(tmp_path)
        process.kill()
    assert raised.value.field == "--output"
    assert (tmp_path / ".lock").exists()
    assert not run(tmp_path).skipped
    assert not (tmp_path / ".lock").exists()
    with locked(str(tmp_path)):
        assert run(tmp_path).skipped  # what is finished needs no lock


def test_a_lock_that_its_owner_removes_in_between_is_taken_anew(tmp_path, monkeypatch):
    flock = folders.fcntl.flock
    removed = []

    def slow(lock, kind):
        if not removed:
            removed.append((tmp_path / ".lock").unlink())
        flock(lock, kind)

    monkeypatch.setattr(folders.fcntl, "flock", slow)
    with locked(str(tmp_path)), pytest.raises(InputError, match="another run"), locked(str(tmp_path)):
        pass


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it():
    refusal = pytest.raises(InputError, match="/proc/new: --archive: no folder can be made here")
    with refusal, locked("/proc/new", "--archive"):
        pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_lock_is_removed_after_errors(tmp_path, error):
    def fail():
        assert (tmp_path / "out/.lock").exists()
        raise error

    with pytest.raises(error):
        run(tmp_path / "out", job=make_job(before=fail))
    assert not (tmp_path / "out").exists()
    assert not run(tmp_path / "out").skipped


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
