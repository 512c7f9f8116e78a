"""Decides whether and when a failed request is retried, and when a host is given up."""

import collections

from ...formats.records import Failure
from .fetch import FetchError
from .options import CrawlOptions
from .rate_limits import backoff

# Consecutive failures of one host before it is given up.
_FAILURES_BEFORE_GIVING_UP = 10


class RetryPolicy:
    """The retries of the hosts of one site.

    Args:
      options: number of attempts, pauses and their limit.
      tallies: counter in which each retry is counted as "retries".
    """

    def __init__(self, options: CrawlOptions, tallies: collections.Counter[str]) -> None:
        self._options = options
        self._tallies = tallies
        self._given_up: dict[str, str] = {}
        self._failures: collections.Counter[str] = collections.Counter()

    def check(self, host: str) -> None:
        """Checks that a host may receive a request.

        Raises:
          FetchError: ``host_down``, if the host was given up.
        """
        if reason := self._given_up.get(host):
            raise FetchError(Failure.HOST_DOWN, reason)

    def check_delay(self, crawl_delay_seconds: float) -> None:
        """Checks that a crawl-delay is within the limit.

        Raises:
          FetchError: ``host_down``, if it is longer: a thousand pages would take weeks.
        """
        longest = self._options.max_wait_seconds
        if crawl_delay_seconds > longest:
            asked = f"robots.txt asks for {crawl_delay_seconds:g} s between requests"
            raise FetchError(Failure.HOST_DOWN, f"{asked}, more than --max_wait_seconds={longest:g}")

    def record_success(self, host: str) -> None:
        """Records a response, which resets the host's count of consecutive failures."""
        self._failures[host] = 0

    def record_failure(self, error: FetchError, host: str) -> None:
        """Records a failure; after ten consecutive transient failures the host is given up."""
        self._failures[host] = self._failures[host] + 1 if error.retry else 0
        if self._failures[host] >= _FAILURES_BEFORE_GIVING_UP:
            self._given_up.setdefault(host, f"{self._failures[host]} requests in a row failed, the last with {error}")

    def delay_before_retry(self, error: FetchError, host: str, attempt: int) -> float | None:
        """Returns the seconds to wait before another attempt; ``None`` if there is no other attempt.

        A host whose Retry-After exceeds the limit is given up.

        Args:
          error: the failure of the last attempt.
          host: host of the URL.
          attempt: number of attempts so far, from 1.
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
