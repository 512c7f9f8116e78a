"""Converts rows of JSONL or Parquet: pre-extracted articles, and posts in social networks that link to articles."""

import dataclasses
import html
import re
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...errors import InputError
from ...formats.dates import day_in_url, parse_day, place_of, read_day
from ...formats.records import Article, Post, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from ..progress import CUT_BODIES, GUESSED_DATES, MARKUP_IN_BODIES, NO_PERSONS, UNREAD_DATES, WITHOUT_DATE, WITHOUT_URL
from .body import MAX_BODY_CHARACTERS
from .bylines import listed_names, people
from .charsets import readable, visible
from .layout import lay_out
from .page import clean_title, parse
from .trimming import is_boilerplate

_MAX_UNREAD = 20  # names of fields that are counted of one slice; rows may have any number
_NOTHING = re.compile(r"(?i)\W*(?:none|nan|null|n/?a)?\W*$")
_MARKUP = re.compile(r"(?i)</(?:p|div|a|span|script|style|h[1-6]|li|em|strong)>|<br\s*/?>")
_ENTITY = re.compile(r"(?i)&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]\w{1,30});")
# What NewsAPI and GNews write where they cut a body, and WordPress at the end of a description.
_LAST_WORDS = re.compile(
    r"\s?(?:\[\+?\d{1,9} chars\]|The post \S.{0,300} (?:first appeared|appeared first) on .{1,80})\s?$"
)
_PARAGRAPH = re.compile(r"(?i)(?:<br\s*/?>\s*)+|\n\s*\n")
_URL = re.compile(r"(?i)(?:\bhttps?://|\bwww\.|\bpic\.twitter\.com/)\S+")
_MENTION = re.compile(r"(?<![\w@])@\w+", re.UNICODE)
_RETWEET = re.compile(r"^\s*RT\b(?:\s*@\w+)?\s*:?\s*")
_HASHTAG = re.compile(r"[#\uff03](\w+)")
# Where a word begins inside a hashtag: "ClimateChange", "USElection", "Election2016", "climate_change".
_WORD = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|_+")
# Sites with articles of other publishers, whose domains do not say whose an article is.
_AGGREGATORS = str.split(
    "google.com msn.com yahoo.com apple.news newsbreak.com smartnews.com flipboard.com feedburner.com feedly.com"
    " archive.org archive.ph reddit.com twitter.com x.com t.co bit.ly proquest.com nexis.com"
)
_READ_TEXTS = {"doc_id", "url", "publisher", "title", "body", "text", "image_url", "language"}
_READ_LISTS = {"authors", "keywords", "anchor_texts", "feeds"}
_OURS = {field.name for field in dataclasses.fields(Article)}
DATES: Final = ("byline_date", "published_at", "modified_date")
_READ = _READ_TEXTS | _READ_LISTS | {*DATES}


def row_to_article(row: Mapping[str, Any], order: str = "") -> Article:
    """Returns the article of a row.

    Args:
      row: ``url``, ``title``, ``body`` and, if known, ``authors``, ``byline_date`` or ``published_at``,
        ``modified_date``, ``keywords``, ``anchor_texts``, ``image_url``, ``language``. The publisher of the article is
        the registered domain of its URL, or ``publisher`` where that domain is an aggregator's. The title is cleaned
        and cut as that of a page, without the name that ``publisher`` gives at its end; a title that is the whole body
        is its first line. Of a body in HTML the text is taken, a paragraph in each line; lines such as "Sign up here."
        are left out. An article without an absolute URL is known by its title and body, one without a date has the day
        in its URL.
      order: of day and month in the file, see :func:`~newsembed.formats.dates.day_order`.

    Raises:
      InputError: naming a field that is missing or of the wrong type.
      PageTooLargeError: for a body in HTML with a tag of thousands of attributes.
    """
    url, image_url = (_url(row.get(name)) for name in ("url", "image_url"))
    for name in ("title", "body", "text"):
        if not isinstance(row.get(name), str | None):
            raise InputError(f"got {reprlib.repr(row[name])}, expected a string", field=name)
    title = row.get("title") or ""  # of a table of texts, it may be the same column as the body
    title = title.strip().partition("\n")[0] if title == row.get("body") else title
    title = clean_title(_text(_unescaped(title)), [_text(row.get("publisher"))], url)
    body = _LAST_WORDS.sub("", visible(row.get("body") or row.get("text") or ""))
    body = body if _MARKUP.search(body) else _unescaped(body)
    if _MARKUP.search(body):
        body = "\n".join(
            block.text for block in lay_out(parse(_PARAGRAPH.sub("<p>", body[: 10 * MAX_BODY_CHARACTERS]))).blocks
        )
    # A notice that many articles of a site begin with would join them to an event.
    first, _, rest = body.strip().partition("\n")
    lines = rest.split("\n") if readable(first) == title else body.split("\n")
    body = "\n".join(line for line in lines if not (line and is_boilerplate(line))).strip() or body
    for name, value in (("title", title), ("body", body.strip())):
        if not value:
            others = ", ".join([key[:40] for key in row if key not in _READ | _OURS][:_MAX_UNREAD])
            raise InputError(f"empty or absent; the row has {others}" if others else "empty or absent", field=name)
    language = _text(row.get("language"))
    place = place_of(language, url, order)
    days = [parse_day(row.get(name), place) for name in DATES]
    stated, in_url = days[0] or days[1], day_in_url(url)
    keywords, domain, named = row.get("keywords"), registered_domain(url), _text(row.get("publisher"))
    body = body[:MAX_BODY_CHARACTERS].strip()
    return Article(
        doc_id=make_doc_id(canonical_url(url) or f"{title}\n{body}"),
        url=url,
        publisher=named if named and (not domain or domain in _AGGREGATORS) else domain,
        title=title,
        body=body,
        authors=people(tuple(listed_names(row.get("authors"))), language=language),
        byline_date=stated or in_url,
        modified_date=days[2],
        date_source="given" if stated else "url" if in_url else "",
        language=language,
        keywords=texts_of(keywords.split(",") if isinstance(keywords, str) else keywords),
        anchor_texts=texts_of(row.get("anchor_texts")),
        image_url=image_url,
    )


def _unescaped(text: str) -> str:
    """The characters that references of HTML name, which some tools leave in their texts."""
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def remarks_on(row: Mapping[str, Any], article: Article, order: str = "") -> Iterator[tuple[str, int]]:
    """Yields (name of a tally, count) for what a user should know of a row that became an article."""
    text, is_stated = row.get("body") or row.get("text") or "", any(row.get(name) for name in DATES[:2])
    # Nothing says the order of "03/05/2018".
    yield UNREAD_DATES, article.byline_date is None and is_stated
    yield WITHOUT_DATE, article.byline_date is None and not is_stated
    place = place_of(article.language, article.url, order)
    yield GUESSED_DATES, next((day.guessed for name in DATES[:2] if (day := read_day(row.get(name), place))), False)
    yield NO_PERSONS, not article.authors and not _NOTHING.match(str(row.get("authors")))
    yield WITHOUT_URL, not article.url
    yield MARKUP_IN_BODIES, _MARKUP.search(text) is not None
    yield CUT_BODIES, len(text) > MAX_BODY_CHARACTERS


def unread_fields(row: Mapping[str, Any], known: set[str]) -> list[str]:
    """Returns the names of the fields that have a value which nothing reads, such as ``author`` for ``authors``.

    Fields of `Article` that only a crawl can fill are left out: newsembed wrote them.

    Args:
      row: a row.
      known: names that earlier rows of the slice had; new ones are added until there are enough.
    """
    names = [name[:40] for name in row if name not in _READ | _OURS and row[name] not in (None, "", [])]
    known.update([name for name in names if name not in known][: _MAX_UNREAD - len(known)])
    return [name for name in names if name in known]


def _url(value: Any) -> str:
    """An absolute URL as it is written; "" for any other value."""
    url = str(value or "").strip()
    return url if canonical_url(url) else ""


def _text(value: Any) -> str:
    return readable(str(value)) if value is not None else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """Returns the texts of a field that is a text or a list."""
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return tuple(_text(item) for item in value if _text(item)) if isinstance(value, list | tuple) else ()


def clean_post(text: str) -> str:
    """Returns the words of a post: without URLs, mentions and the mark of a repeated post; hashtags become words.

    >>> clean_post("RT @ap: Storm hits #NewOrleans #USElection2016, says @noaa https://t.co/x1")
    'Storm hits New Orleans US Election 2016, says'
    """
    text = _RETWEET.sub("", text.replace("\x00", ""))
    text = _MENTION.sub(" ", _URL.sub(" ", text))
    return readable(_HASHTAG.sub(lambda tag: f" {_WORD.sub(' ', tag[1])} ", text).replace(" ,", ","))


def row_to_post(row: Mapping[str, Any]) -> Post:
    """Returns the post of a row; its text may be empty where nothing but URLs and mentions was in it.

    Args:
      row: ``text``, and ``url``, the article that the post links to.

    Raises:
      InputError: naming a field that is missing or of the wrong type.
    """
    url, text = canonical_url(_url(row.get("url"))), row.get("text")
    if not url:
        raise InputError(f"got {row.get('url')!r}, expected an absolute http(s) URL", field="url")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"got {text!r}, expected the words of the post", field="text")
    return Post(make_doc_id(url), url, clean_post(text))
