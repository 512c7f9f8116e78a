"""Kills commands at random moments, runs two at once, and takes memory or the right time from them.

    make attack
    python tests/attack/interrupted.py --kills 20 --only clean --only export
    python tests/attack/interrupted.py --kills 0 --pairs 0 --memory 0 --clocks 3

A try ends well if nothing stands under a final name that an undisturbed run would not have written, and if the same
command, run again without the disturbance, gives the result of an undisturbed run: equal bytes, parameters or records.
All commands run on a newsroom of about 150 articles, with models of one layer and 16 dimensions.
"""

import argparse
import collections
import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]

SECONDS = 900  # for one command
RIGHT_NOW = time.time()  # before any clock is wrong
CLOCK = "NEWSEMBED_TEST_CLOCK"  # the file of clock.c: seconds that the clock is wrong
CLOCKS = {"1970": ("1970-01-02",), "2040": ("2040-02-01",), "back": ("2040-02-01", "1971-01-01")}
MEMORY_WORDS = ("memory", "bad_alloc", "Cannot allocate", "RESOURCE_EXHAUSTED", "can't start new thread")
ABORTED = ("thread-local data: ABORT", "OpenBLAS blas_thread_init")  # without a thread, OpenBLAS sends itself SIGINT
COMPLETE = ("exists already", "there are vectors already", "has an index already")  # a result that is not made twice
WAYS = ("whole", "refused", "clear error", "library aborted", "BAD")

Result = Callable[[Path], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Command:
    """A command that is disturbed.

    Attributes:
      name: shown in the table.
      arguments: of `newsembed`; ``{out}`` is the output, ``{at}`` the folder of all sources.
      result: what the command has published: values by name, each of which an undisturbed run gives, too.
      before: a folder that the output starts from.
    """

    name: str
    arguments: tuple[str, ...]
    result: Result
    before: Path | None = None

    def words(self, at, out):
        """The arguments for an output."""
        return [word.replace("{out}", str(out)).replace("{at}", str(at)) for word in self.arguments]


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, negative for a signal, and what it printed."""

    code: int
    printed: str


class Child:
    """A fork of this process, which has the libraries loaded but no device: it runs a function.

    Args:
      log: a file that gets what it prints.
      work: what it does; the result is the exit code.
    """

    def __init__(self, log, work):
        self.log = log
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            os.setsid()
            sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            code = work()
        except BaseException:  # noqa: BLE001 - printed for who reads the log
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def wait(self, seconds=SECONDS):
        """Waits for its end; what takes longer than `seconds` is killed."""
        deadline = time.monotonic() + seconds
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return Ended(code, self.log.read_text(errors="replace") if self.log.exists() else "")


def newsembed(words):
    """Runs a command of newsembed."""

    def work():
        from newsembed.launch import cli

        return cli.main(list(words))

    return work


class Attack:
    """Disturbs commands.

    Args:
      folder: has the sources and gets the tries.
      seed: of all random numbers.
    """

    def __init__(self, folder, seed=0):
        self.folder, self.random = folder, random.Random(seed)
        self.number = 0
        self._whole = {}

    def place(self):
        """A new folder for a try."""
        self.number += 1
        place = self.folder / f"try-{self.number}"
        place.mkdir()
        return place

    def started(self, command, place, prepare=lambda: None):
        """Starts a command whose output is ``out`` in a folder."""
        out = place / "out"
        if command.before and not out.exists():
            shutil.copytree(command.before, out)
        work = newsembed(command.words(self.folder / "at", out))

        def prepared():
            prepare()
            return work()

        log = place / f"log-{time.monotonic_ns()}"
        return Child(log, prepared)

    def published(self, command, place):
        """What stands under final names."""

        def work():
            (place / "result.json").write_text(json.dumps(command.result(place / "out"), sort_keys=True))
            return 0

        (place / "result.log").unlink(missing_ok=True)
        ended = Child(place / "result.log", work).wait()
        if ended.code:
            return {"cannot be read": ended.printed[-1500:]}
        return json.loads((place / "result.json").read_text())

    def whole(self, command):
        """The result without a disturbance, and the seconds that it took."""
        if command.name not in self._whole:
            place, start = self.place(), time.monotonic()
            ended = self.started(command, place).wait()
            seconds = time.monotonic() - start
            if ended.code:
                raise AssertionError(f"{command.name} undisturbed: {ended.code}\n{ended.printed[-3000:]}")
            self._whole[command.name] = self.published(command, place), seconds
            shutil.rmtree(place)
        return self._whole[command.name]

    def resumed(self, command, place):
        """Compares what stands, runs the command again and compares; what is wrong, or ""."""
        expected, _ = self.whole(command)
        standing = self.published(command, place) if (place / "out").exists() else {}
        if wrong := differences(standing, expected):
            return f"half published: {wrong}"
        deadline = time.monotonic() + SECONDS
        while True:
            ended = self.started(command, place).wait()
            if not ended.code or "is writing" not in ended.printed or time.monotonic() > deadline:
                break
            time.sleep(0.5)  # a child of the killed command saves what it has
        exists = any(words in ended.printed for words in COMPLETE)
        if ended.code and not (exists and standing == expected):
            return f"the same command again ends with {ended.code}: {ended.printed[-1500:]}"
        found = self.published(command, place)
        lost = sorted(set(expected) - set(found))
        return differences(found, expected) or (f"lost: {lost}" if lost else "")

    def kill_and_resume(self, command, seconds):
        """SIGKILL at a random moment, of the process alone or with its group; then the command runs again."""
        place = self.place()
        child = self.started(command, place)
        time.sleep(self.random.uniform(*seconds))
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if self.random.random() < 0.5 else os.kill)(child.pid, signal.SIGKILL)
        child.wait()
        return self._judged("whole", self.resumed(command, place), place)

    def two_at_once(self, command):
        """Two processes with the same output: one ends well, and the other one too or it says why not."""
        place = self.place()
        both = [self.started(command, place)]
        time.sleep(self.random.uniform(0, 0.3))
        both.append(self.started(command, place))
        ended = [child.wait() for child in both]
        for one in ended:
            if one.code and (one.code != 2 or "Traceback" in one.printed or "error:" not in one.printed):
                return self._judged("", f"exit code {one.code}: {one.printed[-1500:]}", place)
        if all(one.code for one in ended):
            return self._judged("", f"both were refused: {ended}", place)
        return self._judged(
            "refused" if any(one.code for one in ended) else "whole", self.resumed(command, place), place
        )

    def little_memory(self, command):
        """As under ``ulimit -v``, with a random amount more than the libraries take."""
        more = int(2 ** self.random.uniform(22, 30.5))

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more,) * 2)

        place = self.place()
        ended = self.started(command, place, prepare).wait()
        way, problem = "whole", ""
        # Where OpenBLAS gets no thread, it sends SIGINT to its process.
        if ended.code < 0 or any(words in ended.printed for words in ABORTED):
            way = "library aborted"
            problem = "" if "note: ulimit -v allows" in ended.printed else f"without a word: {ended}"
        elif ended.code:
            way = "clear error"
            named = any(word in ended.printed for word in MEMORY_WORDS)
            if ended.code not in (1, 2) or "Traceback" in ended.printed or not named or "remedy" not in ended.printed:
                problem = f"{more >> 20} MB more, exit code {ended.code}: {ended.printed[-2500:]}"
        return self._judged(way, problem or self.resumed(command, place), place)

    def wrong_clock(self, command, clock):
        """With a clock that is wrong, or that jumps while the command runs; needs `clock.c` in this process."""
        times = CLOCKS[clock]
        _, seconds = self.whole(command)
        place = self.place()
        set_clock(times[0])
        child = self.started(command, place)
        if len(times) > 1:
            time.sleep(self.random.uniform(0, seconds))
            set_clock(times[1])
        ended = child.wait()
        set_clock(None)
        way = "clear error" if ended.code == 2 and "this machine's clock says" in ended.printed else "whole"
        problem = f"exit code {ended.code}: {ended.printed[-1500:]}" if ended.code and way == "whole" else ""
        return self._judged(way, problem or self.resumed(command, place), place)

    def _judged(self, way, problem, place):
        if not problem:
            shutil.rmtree(place, ignore_errors=True)
        return ("BAD", problem) if problem else (way, "")


def differences(found, expected):
    """What is there and differs from the result of an undisturbed run."""
    wrong = {name: (value, expected.get(name)) for name, value in found.items() if expected.get(name) != value}
    return "" if not wrong else f"got, expected: {str(wrong)[:1500]}"


def table(done):
    """How the tries of each disturbance of each command ended, as a table."""
    lines = [f"| disturbance | command | tried | {' | '.join(WAYS)} |", f"|---|---|{'---|' * (len(WAYS) + 1)}"]
    rows = list(dict.fromkeys((kind, name) for kind, name, _ in done)) + [("all", "all")]
    for kind, name in rows:
        ways = collections.Counter(way for one, other, way in done if (kind, name) in ((one, other), ("all", "all")))
        lines.append(f"| {kind} | {name} | {ways.total()} | {' | '.join(str(ways[way]) for way in WAYS)} |")
    return "\n".join(lines)


def tries(args, attack, commands):
    """Yields (disturbance, command, how it ended, what was wrong)."""
    for command in commands:
        if not args.inner:
            seconds = attack.whole(command)[1] if args.kills else 0
            for _ in range(args.kills):
                yield "killed", command.name, *attack.kill_and_resume(command, (0, seconds))
            for _ in range(args.pairs):
                yield "two at once", command.name, *attack.two_at_once(command)
            for _ in range(args.memory):
                yield "little memory", command.name, *attack.little_memory(command)
        elif CLOCK in os.environ:
            for number in range(args.clocks):
                clock = list(CLOCKS)[number % len(CLOCKS)]
                yield f"clock: {clock}", command.name, *attack.wrong_clock(command, clock)


def main():
    """Prints the table and what went wrong; returns 1 if something did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--memory", type=int, default=4)
    parser.add_argument("--clocks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="names of commands")
    parser.add_argument("--folder", type=Path, help="keep the sources and what failed here")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)  # with a wrong clock
    args = parser.parse_args()
    from interrupted_commands import built, commands_of

    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="newsembed-attack-")))
        folder = folder.resolve()
        at = folder / "at"
        if not (at / "complete").exists():
            shutil.rmtree(at, ignore_errors=True)
            at.mkdir(parents=True)
            built(at)
            (at / "complete").touch()
        work = Path(tempfile.mkdtemp(prefix="tries-", dir=folder))
        (work / "at").symlink_to(at)
        preload()
        chosen = [one for one in commands_of(at) if not args.only or one.name in args.only]
        done = []
        for kind, name, way, problem in tries(args, Attack(work, args.seed), chosen):
            done.append((kind, name, way))
            print(f"{kind}: {name}: {way}", file=sys.stderr, flush=True)
            if problem:
                print(f"BAD: {kind}: {name}: {problem}\n", flush=True)
        print(table(done), flush=True)
        code = int(any(way == "BAD" for _, _, way in done))
        if args.clocks and not args.inner:
            code |= with_wrong_clocks(folder)
    return code


def with_wrong_clocks(folder):
    """Runs this program again in a process whose clock can be set; returns its exit code."""
    library, clock = folder / "clock.so", folder / "clock"
    if shutil.which("cc") is None:
        print("no compiler of C: no clock was wrong")
        return 0
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / "clock.c")], check=True)
    clock.write_bytes(bytes(8))
    command = [sys.executable, __file__, *sys.argv[1:], "--inner", "--folder", str(folder)]
    environment = os.environ | {"LD_PRELOAD": str(library), CLOCK: str(clock)}
    return subprocess.run(command, check=False, env=environment).returncode


def set_clock(day):
    """Sets the clock of this process and its children to a day, or right."""
    offset = datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() - RIGHT_NOW if day else 0
    with Path(os.environ[CLOCK]).open("r+b") as file:  # it is mapped: the same file
        file.write(struct.pack("<q", int(offset)))


def preload():
    """Loads what takes long and starts no thread, so that a kill seldom meets an import."""
    from newsembed.launch import cli

    cli.prepare_libraries()  # first, as in a command
    import apache_beam  # noqa: F401
    import flax.linen  # noqa: F401
    import jax  # noqa: F401
    import newsembed.beam_pipelines.jobs  # noqa: F401
    import newsembed.training.train  # noqa: F401
    import orbax.checkpoint  # noqa: F401
    import tensorflow_text  # noqa: F401


def sha256(raw):
    """The start of a digest."""
    return hashlib.sha256(raw).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
