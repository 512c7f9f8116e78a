"""Names of entities from a JSON dump of Wikidata, read as a stream.

The dump (``latest-all.json.gz`` or ``.bz2``) is one JSON array with one entity on each line:
https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html
"""

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from ..errors import InputError
from . import files
from .jsonl import CompressionError, read_lines
from .names import KnownName

_INSTANCE_OF: Final = "P31"
# Pages of Wikimedia projects, not things: disambiguation, category, template, list, and names of people as such.
_PAGES: Final = frozenset(
    {"Q4167410", "Q4167836", "Q11266439", "Q13406463", "Q22808320", "Q17362920", "Q101352", "Q202444", "Q12308941"}
    | {"Q11879590"}
)
_ALIAS_SHARE: Final = 0.5  # weight of another name, relative to the label
_REMEDY: Final = "download the dump again; the parts that were written are kept"


@dataclasses.dataclass
class DumpCounts:
    """What a reader of a dump has seen: lines, and why lines gave no names.

    Attributes:
      lines: lines with an entity.
      broken: lines that are not JSON objects with an id.
      not_items: properties and lexemes.
      pages: disambiguation pages, categories, lists and names as such.
      few_sitelinks: items that too few wikis have a page of.
      not_names: items whose English label starts with a lower-case letter, such as "water".
      other_languages: items without a name in the languages asked for.
    """

    lines: int = 0
    broken: int = 0
    not_items: int = 0
    pages: int = 0
    few_sitelinks: int = 0
    not_names: int = 0
    other_languages: int = 0


def read_entity_lines(path: str, skip: int) -> Iterator[bytes]:
    """Yields the lines of a dump that hold an entity, without the comma at the end.

    Args:
      path: ends in ``.json``, ``.json.gz``, ``.json.bz2`` or ``.json.zst``.
      skip: entities to leave out at the start.

    Raises:
      InputError: if the file is missing, is truncated or is not compressed as its name says.
    """
    with files.open_read(path) as source:
        try:
            for line in read_lines(source, path):
                entity = line.strip().rstrip(b",")
                if entity in (b"", b"[", b"]"):
                    continue
                if skip:
                    skip -= 1
                else:
                    yield entity
        except (CompressionError, EOFError) as error:
            raise InputError(f"cannot be read to its end: {error}", path=path, remedy=_REMEDY) from error


def names_of_entity(
    line: bytes, languages: Collection[str], min_sitelinks: int, counts: DumpCounts
) -> Iterator[KnownName]:
    """Yields the label and the aliases of an item in each language.

    The prior of a label is the number of wikis that have a page about the item, that of an alias is half of it.

    Args:
      line: the JSON of the entity.
      languages: tags in lower case, as in the dump; empty for all.
      min_sitelinks: least number of wikis with a page.
      counts: counts the line, and why it gave no names.
    """
    counts.lines += 1
    item = _parsed(line)
    if item is None:
        counts.broken += 1
        return
    if item.get("type") != "item":
        counts.not_items += 1
        return
    if _classes(item) & _PAGES:
        counts.pages += 1
        return
    sitelinks = len(_mapping(item.get("sitelinks")))
    if sitelinks < min_sitelinks:
        counts.few_sitelinks += 1
        return
    labels, aliases = _mapping(item.get("labels")), _mapping(item.get("aliases"))
    english = _value(labels.get("en"))
    if english and english[0].islower():
        counts.not_names += 1
        return
    known = set(labels) | set(aliases)
    kept = {tag for tag in known if not languages or tag in languages or tag == "mul"}
    counts.other_languages += bool(known) and not kept
    for language in sorted(kept):
        tag = "" if language == "mul" else language
        label = _value(labels.get(language))
        if label:
            yield KnownName(item["id"], tag, label, max(1.0, float(sitelinks)))
        others = aliases.get(language)
        found = {_value(other) for other in others} if isinstance(others, list) else set()
        for alias in sorted(found - {"", label}):
            yield KnownName(item["id"], tag, alias, max(1.0, sitelinks * _ALIAS_SHARE))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"].strip() else None


def _mapping(value: Any) -> Mapping[str, Any]:
    """Returns a JSON object; an empty one is written as an empty list in dumps."""
    return value if isinstance(value, dict) else {}


def _value(term: Any) -> str:
    text = _mapping(term).get("value")
    return " ".join(text.split()) if isinstance(text, str) else ""


def _classes(item: Mapping[str, Any]) -> set[str]:
    """Returns the ids of what the item is an instance of."""
    statements = _mapping(item.get("claims")).get(_INSTANCE_OF)
    found = set()
    for statement in statements if isinstance(statements, list) else []:
        value = _mapping(_mapping(_mapping(statement).get("mainsnak")).get("datavalue")).get("value")
        identifier = _mapping(value).get("id")
        if isinstance(identifier, str):
            found.add(identifier)
    return found
