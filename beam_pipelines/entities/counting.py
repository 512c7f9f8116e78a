"""Sums of named counts over shards: each shard writes its counts in buckets by name, which are summed separately."""

import dataclasses
import functools
import zlib
from collections.abc import Iterable, Mapping

from ...formats import parquet
from ..jobs import JobRun
from ..shards import Shard

_BUCKETS = 16


@dataclasses.dataclass(frozen=True, slots=True)
class NamedCounts:
    """Several counts of one name."""

    name: str
    counts: tuple[int, ...]


def write_counts(shard: Shard, stream: str, counts: Mapping[str, Iterable[int]]) -> None:
    """Writes the counts of one shard, in buckets and sorted by name, for :func:`sum_counts`."""
    writers = [shard.records(f"{stream}/{bucket:02d}", NamedCounts) for bucket in range(_BUCKETS)]
    for name in sorted(counts):
        writers[zlib.crc32(name.encode()) % _BUCKETS].write(NamedCounts(name, tuple(counts[name])))


def sum_counts(run: JobRun, source: str, target: str, at_least: int) -> None:
    """Sums the stream ``source`` by name into ``target``; drops names whose sums are all below ``at_least``."""
    run.map_shards(
        f"sum{target}", functools.partial(_sum_bucket, source, target, at_least), range(_BUCKETS), accounted=False
    )


def read_counts(folder: str) -> dict[str, tuple[int, ...]]:
    """Reads the sums by name."""
    return {record.name: record.counts for record in parquet.read_stream(folder, NamedCounts)}


def _sum_bucket(source: str, target: str, at_least: int, shard: Shard, bucket: int) -> None:
    sums: dict[str, list[int]] = {}
    for path in parquet.shard_paths(f"{shard.workspace}/{source}/{bucket:02d}"):
        for batch in parquet.read_batches(path, ["name", "counts"]):
            for name, counts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                known = sums.get(name)
                sums[name] = (
                    counts if known is None else [one + other for one, other in zip(known, counts, strict=True)]
                )
    writer = shard.records(target, NamedCounts)
    for name in sorted(sums):
        if max(sums[name]) >= at_least:
            writer.write(NamedCounts(name, tuple(sums[name])))
