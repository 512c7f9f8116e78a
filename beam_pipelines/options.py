"""Beam pipelines with defaults for one machine, and detection of dead worker processes."""

import contextlib
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from ..errors import InputError
from . import dataflow
from .interpreter import PYTHON, import_path
from .parent import PARENT
from .shards import available_cores
from .worker_forks import FORKS

_LOCAL = "FnApiRunner"
_SECONDS_TO_END = 5.0  # of a worker that Ctrl-C has reached
_SECONDS_TO_NOTICE = 0.5  # Ctrl-C, for the main thread
_WORKER_THREAD = "run_worker"  # Beam's name for the thread that waits for a worker process
_INTERRUPTED = (f" {-signal.SIGINT}", f" {128 + signal.SIGINT}")  # return codes, of the worker and of its shell
# Arrow's own allocator and glibc's arenas for each thread keep what they once had, so that a worker would grow with the
# number of its shards. Set before the worker starts: glibc reads them then.
_ALLOCATORS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


def make_pipeline(beam_args: Sequence[str], shard_count: int) -> beam.Pipeline:
    """Returns an empty pipeline for a phase with the given number of shards, configured by Beam's own options.

    Without ``--runner`` the pipeline runs on this machine. It uses the FnApiRunner, because DirectRunner first tries to
    download another runner, and one process per core (``--direct_num_workers``), because the threaded mode loses
    records. A phase with one shard runs in this process, because starting others takes seconds. Options that Dataflow
    would refuse are reported by :mod:`.dataflow`.
    """
    options = PipelineOptions([*beam_args, *([] if _names_runner(beam_args) else [f"--runner={_LOCAL}"])])
    if dataflow.names_dataflow(options):
        dataflow.check_options(options)
        dataflow.check_installed()
    direct = options.view_as(DirectOptions)
    if options.view_as(StandardOptions).runner != _LOCAL or direct.direct_running_mode != "in_memory":
        return beam.Pipeline(options=options)  # another runner, or a mode the user asked for
    if not any(argument.startswith("--direct_num_workers") for argument in beam_args):
        direct.direct_num_workers = min(available_cores(), shard_count)
    if direct.direct_num_workers == 1:
        return beam.Pipeline(options=options)
    # Like direct_running_mode=multi_processing, but with workers that log only errors and use one thread per library.
    os.environ[PARENT] = str(os.getpid())  # workers end with this process
    client = FORKS.client(_worker_settings())
    command = _shell_line(client) if client else worker_command()
    environment = SubprocessSDKEnvironment.from_command_string(command_string=command)
    # The runner itself gives its workers no options: s3:// paths would have no endpoint and no keys there.
    stated = JobServiceHandle.encode_pipeline_options(options.get_all_options(drop_default=True))
    provision = beam_provision_api_pb2.ProvisionInfo(retrieval_token=_LOCAL, pipeline_options=stated)
    runner = FnApiRunner(default_environment=environment, provision_info=ExtendedProvisionInfo(provision))
    return beam.Pipeline(runner=runner, options=options)


def worker_command(*arguments: str) -> str:
    """The line for the shell that starts a worker in a new interpreter.

    Args:
      arguments: of Python, by default those that run a worker.
    """
    return _shell_line([*PYTHON, *(arguments or ("-m", f"{__package__}.worker"))])


def _shell_line(command: Sequence[str]) -> str:
    settings = [f"{name}={shlex.quote(value)}" for name, value in _worker_settings().items()]
    return " ".join([*settings, shlex.join(command)])


def _worker_settings() -> dict[str, str]:
    """Variables of the environment of a local worker; allocators that the user has chosen are kept."""
    chosen = {name: os.environ.get(name, value) for name, value in _ALLOCATORS.items()}
    return {"PYTHONPATH": import_path(), **chosen}


@contextlib.contextmanager
def noticing_dead_workers() -> Iterator[None]:
    """Ends a local pipeline if one of its worker processes is killed; Beam's runner would wait for it forever.

    Raises:
      InputError: if a worker died; states its exit code.
      KeyboardInterrupt: at Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can be interrupted
        return
    deaths: list[str] = []
    interrupts: list[int] = []
    with _worker_deaths_noted(deaths, interrupts), _interrupts_noted(deaths, interrupts):
        try:
            yield
        except BaseException as error:
            if deaths:
                raise InputError(
                    f"a worker process died: {deaths[0]}",
                    remedy="137 means that it was killed, usually because memory ran out: lower --direct_num_workers; "
                    "finished shards are kept",
                ) from error
            if interrupts:
                raise KeyboardInterrupt from None  # inside a DoFn, Beam makes another error of it
            raise


@contextlib.contextmanager
def _worker_deaths_noted(deaths: list[str], interrupts: Sequence[int]) -> Iterator[None]:
    """Adds the message about the first worker that dies, and interrupts the main thread.

    Ctrl-C ends the workers, too, and is no death. Python can miss the signal in the main thread, if it arrives just
    before the thread waits for a lock; then the end of a worker interrupts it.

    Raises:
      KeyboardInterrupt: at Ctrl-C, when the threads of the workers have ended.
    """
    default, once = threading.excepthook, threading.Lock()
    ignores_interrupts = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def hook(ended: threading.ExceptHookArgs) -> None:
        """Notes the first worker that dies and interrupts the main thread; passes on what other threads raise."""
        if ended.thread is not None and ended.thread.name == _WORKER_THREAD:
            if deaths:
                return
            if ignores_interrupts or not str(ended.exc_value).endswith(_INTERRUPTED):
                deaths.append(str(ended.exc_value))
            else:
                time.sleep(_SECONDS_TO_NOTICE)
                if interrupts or not once.acquire(blocking=False):
                    return
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        # Broken connections only repeat that the worker is dead.
        elif not isinstance(ended.exc_value, grpc.RpcError):
            default(ended)

    threading.excepthook = hook
    try:
        yield
    except KeyboardInterrupt:
        once.acquire(blocking=False)  # noticed
        # Ctrl-C has ended the workers, too: their threads may report it only now, to this hook and not to the terminal.
        for thread in threading.enumerate():
            if thread.name == _WORKER_THREAD:
                thread.join(_SECONDS_TO_END)
        raise
    finally:
        threading.excepthook = default


@contextlib.contextmanager
def _interrupts_noted(deaths: Sequence[str], interrupts: list[int]) -> Iterator[None]:
    """Raises KeyboardInterrupt at SIGINT, and adds those to a list that no death of a worker caused."""
    previous = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    # nohup and `command &` in a script start processes that ignore SIGINT; then an interrupted worker is a dead one.
    ignores_interrupts = previous is signal.SIG_IGN

    def interrupted(number: int, _frame: FrameType | None) -> None:
        if not deaths and not ignores_interrupts:
            interrupts.append(number)
        if deaths or interrupts:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _names_runner(beam_args: Sequence[str]) -> bool:
    return any(argument == "--runner" or argument.startswith("--runner=") for argument in beam_args)
