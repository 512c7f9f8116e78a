"""Streams: folders of zstd Parquet shards whose schema follows from the dataclass of the records."""

import contextlib
import dataclasses
import datetime
import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from . import files
from .digests import ShardWriter

R = TypeVar("R")

_ROWS_PER_GROUP = 2_000  # of a few KB each: a reader has one row group in memory
_SCALARS: dict[type, pa.DataType] = {
    str: pa.string(),
    bytes: pa.binary(),
    int: pa.int64(),
    float: pa.float32(),
    bool: pa.bool_(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
}


@cache
def schema_of(record_type: Any) -> pa.Schema:
    """Arrow schema of a record dataclass: scalars, ``X | None`` and ``tuple[X, ...]`` of scalars."""
    hints = typing.get_type_hints(record_type)
    return pa.schema([_arrow_field(field.name, hints[field.name]) for field in dataclasses.fields(record_type)])


def _arrow_field(name: str, hint: Any) -> pa.Field:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union) and len(arguments) == 2 and type(None) in arguments:
        scalar = next(argument for argument in arguments if argument is not type(None))
        return pa.field(name, _SCALARS[scalar], nullable=True)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return pa.field(name, pa.list_(_SCALARS[arguments[0]]), nullable=False)
    if hint in _SCALARS:
        return pa.field(name, _SCALARS[hint], nullable=False)
    raise TypeError(f"field {name}: got the type {hint}, expected a scalar, an optional scalar or a tuple of scalars")


class ParquetShardWriter(ShardWriter, Generic[R]):
    """Writes records of one type to one shard, buffering one row group.

    Args:
      path: the shard.
      record_type: the dataclass of every record.
    """

    def __init__(self, path: str, record_type: type[R]) -> None:
        super().__init__(path)
        self._schema = schema_of(record_type)  # type: ignore[arg-type]  # of a cached function
        self._buffer: list[R] = []
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd", write_page_checksum=True)

    def write(self, record: R) -> None:
        """Writes one record."""
        self._buffer.append(record)
        self.rows += 1
        if len(self._buffer) >= _ROWS_PER_GROUP:
            self._flush()

    def write_columns(self, columns: Mapping[str, Any]) -> None:
        """Writes many records as one row group, given as one array for each field."""
        self._flush()
        table = pa.table(dict(columns), schema=self._schema)
        self.rows += table.num_rows
        self._writer.write_table(table)

    def _flush(self) -> None:
        if self._buffer:
            columns = {name: [getattr(record, name) for record in self._buffer] for name in self._schema.names}
            self._buffer = []
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def _finish(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()


def read_batches(path: str, columns: list[str] | None = None, rows: int = _ROWS_PER_GROUP) -> Iterator[pa.RecordBatch]:
    """Yields record batches of at most ``rows`` rows of one Parquet file; page checksums are compared.

    Raises:
      InputError: if the file is not a Parquet file, is damaged, or lacks one of ``columns``.
    """
    with files.open_read(path) as source, damage_named(path):
        parquet = pq.ParquetFile(source, page_checksum_verification=True)
        if missing := sorted(set(columns or ()) - set(parquet.schema_arrow.names)):
            problem = f"got the columns {parquet.schema_arrow.names}, expected {missing} too"
            raise InputError(problem, path=path, field=missing[0], remedy="rename or add the column")
        yield from parquet.iter_batches(batch_size=rows, columns=columns)


def column_bounds(path: str, column: str) -> list[Any]:
    """Returns the smallest and the largest values of a column by row group, of a shard that a job wrote.

    They are in the footer, so that no row is read. A group without values has none.

    Raises:
      InputError: see :func:`read_batches`.
    """
    with files.open_read(path) as source, damage_named(path):
        metadata = pq.ParquetFile(source).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
        found = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    return [value for one in found if one and one.has_min_max for value in (one.min, one.max)]


@contextlib.contextmanager
def damage_named(path: str, field: str | None = None) -> Iterator[None]:
    """Turns Arrow's errors for a damaged file into one that names it.

    Args:
      path: of the Parquet file that is read inside the context.
      field: the option that names it, if known.

    Raises:
      InputError: if the file is not a Parquet file or is damaged, or memory does not suffice for it.
      OSError: of the disk or the network, unchanged.
    """
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # Arrow's own errors of the content have no number
        lines = str(error).strip().splitlines() or [type(error).__name__]
        problem = "not a Parquet file, or damaged"
        remedy = "write the file again, or restore it from a copy; a partial upload looks like this"
        if isinstance(error, MemoryError):  # a damaged file may ask for any memory
            problem = "not enough memory to read it, or damaged"
            remedy = f"give the process more memory; if it has plenty, {remedy}"
        raise InputError(f"{problem}: {lines[0]}", path=path, field=field, remedy=remedy) from error


def read_records(path: str, record_type: type[R]) -> Iterator[R]:
    """Yields the records of one shard, in order, with one row group in memory.

    Raises:
      InputError: if the file is not a Parquet file or lacks a field.
    """
    schema = schema_of(record_type)  # type: ignore[arg-type]  # of a cached function
    tuples = [pa.types.is_list(field.type) for field in schema]
    for batch in read_batches(path, schema.names):
        columns = (batch.column(name).to_pylist() for name in schema.names)
        yield from map(
            record_type, *(map(tuple, one) if is_tuple else one for one, is_tuple in zip(columns, tuples, strict=True))
        )


def shard_paths(folder: str) -> list[str]:
    """The paths of the shards of a stream, sorted.

    Raises:
      InputError: if the folder has none.
    """
    paths = files.list_files("part-*.parquet", folder)
    if not paths:
        parent = folder.rstrip("/").rpartition("/")[0]
        if os.path.isfile(parent):
            remedy = "turn files of articles into one with `newsembed extract --articles`"
            raise InputError("is a file, expected a folder that a job wrote", path=parent, remedy=remedy)
        remedy = "run the job that writes this folder, or check the path"
        raise InputError("no part-*.parquet shards here", path=folder, remedy=remedy)
    return paths


def read_stream(folder: str, record_type: type[R]) -> Iterator[R]:
    """Yields the records of all shards of a stream.

    Raises:
      InputError: if there are no shards, or one cannot be read.
    """
    for path in shard_paths(folder):
        yield from read_records(path, record_type)


def write_shard(path: str, records: Iterable[R], record_type: type[R]) -> int:
    """Writes one shard, completely or not at all, and returns the number of records."""
    with ParquetShardWriter(path, record_type) as writer:
        for record in records:
            writer.write(record)
    return writer.rows
