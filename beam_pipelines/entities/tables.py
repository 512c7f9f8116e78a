"""Alias tables and embedding tables on disk, in our format and in common formats of users, and sums of named counts."""

import collections
import contextlib
import dataclasses
import gc
import operator
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError, reading
from ...formats import files, parquet
from ...formats.names import number_in
from ..arrays import Floats, read_array, write_array
from ..jobs import JobRun
from ..shards import Shard

_BUCKETS: Final = 16


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


class EmbeddingTable(NamedTuple):
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
    """Writes UTF-8 lines completely or not at all."""
    files.write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def write_aliases(path: str, aliases: Iterable[Alias]) -> None:
    """Writes an alias table as TSV: alias, entity id, prior, name and, if only some languages use the name, these."""
    lines = (f"{item.alias}\t{item.entity}\t{item.prior:.4f}\t{item.name}\t{item.languages}" for item in aliases)
    write_lines(path, (line.rstrip("\t") for line in lines))


def read_aliases(path: str) -> list[Alias]:
    """Reads a TSV of alias, entity id, prior and, if there are more columns, name and languages.

    Raises:
      InputError: if a line is broken; names the line.
    """
    found = []
    for number, fields in _tsv(path):
        text, entity, prior, name, languages, *_ = (*fields, "", "", "", "", "")
        if not text.strip() or not entity.strip() or not 0 < number_in(prior) <= 1:
            remedy = "write alias, entity id, prior in (0, 1] and optionally name on each line, separated by tabs"
            problem = f"got the alias {text!r}, the entity {entity!r} and the prior {prior!r}"
            raise InputError(problem, path=path, field=f"line {number}", remedy=remedy)
        found.append(Alias(text.strip(), entity.strip(), float(prior), name or entity, languages.strip()))
    return found


def write_embeddings(stem: str, table: EmbeddingTable, names: Sequence[str] = ()) -> None:
    """Writes ``<stem>.npy``, and ``<stem>.tsv`` with key, count and, if given, name of each row."""
    columns = [table.keys, (f"{count:.8g}" for count in table.counts), *([names] if names else [])]
    write_lines(f"{stem}.tsv", map("\t".join, zip(*columns, strict=True)))
    write_array(f"{stem}.npy", table.values)


def read_embeddings(path: str) -> EmbeddingTable:
    """Reads ``X.npy`` with its keys in ``X.tsv`` (key, optional count), or word2vec text.

    Raises:
      InputError: if keys and rows differ in number, a key is repeated, or a row has another length or is not numeric.
    """
    if path.endswith(".npy"):
        values, keys_path = read_array(path), f"{path[:-4]}.tsv"
        rows = read_keys(keys_path)
        keys = [fields[0] for fields in rows]
        if values.ndim != 2 or len(rows) != len(values):
            problem = f"got an array of shape {values.shape} and {len(rows)} keys in {keys_path}"
            remedy = "write one key per line, in the order of the rows"
            raise InputError(f"{problem}, expected [keys, dimensions]", path=path, remedy=remedy)
        counts = tuple(number_in(fields[1]) for fields in rows if len(fields) > 1)
    else:
        (keys, values), keys_path, counts = _read_word2vec(path), path, ()
    key, times = next(iter(collections.Counter(keys).most_common(1)), ("", 0))
    if times > 1:
        remedy = "write one row for each key"
        raise InputError(f"got {key[:80]!r} {times} times", path=keys_path, field="key", remedy=remedy)
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        problem = f"got values of type {values.dtype} that are not all finite numbers"
        raise InputError(problem, path=path, remedy="write float32 numbers; leave out rows without a vector")
    return EmbeddingTable(tuple(keys), np.asarray(values, np.float32), counts)


def _read_word2vec(path: str) -> tuple[list[str], Floats]:
    keys, rows = list[str](), list[Floats]()
    for number, line in enumerate(_lines(path), 1):
        key, *values = line.rstrip(" ").split(" ")
        if number == 1 and len(values) == 1:
            continue  # the header: rows and dimensions
        with reading(f"{path}:{number}", "write a key and as many numbers as in the first row, or give npy"):
            rows.append(np.array(values, np.float32))
            if len(rows[-1]) != len(rows[0]):
                raise InputError(f"got {len(values)} dimensions, expected {len(rows[0])} as in the first row")
        keys.append(key)
    if not rows:
        raise InputError("has no rows", path=path, remedy="give npy or word2vec text")
    return keys, np.stack(rows)


def read_keys(path: str) -> list[list[str]]:
    """Returns the columns of each line of a table of keys."""
    return [fields for _, fields in _tsv(path)]


def _tsv(path: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            yield number, line.split("\t")


def _lines(path: str) -> list[str]:
    """Returns the lines of a file, which may end as on Windows."""
    with files.open_read(path) as source, reading(path, "write the file as UTF-8"):
        text = source.read().decode("utf-8-sig")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


@dataclasses.dataclass(frozen=True, slots=True)
class NamedCounts:
    """Several counts of one name."""

    name: str
    counts: tuple[int, ...]


def write_counts(shard: Shard, stream: str, counts: Mapping[str, Iterable[int]], buckets: int = _BUCKETS) -> None:
    """Writes the counts of one shard, in buckets and sorted by name, for :func:`sum_counts`."""
    writers = [shard.records(f"{stream}/{bucket:02d}", NamedCounts) for bucket in range(buckets)]
    for name in sorted(counts):
        writers[zlib.crc32(name.encode()) % buckets].write(NamedCounts(name, tuple(counts[name])))


def sum_counts(run: JobRun, source: str, target: str, at_least: int) -> None:
    """Sums the stream ``source`` by name into ``target``; drops names whose sums are all below ``at_least``."""
    names: dict[str, Any] = {"source": source, "target": target, "at_least": at_least}
    run.map_shards(f"sum{target}", _sum_bucket, range(_BUCKETS), **names, accounted=False)


def _sum_bucket(shard: Shard, bucket: int, source: str, target: str, at_least: int) -> None:
    sums = read_counts(f"{shard.workspace}/{source}/{bucket:02d}")
    writer = shard.records(target, NamedCounts)
    for name in sorted(sums):
        if max(sums[name]) >= at_least:
            writer.write(NamedCounts(name, sums[name]))


def read_counts(folder: str) -> dict[str, tuple[int, ...]]:
    """Reads the counts by name, added up where several shards have a name."""
    sums: dict[str, tuple[int, ...]] = {}
    for one in parquet.read_stream(folder, NamedCounts):
        sums[one.name] = tuple(map(operator.add, sums[one.name], one.counts)) if one.name in sums else one.counts
    return sums
