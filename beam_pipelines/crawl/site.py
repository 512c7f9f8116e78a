"""Crawls one site: a polite breadth-first walk from its seeds."""

import collections
import contextlib
import dataclasses
import datetime
import heapq
import itertools
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import urldefrag, urlsplit

from ...formats.records import Failure, Rejection
from ...formats.urls import canonical_url
from . import sitemaps
from .fetch import IMAGE_TYPES, PAGE_TYPES, SITEMAP_TYPES, Fetched, Fetcher, FetchError
from .frontier import Frontier, Visit
from .links import Outlinks, outlinks_of
from .options import CrawlOptions, Scope, Sitemaps
from .rate_limits import RateLimiter, host_of
from .retries import RetryPolicy
from .robots import Robots
from .seeds import site_of
from .sitemaps import Entry
from .state import UrlRecord, record_of

# URLs with these endings are skipped: no news page has one.
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
# How links beyond the limit are counted, by kind of response.
_DROPPED = {
    "page": "links_beyond_limit",
    "feed": "feed_entries_beyond_5000",
    "sitemap": "sitemap_entries_beyond_50000",
}
_LISTS = ("feed", "sitemap")  # kinds of responses whose entries may be on other domains


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one scheduled URL: stored (``reason`` is ``None``), rejected or failed."""

    url: str
    reason: Rejection | Failure | None
    detail: str = ""
    kind: str = "page"


class SiteCrawler:
    """Crawls one site. Iterate over :meth:`walk`; the attributes are complete after that.

    Args:
      starts: visits of one registered domain.
      options: see :class:`CrawlOptions`.
      limiter: rate limiter, shared by all sites of a process.
      known: records of earlier crawls, by canonical URL.
      already: canonical URLs that are not scheduled.

    Attributes:
      known: records of earlier crawls and this one, by canonical URL.
      listed: visits for other sites: thumbnails, and entries on other domains in the scope "feeds".
      tallies: number of links that were not followed, by reason, and number of retries.
    """

    def __init__(
        self,
        starts: list[Visit],
        options: CrawlOptions,
        limiter: RateLimiter,
        known: Mapping[str, UrlRecord] | None = None,
        already: AbstractSet[str] = frozenset(),
    ) -> None:
        self.known = dict(known or {})
        self.listed: dict[str, Visit] = {}
        self.tallies: collections.Counter[str] = collections.Counter()
        self._options = options
        self._limiter = limiter
        self._domain = site_of(starts[0].url)
        self._hosts = {host_of(start.url).removeprefix("www.") for start in starts}
        self._fetcher = Fetcher(options)
        self._robots = Robots(self._fetch_robots, options.user_agent)
        self._retries = RetryPolicy(options, self.tallies)
        self._frontier = Frontier()
        self._later: list[tuple[float, int, Visit]] = []
        self._numbers = itertools.count()
        self._seen = set(already)
        self._started: collections.Counter[str] = collections.Counter()
        self._final_urls: set[str] = set()
        for start in starts:
            is_sitemap = start.kind == "page" and start.depth == 0 and looks_like_sitemap(start.url)
            if not self._schedule(
                dataclasses.replace(start, kind="sitemap") if is_sitemap else start, canonical_url(start.url)
            ):
                self.tallies["listed_again"] += 1

    def walk(self) -> Iterator[tuple[Outcome, Fetched | None]]:
        """Yields the outcome of every scheduled URL, with the response if it is to be stored."""
        with contextlib.closing(self._fetcher):
            while (visit := self._next()) is not None:
                if refusal := self._over_limit(visit):
                    yield Outcome(visit.url, Rejection.PAGE_LIMIT, refusal, visit.kind), None
                    continue
                try:
                    fetched = self._visit(visit)
                except FetchError as error:
                    if not self._try_later(visit, error):
                        self._remember(visit, error)
                        tries = f" ({visit.attempt} attempts)" if visit.attempt > 1 else ""
                        yield Outcome(visit.url, error.reason, error.detail + tries, visit.kind), None
                    continue
                yield Outcome(visit.url, None, "", visit.kind), fetched

    def _next(self) -> Visit | None:
        """Returns the next visit; ``None`` at the end."""
        ready = self._later[0][0] if self._later else None
        if ready is not None and (ready <= time.monotonic() or not self._frontier):
            time.sleep(max(0.0, ready - time.monotonic()))
            return heapq.heappop(self._later)[2]
        return self._frontier.pop() if self._frontier else None

    def _over_limit(self, visit: Visit) -> str:
        limit = {"page": self._options.max_pages_per_site, "sitemap": self._options.max_sitemaps_per_site}.get(
            visit.kind
        )
        if limit is None or visit.attempt > 1:
            return ""
        if self._started[visit.kind] >= limit:
            return f"the site's first {limit} {visit.kind}s are kept"
        if visit.kind == "sitemap" and self._started["page"] >= self._options.max_pages_per_site:
            return f"the site's first {self._options.max_pages_per_site} pages are kept"
        self._started[visit.kind] += 1
        return ""

    def _visit(self, visit: Visit) -> Fetched:
        key = canonical_url(visit.url)
        if key in self._final_urls:
            raise FetchError(Rejection.DUPLICATE_URL, "a redirect led here before")
        known = self.known.get(key)
        fetched = self._fetch(visit, self._conditions(visit, known))
        landed = canonical_url(fetched.url)
        earlier = [record for record in (known, self.known.get(landed)) if record is not None]
        if landed in self._final_urls:
            raise FetchError(Rejection.DUPLICATE_URL, f"redirected to {fetched.url}, which was fetched before")
        self._seen.add(landed)
        self._final_urls.add(landed)
        if fetched.status == 304 and known is not None:
            self.known[key] = dataclasses.replace(known, requested=fetched.date.date())
            self._follow(visit, Outlinks(known.kind, known.links or (), known.image))
            raise FetchError(Rejection.NOT_MODIFIED, f"304, as of {known.requested}")
        outlinks = self._outlinks(visit, fetched)
        follows = outlinks.kind == "index" or visit.depth < self._options.max_depth
        record = record_of(fetched, outlinks.kind, outlinks.entries if follows else None, outlinks.image)
        self.known[key] = self.known[landed] = record
        self._follow(visit, outlinks)
        for before in earlier:
            if before.digest == record.digest:
                raise FetchError(Rejection.NOT_MODIFIED, f"the same bytes as of {before.requested}")
        return fetched

    def _remember(self, visit: Visit, error: FetchError) -> None:
        """Records the request for a URL that has no page: the next crawl asks for it again, but after new URLs.

        A URL that failed for a reason that passes, such as a timeout, stays new.
        """
        is_gone = 400 <= error.status < 500 and error.status != 429
        if is_gone or isinstance(error.reason, Rejection):
            key = canonical_url(visit.url)
            known = self.known.get(key, UrlRecord("", "", "", today()))
            self.known[key] = dataclasses.replace(known, requested=today())

    def _conditions(self, visit: Visit, known: UrlRecord | None) -> dict[str, str]:
        """Returns the headers of a conditional request; empty if a 304 would hide links that must be followed."""
        follows = known is not None and (known.kind == "index" or visit.depth < self._options.max_depth)
        if known is None or (visit.kind != "image" and follows and known.links is None):
            return {}
        return known.conditions()

    def _outlinks(self, visit: Visit, fetched: Fetched) -> Outlinks:
        if visit.kind == "image":
            return Outlinks("image")
        try:
            return outlinks_of(
                fetched, text_sitemap=visit.kind == "sitemap", max_links=self._options.max_links_per_page
            )
        except Exception:  # noqa: BLE001 - parsers raise many types; the response is stored, and extract reports the error
            self.tallies["unreadable_for_links"] += 1
            return Outlinks("page")

    def _fetch(self, visit: Visit, conditions: Mapping[str, str]) -> Fetched:
        self._retries.check(host_of(visit.url))
        self._schedule_sitemaps(visit)
        is_image, is_sitemap = visit.kind == "image", visit.kind == "sitemap"
        fetched = self._fetcher.fetch(
            visit.url,
            lambda url: self._hop(visit, url),
            types=IMAGE_TYPES if is_image else SITEMAP_TYPES if is_sitemap else PAGE_TYPES,
            conditions=conditions,
            max_bytes=max(sitemaps.MAX_BYTES, self._options.max_bytes) if is_sitemap else None,
        )
        self._retries.record_success(host_of(visit.url))
        if fetched.status == 200 and is_image and not fetched.content_type:
            raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, "nothing, expected an image")
        return fetched

    @contextlib.contextmanager
    def _hop(self, visit: Visit, url: str) -> Iterator[None]:
        """Checks scope and robots.txt for one hop and waits for its turn; redirects obey the same rules as links.

        Raises:
          FetchError: if the hop is out of scope, disallowed, or on a host that was given up.
        """
        if url != visit.url and visit.kind == "page" and not self._in_scope(url):
            raise FetchError(Rejection.OUT_OF_SCOPE, f"redirected to {url}")
        rules = self._robots.of(url)
        if not rules.allow(url):
            raise FetchError(
                Rejection.ROBOTS_DISALLOWED, "robots.txt" if url == visit.url else f"robots.txt, redirected to {url}"
            )
        self._retries.check_delay(rules.crawl_delay)
        with self._limiter.request(host_of(url), max(self._options.delay_seconds, rules.crawl_delay)):
            yield

    def _fetch_robots(self, url: str) -> Fetched:
        for attempt in itertools.count(1):
            try:
                return self._fetcher.fetch(
                    url, lambda hop: self._limiter.request(host_of(hop), self._options.delay_seconds), types=()
                )
            except FetchError as error:
                wait = self._retries.delay_before_retry(error, host_of(url), attempt)
                if wait is None:
                    raise
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _try_later(self, visit: Visit, error: FetchError) -> bool:
        host = host_of(visit.url)
        self._retries.record_failure(error, host)
        wait = self._retries.delay_before_retry(error, host, visit.attempt)
        if wait is None:
            return False
        if error.status in (429, 503):
            self._limiter.pause(host, wait)  # the whole server is busy, not only this page
        heapq.heappush(
            self._later,
            (time.monotonic() + wait, next(self._numbers), dataclasses.replace(visit, attempt=visit.attempt + 1)),
        )
        return True

    def _schedule_sitemaps(self, visit: Visit) -> None:
        """Schedules the sitemaps listed in robots.txt of a seed's host, also those on other hosts."""
        if self._options.sitemaps is Sitemaps.AUTO and visit.depth == 0 and visit.kind != "image":
            for url in self._robots.of(visit.url).sitemaps:
                self._schedule(Visit(url, 0, "sitemap"), canonical_url(url))

    def _follow(self, visit: Visit, outlinks: Outlinks) -> None:
        if outlinks.image and self._options.fetch_images and visit.kind != "image":
            self._list(Visit(outlinks.image, visit.depth, "image"))
        self.tallies[_DROPPED.get(outlinks.kind, _DROPPED["sitemap"])] += outlinks.dropped
        if outlinks.kind == "index":
            for entry in sitemaps.newest_first(self._within_dates(outlinks)):
                self._schedule(Visit(entry.url, visit.depth, "sitemap"), canonical_url(entry.url))
        elif visit.depth < self._options.max_depth:
            entries = self._within_dates(outlinks)
            for entry in sitemaps.newest_first(entries) if outlinks.kind == "sitemap" else entries:
                self._follow_entry(visit, outlinks.kind, entry)

    def _within_dates(self, outlinks: Outlinks) -> tuple[Entry, ...]:
        if outlinks.kind == "page":
            return outlinks.entries  # dates of links are unknown
        since, until = self._options.since, self._options.until
        kept = tuple(
            entry
            for entry in outlinks.entries
            if sitemaps.in_date_range(entry, since, until, is_index=outlinks.kind == "index")
        )
        self.tallies["entries_outside_dates"] += len(outlinks.entries) - len(kept)
        return kept

    def _follow_entry(self, visit: Visit, kind: str, entry: Entry) -> None:
        found = Visit(entry.url, visit.depth + 1)
        if self._in_scope(entry.url):
            self._schedule(found, _key_if_wanted(found), of_list=kind in _LISTS)
        elif kind in _LISTS and visit.depth == 0 and canonical_url(entry.url):
            if self._options.scope is Scope.FEEDS:
                self._list(found)
            else:
                self.tallies["entries_elsewhere"] += 1

    def _in_scope(self, url: str) -> bool:
        if self._options.scope is Scope.HOST:
            return host_of(url).removeprefix("www.") in self._hosts
        return site_of(url) == self._domain

    def _schedule(self, visit: Visit, key: str, *, of_list: bool = False) -> bool:
        if not key or key in self._seen:
            return False
        self._seen.add(key)
        last = of_list or visit.depth >= self._options.max_depth
        # A seed lists what is new also where no links of its links are followed.
        known = self.known.get(key) if visit.depth else None
        self._frontier.add(dataclasses.replace(visit, url=urldefrag(visit.url.strip()).url), known, last=last)
        return True

    def _list(self, visit: Visit) -> None:
        key = _key_if_wanted(visit)
        if key:
            self.listed.setdefault(key, dataclasses.replace(visit, url=urldefrag(visit.url.strip()).url))


def looks_like_sitemap(url: str) -> bool:
    """Returns whether a seed is fetched as a sitemap, which may be large, gzipped or plain text; its bytes decide."""
    name = urlsplit(url).path.rpartition("/")[2].lower()
    return "sitemap" in name or name.endswith(".xml.gz")


def today() -> datetime.date:
    """Returns the current day in UTC."""
    return datetime.datetime.now(datetime.UTC).date()


def _key_if_wanted(visit: Visit) -> str:
    """Returns the canonical URL of a visit, or "" if the URL is not worth a request."""
    key = canonical_url(visit.url)
    return "" if len(visit.url) > _MAX_URL_CHARACTERS or key.endswith(_SKIPPED_ENDINGS) else key
