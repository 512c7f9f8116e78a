"""Limits when a request may start: pauses for each host, and a maximum of concurrent requests for the process."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit


class RateLimiter:
    """Limits concurrent requests, and spaces requests to the same host, also when several sites send them.

    Args:
      concurrent: maximum number of concurrent requests.
    """

    def __init__(self, concurrent: int) -> None:
        self._slots = threading.BoundedSemaphore(concurrent)
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    @contextlib.contextmanager
    def request(self, host: str, pause_seconds: float) -> Iterator[None]:
        """Waits for the host's turn and a free slot; returns a context that holds the slot.

        Args:
          host: host of the request.
          pause_seconds: from the beginning of this request to the next one to the host.
        """
        while True:
            self._wait_turn(host)
            with self._slots:
                # Another request to the host may have begun since, and a pause may have been set.
                if self._takes_turn(host, pause_seconds):
                    yield
                    return

    def pause(self, host: str, seconds: float) -> None:
        """Delays requests to a host; a longer pause that is already set stays."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def _wait_turn(self, host: str) -> None:
        while True:
            with self._lock:
                seconds = self._next.get(host, 0.0) - time.monotonic()
            if seconds <= 0:
                return
            time.sleep(seconds)

    def _takes_turn(self, host: str, pause_seconds: float) -> bool:
        with self._lock:
            now = time.monotonic()
            is_due = self._next.get(host, 0.0) <= now
            if is_due and pause_seconds:
                self._next[host] = now + pause_seconds
            return is_due


_limiters: dict[int, RateLimiter] = {}
_limiters_lock = threading.Lock()


def shared_limiter(concurrent: int) -> RateLimiter:
    """Returns the limiter that all threads of this process share."""
    with _limiters_lock:  # with functools.cache two concurrent threads could each create one
        return _limiters.setdefault(concurrent, RateLimiter(concurrent))


def backoff(attempt: int, base_seconds: float, longest_seconds: float, asked_seconds: float | None = None) -> float:
    """Returns the seconds to wait before the next attempt.

    The pause doubles with each attempt. Half of it is random, so that many clients do not return at the same time. It
    is at least the pause that the server requests.

    Args:
      attempt: number of attempts so far, from 1.
      base_seconds: upper limit of the pause before the second attempt.
      longest_seconds: limit of the computed pause; the caller gives up where the server asks for more.
      asked_seconds: pause that Retry-After requests, or ``None``.
    """
    own = min(longest_seconds, base_seconds * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
    return max(own, asked_seconds or 0.0)


def host_of(url: str) -> str:
    """Returns the host of a URL in lower case, with its port if it has one; "" for a URL without a host."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
