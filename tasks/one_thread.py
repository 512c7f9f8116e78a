"""Linear algebra on one thread, for results that have the same bits whatever the number of cores."""

import threading
from typing import Any, Final


class _OneThread:
    """Limits BLAS to one thread while a block runs, in whatever thread of this process.

    A worker of Beam runs several bundles in threads of one process, and the limit is that of the process. With
    threadpoolctl alone, a block that ends would lift the limit of one that still computes. So the last block that ends
    lifts it. A library that is loaded inside of a block is limited from the next block on, which may be an inner one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._limits: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        from threadpoolctl import ThreadpoolController

        with self._lock:
            for library in ThreadpoolController().lib_controllers:  # each time: one may have been loaded since the last
                self._limits.append((library, library.num_threads))
                _set(library, 1)
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            while not self._blocks and self._limits:
                _set(*self._limits.pop())


def _set(library: Any, threads: int) -> None:
    """Since 3.8, threadpoolctl obeys the first thread that has set a number, and no other while that one lives."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


ONE_BLAS_THREAD: Final = _OneThread()
