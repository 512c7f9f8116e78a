"""Local workers: forked from one process, with the import path and environment of their job, noticed when they die."""

import dataclasses
import importlib
import json
import os
import subprocess
import sys

import pytest
from newsembed.beam_pipelines import jobs, workers
from newsembed.beam_pipelines.worker import PYTHON, child_environment
from newsembed.errors import InputError
from newsembed.formats import files

TWO = ["--direct_num_workers=2"]
# Functions of the user, in a module next to a script without `if __name__ == "__main__"`.
MODULE = """
import os, signal, sys
import pyarrow
from newsembed.errors import InputError
from newsembed.formats import files

def look(shard, _):
    shard.read()
    facts = {
        "pid": os.getpid(), "parent": os.getppid(), "folder": os.getcwd(), "mark": os.environ.get("MARK"),
        "has_folder": os.getcwd() in sys.path, "pool": pyarrow.default_memory_pool().backend_name,
        "threads": os.environ["OMP_NUM_THREADS"],
    }
    files.write_json(shard.path("facts", "json"), facts)
    shard.written()

def die_once(shard, fuse):
    if shard.index and not files.exists(fuse):
        files.write_json(fuse, os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)
    shard.read()
    shard.written()

def fail(shard, _):
    raise InputError("no labels", path="labels.tsv", remedy="label some")
"""
SCRIPT = """
import dataclasses, sys
import user_functions
from newsembed.beam_pipelines import jobs

@dataclasses.dataclass(frozen=True)
class Options:
    pass

job = jobs.Job("toy", "", (), Options, lambda run: run.map_shards("look", user_functions.look, [None] * 4))
jobs.execute(job, {}, sys.argv[1], beam_args=["--direct_num_workers=2"])
"""


@dataclasses.dataclass(frozen=True)
class Options:
    pass


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """The module of the user; the working folder has files with the names of libraries."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/user_functions.py").write_text(MODULE)
    for name in ("proto", "argparse", "lxml", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('the {name} of the user')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("user_functions")
    del sys.modules["user_functions"]


def run(function, out, payload=None, shards=4):
    job = jobs.Job("toy", "", (), Options, lambda run: run.map_shards("look", function, [payload] * shards))
    return jobs.execute(job, {}, str(out), beam_args=TWO)


def facts_of(folder):
    return [json.loads(path.read_text()) for path in sorted((folder / "facts").glob("*.json"))]


def test_workers_of_all_jobs_are_forks_of_one_process_with_the_folder_and_environment_of_their_job(
    functions, tmp_path, monkeypatch
):
    for name in ("one", "two"):
        (tmp_path / f"in {name}").mkdir()
        monkeypatch.chdir(tmp_path / f"in {name}")
        monkeypatch.setenv("MARK", name)
        run(functions.look, tmp_path / name)
    one, two = (facts_of(tmp_path / name) for name in ("one", "two"))
    if sys.platform == "linux":
        assert len({facts["parent"] for facts in one + two} - {os.getpid()}) == 1
    assert not {facts["pid"] for facts in one} & {facts["pid"] for facts in two}
    for name, found in (("one", one), ("two", two)):
        assert {(facts["folder"], facts["mark"]) for facts in found} == {(str(tmp_path / f"in {name}"), name)}
        assert {(facts["has_folder"], facts["pool"], facts["threads"]) for facts in found} == {(False, "system", "1")}


def test_a_script_without_a_guard_runs_once(functions, tmp_path):
    (tmp_path / "lib/script.py").write_text(SCRIPT)
    program = [*PYTHON, str(tmp_path / "lib/script.py"), str(tmp_path / "out")]
    done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(facts_of(tmp_path / "out")) == 4


def test_a_killed_worker_ends_the_job_and_the_next_run_completes_it(functions, tmp_path, capfd):
    with pytest.raises(InputError, match="a worker process was ended by signal 9") as raised:
        run(functions.die_once, tmp_path / "out", str(tmp_path / "fuse"), 2)
    assert "--direct_num_workers" in raised.value.remedy
    assert "Traceback" not in capfd.readouterr().err
    assert run(functions.die_once, tmp_path / "out", str(tmp_path / "fuse"), 2).manifest["counts"]["out"] == 2


def test_an_error_that_the_user_can_correct_prints_no_traceback_of_a_worker(functions, tmp_path):
    code = (
        "from newsembed.launch import cli\n"
        "cli.prepare_libraries()  # as each command does; Beam's own process may log, too, that a worker has ended\n"
        "import test_workers, user_functions\n"
        f"try: test_workers.run(user_functions.fail, {str(tmp_path / 'out')!r})\n"
        "except test_workers.InputError as error: print(error)\n"
    )
    environment = {**child_environment(), "NEWSEMBED_VERBOSE": ""}
    environment["PYTHONPATH"] += f"{os.pathsep}{os.path.dirname(__file__)}"
    done = subprocess.run([*PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "labels.tsv: no labels\n  remedy: label some\n"
    assert "Traceback" not in done.stderr


def test_the_package_as_a_program_imports_no_library_from_the_working_folder(functions):
    program = [sys.executable, "-m", "newsembed", "--version"]
    done = subprocess.run(program, env=child_environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_single_shard_runs_in_this_process(tmp_path):
    def write(shard, _):
        files.write_json(f"{tmp_path}/pid.json", os.getpid())
        shard.read()
        shard.written()

    job = jobs.Job("toy", "", (), Options, lambda run: run.map_shards("one", write, [None]))
    jobs.execute(job, {}, str(tmp_path / "out"))
    assert files.read_json(f"{tmp_path}/pid.json") == os.getpid()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--runner=FlinkRunner"], "not given, and FlinkRunner needs one"),  # Beam would download one
        (["--runner=PortableRunner", "--job_endpoint=localhost:1"], "localhost:1 does not answer: Connection refused"),
        (["--runner=PortableRunner", "--job_endpoint=localhost"], "localhost does not answer: invalid literal"),
    ],
)
def test_an_engine_without_a_job_server_is_refused_at_once(given, problem):
    with pytest.raises(InputError, match=f"--job_endpoint: {problem}"):
        workers.make_pipeline(given, 1)
    for starts_one in ("--flink_job_server_jar=x.jar", "--flink_master=flink:8081"):
        workers.make_pipeline(["--runner=FlinkRunner", starts_one], 1)
    workers.make_pipeline(["--runner=PortableRunner", "--job_endpoint=embed"], 1)
