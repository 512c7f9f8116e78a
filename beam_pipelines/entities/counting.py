"""Summing named counts over shards: batches of names pass the shuffle, never texts."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam

from .. import parquet
from ..jobs import JobRun
from ..shards import GroupByShard, ProcessShards, Shard

_BUCKETS = 16
_BATCH = 2_000


@dataclasses.dataclass(frozen=True, slots=True)
class NamedCounts:
    """Several counts of one name."""

    name: str
    counts: tuple[int, ...]


def write_counts(shard: Shard, stream: str, counts: Mapping[str, Iterable[int]]) -> None:
    """Writes the counts of one shard, sorted by name."""
    writer = shard.records(stream, NamedCounts)
    for name in sorted(counts):
        writer.write(NamedCounts(name, tuple(counts[name])))


def sum_counts(run: JobRun, source: str, target: str, at_least: int) -> None:
    """Adds up the stream ``source`` by name into ``target``, dropping names whose every count stays below ``at_least``."""
    phase = run.phase(f"sum{target}", _BUCKETS, accounted=False)
    with run.pipeline(phase) as pipeline:
        _ = (
            pipeline
            | beam.Create(parquet.shard_paths(f"{run.workspace}/{source}"))
            | beam.Reshuffle()
            | beam.FlatMap(_batches)
            | GroupByShard(_BUCKETS)
            | ProcessShards(_WriteSums(target, at_least), phase)
        )


def read_counts(folder: str) -> dict[str, tuple[int, ...]]:
    """Sums by name."""
    return {record.name: record.counts for record in parquet.read_stream(folder, NamedCounts)}


def _batches(path: str) -> Iterator[tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]]:
    waiting: dict[int, list[tuple[str, tuple[int, ...]]]] = {bucket: [] for bucket in range(_BUCKETS)}
    for record in parquet.read_records(path, NamedCounts):
        batch = waiting[hashlib.blake2b(record.name.encode(), digest_size=1).digest()[0] % _BUCKETS]
        batch.append((record.name, record.counts))
        if len(batch) >= _BATCH:
            yield _bucket_of(batch), tuple(batch)
            batch.clear()
    for bucket, batch in waiting.items():
        if batch:
            yield bucket, tuple(batch)


def _bucket_of(batch: list[tuple[str, tuple[int, ...]]]) -> int:
    return hashlib.blake2b(batch[0][0].encode(), digest_size=1).digest()[0] % _BUCKETS


@dataclasses.dataclass(frozen=True)
class _WriteSums:
    target: str
    at_least: int

    def __call__(self, shard: Shard, batches: Any) -> None:
        sums: dict[str, list[int]] = {}
        for batch in batches:
            for name, counts in batch:
                mine = sums.setdefault(name, [0] * len(counts))
                for position, count in enumerate(counts):
                    mine[position] += count
        write_counts(shard, self.target, {name: counts for name, counts in sums.items() if max(counts) >= self.at_least})
