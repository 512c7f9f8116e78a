"""Rules from robots.txt (RFC 9309) for the hosts of one site, parsed by protego."""

import dataclasses
from collections.abc import Callable
from urllib.parse import urlsplit

from protego import Protego

from ...formats.records import Failure, Rejection
from .fetch import Fetched, FetchError

_MAX_BYTES = 512 << 10  # the RFC requires at least 500 KiB
_NO_RULES = ""


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of a host for one user agent.

    Attributes:
      crawl_delay: seconds between requests; 0 if not stated.
      sitemaps: URLs of sitemaps, as written.
    """

    crawl_delay: float
    sitemaps: tuple[str, ...]
    _parsed: Protego
    _user_agent: str

    def allow(self, url: str) -> bool:
        """Returns whether the user agent may fetch a URL."""
        return bool(self._parsed.can_fetch(url, self._user_agent))


def parse_rules(body: bytes, user_agent: str) -> Rules:
    """Returns the rules of a robots.txt; invalid lines, and content after the first 512 KiB, are skipped."""
    parsed = Protego.parse(body[:_MAX_BYTES].decode("utf-8", "replace").removeprefix("\ufeff"))
    delay = float(parsed.crawl_delay(user_agent) or 0)
    return Rules(max(0.0, delay), tuple(parsed.sitemaps), parsed, user_agent)  # "nan", too, counts as no delay


class Robots:
    """The rules of each host; every robots.txt is fetched once.

    Args:
      fetch: fetches the URL of a robots.txt, with pauses and retries; raises :class:`FetchError`.
      user_agent: name that is looked up in robots.txt.
    """

    def __init__(self, fetch: Callable[[str], Fetched], user_agent: str) -> None:
        self._fetch = fetch
        self._user_agent = user_agent
        self._known: dict[str, Rules | FetchError] = {}

    def of(self, url: str) -> Rules:
        """Returns the rules for a URL.

        A host that answers 4xx has no rules and allows everything. A host without an answer (5xx, 429, no connection)
        allows nothing (RFC 9309, 2.3.1.4): its URLs fail as ``robots_unavailable``, and a later crawl can fetch them.

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

    def _read(self, url: str) -> Rules | FetchError:
        try:
            return parse_rules(self._fetch(url).body, self._user_agent)
        except FetchError as error:
            if 400 <= error.status < 500 and error.status != 429:
                return parse_rules(_NO_RULES.encode(), self._user_agent)
            if isinstance(error.reason, Rejection):
                return error
            return FetchError(Failure.ROBOTS_UNAVAILABLE, f"{url}: {error}")
