"""Alias tables and embedding tables on disk, in our format and in common formats of users."""

import collections
import contextlib
import dataclasses
import gc
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...formats import files
from ..arrays import read_array, write_array

Floats = np.ndarray[Any, np.dtype[np.float32]]


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Collects no garbage meanwhile: the many objects of tables stay, and each collection would look through them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclasses.dataclass(frozen=True, slots=True)
class Alias:
    """One way to write an entity.

    Attributes:
      alias: the text, case-sensitive.
      entity: id of the entity.
      prior: prior probability that the alias means this entity, in (0, 1].
      name: readable name of the entity.
      languages: the languages in which the text is this name, joined by commas; "" for all.
    """

    alias: str
    entity: str
    prior: float
    name: str
    languages: str = ""


@dataclasses.dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings by key.

    Attributes:
      keys: one per row.
      values: float32 ``[len(keys), D]``.
      counts: a number for each key, such as its frequency; empty if the file has none.
    """

    keys: tuple[str, ...]
    values: Floats
    counts: tuple[float, ...] = ()

    def rows(self) -> dict[str, int]:
        """Returns the row by key."""
        return {key: row for row, key in enumerate(self.keys)}


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Writes UTF-8 lines under a temporary name, then moves the file to ``path``."""
    temporary = files.temporary_name(path)
    with files.open_write(temporary) as sink:
        for line in lines:
            sink.write(f"{line}\n".encode())
    files.move(temporary, path)


def write_aliases(path: str, aliases: Iterable[Alias]) -> None:
    """Writes an alias table as TSV: alias, entity id, prior, name and, if only some languages use the name, these."""
    write_lines(path, map(_alias_line, aliases))


def _alias_line(item: Alias) -> str:
    line = f"{item.alias}\t{item.entity}\t{item.prior:.4f}\t{item.name}"
    return f"{line}\t{item.languages}" if item.languages else line


def read_aliases(path: str) -> list[Alias]:
    """Reads a TSV of alias, entity id, prior and, if there are more columns, name and languages.

    Raises:
      InputError: if a line is broken; names the line.
    """
    return [_alias(path, number, fields) for number, fields in _tsv(path)]


def _alias(path: str, number: int, fields: Sequence[str]) -> Alias:
    remedy = "write alias, entity id, prior in (0, 1] and optionally name on each line, separated by tabs"
    if len(fields) < 3 or not fields[0].strip() or not fields[1].strip():
        raise InputError(
            f"got {len(fields)} columns or an empty one, expected at least 3",
            path=path,
            field=f"line {number}",
            remedy=remedy,
        )
    try:
        prior = float(fields[2])
    except ValueError:
        prior = math.nan
    if not 0 < prior <= 1:
        raise InputError(
            f"got the prior {fields[2]!r}, expected a number in (0, 1]",
            path=path,
            field=f"line {number}",
            remedy=remedy,
        )
    name, languages = (*fields[3:5], *("", "")[len(fields[3:5]) :])
    return Alias(fields[0].strip(), fields[1].strip(), prior, name or fields[1], languages.strip())


def write_embeddings(stem: str, table: EmbeddingTable, names: Sequence[str] = ()) -> None:
    """Writes ``<stem>.npy``, and ``<stem>.tsv`` with key, count and, if given, name of each row."""
    lines = [f"{key}\t{count:.8g}" for key, count in zip(table.keys, table.counts, strict=True)]
    if names:
        lines = [f"{line}\t{name}" for line, name in zip(lines, names, strict=True)]
    write_lines(f"{stem}.tsv", lines)
    write_array(f"{stem}.npy", table.values)


def read_embeddings(path: str) -> EmbeddingTable:
    """Reads ``X.npy`` with its keys in ``X.tsv`` (key, optional count), or word2vec text.

    Raises:
      InputError: if keys and rows differ in number, or a row has another length or is not numeric.
    """
    if not path.endswith(".npy"):
        return _read_word2vec(path)
    values = read_array(path)
    keys_path = f"{path[:-4]}.tsv"
    rows = [fields for _, fields in _tsv(keys_path)]
    if values.ndim != 2 or len(rows) != len(values):
        raise InputError(
            f"got an array of shape {values.shape} and {len(rows)} keys in {keys_path}, expected [keys, dimensions]",
            path=path,
            remedy="write one key per line, in the order of the rows",
        )
    counts = _counts(rows, keys_path) if rows and all(len(fields) > 1 for fields in rows) else ()
    return EmbeddingTable(_unique([fields[0] for fields in rows], keys_path), _numbers(values, path), counts)


def _unique(keys: Sequence[str], path: str) -> tuple[str, ...]:
    """Returns the keys.

    Raises:
      InputError: if one is repeated.
    """
    if len(set(keys)) < len(keys):
        key, times = collections.Counter(keys).most_common(1)[0]
        raise InputError(f"got {key[:80]!r} {times} times", path=path, field="key", remedy="write one row for each key")
    return tuple(keys)


def _numbers(values: np.ndarray[Any, Any], path: str) -> Floats:
    """Returns the values as float32.

    Raises:
      InputError: if one is not a finite number.
    """
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise InputError(
            f"got values of type {values.dtype} that are not all finite numbers",
            path=path,
            remedy="write float32 numbers; leave out rows without a vector",
        )
    return np.asarray(values, np.float32)


def _counts(rows: Sequence[Sequence[str]], path: str) -> tuple[float, ...]:
    """Returns the counts of the keys.

    Raises:
      InputError: if one is not a number of at least 0.
    """
    counts = []
    for number, fields in enumerate(rows, 1):
        try:
            count = float(fields[1])
        except ValueError:
            count = -1.0
        if not 0 <= count < math.inf:
            raise InputError(
                f"got the count {fields[1][:80]!r}, expected a number of at least 0",
                path=f"{path}:{number}",
                remedy="write key and count (or frequency), separated by a tab",
            )
        counts.append(count)
    return tuple(counts)


def _read_word2vec(path: str) -> EmbeddingTable:
    keys: list[str] = []
    rows: list[Floats] = []
    for number, line in enumerate(_lines(path), 1):
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2:
            continue  # the header: rows and dimensions
        try:
            row = np.array(fields[1:], np.float32)
        except ValueError as error:
            raise InputError(
                f"not numeric: {error}", path=path, field=f"line {number}", remedy="give npy or word2vec text"
            ) from error
        if rows and len(row) != len(rows[0]):
            raise InputError(
                f"got {len(row)} dimensions, expected {len(rows[0])} as in the first row",
                path=path,
                field=f"line {number}",
                remedy="write every row with the same dimensions",
            )
        keys.append(fields[0])
        rows.append(row)
    if not rows:
        raise InputError("has no rows", path=path, remedy="give npy or word2vec text")
    return EmbeddingTable(_unique(keys, path), _numbers(np.stack(rows), path))


def read_keys(path: str) -> list[list[str]]:
    """Returns the columns of each line of a table of keys."""
    return [fields for _, fields in _tsv(path)]


def _tsv(path: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            yield number, line.split("\t")


def _lines(path: str) -> Iterator[str]:
    with files.open_read(path) as source:
        raw = source.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error}", path=path, remedy="write the file as UTF-8") from error
    lines = text.split("\n")[: None if text and not text.endswith("\n") else -1]
    yield from (line.removesuffix("\r") for line in lines)  # as editors on Windows end lines
