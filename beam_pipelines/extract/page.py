"""Extracts an article or a hub from one HTML page, or the reason for its rejection, with the source of each field."""

# ruff: noqa: RUF001 - the marks that pages are written with

import dataclasses
import datetime
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from lxml import etree

from ...formats.dates import day_in_url, place_of
from ...formats.records import Article, Rejection, make_doc_id
from ...formats.urls import canonical_url, joined, registered_domain
from .body import MARKUP, Body, overlap, read_body
from .bylines import bylines, days, names_person, people
from .charsets import decode, readable
from .content import main_content, running_text
from .layout import Block, Layout, has_words, lay_out, letters_of, text_of
from .lists import Region, is_of_teasers
from .structured import JSON_LD, META, Structured, day_in_scripts, read_structured

GUESSED_ORDER = "byline_date_order"  # "guessed" in the sources of an article whose date may have day and month swapped
MAX_LINKS = 5_000  # per page, unless the options say otherwise; more links are a crawler trap
_MAX_LINK_TEXT = 300
_MAX_GENERIC = 60
_MAX_CACHED = 500  # longest link that is cached, in characters
_GENERIC = re.compile(
    r"(?i)^\W*+(read|see|view|show|load|learn|find)?\s*+"
    r"(more|all|next|previous|back|here|full story|continue reading|comments?|share)\W*$",
)
_NO_PAGE = tuple(str.split("# javascript: mailto: tel: data: whatsapp: sms: about: blob:"))
_MARKS = re.compile(r"(?<!\s)\s+[|\-–—•·»«:/~]{1,2}\s+|(?:(?<!\s)\s+)?[|»]\s*|:\s+")
# Only before or after the name of the site: in other titles, such marks are punctuation.
_NAME_MARKS = re.compile(r"(?:(?<!\s)\s++)?+(?:[|\-–—•·»«:/~<⋆_：｜\uff0d（(\[【]{1,2}\s*+|(?<!\s)[,，]\s+)")
_MIN_OWN, _MAX_HEADINGS, _MIN_SHARED = 12, 30, 0.5  # twice the letters; elements; of the words of the title
_MAX_TITLE = 500
_MIN_SHARED_HEADING, _LONG_TITLE = 0.2, 90  # share of words; some templates cut titles at 110 characters
MAX_PAGE_CHARACTERS = 20_000_000
MAX_PAGE_TAGS = 300_000
# The last part of a URL of a single item: many words, or a long number.
_ITEM = re.compile(r"(?<![^-])(?:[^-]++-){3}|\d{5}")  # of the last part of a path
_ITEM_NAME = re.compile(r"-.*-|\d{3}|\d.*-|-.*\d|\.s?html?$")
_ITEM_QUERY = re.compile(r"(?i)(?:^|&)(?:(?:\w*id|article|story|news|item|post|p)=\w*\d|article\d)")
_MIN_NAME = 20
# Names of front pages, and what templates write for a URL that they do not have.
_NO_NAME = re.compile(
    r"(?i)/(?:index|default|home|home-?page|undefined|null|none|nan|false|true|%7B.*|%5B.*|\[.*|\{.*)(?:\.\w{2,5})?$",
)
_LONG_TAG_CHARACTERS, _MAX_ATTRIBUTES = 5_000, 1_000
# Script code after a "<" does not match: its quotes and brackets do not follow a name and a "=".
_MANY_ATTRIBUTES = re.compile(
    r"[a-zA-Z][\w:-]{0,40}(?>\s+[^\s=<>\"'/]+(?>\s*=\s*(?>\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?){"
    + str(_MAX_ATTRIBUTES)
    + "}"
)
_CLOSED_ROOT = re.compile(r"(?i)(<html\b[^<>]{0,1000}?)\s*/>")
_MIN_BODY_CHARACTERS, _MIN_ITEM_BODY = 200, 100  # the second with a heading, at the URL of a single item
_MIN_HUB_LINKS = 8
_MIN_SMALL_HUB_LINKS = 3
_MIN_LINK_WORDS = 3
_MIN_ITEM_CHARACTERS = 600
_MIN_TEXT_BESIDE_LINKS, _MIN_PARAGRAPHS = 400, 3
_MIN_LONG_PARAGRAPH = 300  # teasers are shorter
_MIN_RUNNING_CHARACTERS = 900  # paragraphs of an article are siblings, teasers of a section page are not
_MAX_RUNNING_OF_SECTION, _MIN_SECTION_LINES = 400, 15
_MIN_TEASERS, _MIN_TEASERS_OF_ARTICLE = 0.5, 0.8  # of the prose of a section page


class PageTooLargeError(ValueError):
    """The page is too large to be read in reasonable time."""


@dataclasses.dataclass(frozen=True)
class ExtractedPage:
    """The result for one page: an article, a hub or a rejection, always with the links of the page.

    Attributes:
      article: the article without what other pages and the capture say of it, or ``None``.
      hub_title: title of the hub, or ``None``.
      rejection: reason why the page is neither an article nor a hub, or ``None``.
      detail: detail of the rejection.
      page_url: canonical URL of the page itself; the article's is its canonical link where that may be believed.
      links: (canonical URL, link text), see :func:`links_of`.
      links_beyond: number of links beyond the limit.
    """

    article: Article | None = None
    hub_title: str | None = None
    rejection: Rejection | None = None
    detail: str = ""
    page_url: str = ""
    links: tuple[tuple[str, str], ...] = ()
    links_beyond: int = 0


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
    headings = headings_of(tree)
    heading = _own_heading(tree, headings)
    structured = read_structured(tree, url, [*headings[:1], _element_title(tree)])
    article_url = _own_url(structured.canonical, url)
    page_url = canonical_url(article_url)
    structured = _with_heading(structured, heading, page_url)
    base = joined(url, next(iter(tree.xpath("//base/@href")), ""))
    links, beyond = links_of(tree, page_url, max_links, base)
    extracted = functools.partial(ExtractedPage, page_url=canonical_url(url), links=links, links_beyond=beyond)
    layout = lay_out(tree)
    title = clean_title(structured.headline or _element_title(tree), structured.site_names, page_url, headings)
    headlines = sum(has_words(words, _MIN_LINK_WORDS) for _, words in links)
    density = layout.density
    unlinked = sum(len(block.text) * (1.0 - block.link_share) for block in layout.blocks)
    is_hub = functools.partial(_is_hub, structured, layout, page_url, heading or title, headlines)
    if is_hub(density * unlinked):
        return extracted(hub_title=title or page_url)
    body = read_body(text, layout, url, heading or title, structured.body, live_blog=structured.live_blog)
    if is_hub(density * len(body.text)):
        return extracted(hub_title=title or page_url)
    is_short_item = headings and body.source == MARKUP and _is_item(urlsplit(page_url))
    least = _MIN_ITEM_BODY if is_short_item else _MIN_BODY_CHARACTERS
    if density * len(body.text) < least and not (structured.is_article and body.text):
        return extracted(
            rejection=Rejection.NOT_AN_ARTICLE if body.text else Rejection.NO_CONTENT,
            detail=f"{len(body.text)} characters of text, {headlines} links",
        )
    if not title:
        return extracted(rejection=Rejection.NO_TITLE, detail="no headline, og:title, heading or title element")
    return extracted(article=_article(tree, layout, article_url, title, body, structured))


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
    text = text.replace("\x00", "")
    if "/>" in text[:2000]:
        text = _CLOSED_ROOT.sub(r"\1>", text, count=1)  # "<html/>" would end the page
    # Plain elements, because the classes of lxml.html double the time.
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=False
    )
    return etree.fromstring(text.encode("utf-8", "replace"), parser) if text.strip() else None


def _article(tree: Any, layout: Layout, url: str, title: str, body: Body, structured: Structured) -> Article:
    sources = {"title": "markup"} | dict(structured.sources) | {"body": body.source}
    site = structured.site_names[0] if structured.site_names else ""
    authors = people(structured.authors, site, structured.language)
    named = names_person(authors, site)
    is_vague = structured.is_guessed or structured.is_vague
    region = Region(layout, title, "" if named and structured.published and not is_vague else body.text)
    if not named:
        shown = people(bylines(tree, region), site, structured.language)
        if shown and (not authors or names_person(shown, site)):
            authors, sources["authors"] = shown, "markup"
    published, modified, guessed = structured.published, structured.modified, structured.is_guessed
    place = place_of(structured.language, url)
    if published is None:
        published, seen_modified, sources["byline_date"], guessed = _shown_day(tree, url, place, region)
        if modified is None and seen_modified is not None:
            modified, sources["modified_date"] = seen_modified, "markup"
    elif is_vague and (shown_day := days(tree, region, place)[0]) and not shown_day.guessed:
        if abs((shown_day.day - published).days) > 1:
            published, sources["byline_date"] = shown_day.day, "markup"
        guessed = False
    for field, value in (("authors", authors), ("byline_date", published), ("modified_date", modified)):
        if not value:
            sources.pop(field, None)
    if guessed:
        sources[GUESSED_ORDER] = "guessed"
    image_url = joined(url, structured.image_url) if structured.image_url else ""
    return Article(
        doc_id=make_doc_id(canonical_url(url)),
        url=url,
        publisher=registered_domain(url),
        title=title,
        body=body.text,
        authors=authors,
        byline_date=published,
        modified_date=modified,
        date_source=sources.get("byline_date", ""),
        language=structured.language,
        keywords=structured.keywords,
        image_url=image_url if canonical_url(image_url) else "",
        paywalled=structured.paywalled,
        live_blog=structured.live_blog,
        sources=tuple(f"{field}: {source}" for field, source in sorted(sources.items())),
    )


def _shown_day(
    tree: Any, url: str, place: str, region: Region
) -> tuple[datetime.date | None, datetime.date | None, str, bool]:
    """Returns (first publication, last modification, source of the first, whether it is guessed) of a page.

    It is asked where the metadata have no date.
    """
    shown, changed = days(tree, region, place)
    published, modified = shown and shown.day, changed and changed.day
    in_url = day_in_url(url)
    if in_url is not None and (published is None or abs((published - in_url).days) > 1):
        return in_url, modified, "url", False  # a day in the text may belong to another story
    if shown is not None:
        return published, modified, "markup", shown.guessed
    if changed is not None:
        return modified, modified, "markup", changed.guessed
    return day_in_scripts(tree, place), None, "text", False


def _is_hub(structured: Structured, layout: Layout, url: str, heading: str, headlines: int, characters: float) -> bool:
    """Returns whether a page is a hub: many linked headlines and little text, and metadata that do not say article.

    For the front page of a site the headlines are enough: some declare to be articles (NPR, NBC) or print whole
    teasers. Without a title in JSON-LD, a page whose heading is the short name in its URL ("/science") is no article.

    Args:
      structured: metadata of the page.
      layout: layout of the page.
      url: canonical URL of the page.
      heading: heading of the page.
      headlines: number of links with several words.
      characters: length of the text outside links, of a script without spaces that of a Latin text as long.
    """
    parts = urlsplit(url)
    has_id = _ITEM_QUERY.search(parts.query) is not None
    if headlines >= _MIN_HUB_LINKS and parts.path == "/" and not has_id:
        return True
    name = unquote(parts.path.removesuffix("/").rpartition("/")[2])
    is_item = has_id or _ITEM.search(name) is not None
    is_named_section = (
        bool(name) and letters_of(name) in letters_of(heading) and not has_words(heading, _MIN_LINK_WORDS)
    )
    is_article = structured.is_article and not (is_named_section and structured.sources.get("title") != JSON_LD)
    running = layout.density * running_text(layout)
    may_be_section = headlines >= _MIN_HUB_LINKS and not is_item and running < _MAX_RUNNING_OF_SECTION
    if may_be_section and is_of_teasers(layout, _MIN_TEASERS_OF_ARTICLE if is_article else _MIN_TEASERS):
        return True  # some declare to be articles
    if is_article or structured.is_video or running >= _MIN_RUNNING_CHARACTERS:
        return False
    linked = sum(map(_is_linked_line, layout.blocks))
    if may_be_section and linked >= _MIN_SECTION_LINES and not _is_item(parts):
        return True
    if headlines >= _MIN_HUB_LINKS and characters < 60 * headlines:
        is_named = has_words(heading, _MIN_LINK_WORDS + 1) and overlap(heading, unquote(parts.path))[0] >= _MIN_SHARED
        least = _MIN_BODY_CHARACTERS if is_named else _MIN_ITEM_CHARACTERS
        return not (is_item and characters >= least) and not _is_text_beside_links(layout)
    return not is_item and characters < _MIN_BODY_CHARACTERS and linked >= _MIN_SMALL_HUB_LINKS


def _is_text_beside_links(layout: Layout) -> bool:
    """Returns whether a page has a text of several paragraphs with few links in between: menus, not teasers."""
    text, density = main_content(layout).text, layout.density
    lines = set(text.splitlines())
    prose = [number for number, block in enumerate(layout.blocks) if block.prose and block.text in lines]
    if density * len(text) < _MIN_TEXT_BESIDE_LINKS or not prose:
        return False
    characters = density * sum(layout.blocks[number].prose for number in prose)
    if len(prose) < _MIN_PARAGRAPHS and characters < _MIN_LONG_PARAGRAPH * len(prose):
        return False
    return 2 * sum(map(_is_linked_line, layout.blocks[prose[0] : prose[-1]])) <= len(prose)


def _is_linked_line(block: Block) -> bool:
    return block.link_share > 0.7 and has_words(block.text, _MIN_LINK_WORDS + 1)


def _own_url(canonical: str, url: str) -> str:
    """Returns the canonical link of a page as it is written, where it may be believed, or the URL of the page."""
    written = joined(url, canonical) if canonical else ""
    own, fetched = canonical_url(written), canonical_url(url)
    is_on_host = own and fetched and own.split("/")[2] == fetched.split("/")[2]
    return written if is_on_host and not _is_of_many(own, fetched) else url


def _is_of_many(canonical: str, fetched: str) -> bool:
    """Returns whether a canonical URL is that of a front or section page, which would merge all pages that name it."""
    own, page = urlsplit(canonical), urlsplit(fetched)
    if own.path == "/" or (_NO_NAME.search(own.path) and not own.query):
        return True
    return canonical != fetched and not _is_item(own) and _is_item(page)


def _is_item(url: SplitResult) -> bool:
    """Returns whether a URL looks like that of a single item: words or a number at its end, or an id in its query."""
    name = url.path.rpartition("/")[2]
    return bool(len(name) >= _MIN_NAME or _ITEM_NAME.search(name) or _ITEM_QUERY.search(url.query))


def links_of(
    tree: Any, url: str, max_links: int = MAX_LINKS, base: str = ""
) -> tuple[tuple[tuple[str, str], ...], int]:
    """Returns unique (canonical URL, link text) pairs in order, and the number of anchors beyond the limit.

    Links to the page itself are left out. Generic texts, such as "Read more", are replaced by "".

    Args:
      tree: a parsed page.
      url: canonical URL of the page.
      max_links: number of pairs to return; at most four times as many anchors are read.
      base: URL with which relative links are joined; a canonical one has lost the slash at its end.
    """
    anchors = tree.iter("a")
    found = tuple(itertools.islice(_links(itertools.islice(anchors, 4 * max_links), url, base or url), max_links))
    return found, sum(1 for anchor in anchors if anchor.get("href"))


def _links(anchors: Iterator[Any], url: str, base: str) -> Iterator[tuple[str, str]]:
    origin = joined(base, "/")
    seen: set[tuple[str, str]] = set()
    for anchor in anchors:
        # Pages of a site share most links, so results are cached; only relative links depend on the page.
        href = anchor.get("href")
        if not href:
            continue
        rooted = href.startswith(("/", "http")) and len(href) <= _MAX_CACHED
        target = _canonical(href, origin) if rooted else _target(href, base)
        if not target or target == url:
            continue
        text = (
            text_of(anchor, _MAX_LINK_TEXT)
            if len(anchor)
            else readable((anchor.text or "")[: 4 * _MAX_LINK_TEXT])[:_MAX_LINK_TEXT]
        )
        if len(text) <= _MAX_GENERIC and _GENERIC.match(text):
            text = ""
        if (target, text) not in seen:
            seen.add((target, text))
            yield target, text


_canonical = functools.lru_cache(maxsize=20_000)(canonical_url)


def _target(href: str, url: str) -> str:
    href = href.strip()
    return "" if href.lower().startswith(_NO_PAGE) else canonical_url(href, url)


def clean_title(title: str, site_names: Iterable[str], url: str, headings: Iterable[str] = ()) -> str:
    """Returns a title without the site's name at either end and the separator next to it.

    >>> clean_title("Council raises embankment - The River News", ["The River News"], "http://rivernews.example/1")
    'Council raises embankment'

    Args:
      title: the title.
      site_names: names of the site.
      url: URL of the page; its host may be the name of the site too ("rivernews").
      headings: headings of the page; a title that consists of a heading, a separator and more text is reduced to the
        heading.
    """
    title = readable(title)[:_MAX_TITLE]
    parts = (urlsplit(url).hostname or "").removeprefix("www.").split(".")
    hosts = map(".".join, (parts, parts[:1], parts[-2:-1], parts[-3:-1]))  # with and without the ends
    names = {name for name in map(letters_of, (*site_names, *hosts)) if len(name) > 1}
    names |= {f"the{name}" for name in names}
    for _ in range(3):  # the site's name may be given several times
        shorter = _without(title, names)
        if shorter == title:
            break
        title = shorter
    for heading in headings:
        if len(heading) >= 15 and title != heading and title.startswith(heading) and _MARKS.match(title, len(heading)):
            return heading
    return title


def _without(title: str, names: set[str]) -> str:
    for marks in (_NAME_MARKS, _MARKS):
        for mark in marks.finditer(title):
            head, tail = title[: mark.start()].strip(), title[mark.end() :].strip()
            is_name = letters_of(head) in names
            if head and tail and not is_name and letters_of(marks.split(tail, maxsplit=1)[0]) in names:
                return head  # also without a section behind the name
            if marks is _MARKS and is_name and has_words(tail, 3):
                return tail
    return title


def headings_of(tree: Any) -> list[str]:
    """Returns the texts of the first five ``h1`` elements."""
    return [text for node in itertools.islice(tree.iter("h1"), 5) if (text := text_of(node, _MAX_TITLE))]


def _with_heading(structured: Structured, heading: str, url: str) -> Structured:
    """Returns the metadata of a page with its heading as the title where that of the metadata is another one.

    Titles for social networks differ from the heading, and some metadata hold only the first characters. A heading that
    is much shorter may be the name of the site.
    """
    stated, letters = clean_title(structured.headline, structured.site_names, url), letters_of(heading)
    whole = letters_of(stated.rstrip(". …"))
    starts = whole != letters and letters.startswith(whole)
    is_cut = starts and (stated.endswith(("...", "…")) or len(stated) >= _LONG_TITLE)
    is_other = structured.sources.get("title") == META and whole not in letters and 2 * len(letters) >= len(whole)
    if not heading or not (is_cut or (is_other and max(overlap(heading, stated)) >= _MIN_SHARED_HEADING)):
        return structured if stated else structured._replace(headline=heading)
    return structured._replace(headline=heading, sources={**structured.sources, "title": MARKUP})


def _own_heading(tree: Any, headings: list[str]) -> str:
    """Returns the main heading; some templates have their name or a section in ``h1``, and the title below."""
    title = _element_title(tree)
    whole = letters_of(title)
    if headings and (letters_of(headings[0]) == whole or overlap(headings[0], title)[1] >= _MIN_SHARED):
        return headings[0]
    for node in itertools.islice(tree.iter("h1", "h2", "h3"), _MAX_HEADINGS):
        letters = letters_of(text := text_of(node, _MAX_TITLE))
        if 2 * len(letters) >= max(len(whole), _MIN_OWN) and letters in whole and text.count(" ") != 1:
            return text
    return headings[0] if headings else ""


def _element_title(tree: Any) -> str:
    """Returns the text of the ``title`` element, or ""."""
    node = next(tree.iter("title"), None)
    return text_of(node, _MAX_TITLE) if node is not None else ""
