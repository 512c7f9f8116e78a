"""Puts small faults into the modules of ``modules.py``, one at a time, and reports which ones no test notices.

    python tests/mutation/run.py --sample 300 --output mutants

Importing TensorFlow, JAX and Beam takes longer than most tests. So this process imports the libraries once, but never
``newsembed``, and forks for each mutant; the fork runs pytest on a tree of links to the repository in which one module
is changed, so that processes that a test starts see the fault too. The tests of each module first run without a fault:
they must pass, and a mutant may take three times as long plus 20 seconds. A mutant is killed when a test fails, the
module cannot be imported or time runs out. Nothing in the repository is written.

The survivors are written as diffs to ``OUTPUT/survivors.diff``. Read each one: the fault changes nothing that matters,
or a test is missing.
"""

import argparse
import collections
import contextlib
import dataclasses
import fnmatch
import importlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from modules import TESTS
from mutants import Mutant, sample_mutants

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (
    "numpy", "scipy.stats", "scipy.sparse", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection",
    "sklearn.cluster", "sklearn.neural_network", "sklearn.feature_extraction.text", "pyarrow.dataset",
    "pyarrow.parquet", "tensorflow", "tensorflow_text", "jax", "flax.linen", "optax", "orbax.checkpoint", "grain",
    "seqio", "apache_beam", "apache_beam.runners.direct", "faiss", "scann", "trafilatura", "htmldate", "lxml.html",
    "fastwarc", "resiliparse.parse.html", "tokenizers", "rensa", "pytest", "_pytest.python",
)  # fmt: skip
NO_TESTS_FAILED = 0


@dataclasses.dataclass
class Trial:
    """A running fork."""

    mutant: Mutant | None
    tests: tuple[str, ...]
    started: float
    deadline: float
    folder: str


def import_libraries() -> None:
    """Imports what the tests import, if it is installed; an import alone starts no threads, which a fork would lose."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


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


def run_tests(folder: str, tests: Sequence[str]) -> int:
    """Runs pytest in this process, which is a fork, against the tree in ``folder``."""
    os.setsid()
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.update(
        PYTHONPATH=os.pathsep.join(paths),
        PYTHONDONTWRITEBYTECODE="1",
    )
    os.chdir(ROOT)
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp"]
    return int(pytest.main([*options, *tests]))


def start(mutant: Mutant | None, tests: tuple[str, ...], seconds: float) -> tuple[int, Trial]:
    """Forks a process that runs ``tests`` with the fault; its pid, and what is known of it."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    linked_tree(folder, mutant)
    now = time.monotonic()
    sys.stdout.flush()  # or the fork would print it again
    pid = os.fork()
    if not pid:
        code = 3
        try:
            code = run_tests(folder, tests)
        except BaseException:  # noqa: BLE001 - a fork must never return into its caller
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # without the libraries' clean-up, which belongs to the parent
    return pid, Trial(mutant, tests, now, now + seconds, folder)


def run_trials(
    jobs: Iterator[tuple[Mutant | None, tuple[str, ...], float]], processes: int
) -> Iterator[tuple[Trial, int | None, float]]:
    """Yields (trial, exit status or None where time ran out, seconds) of each job, ``processes`` of them at a time."""
    running: dict[int, Trial] = {}
    while True:
        for job in itertools.islice(jobs, processes - len(running)):
            pid, trial = start(*job)
            running[pid] = trial
        if not running:
            return
        time.sleep(0.05)
        for pid, trial in list(running.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            late = not found and time.monotonic() > trial.deadline
            if late:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if found or late:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)  # what its tests left running
                del running[pid]
                yield trial, None if late else os.waitstatus_to_exitcode(status), time.monotonic() - trial.started
                shutil.rmtree(trial.folder, ignore_errors=True)


def draw(paths: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """About ``sample`` mutants, the same number of each module."""
    share = -(-sample // len(paths))
    return [mutant for path in paths for mutant in sample_mutants(path, (ROOT / path).read_text(), share, seed)][
        : max(sample, len(paths))
    ]


def time_limits(paths: Sequence[str], processes: int) -> dict[tuple[str, ...], float]:
    """Seconds that each selection of tests may take, by running it without a fault; exits where one fails."""
    selections = dict.fromkeys(TESTS[path] for path in paths)
    limits: dict[tuple[str, ...], float] = {}
    for trial, status, seconds in run_trials(((None, tests, 900.0) for tests in selections), processes):
        if status != NO_TESTS_FAILED:
            print(Path(trial.folder, "log").read_text(errors="replace")[-4000:])
            sys.exit(f"without a fault these tests fail: {' '.join(trial.tests)}")
        limits[trial.tests] = 20 + 3 * seconds
    return limits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, metavar="N", help="mutants to try (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="mutants at a time (default: 2)")
    parser.add_argument(
        "--output", default="mutants", metavar="DIR", help="folder for survivors.diff (default: mutants)"
    )
    parser.add_argument(
        "--again", metavar="FILE", help="try only the mutants of the sample that this survivors.diff has"
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="modules to try, such as 'evaluation/*'")
    options = parser.parse_args()
    paths = fnmatch.filter(TESTS, options.only)
    if not paths:
        parser.error(f"no module matches {options.only!r}")
    mutants = draw(paths, options.sample, options.seed)
    if options.again:
        survived_before = Path(options.again).read_text()
        mutants = [mutant for mutant in mutants if mutant.diff in survived_before]
        paths = [path for path in paths if any(mutant.path == path for mutant in mutants)]
    import_libraries()
    limits = time_limits(paths, options.processes)
    outcomes: dict[str, collections.Counter[str]] = {path: collections.Counter() for path in paths}
    survivors: list[Mutant] = []
    jobs = ((mutant, TESTS[mutant.path], limits[TESTS[mutant.path]]) for mutant in mutants)
    for trial, status, seconds in run_trials(jobs, options.processes):
        survived = status == NO_TESTS_FAILED
        outcomes[trial.mutant.path]["survived" if survived else "timeout" if status is None else "killed"] += 1
        if survived:
            survivors.append(trial.mutant)
            print(f"survived in {seconds:.0f} s: {trial.mutant.operator}\n{trial.mutant.diff}\n", flush=True)
        tried = sum(outcomes.values(), collections.Counter())
        print(f"{tried.total()}/{len(mutants)} tried, {tried['survived']} survived", file=sys.stderr, flush=True)
    os.makedirs(options.output, exist_ok=True)
    Path(options.output, "survivors.diff").write_text("".join(f"{mutant.diff}\n\n" for mutant in survivors))
    report(outcomes)


def report(outcomes: dict[str, collections.Counter[str]]) -> None:
    """Prints a table of outcomes by module, and their sum."""
    names = ("killed", "timeout", "survived")
    print("\n" + f"{'module':42}" + "".join(f"{name:>10}" for name in names))
    for path, counts in outcomes.items():
        print(f"{path:42}" + "".join(f"{counts[name]:10}" for name in names))
    total = sum(outcomes.values(), collections.Counter())
    print(f"{'all':42}" + "".join(f"{total[name]:10}" for name in names))
    print(f"{(total.total() - total['survived']) / max(1, total.total()):.1%} of {total.total()} found by a test")


if __name__ == "__main__":
    main()
