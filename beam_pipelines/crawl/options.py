"""Options of ``crawl``."""

import dataclasses

from ...tasks.errors import InputError


@dataclasses.dataclass(frozen=True)
class CrawlOptions:
    """How far, how fast and as whom."""

    max_pages_per_site: int = dataclasses.field(
        default=1000, metadata={"help": "pages and feeds fetched from one registered domain; images come on top"}
    )
    max_depth: int = dataclasses.field(default=2, metadata={"help": "links followed from a seed: 1 fetches what the seeds list"})
    fetch_images: bool = dataclasses.field(default=True, metadata={"help": "fetch the thumbnail (og:image) of each page, once an image"})
    user_agent: str = dataclasses.field(default="newsembed/0.1", metadata={"help": "name sent to servers and looked up in robots.txt"})
    delay_seconds: float = dataclasses.field(
        default=1.0, metadata={"help": "pause between requests to one host; a longer crawl-delay of robots.txt is obeyed"}
    )
    timeout_seconds: float = dataclasses.field(default=20.0, metadata={"help": "bound on one request, from connecting to the last byte"})
    max_bytes: int = dataclasses.field(default=10_000_000, metadata={"help": "bound on one response"})
    max_redirects: int = dataclasses.field(default=5, metadata={"help": "hops of one request; each hop's address is vetted"})
    concurrent_sites: int = dataclasses.field(
        default=16, metadata={"help": "sites that one worker crawls at a time; requests to one site are never concurrent"}
    )
    allow_private_addresses: bool = dataclasses.field(default=False, metadata={"help": "allow loopback, private and link-local addresses"})
    resolve: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "HOST=ADDRESS:PORT instead of DNS, *.domain for all hosts of one"}
    )

    def __post_init__(self) -> None:
        for name in ("max_pages_per_site", "timeout_seconds", "max_bytes", "concurrent_sites"):
            if getattr(self, name) <= 0:
                raise InputError(f"got {getattr(self, name)}, expected more than 0", field=f"--{name}", remedy="see --help for the default")
        for name in ("max_depth", "delay_seconds", "max_redirects"):
            if getattr(self, name) < 0:
                raise InputError(f"got {getattr(self, name)}, expected 0 or more", field=f"--{name}", remedy="see --help for the default")
        for entry in self.resolve:
            _, equals, address = entry.partition("=")
            if not equals or not address.rpartition(":")[2].isdigit():
                raise InputError(
                    f"got {entry!r}", field="--resolve", remedy="write HOST=ADDRESS:PORT, for example *.example=127.0.0.1:8000"
                )
