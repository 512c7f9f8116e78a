"""robots.txt of the hosts of one site (RFC 9309), by protego."""

import dataclasses
from collections.abc import Callable
from urllib.parse import urlsplit

from protego import Protego

from ...formats.records import Failure, Rejection
from .fetch import Fetched, FetchError

_MAX_BYTES = 512 << 10  # the RFC asks for 500 KiB at least
_NO_RULES = ""


@dataclasses.dataclass(frozen=True)
class Rules:
    """What a host allows one user agent.

    Attributes:
      crawl_delay: seconds between requests; 0 if not stated.
      sitemaps: URLs, as written.
    """

    crawl_delay: float
    sitemaps: tuple[str, ...]
    _parsed: Protego
    _user_agent: str

    def allow(self, url: str) -> bool:
        return bool(self._parsed.can_fetch(url, self._user_agent))


def parse_rules(body: bytes, user_agent: str) -> Rules:
    """Rules of a robots.txt; lines that are none are skipped, and what lies beyond 512 KiB is."""
    parsed = Protego.parse(body[:_MAX_BYTES].decode("utf-8", "replace").removeprefix("\ufeff"))
    delay = float(parsed.crawl_delay(user_agent) or 0)
    return Rules(delay if delay > 0 else 0.0, tuple(parsed.sitemaps), parsed, user_agent)  # "nan" is no delay


class Robots:
    """Rules of each host, fetched once.

    Args:
      fetch: gets the URL of a robots.txt, politely, with retries; raises :class:`FetchError`.
      user_agent: whose rules they are.
    """

    def __init__(self, fetch: Callable[[str], Fetched], user_agent: str) -> None:
        self._fetch = fetch
        self._user_agent = user_agent
        self._known: dict[str, Rules | FetchError] = {}

    def of(self, url: str) -> Rules:
        """The rules for a URL.

        A host that answers 4xx has none and allows everything. One that cannot answer (5xx, 429, no connection) allows nothing
        (RFC 9309, 2.3.1.4): its URLs fail by that name, and a later crawl can have them.

        Raises:
          FetchError: ``robots_unavailable``; the address's rejection if it is private.
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
