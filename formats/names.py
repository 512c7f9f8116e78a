"""Names of known entities in many languages: the record, and tables that users bring as TSV or Parquet."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Final

from ..errors import InputError
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
    if path.endswith(".parquet"):
        rows = _parquet_rows(path)
    elif files.list_files(f"{path}/part-*.parquet"):
        rows = (row for part in parquet.shard_paths(path) for row in _parquet_rows(part))
    else:
        rows = _tsv_rows(path)
    for name in rows:
        counts.rows += 1
        if sum(map(str.isalnum, name.alias)) < 2:
            counts.too_short += 1
        elif len(name.alias) > _LONGEST:
            counts.too_long += 1
        else:
            yield name


def _tsv_rows(path: str) -> Iterator[KnownName]:
    with files.open_read(path) as source:
        try:
            for number, raw in enumerate(read_lines(source, path), 1):
                if raw.strip():
                    yield _row(_decoded(raw, path, number).rstrip("\r").split("\t"), path, f"line {number}")
        except (CompressionError, EOFError) as error:
            raise InputError(f"cannot be read: {error}", path=path, remedy="give a complete file") from error


def _decoded(raw: bytes, path: str, number: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: {error}", path=path, field=f"line {number}", remedy="write the file as UTF-8"
        ) from error


def _parquet_rows(path: str) -> Iterator[KnownName]:
    number = 0
    for batch in parquet.read_batches(path):
        names = batch.schema.names
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise InputError(
                f"got the columns {names}, expected {list(_COLUMNS)}", path=path, field=missing[0], remedy=_REMEDY
            )
        columns = [batch.column(name).to_pylist() for name in (*_COLUMNS, "prior") if name in names]
        for fields in zip(*columns, strict=True):
            number += 1
            yield _row(["" if field is None else str(field) for field in fields], path, f"row {number}")


def _row(fields: Sequence[str], path: str, place: str) -> KnownName:
    if len(fields) not in (3, 4) or not fields[0].strip() or not fields[2].strip():
        raise InputError(
            f"got {len(fields)} columns or an empty one, expected 3 or 4", path=path, field=place, remedy=_REMEDY
        )
    prior = 1.0
    if len(fields) > 3 and fields[3].strip():
        try:
            prior = float(fields[3])
        except ValueError:
            prior = math.nan
        if not 0 < prior < math.inf:
            raise InputError(
                f"got the prior {fields[3][:80]!r}, expected a number above 0", path=path, field=place, remedy=_REMEDY
            )
    return KnownName(fields[0].strip(), fields[1].strip().replace("_", "-"), " ".join(fields[2].split()), prior)
