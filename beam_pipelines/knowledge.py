"""``newsembed knowledge``: makes a table of names for ``newsembed entities --knowledge_base`` from a Wikidata dump.

Example::

    newsembed knowledge --wikidata latest-all.json.bz2 --output names --languages en de zh

The dump is read as a stream. Every 100,000 entities become one Parquet file; a run that was cut off continues after the
last complete one.
"""

import argparse
import dataclasses
import itertools
import sys
from typing import Any, Final

from ..errors import InputError
from ..formats import files, parquet
from ..formats.names import KnownName
from ..formats.wikidata import DumpCounts, names_of_entity, read_entity_lines

_ENTITIES_OF_A_PART: Final = 100_000
_STATE: Final = "state.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument(
        "--wikidata", required=True, help="JSON dump of Wikidata: .json.gz, .json.bz2, .json.zst or .json"
    )
    parser.add_argument("--output", required=True, help="folder for the table: part-*.parquet")
    parser.add_argument(
        "--languages", nargs="*", default=[], help="languages of the names, such as en de zh; default: all"
    )
    parser.add_argument(
        "--min_sitelinks",
        type=int,
        default=3,
        help="least number of wikis that have a page about the entity (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    counts = make_table(args.wikidata, args.output.rstrip("/"), frozenset(args.languages), args.min_sitelinks)
    sys.stdout.write("".join(f"{name}: {number:,}\n" for name, number in counts.items()))
    return 0


def make_table(
    dump: str, output: str, languages: frozenset[str], min_sitelinks: int, entities_of_a_part: int = _ENTITIES_OF_A_PART
) -> dict[str, int]:
    """Writes the names of a dump into a folder, from where an earlier run stopped.

    Args:
      dump: the dump.
      output: the folder.
      languages: BCP-47 tags; empty for all.
      min_sitelinks: least number of wikis that have a page about the entity.
      entities_of_a_part: lines of the dump that go into one file.

    Returns:
      Counts of lines, names, and lines without names by reason.

    Raises:
      InputError: if the dump cannot be read, has no entities or gives no names, or the folder holds a table of another
        dump or with other options.
    """
    tags = frozenset(language.lower() for language in languages)  # as in dumps: zh-hant
    made_from = {
        "dump": files.file_digest(dump),
        "languages": sorted(tags),
        "min_sitelinks": min_sitelinks,
        "entities_of_a_part": entities_of_a_part,
    }
    state = _state(output, made_from)
    if state["complete"]:
        return _some_names(dump, state["counts"])
    lines = read_entity_lines(dump, state["parts"] * entities_of_a_part)
    while (first := next(lines, None)) is not None:
        counts = DumpCounts()
        with parquet.ParquetShardWriter(f"{output}/part-{state['parts']:05d}.parquet", KnownName) as writer:
            for line in itertools.chain([first], itertools.islice(lines, entities_of_a_part - 1)):
                for name in names_of_entity(line, tags, min_sitelinks, counts):
                    writer.write(name)
        found = {"names": writer.rows, **dataclasses.asdict(counts)}
        totals = {name: state["counts"].get(name, 0) + number for name, number in found.items()}
        state = {**state, "parts": state["parts"] + 1, "counts": totals}
        files.write_json(f"{output}/{_STATE}", state)
    if state["parts"]:
        files.write_json(f"{output}/{_STATE}", {**state, "complete": True})
    return _some_names(dump, state["counts"])


def _some_names(dump: str, counts: dict[str, int]) -> dict[str, int]:
    """The counts of a table that has names.

    Raises:
      InputError: if it has none; says why.
    """
    if not counts.get("lines"):
        raise InputError("has no entities", path=dump, field="--wikidata", remedy="download the dump again")
    if not counts["names"]:
        reasons = sorted(counts.keys() - {"lines", "names"})
        why = ", ".join(f"{counts[name]:,} {name}" for name in reasons if counts[name]) or "no labels"
        remedy = "give a dump of items; if they are left out by --languages or --min_sitelinks, change those"
        problem = f"none of its {counts['lines']:,} entities gives a name ({why})"
        raise InputError(problem, path=dump, field="--wikidata", remedy=remedy)
    return dict(counts)


def _state(output: str, made_from: dict[str, Any]) -> dict[str, Any]:
    """Returns where an earlier run into the folder stopped, or a new start.

    Raises:
      InputError: if that run read another dump or had other options.
    """
    path = f"{output}/{_STATE}"
    if files.exists(path):
        state: dict[str, Any] = files.read_json(path)
        if state.get("made_from") == made_from:
            return state
        if not state.get("complete") or state["counts"]["names"]:
            raise InputError(
                "holds a table of another dump, or with other options",
                path=output,
                field="--output",
                remedy="give another folder, or delete this one",
            )
        files.delete([*files.list_files(f"{output}/part-*.parquet"), path])  # of a run that found no name
    if files.list_files(f"{output}/part-*.parquet"):
        raise InputError(
            f"holds part-*.parquet but no {_STATE}", path=output, field="--output", remedy="give another folder"
        )
    return {"made_from": made_from, "parts": 0, "counts": {}, "complete": False}
