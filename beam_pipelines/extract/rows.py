"""Converts pre-extracted articles, rows of JSONL or Parquet, to :class:`~newsembed.formats.records.Article`."""

import datetime
import re
import reprlib
from collections.abc import Mapping
from typing import Any

from ...formats.articles import utc_day
from ...formats.records import Article, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from .body import MAX_BODY_CHARACTERS
from .dates import is_impossible, parse_day
from .people import people
from .title import clean_title

_MAX_UNREAD = 20  # names of fields that are counted of one slice; rows may have any number
_MARKUP = re.compile(r"</(?:p|div|a|span|script|style|h[1-6]|li|em|strong)>|<br\s*/?>", re.IGNORECASE)
_READ_TEXTS = {"doc_id", "url", "publisher", "title", "body", "text", "image_url", "language"}
_READ_LISTS = {"authors", "keywords", "anchor_texts", "feeds"}
_READ = _READ_TEXTS | _READ_LISTS | {"byline_date", "published_at", "modified_date"}


def row_to_article(row: dict[str, Any]) -> tuple[Article | None, str]:
    """Returns (article, "") or (``None``, description of the field that is missing or of the wrong type).

    Args:
      row: ``url``, ``title``, ``body`` and, if known, ``authors``, ``byline_date`` or ``published_at``,
        ``modified_date``, ``keywords``, ``anchor_texts``, ``image_url``, ``language``. The publisher of the article is
        the registered domain of its URL. The title is cleaned and cut as that of a page, without the name that
        ``publisher`` gives at its end.
    """
    url = canonical_url(str(row.get("url") or ""))
    if not url:
        return None, f"url: got {row.get('url')!r}, expected an absolute http(s) URL"
    for name in ("title", "body", "text"):
        if not isinstance(row.get(name), str | None):
            return None, f"{name}: got {reprlib.repr(row[name])}, expected a string"
    title, body = _title(row, url), (row.get("body") or row.get("text") or "").replace("\x00", "")
    for name, value in (("title", title), ("body", body.strip())):
        if not value:
            return None, f"{name}: empty or absent"
    byline_date = _day(row.get("byline_date")) or _day(row.get("published_at"))
    return (
        Article(
            doc_id=make_doc_id(url),
            url=url,
            publisher=registered_domain(url),
            title=title,
            body=body[:MAX_BODY_CHARACTERS].strip(),
            authors=people(_texts(row.get("authors"))),
            byline_date=byline_date,
            modified_date=_day(row.get("modified_date")),
            date_source="given" if byline_date else "",
            language=_text(row.get("language")),
            keywords=_listed(row.get("keywords")),
            anchor_texts=_texts(row.get("anchor_texts")),
            image_url=canonical_url(str(row.get("image_url") or "")),
        ),
        "",
    )


def impossible_dates(row: dict[str, Any]) -> int:
    """Returns the number of fields of a row that state a day which does not exist; the article has none then."""
    return sum(is_impossible(row.get(name)) for name in ("byline_date", "published_at", "modified_date"))


def has_unread_date(row: Mapping[str, Any], article: Article) -> bool:
    """Returns whether a row states a date, and the article has none: "03/05/2018" has no certain order."""
    return article.byline_date is None and any(row.get(name) for name in ("byline_date", "published_at"))


def has_markup(body: str) -> bool:
    """Returns whether a text has tags of HTML, which stay in it.

    >>> has_markup("<p>Rain fell.</p>"), has_markup("2 < 3, and 5 > 4"), has_markup("first<br/>second")
    (True, False, True)
    """
    return _MARKUP.search(body) is not None


def is_cut(row: Mapping[str, Any]) -> bool:
    """Returns whether the body of a row is longer than that of an article may be."""
    return len(row.get("body") or row.get("text") or "") > MAX_BODY_CHARACTERS


def feeds_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the hubs that list the article of a row."""
    return _texts(row.get("feeds"))


def unread_fields(row: Mapping[str, Any], known: set[str]) -> list[str]:
    """Returns the names of the fields that have a value which nothing reads, such as ``author`` for ``authors``.

    Args:
      row: a row.
      known: names that earlier rows of the slice had; new ones are added until there are enough.
    """
    names = [name[:40] for name in row if name not in _READ and row[name] not in (None, "", [])]
    known.update([name for name in names if name not in known][: _MAX_UNREAD - len(known)])
    return [name for name in names if name in known]


def _title(row: dict[str, Any], url: str) -> str:
    title = _text(row.get("title")).replace("\x00", "")
    return clean_title(title, [_text(row.get("publisher"))], url) if title else ""


def _day(value: Any) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        return utc_day(value)
    return value if isinstance(value, datetime.date) else parse_day(value)


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if value is not None else ""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return tuple(_text(item) for item in value if _text(item)) if isinstance(value, (list, tuple)) else ()


def _listed(value: Any) -> tuple[str, ...]:
    """As `_texts`; the parts of one text are separated by commas."""
    return _texts(value.split(",") if isinstance(value, str) else value)
