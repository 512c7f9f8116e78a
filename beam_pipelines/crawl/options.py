"""The options of ``crawl``."""

import dataclasses
import datetime
import enum

from ...errors import InputError
from ...formats.command_line import Options, option


class Scope(enum.StrEnum):
    """Which links are followed."""

    SITE = "site"  # links within the registered domain of the seed
    HOST = "host"  # links to the hosts of the seeds
    FEEDS = "feeds"  # links within the site, and entries of seed feeds and sitemaps on other domains


class Sitemaps(enum.StrEnum):
    """Whether sitemaps are discovered; a sitemap given as a seed is always read."""

    NEVER = "never"
    AUTO = "auto"  # sitemaps listed in robots.txt of a seed's host


@dataclasses.dataclass(frozen=True)
class CrawlOptions(Options):
    """Scope, limits, rate and identity of the crawler."""

    max_pages_per_site: int = option(1000, "pages and feeds of one registered domain; images, sitemaps are extra", ge=1)
    max_depth: int = option(2, "links followed from a seed: 1 fetches what the seeds list", ge=0)
    max_links_per_page: int = option(
        5000, "different links taken from one page, from its start; the rest is counted as links_beyond_limit", ge=1
    )
    scope: Scope = option(
        Scope.SITE,
        "links that are followed: within the seed's registered domain (site), to the seeds' hosts only "
        "(host), or within the site plus, one step, the entries of seed feeds and sitemaps on other domains (feeds)",
    )
    sitemaps: Sitemaps = option(
        Sitemaps.NEVER,
        "auto reads the sitemaps listed in robots.txt, with their indexes, to reach the archive of a site; "
        "sitemaps given as seeds are always read",
    )
    since: datetime.date | None = option(
        None,
        "skip entries of sitemaps and feeds dated before this day, by publication date, lastmod or the day "
        "in the URL; undated entries are followed",
    )
    until: datetime.date | None = option(None, "skip entries of sitemaps and feeds dated after this day")
    fetch_images: bool = option(True, "fetch the thumbnail (og:image) of each page, each image once in the whole crawl")
    state: str = option(
        "",
        "folder with ETag, Last-Modified and digest of every fetched URL: the next crawl with the same "
        "folder stores only what changed; give each crawl its own --output",
        lasting_folder=True,
    )
    user_agent: str = option("newsembed/0.1", "name sent to servers and looked up in robots.txt")
    delay_seconds: float = option(1.0, "pause between requests to one host; longer if robots.txt asks for it", ge=0)
    concurrent_sites: int = option(16, "sites that a worker crawls at a time, each with one request at a time", ge=1)
    max_concurrent_requests: int = option(
        16,
        "concurrent requests of one worker process; multiply by --direct_num_workers for the whole crawl, "
        "or by the worker processes on Dataflow (--max_num_workers times cores)",
        ge=1,
    )
    max_attempts: int = option(
        3,
        "requests for one URL before it fails: broken connections, timeouts, 429 and 5xx are retried, other 4xx never",
        ge=1,
    )
    backoff_seconds: float = option(2.0, "pause before the second attempt; doubles with each one, with jitter", ge=0)
    max_wait_seconds: float = option(
        120.0, "longest pause before an attempt; a host whose Retry-After asks for more is skipped in this crawl", ge=0
    )
    timeout_seconds: float = option(20.0, "time limit of one request, from the DNS lookup to the last byte", gt=0)
    max_bytes: int = option(10_000_000, "size limit of a response, as sent and decompressed (sitemaps: 50 MiB)", ge=1)
    max_redirects: int = option(5, "redirects followed for one URL; the address of each hop is checked", ge=0)
    allow_private_addresses: bool = option(False, "allow loopback, private and link-local addresses")
    resolve: tuple[str, ...] = option((), "HOST=ADDRESS:PORT overrides DNS; *.domain matches all hosts of a domain")

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.since and self.until and self.since > self.until:
            problem = f"got {self.since}, which is after --until={self.until}"
            raise InputError(problem, field="--since", remedy="swap the two dates")
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent.strip():
            problem = f"got {self.user_agent!r}, expected printable ASCII"
            raise InputError(problem, field="--user_agent", remedy="write name/version (contact)")
        for entry in self.resolve:
            _, equals, address = entry.partition("=")
            if not equals or not address.rpartition(":")[2].isdigit():
                remedy = "write HOST=ADDRESS:PORT, for example *.example=127.0.0.1:8000"
                raise InputError(f"got {entry!r}", field="--resolve", remedy=remedy)
