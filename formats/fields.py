"""The fields of articles under the names of other tools: one table, and one function that gives a row ours.

It knows the rows of news-please, newspaper4k, fundus, trafilatura, feedparser, GDELT and the APIs of news, and common
names of columns in many languages. Names are compared without case, punctuation and accents.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..errors import InputError
from .files import packaged

# Names by our field, the best first; our own name is before them. Those of other languages follow the English ones.
_NAMES: Final = {
    field: names for field, *names in map(str.split, packaged(__package__, "names_of_fields.txt").splitlines())
}
FIELDS: Final = tuple(_NAMES)
_INSIDE: Final = frozenset({"fields", "html", "article", "data", "source", "_source", "metadata", "record", "doc"})
_VALUE_KEYS: Final = ("name", "main", "rendered", "original", "url", "text", "value", "content", "title", "@id", "src")
_TEXT_KEYS: Final = ("text", "value", "rendered", "content")  # of the text in an object that also has its type
_TERM_KEYS: Final = ("value", "term", "webTitle", "label", "name")
_SHORT: Final = 300  # characters; NewsAPI cuts a body at 260
_LAST_LATIN: Final = "\u024f"
_MARKS: Final = re.compile(r"[\W_]+")
_WITHOUT_STROKES: Final = str.maketrans("ıđłøə", "idloe")  # letters that are no letter and a mark; ASCII has them so
_URL: Final = re.compile(r"(?i)\s*(?:https?:)?//\S")
_PAGE: Final = re.compile(r"(?i)\s*<(?:!doctype|html|head)\b")
_TAG: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][\w-]+)?$")

_Path = tuple[str, ...]  # a key, or a key and one inside its value
_Places = tuple[_Path, ...]
_Given = tuple[tuple[str, str], ...]  # our name, the name in the row


def standard(row: Mapping[str, Any], given: _Given = ()) -> dict[str, Any]:
    """A row under our names; fields that are none of ours stay as they are.

    >>> standard({"headline": "Storm", "link": "http://a.example/1", "content": "It rained.", "rank": 3})
    {'rank': 3, 'url': 'http://a.example/1', 'title': 'Storm', 'body': 'It rained.'}

    Args:
      row: as a file has it.
      given: (our name, the name in the row) that the user has chosen; a name inside another has a dot before it.
    """
    found: dict[str, Any] = {}
    used: set[str] = set()
    for field, paths, path, value in _found(row, given):
        if path:
            found[field] = value
        elif field in row:
            found[field] = row[field]
        used |= {path[0] for path in paths if len(path) == 1}
    return {name: value for name, value in row.items() if name not in used} | found


def read_as(row: Mapping[str, Any], given: _Given = ()) -> Iterator[tuple[str, str]]:
    """Yields (our name, the name in the row) of the fields that a row has under other names."""
    for field, _, path, _ in _found(row, given):
        if path not in ((), (field,)):
            yield field, ".".join(path)


def _found(row: Mapping[str, Any], given: _Given) -> Iterator[tuple[str, _Places, _Path, Any]]:
    """Yields our fields: the places where each may be, the first that has a value (or none), and that value."""
    inside = tuple((name, tuple(value)) for name, value in row.items() if name in _INSIDE and isinstance(value, dict))
    for field, paths in _plan(tuple(row), inside, given):
        values = ((path, _value(field, _at(row, path))) for path in paths)
        found = next(((path, value) for path, value in values if value not in (None, "", [])), ((), None))
        yield field, paths, *(_fuller(found, values) if field == "body" else found)


def _fuller(body: tuple[_Path, Any], others: Iterator[tuple[_Path, Any]]) -> tuple[_Path, Any]:
    """A body, or in place of a short one the first text after it that has twice as many letters of its script.

    NewsAPI leaves a few Latin words and punctuation of a body in another script, or the first line of the page, such as
    "Subscribe". Its description is whole. In rows of posts, the text links to an article whose content is there, too.
    """
    if not isinstance(body[1], str) or len(body[1]) > _SHORT:
        return body
    for path, value in others:
        if isinstance(value, str) and not _URL.match(value):
            both = [[*filter(str.isalpha, text)] for text in (body[1], value)]
            beyond_latin = [[letter for letter in letters if letter > _LAST_LATIN] for letters in both]
            held, more = map(len, beyond_latin if 2 * len(beyond_latin[1]) > len(both[1]) else both)
            if more >= 2 * held:
                return path, value
    return body


def columns_of(field: str, names: Iterable[str]) -> list[str]:
    """The columns of a table that may hold a field, also inside their values; of another field that of its name."""
    listed = tuple(names)
    paths = dict(_plan(listed, (), ())).get(field, ()) if field in _NAMES else ((field,),) if field in listed else ()
    inside = [name for name in listed if name in _INSIDE and field in _NAMES]
    return list(dict.fromkeys([*(path[0] for path in paths), *inside]))


def chosen(options: Iterable[str]) -> _Given:
    """The fields of ``--fields title=headline``.

    Raises:
      InputError: for another form, or a field that is none of ours.
    """
    pairs = []
    for option in options:
        ours, _, theirs = option.partition("=")
        if ours not in FIELDS or not theirs:
            remedy = f"write OURS=THEIRS, such as title=headline; ours are {', '.join(FIELDS)}"
            raise InputError(f"got {option!r}", field="--fields", remedy=remedy)
        pairs.append((ours, theirs))
    return tuple(pairs)


def _key(name: str) -> str:
    """A name without case, punctuation and accents: "Título" is "titulo", however it is encoded."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", name.casefold().translate(_WITHOUT_STROKES)))


@functools.lru_cache(maxsize=1_000)
def _plan(names: _Path, inside: tuple[tuple[str, _Path], ...], given: _Given) -> tuple[tuple[str, _Places], ...]:
    """Where each of our fields is looked for in rows with these names."""
    places: dict[str, list[_Path]] = {}
    for name in names:
        places.setdefault(_key(name), []).append((name,))
    for outer, keys in inside:
        for key in keys:
            places.setdefault(_key(key), []).append((outer, key))
    plan = []
    for field, names_of in _NAMES.items():
        own = [(field,)] if field in names else []
        wanted = [tuple(theirs.split(".")) for ours, theirs in given if ours == field]
        theirs = (path for name in names_of for path in places.get(_key(name), ()))
        found = wanted or list(dict.fromkeys([*own, *theirs]))
        if found:
            plan.append((field, tuple(found)))
    return tuple(plan)


def _at(row: Mapping[str, Any], path: _Path) -> Any:
    value: Any = row
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _value(field: str, value: Any) -> Any:
    """A value as the field has it; None where it cannot be one."""
    if field in ("authors", "keywords"):
        return _several(field, value)
    if field == "body" and isinstance(value, Mapping | list):
        return "\n\n".join(_paragraphs(value))
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, Mapping):
        value = _first_of(value, _VALUE_KEYS)
    if not isinstance(value, str):
        return value
    is_other = field in ("url", "publisher") and bool(_URL.match(value)) != (field == "url")
    if is_other or (field == "body" and _PAGE.match(value)):  # the menus of a page are no body
        return None
    if field == "language":
        return _language(value.strip())
    return value


def _several(field: str, value: Any) -> Any:
    if field == "authors" or not isinstance(value, list):
        return value.get("original", value) if isinstance(value, Mapping) else value
    words = [_first_of(one, _TERM_KEYS) if isinstance(one, Mapping) else one for one in value]
    return [word for word in words if isinstance(word, str)]  # WordPress has numbers


def _first_of(value: Mapping[str, Any], keys: _Path) -> Any:
    return next((value[key] for key in keys if value.get(key)), None)


def _paragraphs(value: Any) -> Iterator[str]:
    """The texts in lists and objects, such as the sections of fundus, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        words = _first_of(value, _TEXT_KEYS)
        for part in [words] if words else value.values():
            yield from _paragraphs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _paragraphs(part)


def _language(value: str) -> str | None:
    """A tag as it is, or the tag of a name in English or of three letters, such as "eng"."""
    from babel.core import get_global

    if len(value) != 3 and _TAG.match(value):
        return value
    name = value.casefold()
    return get_global("language_aliases").get(name, value if _TAG.match(value) else _languages().get(name))


@functools.cache
def _languages() -> dict[str, str]:
    """Tags by the English name of a language."""
    from babel import Locale

    return {name.casefold(): tag.replace("_", "-") for tag, name in Locale("en").languages.items()}
