"""Puts small faults into the modules of ``modules.py``, one at a time, and reports which ones no test notices.

    python tests/mutation/run.py --sample 300 --output mutants

Importing TensorFlow, JAX and Beam takes longer than most tests. So this process imports the libraries once, but never
``newsembed``, and forks for each run of a test file; the fork runs pytest on a tree of links to the repository in which
one module is changed, so that processes that a test starts see the fault too. All mutants meet the first test file of
their module, then those that survive meet the second one, and so on: slow files are last in the table. A test file
first runs without a fault. It must pass; the limit of each mutant is four times its CPU seconds plus 10. Programs that
JAX compiles then are kept on disk, so that a mutant compiles only what it changes. A mutant is killed when a test
fails, the module cannot be imported or time runs out. No file that git tracks is written.

What was tried is written to ``OUTPUT/tried.jsonl`` at once, so that a long sample can be run in parts:

    python tests/mutation/run.py --sample 300 --minutes 10              # stops after about ten minutes
    python tests/mutation/run.py --sample 300 --minutes 10 --resume     # tries the next ones

Code and tests must be the same in all parts.

The survivors are written as diffs to ``OUTPUT/survivors.diff``. Read each one: the fault changes nothing that matters,
or a test is missing. ``equivalent.toml`` lists the faults of the first kind, each with its reason; they are counted
apart.
"""

import argparse
import collections
import contextlib
import dataclasses
import fnmatch
import gc
import importlib
import importlib.metadata
import itertools
import json
import logging
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from modules import TESTS
from mutants import Mutant, sample_mutants

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (
    "numpy", "scipy.stats", "scipy.sparse", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection",
    "sklearn.cluster", "sklearn.neural_network", "sklearn.feature_extraction.text", "pyarrow.dataset",
    "pyarrow.parquet", "tensorflow", "tensorflow_text", "jax", "flax.linen", "optax", "orbax.checkpoint", "grain",
    "seqio", "apache_beam", "apache_beam.runners.direct", "faiss", "scann", "trafilatura", "htmldate", "lxml.html",
    "fastwarc", "resiliparse.parse.html", "tokenizers", "rensa", "pytest", "_pytest.python", "gin",
    "hypothesis.extra.numpy",
)  # fmt: skip
NO_TESTS_FAILED = 0
TOO_MUCH_CPU = -signal.SIGXCPU
PASSED = "passed"  # a mutant that survived a test file, and has others
PROGRAMS, TEMPORARY = "programs", "temporary"  # folders of a fork
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of one fork: seconds of its clock, for a fault that waits, and CPU seconds, which mean the same when others work.

    The CPU seconds are those of each process; the fork's children have as many again.
    """

    wall: float
    cpu: int


Job = tuple[Mutant | None, str, Limits]  # a mutant, or None for a run without a fault, and a test file


@dataclasses.dataclass
class Trial:
    """A running fork."""

    mutant: Mutant | None
    test: str
    started: float
    deadline: float
    folder: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a fork ended.

    Attributes:
      trial: the fork.
      status: its exit status, or None where the time of its clock ran out.
      seconds: of the clock.
      cpu: seconds, with its children's.
    """

    trial: Trial
    status: int | None
    seconds: float
    cpu: float

    @property
    def name(self) -> str:
        """A column of the table."""
        if self.status == NO_TESTS_FAILED:
            return "survived"
        return "timeout" if self.status in {None, TOO_MUCH_CPU} else "killed"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Programs that JAX compiled in runs without a fault: each fork has its own folder of links to them.

    JAX writes a program under its final name before it is whole, so two forks must not share a folder.

    Attributes:
      folder: of the programs.
    """

    folder: Path

    def link_into(self, folder: Path) -> None:
        """Makes the folder of a fork."""
        folder.mkdir()
        for program in self.folder.iterdir():
            (folder / program.name).symlink_to(program)

    def add_from(self, folder: Path) -> None:
        """Takes over what a fork that has ended compiled."""
        for program in folder.iterdir():
            if not program.is_symlink():
                shutil.move(program, self.folder / program.name)

    @staticmethod
    def use(folder: Path) -> None:
        """Makes JAX use a folder, in this process and in those that it starts."""
        import jax

        options = {
            "jax_compilation_cache_dir": str(folder),
            "jax_persistent_cache_min_compile_time_secs": 0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }
        for option, value in options.items():
            os.environ[option.upper()] = str(value)
            jax.config.update(option, value)


def import_libraries() -> None:
    """Imports what the tests import, if it is installed; an import alone starts no threads, which a fork would lose.

    A library that logs while it is imported gives logging a handler that prints every message. It is removed: under
    pytest alone there is none, and a test that reads what a job prints would find Beam's messages there.
    """
    handlers = list(logging.getLogger().handlers)
    for name in (*LIBRARIES, *(plugin.module for plugin in importlib.metadata.entry_points(group="pytest11"))):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    logging.getLogger().handlers[:] = handlers
    gc.collect()
    gc.freeze()  # or each fork would look through the libraries' objects for garbage


def linked_tree(folder: str, mutant: Mutant | None) -> str:
    """Makes ``newsembed`` in a folder: links to the repository, but a file with the fault for the mutant's module."""
    target, source = Path(folder) / "newsembed", ROOT
    changed = () if mutant is None else Path(mutant.path).parts
    for depth in range(len(changed) + 1):
        target.mkdir()
        inner = changed[depth] if depth < len(changed) else None
        for entry in source.iterdir():
            if entry.name not in {inner, "__pycache__"} and not (depth == 0 and entry.name.startswith(".")):
                (target / entry.name).symlink_to(entry)
        if inner is None or depth == len(changed) - 1:
            break
        target, source = target / inner, source / inner
    if mutant is not None:
        (target / changed[-1]).write_text(mutant.code, encoding="utf-8")
    return folder


def run_tests(folder: str, test: str, cpu: int) -> int:
    """Runs pytest in this process, which is a fork, against the tree in ``folder``, for at most ``cpu`` seconds."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    used = int(time.process_time())  # a fork starts at 0, but not on every system
    resource.setrlimit(resource.RLIMIT_CPU, (used + cpu, used + cpu + 10))
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.dont_write_bytecode = True
    sys.path[:0] = [folder, str(ROOT)]  # Beam's worker processes import the tests, as under ``python -m pytest``
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    # The fork and what it starts may be killed, so what they leave must be in its folder.
    tempfile.tempdir = os.path.join(folder, TEMPORARY)
    os.mkdir(tempfile.tempdir)
    os.environ.update(PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1", TMPDIR=tempfile.tempdir)
    Compiled.use(Path(folder, PROGRAMS))
    os.chdir(ROOT)
    import pytest

    # pytest would rewrite the asserts in its plugins, hypothesis among them, which takes 2 s and shows nothing here.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options.append(f"--basetemp={folder}/tmp")
    return int(pytest.main([*options, test]))


def start(mutant: Mutant | None, test: str, limits: Limits, compiled: Compiled) -> tuple[int, Trial]:
    """Forks a process that runs a test file with the fault; its pid, and what is known of it."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    linked_tree(folder, mutant)
    compiled.link_into(Path(folder, PROGRAMS))
    now = time.monotonic()
    sys.stdout.flush()  # or the fork would print it again
    pid = os.fork()
    if not pid:
        code = 3
        try:
            code = run_tests(folder, test, limits.cpu)
        except BaseException:  # noqa: BLE001 - a fork must never return into its caller
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # without the libraries' clean-up, which belongs to the parent
    return pid, Trial(mutant, test, now, now + limits.wall, folder)


def run_trials(jobs: Iterator[Job], processes: int, compiled: Compiled) -> Iterator[Outcome]:
    """Yields the outcome of each job, ``processes`` of them at a time; a trial's folder exists until the next one.

    Forks that still run when the iterator is closed are killed.
    """
    running: dict[int, Trial] = {}
    try:
        while True:
            for job in itertools.islice(jobs, processes - len(running)):
                pid, trial = start(*job, compiled)
                running[pid] = trial
            if not running:
                return
            time.sleep(0.05)
            for pid, trial in list(running.items()):
                found, status, used = os.wait4(pid, os.WNOHANG)
                late = not found and time.monotonic() > trial.deadline
                if late:
                    kill_group(pid)
                    _, status, used = os.wait4(pid, 0)
                if found or late:
                    kill_group(pid)  # what its tests left running
                    del running[pid]
                    seconds, code = (
                        time.monotonic() - trial.started,
                        None if late else os.waitstatus_to_exitcode(status),
                    )
                    try:
                        yield Outcome(trial, code, seconds, used.ru_utime + used.ru_stime)
                    finally:
                        shutil.rmtree(trial.folder, ignore_errors=True)
    finally:
        for pid, trial in running.items():
            kill_group(pid)
            os.kill(pid, signal.SIGKILL)  # it may have no group yet
            os.waitpid(pid, 0)
            shutil.rmtree(trial.folder, ignore_errors=True)


def kill_group(pid: int) -> None:
    """Kills what a fork started, and the fork."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def draw(paths: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """``sample`` mutants, at least one of each module and the same number of each, but for a rest by lot."""
    share, rest = divmod(max(sample, len(paths)), len(paths))
    more = set(random.Random(seed).sample(paths, rest))
    return [
        mutant
        for path in paths
        for mutant in sample_mutants(path, (ROOT / path).read_text(), share + (path in more), seed)
    ]


@dataclasses.dataclass(frozen=True)
class Journal:
    """What the parts of a run have done so far.

    Attributes:
      path: JSON lines, one for each run of a test file.
      limits: of the mutants of a test file, from its run without a fault.
      passed: the module and the diff of a mutant -> the number of test files that did not notice it.
      outcomes: the module and the diff of a mutant -> its column of the table, once it is known.
    """

    path: Path
    limits: dict[str, Limits] = dataclasses.field(default_factory=dict)
    passed: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    outcomes: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Journal":
        """The journal of the earlier parts."""
        journal = cls(path)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            journal._take(json.loads(line))
        return journal

    def add(self, **done: object) -> None:
        """Records ``test`` with its ``limits``, or a mutant's ``path`` and ``diff`` with its ``outcome`` so far."""
        self._take(done)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(done) + "\n")

    def _take(self, done: dict[str, Any]) -> None:
        if "limits" in done:
            self.limits[done["test"]] = Limits(**done["limits"])
        elif done["outcome"] == PASSED:
            key = done["path"], done["diff"]
            self.passed[key] = self.passed.get(key, 0) + 1
        else:
            self.outcomes[done["path"], done["diff"]] = done["outcome"]


def run_baselines(
    tests: Iterable[str], processes: int, compiled: Compiled, journal: Journal, until: float = math.inf
) -> None:
    """Runs test files without a fault, where the journal has no such run; exits where a test fails."""
    jobs = ((None, test, Limits(3600, 900)) for test in dict.fromkeys(tests) if test not in journal.limits)
    for outcome in run_trials(while_time(jobs, until), processes, compiled):
        trial = outcome.trial
        if outcome.status != NO_TESTS_FAILED:
            print(Path(trial.folder, "log").read_text(errors="replace")[-4000:])
            sys.exit(f"without a fault these tests fail: {trial.test}")
        compiled.add_from(Path(trial.folder, PROGRAMS))
        limits = Limits(120 + 10 * outcome.seconds, int(10 + 4 * outcome.cpu))
        journal.add(test=trial.test, limits=dataclasses.asdict(limits))
        print(f"{outcome.cpu:.0f} CPU s without a fault: {trial.test}", file=sys.stderr, flush=True)


def while_time(jobs: Iterable[Any], until: float) -> Iterator[Any]:
    """The first ones, until a moment of ``time.monotonic``."""
    return itertools.takewhile(lambda job: time.monotonic() < until, jobs)


def fault_key(path: str, diff: str) -> tuple[str, str, str]:
    """The module, the lines that a fault removes and those that it adds, without the space around them."""
    removed, added = (
        "\n".join(line[1:].strip() for line in diff.splitlines()[2:] if line.startswith(sign)) for sign in "-+"
    )
    return path, removed, added


def equivalents(path: Path = EQUIVALENT) -> dict[tuple[str, str, str], str]:
    """The key of each fault that was read and changes no result -> the reason."""
    listed = tomllib.loads(path.read_text(encoding="utf-8")).get("fault", [])
    return {(one["module"], one["line"], one["instead"]): one["reason"] for one in listed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, metavar="N", help="mutants to try (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="mutants at a time (default: 2)")
    parser.add_argument(
        "--output", default="mutants", metavar="DIR", help="folder for what was tried (default: mutants)"
    )
    parser.add_argument(
        "--again", metavar="FILE", help="try only the mutants of the sample that this survivors.diff has"
    )
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="modules to try, such as 'evaluation/*'"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no mutant after that")
    parser.add_argument("--resume", action="store_true", help="leave out what OUTPUT/tried.jsonl has")
    options = parser.parse_args()
    paths = [path for path in TESTS if any(fnmatch.fnmatch(path, pattern) for pattern in options.only)]
    if not paths:
        parser.error(f"no module matches {' '.join(options.only)}")
    mutants = draw(paths, options.sample, options.seed)
    if options.again:
        survived_before = Path(options.again).read_text()
        mutants = [mutant for mutant in mutants if mutant.diff in survived_before]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the forks end and clean up
    folder = Path(options.output).resolve()
    if not options.resume:
        shutil.rmtree(folder / PROGRAMS, ignore_errors=True)
        Path(folder, "tried.jsonl").unlink(missing_ok=True)
    compiled, journal = Compiled(folder / PROGRAMS), Journal.read(folder / "tried.jsonl")
    compiled.folder.mkdir(parents=True, exist_ok=True)
    import_libraries()
    try_mutants(mutants, options.processes, compiled, journal, time.monotonic() + 60 * options.minutes)
    tried = {mutant: journal.outcomes.get((mutant.path, mutant.diff)) for mutant in mutants}
    survivors = [mutant for mutant, outcome in tried.items() if outcome == "survived"]
    Path(folder, "survivors.diff").write_text("".join(f"{mutant.diff}\n\n" for mutant in survivors))
    outcomes: dict[str, collections.Counter[str]] = {mutant.path: collections.Counter() for mutant in mutants}
    for mutant, outcome in tried.items():
        outcomes[mutant.path].update([outcome] if outcome else [])
    print("\n" + "\n".join(table(outcomes)))
    if None in tried.values():
        print(f"{list(tried.values()).count(None)} of {len(mutants)} mutants are left for --resume")
    else:
        shutil.rmtree(compiled.folder)


def try_mutants(
    mutants: Sequence[Mutant], processes: int, compiled: Compiled, journal: Journal, until: float = math.inf
) -> None:
    """Runs the tests of each mutant, as far as the journal does not have them, until one notices it."""
    for number in range(max((len(TESTS[mutant.path]) for mutant in mutants), default=0)):
        keys = {(mutant.path, mutant.diff): mutant for mutant in mutants}
        left = [
            mutant
            for key, mutant in keys.items()
            if key not in journal.outcomes and journal.passed.get(key, 0) == number
        ]
        run_baselines((TESTS[mutant.path][number] for mutant in left), processes, compiled, journal, until)
        tests = ((mutant, TESTS[mutant.path][number]) for mutant in while_time(left, until))
        jobs = ((mutant, test, journal.limits[test]) for mutant, test in tests)
        for outcome in run_trials(jobs, processes, compiled):
            record(outcome, journal, is_last=number == len(TESTS[outcome.trial.mutant.path]) - 1)
            print(
                f"test file {number + 1} of {len(left)} mutants; {len(journal.outcomes)} of {len(mutants)} done",
                file=sys.stderr,
                flush=True,
            )


def record(outcome: Outcome, journal: Journal, is_last: bool) -> None:
    """Records a mutant that met a test file, and prints one that survived the last of them."""
    mutant, name = outcome.trial.mutant, outcome.name
    if name == "survived":
        reason = equivalents().get(fault_key(mutant.path, mutant.diff))
        name = PASSED if not is_last else "equivalent" if reason else name
        if is_last:
            print(f"{name}: {mutant.operator}\n{mutant.diff}\n{reason or ''}\n", flush=True)
    journal.add(path=mutant.path, diff=mutant.diff, test=outcome.trial.test, outcome=name, cpu=round(outcome.cpu, 2))


def table(outcomes: dict[str, collections.Counter[str]]) -> list[str]:
    """Lines of outcomes by module, of the share found by folder, and of the share of all."""
    names = ("killed", "timeout", "equivalent", "survived")
    lines = [f"{'module':42}" + "".join(f"{name:>11}" for name in names)]
    lines += [f"{path:42}" + "".join(f"{counts[name]:11}" for name in names) for path, counts in outcomes.items()]
    folders: dict[str, collections.Counter[str]] = {}
    for path, counts in outcomes.items():
        folders.setdefault(path.rpartition("/")[0], collections.Counter()).update(counts)
    folders["all"] = sum(outcomes.values(), collections.Counter())
    return lines + [f"{folder}: {found(counts)}" for folder, counts in folders.items()]


def found(counts: collections.Counter[str]) -> str:
    """The share of faults that a test finds, of all faults and of those that change a result."""
    number, every = counts["killed"] + counts["timeout"], counts.total()
    rest = every - counts["equivalent"]
    text = f"{number} of {every} found by a test ({number / max(1, every):.1%})"
    return text if rest == every else f"{text}, of those that change a result {number} of {rest} ({number / rest:.1%})"


if __name__ == "__main__":
    main()
