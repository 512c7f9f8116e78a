"""A short sample of `interrupted.py` (`make attack` tries more), and tests of the harness itself."""

import json
import os
import resource
import shutil
import signal
import time
from pathlib import Path

import interrupted
import interrupted_commands
import pytest
from interrupted import Attack, Command

CLEAR = b"newsembed: error: memory ran out\n  remedy: take less\n"


def values(out):
    """What a toy has published: the lines of a file."""
    return dict.fromkeys((out / "file").read_text().split(), True) if (out / "file").exists() else {}


@pytest.fixture
def attack(tmp_path, monkeypatch):
    """An attack on Python functions: the command is the name of one, which gets the output."""
    (tmp_path / "at").mkdir()

    def commands(words):
        return lambda: TOYS[words[0]](Path(words[1]))

    monkeypatch.setattr(interrupted, "newsembed", commands)
    return Attack(tmp_path, seed=1)


def sound(out):
    """Writes two values in one step, after a while."""
    out.mkdir(exist_ok=True)
    time.sleep(0.2)
    temporary = out / f"file.{os.getpid()}.tmp"
    temporary.write_text("a b")
    temporary.rename(out / "file")
    return 0


def slow_writer(out):
    """Writes one value, then one that nobody expects in its place, then both."""
    out.mkdir(exist_ok=True)
    (out / "file").write_text("half")
    time.sleep(0.3)
    (out / "file").write_text("a b")
    return 0


def loses(out):
    """Does nothing where an earlier run began."""
    if out.exists():
        return 0
    out.mkdir()
    time.sleep(0.3)
    return sound(out)


def greedy(out):
    """Says that memory runs out."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return sound(out)
    os.write(1, CLEAR)  # pytest holds what is printed
    return 2


def silent(out):
    """Is ended by a limit of memory, without a word."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.kill(os.getpid(), signal.SIGKILL)
    return sound(out)


TOYS = {one.__name__: one for one in (sound, slow_writer, loses, greedy, silent)}


def command(toy):
    return Command(toy, (toy, "{out}"), values)


def test_a_command_that_publishes_in_one_step_survives(attack):
    assert [attack.kill_and_resume(command("sound"), (0, 0.15)) for _ in range(3)] == [("whole", "")] * 3
    assert attack.two_at_once(command("sound")) == ("whole", "")
    assert [path.name for path in attack.folder.iterdir()] == ["at"]


def test_what_is_half_published_or_lost_is_noticed(attack):
    way, problem = attack.kill_and_resume(command("slow_writer"), (0.1, 0.2))
    assert (way, problem.partition(":")[0]) == ("BAD", "half published")
    assert attack.kill_and_resume(command("loses"), (0.05, 0.2)) == ("BAD", "lost: ['a', 'b']")


def test_an_end_without_a_word_is_noticed(attack):
    assert attack.little_memory(command("greedy")) == ("clear error", "")
    way, problem = attack.little_memory(command("silent"))
    assert (way, problem.partition(":")[0]) == ("BAD", "without a word")


def test_the_table_counts_how_tries_ended():
    done = [("killed", "clean", "whole"), ("killed", "clean", "BAD"), ("two at once", "clean", "refused")]
    last = [line.strip("| ").split(" | ") for line in interrupted.table(done).splitlines()[2:]]
    assert last == [
        ["killed", "clean", "2", "1", "0", "0", "0", "1"],
        ["two at once", "clean", "1", "0", "1", "0", "0", "0"],
        ["all", "all", "3", "1", "1", "0", "0", "1"],
    ]


def test_every_job_of_a_build_is_disturbed(tmp_path):
    from newsembed.beam_pipelines.workflow import STEPS

    names = [one.name for one in interrupted_commands.commands_of(tmp_path)]
    assert {step.job for step in STEPS} <= set(names)
    assert {"train", "lift", "distil", "embed", "update", "index", "export, SavedModel"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.long  # `make attack`
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler of C")
def test_a_wrong_clock_reaches_python(tmp_path):
    import subprocess
    import sys

    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "c.so", interrupted.HERE / "clock.c"], check=True)
    (tmp_path / "clock").write_bytes((10**9).to_bytes(8, "little"))
    code = (
        "import datetime, json, time; time.sleep(.01); print(json.dumps([time.time(), datetime.datetime.now().year]))"
    )
    environment = os.environ | {"LD_PRELOAD": str(tmp_path / "c.so"), interrupted.CLOCK: str(tmp_path / "clock")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    found, year = json.loads(done.stdout)
    assert abs(found - time.time() - 10**9) < 3600
    assert year > 2050
