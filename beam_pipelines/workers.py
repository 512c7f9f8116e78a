"""Beam pipelines with defaults for one machine: a worker process for each core, which ends when it should.

Beam's FnApiRunner can start worker processes, but it waits forever for one that dies, and each imports Beam anew. Here
the workers are forked by Python's own fork server, which imports what all jobs need once (on Linux; elsewhere each
worker is a new interpreter). A worker ends with the process that started it, also if that one is killed.
"""

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import socket
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2, beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.fn_runner import ExtendedProvisionInfo
from apache_beam.runners.portability.fn_api_runner.worker_handlers import GrpcWorkerHandler, WorkerHandler
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from apache_beam.utils import interactive_utils
from google.protobuf import json_format, text_format

from ..errors import InputError, death_of, refusing
from . import failures, worker
from .shards import available_cores
from .worker import import_path

_LOCAL: Final = "FnApiRunner"
_SERVED: Final = ("PortableRunner", "FlinkRunner", "SparkRunner")  # by a job server
# With one of these, Beam starts a job server, whose jar it may download.
_STARTS_ONE: Final = {"flink_job_server_jar", "spark_job_server_jar", "flink_master", "spark_master_url"}
_POLL_SECONDS: Final = 0.2
_SECONDS_TO_END: Final = 5.0  # of a pipeline whose workers were killed
_CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
# Arrow's own allocator and glibc's arenas for each thread keep what they once had, so that a worker would grow with the
# number of its shards. There is one process per core already, so libraries get one thread each. The last two: the
# working folder is not on the path (a file there named proto.py would take the place of a library), and Arrow starts no
# thread in the process that forks.
_SETTINGS: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "PYTHONSAFEPATH": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_running: Final[set[Any]] = set()  # worker processes
_starting: Final = threading.Lock()  # what a child inherits is changed while one is started


def make_pipeline(beam_args: Sequence[str], shard_count: int) -> beam.Pipeline:
    """Returns an empty pipeline for a phase with the given number of shards, configured by Beam's own options.

    Without ``--runner`` the pipeline runs on this machine. It uses the FnApiRunner, because DirectRunner first tries to
    download another runner, and one process per core (``--direct_num_workers``), because the threaded mode loses
    records. A phase with one shard runs in this process, because starting others takes seconds.
    """
    is_named = any(argument.partition("=")[0] == "--runner" for argument in beam_args)
    options = PipelineOptions([*beam_args, *([] if is_named else [f"--runner={_LOCAL}"])])
    direct = options.view_as(DirectOptions)
    if options.view_as(StandardOptions).runner != _LOCAL or direct.direct_running_mode != "in_memory":
        _check_job_server(options)
        with refusing("the runner cannot run this:", ValueError, field="--runner", remedy="see its options"):
            return beam.Pipeline(options=options)  # another runner, or a mode the user asked for
    if not any(argument.startswith("--direct_num_workers") for argument in beam_args):
        direct.direct_num_workers = min(available_cores(), shard_count)
    if direct.direct_num_workers == 1:
        return beam.Pipeline(options=options)
    # The runner itself gives its workers no options: s3:// paths would have no endpoint and no keys there.
    stated = JobServiceHandle.encode_pipeline_options(options.get_all_options(drop_default=True))
    provision = beam_provision_api_pb2.ProvisionInfo(retrieval_token=_LOCAL, pipeline_options=stated)
    environment = SubprocessSDKEnvironment.from_command_string(worker.__name__)
    runner = FnApiRunner(default_environment=environment, provision_info=ExtendedProvisionInfo(provision))
    return beam.Pipeline(runner=runner, options=options)


def _check_job_server(options: PipelineOptions) -> None:
    """Checks that the job server of an engine answers: Beam waits for it in silence, or downloads one.

    Raises:
      InputError: if none is named, or nothing answers there.
    """
    runner = options.view_as(StandardOptions).runner
    endpoint, remedy = options.view_as(PortableOptions).job_endpoint, "start a job server, and give its HOST:PORT"
    if endpoint and endpoint != "embed":  # one inside this process
        host, _, port = endpoint.rpartition(":")
        with refusing(f"{endpoint} does not answer:", OSError, ValueError, field="--job_endpoint", remedy=remedy):
            socket.create_connection((host, int(port)), timeout=10).close()
    elif not endpoint and runner in _SERVED and _STARTS_ONE.isdisjoint(options.get_all_options(drop_default=True)):
        raise InputError(f"not given, and {runner} needs one", field="--job_endpoint", remedy=remedy)


@contextlib.contextmanager
def outside_of_notebooks() -> Iterator[None]:
    """Makes Beam build and run pipelines as in a script; in a notebook it needs pandas, and keeps temporary folders."""
    asked = interactive_utils.is_in_ipython
    for module in (interactive_utils, beam.pipeline):
        module.is_in_ipython = lambda: False
    try:
        yield
    finally:
        interactive_utils.is_in_ipython = beam.pipeline.is_in_ipython = asked


def run(pipeline: beam.Pipeline) -> None:
    """Runs a pipeline to its end.

    The main thread only waits, in short steps: Python misses Ctrl-C while a thread waits for a lock, as Beam's does.
    Ctrl-C kills the workers, which ignore it themselves. A pipeline without workers runs in this thread.
    """
    has_workers = isinstance(getattr(pipeline.runner, "_default_environment", None), SubprocessSDKEnvironment)
    if not has_workers or threading.current_thread() is not threading.main_thread():
        _run(pipeline)
        return
    errors: list[BaseException] = []

    def run_in_thread() -> None:
        try:
            _run(pipeline)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            errors.append(error)

    thread = threading.Thread(target=run_in_thread, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
    except BaseException:
        for process in list(_running):
            process.kill()
        thread.join(_SECONDS_TO_END)
        raise
    if errors:
        raise errors[0]


def _run(pipeline: beam.Pipeline) -> None:
    default = threading.excepthook
    # The threads that read from a dead worker print nothing: it is reported once.
    threading.excepthook = lambda ended: None if isinstance(ended.exc_value, grpc.RpcError) else default(ended)
    try:
        pipeline.run().wait_until_finish()
    finally:
        threading.excepthook = default


class _LocalWorker(GrpcWorkerHandler):
    """A worker process of the FnApiRunner. If it dies, all that the runner has asked of it fails."""

    def __init__(self, _command: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(state, provision_info, grpc_server)
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start_worker(self) -> None:
        variables = {
            "WORKER_ID": self.worker_id,
            "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(self.control_api_service_descriptor()),
            "PIPELINE_OPTIONS": json_format.MessageToJson(self.provision_info.provision_info.pipeline_options),
        }
        self._process = _start(variables)
        _running.add(self._process)
        self._watcher.start()

    def stop_worker(self) -> None:
        self._stopping.set()
        self._watcher.join()
        self._process.join()
        _running.discard(self._process)

    def _watch(self) -> None:
        multiprocessing.connection.wait([self._process.sentinel])
        while not self._stopping.wait(_POLL_SECONDS):
            code = self._process.exitcode
            died = death_of(code, "a worker process") or InputError(
                f"a worker process ended with exit code {code}",
                remedy="see its message above, and run the same command again: finished shards are kept",
            )
            for future in list(self.control_conn._futures_by_id.values()):  # noqa: SLF001 - Beam has no other way
                future.set(beam_fn_api_pb2.InstructionResponse(error=failures.quoted(died)))


WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(_LocalWorker)


def _start(variables: Mapping[str, str]) -> Any:
    """Starts a worker with this environment and more variables; returns its process."""
    chosen = {name: os.environ.get(name, value) for name, value in _SETTINGS.items()}
    inherited = {**chosen, "PYTHONPATH": import_path(), **variables}
    with _starting, _environment(inherited), _no_main_module():
        multiprocessing.set_forkserver_preload([f"{__package__}.worker_imports"])
        process = _CONTEXT.Process(target=worker.run_local, args=(dict(os.environ),), daemon=True)
        process.start()
    return process


def end_fork_server() -> None:
    """Ends the process that forks workers, and gives its memory back; the next worker starts another."""
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Keeps multiprocessing from running the user's script again in each worker."""
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
