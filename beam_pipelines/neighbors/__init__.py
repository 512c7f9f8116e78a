"""``newsembed neighbors``: finds the nearest documents of every document in each auxiliary space.

A positive is within a day of its anchor and a negative at least a year away, so ``windowed`` searches only those days
for the K neighbors of a query. ``global`` searches as the paper does (K nearest of all documents, filtered by date
afterwards), and ``both`` does both. A pair that is found in one space is written with its similarity in every space in
which both documents have a vector.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from ...formats import parquet
from ...formats.records import Neighbor, Rejection, Space
from ..arrays import changes, doc_id_of, doc_ids_of, slices
from ..entities.tables import NamedCounts
from ..graph import Received, Rows, send
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard, shard_numbers
from .search import (
    FOUND,
    SPACES,
    DateMode,
    NeighborsOptions,
    Pairs,
    Task,
    keep_best,
    plan_tasks,
    read_vectors,
    run_task,
    write_blocks,
)

__all__ = ["JOB", "DateMode", "NeighborsOptions"]

# Rows that are sent to the shards of documents.
_DOCUMENTS: Final = Rows("_documents", np.dtype("<u8"))
_FOUND: Final = Rows("_found", FOUND)
_PAIRS_SENT_TOGETHER: Final = 50_000  # about 2 MB, and three times as much to sort them
_PAIRS_WRITTEN_TOGETHER: Final = 20_000


def run(job: JobRun) -> None:
    """Cuts the vectors into blocks of days, searches the blocks, then merges the pairs by query.

    Writes the stream ``neighbors``.
    """
    options: NeighborsOptions = job.options
    of_spaces = [parquet.shard_paths(f"{job.input('vectors')}/{space.value}") for space in SPACES]
    shards = [dict(zip(SPACES, paths, strict=True)) for paths in zip(*of_spaces, strict=True)]
    count = len(shards)
    job.map_shards("partition", _partition, shards, block_days=options.block_days)
    tasks = plan_tasks(_documents_by_block(job.workspace), options)
    with job.graph(max(len(tasks), count)):
        job.map_shards("search", _search, tasks, options=options, shard_count=count, accounted=False)
        streams = [("partition", _DOCUMENTS), ("search", _FOUND)]
        job.map_rows("merge", _merge, [None] * count, streams, options=options)


def _partition(shard: Shard, paths: Mapping[Space, str], block_days: int) -> None:
    """Cuts the vectors of one shard into blocks of days; ``paths`` has its path in each space."""
    rows = read_vectors(paths)
    shard.read(len(rows))
    write_blocks(shard.workspace, shard.index, rows, block_days)
    send(shard, _DOCUMENTS.stream, rows.ids, shard_numbers(rows.ids, shard.count))
    writer = shard.records("_blocks", NamedCounts)
    for block, count in zip(*np.unique(rows.days // block_days, return_counts=True), strict=True):
        writer.write(NamedCounts(str(block), (int(count),)))
    shard.written(len(rows))


def _documents_by_block(workspace: str) -> dict[int, int]:
    documents: collections.Counter[int] = collections.Counter()
    for record in parquet.read_stream(f"{workspace}/_blocks", NamedCounts):
        documents[int(record.name)] += record.counts[0]
    return dict(documents)


def _search(shard: Shard, task: Task, options: NeighborsOptions, shard_count: int) -> None:
    """Sends the best pairs of one task to the shards of their queries."""
    parts = run_task(task, options, shard.workspace, lambda engine: shard.tally(f"{engine}_indexes"))
    for chunk, found in enumerate(_gathered(parts)):
        shard.tally(f"{task.side.name.lower()}_pairs_found", len(found))
        send(shard, _FOUND.stream, found, shard_numbers(found["query"], shard_count), chunk)


def _gathered(parts: Iterable[Pairs]) -> Iterator[Pairs]:
    """Yields the same pairs in fewer parts, because every part makes a block for every receiver."""
    waiting: list[Pairs] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= _PAIRS_SENT_TOGETHER:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _merge(shard: Shard, received: Received, options: NeighborsOptions) -> None:
    """Writes the neighbors of every document of a shard, one row per pair and space in which both have a vector."""
    documents = np.sort(received.rows[_DOCUMENTS.stream])
    pairs = keep_best(received.rows[_FOUND.stream], options.counts)
    order = np.lexsort((pairs["neighbor"], pairs["query"]))
    pairs = pairs[order[changes(pairs["query"][order], pairs["neighbor"][order])]]
    alone = documents[~np.isin(documents, pairs["query"])]
    shard.read(len(documents))
    shard.written(len(documents) - len(alone))
    for document in alone.tolist():
        shard.reject(doc_id_of(document), Rejection.NO_NEIGHBOR, "no document on the days searched shares a space")
    writer = shard.records("neighbors", Neighbor)
    for part in (pairs[one] for one in slices(len(pairs), _PAIRS_WRITTEN_TOGETHER)):
        rows, spaces = np.nonzero(~np.isnan(part["similarity"]))
        columns = {
            "query": doc_ids_of(part["query"][rows]),
            "neighbor": doc_ids_of(part["neighbor"][rows]),
            "space": np.array([space.value for space in SPACES], object)[spaces],
            "similarity": part["similarity"][rows, spaces],
            "day_gap": part["gap"][rows].astype(np.int64),
        }
        writer.write_columns(columns)
        for space, pairs_known in zip(SPACES, np.bincount(spaces, minlength=len(SPACES)).tolist(), strict=True):
            shard.tally(f"{space.value}_neighbors", pairs_known)


JOB = Job(
    name="neighbors",
    example="newsembed neighbors --vectors work/vectors --output work/neighbors",
    inputs=(InputSpec("vectors", "folder that `newsembed vectors` wrote"),),
    options=NeighborsOptions,
    run=run,
)
