"""Whether and when a host is asked again, and when it is given up."""

import collections

from ...formats.records import Failure
from .fetch import FetchError
from .options import CrawlOptions
from .politeness import backoff

_FAILURES_BEFORE_GIVING_UP = 10  # in a row, of one host


class Patience:
    """What the hosts of one site may cost in attempts and time.

    Args:
      options: attempts, pauses and their bound.
      tallies: counts each repeated attempt as "retries".
    """

    def __init__(self, options: CrawlOptions, tallies: collections.Counter[str]) -> None:
        self._options = options
        self._tallies = tallies
        self._given_up: dict[str, str] = {}
        self._failures: collections.Counter[str] = collections.Counter()

    def check(self, host: str) -> None:
        """Lets a request to a host begin.

        Raises:
          FetchError: ``host_down``, if the host was given up.
        """
        if reason := self._given_up.get(host):
            raise FetchError(Failure.HOST_DOWN, reason)

    def check_delay(self, crawl_delay_seconds: float) -> None:
        """Lets a crawl-delay pass that is within the bound.

        Raises:
          FetchError: ``host_down``, if it is longer: a thousand pages would take weeks.
        """
        longest = self._options.max_wait_seconds
        if crawl_delay_seconds > longest:
            asked = f"robots.txt asks for {crawl_delay_seconds:g} s between requests"
            raise FetchError(Failure.HOST_DOWN, f"{asked}, more than --max_wait_seconds={longest:g}")

    def answered(self, host: str) -> None:
        """Notes that a host is well."""
        self._failures[host] = 0

    def note(self, error: FetchError, host: str) -> None:
        """Notes a failure; after ten of the kind that passes, one after the other, the host is given up."""
        self._failures[host] = self._failures[host] + 1 if error.retry else 0
        if self._failures[host] >= _FAILURES_BEFORE_GIVING_UP:
            self._given_up.setdefault(host, f"{self._failures[host]} requests in a row failed, the last with {error}")

    def wait_before(self, error: FetchError, host: str, attempt: int) -> float | None:
        """Seconds to wait before another attempt; ``None`` if there is none.

        A host whose Retry-After asks for more than the bound is given up.
        """
        if not error.retry:
            return None
        longest = self._options.max_wait_seconds
        if error.retry_after is not None and error.retry_after > longest:
            asked = f"asks with {error.status} to wait {error.retry_after:.0f} s"
            self._given_up.setdefault(host, f"{asked}, more than --max_wait_seconds={longest:g}")
        if host in self._given_up or attempt >= self._options.max_attempts:
            return None
        self._tallies["retries"] += 1
        return backoff(attempt, self._options.backoff_seconds, longest, error.retry_after)
