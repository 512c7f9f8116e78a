"""Crawling one site: a polite breadth-first walk from its seeds."""

import collections
import contextlib
import dataclasses
import datetime
import heapq
import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import urldefrag, urlsplit

from ...formats.records import Failure, Rejection
from ..extract.urls import canonical_url
from . import sitemaps
from .fetch import IMAGE_TYPES, PAGE_TYPES, SITEMAP_TYPES, Fetched, Fetcher, FetchError
from .links import Leads, leads_of
from .options import CrawlOptions, Scope, Sitemaps
from .patience import Patience
from .politeness import Gate, host_of
from .robots import Robots
from .seeds import site_of
from .sitemaps import Entry
from .state import Known, digest_of, known_of

# Not worth a request: no page of news ends like this.
_SKIPPED_ENDINGS = (
    ".pdf",
    ".zip",
    ".mp4",
    ".mp3",
    ".css",
    ".js",
    ".exe",
    ".doc",
    ".docx",
    ".xls",
    ".ppt",
    ".avi",
    ".mov",
    ".woff",
    ".woff2",
    ".ico",
    ".svg",
)
_MAX_URL_CHARACTERS = 2_000
_LISTS = ("feed", "sitemap")  # kinds of responses whose entries may lie on other domains


@dataclasses.dataclass(frozen=True)
class Visit:
    """A URL to fetch: its distance from a seed, what it should be ("page", "sitemap", "image"), and the attempt, from 1."""

    url: str
    depth: int = 0
    kind: str = "page"
    attempt: int = 1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one scheduled URL: stored (``reason`` None), rejected or failed."""

    url: str
    reason: Rejection | Failure | None
    detail: str = ""
    kind: str = "page"


class SiteCrawler:
    """Walks one site. Iterate over :meth:`walk`; the attributes are complete after it.

    Args:
      starts: visits of one registered domain.
      options: see :class:`CrawlOptions`.
      gate: lets requests start; shared by all sites of a process.
      known: what earlier crawls know of URLs, by canonical URL.
      already: canonical URLs that are not to be scheduled.

    Attributes:
      known: the same after this crawl.
      listed: visits for others: thumbnails, and, in the scope "feeds", entries on other domains.
      tallies: links that were not followed, by reason, and attempts that were repeated.
    """

    def __init__(
        self,
        starts: list[Visit],
        options: CrawlOptions,
        gate: Gate,
        known: Mapping[str, Known] | None = None,
        already: AbstractSet[str] = frozenset(),
    ) -> None:
        self.known = dict(known or {})
        self.listed: dict[str, Visit] = {}
        self.tallies: collections.Counter[str] = collections.Counter()
        self._options = options
        self._gate = gate
        self._domain = site_of(starts[0].url)
        self._hosts = {host_of(start.url).removeprefix("www.") for start in starts}
        self._fetcher = Fetcher(options)
        self._robots = Robots(self._fetch_robots, options.user_agent)
        self._patience = Patience(options, self.tallies)
        self._pages: deque[Visit] = deque()
        self._sitemaps: deque[Visit] = deque()
        self._later: list[tuple[float, int, Visit]] = []
        self._numbers = itertools.count()
        self._seen = set(already)
        self._begun: collections.Counter[str] = collections.Counter()
        self._landed: set[str] = set()
        for start in starts:
            is_sitemap = start.kind == "page" and start.depth == 0 and looks_like_sitemap(start.url)
            if not self._schedule(
                dataclasses.replace(start, kind="sitemap") if is_sitemap else start, canonical_url(start.url)
            ):
                self.tallies["listed_again"] += 1

    def walk(self) -> Iterator[tuple[Outcome, Fetched | None]]:
        """Every scheduled URL with its outcome, and the response where there is one to keep."""
        with contextlib.closing(self._fetcher):
            while (visit := self._next()) is not None:
                if refusal := self._over_limit(visit):
                    yield Outcome(visit.url, Rejection.PAGE_LIMIT, refusal, visit.kind), None
                    continue
                try:
                    fetched = self._visit(visit)
                except FetchError as error:
                    if not self._try_later(visit, error):
                        tries = f" ({visit.attempt} attempts)" if visit.attempt > 1 else ""
                        yield Outcome(visit.url, error.reason, error.detail + tries, visit.kind), None
                    continue
                yield Outcome(visit.url, None, "", visit.kind), fetched

    def _next(self) -> Visit | None:
        """Pages first, then a sitemap, so that the pages of one are fetched before the next is read: memory is that of one sitemap."""
        ready = self._later[0][0] if self._later else None
        if ready is not None and (ready <= time.monotonic() or not (self._pages or self._sitemaps)):
            time.sleep(max(0.0, ready - time.monotonic()))
            return heapq.heappop(self._later)[2]
        queue = self._pages or self._sitemaps
        return queue.popleft() if queue else None

    def _over_limit(self, visit: Visit) -> str:
        limit = {"page": self._options.max_pages_per_site, "sitemap": self._options.max_sitemaps_per_site}.get(
            visit.kind
        )
        if limit is None or visit.attempt > 1:
            return ""
        if self._begun[visit.kind] >= limit:
            return f"the site's first {limit} {visit.kind}s are kept"
        if visit.kind == "sitemap" and self._begun["page"] >= self._options.max_pages_per_site:
            return f"the site's first {self._options.max_pages_per_site} pages are kept"
        self._begun[visit.kind] += 1
        return ""

    def _visit(self, visit: Visit) -> Fetched:
        key = canonical_url(visit.url)
        if key in self._landed:
            raise FetchError(Rejection.DUPLICATE_URL, "a redirect led here before")
        known = self.known.get(key)
        fetched = self._fetch(visit, self._conditions(visit, known))
        landed = canonical_url(fetched.url)
        if landed in self._landed:
            raise FetchError(Rejection.DUPLICATE_URL, f"redirected to {fetched.url}, which was fetched before")
        self._seen.add(landed)
        self._landed.add(landed)
        if fetched.status == 304 and known is not None:
            self.known[key] = dataclasses.replace(known, asked=fetched.date.date())
            self._follow(visit, Leads(known.kind, known.links or (), known.image))
            raise FetchError(Rejection.NOT_MODIFIED, f"304, as of {known.asked}")
        leads = self._leads(visit, fetched)
        follows = leads.kind == "index" or visit.depth < self._options.max_depth
        self.known[key] = known_of(fetched, leads.kind, leads.entries if follows else None, leads.image)
        self._follow(visit, leads)
        if known is not None and known.digest == digest_of(fetched):
            raise FetchError(Rejection.NOT_MODIFIED, f"the same bytes as of {known.asked}")
        return fetched

    def _conditions(self, visit: Visit, known: Known | None) -> dict[str, str]:
        """Headers of a conditional request, where a 304 would leave nothing open: the links of a page that is followed must be known."""
        follows = known is not None and (known.kind == "index" or visit.depth < self._options.max_depth)
        if known is None or (visit.kind != "image" and follows and known.links is None):
            return {}
        return known.conditions()

    def _leads(self, visit: Visit, fetched: Fetched) -> Leads:
        if visit.kind == "image":
            return Leads("image")
        try:
            return leads_of(fetched, text_sitemap=visit.kind == "sitemap")
        except Exception:  # noqa: BLE001 - parsers of strangers' bytes raise many kinds; the response is kept, and extract says what is wrong
            self.tallies["unreadable_for_links"] += 1
            return Leads("page")

    def _fetch(self, visit: Visit, conditions: Mapping[str, str]) -> Fetched:
        self._patience.check(host_of(visit.url))
        self._name_sitemaps(visit)
        is_image, is_sitemap = visit.kind == "image", visit.kind == "sitemap"
        fetched = self._fetcher.fetch(
            visit.url,
            lambda url: self._hop(visit, url),
            types=IMAGE_TYPES if is_image else SITEMAP_TYPES if is_sitemap else PAGE_TYPES,
            conditions=conditions,
            max_bytes=max(sitemaps.MAX_BYTES, self._options.max_bytes) if is_sitemap else None,
        )
        self._patience.answered(host_of(visit.url))
        if fetched.status == 200 and is_image and not fetched.content_type:
            raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, "nothing, expected an image")
        return fetched

    @contextlib.contextmanager
    def _hop(self, visit: Visit, url: str) -> Iterator[None]:
        """A redirect leads nowhere that a link could not, and waits its turn like any request."""
        if url != visit.url and visit.kind == "page" and not self._in_scope(url):
            raise FetchError(Rejection.OUT_OF_SCOPE, f"redirected to {url}")
        rules = self._robots.of(url)
        if not rules.allow(url):
            raise FetchError(
                Rejection.ROBOTS_DISALLOWED, "robots.txt" if url == visit.url else f"robots.txt, redirected to {url}"
            )
        self._patience.check_delay(rules.crawl_delay)
        with self._gate.request(host_of(url), max(self._options.delay_seconds, rules.crawl_delay)):
            yield

    def _fetch_robots(self, url: str) -> Fetched:
        for attempt in itertools.count(1):
            try:
                return self._fetcher.fetch(
                    url, lambda hop: self._gate.request(host_of(hop), self._options.delay_seconds), types=()
                )
            except FetchError as error:
                wait = self._patience.wait_before(error, host_of(url), attempt)
                if wait is None:
                    raise
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _try_later(self, visit: Visit, error: FetchError) -> bool:
        host = host_of(visit.url)
        self._patience.note(error, host)
        wait = self._patience.wait_before(error, host, visit.attempt)
        if wait is None:
            return False
        if error.status in (429, 503):
            self._gate.pause(host, wait)  # the server is busy, not the page
        heapq.heappush(
            self._later,
            (time.monotonic() + wait, next(self._numbers), dataclasses.replace(visit, attempt=visit.attempt + 1)),
        )
        return True

    def _name_sitemaps(self, visit: Visit) -> None:
        """Schedules the sitemaps that robots.txt of a seed's host names; the site's owner vouches for those on other hosts."""
        if self._options.sitemaps is Sitemaps.AUTO and visit.depth == 0 and visit.kind != "image":
            for url in self._robots.of(visit.url).sitemaps:
                self._schedule(Visit(url, 0, "sitemap"), canonical_url(url))

    def _follow(self, visit: Visit, leads: Leads) -> None:
        if leads.image and self._options.fetch_images and visit.kind != "image":
            self._list(Visit(leads.image, visit.depth, "image"))
        self.tallies["sitemap_entries_beyond_50000"] += leads.dropped
        if leads.kind == "index":
            for entry in sitemaps.newest_first(self._within_dates(leads)):
                self._schedule(Visit(entry.url, visit.depth, "sitemap"), canonical_url(entry.url))
        elif visit.depth < self._options.max_depth:
            entries = self._within_dates(leads)
            for entry in sitemaps.newest_first(entries) if leads.kind == "sitemap" else entries:
                self._follow_entry(visit, leads.kind, entry)

    def _within_dates(self, leads: Leads) -> tuple[Entry, ...]:
        if leads.kind == "page":
            return leads.entries  # dates of links are unknown
        since, until = self._options.since, self._options.until
        kept = tuple(
            entry for entry in leads.entries if sitemaps.within(entry, since, until, is_index=leads.kind == "index")
        )
        self.tallies["entries_outside_dates"] += len(leads.entries) - len(kept)
        return kept

    def _follow_entry(self, visit: Visit, kind: str, entry: Entry) -> None:
        found = Visit(entry.url, visit.depth + 1)
        if self._in_scope(entry.url):
            self._schedule(found, _worth_a_request(found))
        elif kind in _LISTS and visit.depth == 0 and canonical_url(entry.url):
            if self._options.scope is Scope.FEEDS:
                self._list(found)
            else:
                self.tallies["entries_elsewhere"] += 1

    def _in_scope(self, url: str) -> bool:
        if self._options.scope is Scope.HOST:
            return host_of(url).removeprefix("www.") in self._hosts
        return site_of(url) == self._domain

    def _schedule(self, visit: Visit, key: str) -> bool:
        if not key or key in self._seen:
            return False
        self._seen.add(key)
        queue = self._sitemaps if visit.kind == "sitemap" else self._pages
        queue.append(dataclasses.replace(visit, url=urldefrag(visit.url.strip()).url))
        return True

    def _list(self, visit: Visit) -> None:
        key = _worth_a_request(visit)
        if key:
            self.listed.setdefault(key, dataclasses.replace(visit, url=urldefrag(visit.url.strip()).url))


def looks_like_sitemap(url: str) -> bool:
    """Whether a seed is fetched as a sitemap, which may be gzipped, large, or plain text; what it is, its bytes say."""
    name = urlsplit(url).path.rpartition("/")[2].lower()
    return "sitemap" in name or name.endswith(".xml.gz")


def today() -> datetime.date:
    """The UTC day."""
    return datetime.datetime.now(datetime.UTC).date()


def _worth_a_request(visit: Visit) -> str:
    """The canonical URL of a visit, or "" if it leads to nothing that is kept."""
    key = canonical_url(visit.url)
    return "" if len(visit.url) > _MAX_URL_CHARACTERS or key.endswith(_SKIPPED_ENDINGS) else key
