"""Local workers are forked from one process for all jobs of a build, and behave as those with an interpreter each."""

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from newsembed.beam_pipelines import jobs, worker_client, worker_forks
from newsembed.beam_pipelines.options import _worker_settings
from newsembed.beam_pipelines.worker_forks import FORKS
from newsembed.errors import InputError
from newsembed.formats import files

TWO = ["--direct_num_workers=2"]
SHARDS = 4
SECONDS = 20.0

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux")


@dataclasses.dataclass(frozen=True)
class Options:
    fuse: str = ""


def look(shard, fuse):
    shard.read()
    facts = {"pid": os.getpid(), "parent": os.getppid(), "folder": os.getcwd(), "mark": os.environ.get("MARK")}
    files.write_json(shard.path("facts", "json"), facts)
    if fuse and shard.index == SHARDS - 1 and not files.exists(fuse):
        files.write_json(fuse, os.getpid())
        os.kill(os.getppid(), signal.SIGKILL)  # of the server
        time.sleep(SECONDS)
    shard.written()


JOB = jobs.Job("toy", "", "", (), Options, lambda run: run.map_shards("look", look, [run.options.fuse] * SHARDS))


def facts_of(folder):
    return [json.loads(path.read_text()) for path in sorted((folder / "facts").glob("*.json"))]


def is_gone(pid):
    """Whether a process has ended within some seconds."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_all_jobs_of_a_build_get_workers_of_one_process_which_ends_with_it(tmp_path, monkeypatch):
    with FORKS.kept():
        for name in ("one", "two"):
            (tmp_path / f"in {name}").mkdir()
            monkeypatch.chdir(tmp_path / f"in {name}")
            monkeypatch.setenv("MARK", name)
            jobs.execute(JOB, {}, str(tmp_path / name), beam_args=TWO)
        found = [facts_of(tmp_path / name) for name in ("one", "two")]
        (server,) = {one["parent"] for facts in found for one in facts}
        assert server != os.getpid()
        assert len(os.listdir(f"/proc/{server}/task")) == 1, "a fork of several threads may wait for ever"
    assert is_gone(server)
    for name, facts in zip(("one", "two"), found, strict=True):
        assert {(one["folder"], one["mark"]) for one in facts} == {(str(tmp_path / f"in {name}"), name)}
    assert not {one["pid"] for one in found[0]} & {one["pid"] for one in found[1]}


def test_a_job_alone_ends_the_process_and_removes_its_socket(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=TWO)
    assert is_gone(facts_of(tmp_path / "out")[0]["parent"])
    assert not list(tmp_path.glob("newsembed-*"))


def test_a_job_whose_server_was_killed_ends_with_an_error_and_the_next_run_has_another(tmp_path):
    with FORKS.kept():
        with pytest.raises(InputError, match="a worker process died: .* return code 1"):
            jobs.execute(JOB, {}, str(tmp_path / "out"), Options(str(tmp_path / "fuse")), TWO)
        assert is_gone(json.loads((tmp_path / "fuse").read_text())), "a worker of the killed server"
        jobs.execute(JOB, {}, str(tmp_path / "out"), Options(str(tmp_path / "fuse")), TWO)
    assert len(facts_of(tmp_path / "out")) == SHARDS


@pytest.mark.parametrize("why", ["long folder", "other system"])
def test_elsewhere_each_worker_has_an_interpreter_of_its_own(tmp_path, monkeypatch, why):
    if why == "long folder":
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 90)))
    else:
        monkeypatch.setattr(worker_forks.sys, "platform", "darwin")
    with FORKS.kept():
        assert FORKS.client(_worker_settings()) == []
        if why == "other system":
            jobs.execute(JOB, {}, str(tmp_path / "out"), beam_args=TWO)
            assert len({one["parent"] for one in facts_of(tmp_path / "out")}) > 1


def test_outside_of_a_job_nothing_is_started():
    assert FORKS.client(_worker_settings()) == []


@pytest.fixture
def server(tmp_path):
    """A server whose workers run a program of the test in place of Beam's: its process and the path of its socket."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        code = (
            "import os, runpy, sys\n"
            "from newsembed.beam_pipelines import worker, worker_server\n"
            "worker_server._PRELOADED = ()\n"
            "worker.main = lambda: exec(os.environ['PROGRAM'])\n"
            "worker_server.main()\n"
        )
        command = [sys.executable, "-c", code, str(listener.fileno()), str(os.getpid())]
        with subprocess.Popen(command, pass_fds=[listener.fileno()]) as process:
            yield process, path
            process.kill()


@contextlib.contextmanager
def client(path, program, **options):
    environment = {"PROGRAM": program, "PYTHONPATH": "here:there"}
    command = [sys.executable, "-I", "-S", worker_client.__file__, path]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1), ("os.kill(os.getpid(), 9)", 137)]
)
def test_a_client_prints_and_ends_as_its_worker_does(server, end, status):
    program = f"print('out', sys.path, flush=True); print('err', file=sys.stderr, flush=True); {end}"
    with client(server[1], program) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (status, "out ['here', 'there']\n")
    assert err.startswith("err\n")


def test_a_worker_ends_when_its_client_is_killed_and_others_do_not(server):
    program = "import time; print(os.getpid(), flush=True); time.sleep(100)"
    with client(server[1], program) as first, client(server[1], program) as second:
        pids = [int(process.stdout.readline()) for process in (first, second)]
        first.kill()
        assert is_gone(pids[0])
        os.kill(pids[1], 0)
        os.kill(pids[1], signal.SIGTERM)
        assert second.wait(SECONDS) == 128 + signal.SIGTERM


def test_a_client_that_asks_for_nothing_or_nonsense_stops_nobody(server):
    for request in (b"", b"\0\0\0\0\0\0\0\4[1, "):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(server[1])
            link.sendall(request)
    with client(server[1], "print('works')") as process:
        assert process.communicate(timeout=SECONDS)[0] == "works\n"


def test_the_server_ends_with_the_process_that_started_it(tmp_path):
    code = (
        "import os, time\n"
        "from newsembed.beam_pipelines.options import _worker_settings\n"
        "from newsembed.beam_pipelines.worker_forks import FORKS\n"
        "with FORKS.kept():\n"
        "    FORKS.client(_worker_settings())\n"
        "    print(FORKS._server._process.pid, flush=True)\n"
        "    time.sleep(100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        process.kill()
        assert is_gone(pid)
