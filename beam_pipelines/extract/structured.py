"""Reads the metadata of a page from JSON-LD, OpenGraph and meta elements."""

import dataclasses
import datetime
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...formats.urls import canonical_url
from .dates import is_impossible, parse_day
from .json_ld import article_item, read_items, resolved, types

JSON_LD, META = "json-ld", "meta"
_MAX_KEYWORDS = 20
_MAX_TEXT = 1_000
# Names of meta elements, in order of preference.
_PUBLISHED = [
    "article:published_time",
    "og:published_time",
    "og:article:published_time",
    "datepublished",
    "date",
    "dc.date.issued",
    "dc.date",
    "dcterms.created",
    "dc.date.created",
    "parsely-pub-date",
    "sailthru.date",
    "pubdate",
    "pdate",
    "publishdate",
    "publish-date",
    "publish_date",
    "publication_date",
    "rnews:datepublished",
    "article_date_original",
    "article.published",
    "published-date",
    "published_time",
    "datecreated",
    "cxenseparse:recs:publishtime",
    "bt:pubdate",
    "epoch-publish-date",
    "dcterms.date",
    "displaydate",
    "creation_date",
    "timestamp",
]
_MODIFIED = [
    "article:modified_time",
    "og:updated_time",
    "og:article:modified_time",
    "datemodified",
    "last-modified",
    "lastmod",
    "article_date_updated",
    "dcterms.modified",
    "dc.date.modified",
    "article.updated",
    "utime",
    "modified_time",
]
_AUTHORS = [
    "author",
    "article:author",
    "byl",
    "dc.creator",
    "dcterms.creator",
    "parsely-author",
    "sailthru.author",
    "article_author",
    "article:author_name",
    "og:article:author",
    "cxenseparse:author",
    "dcsext.author",
    "citation_author",
    "authors",
    "article.author",
    "article-author",
    "article:author:name",
]
_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(?:[-_][a-zA-Z0-9]{2,8})*")
_LIVE_URL = re.compile(
    r"/live(?:blog|-blog|-updates?|-coverage)?/|[-/]live-(?:blog|updates?|coverage|results)\b|[-/]liveblog\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<[^<>]{1,300}>")


@dataclasses.dataclass(frozen=True)
class Structured:
    """The metadata of a page; "", () or ``None`` for fields that are not stated.

    Attributes:
      is_article: whether the page declares to be an article.
      is_video: whether the page declares to be a video.
      headline: title of the article.
      site_names: names of the site, which are removed from titles and bylines.
      authors: names as written.
      published: day of publication.
      modified: day of the last modification.
      language: BCP-47 language.
      keywords: keywords of the article.
      image_url: URL of the thumbnail.
      body: text of the article, if JSON-LD contains it.
      canonical: canonical URL.
      paywalled: whether the full text requires a subscription.
      live_blog: whether the page is a live blog.
      impossible_dates: number of stated days that do not exist.
      sources: "json-ld" or "meta" by field.
    """

    is_article: bool
    is_video: bool
    headline: str
    site_names: tuple[str, ...]
    authors: tuple[str, ...]
    published: datetime.date | None
    modified: datetime.date | None
    language: str
    keywords: tuple[str, ...]
    image_url: str
    body: str
    canonical: str
    paywalled: bool
    live_blog: bool
    impossible_dates: int
    sources: Mapping[str, str]


def read_structured(tree: Any, url: str) -> Structured:
    """Returns the metadata of a page: fields from JSON-LD first, then from OpenGraph and meta elements.

    Args:
      tree: a parsed page.
      url: URL of the page, which distinguishes its own article from others that it describes.
    """
    meta, scripts, canonical = _head(tree)
    own = {canonical_url(address, url) for address in (url, canonical, _first(meta, "og:url")) if address}
    items = read_items(scripts)
    item = article_item(items, lambda address: canonical_url(address, url) in own)
    sources: dict[str, str] = {}

    def choose(field: str, from_json_ld: Any, from_meta: Any) -> Any:
        if from_json_ld or from_meta:
            sources[field] = JSON_LD if from_json_ld else META
        return from_json_ld or from_meta

    kind = _first(meta, "og:type").lower()
    live_blog = "liveblogposting" in types(item) or "live" in kind or bool(_LIVE_URL.search(url))
    return Structured(
        is_article=bool(item) or kind.startswith(("article", "liveblog", "news")),
        is_video=kind.startswith("video"),
        headline=choose(
            "title",
            _text(item.get("headline")),
            _text(_first(meta, "og:title", "twitter:title", "parsely-title", "sailthru.title")),
        ),
        site_names=tuple(_site_names(item, items, meta)),
        authors=choose(
            "authors",
            tuple(_names(resolved(item.get("author"), items))) or tuple(_names(item.get("creator"))),
            _meta_authors(meta),
        ),
        published=choose(
            "byline_date",
            parse_day(item.get("datePublished")) or parse_day(item.get("dateCreated")),
            _first_day(meta, _PUBLISHED),
        ),
        modified=choose("modified_date", parse_day(item.get("dateModified")), _first_day(meta, _MODIFIED)),
        language=_language(tree, item, meta),
        keywords=choose(
            "keywords",
            _keywords(item.get("keywords")),
            _keywords(meta.get("article:tag") or _first(meta, "news_keywords", "keywords")),
        ),
        image_url=_first(meta, "og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src")
        or _image(resolved(item.get("image"), items)),
        body=_body(item),
        canonical=canonical or _first(meta, "og:url"),
        paywalled=_is_false(item.get("isAccessibleForFree"))
        or _first(meta, "article:content_tier").lower() == "locked",
        live_blog=live_blog,
        impossible_dates=_impossible_dates(item, meta),
        sources=sources,
    )


def _impossible_dates(item: Mapping[str, Any], meta: Mapping[str, list[str]]) -> int:
    stated = [item.get(name) for name in ("datePublished", "dateCreated", "dateModified")]
    return sum(map(is_impossible, [*stated, *(meta[name][0] for name in (*_PUBLISHED, *_MODIFIED) if name in meta)]))


def _head(tree: Any) -> tuple[dict[str, list[str]], list[str], str]:
    """Returns the meta elements by lower-case name, the JSON-LD scripts, and the canonical link, in one pass."""
    meta: dict[str, list[str]] = {}
    scripts: list[str] = []
    canonical = ""
    for node in tree.iter("meta", "script", "link"):
        if node.tag == "meta":
            name = (node.get("property") or node.get("name") or node.get("itemprop") or "").strip().lower()
            content = (node.get("content") or "").strip()
            if name and content:
                meta.setdefault(name, []).append(content)
        elif node.tag == "script":
            if "ld+json" in (node.get("type") or "").lower() and node.text:
                scripts.append(node.text)
        elif not canonical and (node.get("rel") or "").strip().lower() == "canonical":
            canonical = (node.get("href") or "").strip()
    return meta, scripts, canonical


def _first(meta: Mapping[str, Sequence[str]], *names: str) -> str:
    return next((meta[name][0] for name in names if name in meta), "")


def _first_day(meta: Mapping[str, Sequence[str]], names: Sequence[str]) -> datetime.date | None:
    return next((day for name in names if name in meta and (day := parse_day(meta[name][0])) is not None), None)


def _text(value: Any) -> str:
    """Returns a value as one line of text, without the markup and entities that some templates leave in JSON."""
    if not isinstance(value, str):
        return ""
    text = value[: 10 * _MAX_TEXT]
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _MARKUP.sub("", text)
    return " ".join(text.split())[:_MAX_TEXT]


def _names(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        name = item.get("name") if isinstance(item, dict) else item
        for one in name if isinstance(name, list) else [name]:
            text = _text(one)
            if text and "://" not in text:
                yield text


def _meta_authors(meta: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    for name in _AUTHORS:
        found = tuple(
            text
            for value in meta.get(name, ())
            if (text := _text(value)) and "://" not in text and not text.startswith("@")
        )
        if found:
            return found
    return ()


def _site_names(
    item: Mapping[str, Any], items: Sequence[Mapping[str, Any]], meta: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for name in (
        "og:site_name",
        "application-name",
        "apple-mobile-web-app-title",
        "twitter:app:name:iphone",
        "dc.publisher",
        "cre",
    ):
        if text := _text(_first(meta, name)):
            yield text
    if handle := _first(meta, "twitter:site").lstrip("@"):
        yield handle
    yield from _names(item.get("publisher"))
    for one in items:
        if types(dict(one)) & {"website", "newsmediaorganization", "organization"}:
            yield from _names(one.get("name"))


def _language(tree: Any, item: Mapping[str, Any], meta: Mapping[str, Sequence[str]]) -> str:
    root = tree if tree.tag == "html" else tree.getroottree().getroot()
    for value in (
        root.get("lang"),
        root.get("xml:lang"),
        item.get("inLanguage"),
        _first(meta, "og:locale", "language", "dc.language", "content-language"),
    ):
        if isinstance(value, str) and _LANGUAGE.fullmatch(value.strip()):
            return value.strip().replace("_", "-")
    return ""


def _keywords(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    words = [
        _text(word)
        for part in parts
        if isinstance(part, str)
        for word in (part.split(",") if len(parts) == 1 else [part])
    ]
    return tuple(dict.fromkeys(word for word in words if word and len(word) <= 100))[:_MAX_KEYWORDS]


def _image(value: Any) -> str:
    first = value[0] if isinstance(value, list) and value else value
    found = first.get("url") or first.get("contentUrl") if isinstance(first, dict) else first
    return found if isinstance(found, str) else ""


def _is_false(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no", "0"))


def _body(item: Mapping[str, Any]) -> str:
    """Returns the text of the article in JSON-LD, one paragraph per line; the posts of a live blog in order."""
    pieces = [item.get("articleBody")]
    updates = item.get("liveBlogUpdate")
    pieces += [
        one.get("articleBody") for one in (updates if isinstance(updates, list) else [updates]) if isinstance(one, dict)
    ]
    text = "\n".join(piece for piece in pieces if isinstance(piece, str))
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text:
        text = _MARKUP.sub("\n", text)
    return "\n".join(line for raw in text.splitlines() if (line := " ".join(raw.split())))
