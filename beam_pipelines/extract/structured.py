"""Reads the metadata of a page from JSON-LD (schema.org), OpenGraph and meta elements."""

import contextlib
import datetime
import html
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...formats.dates import Day, place_of, read_day
from ...formats.jsonl import load_json
from ...formats.urls import canonical_url
from ...tasks.sentences import words_of
from .. import read_lists
from .bylines import in_order, listed_names
from .charsets import readable
from .layout import words

JSON_LD, META = "json-ld", "meta"
_MAX_KEYWORDS = 20
_MAX_TEXT = 1_000
_LISTS = read_lists(__package__, "structured.txt")  # of names, in order of preference
_ARTICLE_TYPES = words(_LISTS["article_types"])
_MAX_SCRIPT_CHARACTERS = 2_000_000
_MAX_OBJECTS = 2_000
_OPENING = re.compile(r"\s*+(?:<!--|(?:(?://|/\*)\s*+)?<!\[CDATA\[\s*+(?:\*/)?)")
_UNTYPED = re.compile(r"\s*+[\[{]\s*+(?:{\s*+)?\"@context\"")  # some templates leave the type out
_CLOSINGS = (";", "-->", "/*]]>*/", "/* ]]> */", "//]]>", "// ]]>", "]]>")
# Commas before an end, comments and escaped apostrophes, which are script and not JSON.
_NO_JSON = re.compile(r",(?=\s{0,100}[}\]])|^[ \t]{0,100}//[^\n]*|/\*[^*]{0,500}\*/|\\(?=')", re.MULTILINE)
_PUBLISHED, _VAGUE, _MODIFIED, _AUTHORS = (
    _LISTS[name].split() for name in ("published", "vague", "modified", "authors")
)
_IMAGES = _LISTS["images"].split()
_SITES = str.split("og:site_name application-name apple-mobile-web-app-title twitter:app:name:iphone dc.publisher cre")
# What makes an item complete.
_FIELDS = str.split("headline datePublished author articleBody dateModified image publisher url keywords")
_MIN_SHARE, _MAX_OTHER, _OTHER_PAGE = 0.7, 0.15, -2  # of the words of a title
_EDITION = re.compile(
    r"(?<=//)(?:m|mobile|amp|wap|touch)\.|[/.]amp$|/index\.\w+$|[?&](?:amp|outputType)=\w*$|(?<=/)amp/"
)
_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(?:[-_][a-zA-Z0-9]{2,8})*")
_LIVE_URL = re.compile(
    r"(?i)/live(?:blog|-blog|-updates?|-coverage)?/|[-/]live-(?:blog|updates?|coverage|results)\b|[-/]liveblog\b",
)
_MARKUP = re.compile(r"<[^<>]{1,300}>")
_SCRIPT_DAY = re.compile(_LISTS["script_day"])


class Structured(NamedTuple):
    """The metadata of a page; "", () or ``None`` for fields that are not stated.

    Attributes:
      is_article: whether the page declares to be an article.
      is_video: whether the page declares to be a video.
      headline: title of the article.
      site_names: names of the site, which are removed from titles and bylines.
      authors: names as written.
      published: day of publication.
      is_guessed: whether the order of its day and month is a guess.
      is_vague: whether it may be the day of the file or of the template, so that one in the byline counts before it.
      modified: day of the last modification.
      language: BCP-47 language.
      keywords: keywords of the article.
      image_url: URL of the thumbnail.
      body: text of the article, if JSON-LD contains it.
      canonical: canonical URL.
      paywalled: whether the full text requires a subscription.
      live_blog: whether the page is a live blog.
      sources: "json-ld" or "meta" by field.
    """

    is_article: bool
    is_video: bool
    headline: str
    site_names: tuple[str, ...]
    authors: tuple[str, ...]
    published: datetime.date | None
    is_guessed: bool
    is_vague: bool
    modified: datetime.date | None
    language: str
    keywords: tuple[str, ...]
    image_url: str
    body: str
    canonical: str
    paywalled: bool
    live_blog: bool
    sources: Mapping[str, str]


def read_structured(tree: Any, url: str, titles: Sequence[str] = ()) -> Structured:
    """Returns the metadata of a page: fields from JSON-LD first, then from OpenGraph and meta elements.

    A date that cannot be believed, or only by guessing the order of its day and month, gives way to the next source.

    Args:
      tree: a parsed page.
      url: URL of the page, which distinguishes its own article from others that it describes.
      titles: headings of the page, which distinguish it as well.
    """
    meta, scripts, canonical = _head(tree)

    def first(*names: str) -> str:
        return next((meta[name][0] for name in names if name in meta), "")

    own = {canonical_url(address, url) for address in (url, canonical, first("og:url")) if address}
    items = _read_items(scripts)
    item = _article_item(items, url, own, [*titles, first("og:title")])
    language = _language(tree, item, first("og:locale", "language", "dc.language", "content-language"))
    place = place_of(language, url)
    days = [item.get(name) for name in ("datePublished", "dateCreated", "dateModified")]
    published = _first_day([days[:2], _values(meta, _PUBLISHED), _values(meta, _VAGUE)], place)
    modified = _first_day([days[2:], _values(meta, _MODIFIED)], place)
    from_json_ld = {
        "title": _text(item.get("headline")),
        "authors": tuple(_names(_resolved(item.get("author"), items))) or tuple(_names(item.get("creator"))),
        "keywords": _keywords(item.get("keywords")),
    }
    from_meta = {
        "title": _text(first("og:title", "twitter:title", "parsely-title", "sailthru.title")),
        "authors": _meta_authors(meta),
        "keywords": _keywords(meta.get("article:tag") or first("news_keywords", "keywords")),
    }
    chosen: dict[str, Any] = {field: value or from_meta[field] for field, value in from_json_ld.items()}
    sources = {field: JSON_LD if from_json_ld[field] else META for field, value in chosen.items() if value}
    for field, found in (("byline_date", published), ("modified_date", modified)):
        if found:
            sources[field] = (JSON_LD, META, META)[found[0]]
    kind = first("og:type").lower()
    return Structured(
        is_article=bool(item) or kind.startswith(("article", "liveblog", "news")),
        is_video=kind.startswith("video"),
        headline=chosen["title"],
        site_names=tuple(_site_names(item, items, meta)),
        authors=chosen["authors"],
        published=published[1].day if published else None,
        is_guessed=bool(published and published[1].guessed),
        is_vague=bool(published and published[0] == 2),
        modified=modified[1].day if modified else None,
        language=language,
        keywords=chosen["keywords"],
        image_url=first(*_IMAGES) or _image(_resolved(item.get("image") or item.get("thumbnailUrl"), items)),
        body=_body(item),
        canonical=canonical or first("og:url"),
        paywalled=_is_false(item.get("isAccessibleForFree")) or first("article:content_tier").lower() == "locked",
        live_blog="liveblogposting" in _types(item) or "live" in kind or bool(_LIVE_URL.search(url)),
        sources=sources,
    )


def day_in_scripts(tree: Any, place: str) -> datetime.date | None:
    """Returns the day of publication in the data of scripts, if they state only one: others are of other stories."""
    texts = (node.text[:_MAX_SCRIPT_CHARACTERS] for node in tree.iter("script") if node.text)
    unread = (text for text in texts if "@context" not in text or not _read_items([text]))  # JSON-LD has been read
    stated = itertools.chain.from_iterable(map(_SCRIPT_DAY.findall, unread))
    found = {day.day for value in stated if (day := read_day(value, place))}
    return found.pop() if len(found) == 1 else None


def _values(meta: Mapping[str, Sequence[str]], names: Sequence[str]) -> Iterator[str]:
    return itertools.chain.from_iterable(meta.get(name, ()) for name in names)


def _first_day(sources: Sequence[Iterable[Any]], place: str) -> tuple[int, Day] | None:
    """Returns (number of the source, day): the first that is certain, else the first that is guessed."""
    stated = ((number, read_day(value, place)) for number, values in enumerate(sources) for value in values)
    found = [(number, day) for number, day in stated if day]
    return min(found, key=lambda one: one[1].guessed, default=None)


def _head(tree: Any) -> tuple[dict[str, list[str]], list[str], str]:
    """Returns the meta elements by lower-case name, the JSON-LD scripts, and the canonical link, in one pass."""
    meta: dict[str, list[str]] = {}
    scripts: list[str] = []
    canonical = ""
    for node in tree.iter("meta", "script", "link"):
        if node.tag == "meta":
            names = map(node.get, ("property", "name", "itemprop", "http-equiv"))
            name = next(filter(None, names), "").strip().lower()
            content = (node.get("content") or "").strip()
            if name and content and next(node.iterancestors("aside", "nav"), None) is None:
                meta.setdefault(name, []).append(content)
        elif node.tag == "script":
            if node.text and ("ld+json" in (node.get("type") or "").lower() or _UNTYPED.match(node.text)):
                scripts.append(node.text)
        elif node.get("rel") == "image_src":
            meta.setdefault("image_src", []).append((node.get("href") or "").strip())
        elif not canonical and "canonical" in (node.get("rel") or "").lower().split():
            canonical = (node.get("href") or "").strip()
    return meta, scripts, canonical


def _read_items(scripts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the top-level objects of the scripts, also in lists and graphs, in order; invalid scripts are skipped."""
    objects = (item for script in scripts for item in _objects(_parsed(script), depth=4))
    return list(itertools.islice(objects, _MAX_OBJECTS))


def _parsed(script: str) -> Any:
    if len(script) > _MAX_SCRIPT_CHARACTERS:
        return None
    text = script.replace("\ufeff", "").strip()
    if found := _OPENING.match(text):
        text = text[found.end() :]
    for closing in _CLOSINGS:
        text = text.removesuffix(closing).rstrip()
    plain = _NO_JSON.sub("", text)
    several = "},{".join(re.split(r"}\s*{", plain))
    for candidate in (text, plain, f"[{several}]", html.unescape(plain)):
        with contextlib.suppress(ValueError):  # broken JSON-LD is common; meta elements and the text are available
            return load_json(candidate)
    return None


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        if depth:
            for name in ("@graph", "mainEntity", "mainEntityOfPage"):
                yield from _objects(value.get(name), depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _objects(item, depth - 1)


def _types(item: Mapping[str, Any]) -> set[str]:
    """Returns the names of an item's types in lower case, without prefixes such as "schema:" or a URL."""
    return {re.split(r"[/:#]", str(name))[-1].lower() for name in _list(item.get("@type"))}


def _article_item(
    items: Sequence[dict[str, Any]], url: str, own: Collection[str], titles: Sequence[str]
) -> dict[str, Any]:
    """Returns the item of the page's article; {} if there is none.

    It has the URL or the title of the page. Of several such items the most complete one counts, and the others give
    what it lacks. Without any, it is the most complete one that is not said to be of another page.
    """
    own_keys, own_words = (
        {_page_key(address) for address in own},
        [set(words_of(title.casefold())) for title in titles if title],
    )

    def rank(item: Mapping[str, Any]) -> int:
        addresses = _addresses(item, ("url", "mainEntityOfPage"), 3)
        stated = {_page_key(canonical_url(address, url)) for address in addresses}
        headline = set(words_of(_text(item.get("headline") or item.get("name")).casefold()))
        shares = [len(headline & words) / min(len(headline), len(words)) for words in own_words if headline and words]
        is_own = bool(own_keys & {*stated, *map(_page_key, _addresses(item, ("@id",), 1))})
        is_other, has_other_title = bool(stated) and not is_own, max(shares, default=1) < _MAX_OTHER
        return 2 * is_own + 2 * (max(shares, default=0) >= _MIN_SHARE) - is_other - has_other_title

    articles = [(rank(item), item) for item in items if _types(item) & _ARTICLE_TYPES]
    articles.sort(key=lambda ranked: (-ranked[0], -sum(bool(ranked[1].get(name)) for name in _FIELDS)))
    if not articles or articles[0][0] <= _OTHER_PAGE:
        return {}
    best, *others = articles
    whole = dict(best[1])
    for ranked, item in others:
        if ranked >= 2 <= best[0]:  # of this page, too
            whole |= {name: value for name, value in item.items() if not whole.get(name)}
    return whole


def _addresses(value: Any, names: Collection[str], depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and depth:
        for name in names:
            yield from _addresses(value.get(name), ("@id", "url"), depth - 1)
    elif isinstance(value, list) and depth:
        for one in value[:20]:
            yield from _addresses(one, names, depth - 1)
    elif isinstance(value, str) and value.strip():
        yield value


def _page_key(url: str) -> str:
    """Returns a URL without what tells the mobile edition of a page from others."""
    return _EDITION.sub("", canonical_url(url))


def _resolved(value: Any, items: Sequence[dict[str, Any]]) -> Any:
    """Returns a value, or the item to which it refers by "@id"; the same for each value of a list."""
    if isinstance(value, list):
        return [_resolved(one, items) for one in value[:50]]
    if isinstance(value, dict) and "name" not in value and isinstance(value.get("@id"), str):
        return next((item for item in items if item.get("@id") == value["@id"] and "name" in item), value)
    return value


def _text(value: Any) -> str:
    """Returns a value as one line of text, without the markup and entities that some templates leave in JSON."""
    if not isinstance(value, str):
        return ""
    return readable(_plain(value[: 10 * _MAX_TEXT], ""))[:_MAX_TEXT]


def _plain(text: str, instead_of_tags: str) -> str:
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return _MARKUP.sub(instead_of_tags, text) if "<" in text else text


def _names(value: Any) -> Iterator[str]:
    for item in _list(value):
        person = not isinstance(item, str)
        for text in map(_text, listed_names(item) if person else [item]):
            if text and "://" not in text:
                yield in_order(text) if person else text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _meta_authors(meta: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    named = (tuple(name for name in _names(list(meta.get(key, ()))) if not name.startswith("@")) for key in _AUTHORS)
    return next(filter(None, named), ())


def _site_names(
    item: Mapping[str, Any], items: Sequence[Mapping[str, Any]], meta: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for key in _SITES:
        yield from filter(None, [_text(meta[key][0])] if key in meta else [])
    if handle := meta.get("twitter:site", [""])[0].lstrip("@"):
        yield handle
    yield from _names(item.get("publisher"))
    for one in items:
        if _types(one) & {"website", "newsmediaorganization", "organization"}:
            yield from _names(one.get("name"))


def _language(tree: Any, item: Mapping[str, Any], in_meta: str) -> str:
    root = tree.getroottree().getroot()
    for value in (root.get("lang"), root.get("xml:lang"), item.get("inLanguage"), in_meta):
        if isinstance(value, str) and _LANGUAGE.fullmatch(value.strip()):
            return value.strip().replace("_", "-")
    return ""


def _keywords(value: Any) -> tuple[str, ...]:
    parts = _list(value)
    texts = (part for part in parts if isinstance(part, str))
    found = [_text(word) for part in texts for word in (part.split(",") if len(parts) == 1 else [part])]
    return tuple(dict.fromkeys(word for word in found if word and len(word) <= 100))[:_MAX_KEYWORDS]


def _image(value: Any) -> str:
    while isinstance(value, list | dict) and value:
        value = value[0] if isinstance(value, list) else value.get("url") or value.get("contentUrl")
    return value if isinstance(value, str) else ""


def _is_false(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no", "0"))


def _body(item: Mapping[str, Any]) -> str:
    """Returns the text of the article in JSON-LD, one paragraph per line; the posts of a live blog in order."""
    holders = [item, *_list(item.get("liveBlogUpdate"))]
    pieces = [one.get("articleBody") for one in holders if isinstance(one, dict)]
    text = _plain("\n".join(piece for piece in pieces if isinstance(piece, str)), "\n")
    return "\n".join(line for raw in text.splitlines() if (line := readable(raw)))
