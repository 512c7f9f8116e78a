"""Crawling one site: a polite breadth-first walk from its seeds."""

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from protego import Protego

from ..extract.feeds import parse_feed
from ..extract.read import decode
from ..extract.urls import canonical_url, registered_domain
from ..records import Failure, Rejection
from .fetch import Fetched, Fetcher, FetchError
from .options import CrawlOptions

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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one scheduled URL: stored (``reason`` None), rejected or failed."""

    url: str
    reason: Rejection | Failure | None
    detail: str = ""
    kind: str = "page"


@dataclasses.dataclass(frozen=True)
class _Visit:
    url: str
    depth: int
    kind: str


class SiteCrawler:
    """Walks one site. Iterate over :meth:`walk`.

    Args:
      seeds: URLs of one registered domain.
      options: see :class:`CrawlOptions`.
    """

    def __init__(self, seeds: list[str], options: CrawlOptions) -> None:
        self._options = options
        self._domain = registered_domain(seeds[0])
        self._fetcher = Fetcher(options)
        self._robots: dict[str, Protego | None] = {}
        self._next_request: dict[str, float] = {}
        self._queue: deque[_Visit] = deque()
        self._seen: set[str] = set()
        for seed in seeds:
            self._schedule(seed, 0, "page")

    def walk(self) -> Iterator[tuple[Outcome, Fetched | None]]:
        """Every scheduled URL with its outcome, and the response where there is one to keep."""
        pages = 0
        with contextlib.closing(self._fetcher):
            while self._queue:
                visit = self._queue.popleft()
                if visit.kind == "page" and pages >= self._options.max_pages_per_site:
                    yield Outcome(visit.url, Rejection.PAGE_LIMIT, f"the site's first {pages} pages are kept"), None
                    continue
                pages += visit.kind == "page"
                try:
                    fetched = self._visit(visit)
                except FetchError as error:
                    yield Outcome(visit.url, error.reason, error.detail, visit.kind), None
                    continue
                yield Outcome(visit.url, None, "", visit.kind), fetched

    def _visit(self, visit: _Visit) -> Fetched:
        if not self._allowed(visit.url):
            raise FetchError(Rejection.ROBOTS_DISALLOWED, "robots.txt")
        self._wait(visit.url)
        fetched = self._fetcher.fetch(visit.url, lambda target: self._vet_redirect(visit, target))
        self._seen.add(canonical_url(fetched.url))
        if visit.kind == "image":
            if not fetched.content_type.startswith("image/"):
                raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, f"{fetched.content_type or 'nothing'}, expected an image")
            return fetched
        self._follow(fetched, visit.depth)
        return fetched

    def _vet_redirect(self, visit: _Visit, target: str) -> None:
        """A redirect leads nowhere that a link could not."""
        if visit.kind == "page" and registered_domain(target) != self._domain:
            raise FetchError(Rejection.OUT_OF_SCOPE, f"redirected to {target}")
        if not self._allowed(target):
            raise FetchError(Rejection.ROBOTS_DISALLOWED, f"robots.txt, redirected to {target}")

    def _schedule(self, url: str, depth: int, kind: str) -> None:
        key = canonical_url(url)
        if not key or key in self._seen or key.endswith(_SKIPPED_ENDINGS):
            return
        if kind == "page" and registered_domain(key) != self._domain:
            return
        self._seen.add(key)
        self._queue.append(_Visit(url.strip(), depth, kind))

    def _follow(self, fetched: Fetched, depth: int) -> None:
        links, image = links_of(fetched)
        if image and self._options.fetch_images:
            self._schedule(image, depth, "image")
        if depth < self._options.max_depth:
            for link in links:
                self._schedule(link, depth + 1, "page")

    def _allowed(self, url: str) -> bool:
        robots = self._robots_of(url)
        return robots is None or bool(robots.can_fetch(url, self._options.user_agent))

    def _robots_of(self, url: str) -> Protego | None:
        """The host's rules. A host without robots.txt allows everything, one that cannot answer for it nothing (RFC 9309, 2.3.1)."""
        parts = urlsplit(url)
        if parts.netloc not in self._robots:
            try:
                text = self._fetcher.fetch(f"{parts.scheme}://{parts.netloc}/robots.txt").body.decode("utf-8", "replace")
                self._robots[parts.netloc] = Protego.parse(text)
            except FetchError as error:
                if error.reason is Rejection.PRIVATE_ADDRESS:
                    raise
                missing = error.reason is Failure.HTTP_ERROR and error.detail.startswith("4")
                self._robots[parts.netloc] = None if missing else Protego.parse("User-agent: *\nDisallow: /")
        return self._robots[parts.netloc]

    def _wait(self, url: str) -> None:
        host, robots = urlsplit(url).netloc, self._robots_of(url)
        wanted = robots.crawl_delay(self._options.user_agent) if robots is not None else None
        now = time.monotonic()
        start = max(now, self._next_request.get(host, now))
        time.sleep(start - now)
        self._next_request[host] = start + max(self._options.delay_seconds, float(wanted or 0))


def links_of(fetched: Fetched) -> tuple[list[str], str]:
    """(links in order, thumbnail URL or "") of a page or feed; nothing for bytes that are neither."""
    import lxml.html

    feed = parse_feed(fetched.body)
    if feed is not None:
        return [urljoin(fetched.url, link) for link, _ in feed.entries], ""
    if "html" not in fetched.content_type:
        return [], ""
    text = decode(fetched.body, "")
    try:
        tree = lxml.html.document_fromstring(text) if text and text.strip() else None
    except (ValueError, lxml.etree.LxmlError):
        tree = None
    if tree is None:
        return [], ""
    links = [link for anchor in tree.iter("a") if (link := _joined(fetched.url, anchor.get("href") or ""))]
    links += [
        _joined(fetched.url, node.get("href") or "")
        for node in tree.xpath('//link[@rel="alternate"][contains(@type, "rss") or contains(@type, "atom")]')
    ]
    images = tree.xpath('//meta[@property="og:image" or @name="twitter:image"]/@content')
    return [link for link in links if link], _joined(fetched.url, str(images[0])) if images else ""


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:
        return ""
