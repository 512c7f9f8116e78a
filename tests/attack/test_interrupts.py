"""Ctrl-C and killed parents: one line, exit code 130, and no process is left."""

import os
import signal
import subprocess
import sys
import time

import pytest

JOB = """
import os, sys, time
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import isolation
import dataclasses

@dataclasses.dataclass(frozen=True)
class Options:
    pass

def slow(shard, folder):
    reader = isolation.reader(isolation.Limits(60.0, 2_000))
    child = reader.call(os.getpid)
    with open(os.path.join(folder, f"{shard.index}.pids"), "w") as sink:
        print(os.getpid(), child, file=sink, flush=True)
    reader.call(time.sleep, 50)
    shard.read()
    shard.written()

JOB = jobs.Job("toy", "", (), Options, lambda run: run.map_shards("slow", slow, [os.environ["PIDS"]] * 2))
"""
MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import importlib
from newsembed.launch import cli
cli.COMMANDS["toy"] = cli.Command("Mine", "a toy", "toy")
cli.load = lambda name: importlib.import_module("interrupted_toy")
sys.exit(cli.main(["toy", "--output", sys.argv[1], f"--direct_num_workers={sys.argv[2]}"]))
"""


@pytest.fixture
def started(tmp_path):
    """Starts the job with some workers; yields a function that waits until they work and returns all pids."""
    (tmp_path / "interrupted_toy.py").write_text(JOB)
    pids = tmp_path / "pids"
    pids.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PIDS": str(pids)}
    environment.pop("NEWSEMBED_VERBOSE", None)
    running = []

    def start(workers):
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, str(tmp_path / "out"), str(workers)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        deadline = time.monotonic() + 900
        while len(found := [path.read_text().split() for path in pids.glob("*.pids")]) < min(workers, 2) or not all(
            found
        ):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return process, {int(pid) for line in found for pid in line} - {process.pid}

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until_gone(pids):
    """The pids that still run after a while; zombies have ended."""
    deadline = time.monotonic() + 300
    while (left := {pid for pid in pids if runs(pid)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as source:
            return source.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes in /proc")


@needs_proc
@pytest.mark.parametrize("workers", [1, 2])
def test_control_c_in_a_job_is_one_line_and_130(started, workers):
    process, pids = started(workers)
    os.killpg(process.pid, signal.SIGINT)  # as the terminal sends it
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 130, printed
    assert "Traceback" not in printed
    assert "Error" not in printed
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("toy: slow")]
    assert lines == ["newsembed toy: stopped; run the same command again to resume"]
    assert wait_until_gone(pids) == set()


@needs_proc
def test_workers_end_with_a_parent_that_is_killed(started):
    process, pids = started(2)
    assert pids
    process.kill()
    process.wait()
    assert wait_until_gone(pids) == set()
