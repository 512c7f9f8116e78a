"""``neighbors``: the nearest documents of every document in each auxiliary space, searched where the answer can be.

A positive lies within a day and a negative at least a year away, so ``windowed`` spends the K neighbors of a query on
those days only; ``global`` is the paper's way (K nearest of all, filtered by date afterwards), ``both`` does both.
A pair found in one space is written with its similarity in every space in which both documents have a vector.
"""

import collections
import dataclasses
import enum
import functools
import math
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from ...tasks.errors import InputError
from .. import parquet
from ..entities.counting import NamedCounts
from ..entities.tables import read_array, write_array
from ..jobs import InputSpec, Job, JobRun
from ..records import Neighbor, Rejection
from ..shards import GroupByShard, ProcessShards, Shard
from .found import FOUND, SPACES, KeepBest, Side
from .index import Engine
from .rows import doc_id_of, read_blocks, read_vectors, write_blocks
from .search import Plan, Task, plan_tasks, run_task


class DateMode(enum.StrEnum):
    """Which days are searched."""

    WINDOWED = "windowed"
    GLOBAL = "global"
    BOTH = "both"


_SIDES = {
    DateMode.WINDOWED: (Side.POSITIVE, Side.NEGATIVE),
    DateMode.GLOBAL: (Side.GLOBAL,),
    DateMode.BOTH: (Side.POSITIVE, Side.NEGATIVE, Side.GLOBAL),
}


@dataclasses.dataclass(frozen=True)
class NeighborsOptions:
    """Options of ``neighbors``."""

    dates: DateMode = dataclasses.field(default=DateMode.WINDOWED, metadata={"help": "days to search"})
    positives: int = dataclasses.field(default=20, metadata={"help": "neighbors by query and space within positive_days"})
    negatives: int = dataclasses.field(default=10, metadata={"help": "neighbors by query and space beyond negative_days"})
    neighbors: int = dataclasses.field(default=50, metadata={"help": "neighbors by query and space of a global search"})
    positive_days: int = dataclasses.field(default=1, metadata={"help": "largest day gap of a positive"})
    negative_days: int = dataclasses.field(default=365, metadata={"help": "smallest day gap of a negative"})
    engine: Engine = dataclasses.field(default=Engine.AUTO, metadata={"help": "auto: exact for small indexes, else ScaNN, else faiss"})
    exact_below: int = dataclasses.field(default=4_000, metadata={"help": "rows of an index below which search is exact"})
    block_days: int = dataclasses.field(default=91, metadata={"help": "days of one partition"})
    max_index_rows: int = dataclasses.field(default=100_000, metadata={"help": "rows of one index; larger partitions are split by hash"})

    def __post_init__(self) -> None:
        for name in ("positives", "negatives", "neighbors", "block_days", "max_index_rows"):
            if getattr(self, name) < 1:
                raise InputError(f"got {getattr(self, name)}, expected at least 1", field=f"--{name}", remedy="give a positive number")
        if not 0 <= self.positive_days < self.negative_days:
            raise InputError(
                f"got {self.positive_days} and {self.negative_days} days",
                field="--positive_days, --negative_days",
                remedy="positives must lie nearer than negatives",
            )

    def plan(self) -> Plan:
        """What to search."""
        counts = {Side.POSITIVE: self.positives, Side.NEGATIVE: self.negatives, Side.GLOBAL: self.neighbors}
        return Plan(counts, self.positive_days, self.negative_days, self.engine, self.exact_below)


_BLOCKS_TOGETHER = 4


def run(job: JobRun) -> None:
    """The pipeline of ``neighbors``."""
    options: NeighborsOptions = job.options
    shards = list(zip(*(parquet.shard_paths(f"{job.input('vectors')}/{space.value}") for space in SPACES), strict=True))
    job.map_shards("partition", functools.partial(_partition, options.block_days), shards)
    documents = _documents_by_block(job.workspace)
    tasks = plan_tasks(documents, _SIDES[options.dates], _BLOCKS_TOGETHER, options.max_index_rows)
    job.map_shards("search", functools.partial(_search, options), tasks, accounted=False)
    phase = job.phase("merge", len(shards))
    sources = [f"{job.workspace}/_found/part-{index:05d}-of-{len(tasks):05d}.npy" for index in range(len(tasks))]
    with job.pipeline(phase) as pipeline:
        _ = (
            pipeline
            | beam.Create([*((path, None) for path in sources), *((job.workspace, block) for block in sorted(documents))])
            | beam.Reshuffle()
            | beam.FlatMapTuple(functools.partial(_split, len(shards)))
            | beam.CombinePerKey(KeepBest(options.plan().counts))
            | GroupByShard(len(shards))
            | ProcessShards(_merge, phase)
        )


def _partition(block_days: int, shard: Shard, paths: tuple[str, ...]) -> None:
    """Cuts the vectors of one shard into blocks of days."""
    rows = read_vectors(dict(zip(SPACES, paths, strict=True)))
    shard.read(len(rows))
    write_blocks(shard.workspace, shard.index, rows, block_days)
    writer = shard.records("_blocks", NamedCounts)
    for block, count in zip(*np.unique(rows.days // block_days, return_counts=True), strict=True):
        writer.write(NamedCounts(str(block), (int(count),)))
    shard.written(len(rows))


def _documents_by_block(workspace: str) -> dict[int, int]:
    documents: collections.Counter[int] = collections.Counter()
    for record in parquet.read_stream(f"{workspace}/_blocks", NamedCounts):
        documents[int(record.name)] += record.counts[0]
    return dict(documents)


def _search(options: NeighborsOptions, shard: Shard, task: Task) -> None:
    """Writes the best pairs of one task."""
    found = run_task(task, options.plan(), shard.workspace, options.block_days, lambda engine: shard.tally(f"{engine}_indexes"))
    shard.tally(f"{task.side.name.lower()}_pairs_found", len(found))
    write_array(shard.path("_found", "npy"), found)


def _split(shards: int, path: str, block: int | None) -> Iterator[tuple[int, bytes]]:
    """Pairs of one search, or the documents of one block, by the query's shard."""
    if block is None:
        found = read_array(path)
    else:
        rows = read_blocks(path, [block])
        found = np.zeros(len(rows), FOUND)
        found["query"], found["neighbor"], found["side"] = rows.ids, rows.ids, Side.DOCUMENT
    numbers = (found["query"] >> np.uint64(32)) % np.uint64(shards)
    for number in np.unique(numbers):
        yield int(number), found[numbers == number].tobytes()


def _merge(shard: Shard, combined: Any) -> None:
    """Writes the neighbors of every document of a shard: each pair once for each space in which both have a vector."""
    found = np.frombuffer(b"".join(combined), FOUND)
    writer = shard.records("neighbors", Neighbor)
    documents = found["query"][found["side"] == Side.DOCUMENT]
    pairs = found[found["side"] != Side.DOCUMENT]
    _, first = np.unique(pairs[["query", "neighbor"]], return_index=True)
    pairs = pairs[first]
    starts, ends = (np.searchsorted(pairs["query"], documents, side) for side in ("left", "right"))
    for document, start, end in zip(documents.tolist(), starts, ends, strict=True):
        shard.read()
        if start == end:
            shard.reject(doc_id_of(document), Rejection.NO_NEIGHBOR, "no document on the days searched shares a space")
            continue
        for pair in pairs[start:end]:
            for space, similarity in zip(SPACES, pair["similarity"].tolist(), strict=True):
                if not math.isnan(similarity):
                    writer.write(Neighbor(doc_id_of(document), doc_id_of(int(pair["neighbor"])), space.value, similarity, int(pair["gap"])))
                    shard.tally(f"{space.value}_neighbors")
        shard.written()


JOB = Job(
    name="neighbors",
    summary="nearest documents in each auxiliary space, by date",
    example="newsembed neighbors --vectors work/vectors --output work/neighbors",
    inputs=(InputSpec("vectors", "folder written by vectors"),),
    options=NeighborsOptions,
    run=run,
)
