"""A limit of time for the work on one record, in the thread that does it."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class RecordTimeoutError(Exception):
    """The work on a record took too long."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends what is inside after a time, between two steps of Python: a call of a C library is not cut short.

    Raises:
      RecordTimeoutError: in this thread.
    """
    thread, lock, is_over = ctypes.c_ulong(threading.get_ident()), threading.Lock(), threading.Event()

    def stop() -> None:
        with lock:
            if not is_over.is_set():
                _raise_in(thread, ctypes.py_object(RecordTimeoutError))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_over.set()
        timer.cancel()
        _raise_in(thread, None)  # it may wait to be raised
