"""Options of ``crawl``."""

import dataclasses
import datetime
import enum

from ...errors import InputError


class Scope(enum.StrEnum):
    """Which of the links found are followed."""

    SITE = "site"  # of the seed's registered domain
    HOST = "host"  # of the seeds' own hosts
    FEEDS = "feeds"  # the site, and what seed feeds and sitemaps list elsewhere


class Sitemaps(enum.StrEnum):
    """Whether sitemaps are looked for; one that is a seed is read in any case."""

    NEVER = "never"
    AUTO = "auto"  # those that robots.txt of a seed's host names


@dataclasses.dataclass(frozen=True)
class CrawlOptions:
    """How far, how fast and as whom."""

    max_pages_per_site: int = dataclasses.field(
        default=1000,
        metadata={"help": "pages and feeds fetched from one registered domain; images and sitemaps come on top"},
    )
    max_depth: int = dataclasses.field(
        default=2, metadata={"help": "links followed from a seed: 1 fetches what the seeds list"}
    )
    scope: Scope = dataclasses.field(
        default=Scope.SITE,
        metadata={
            "help": "links that are followed: of the seed's registered domain (site), of the seeds' hosts only (host), or of the site and, "
            "one step, what seed feeds and sitemaps list on other domains (feeds)"
        },
    )
    sitemaps: Sitemaps = dataclasses.field(
        default=Sitemaps.NEVER,
        metadata={
            "help": "auto reads the sitemaps that robots.txt names, with their indexes: the way into an archive; those given as seeds are always read"
        },
    )
    max_sitemaps_per_site: int = dataclasses.field(
        default=1000, metadata={"help": "sitemaps and sitemap indexes fetched from one site"}
    )
    since: datetime.date | None = dataclasses.field(
        default=None,
        metadata={
            "help": "follow no entry of a sitemap or feed that is older, by its publication date, lastmod or the day in its URL; undated ones stay"
        },
    )
    until: datetime.date | None = dataclasses.field(
        default=None, metadata={"help": "the same, for entries that are newer"}
    )
    fetch_images: bool = dataclasses.field(
        default=True,
        metadata={"help": "fetch the thumbnail (og:image) of each page, each image once in the whole crawl"},
    )
    state: str = dataclasses.field(
        default="",
        metadata={
            "help": "folder that remembers ETag, Last-Modified and digest of what was fetched: the next crawl with it stores only what changed; "
            "give each crawl an --output of its own",
            "lasting_folder": True,
        },
    )
    user_agent: str = dataclasses.field(
        default="newsembed/0.1", metadata={"help": "name sent to servers and looked up in robots.txt"}
    )
    delay_seconds: float = dataclasses.field(
        default=1.0,
        metadata={"help": "pause between requests to one host; a longer crawl-delay of robots.txt is obeyed"},
    )
    concurrent_sites: int = dataclasses.field(
        default=16,
        metadata={"help": "sites that one worker crawls at a time; requests to one site are never concurrent"},
    )
    max_concurrent_requests: int = dataclasses.field(
        default=16,
        metadata={
            "help": "requests under way at a time in one worker process; in the whole crawl it is this times --direct_num_workers, "
            "or times the worker processes on Dataflow (--max_num_workers times cores)"
        },
    )
    max_attempts: int = dataclasses.field(
        default=3,
        metadata={
            "help": "requests for one URL before it fails: broken connections, timeouts, 429 and 5xx are tried again, 4xx never"
        },
    )
    backoff_seconds: float = dataclasses.field(
        default=2.0, metadata={"help": "pause before the second attempt; doubles each time, with jitter"}
    )
    max_wait_seconds: float = dataclasses.field(
        default=120.0,
        metadata={
            "help": "longest pause before an attempt; a host whose Retry-After asks for more is left alone for this crawl"
        },
    )
    timeout_seconds: float = dataclasses.field(
        default=20.0, metadata={"help": "bound on one request, from connecting to the last byte"}
    )
    max_bytes: int = dataclasses.field(
        default=10_000_000, metadata={"help": "bound on one response, as sent and decompressed (sitemaps: 50 MiB)"}
    )
    max_redirects: int = dataclasses.field(
        default=5, metadata={"help": "hops of one request; each hop's address is vetted"}
    )
    allow_private_addresses: bool = dataclasses.field(
        default=False, metadata={"help": "allow loopback, private and link-local addresses"}
    )
    resolve: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "HOST=ADDRESS:PORT instead of DNS, *.domain for all hosts of one"}
    )

    def __post_init__(self) -> None:
        positive = (
            "max_pages_per_site",
            "max_sitemaps_per_site",
            "timeout_seconds",
            "max_bytes",
            "concurrent_sites",
            "max_concurrent_requests",
            "max_attempts",
        )
        for name in positive:
            if not getattr(self, name) > 0:
                raise InputError(
                    f"got {getattr(self, name)}, expected more than 0",
                    field=f"--{name}",
                    remedy="see --help for the default",
                )
        for name in ("max_depth", "delay_seconds", "max_redirects", "backoff_seconds", "max_wait_seconds"):
            if not getattr(self, name) >= 0:
                raise InputError(
                    f"got {getattr(self, name)}, expected 0 or more",
                    field=f"--{name}",
                    remedy="see --help for the default",
                )
        if self.since and self.until and self.since > self.until:
            raise InputError(
                f"got {self.since}, which is after --until={self.until}", field="--since", remedy="exchange the two"
            )
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent.strip():
            raise InputError(
                f"got {self.user_agent!r}, expected printable ASCII",
                field="--user_agent",
                remedy="write name/version (contact)",
            )
        for entry in self.resolve:
            _, equals, address = entry.partition("=")
            if not equals or not address.rpartition(":")[2].isdigit():
                raise InputError(
                    f"got {entry!r}",
                    field="--resolve",
                    remedy="write HOST=ADDRESS:PORT, for example *.example=127.0.0.1:8000",
                )
