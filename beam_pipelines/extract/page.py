"""Extracts an article or a hub from one HTML page, or the reason for its rejection, with the source of each field."""

import dataclasses
import datetime
import functools
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lxml import etree

from ...formats.records import Rejection
from ...formats.urls import canonical_url
from .body import Body, is_within_slow_limits, read_body
from .content import main_content, running_text
from .dates import (
    day_in_url,
    has_impossible_day,
    impossible_days_in,
    is_impossible,
    parse_day,
    states_impossible_day,
)
from .decoding import decode
from .layout import Block, Layout, lay_out
from .links import MAX_LINKS, links_of
from .markup import bylines, days
from .people import names_person, people
from .structured import Structured, read_structured
from .title import clean_title, element_title, headings_of

MAX_PAGE_CHARACTERS = 20_000_000
MAX_PAGE_TAGS = 300_000
# The last part of a URL of a single item: many words, or a long number.
_ITEM = re.compile(r"(?:[^/-]+-){4}[^/]*/?$|\d{5}[^/]*/?$")
_LONG_TAG_CHARACTERS, _MAX_ATTRIBUTES = 5_000, 1_000
# Script code after a "<" does not match: its quotes and brackets do not follow a name and a "=".
_MANY_ATTRIBUTES = re.compile(
    r"[a-zA-Z][\w:-]{0,40}(?>\s+[^\s=<>\"'/]+(?>\s*=\s*(?>\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?){"
    + str(_MAX_ATTRIBUTES)
    + "}"
)
_CLOSED_ROOT = re.compile(r"(<html\b[^<>]{0,1000}?)\s*/>", re.IGNORECASE)
_MIN_BODY_CHARACTERS = 200
_MIN_HUB_LINKS = 8
_MIN_SMALL_HUB_LINKS = 3
_MIN_LINK_WORDS = 3
_MIN_TEXT_BESIDE_LINKS, _MIN_PARAGRAPHS = 400, 3
_MIN_LONG_PARAGRAPH = 300  # teasers are shorter
_MIN_RUNNING_CHARACTERS = 900  # paragraphs of an article are siblings, teasers of a section page are not


class PageTooLargeError(ValueError):
    """The page is too large to be read in reasonable time."""


@dataclasses.dataclass(frozen=True)
class ArticlePage:
    """An extracted article; fields as in :class:`~newsembed.formats.records.Article`.

    Attributes:
      sources: source by field: "json-ld", "meta", "markup", "url" or "text" (the slow extractors).
    """

    url: str
    title: str
    body: str
    authors: tuple[str, ...]
    byline_date: datetime.date | None
    modified_date: datetime.date | None
    date_source: str
    language: str
    keywords: tuple[str, ...]
    image_url: str
    paywalled: bool = False
    live_blog: bool = False
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ExtractedPage:
    """The result for one page: an article, a hub or a rejection, always with the links of the page.

    Attributes:
      article: the article, or ``None``.
      hub_title: title of the hub, or ``None``.
      rejection: reason why the page is neither an article nor a hub, or ``None``.
      detail: detail of the rejection.
      links: (canonical URL, link text), see :func:`~.links.links_of`.
      links_beyond: number of links beyond the limit.
      impossible_dates: number of days that the page states for the article and that do not exist.
    """

    article: ArticlePage | None = None
    hub_title: str | None = None
    rejection: Rejection | None = None
    detail: str = ""
    links: tuple[tuple[str, str], ...] = ()
    links_beyond: int = 0
    impossible_dates: int = 0


def extract_page(html: str | bytes, url: str, max_links: int = MAX_LINKS) -> ExtractedPage:
    """Extracts one page.

    Args:
      html: markup as text, or as bytes as it was sent.
      url: URL of the page; its canonical link replaces it if that is on the same host.
      max_links: number of links that are taken from the page.

    Raises:
      PageTooLargeError: if the page exceeds ``MAX_PAGE_CHARACTERS`` or ``MAX_PAGE_TAGS``.
      Exception: any error of the parsers (``ValueError``, lxml errors and others), which the caller counts.
    """
    text = (decode(html, "") or "") if isinstance(html, bytes) else html
    tree = parse(text)
    if tree is None:
        return ExtractedPage(rejection=Rejection.NO_CONTENT, detail="no markup to parse")
    structured = read_structured(tree, url)
    page_url = _own_url(structured.canonical, url)
    links, beyond = links_of(tree, page_url, max_links)
    extracted = functools.partial(ExtractedPage, links=links, links_beyond=beyond)
    layout = lay_out(tree)
    headings = headings_of(tree)
    title = _title(tree, structured, headings, page_url)
    headlines = sum(1 for _, words in links if len(words.split()) >= _MIN_LINK_WORDS)
    if _is_hub(structured, layout, page_url, _unlinked(layout), headlines):
        return extracted(hub_title=title or page_url)
    body = read_body(
        text, layout, url, headings[0] if headings else title, structured.body, live_blog=structured.live_blog
    )
    if _is_hub(structured, layout, page_url, len(body.text), headlines):
        return extracted(hub_title=title or page_url)
    if len(body.text) < _MIN_BODY_CHARACTERS and not structured.is_article:
        return extracted(
            rejection=Rejection.NOT_AN_ARTICLE if body.text else Rejection.NO_CONTENT,
            detail=f"{len(body.text)} characters of text, {headlines} links",
        )
    if not title:
        return extracted(rejection=Rejection.NO_TITLE, detail="no headline, og:title, heading or title element")
    article = _article(text, tree, layout, page_url, title, body, structured)
    return extracted(article=article, impossible_dates=_impossible_dates(text, tree, article, structured))


def parse(text: str) -> Any:
    """Returns the parsed page, or ``None`` if there is no markup.

    Elements beyond the parser's nesting limit are dropped.

    Raises:
      PageTooLargeError: if the page exceeds ``MAX_PAGE_CHARACTERS`` or ``MAX_PAGE_TAGS``, or a tag has thousands of
        attributes.
    """
    tags = text.count("<") if len(text) > MAX_PAGE_TAGS else 0
    for number, bound, unit in ((len(text), MAX_PAGE_CHARACTERS, "characters"), (tags, MAX_PAGE_TAGS, "tags")):
        if number > bound:
            raise PageTooLargeError(f"got {number} {unit}, expected at most {bound}")
    for piece in text.split("<") if len(text) > _LONG_TAG_CHARACTERS else ():
        # The parser compares all pairs of attributes of a tag.
        if len(piece) > _LONG_TAG_CHARACTERS and _MANY_ATTRIBUTES.match(piece):
            raise PageTooLargeError(
                f"got a tag of {len(piece)} characters, expected at most {_MAX_ATTRIBUTES} attributes"
            )
    # Plain elements, because the classes of lxml.html double the time. "<html/>" would end the page.
    text = (
        _CLOSED_ROOT.sub(r"\1>", text.replace("\x00", ""), count=1) if "/>" in text[:2000] else text.replace("\x00", "")
    )
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=False
    )
    return etree.fromstring(text.encode("utf-8", "replace"), parser) if text.strip() else None


def _article(
    text: str, tree: Any, layout: Layout, url: str, title: str, body: Body, structured: Structured
) -> ArticlePage:
    sources = {"title": "markup"} | dict(structured.sources) | {"body": body.source}
    site = structured.site_names[0] if structured.site_names else ""
    authors = people(structured.authors, site)
    if (
        not names_person(authors, site)
        and (shown := people(bylines(tree, layout), site))
        and (not authors or names_person(shown, site))
    ):
        authors, sources["authors"] = shown, "markup"
    published, modified = structured.published, structured.modified
    if published is None:
        published, seen_modified, sources["byline_date"] = _shown_day(text, tree, layout, url)
        if modified is None and seen_modified is not None:
            modified, sources["modified_date"] = seen_modified, "markup"
    for field, value in (("authors", authors), ("byline_date", published), ("modified_date", modified)):
        if not value:
            sources.pop(field, None)
    return ArticlePage(
        url=url,
        title=title,
        body=body.text,
        authors=authors,
        byline_date=published,
        modified_date=modified,
        date_source=sources.get("byline_date", ""),
        language=structured.language,
        keywords=structured.keywords,
        image_url=canonical_url(structured.image_url, url) if structured.image_url else "",
        paywalled=structured.paywalled,
        live_blog=structured.live_blog,
        sources=sources,
    )


def _impossible_dates(text: str, tree: Any, article: ArticlePage, structured: Structured) -> int:
    """Returns the number of days of the article that do not exist: in metadata, time elements and its URL."""
    times = sum(is_impossible(node.get("datetime")) for node in tree.iter("time"))
    found = structured.impossible_dates + times + has_impossible_day(article.url)
    return found or (impossible_days_in(text) if article.byline_date is None else 0)


def _shown_day(
    text: str, tree: Any, layout: Layout, url: str
) -> tuple[datetime.date | None, datetime.date | None, str]:
    """Returns (first publication, last modification, source of the first) for a page without dates in its metadata."""
    published, modified = days(tree, layout)
    in_url = day_in_url(url)
    if in_url is not None and (published is None or abs((published - in_url).days) > 1):
        return in_url, modified, "url"  # a day in the text may belong to another story
    if published is not None:
        return published, modified, "markup"
    return _slow_day(text, url), modified, "text"


def _slow_day(text: str, url: str) -> datetime.date | None:
    import htmldate

    if not is_within_slow_limits(text):
        return None
    day = parse_day(htmldate.find_date(text, original_date=True, extensive_search=False, url=url))
    return None if day is not None and day.day == 1 and states_impossible_day(text, day) else day


def _title(tree: Any, structured: Structured, headings: list[str], url: str) -> str:
    title = structured.headline or (headings[0] if headings else "") or element_title(tree)
    return clean_title(title, structured.site_names, url, headings)


def _is_hub(structured: Structured, layout: Layout, url: str, characters: int, headlines: int) -> bool:
    """Returns whether a page is a hub: many linked headlines and little text, and metadata that do not say article.

    For the front page of a site the headlines are enough: some declare to be articles (NPR, NBC) or print whole
    teasers.

    Args:
      structured: metadata of the page.
      layout: layout of the page.
      url: canonical URL of the page.
      characters: length of the text outside links.
      headlines: number of links with several words.
    """
    if headlines >= _MIN_HUB_LINKS and urlsplit(url).path == "/":
        return True
    if structured.is_article or structured.is_video or running_text(layout) >= _MIN_RUNNING_CHARACTERS:
        return False
    if headlines >= _MIN_HUB_LINKS and characters < 60 * headlines:
        return not _is_text_beside_links(layout)
    return not _ITEM.search(urlsplit(url).path) and (
        characters < _MIN_BODY_CHARACTERS and _linked_lines(layout) >= _MIN_SMALL_HUB_LINKS
    )


def _is_text_beside_links(layout: Layout) -> bool:
    """Returns whether a page has a text of several paragraphs with few links in between: menus, not teasers."""
    text = main_content(layout).text
    lines = set(text.splitlines())
    prose = [number for number, block in enumerate(layout.blocks) if block.prose and block.text in lines]
    if len(text) < _MIN_TEXT_BESIDE_LINKS or not prose:
        return False
    characters = sum(layout.blocks[number].prose for number in prose)
    if len(prose) < _MIN_PARAGRAPHS and characters < _MIN_LONG_PARAGRAPH * len(prose):
        return False
    return 2 * sum(map(_is_linked_line, layout.blocks[prose[0] : prose[-1]])) <= len(prose)


def _is_linked_line(block: Block) -> bool:
    return block.link_share > 0.7 and len(block.text.split()) > _MIN_LINK_WORDS


def _linked_lines(layout: Layout) -> int:
    """Returns the number of lines that are links of several words: the entries of a small section page."""
    return sum(map(_is_linked_line, layout.blocks))


def _unlinked(layout: Layout) -> int:
    """Returns the number of characters of visible text outside links."""
    return int(sum(len(block.text) * (1.0 - block.link_share) for block in layout.blocks))


def _own_url(canonical: str, url: str) -> str:
    fetched = canonical_url(url)
    own = canonical_url(canonical, url) if canonical else ""
    # Some templates declare the front page as canonical, which would merge all pages of the site.
    if own and fetched and own.split("/")[2] == fetched.split("/")[2] and urlsplit(own).path != "/":
        return own
    return fetched


def as_fields(page: ArticlePage) -> dict[str, Any]:
    """Returns the fields of :class:`~newsembed.formats.records.Article` by name."""
    fields = {field.name: getattr(page, field.name) for field in dataclasses.fields(page)}
    return fields | {"sources": tuple(f"{field}: {source}" for field, source in sorted(page.sources.items()))}
