"""``newsembed neighbors``: finds the nearest documents of every document in each auxiliary space.

A positive is within a day of its anchor and a negative at least a year away, so ``windowed`` searches only those days
for the K neighbors of a query. ``global`` searches as the paper does (K nearest of all documents, filtered by date
afterwards), and ``both`` does both. A pair that is found in one space is written with its similarity in every space in
which both documents have a vector.
"""

import collections
import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.command_line import option
from ...formats.records import Neighbor, Rejection, Space
from ..arrays import doc_id_of, doc_ids_of
from ..entities.counting import NamedCounts
from ..jobs import InputSpec, Job, JobRun
from ..lookup import write_part
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from .background import write_far_pairs, write_sample
from .contrast import CONTRAST, CONTRASTS, MOST_DAYS, contrasts
from .found import FOUND, SPACES, Found, Side, keep_best
from .index import Engine
from .rows import read_blocks, read_vectors, write_blocks
from .search import Plan, Task, plan_tasks, run_task


class DateMode(enum.StrEnum):
    """The days that are searched."""

    WINDOWED = "windowed"
    GLOBAL = "global"
    BOTH = "both"


_SIDES = {
    DateMode.WINDOWED: (Side.POSITIVE, Side.NEGATIVE),
    DateMode.GLOBAL: (Side.GLOBAL,),
    DateMode.BOTH: (Side.POSITIVE, Side.NEGATIVE, Side.GLOBAL),
}


_BLOCKS_TOGETHER = 2


@dataclasses.dataclass(frozen=True)
class NeighborsOptions:
    """Options of ``neighbors``."""

    dates: DateMode = option(DateMode.WINDOWED, "days to search")
    positives: int = option(20, "neighbors per query and space within positive_days")
    negatives: int = option(10, "neighbors per query and space from negative_days on")
    neighbors: int = option(50, "neighbors per query and space of a global search")
    positive_days: int = option(1, "largest day gap of a positive")
    negative_days: int = option(365, "smallest day gap of a negative")
    engine: Engine = option(Engine.AUTO, "auto: exact for small indexes, else ScaNN, else faiss")
    exact_below: int = option(4_000, "rows of an index below which search is exact")
    block_days: int = option(91, "days of one partition")
    max_index_rows: int = option(100_000, "rows of one index, and queries of one search; larger ones are split by hash")
    rarity: bool = option(
        False, "also write what `newsembed triplets --rule=rarity` needs; a build with that rule does so by itself"
    )

    def __post_init__(self) -> None:
        for name in ("positives", "negatives", "neighbors", "block_days", "max_index_rows"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"got {getattr(self, name)}, expected at least 1",
                    field=f"--{name}",
                    remedy="give a positive number",
                )
        if not 0 <= self.positive_days < self.negative_days:
            raise InputError(
                f"got {self.positive_days} and {self.negative_days} days",
                field="--positive_days, --negative_days",
                remedy="positive_days must be smaller than negative_days",
            )

    def plan(self) -> Plan:
        """Returns what to search."""
        counts = {Side.POSITIVE: self.positives, Side.NEGATIVE: self.negatives, Side.GLOBAL: self.neighbors}
        return Plan(counts, self.positive_days, self.negative_days, self.engine, self.exact_below)

    def tasks(self, documents: Mapping[int, int]) -> list[Task]:
        """Returns the searches for a corpus, given its number of documents by block."""
        return plan_tasks(
            documents, _SIDES[self.dates], _BLOCKS_TOGETHER, self.max_index_rows, self.block_days, self.negative_days
        )


# Rows that are sent to the shards of documents.
_DOCUMENTS, _FOUND, _CONTRASTS = "_documents", "_found", "_contrasts"
_DOC_ID = np.dtype("<u8")
_PAIRS_SENT_TOGETHER = 50_000  # about 2 MB, and three times as much to sort them
_PAIRS_WRITTEN_TOGETHER = 20_000


def run(job: JobRun) -> None:
    """Cuts the vectors into blocks of days, searches the blocks, then merges the pairs by query.

    Writes the stream ``neighbors``. `triplets` calibrates bars by two more streams: ``far_pairs`` has the similarities
    of a sample of pairs some weeks apart (with ``rarity`` or a learned space), and ``contrasts`` how near each document
    is to others some weeks apart (with ``rarity``).
    """
    options: NeighborsOptions = job.options
    folders = {space: f"{job.input('vectors')}/{space.value}" for space in SPACES}
    if not files.list_files(f"{folders[Space.LEARNED]}/part-*.parquet"):
        del folders[Space.LEARNED]  # it needs an encoder
    by_shard = zip(*map(parquet.shard_paths, folders.values()), strict=True)
    shards = [dict(zip(folders, paths, strict=True)) for paths in by_shard]
    count = len(shards)
    job.map_shards("partition", functools.partial(_partition, options.block_days, count), shards)
    documents = _documents_by_block(job.workspace)
    tasks = options.tasks(documents)
    streams = [("partition", Rows(_DOCUMENTS, _DOC_ID)), ("search", Rows(_FOUND, FOUND))]
    with job.graph("search", max(len(tasks), count)):
        if options.rarity:
            near = plan_tasks(documents, (Side.POSITIVE,), 1, options.max_index_rows, options.block_days, 0)
            job.map_shards("contrast", functools.partial(_contrast, options, count), near, accounted=False)
            received = [("contrast", Rows(_CONTRASTS, CONTRAST))]
            job.map_rows("contrasts", _write_contrasts, [None] * count, received, accounted=False)
        if options.rarity or Space.LEARNED in folders:
            sample = functools.partial(write_sample, documents=sum(documents.values()))
            job.map_shards("sample", sample, shards, accounted=False)
            job.map_shards("far pairs", write_far_pairs, [list(folders)], accounted=False)
        job.map_shards("search", functools.partial(_search, options, count), tasks, accounted=False)
        job.map_rows("merge", functools.partial(_merge, options), [None] * count, streams)


def _partition(block_days: int, shard_count: int, shard: Shard, paths: Mapping[Space, str]) -> None:
    """Cuts the vectors of one shard into blocks of days; ``paths`` has its path in each space."""
    rows = read_vectors(paths)
    shard.read(len(rows))
    write_blocks(shard.workspace, shard.index, rows, block_days)
    send(shard, _DOCUMENTS, rows.ids, shard_numbers(rows.ids, shard_count))
    writer = shard.records("_blocks", NamedCounts)
    for block, count in zip(*np.unique(rows.days // block_days, return_counts=True), strict=True):
        writer.write(NamedCounts(str(block), (int(count),)))
    shard.written(len(rows))


def _documents_by_block(workspace: str) -> dict[int, int]:
    documents: collections.Counter[int] = collections.Counter()
    for record in parquet.read_stream(f"{workspace}/_blocks", NamedCounts):
        documents[int(record.name)] += record.counts[0]
    return dict(documents)


def _search(options: NeighborsOptions, shard_count: int, shard: Shard, task: Task) -> None:
    """Sends the best pairs of one task to the shards of their queries."""
    parts = run_task(
        task, options.plan(), shard.workspace, options.block_days, lambda engine: shard.tally(f"{engine}_indexes")
    )
    for chunk, found in enumerate(_gathered(parts)):
        shard.tally(f"{task.side.name.lower()}_pairs_found", len(found))
        send(shard, _FOUND, found, shard_numbers(found["query"], shard_count), chunk)


def _contrast(options: NeighborsOptions, shard_count: int, shard: Shard, task: Task) -> None:
    """Sends the contrasts of the documents of a block to their shards."""
    (block,), size = task.blocks, options.block_days
    first, last = block * size, (block + 1) * size - 1
    margin = -(-MOST_DAYS // size)
    rows = read_blocks(
        shard.workspace, range(block - margin, block + margin + 1), (first - MOST_DAYS, last + MOST_DAYS)
    )
    found = np.concatenate([np.zeros(0, CONTRAST), *contrasts(rows, first, last, task.part, task.parts)])
    send(shard, _CONTRASTS, found, shard_numbers(found["id"], shard_count))


def _write_contrasts(shard: Shard, received: Received) -> None:
    write_part(shard, CONTRASTS, received.rows[_CONTRASTS])


def _gathered(parts: Iterable[Found]) -> Iterator[Found]:
    """Yields the same pairs in fewer parts, because every part makes a block for every receiver."""
    waiting: list[Found] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= _PAIRS_SENT_TOGETHER:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _merge(options: NeighborsOptions, shard: Shard, received: Received) -> None:
    """Writes the neighbors of every document of a shard, one row per pair and space in which both have a vector."""
    documents = np.sort(received.rows[_DOCUMENTS])
    pairs = keep_best(received.rows[_FOUND], options.plan().counts)
    _, first = np.unique(pairs[["query", "neighbor"]], return_index=True)
    pairs = pairs[first]
    alone = documents[~np.isin(documents, pairs["query"])]
    shard.read(len(documents))
    shard.written(len(documents) - len(alone))
    for document in alone.tolist():
        shard.reject(doc_id_of(document), Rejection.NO_NEIGHBOR, "no document on the days searched shares a space")
    writer = shard.records("neighbors", Neighbor)
    for start in range(0, len(pairs), _PAIRS_WRITTEN_TOGETHER):
        part = pairs[start : start + _PAIRS_WRITTEN_TOGETHER]
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
            if pairs_known or space != Space.LEARNED:
                shard.tally(f"{space.value}_neighbors", pairs_known)


JOB = Job(
    name="neighbors",
    summary="nearest documents in each auxiliary space, by date",
    example="newsembed neighbors --vectors work/vectors --output work/neighbors",
    inputs=(InputSpec("vectors", "folder that `newsembed vectors` wrote"),),
    options=NeighborsOptions,
    run=run,
)
