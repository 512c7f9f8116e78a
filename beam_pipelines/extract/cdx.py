"""Reads indexes of WARC files, CDX or CDXJ: where the records of a file begin.

If an index lists a record that the WARC file does not have, the record is lost, for example because the file was copied
in part. The file alone does not show this. Formats:
https://iipc.github.io/warc-specifications/specifications/cdx-format/cdx-2015/ (columns), and
one JSON object a line after key and time (CDXJ), as pywb, Common Crawl and ``newsembed crawl`` write it.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator
from typing import Final

from ...errors import InputError
from ...formats import files
from ...formats.jsonl import CompressionError, read_lines

ENDINGS: Final = (".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz")
_WARC_ENDINGS: Final = (".gz", ".warc")
_COLUMNS: Final = {9: "N b a m s k r V g", 10: "N b a m s k r M V g", 11: "N b a m s k r M S V g"}  # without a header
_MAX_OFFSET: Final = 1 << 63


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The part of a WARC file that is compared with indexes.

    Attributes:
      indexes: paths of the indexes.
      start: first byte of the part; 0 for the first part of a file.
      end: byte after the part; None for the last part.
    """

    indexes: tuple[str, ...]
    start: int = 0
    end: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A record that an index lists: where it begins, its URL or "", and the index."""

    offset: int
    url: str
    index: str


@dataclasses.dataclass(frozen=True)
class Listing:
    """What indexes say of a part of a WARC file.

    Attributes:
      entries: by offset, one for each.
      broken: ("path:line", what is wrong) for lines that cannot be read.
      others: (path of an index, what it names) for indexes that name other files only.
    """

    entries: tuple[Entry, ...]
    broken: tuple[tuple[str, str], ...] = ()
    others: tuple[tuple[str, str], ...] = ()


_Line = tuple[str, str, int, str]  # "path:line", name of a WARC file or "", offset, URL or what is wrong


def indexes_beside(path: str) -> tuple[str, ...]:
    """Returns the indexes next to a WARC file: ``a.cdxj`` or ``a.warc.gz.cdx.gz`` for ``a.warc.gz``."""
    stem = path
    for ending in _WARC_ENDINGS:
        stem = stem.removesuffix(ending)
    names = sorted({f"{start}{ending}" for start in (path, stem) for ending in ENDINGS})
    return tuple(name for name in names if files.exists(name))


def indexes_given(indexes: Iterable[str], paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns by WARC file which of the given indexes name it.

    Raises:
      InputError: if an index cannot be read, or names none of the files.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found: dict[str, list[str]] = {}
    for index in indexes:
        names = {name for _, name, _, _ in _lines(index)}
        if not names & by_name.keys():
            raise InputError(
                f"names none of the WARC files, but {_some(names - {''})}",
                path=index,
                field="--cdx",
                remedy="give the index of the files in --warc; files are compared by name, without folders",
            )
        for name in names & by_name.keys():
            for path in by_name[name]:
                found.setdefault(path, []).append(index)
    return {path: tuple(named) for path, named in found.items()}


def read_listing(path: str, part: Part) -> Listing:
    """Returns what the indexes of a part of a WARC file list; broken lines belong to the first part.

    Raises:
      InputError: if an index cannot be read.
    """
    name = path.rpartition("/")[2]
    listings = [_listing_of(index, files.file_digest(index), name) for index in part.indexes]
    end = _MAX_OFFSET if part.end is None else part.end
    entries = {entry.offset: entry for one in listings for entry in one.entries if part.start <= entry.offset < end}
    ordered = tuple(entries[offset] for offset in sorted(entries))
    if part.start:
        return Listing(ordered)
    broken, others = (tuple(item for one in listings for item in getattr(one, name)) for name in ("broken", "others"))
    return Listing(ordered, broken, others)


@functools.lru_cache(maxsize=4)  # the parts of a file are read one after the other
def _listing_of(index: str, _digest: str, warc_name: str) -> Listing:
    """The lines of an index of this digest: a later run of the same process may find another one at its path."""
    entries, broken, names = list[Entry](), list[tuple[str, str]](), set[str]()
    for where, name, offset, text in _lines(index):
        if not name:
            broken.append((where, text))
        elif name == warc_name:
            entries.append(Entry(offset, text, index))
        else:
            names.add(name)
    others = ((index, f"lists {_some(names)}, not {warc_name}"),) if names and not entries else ()
    return Listing(tuple(entries), tuple(broken), others)


def _some(names: set[str]) -> str:
    first = ", ".join(sorted(names)[:3]) or "no file"
    return f"{first} and {len(names) - 3} others" if len(names) > 3 else first


def _lines(index: str) -> Iterator[_Line]:
    """Yields the lines of an index.

    Raises:
      InputError: if it does not exist, or its compression differs from its name.
    """
    columns: list[str] | None = None
    number = 0
    with files.open_read(index) as source:
        try:
            for number, raw in enumerate(read_lines(source, index), 1):
                line = raw.decode("utf-8", "replace").strip()
                if line.startswith("CDX "):
                    columns = line.split()[1:]
                elif line and not line.startswith("!"):  # "!" begins what describes the index
                    yield f"{index}:{number}", *_entry(line, columns)
        except CompressionError as error:
            raise InputError(
                f"the compression differs from the file extension: {error}",
                path=index,
                field="--cdx",
                remedy="rename the file, or fetch it again",
            ) from error
        except EOFError as error:
            yield f"{index}:{number + 1}", "", 0, f"the index is cut or broken from here on: {error}"


def _entry(line: str, columns: list[str] | None) -> tuple[str, int, str]:
    """The name of the WARC file, the offset and the URL; or "", 0 and what is wrong."""
    try:
        name, offset, url = _of_json(line) if line.endswith("}") else _of_columns(line, columns)
        place = int(offset)
    except (ValueError, KeyError, RecursionError) as error:
        return "", 0, f"no line of an index: {type(error).__name__}: {error}"
    if not name or not 0 <= place < _MAX_OFFSET:
        return "", 0, f"no line of an index: file {name!r}, offset {place}"
    return name, place, url


def _of_json(line: str) -> tuple[str, str, str]:
    fields = json.loads(line[line.index("{") :])
    return str(fields["filename"]).rpartition("/")[2], str(fields["offset"]), str(fields.get("url", ""))


def _of_columns(line: str, columns: list[str] | None) -> tuple[str, str, str]:
    values = line.split()
    names = columns or _COLUMNS.get(len(values), "").split()
    if len(names) != len(values):
        raise ValueError(f"{len(values)} columns")
    fields = dict(zip(names, values, strict=True))
    offset = fields["V"] if "V" in fields else fields["v"]
    return fields["g"].rpartition("/")[2], offset, fields.get("a", "")
