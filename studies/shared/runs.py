"""A training in its own process and folder, which can be resumed, and its evaluation."""

import contextlib
import dataclasses
import fcntl
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ...errors import InputError, raise_if_stopped
from ...evaluation.benchmark import Benchmark, Score
from ...evaluation.encoders import Encoder
from ...evaluation.results import Result, Results
from ...evaluation.suites import RESULTS_FILE, benchmark_facts, read_results, run_suites, write_results
from ...formats.model_folder import ModelFolder
from .arguments import write_text
from .children import child, stopped_together

RUN_FILE: Final = "run.gin"
LOG_FILE: Final = "train.log"
_CACHE_VARIABLE: Final = "JAX_COMPILATION_CACHE_DIR"
_SHOWN_LINES: Final = 3
_WHOLE: Final = "all"


@dataclasses.dataclass(frozen=True)
class Run:
    """One training.

    Attributes:
      folder: gets ``run.gin``, ``model/``, ``train.log``, ``seconds.txt`` and ``evaluation/``.
      gin: text of the run file; nothing else configures the training.
      steps: checkpoints to evaluate, ascending; the last ends the training.
    """

    folder: str
    gin: str
    steps: tuple[int, ...]

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


Trainer = Callable[[Run, Sequence[int]], str]  # (run, cores it may use) to what went wrong, "" if nothing
EncoderMaker = Callable[[Run, int], Encoder]  # (run, step)


def write_run_file(run: Run) -> None:
    """Writes ``run.gin``, so that the training can be started by hand.

    Raises:
      InputError: if the folder holds another training.
    """
    path = f"{run.folder}/{RUN_FILE}"
    os.makedirs(run.folder, exist_ok=True)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() != run.gin:
                raise InputError(
                    "the folder has a training with other options or data",
                    path=path,
                    field="--output",
                    remedy="name another folder",
                )
        return
    write_text(path, run.gin)


def train_in_process(run: Run, cores: Sequence[int]) -> str:
    """Trains in a new process, which resumes from its last checkpoint; the :data:`Trainer` of every command.

    Raises:
      KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it.
    """
    with open(f"{run.folder}/{LOG_FILE}", "ab") as log, _locked(run.folder) as lock:
        if run.is_trained():  # by another process, while this one waited
            return ""
        started = time.monotonic()
        with child(run.command, stdout=log, stderr=subprocess.STDOUT, pass_fds=[lock]) as process:
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cores)  # before it starts its threads, one a core
            code = process.wait()
        _add_seconds(run, time.monotonic() - started)
    raise_if_stopped(code)
    if code:
        return f"exit code {code}: {_last_lines(run)}"
    return "" if run.is_trained() else "ended before its last step"


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[int]:
    """Waits until no other process trains here.

    The child inherits the lock: if this process is killed, the next one waits for the child.
    """
    with open(f"{folder}/lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _last_lines(run: Run) -> str:
    with open(f"{run.folder}/{LOG_FILE}", encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log.read().splitlines() if line.strip()]
    return " / ".join(lines[-_SHOWN_LINES:])


def _add_seconds(run: Run, seconds: float) -> None:
    with open(f"{run.folder}/seconds.txt", "a", encoding="utf-8") as file:
        file.write(f"{seconds:.1f}\n")


def training_seconds(run: Run) -> float:
    """Wall time of all starts of the training, in seconds, without those that were killed."""
    try:
        with open(f"{run.folder}/seconds.txt", encoding="utf-8") as file:
            return sum(map(float, file))
    except FileNotFoundError:
        return 0.0


def train_all(
    runs: Sequence[Run],
    parallel: int,
    trainer: Trainer,
    say: Callable[[str], None] = lambda _text: None,
) -> dict[str, str]:
    """Runs the trainings that are not finished.

    Args:
      runs: with distinct folders.
      parallel: trainings at a time, each on its share of this machine's cores.
      trainer: runs one training.
      say: called with a line when a training ends.

    Returns:
      What went wrong, by folder; runs that are not listed are trained.

    Raises:
      KeyboardInterrupt: if Ctrl-C or SIGTERM stopped this process or a training; those that run save a checkpoint.
    """
    shares: queue.Queue[Sequence[int]] = queue.Queue()
    for cores in core_shares(parallel):
        shares.put(cores)
    lock, done = threading.Lock(), 0

    def train(run: Run) -> str:
        """Trains a run on the next free cores; returns what went wrong, "" for nothing.

        Raises:
          KeyboardInterrupt: if it was stopped; the runs that wait are not started.
        """
        nonlocal done
        cores = shares.get()
        started = time.monotonic()
        try:
            problem = "" if run.is_trained() else _attempt(run, cores, trainer)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)  # this thread would start the next one
            raise
        finally:
            shares.put(cores)
        with lock:
            done += 1
            say(f"[{done}/{len(runs)}] {run.folder}: {problem or 'trained'}, {time.monotonic() - started:.1f} s")
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


def _attempt(run: Run, cores: Sequence[int], trainer: Trainer) -> str:
    try:
        return trainer(run, cores)
    except Exception as error:  # noqa: BLE001 - one row's failure is a line of the table, not the end of the study
        return f"{type(error).__name__}: {error}"


def core_shares(parallel: int) -> list[list[int]]:
    """The cores of each of ``parallel`` trainings: all (an empty list) for one, or if there are too few to divide."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if parallel == 1 or len(cores) < parallel:
        return [[] for _ in range(parallel)]
    return [cores[share::parallel] for share in range(parallel)]


def evaluate_run(
    run: Run, benchmarks: Sequence[Benchmark], make_encoder: EncoderMaker, command: Sequence[str]
) -> Results:
    """Scores of every checkpoint of a run, named by its step; reused if the benchmarks have not changed."""
    folder = f"{run.folder}/evaluation"
    if os.path.exists(f"{folder}/{RESULTS_FILE}"):
        found = read_results(folder)
        steps = [str(step) for step in run.steps]
        if (
            not found.failed
            and list(found.manifest["encoders"]) == steps
            and found.manifest["benchmarks"] == benchmark_facts(benchmarks)
        ):
            return found
    factories = {str(step): _factory(run, step, make_encoder) for step in run.steps}
    specs = {str(step): f"model:{run.model}@{step}" for step in run.steps}
    with tempfile.TemporaryDirectory() as cache:  # benchmarks may share documents
        results = run_suites(factories, benchmarks, cache=cache, command=command, specs=specs)
    write_results(results, folder)
    return results


def evaluate_encoder(folder: str, spec: str, benchmarks: Sequence[Benchmark], command: Sequence[str]) -> Results:
    """The results of an encoder that is not trained here; they go to the folder, too.

    Args:
      folder: gets ``evaluation/``.
      spec: as on the command line of `newsembed evaluate`.
      benchmarks: with distinct names.
      command: the command line, for the manifest.

    Raises:
      InputError: for an unknown encoder.
    """
    from ...evaluation.command import encoder_factory
    from ...serving import factories

    makers = {spec: encoder_factory(spec, factories(progress=False))}
    results = run_suites(makers, benchmarks, command=command, specs={spec: spec})
    write_results(results, f"{folder}/evaluation")
    return results


def _factory(run: Run, step: int, make_encoder: EncoderMaker) -> Callable[[], Encoder]:
    return lambda: make_encoder(run, step)


def load_checkpoint(run: Run, step: int) -> Encoder:
    """The :data:`EncoderMaker` of every command."""
    from ...serving import factories

    return factories(progress=False)["model"](f"{run.model}@{step}")


def overall_scores(results: Results, group: str = _WHOLE, metric: str = "") -> dict[tuple[str, str], float]:
    """One number for each (step, benchmark): the :func:`counted` score.

    Args:
      results: of all steps.
      group: see :func:`counted`.
      metric: see :func:`counted`.

    Raises:
      InputError: if a benchmark failed.
    """
    found = {}
    for result in results.results:
        if result.status == "failed":
            raise InputError(f"step {result.encoder} on {result.benchmark}: {result.error}")
        found[result.encoder, result.benchmark] = counted(result, group, metric).value
    return found


def overall_metrics(results: Results, group: str = _WHOLE, metric: str = "") -> Mapping[str, str]:
    """The metric that :func:`overall_scores` uses, by benchmark, and its part if that is not the whole."""
    found = {}
    for result in results.results:
        score = counted(result, group, metric)
        found[result.benchmark] = score.metric if score.part.lower() == _WHOLE else f"{score.metric} {score.part}"
    return found


def counted(result: Result, group: str = _WHOLE, metric: str = "") -> Score:
    """The score of a benchmark that counts in a study.

    Args:
      result: of the benchmark, with at least one score.
      group: the part that counts, such as "Cross"; where the benchmark lacks it, the whole, else the first part.
      metric: the score of that part that counts, where it has this one; else its first.
    """
    parts = {score.part.lower() for score in result.scores}
    part = next((one for one in (group.lower(), _WHOLE) if one in parts), result.scores[0].part.lower())
    scores = [score for score in result.scores if score.part.lower() == part]
    return next((score for score in scores if score.metric == metric), scores[0])
