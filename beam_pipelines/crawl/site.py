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
from urllib.parse import urldefrag

from ...formats.records import Rejection
from ...formats.urls import canonical_url, joined, registered_domain
from .fetch import Fetched, Fetcher, FetchError
from .options import CrawlOptions, Scope, Sitemaps
from .politeness import RateLimiter, RetryPolicy, Robots, host_of
from .sources import MAX_SITEMAP_BYTES, SOURCES, TYPES, Entry, Outlinks, Source, looks_like_sitemap, outlinks_of
from .state import Outcome, UrlRecord, Visit, record_of

# URLs with these endings are skipped: no news page has one.
_SKIPPED = tuple(str.split(".pdf .zip .mp4 .mp3 .css .js .exe .doc .docx .xls .ppt .avi .mov .woff .woff2 .ico .svg"))
_MAX_URL_CHARACTERS = 2_000
_MAX_SITEMAPS = 1_000  # of a site, with their indexes


class Frontier:
    """The visits to come.

    Pages are in breadth-first order. At each depth, those come first that earlier crawls did not fetch, and feeds,
    so that a limit on the pages of a site is not spent on what is known. Pages precede sitemaps: the pages of one
    sitemap are fetched before the next is read, which bounds the memory. Known pages that hardly list anything new come
    last; the one that was requested longest ago is first among them.
    """

    def __init__(self) -> None:
        self._visits: list[tuple[int, int, bool, int, Visit]] = []
        self._numbers = itertools.count()

    def __bool__(self) -> bool:
        """Returns whether a visit is left."""
        return bool(self._visits)

    def add(self, visit: Visit, known: UrlRecord | None = None, *, last: bool = False) -> None:
        """Adds a visit.

        Args:
          visit: the visit.
          known: record of an earlier crawl of its URL.
          last: whether a known page hardly lists anything new: it is an entry of a feed or a sitemap, so an article,
            or its links are not followed.
        """
        is_known = known is not None and not (known.kind in SOURCES and SOURCES[known.kind].is_list)
        if visit.kind == "sitemap":
            place = (1, 0, False)
        elif known is not None and is_known and last:
            place = (2, known.requested.toordinal(), False)
        else:
            place = (0, visit.depth, is_known)
        heapq.heappush(self._visits, (*place, next(self._numbers), visit))

    def pop(self) -> Visit:
        """Removes the next visit and returns it; IndexError if none is left."""
        return heapq.heappop(self._visits)[-1]


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
      redirects: responses on the way to the last outcome, in order, which the caller takes away.
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
        self.redirects: list[Fetched] = []
        self._options = options
        self._limiter = limiter
        self._domain = registered_domain(starts[0].url)
        self._hosts = {host_of(start.url).removeprefix("www.") for start in starts}
        self._fetcher = Fetcher(options)
        self._robots = Robots(self._fetch_robots, options)
        self._retries = RetryPolicy(options, self.tallies)
        self._frontier = Frontier()
        self._later: list[tuple[float, int, Visit]] = []
        self._numbers = itertools.count()
        self._seen = set(already)
        self._started: collections.Counter[str] = collections.Counter()
        self._final_urls: set[str] = set()
        for start in starts:
            is_sitemap = start.kind == "page" and start.depth == 0 and looks_like_sitemap(start.url)
            visit = dataclasses.replace(start, kind="sitemap") if is_sitemap else start
            self.tallies["listed_again"] += not self._schedule(visit, canonical_url(start.url))

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
        ready = self._later[0][0] if self._later else None
        if ready is not None and (ready <= time.monotonic() or not self._frontier):
            time.sleep(max(0.0, ready - time.monotonic()))
            return heapq.heappop(self._later)[2]
        return self._frontier.pop() if self._frontier else None

    def _over_limit(self, visit: Visit) -> str:
        """Returns why a visit is beyond the limits of the site, or ""; counts it otherwise."""
        limits = {"page": self._options.max_pages_per_site, "sitemap": _MAX_SITEMAPS}
        if visit.kind not in limits or visit.attempt > 1:
            return ""
        for kind in dict.fromkeys((visit.kind, "page")):  # no sitemap is read for pages that are not fetched
            if self._started[kind] >= limits[kind]:
                return f"the site's first {limits[kind]} {kind}s are kept"
        self._started[visit.kind] += 1
        return ""

    def _visit(self, visit: Visit) -> Fetched:
        key = canonical_url(visit.url)
        if key in self._final_urls:
            raise FetchError(Rejection.DUPLICATE_URL, "a redirect led here before")
        known = self.known.get(key)
        # Not conditional where a 304 would hide links that must be followed.
        hides = known is None or (known.links is None and self._follows(visit, known.kind))
        fetched = self._fetch(visit, {} if known is None or hides else known.conditions())
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
        links = outlinks.entries if self._follows(visit, outlinks.kind) else None
        record = record_of(fetched, outlinks.kind, links, outlinks.image)
        self.known[key] = self.known[landed] = record
        self._follow(visit, outlinks)
        for before in earlier:
            if before.digest == record.digest:
                raise FetchError(Rejection.NOT_MODIFIED, f"the same bytes as of {before.requested}")
        return fetched

    def _follows(self, visit: Visit, kind: str) -> bool:
        """Returns whether the links of a response of this kind are followed."""
        return kind in SOURCES and (SOURCES[kind].leads_to == "sitemap" or visit.depth < self._options.max_depth)

    def _remember(self, visit: Visit, error: FetchError) -> None:
        """Records the request for a URL that has no page: the next crawl asks for it again, but after new URLs.

        A URL that failed for a reason that passes, such as a timeout, stays new.
        """
        is_gone = 400 <= error.status < 500 and error.status != 429
        if is_gone or isinstance(error.reason, Rejection):
            key, today = canonical_url(visit.url), datetime.datetime.now(datetime.UTC).date()
            self.known[key] = dataclasses.replace(self.known.get(key, UrlRecord("", "", "", today)), requested=today)

    def _outlinks(self, visit: Visit, fetched: Fetched) -> Outlinks:
        if visit.kind == "image":
            return Outlinks("image")
        try:
            return outlinks_of(fetched, visit.kind, self._options.max_links_per_page)
        except Exception:  # noqa: BLE001 - parsers raise many types; the response is stored, and extract reports the error
            self.tallies["unreadable_for_links"] += 1
            return Outlinks("page")

    def _fetch(self, visit: Visit, conditions: Mapping[str, str]) -> Fetched:
        self._retries.check(host_of(visit.url))
        if self._options.sitemaps is Sitemaps.AUTO and visit.depth == 0 and visit.kind != "image":
            for stated in self._robots.of(visit.url).sitemaps:  # of a seed's host; they may be on other hosts
                url = joined(visit.url, stated)
                self._schedule(Visit(url, 0, "sitemap"), canonical_url(url))
        fetched = self._fetcher.fetch(
            visit.url,
            lambda url: self._hop(visit, url),
            types=TYPES[visit.kind],
            conditions=conditions,
            max_bytes=MAX_SITEMAP_BYTES if visit.kind == "sitemap" else 0,
            hops=self.redirects,
        )
        self._retries.record_success(host_of(visit.url))
        if fetched.status == 200 and visit.kind == "image" and fetched.kind != "image":
            kind = fetched.content_type or "nothing"
            raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, f"{kind}, expected an image")
        return fetched

    @contextlib.contextmanager
    def _hop(self, visit: Visit, url: str) -> Iterator[None]:
        """Checks scope and robots.txt for one hop and waits for its turn; redirects obey the same rules as links.

        Raises:
          FetchError: if the hop is out of scope, disallowed, or on a host that was given up.
        """
        if url != visit.url and visit.kind == "page" and not self._in_scope(url):
            raise FetchError(Rejection.OUT_OF_SCOPE, f"redirected to {url}")
        with self._limiter.request(host_of(url), self._robots.delay_for(url)):
            yield

    def _fetch_robots(self, url: str) -> Fetched:
        for attempt in itertools.count(1):
            try:
                return self._fetcher.fetch(
                    url,
                    lambda hop: self._limiter.request(host_of(hop), self._options.delay_seconds),
                    types=(),
                    max_bytes=MAX_SITEMAP_BYTES,
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
        again = dataclasses.replace(visit, attempt=visit.attempt + 1)
        heapq.heappush(self._later, (time.monotonic() + wait, next(self._numbers), again))
        return True

    def _follow(self, visit: Visit, outlinks: Outlinks) -> None:
        if outlinks.image and self._options.fetch_images:
            self._list(Visit(outlinks.image, visit.depth, "image"))
        if outlinks.kind not in SOURCES:
            return
        source = SOURCES[outlinks.kind]
        self.tallies[source.beyond] += outlinks.dropped
        if not self._follows(visit, outlinks.kind):
            return
        chosen = source.chosen(outlinks.entries, self._options.since, self._options.until)
        self.tallies["entries_outside_dates"] += len(outlinks.entries) - len(chosen)
        for entry in chosen:
            if source.leads_to == "sitemap":
                self._schedule(Visit(entry.url, visit.depth, "sitemap"), canonical_url(entry.url))
            else:
                self._follow_entry(visit, source, entry)

    def _follow_entry(self, visit: Visit, source: Source, entry: Entry) -> None:
        """Schedules an entry; what a list has and nobody will fetch is counted."""
        found = Visit(entry.url, visit.depth + 1)
        key = _key_if_wanted(found)
        if not key:
            self.tallies["entries_no_page"] += source.is_list
        elif self._in_scope(entry.url):
            self._schedule(found, key, of_list=source.is_list)
        elif source.is_list and visit.depth == 0 and self._options.scope is Scope.FEEDS:
            self._list(found)
        else:
            self.tallies["entries_elsewhere"] += source.is_list

    def _in_scope(self, url: str) -> bool:
        if self._options.scope is Scope.HOST:
            return host_of(url).removeprefix("www.") in self._hosts
        return registered_domain(url) == self._domain

    def _schedule(self, visit: Visit, key: str, *, of_list: bool = False) -> bool:
        if not key or key in self._seen:
            return False
        self._seen.add(key)
        last = of_list or visit.depth >= self._options.max_depth
        # A seed lists what is new also where no links of its links are followed.
        known = self.known.get(key) if visit.depth else None
        self._frontier.add(_without_fragment(visit), known, last=last)
        return True

    def _list(self, visit: Visit) -> None:
        if key := _key_if_wanted(visit):
            self.listed.setdefault(key, _without_fragment(visit))


def _without_fragment(visit: Visit) -> Visit:
    return dataclasses.replace(visit, url=urldefrag(visit.url.strip()).url)


def _key_if_wanted(visit: Visit) -> str:
    """Returns the canonical URL of a visit, or "" if the URL is not worth a request."""
    key = canonical_url(visit.url)
    return "" if len(visit.url) > _MAX_URL_CHARACTERS or key.endswith(_SKIPPED) else key
