"""When a request may start: hosts' pauses, and a cap on the requests of one worker process."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit


class Gate:
    """Lets requests start: at most so many under way, and each host's at least a pause apart, whichever site asks for it.

    Args:
      concurrent: requests under way at a time.
    """

    def __init__(self, concurrent: int) -> None:
        self._slots = threading.BoundedSemaphore(concurrent)
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    @contextlib.contextmanager
    def request(self, host: str, pause_seconds: float) -> Iterator[None]:
        """Waits for the host's turn and a free place, and holds the place while the context lasts."""
        self._wait_turn(host, pause_seconds)
        with self._slots:
            if pause_seconds:
                self.pause(host, pause_seconds)  # counted from the request, not from the wait for a place
            yield

    def pause(self, host: str, seconds: float) -> None:
        """Keeps the host free of requests for a time."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def _wait_turn(self, host: str, pause_seconds: float) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                start = self._next.get(host, now)
                if start <= now:
                    if pause_seconds:
                        self._next[host] = now + pause_seconds
                    return
            time.sleep(start - now)


_gates: dict[int, Gate] = {}
_gates_lock = threading.Lock()


def gate_of(concurrent: int) -> Gate:
    """The gate of this process: all sites that its threads crawl share one."""
    with _gates_lock:  # functools.cache would let two threads that come at once have one each
        return _gates.setdefault(concurrent, Gate(concurrent))


def backoff(attempt: int, base_seconds: float, longest_seconds: float, asked_seconds: float | None = None) -> float:
    """Seconds before the next attempt: doubling, half of it at random so that many clients do not come back at once, and what the server asks.

    Args:
      attempt: attempts made so far, from 1.
      base_seconds: before the second attempt, on average three quarters of it.
      longest_seconds: bound on our own part; the caller refuses to wait where the server asks for more.
      asked_seconds: of Retry-After.
    """
    own = min(longest_seconds, base_seconds * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
    return max(own, asked_seconds or 0.0)


def host_of(url: str) -> str:
    """The host, and port where it has one, that a URL's requests go to; "" for what has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
