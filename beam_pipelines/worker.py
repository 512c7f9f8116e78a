"""A local worker process of the FnApiRunner: Beam's worker, printing only errors, with one thread per library."""

import logging
import os
import signal
import sys
from typing import TextIO

from .failures import VERBOSE, WithoutTracebacks
from .parent import PARENT, end_with


def prepare() -> None:
    """Sets what the libraries read when they are imported."""
    # There is already one process per core.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # The handler is set before Beam is imported: Beam logs on import, which would install a handler for all levels.
    root = logging.getLogger()
    if not any(isinstance(handler, _Errors) for handler in root.handlers):
        root.addHandler(_Errors())


class _Errors(logging.StreamHandler[TextIO]):
    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setLevel(logging.ERROR)
        self.addFilter(WithoutTracebacks())


def main() -> None:
    """Runs the worker until the runner ends it."""
    if parent := os.environ.get(PARENT):
        end_with(int(parent))
    # Control-C ends the worker at once and without a traceback; the runner's process reports it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prepare()

    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    if not os.environ.get(VERBOSE):
        # Beam also prints the traceback of an error, which it returns to the runner.
        sdk_worker.print = lambda *_, **__: None
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
