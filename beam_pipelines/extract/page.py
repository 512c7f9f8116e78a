"""One HTML page to an article, a hub, or a reason why it is neither: the one door to trafilatura and htmldate."""

import dataclasses
import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ..records import Rejection
from .structured import Structured, parse_day, read_structured
from .urls import canonical_url

_MAX_BODY_CHARACTERS = 50_000
_MIN_BODY_CHARACTERS = 200
_MIN_HUB_LINKS = 8
_MIN_LINK_WORDS = 3
_MAX_AUTHORS = 10
_GENERIC_LINK = re.compile(
    r"^\W*(read|see|view|show|load|learn|find)?\s*(more|all|next|previous|back|here|full story|continue reading|comments?|share)\W*$",
    re.IGNORECASE,
)
_AUTHOR_SPLIT = re.compile(r"\s*[;,|]\s*|\s+(?:and|und|y|et|&)\s+", re.IGNORECASE)
_BY = re.compile(r"^(?:written\s+)?(?:by|von|por|par|di)[\s:]+", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class ArticlePage:
    """What an article page says of itself; fields as in :class:`~..records.Article`."""

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


@dataclasses.dataclass(frozen=True)
class ExtractedPage:
    """An article, a hub (its title), or the rejection; and the links of the page in any case.

    Attributes:
      links: (canonical URL, link text) in order, each pair once, without links to itself and generic texts emptied.
    """

    article: ArticlePage | None = None
    hub_title: str | None = None
    rejection: Rejection | None = None
    detail: str = ""
    links: tuple[tuple[str, str], ...] = ()


def extract_page(html: str, url: str) -> ExtractedPage:
    """Extracts one page.

    Args:
      html: decoded markup.
      url: where it was fetched; the page's own canonical link replaces it if it stays on the host.

    Raises:
      ValueError, lxml errors and others of the libraries on pages they cannot read; the caller makes dead letters of them.
    """
    import trafilatura

    tree = trafilatura.load_html(html)
    if tree is None:
        return ExtractedPage(rejection=Rejection.NO_CONTENT, detail="no markup to parse")
    page_url = _own_url(tree, url)
    links = tuple(_links(tree, page_url))
    structured = read_structured(tree)
    said = sum(1 for _, text in links if len(text.split()) >= _MIN_LINK_WORDS)
    front = urlsplit(page_url).path == "/"
    if _is_hub(structured, _text_outside_links(tree), said, front=front):  # surely one, and spares the slow extractor
        return ExtractedPage(hub_title=_title(structured, None) or _element_title(tree) or page_url, links=links)
    document = trafilatura.bare_extraction(
        tree,
        url=url,
        with_metadata=True,
        include_comments=False,
        include_tables=False,
        favor_precision=True,
        date_extraction_params={"original_date": True, "extensive_search": False},
    )
    body = (document.text or "")[:_MAX_BODY_CHARACTERS].strip() if document is not None else ""
    if _is_hub(structured, len(body), said, front=front):
        return ExtractedPage(hub_title=_title(structured, document) or page_url, links=links)
    if len(body) < _MIN_BODY_CHARACTERS and not structured.is_article:
        return ExtractedPage(
            rejection=Rejection.NOT_AN_ARTICLE if body else Rejection.NO_CONTENT,
            detail=f"{len(body)} characters of text, {said} links",
            links=links,
        )
    title = _title(structured, document)
    if not title:
        return ExtractedPage(rejection=Rejection.NO_TITLE, detail="no headline, og:title, heading or title element", links=links)
    return ExtractedPage(article=_article(page_url, title, body, structured, document), links=links)


def _article(url: str, title: str, body: str, structured: Structured, document: Any) -> ArticlePage:
    byline_date, source = structured.published, structured.published_source
    if byline_date is None and document is not None and document.date:
        byline_date, source = parse_day(document.date), "text"
    return ArticlePage(
        url=url,
        title=title,
        body=body,
        authors=people(structured.authors or ((document.author or "") if document is not None else "")),
        byline_date=byline_date,
        modified_date=structured.modified,
        date_source=source if byline_date else "",
        language=structured.language,
        keywords=structured.keywords,
        image_url=canonical_url(structured.image_url, url) if structured.image_url else "",
    )


def people(text: str | tuple[str, ...]) -> tuple[str, ...]:
    """Names of people from a byline: split, "By" and e-mail addresses dropped, each once, in order.

    >>> people("By Ann Lee and Bo Chen, bo@x.org; Ann Lee")
    ('Ann Lee', 'Bo Chen')
    """
    parts = _AUTHOR_SPLIT.split(text) if isinstance(text, str) else [part for name in text for part in _AUTHOR_SPLIT.split(name)]
    names = (_BY.sub("", " ".join(part.split())).strip(" .,") for part in parts)
    kept = (name for name in names if 1 < len(name) <= 80 and "@" not in name and "://" not in name)
    return tuple(dict.fromkeys(kept))[:_MAX_AUTHORS]


def _is_hub(structured: Structured, characters: int, said: int, *, front: bool) -> bool:
    """Many headlines as links and no text that outweighs them, on a page that does not call itself an article.

    A site's front page needs the headlines only: some call themselves articles (NPR, NBC), some print whole teasers.
    """
    return said >= _MIN_HUB_LINKS and (front or (not structured.is_article and characters < 60 * said))


def _text_outside_links(tree: Any) -> int:
    """Characters of visible text that is in no link."""
    texts = tree.xpath(
        "//body//text()[not(ancestor::a or ancestor::script or ancestor::style or ancestor::noscript or ancestor::template)]"
    )
    return sum(len(text.strip()) for text in texts)


def _element_title(tree: Any) -> str:
    for path in ("//h1", "//title"):
        for node in tree.xpath(path)[:1]:
            if text := " ".join("".join(node.itertext()).split()):
                return text
    return ""


def _title(structured: Structured, document: Any) -> str:
    title = structured.headline or ((document.title or "") if document is not None else "")
    site = structured.site_name or ((document.sitename or "") if document is not None else "")
    title = " ".join(title.split())
    for mark in (" | ", " - ", " \u2013 ", " \u2014 ", " :: "):
        head, found, tail = title.rpartition(mark)
        if found and head and site and tail.strip().casefold() == site.strip().casefold():
            return head.strip()
    return title


def _own_url(tree: Any, url: str) -> str:
    fetched = canonical_url(url)
    for link in tree.xpath('//link[@rel="canonical"]/@href')[:1]:
        own = canonical_url(link, url)
        # A canonical link to the front page is a common mistake of templates and would merge the whole site.
        if own and own.split("/")[2] == fetched.split("/")[2] and own.count("/") >= 3 and own.rpartition("/")[2]:
            return own
    return fetched


def _links(tree: Any, url: str) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    for anchor in tree.iter("a"):
        target = canonical_url(anchor.get("href") or "", url)
        text = " ".join("".join(anchor.itertext()).split())[:300]
        if _GENERIC_LINK.match(text):
            text = ""
        if target and target != url and (target, text) not in seen:
            seen.add((target, text))
            yield target, text


def as_mapping(page: ArticlePage) -> Mapping[str, Any]:
    """Fields by name, for building a record."""
    return {field.name: getattr(page, field.name) for field in dataclasses.fields(page)}
