"""Reads schema.org items from a page's JSON-LD, and finds the item of its article."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .hints import words
from .loose_json import load_json

ARTICLE_TYPES = words(
    """
    article newsarticle reportagenewsarticle analysisnewsarticle blogposting liveblogposting opinionnewsarticle
    backgroundnewsarticle askpublicnewsarticle reviewnewsarticle advertisercontentarticle satiricalarticle
    scholarlyarticle socialmediaposting techarticle report
    """
)
_MAX_SCRIPT_CHARACTERS = 2_000_000
_MAX_OBJECTS = 2_000
_OPENING = re.compile(r"\s*(?:<!--|(?://|/\*)?\s*<!\[CDATA\[\s*(?:\*/)?)")
_CLOSINGS = (";", "-->", "/*]]>*/", "/* ]]> */", "//]]>", "// ]]>", "]]>")
_TRAILING_COMMA = re.compile(r",(?=\s{0,100}[}\]])")


def read_items(scripts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the top-level objects of the scripts, also in lists and graphs, in order; invalid scripts are skipped."""
    items: list[dict[str, Any]] = []
    for script in scripts:
        value = _parsed(script)
        if value is not None:
            for item in _objects(value, depth=4):
                items.append(item)
                if len(items) >= _MAX_OBJECTS:
                    return items
    return items


def _parsed(script: str) -> Any:
    if len(script) > _MAX_SCRIPT_CHARACTERS:
        return None
    text = script.strip()
    if found := _OPENING.match(text):
        text = text[found.end() :]
    for closing in _CLOSINGS:
        text = text.removesuffix(closing).rstrip()
    try:
        return load_json(text)
    except ValueError:
        pass  # broken JSON-LD is common; meta elements and the text are still available
    try:
        return load_json(_TRAILING_COMMA.sub("", text))
    except ValueError:
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


def types(item: dict[str, Any]) -> set[str]:
    """Returns the names of an item's types in lower case, without prefixes such as "schema:" or a URL."""
    value = item.get("@type")
    return {re.split(r"[/:#]", str(name))[-1].lower() for name in (value if isinstance(value, list) else [value])}


def article_item(items: Sequence[dict[str, Any]], is_page: Any) -> dict[str, Any]:
    """Returns the item of the page's article: the one with the page's URL, else the first; {} if there is none.

    Args:
      items: items of the page, see :func:`read_items`.
      is_page: function that returns whether a URL is that of the page.
    """
    articles = [item for item in items if types(item) & ARTICLE_TYPES]
    for item in articles if len(articles) > 1 else ():
        place = item.get("mainEntityOfPage")
        named = [item.get("url"), place.get("@id") if isinstance(place, dict) else place, item.get("@id")]
        if any(isinstance(address, str) and is_page(address) for address in named):
            return item
    return articles[0] if articles else {}


def resolved(value: Any, items: Sequence[dict[str, Any]]) -> Any:
    """Returns a value, or the item to which it refers by "@id"; the same for each value of a list."""
    if isinstance(value, list):
        return [resolved(one, items) for one in value[:50]]
    if isinstance(value, dict) and "name" not in value and isinstance(value.get("@id"), str):
        return next((item for item in items if item.get("@id") == value["@id"] and "name" in item), value)
    return value
