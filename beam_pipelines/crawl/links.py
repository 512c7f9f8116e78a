"""The outgoing links of a response: the entries of a feed or sitemap, or the links and the thumbnail of a page."""

import dataclasses
import itertools
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from ..extract.feeds import Feed, parse_feed
from ..extract.read import decode
from .fetch import Fetched
from .sitemaps import Entry, Sitemap, parse_sitemap

MAX_LINKS = 5_000  # of a page, unless the options say otherwise


@dataclasses.dataclass(frozen=True)
class Outlinks:
    """Outgoing links of a response.

    Attributes:
      kind: "page", "feed", "sitemap", "index" (of sitemaps) or "image".
      entries: absolute URLs in order, each with the day that a feed or sitemap states.
      image: URL of the page's thumbnail, or "".
      dropped: number of links of a page, or entries of a feed or sitemap, beyond the limit.
    """

    kind: str
    entries: tuple[Entry, ...] = ()
    image: str = ""
    dropped: int = 0


def outlinks_of(fetched: Fetched, *, text_sitemap: bool = False, max_links: int = MAX_LINKS) -> Outlinks:
    """Returns the outgoing links of a page, feed or sitemap; broken markup is tolerated, other content has none.

    Args:
      fetched: the response.
      text_sitemap: whether a plain list of URLs counts as a sitemap.
      max_links: number of different links that are taken from a page.
    """
    sitemap = parse_sitemap(fetched.body, text=text_sitemap)
    if sitemap is not None:
        return _of_sitemap(fetched.url, sitemap)
    feed = _feed(fetched.body)
    if feed is not None:
        return _of_feed(fetched.url, feed)
    return _of_page(fetched, max_links) if "html" in fetched.content_type else Outlinks("page")


def _of_sitemap(base: str, sitemap: Sitemap) -> Outlinks:
    entries = tuple(Entry(url, entry.day) for entry in sitemap.entries if (url := _joined(base, entry.url)))
    return Outlinks("index" if sitemap.is_index else "sitemap", entries, dropped=sitemap.dropped)


def _feed(body: bytes) -> Feed | None:
    try:
        return parse_feed(body)
    except (ValueError, etree.LxmlError):
        return None


def _of_feed(base: str, feed: Feed) -> Outlinks:
    days = {link: day for link, day, _ in feed.stated}
    return Outlinks(
        "feed",
        tuple(Entry(url, days.get(link)) for link, _ in feed.entries if (url := _joined(base, link))),
        dropped=feed.dropped,
    )


def _of_page(fetched: Fetched, max_links: int) -> Outlinks:
    tree = _tree(fetched.body)
    if tree is None:
        return Outlinks("page")
    base = _joined(fetched.url, next(iter(tree.xpath("//base/@href")), "")) or fetched.url
    feeds = tree.xpath(
        '//link[@rel="alternate"][contains(@type, "rss") or contains(@type, "atom") or contains(@type, "feed+json")]'
    )
    # The links are bounded before they are resolved: a page of a few megabytes can hold hundreds of thousands.
    hrefs = [dict.fromkeys(href for node in nodes if (href := node.get("href"))) for nodes in (tree.iter("a"), feeds)]
    links = (_joined(base, href) for found in hrefs for href in itertools.islice(found, max_links))
    images = tree.xpath('//meta[@property="og:image" or @name="twitter:image"]/@content')
    return Outlinks(
        "page",
        tuple(Entry(link, None) for link in links if link),
        _joined(base, str(images[0])) if images else "",
        sum(max(0, len(found) - max_links) for found in hrefs),
    )


def _tree(body: bytes) -> Any:
    import lxml.html

    text = decode(body, "")
    try:
        return lxml.html.document_fromstring(text) if text and text.strip() else None
    except (ValueError, etree.LxmlError):
        return None


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:
        return ""
