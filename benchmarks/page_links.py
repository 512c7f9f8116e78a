"""The cost of a page of 300,000 links: in the crawl, in the reader of pages, and of one canonical URL.

    python benchmarks/page_links.py --links 300000

All times are CPU seconds of one process. "crawl" is the walk over a site whose first page has the links, without
network: it parses the page, resolves the links and schedules them. The canonical URLs are
compared with courlan's `clean_url`, which trafilatura uses. No URL comes twice.
"""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from newsembed.beam_pipelines.crawl import site
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.options import CrawlOptions
from newsembed.beam_pipelines.crawl.rate_limits import RateLimiter
from newsembed.beam_pipelines.extract.page import extract_page
from newsembed.formats.urls import canonical_url

HOME = "http://www.site.example/"


def page_of(links: int) -> str:
    """Returns a page with this many different links, each 25 characters long."""
    anchors = "".join(f"<a href=/n/{number}>a</a>" for number in range(links))
    return f"<html><head><title>Links</title></head><body>{anchors}</body></html>"


@contextlib.contextmanager
def timed(name: str) -> Iterator[None]:
    """Prints the CPU seconds that the block takes."""
    started = time.process_time()
    yield
    print(f"| {name} | {time.process_time() - started:.2f} |", flush=True)


class Answers:
    """Stands for the fetcher: answers every request with the same page."""

    def __init__(self, html: str) -> None:
        self.body = html.encode()

    def fetch(self, url: str, around: Callable[..., Any], **_: Any) -> Fetched:
        """Returns the page; robots.txt is empty."""
        with around(url):
            body = b"" if url.endswith("/robots.txt") else self.body
            return Fetched(url, 200, "OK", (("Content-Type", "text/html; charset=utf-8"),), body)

    def close(self) -> None:
        """Does nothing."""


def crawl(html: str) -> None:
    """Crawls one page, whose links are beyond the limit of pages."""
    site.Fetcher = lambda _: Answers(html)  # type: ignore[assignment,misc]
    options = CrawlOptions(fetch_images=False, delay_seconds=0.0, max_pages_per_site=1)
    crawler = site.SiteCrawler([site.Visit(HOME)], options, RateLimiter(1))
    with timed("crawl"):
        outcomes = sum(1 for _ in crawler.walk())
    print(f"| URLs in the report of the crawl | {outcomes} |")


def spellings(count: int) -> dict[str, list[str]]:
    """Returns URLs of several spellings, each different from all others."""
    return {
        "absolute": [f"https://www.site.example/news/2024/05/story-number-{number}" for number in range(count)],
        "below the root": [f"/news/2024/05/story-number-{number}" for number in range(count)],
        "with a query": [f"https://www.site.example/news?id={number}&utm_source=feed" for number in range(count)],
        "of other letters": [f"https://www.site.example/nachrichten/übung-{number}" for number in range(count)],
    }


def rate(function: Callable[[str], object], urls: Iterable[str]) -> float:
    """Returns how many URLs a CPU second handles."""
    started, count = time.process_time(), 0
    for url in urls:
        function(url)
        count += 1
    return count / (time.process_time() - started)


def peers() -> dict[str, Callable[[str], object]]:
    """Returns the functions that are compared, by name."""
    from courlan import clean_url

    return {"ours": lambda url: canonical_url(url, HOME), "courlan": clean_url}


def main() -> None:
    """Prints the table of one page, and that of canonical URLs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=300_000)
    args = parser.parse_args()
    html = page_of(args.links)
    print(f"a page of {len(html):,} characters and {args.links:,} links\n\n| | CPU seconds |\n|---|---|")
    crawl(html)
    smaller = page_of(min(args.links, 149_000))  # more tags are refused before parsing
    with timed(f"extract: a page of {smaller.count('<a '):,} links"):
        extract_page(smaller, HOME)
    compared = peers()
    print(f"\n| canonical URLs per CPU second | {' | '.join(compared)} |\n|---|{'---|' * len(compared)}")
    for name, urls in spellings(20_000).items():
        print(f"| {name} | {' | '.join(f'{rate(function, urls):,.0f}' for function in compared.values())} |")


if __name__ == "__main__":
    main()
