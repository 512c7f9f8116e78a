"""Trainings and other commands as children of a study: resumed where they were, and stopped together with it."""

import contextlib
import dataclasses
import fcntl
import itertools
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, BinaryIO, Final

from ...beam_pipelines.worker import PARENT, PYTHON, child_environment
from ...errors import InputError, Terminated, death_of, raise_if_stopped
from ...formats.bars import SECONDS_BETWEEN_LINES
from ...formats.files import write_whole
from ...formats.model_folder import ModelFolder

RUN_FILE: Final = "run.gin"
LOG_FILE: Final = "train.log"
_SECONDS_FILE: Final = "seconds.txt"
_PACKAGE: Final = __package__.partition(".")[0]
_CACHE_VARIABLE: Final = "JAX_COMPILATION_CACHE_DIR"
_SHOWN_LINES: Final = 3
_running: Final[set[subprocess.Popen[bytes]]] = set()


@dataclasses.dataclass(frozen=True)
class Run:
    """One training.

    Attributes:
      folder: gets ``run.gin``, ``model/``, ``train.log``, ``seconds.txt`` and ``evaluation/``.
      gin: text of the run file; nothing else configures the training.
      steps: checkpoints to evaluate, ascending; the last ends the training.
      is_shared: whether several models of a study start from its model.
    """

    folder: str
    gin: str
    steps: tuple[int, ...]
    is_shared: bool = False

    @property
    def model(self) -> str:
        """The model folder."""
        return f"{self.folder}/model"

    @property
    def command(self) -> list[str]:
        """Arguments of ``newsembed`` that train it."""
        return ["train", f"--gin_file={self.folder}/{RUN_FILE}"]

    def is_trained(self) -> bool:
        """Whether the last checkpoint exists; checkpoints appear complete or not at all."""
        return os.path.isdir(ModelFolder(self.model).checkpoint(self.steps[-1]))

    def seconds(self) -> float:
        """Wall time of all starts of the training, in seconds, without those that were killed."""
        try:
            with open(f"{self.folder}/{_SECONDS_FILE}", encoding="utf-8") as file:
                return sum(map(float, file))
        except FileNotFoundError:
            return 0.0


Trainer = Callable[[Run, Sequence[int]], str]  # (run, cores it may use) to what went wrong, "" if nothing


@contextlib.contextmanager
def child(arguments: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command of newsembed; at the end of the block it has ended.

    If this process is killed, the command gets SIGTERM, which makes a training save a checkpoint.

    Args:
      arguments: of ``newsembed``.
      **options: of `subprocess.Popen`.
    """
    environment = {**child_environment(), PARENT: str(os.getpid())}
    # In a group of its own, Ctrl-C reaches this process alone: a child that is still loading would print a traceback.
    command = [*PYTHON, "-m", _PACKAGE, *arguments]
    process = subprocess.Popen(command, env=environment, process_group=0, **options)  # noqa: S603 - ours
    _running.add(process)
    try:
        yield process
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
        _running.discard(process)


@contextlib.contextmanager
def stopped_together() -> Iterator[None]:
    """Makes SIGTERM raise `Terminated`; it and Ctrl-C send SIGTERM to all children, also to those of other threads.

    Only the main thread may handle signals; in others SIGTERM keeps its meaning.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _raise) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        for process in list(_running):
            process.terminate()
        raise
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def run_command(arguments: Sequence[str]) -> int:
    """Runs a command of this program in a process of its own and shows it; returns its exit code.

    Raises:
      InputError: if a signal ended it, such as that of a machine without memory.
    """
    print(f"+ newsembed {shlex.join(arguments)}", file=sys.stderr, flush=True)
    with stopped_together(), child(arguments) as process:
        code = process.wait()
    raise_if_stopped(code)
    if died := death_of(code, f"the step `newsembed {arguments[0]}`"):
        raise died
    return code


def write_run_file(run: Run) -> None:
    """Writes ``run.gin``, so that the training can be started by hand."""
    path = f"{run.folder}/{RUN_FILE}"
    if not os.path.exists(path):
        write_whole(path, run.gin.encode())
    with open(path, encoding="utf-8") as there:
        pairs = itertools.zip_longest(there.read().splitlines(), run.gin.splitlines(), fillvalue="nothing")
    if differs := next((pair for pair in pairs if pair[0] != pair[1]), None):
        problem = f"the folder has a training with {differs[0]}, this one has {differs[1]}"
        raise InputError(problem, path=path, field="--output", remedy="name another folder, or give the same options")


def train_in_process(run: Run, cores: Sequence[int]) -> str:
    """Trains in a new process, which resumes from its last checkpoint; the :data:`Trainer` of every command."""
    with open(f"{run.folder}/{LOG_FILE}", "ab+") as log, open(f"{run.folder}/lock", "wb") as lock:
        # Waits until no other process trains here. The child inherits the lock: if this process is killed, the next
        # one waits for the child.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if run.is_trained():  # by another process, while this one waited
            return ""
        started = time.monotonic()
        with child(run.command, stdout=log, stderr=subprocess.STDOUT, pass_fds=[lock.fileno()]) as process:
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cores)  # before it starts its threads, one a core
            while (code := _ended(process)) is None:
                print(f"{run.folder}: {(_last_lines(log) or ['starting'])[-1]}", file=sys.stderr, flush=True)
        with open(f"{run.folder}/{_SECONDS_FILE}", "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - started:.1f}\n")
        lines = _last_lines(log)
    raise_if_stopped(code)
    if died := death_of(code, "the training"):
        return f"{died}"
    if code:
        return f"exit code {code}: {' / '.join(lines)}"
    return "" if run.is_trained() else "ended before its last step"


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a process; None after a while in which it goes on."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(SECONDS_BETWEEN_LINES)
    return None


def _last_lines(log: BinaryIO) -> list[str]:
    log.seek(0)
    lines = log.read().decode("utf-8", errors="replace").split("\n")
    return [line.strip() for line in lines if line.strip()][-_SHOWN_LINES:]


def train_all(
    runs: Sequence[Run], parallel: int, trainer: Trainer, say: Callable[[str], None] = lambda _text: None
) -> dict[str, str]:
    """Runs the trainings that are not finished.

    Args:
      runs: with distinct folders and their run files.
      parallel: trainings at a time, each on its share of this machine's cores.
      trainer: runs one training.
      say: called with a line when a training ends.

    Returns:
      What went wrong, by folder; runs that are not listed are trained.
    """
    shares: queue.Queue[Sequence[int]] = queue.Queue()
    for cores in core_shares(parallel):
        shares.put(cores)
    lock, done = threading.Lock(), itertools.count(1)

    def train(run: Run) -> str:
        cores = shares.get()
        started = time.monotonic()
        try:
            problem = "" if run.is_trained() else trainer(run, cores)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)  # this thread would start the next one
            raise
        except Exception as error:  # noqa: BLE001 - one failure is a line of the table, not the end of the study
            problem = f"{type(error).__name__}: {error}"
        finally:
            shares.put(cores)
        with lock:
            say(f"[{next(done)}/{len(runs)}] {run.folder}: {problem or 'trained'}, {time.monotonic() - started:.1f} s")
        return problem

    with _shared_compilations(), ThreadPoolExecutor(parallel) as pool, stopped_together():
        problems = list(pool.map(train, runs))
    return {run.folder: problem for run, problem in zip(runs, problems, strict=True) if problem}


@contextlib.contextmanager
def _shared_compilations() -> Iterator[None]:
    """Lets all trainings share their compiled programs, in a temporary folder of this machine."""
    if _CACHE_VARIABLE in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="newsembed-compiled-") as folder:
        os.environ[_CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[_CACHE_VARIABLE]


def core_shares(parallel: int) -> list[list[int]]:
    """The cores of each of ``parallel`` trainings: all (an empty list) for one, or if there are too few to divide."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if parallel == 1 or len(cores) < parallel:
        return [[] for _ in range(parallel)]
    return [cores[share::parallel] for share in range(parallel)]
