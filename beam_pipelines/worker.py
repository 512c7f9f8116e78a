"""Worker processes of Beam, which print only errors and end with the process that started them.

Engines that start their workers themselves, Flink and Spark, run ``newsembed-worker`` with
``--environment_type=PROCESS --environment_config='{"command": "newsembed-worker"}'``; it must be installed on each
machine of the cluster, with the jobs' libraries. In place of Beam's container, it asks the engine for the options of
the pipeline and for the addresses to connect to (Beam's provision service).

Beam's worker pool (``--environment_type=EXTERNAL``) is not for several task managers on one machine: they number their
workers alike, and the pool stops the worker of another one.
"""

import argparse
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from .failures import VERBOSE, WithoutTracebacks

PARENT: Final = "NEWSEMBED_PARENT"  # in the environment of a child: the pid of the process to end with
_POLL_SECONDS: Final = 1.0
# Without the option, ``-m`` and ``-c`` put the working folder first on the path: a file there with the name of a
# library, such as proto.py, would take its place.
PYTHON: Final = (sys.executable, "-P")


def import_path() -> str:
    """The value of PYTHONPATH that gives a child the folders of this process, in their order.

    The working folder is among them only if this process imports from it.
    """
    return os.pathsep.join(folder or os.getcwd() for folder in sys.path)


def child_environment() -> dict[str, str]:
    """The environment of this process with :func:`import_path`."""
    return {**os.environ, "PYTHONPATH": import_path()}


def end_with(pid: int, end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Calls ``end`` from a thread when another process has ended, at most a second later."""

    def wait() -> None:
        while _is_alive(pid):
            time.sleep(_POLL_SECONDS)
        end()

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()


def end_with_parent() -> None:
    """Ends this process when its parent ends, even if that is killed."""
    end_with(os.getppid())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it lives, and belongs to another user
    return True


_ENDPOINTS: Final = {
    "LOGGING_API_SERVICE_DESCRIPTOR": "logging_endpoint",
    "CONTROL_API_SERVICE_DESCRIPTOR": "control_endpoint",
    "STATUS_API_SERVICE_DESCRIPTOR": "status_endpoint",
}
_SECONDS: Final = 60.0


def prepare() -> None:
    """Sets what Beam, TensorFlow and NumPy read when they are imported, as `launch.cli.prepare_libraries` does.

    Beam and TensorFlow log then, which would install other handlers.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    root = logging.getLogger()
    if not any(isinstance(handler, _Errors) for handler in root.handlers):
        root.addHandler(_Errors())


class _Errors(logging.StreamHandler[TextIO]):
    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setLevel(logging.ERROR)
        self.addFilter(WithoutTracebacks())


def run_local(environment: Mapping[str, str]) -> None:
    """Runs a local worker until the runner or its process ends it.

    Args:
      environment: all variables of the process, also those that Beam's worker reads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner's process gets it, too, and ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # a collection would copy the pages that all workers share
    os.environ.clear()
    os.environ.update(environment)
    serve()


def serve() -> None:
    """Runs Beam's worker, as the environment says."""
    prepare()
    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    if not os.environ.get(VERBOSE):
        # Beam also prints the traceback of an error, which it returns to the runner.
        sdk_worker.print = lambda *_, **__: None
    sdk_worker_main.main([])


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a worker until the engine ends it.

    Args:
      arguments: of the command; the engine gives them.
    """
    parser = argparse.ArgumentParser(description="A worker process of Beam; Flink and Spark start it.")
    parser.add_argument("--id", required=True, help="of the worker, as the engine counts them")
    parser.add_argument("--provision_endpoint", required=True, metavar="HOST:PORT", help="where the engine answers")
    known, _ = parser.parse_known_args(arguments)  # engines give more, such as the endpoints that are also provided
    os.environ.update(environment_of(known.id, provided(known.id, known.provision_endpoint)))
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    serve()


def provided(worker_id: str, endpoint: str) -> Any:
    """What the engine tells a worker, Beam's ``ProvisionInfo``, from its provision service."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2 as messages
    from apache_beam.portability.api import beam_provision_api_pb2_grpc as services

    with grpc.insecure_channel(endpoint) as channel:
        stub = services.ProvisionServiceStub(channel)
        request = messages.GetProvisionInfoRequest()
        return stub.GetProvisionInfo(request, _SECONDS, metadata=[("worker_id", worker_id)], wait_for_ready=True).info


def environment_of(worker_id: str, info: Any) -> Mapping[str, str]:
    """The environment variables that Beam's worker reads, from Beam's ``ProvisionInfo``."""
    from google.protobuf import json_format, text_format

    found = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    for variable, endpoint in _ENDPOINTS.items():
        if info.HasField(endpoint):
            found[variable] = text_format.MessageToString(getattr(info, endpoint), as_one_line=True)
    return found


if __name__ == "__main__":
    main()
