"""What lists URLs for a crawl: sitemaps, their indexes, feeds and pages.

To add a kind of source, write its reader and add it to `SOURCES`; the walk, the state and the counts follow from that.
"""

import datetime
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from ...formats.codings import BrokenCodingError, TooLargeError, gunzip
from ...formats.dates import day_in_url, parse_day
from ...formats.urls import joined
from ..extract.charsets import decode
from ..extract.feeds import MAX_ENTRIES, parse_feed
from ..extract.page import parse
from ..extract.xml_text import SAFE, child_text, head_of, local_name, page_text, root_of, xml_source
from .fetch import IMAGE_TYPES, PAGE_TYPES, Fetched

MAX_LINKS = 5_000  # of a page, unless the options say otherwise
MAX_SITEMAP_ENTRIES = 50_000  # limit of the protocol for one sitemap
MAX_SITEMAP_BYTES = 50 << 20  # limit of the protocol, uncompressed
# Content types that are accepted, by the kind of a visit.
TYPES: Final = {"page": PAGE_TYPES, "sitemap": (*PAGE_TYPES, "text/", "gzip", "octet-stream"), "image": IMAGE_TYPES}
_NEWEST = datetime.date.max


class Entry(NamedTuple):
    """A listed URL with its day of publication, else the day of its last change, else ``None``."""

    url: str
    day: datetime.date | None = None


_Listed = tuple[str, datetime.date | None]  # a link as written, and its day
_Read = tuple[tuple[Entry, ...], str, int]


class Outlinks(NamedTuple):
    """Outgoing links of a response.

    Attributes:
      kind: name of the source, see `SOURCES`, or "image".
      entries: absolute URLs in order, each with the day that a feed or sitemap states.
      image: URL of the page's thumbnail, or "".
      dropped: number of links of a page, or entries of a feed or sitemap, beyond the limit.
    """

    kind: str
    entries: tuple[Entry, ...] = ()
    image: str = ""
    dropped: int = 0


class Source(NamedTuple):
    """A kind of response that lists URLs.

    Attributes:
      read: from a response, the kind of its visit and the limit on links: the links, the image, and the number of links
        beyond the limit; ``None`` if the response is of another kind.
      beyond: name under which links beyond the limit are counted.
      is_list: whether it lists articles: entries may be on other domains, lead to nothing new themselves, and have
        days, by which the options choose among them.
      newest_first: whether the newest entries are visited first; otherwise they are visited in their order.
      leads_to: kind of the visits of its entries. Sitemaps are followed at any depth.
    """

    read: Callable[[Fetched, str, int], _Read | None]
    beyond: str
    is_list: bool = True
    newest_first: bool = False
    leads_to: str = "page"

    def chosen(
        self, entries: tuple[Entry, ...], since: datetime.date | None, until: datetime.date | None
    ) -> list[Entry]:
        """Returns the entries between two days (inclusive), in the order of their visits; undated entries are last.

        Without a day, the day in the URL of an article is used. Only ``since`` applies to sitemaps: one that changed
        later may list earlier days.
        """
        if not self.is_list:
            return list(entries)
        of_pages, kept = self.leads_to == "page", list[Entry]()
        for entry in entries:
            day = entry.day or (day_in_url(entry.url) if of_pages else None)
            if day is None or ((since is None or day >= since) and (until is None or not of_pages or day <= until)):
                kept.append(entry)
        if self.newest_first:
            kept.sort(key=lambda entry: (entry.day is None, _NEWEST - (entry.day or _NEWEST)))
        return kept


def _read_sitemap(fetched: Fetched, visit_kind: str, _max_links: int, *, root: str, tag: str) -> _Read | None:
    """Reads sitemaps (sitemaps.org 0.9), gzipped or not: news sitemaps, and text files where a sitemap is expected.

    Broken XML is repaired and read up to the error. Entities are not expanded, and nothing is fetched.

    Raises:
      BrokenCodingError: if what must be a sitemap is compressed and cut, broken or larger than the protocol allows.
    """
    try:
        plain, problem = gunzip(fetched.body, MAX_SITEMAP_BYTES)
    except TooLargeError:
        plain, problem = b"", f"more than {MAX_SITEMAP_BYTES} bytes"
    if problem:
        if visit_kind == "sitemap":
            raise BrokenCodingError(problem)
        return None
    head = head_of(plain)
    if root_of(head) == root:
        found: Iterator[_Listed] = _xml_entries(xml_source(plain, fetched.charset) or b"", tag)
    elif tag == "url" and visit_kind == "sitemap" and "<" not in head:
        lines = [line for raw in (decode(plain, "") or "").splitlines() if (line := raw.strip())]
        listed = [line for line in lines if line.lower().startswith(("http://", "https://"))]
        if 2 * len(listed) <= len(lines):
            return None
        found = ((line, None) for line in listed)
    else:
        return None
    return _absolute(fetched.url, itertools.islice(found, MAX_SITEMAP_ENTRIES)), "", sum(1 for _ in found)


def _xml_entries(plain: bytes, tag: str) -> Iterator[_Listed]:
    try:
        for _, node in etree.iterparse(io.BytesIO(plain), events=("end",), recover=True, **SAFE):
            if local_name(node) == tag:
                if url := child_text(node, "loc"):
                    published = parse_day(child_text(node, "news", "publication_date"))
                    yield url, published or parse_day(child_text(node, "lastmod"))
                node.clear(keep_tail=False)
                while node.getprevious() is not None:  # frees the entries that have been read
                    del node.getparent()[0]
    except etree.XMLSyntaxError:
        return  # the parser cannot recover


def _read_feed(fetched: Fetched, _visit_kind: str, _max_links: int) -> _Read | None:
    try:
        feed = parse_feed(fetched.body, fetched.url, fetched.charset)
    except (ValueError, etree.LxmlError):
        return None
    if feed is None:
        return None
    days = {link: day for link, day, _ in feed.stated}
    return _absolute(fetched.url, ((link, days.get(link)) for link, _ in feed.entries)), "", feed.dropped


def _read_page(fetched: Fetched, _visit_kind: str, max_links: int) -> _Read:
    text = page_text(kind, fetched.body, fetched.charset) if (kind := fetched.kind) in ("page", "xhtml") else None
    try:
        tree = parse(text or "")
    except (ValueError, etree.LxmlError):
        tree = None
    if tree is None:
        return (), "", 0
    base = joined(fetched.url, next(iter(tree.xpath("//base/@href")), "")) or fetched.url
    feeds = tree.xpath(
        '//link[contains(concat(" ", @rel, " "), " alternate ")]'
        '[contains(@type, "rss") or contains(@type, "atom") or contains(@type, "feed+json")]'
    )
    # The links are bounded before they are resolved: a page of a few megabytes can hold hundreds of thousands.
    hrefs = [dict.fromkeys(href for node in nodes if (href := node.get("href"))) for nodes in (tree.iter("a"), feeds)]
    links = _absolute(base, ((href, None) for found in hrefs for href in itertools.islice(found, max_links)))
    images = tree.xpath('//meta[@property="og:image" or @name="twitter:image"]/@content')
    image = joined(base, str(images[0])) if images else ""
    return links, image, sum(max(0, len(found) - max_links) for found in hrefs)


# In the order in which a response is tried; the last one takes what is left.
SOURCES: Final[dict[str, Source]] = {
    "index": Source(
        partial(_read_sitemap, root="sitemapindex", tag="sitemap"),
        f"sitemap_entries_beyond_{MAX_SITEMAP_ENTRIES}",
        newest_first=True,
        leads_to="sitemap",
    ),
    "sitemap": Source(
        partial(_read_sitemap, root="urlset", tag="url"),
        f"sitemap_entries_beyond_{MAX_SITEMAP_ENTRIES}",
        newest_first=True,
    ),
    "feed": Source(_read_feed, f"feed_entries_beyond_{MAX_ENTRIES}"),
    "page": Source(_read_page, "links_beyond_limit", is_list=False),
}


def outlinks_of(fetched: Fetched, visit_kind: str = "page", max_links: int = MAX_LINKS) -> Outlinks:
    """Returns the outgoing links of a response; broken markup is tolerated, other content has none.

    Args:
      fetched: the response.
      visit_kind: "page", or "sitemap", where a plain list of URLs counts as one.
      max_links: number of different links that are taken from a page.
    """
    for kind, source in SOURCES.items():
        if (found := source.read(fetched, visit_kind, max_links)) is not None:
            return Outlinks(kind, *found)
    raise AssertionError("the last source takes every response")


def looks_like_sitemap(url: str) -> bool:
    """Returns whether a seed is fetched as a sitemap, which may be large, gzipped or plain text; its bytes decide."""
    name = urlsplit(url).path.rpartition("/")[2].lower()
    return "sitemap" in name or name.endswith(".xml.gz")


def _absolute(base: str, found: Iterable[_Listed]) -> tuple[Entry, ...]:
    return tuple(Entry(url, day) for link, day in found if (url := joined(base, link)))
