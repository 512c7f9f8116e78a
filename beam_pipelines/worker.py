"""A local worker process of the FnApiRunner: Beam's own, with errors only on the terminal and one thread a library."""

import logging
import os
import signal
import sys


def main() -> None:
    """Runs the worker until the runner is done with it."""
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # Control-C ends it at once and without a traceback: the runner's process has the word
    # There is a process for each core already.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Set before Beam is imported: its import logs, which would put a handler for everything on the terminal.
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.ERROR)
    logging.getLogger().addHandler(handler)

    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
