"""A limit of time for the work on one record, in the thread that does it."""

import contextlib
import ctypes
import functools
import os
import threading
import time
from collections.abc import Iterator
from typing import Final

_LOOK_SECONDS: Final = 1.0
_deadlines: Final = dict[int, float]()  # by thread
_lock: Final = threading.Lock()


class RecordTimeoutError(Exception):
    """The work on a record took too long."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends what is inside about a second after a time; one limit in a thread at a time.

    It ends between two steps of Python: a call of a C library is not cut short.

    Raises:
      RecordTimeoutError: in this thread.
    """
    _watch(os.getpid())
    thread = threading.get_ident()
    with _lock:
        _deadlines[thread] = time.monotonic() + seconds
    try:
        yield
    finally:
        with _lock:
            is_ended = _deadlines.pop(thread, None) is None
        if is_ended:
            _raise_in(thread, None)  # it may wait to be raised


@functools.cache
def _watch(_process: int) -> None:
    """Starts the thread that looks at the deadlines; a process that was forked has none."""

    def watch() -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            _look(time.monotonic())

    threading.Thread(target=watch, name="newsembed time limits", daemon=True).start()


def _look(now: float) -> None:
    with _lock:
        for thread in [thread for thread, end in _deadlines.items() if now >= end]:
            del _deadlines[thread]
            _raise_in(thread, RecordTimeoutError)


def _raise_in(thread: int, error: type[Exception] | None) -> None:
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
