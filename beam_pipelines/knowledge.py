"""``newsembed knowledge``: makes a table of names for ``newsembed entities --knowledge_base`` from a Wikidata dump.

Example::

    newsembed knowledge --wikidata latest-all.json.bz2 --output names --languages en de zh

The dump (``latest-all.json.gz`` or ``.bz2``) is one JSON array with one entity on each line:
https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html. It is read as a stream. Every 100,000 entities
become one Parquet file; a run that was cut off continues after the last complete one.
"""

import collections
import dataclasses
import itertools
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from ..errors import InputError, reading
from ..formats import files, parquet
from ..formats.command_line import Options, option, required
from ..formats.jsonl import CompressionError, read_lines
from ..formats.names import KnownName

_ENTITIES_OF_A_PART: Final = 100_000
_STATE: Final = "state.json"
_INSTANCE_OF: Final = "P31"
# Pages of Wikimedia projects, not things: disambiguation, category, template, list, and names of people as such.
_PAGES: Final = frozenset(
    str.split("Q4167410 Q4167836 Q11266439 Q13406463 Q22808320 Q17362920 Q101352 Q202444 Q12308941 Q11879590")
)
_ALIAS_SHARE: Final = 0.5  # weight of another name, relative to the label
# Why a line gives no names: not a JSON object with an id; a property or lexeme; a page that is no thing; too few wikis
# have a page of the item; its English label starts with a small letter, such as "water"; no name in these languages.
_REASONS: Final = ("broken", "not_items", "pages", "few_sitelinks", "not_names", "other_languages")


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnowledgeOptions(Options):
    """Options of ``knowledge``."""

    wikidata: str = required("JSON dump of Wikidata: .json.gz, .json.bz2, .json.zst or .json")
    output: str = required("folder for the table: part-*.parquet")
    languages: tuple[str, ...] = option((), "languages of the names, such as en de zh; default: all", many=True)
    min_sitelinks: int = option(3, "least number of wikis that have a page about the entity")


OPTIONS: Final = KnowledgeOptions


def run(options: KnowledgeOptions) -> int:
    """Makes the table and prints counts of lines, names, and lines without names by reason."""
    sys.stdout.write("".join(f"{name}: {number:,}\n" for name, number in make_table(options).items()))
    return 0


def make_table(options: KnowledgeOptions, entities_of_a_part: int = _ENTITIES_OF_A_PART) -> dict[str, int]:
    """Writes the names of a dump into a folder, from where an earlier run stopped.

    Args:
      options: of the command.
      entities_of_a_part: lines of the dump that go into one file.

    Returns:
      Counts of lines, names, and lines without names by reason.

    Raises:
      InputError: if the dump cannot be read, has no entities or gives no names, or the folder holds a table of another
        dump or with other options.
    """
    dump, output = options.wikidata, options.output.rstrip("/")
    tags = frozenset(" ".join(options.languages).lower().replace(",", " ").split())  # as in dumps: zh-hant
    made_from = {
        "dump": files.file_digest(dump),
        "languages": sorted(tags),
        "min_sitelinks": options.min_sitelinks,
        "entities_of_a_part": entities_of_a_part,
    }
    state = _state(output, made_from)
    lines = _entity_lines(dump, state["parts"] * entities_of_a_part)
    while not state["complete"]:
        counts = collections.Counter(state["counts"])
        sys.stderr.write(f"knowledge: {counts['lines']:,} lines, {counts['names']:,} names …\n")  # a dump takes hours
        if (first := next(lines, None)) is None:
            break
        with parquet.ParquetShardWriter(f"{output}/part-{state['parts']:05d}.parquet", KnownName) as writer:
            for line in itertools.chain([first], itertools.islice(lines, entities_of_a_part - 1)):
                for name in names_of_entity(line, tags, options.min_sitelinks, counts):
                    writer.write(name)
        counts["names"] += writer.rows
        state = {**state, "parts": state["parts"] + 1, "counts": counts}
        files.write_json(f"{output}/{_STATE}", state)
    if state["parts"] and not state["complete"]:
        files.write_json(f"{output}/{_STATE}", {**state, "complete": True})
    found = {name: state["counts"].get(name, 0) for name in ("names", "lines", *_REASONS)}
    if not found["lines"]:
        raise InputError("has no entities", path=dump, field="--wikidata", remedy="download the dump again")
    if not found["names"]:
        why = ", ".join(f"{found[name]:,} {name}" for name in sorted(_REASONS) if found[name]) or "no labels"
        remedy = "give a dump of items; if they are left out by --languages or --min_sitelinks, change those"
        problem = f"none of its {found['lines']:,} entities gives a name ({why})"
        raise InputError(problem, path=dump, field="--wikidata", remedy=remedy)
    return found


def _state(output: str, made_from: dict[str, Any]) -> dict[str, Any]:
    """Returns where an earlier run into the folder stopped, or a new start.

    Raises:
      InputError: if that run read another dump or had other options.
    """
    path, parts = f"{output}/{_STATE}", files.list_files("part-*.parquet", output)
    state: dict[str, Any] = files.read_json(path) if files.exists(path) else {}
    if state.get("made_from") == made_from:
        return state
    if state.get("complete") and not state["counts"].get("names"):
        files.delete([*parts, path])  # of a run that found no name
    elif state or parts:
        problem = "holds a table of another dump, or with other options"
        raise InputError(problem, path=output, field="--output", remedy="give another folder, or delete this one")
    return {"made_from": made_from, "parts": 0, "counts": {}, "complete": False}


def _entity_lines(path: str, skip: int) -> Iterator[bytes]:
    """Yields the lines of a dump that hold an entity, but for the first ``skip``, without the comma at the end."""
    remedy = "download the dump again; the parts that were written are kept"
    with reading(path, remedy, CompressionError, EOFError), files.open_read(path) as source:
        lines = (line.strip().rstrip(b",") for line in read_lines(source, path))
        yield from itertools.islice((line for line in lines if line not in (b"", b"[", b"]")), skip, None)


def names_of_entity(
    line: bytes, languages: Collection[str], min_sitelinks: int, counts: collections.Counter[str]
) -> Iterator[KnownName]:
    """Yields the label and the aliases of an item in each language.

    The prior of a label is the number of wikis that have a page about the item, that of an alias is half of it.

    Args:
      line: the JSON of the entity.
      languages: tags in lower case, as in the dump; empty for all.
      min_sitelinks: least number of wikis with a page.
      counts: counts the line, and why it gave no names.
    """
    counts["lines"] += 1
    item = _parsed(line)
    labels, aliases = _mapping(item, "labels"), _mapping(item, "aliases")
    known = set(labels) | set(aliases)
    kept = sorted(tag for tag in known if not languages or tag in languages or tag == "mul")
    sitelinks, is_word = len(_mapping(item, "sitelinks")), _value(labels.get("en"))[:1].islower()
    found = [not item, item.get("type") != "item", _is_page(item), sitelinks < min_sitelinks, is_word]
    found.append(bool(known) and not kept)
    if any(found):
        counts[_REASONS[found.index(True)]] += 1
        return
    for language in kept:
        tag, label = "" if language == "mul" else language, _value(labels.get(language))
        if label:
            yield KnownName(item["id"], tag, label, max(1.0, float(sitelinks)))
        others = aliases.get(language)
        for alias in sorted({*map(_value, others if isinstance(others, list) else ())} - {"", label}):
            yield KnownName(item["id"], tag, alias, max(1.0, sitelinks * _ALIAS_SHARE))


def _parsed(line: bytes) -> dict[str, Any]:
    """Returns an entity, an empty one if the line is no JSON object with an id."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return item if isinstance(item, dict) and isinstance(item.get("id"), str) and item["id"].strip() else {}


def _mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """Returns a JSON object, or one inside of it; an empty one is written as an empty list in dumps."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _value(term: Any) -> str:
    text = _mapping(term).get("value")
    return " ".join(text.split()) if isinstance(text, str) else ""


def _is_page(item: Mapping[str, Any]) -> bool:
    """Whether the item is an instance of a page of a Wikimedia project."""
    found = _mapping(item, "claims").get(_INSTANCE_OF)
    values = (_mapping(one, "mainsnak", "datavalue", "value") for one in (found if isinstance(found, list) else ()))
    return any(str(value.get("id")) in _PAGES for value in values)
