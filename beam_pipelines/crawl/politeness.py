"""When a host may be asked: pauses between requests, robots.txt, retries, and hosts that are given up."""

import collections
import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from protego import Protego

from ...formats.records import Failure, Rejection
from .fetch import Fetched, FetchError
from .options import CrawlOptions

_FAILURES_BEFORE_GIVING_UP = 10  # of one host, in a row
_MAX_ROBOTS_BYTES = 512 << 10  # RFC 9309 requires at least 500 KiB
_GROUP = re.compile(r"^([ \t]*user-agent[ \t]*:[ \t]*)(\*|[\w-]+)[^\n#]*", re.IGNORECASE | re.MULTILINE)


def host_of(url: str) -> str:
    """Returns the host of a URL in lower case, with its port if it has one; "" for a URL without a host."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


class RateLimiter:
    """Limits concurrent requests, and spaces requests to the same host, also when several sites send them.

    Args:
      concurrent: maximum number of concurrent requests.
    """

    def __init__(self, concurrent: int) -> None:
        self._slots = threading.BoundedSemaphore(concurrent)
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}  # by host, when it may be asked

    @contextlib.contextmanager
    def request(self, host: str, pause_seconds: float) -> Iterator[None]:
        """Waits for the host's turn and a free slot; returns a context that holds the slot.

        Args:
          host: host of the request.
          pause_seconds: from the beginning of this request to the next one to the host.
        """
        while True:
            while (seconds := self._next.get(host, 0.0) - time.monotonic()) > 0:
                time.sleep(seconds)
            with self._slots:
                with self._lock:  # another request to the host may have begun since, and a pause may have been set
                    now = time.monotonic()
                    is_due = self._next.get(host, 0.0) <= now
                    if is_due:
                        self._next[host] = now + pause_seconds
                if is_due:
                    yield
                    return

    def pause(self, host: str, seconds: float) -> None:
        """Delays requests to a host; a longer pause that is already set stays."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)


_limiters: dict[int, RateLimiter] = {}
_limiters_lock = threading.Lock()


def shared_limiter(concurrent: int) -> RateLimiter:
    """Returns the limiter that all threads of this process share."""
    with _limiters_lock:  # with functools.cache two concurrent threads could each create one
        return _limiters.setdefault(concurrent, RateLimiter(concurrent))


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

        The pause doubles with each attempt. Half of it is random, so that many clients do not return at the same time.
        It is at least the pause that the server requests; a host that requests more than the limit is given up.

        Args:
          error: the failure of the last attempt.
          host: host of the URL.
          attempt: number of attempts so far, from 1.
        """
        if not error.retry:
            return None
        longest, asked = self._options.max_wait_seconds, error.retry_after or 0.0
        if asked > longest:
            said = f"asks with {error.status} to wait {asked:.0f} s"
            self._given_up.setdefault(host, f"{said}, more than --max_wait_seconds={longest:g}")
        if host in self._given_up or attempt >= self._options.max_attempts:
            return None
        self._tallies["retries"] += 1
        own = min(longest, self._options.backoff_seconds * 2 ** (attempt - 1))
        return max(own * random.uniform(0.5, 1.0), asked)


class Robots:
    """The rules of each host; every robots.txt is fetched once.

    Args:
      fetch: fetches the URL of a robots.txt, with pauses and retries; raises :class:`FetchError`.
      options: the name that is looked up in robots.txt, and the longest crawl-delay.
    """

    def __init__(self, fetch: Callable[[str], Fetched], options: CrawlOptions) -> None:
        self._fetch = fetch
        self._options = options
        self._known: dict[str, Protego | FetchError] = {}
        self._token = re.match(r"[\w-]*", options.user_agent)[0].lower()  # type: ignore[index]  # RFC 9309, 2.2.1

    def of(self, url: str) -> Protego:
        """Returns the rules for a URL; invalid lines, and content after the first 512 KiB, are skipped.

        A host that answers 4xx, or with more redirects than are followed, has no rules and allows everything. A host
        without an answer (5xx, 429, no connection) allows nothing (RFC 9309, 2.3.1.4): its URLs fail as
        ``robots_unavailable``, and a later crawl can fetch them.

        Raises:
          FetchError: ``robots_unavailable``; ``private_address`` if the host has a private address.
        """
        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._known:
            self._known[place] = self._read(f"{place}/robots.txt")
        found = self._known[place]
        if isinstance(found, FetchError):
            raise found
        return found

    def delay_for(self, url: str) -> float:
        """Returns the seconds between requests to the host of a URL, if it may be fetched.

        Raises:
          FetchError: as :meth:`of`; ``robots_disallowed``; ``host_down`` for a crawl-delay beyond the limit, with which
            a thousand pages would take weeks.
        """
        rules, agent, longest = self.of(url), self._token, self._options.max_wait_seconds
        if not rules.can_fetch(url, agent):
            raise FetchError(Rejection.ROBOTS_DISALLOWED, f"robots.txt disallows {url}")
        delay = max(0.0, float(rules.crawl_delay(agent) or 0))  # "nan", too, counts as no delay
        if delay > longest:
            asked = f"robots.txt asks for {delay:g} s between requests"
            raise FetchError(Failure.HOST_DOWN, f"{asked}, more than --max_wait_seconds={longest:g}")
        return max(self._options.delay_seconds, delay)

    def _read(self, url: str) -> Protego | FetchError:
        try:
            body = self._fetch(url).body[:_MAX_ROBOTS_BYTES]
        except FetchError as error:
            if isinstance(error.reason, Rejection):
                return error
            if error.status == 429 or not 300 <= error.status < 500:  # 300 to 399: redirects without end
                return FetchError(Failure.ROBOTS_UNAVAILABLE, f"{url}: {error}")
            body = b""
        text = body.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
        return Protego.parse(_GROUP.sub(self._own_group, text))

    def _own_group(self, found: re.Match[str]) -> str:
        """The line of a group, with a version left out; Protego would take the group of "news" for "newsembed"."""
        return found[1] + (found[2] if found[2].lower() in ("*", self._token) else "another-crawler")
