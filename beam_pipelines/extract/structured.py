"""What a page says of itself in JSON-LD, OpenGraph and meta elements."""

import dataclasses
import datetime
import re
from collections.abc import Iterator
from typing import Any

from .loose_json import load_json

_ARTICLE_TYPES = {
    "article",
    "newsarticle",
    "reportagenewsarticle",
    "analysisnewsarticle",
    "blogposting",
    "liveblogposting",
    "opinionnewsarticle",
    "backgroundnewsarticle",
}
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_URL_DAY = re.compile(r"/(20\d\d|19\d\d)[/-](0?[1-9]|1[0-2])[/-](0?[1-9]|[12]\d|3[01])(?=[/-])")
_MAX_KEYWORDS = 20


@dataclasses.dataclass(frozen=True)
class Structured:
    """Machine-readable statements of a page, "" or ``None`` where it makes none."""

    is_article: bool
    headline: str
    site_name: str
    authors: tuple[str, ...]
    published: datetime.date | None
    published_source: str
    modified: datetime.date | None
    language: str
    keywords: tuple[str, ...]
    image_url: str


def read_structured(tree: Any) -> Structured:
    """Reads JSON-LD first, then OpenGraph and meta elements; what JSON-LD lacks is filled from the others."""
    items = [item for item in _json_ld(tree) if _types(item) & _ARTICLE_TYPES]
    item = items[0] if items else {}
    meta = _meta(tree)
    published, source = parse_day(item.get("datePublished")), "json-ld"
    if published is None:
        found = _first(
            meta,
            "article:published_time",
            "og:published_time",
            "datepublished",
            "date",
            "dc.date",
            "dc.date.issued",
            "parsely-pub-date",
            "sailthru.date",
            "pubdate",
            "publishdate",
        )
        published, source = parse_day(found), "meta"
    return Structured(
        is_article=bool(items) or meta.get("og:type", "").lower() == "article",
        headline=_text(item.get("headline")) or _first(meta, "og:title", "twitter:title"),
        site_name=_first(meta, "og:site_name", "application-name"),
        authors=tuple(_authors(item.get("author")))
        or tuple(filter(None, [_not_url(_first(meta, "author", "article:author", "byl", "dc.creator", "parsely-author"))])),
        published=published,
        published_source=source if published else "",
        modified=parse_day(item.get("dateModified"))
        or parse_day(_first(meta, "article:modified_time", "og:updated_time", "last-modified")),
        language=(tree.get("lang") or "").strip().replace("_", "-"),
        keywords=_keywords(item.get("keywords") or _first(meta, "news_keywords", "keywords")),
        image_url=_first(meta, "og:image", "og:image:url", "twitter:image") or _image(item.get("image")),
    )


def parse_day(value: Any) -> datetime.date | None:
    """The UTC day of an ISO 8601 date or time; ``None`` if there is none.

    >>> parse_day("2021-03-01T23:30:00-05:00")
    datetime.date(2021, 3, 2)
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        found = _DAY.match(text)
        return _day(*map(int, found.groups())) if found else None
    try:
        return moment.astimezone(datetime.UTC).date() if moment.tzinfo else moment.date()
    except OverflowError:  # year 1 or 9999, shifted over the edge
        return moment.date()


def day_in_url(url: str) -> datetime.date | None:
    """The day that a URL names, as in ``/2016/11/08/``."""
    found = _URL_DAY.search(url)
    return _day(*map(int, found.groups())) if found else None


def _day(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def _json_ld(tree: Any) -> Iterator[dict[str, Any]]:
    for script in tree.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and script.text:
            try:
                value = load_json(script.text.strip().rstrip(";"))
            except ValueError:
                continue  # broken JSON-LD is common; meta elements and text remain
            yield from _objects(value, depth=4)


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        if depth:
            for name in ("@graph", "mainEntity", "mainEntityOfPage"):
                yield from _objects(value.get(name), depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _objects(item, depth - 1)


def _types(item: dict[str, Any]) -> set[str]:
    value = item.get("@type")
    return {str(name).lower() for name in (value if isinstance(value, list) else [value])}


def _meta(tree: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.iter("meta"):
        name = (node.get("property") or node.get("name") or node.get("itemprop") or "").strip().lower()
        content = (node.get("content") or "").strip()
        if name and content:
            found.setdefault(name, content)
    return found


def _first(meta: dict[str, str], *names: str) -> str:
    return next((meta[name] for name in names if name in meta), "")


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _not_url(text: str) -> str:
    return "" if "://" in text else text


def _authors(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        name = item.get("name") if isinstance(item, dict) else item
        for one in name if isinstance(name, list) else [name]:
            if _not_url(_text(one)):
                yield _text(one)


def _keywords(value: Any) -> tuple[str, ...]:
    parts = (
        value.split(",") if isinstance(value, str) else [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
    )
    return tuple(dict.fromkeys(_text(part) for part in parts if _text(part)))[:_MAX_KEYWORDS]


def _image(value: Any) -> str:
    first = value[0] if isinstance(value, list) and value else value
    return str(first.get("url") or "") if isinstance(first, dict) else first if isinstance(first, str) else ""
