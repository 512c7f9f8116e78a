"""Names of known entities in many languages: the record, and tables that users bring as TSV or Parquet."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Final

from ..errors import InputError, reading
from . import files, parquet
from .jsonl import CompressionError, read_lines

_REMEDY: Final = "write entity id, language, alias and optionally a prior above 0 in each row"
_COLUMNS: Final = ("entity", "language", "alias")
_LONGEST: Final = 200  # characters of an alias


@dataclasses.dataclass(frozen=True, slots=True)
class KnownName:
    """One name of a known entity.

    Attributes:
      entity: id of the entity, in any scheme.
      language: BCP-47 tag; "" for a name that is used in all languages.
      alias: the name as it is written.
      prior: weight of this meaning among the meanings of the alias, above 0: a probability or a count.
    """

    entity: str
    language: str
    alias: str
    prior: float = 1.0


@dataclasses.dataclass
class NameCounts:
    """What a reader of names has seen.

    Attributes:
      rows: rows that were read.
      too_short: rows whose alias has one letter or none: it would be found everywhere.
      too_long: rows whose alias has more than 200 characters.
    """

    rows: int = 0
    too_short: int = 0
    too_long: int = 0


def read_names(path: str, counts: NameCounts) -> Iterator[KnownName]:
    """Yields the names of a table in the order of its rows, with a few thousand of them in memory.

    Args:
      path: Parquet with the columns entity, language, alias and optionally prior, or a folder of such files; any other
        file is TSV without a header, optionally ``.gz`` or ``.zst``.
      counts: counts what is read; rows whose alias is too short or too long are counted and left out.

    Raises:
      InputError: if the table cannot be read or a row is broken; names the row.
    """
    parts = _parts_of(path)
    for row in _parquet_rows(parts) if parts[0].endswith(".parquet") else _tsv_rows(path):
        name = _name_of(*row)
        counts.rows += 1
        if sum(map(str.isalnum, name.alias)) < 2:
            counts.too_short += 1
        elif len(name.alias) > _LONGEST:
            counts.too_long += 1
        else:
            yield name


def names_digest(path: str) -> str:
    """Returns the digest of a table that :func:`read_names` reads."""
    return " ".join(map(files.file_digest, _parts_of(path)))


def _parts_of(path: str) -> list[str]:
    """The files of a table: those of a folder, or itself."""
    return files.list_files("part-*.parquet", path) or [path]


# Path and number of a row, and its cells.
_Row = tuple[str, str, Sequence[str]]


def _tsv_rows(path: str) -> Iterator[_Row]:
    remedy = "give a complete file, in UTF-8"
    with reading(path, remedy, CompressionError, EOFError), files.open_read(path) as source:
        for number, raw in enumerate(read_lines(source, path), 1):
            if raw.strip():
                with reading(f"{path}:{number}", remedy):
                    text = raw.decode("utf-8")
                yield path, f"line {number}", text.rstrip("\r").split("\t")


def _parquet_rows(paths: Sequence[str]) -> Iterator[_Row]:
    for path in paths:
        number = 0
        for batch in parquet.read_batches(path):
            names = batch.schema.names
            if missing := [name for name in _COLUMNS if name not in names]:
                problem = f"got the columns {names}, expected {list(_COLUMNS)}"
                raise InputError(problem, path=path, field=missing[0], remedy=_REMEDY)
            columns = [batch.column(name).to_pylist() for name in (*_COLUMNS, "prior") if name in names]
            for fields in zip(*columns, strict=True):
                number += 1
                yield path, f"row {number}", ["" if field is None else str(field) for field in fields]


def _name_of(path: str, place: str, fields: Sequence[str]) -> KnownName:
    entity, language, alias, prior, *_ = (field.strip() for field in (*fields, "", "", "", ""))
    weight = number_in(prior or "1")
    problem = "" if 0 < weight < math.inf else f"got the prior {prior[:80]!r}, expected a number above 0"
    if len(fields) not in (3, 4) or not entity or not alias:
        problem = f"got {len(fields)} columns or an empty one, expected 3 or 4"
    if problem:
        raise InputError(problem, path=path, field=place, remedy=_REMEDY)
    return KnownName(entity, language.replace("_", "-"), " ".join(alias.split()), weight)


def number_in(text: str) -> float:
    """Returns the number that a cell of a table has, NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan
