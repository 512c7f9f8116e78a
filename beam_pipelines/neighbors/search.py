"""Search over blocks of days: positives near the day of the query, negatives far from it, or all days."""

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.arrays import highest, read_arrays, unit_rows, write_arrays
from ...formats.command_line import Options, option
from ...formats.records import Space
from ..arrays import Array, Floats, Ids, changes, doc_numbers_of, slices
from .index import Engine, Index, build_index, choose_engine, highest_of_parts, queries_at_once


@dataclasses.dataclass(frozen=True)
class Rows:
    """Documents with their vectors, sorted by id.

    Attributes:
      ids: uint64 ``[N]``, the document ids as numbers.
      days: int32 ``[N]``, byline dates as days since 1970-01-01.
      vectors: for every space float32 ``[N, D]`` of unit length, zero where a document has no vector.
    """

    ids: Ids
    days: Array
    vectors: Mapping[Space, Floats]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Any) -> Self:
        """Returns the chosen documents, given as a mask, a slice or sorted row numbers."""
        vectors = {space: values[chosen] for space, values in self.vectors.items()}
        return dataclasses.replace(self, ids=self.ids[chosen], days=self.days[chosen], vectors=vectors)

    @functools.cached_property
    def present(self) -> Mapping[Space, Array]:
        """Flags of the documents that have a vector, by space: bool ``[N]``."""
        return {space: np.asarray(values.any(axis=1)) for space, values in self.vectors.items()}

    def having(self, space: Space) -> Any:
        """Returns the row numbers of the documents that have a vector in a space."""
        return np.flatnonzero(self.present[space])

    def vectors_of(self, space: Space, numbers: Any) -> Floats:
        """Returns the vectors of sorted, distinct row numbers; those of all documents are not copied."""
        values = self.vectors[space]
        return values if len(numbers) == len(values) else values[numbers]


def read_vectors(paths: Mapping[Space, str]) -> Rows:
    """Reads one shard of the streams of the spaces; ``paths`` has its path in each. Other spaces have no vectors."""
    columns = {space: _read_columns(path) for space, path in paths.items()}
    ids = np.unique(np.concatenate([numbers for numbers, _, _ in columns.values()]))
    days = np.zeros(len(ids), np.int32)
    vectors = {space: np.zeros((len(ids), 0), np.float32) for space in Space}
    for space, (numbers, dates, values) in columns.items():
        places = np.searchsorted(ids, numbers)
        days[places] = dates
        vectors[space] = np.zeros((len(ids), values.shape[1]), np.float32)
        vectors[space][places] = unit_rows(values)
    return Rows(ids, days, vectors)


def _read_columns(path: str) -> tuple[Ids, Array, Floats]:
    """Returns the ids, days and vectors of a stream."""
    parts: list[tuple[Array, ...]] = []
    for batch in parquet.read_batches(path, ["doc_id", "byline_date", "values"]):
        values = batch.column("values").flatten().to_numpy(zero_copy_only=False)
        days = batch.column("byline_date").cast("int32").to_numpy()
        parts.append((doc_numbers_of(batch.column("doc_id")), days, values.reshape(len(batch), -1).astype(np.float32)))
    nothing = (np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros((0, 0), np.float32))
    ids, days, vectors = map(np.concatenate, zip(*parts, strict=True)) if parts else nothing
    return ids, days, vectors


def write_blocks(workspace: str, shard: int, rows: Rows, block_days: int) -> None:
    """Writes the documents of one source shard, one file per block of days."""
    blocks = rows.days // block_days
    for block in np.unique(blocks).tolist():
        part = rows.take(blocks == block)
        vectors = {space.value: values for space, values in part.vectors.items()}
        path = f"{workspace}/_rows/block={block:06d}/part-{shard:05d}.npz"
        write_arrays(path, {"ids": part.ids, "days": part.days, **vectors})


def read_blocks(workspace: str, blocks: Iterable[int], days: tuple[int, int] | None = None) -> Rows:
    """Returns the documents of the given blocks, sorted by id; with ``days`` only from its first to its last day."""
    parts = []
    for block in blocks:
        for path in files.list_files(f"_rows/block={block:06d}/part-*.npz", workspace):
            arrays = read_arrays(path)
            part = Rows(arrays["ids"], arrays["days"], {space: arrays[space.value] for space in Space})
            if days is not None:
                wanted = (part.days >= days[0]) & (part.days <= days[1])
                part = part if wanted.all() else part.take(wanted)
            parts.append(part)
    return concatenate(parts)


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Returns the documents of several parts, sorted by id; a space that a part lacks (width 0) becomes zeros."""
    nothing = Rows(np.zeros(0, np.uint64), np.zeros(0, np.int32), dict.fromkeys(Space, np.zeros((0, 0), np.float32)))
    parts = [nothing, *parts]
    ids = np.concatenate([part.ids for part in parts])
    order = np.argsort(ids, kind="stable")
    places = np.split(np.argsort(order), np.cumsum([len(part) for part in parts])[:-1])
    vectors: dict[Space, Floats] = {}
    for space in Space:
        width = max(part.vectors[space].shape[1] for part in parts)
        vectors[space] = np.zeros((len(ids), width), np.float32)
        for part, into in zip(parts, places, strict=True):
            if part.vectors[space].shape[1]:
                vectors[space][into] = part.vectors[space]
    return Rows(ids[order], np.concatenate([part.days for part in parts])[order], vectors)


SPACES: Final = tuple(Space)
_EXACT_BELOW: Final = 4_000  # rows of an index
_QUERIES_AT_ONCE: Final = 2_048  # bounds the pairs in memory
_PAIRS_AT_ONCE: Final = 1_024  # fits into a processor's cache
_BLOCKS_TOGETHER: Final = 2  # adjacent blocks in one search for negatives, whose results are merged at once


class DateMode(enum.StrEnum):
    """The days that are searched."""

    WINDOWED = "windowed"
    GLOBAL = "global"
    BOTH = "both"


class Side(enum.IntEnum):
    """The days among which a pair was searched."""

    POSITIVE = 0  # days near the query's day
    NEGATIVE = 1  # days far from the query's day
    GLOBAL = 2  # all days


# Similarities are cosines in every space, NaN if a document has no vector there; ``space`` is the space searched.
_PAIR: Final = {"query": "<u8", "neighbor": "<u8", "side": "u1", "space": "u1", "gap": "<i4"}
FOUND: Final = np.dtype([*_PAIR.items(), ("similarity", "<f4", (len(SPACES),))])
Pairs = np.ndarray[Any, np.dtype[Any]]  # of dtype FOUND


@dataclasses.dataclass(frozen=True)
class NeighborsOptions(Options):
    """Options of ``neighbors``."""

    dates: DateMode = option(DateMode.WINDOWED, "days to search")
    positives: int = option(20, "neighbors per query and space within positive_days", ge=1)
    negatives: int = option(10, "neighbors per query and space from negative_days on", ge=1)
    neighbors: int = option(50, "neighbors per query and space of a global search", ge=1)
    positive_days: int = option(1, "largest day gap of a positive", ge=0)
    negative_days: int = option(365, "smallest day gap of a negative")
    engine: Engine = option(Engine.AUTO, "auto: exact for small indexes, else ScaNN, else faiss")
    block_days: int = option(91, "days of one partition", ge=1)
    max_index_rows: int = option(100_000, "rows of an index, and queries; more are split by hash", ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive_days >= self.negative_days:
            problem = f"got {self.positive_days} and {self.negative_days} days"
            remedy = "positive_days must be smaller than negative_days"
            raise InputError(problem, field="--positive_days, --negative_days", remedy=remedy)

    @property
    def counts(self) -> Mapping[Side, int]:
        """Neighbors to keep for each query and space, by side."""
        return {Side.POSITIVE: self.positives, Side.NEGATIVE: self.negatives, Side.GLOBAL: self.neighbors}


class Task(NamedTuple):
    """The search of one worker: the queries of some blocks against the candidates of some blocks.

    Attributes:
      side: the days to search.
      blocks: blocks of the candidates.
      query_blocks: blocks of the queries; for positives the same as ``blocks``.
      queries: number of documents in ``query_blocks``.
      part: the hash part: candidates with ``id % parts == part``, for positives queries.
      parts: number of hash parts.
    """

    side: Side
    blocks: tuple[int, ...]
    query_blocks: tuple[int, ...]
    queries: int
    part: int = 0
    parts: int = 1


def plan_tasks(documents: Mapping[int, int], options: NeighborsOptions) -> list[Task]:
    """Cuts the work into tasks, the longest first, so that workers finish at about the same time.

    Args:
      documents: number of documents by block.
      options: of the job.
    """
    blocks, tasks = sorted(documents), list[Task]()

    def add(side: Side, rows: int, own: Sequence[int], others: Sequence[int]) -> None:
        queries, parts = sum(documents[block] for block in others), -(-rows // options.max_index_rows)
        tasks.extend(Task(side, tuple(own), tuple(others), queries, part, parts) for part in range(parts) if others)

    if options.dates != DateMode.GLOBAL:
        for block in blocks:
            add(Side.POSITIVE, documents[block], [block], [block])
        for first in sorted({block // _BLOCKS_TOGETHER for block in blocks}):
            group = [block for block in blocks if block // _BLOCKS_TOGETHER == first]
            gaps = {block: max(abs(block - other) for other in group) + 1 for block in blocks}
            far = [block for block in blocks if gaps[block] * options.block_days > options.negative_days]
            add(Side.NEGATIVE, max(documents[block] for block in group), group, far)
    if options.dates != DateMode.WINDOWED:
        add(Side.GLOBAL, sum(documents.values()), blocks, blocks)

    def cost(task: Task) -> float:
        """The number of pairs that a task compares, which is roughly proportional to its time."""
        candidates = sum(documents[block] for block in task.blocks) / task.parts
        return task.queries * candidates / (options.block_days if task.side is Side.POSITIVE else 1)

    return sorted(tasks, key=cost, reverse=True)


def run_task(task: Task, options: NeighborsOptions, workspace: str, note: Callable[[str], None]) -> Iterator[Pairs]:
    """Runs one task over the blocks in ``workspace``.

    Args:
      task: what to search.
      options: of the job.
      workspace: the job's temporary folder.
      note: called with the name of the engine of each large index.

    Yields:
      The best pairs of some of its queries at a time.
    """
    if task.side is Side.POSITIVE:
        yield from _search_near(task, options, workspace)
        return
    searches = []
    for blocks in [[block] for block in task.blocks] if task.side is Side.NEGATIVE else [task.blocks]:
        candidates = read_blocks(workspace, blocks)
        if task.parts > 1:
            candidates = candidates.take(candidates.ids % np.uint64(task.parts) == task.part)
        searches.append(_FarSearch(candidates, task, options, note))
    for block in task.query_blocks:
        queries = read_blocks(workspace, [block])
        for part in slices(len(queries), _QUERIES_AT_ONCE):
            yield _search_far(searches, queries.take(part), task.side, options)


def _search_near(task: Task, options: NeighborsOptions, workspace: str) -> Iterator[Pairs]:
    """Yields the positives of the documents of a block, one day at a time."""
    (block,), size, near = task.blocks, options.block_days, options.positive_days
    first, last, margin = block * size, (block + 1) * size - 1, -(-near // size)
    rows = read_blocks(workspace, range(block - margin, block + margin + 1), (first - near, last + near))
    # Several workers share a block with very many documents.
    asked = (rows.days >= first) & (rows.days <= last) & (rows.ids % np.uint64(task.parts) == task.part)
    for day in np.unique(rows.days[asked]):
        queries, candidates = rows.take(asked & (rows.days == day)), rows.take(np.abs(rows.days - day) <= near)
        found = [_search_day(queries, candidates, space, options) for space in Space]
        yield keep_best(np.concatenate(found), options.counts)


def _search_day(queries: Rows, candidates: Rows, space: Space, options: NeighborsOptions) -> Pairs:
    asked, present = queries.having(space), candidates.having(space)
    if not len(asked) or not len(present):
        return np.zeros(0, FOUND)
    index = build_index(candidates.vectors_of(space, present), options.engine, _EXACT_BELOW, len(asked))
    # One more than wanted, because a document finds itself.
    hits, _ = index.search(queries.vectors_of(space, asked), options.positives + 1)
    valid = hits.ravel() >= 0
    numbers = np.repeat(asked, hits.shape[1])[valid], present[hits.ravel()[valid]]
    return _make_pairs(queries, candidates, *numbers, Side.POSITIVE, space)


class _FarSearch:
    """Searches one set of candidates for many batches of queries; indexes are built once."""

    def __init__(self, candidates: Rows, task: Task, options: NeighborsOptions, note: Callable[[str], None]) -> None:
        self.candidates = candidates
        self._task, self._options = task, options
        self._present = {space: present for space in Space if len(present := candidates.having(space))}
        self._indexes: dict[Space, Index] = {}
        for present in self._present.values():
            note(choose_engine(options.engine, len(present), _EXACT_BELOW, task.queries).value)

    def search(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """Returns the nearest candidates in one space.

        Args:
          queries: any documents.
          asked: row numbers of the documents to search for, int ``[A]``; all have a vector in the space.
          space: the space to search.

        Returns:
          Row numbers of candidates, int ``[A, K]``, and their cosines, float32 ``[A, K]``, -inf where there are fewer.
        """
        nothing = np.zeros((len(asked), 0), np.int64), np.zeros((len(asked), 0), np.float32)
        if space not in self._present or not len(asked):
            return nothing
        if self._task.side is Side.NEGATIVE:
            nearest, farthest = _gap_range(queries.days, self.candidates.days)
            if farthest < self._options.negative_days:
                return nothing
            if nearest < self._options.negative_days:
                return self._by_mask(queries, asked, space)
        return self._by_index(queries, asked, space)

    def _by_index(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        present, options = self._present[space], self._options
        if space not in self._indexes:
            vectors = self.candidates.vectors_of(space, present)
            self._indexes[space] = build_index(vectors, options.engine, _EXACT_BELOW, self._task.queries)
        # One more than wanted, because in a search of all days a document finds itself.
        wanted = queries.vectors_of(space, asked), options.counts[self._task.side] + 1
        hits, similarities = self._indexes[space].search(*wanted)
        return present[hits], np.where(hits >= 0, similarities, -np.inf)

    def _by_mask(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """Searches exactly, for queries that are far from only some of the candidates."""
        present = self._present[space]
        count, step = min(self._options.negatives, len(present)), queries_at_once(len(present))
        days, day_of = np.unique(queries.days[asked], return_inverse=True)
        is_far = np.abs(days[:, None] - self.candidates.days[present]) >= self._options.negative_days
        penalties = np.where(is_far, 0, -np.inf).astype(np.float32)
        vectors = self.candidates.vectors_of(space, present)
        parts = slices(len(asked), step)
        scores = (queries.vectors[space][asked[part]] @ vectors.T + penalties[day_of[part]] for part in parts)
        rows, values = highest_of_parts(scores, count)
        return present[rows], values


def _search_far(searches: Sequence[_FarSearch], queries: Rows, side: Side, options: NeighborsOptions) -> Pairs:
    """Returns the best pairs of all spaces over several sets of candidates.

    Similarities in the other spaces are computed only for these pairs.
    """
    found = [np.zeros(0, FOUND)]
    for space in Space:
        asked = queries.having(space)
        parts = [search.search(queries, asked, space) for search in searches]
        similarities = np.concatenate([values for _, values in parts], axis=1)
        if not similarities.size:
            continue
        columns, best = highest(similarities, min(options.counts[side] + 1, similarities.shape[1]))
        numbers = np.take_along_axis(np.concatenate([rows for rows, _ in parts], axis=1), columns, axis=1)
        owners = np.repeat(np.arange(len(searches)), [rows.shape[1] for rows, _ in parts])[columns]
        for owner, search in enumerate(searches):
            places, slots = np.nonzero((owners == owner) & np.isfinite(best))
            found.append(_make_pairs(queries, search.candidates, asked[places], numbers[places, slots], side, space))
    return keep_best(np.concatenate(found), options.counts)


def _gap_range(left: Any, right: Any) -> tuple[int, int]:
    """Returns the smallest and the largest distance in days between two sets of days."""
    low, high = int(right.min()) - int(left.max()), int(right.max()) - int(left.min())
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _make_pairs(queries: Rows, candidates: Rows, left: Any, right: Any, side: Side, space: Space) -> Pairs:
    """Returns pairs of distinct documents with exact similarities in all spaces.

    Args:
      queries: documents that were searched for.
      candidates: documents that were searched.
      left: row in ``queries`` of each pair, int ``[P]``.
      right: row in ``candidates`` of each pair, int ``[P]``.
      side: the days that were searched.
      space: the space that was searched.
    """
    found = np.zeros(len(left), FOUND)
    found["query"], found["neighbor"] = queries.ids[left], candidates.ids[right]
    found["side"], found["space"] = side, SPACES.index(space)
    found["gap"] = candidates.days[right] - queries.days[left]
    found["similarity"] = np.nan
    for column, other in enumerate(SPACES):
        known = np.flatnonzero(queries.present[other][left] & candidates.present[other][right])
        for part in (known[one] for one in slices(len(known), _PAIRS_AT_ONCE)):
            both = queries.vectors[other][left[part]], candidates.vectors[other][right[part]]
            found["similarity"][part, column] = np.clip(np.einsum("pd,pd->p", *both), -1, 1)
    return found[found["query"] != found["neighbor"]]


def keep_best(found: Pairs, counts: Mapping[Side, int]) -> Pairs:
    """Returns the best pairs of each (query, side, space) by similarity, ties by id; sorted, without repeats.

    It may be applied to parts and then to their union in any order; the result is the same as for all pairs at once.

    Args:
      found: pairs, dtype :data:`FOUND`.
      counts: number of pairs to keep by side; 1 for a side that is not given.
    """
    similarity = found["similarity"][np.arange(len(found)), found["space"]]
    kinds = found["side"] * len(SPACES) + found["space"]
    order = np.lexsort((found["neighbor"], -similarity, kinds, found["query"]))
    # Columns are compared one by one, and rows are copied once: a row is large.
    query, kind, neighbor = found["query"][order], kinds[order], found["neighbor"][order]
    starts, is_first = changes(query, kind), changes(query, kind, neighbor)
    number = np.cumsum(is_first)
    rank = number - number[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    limit = np.array([counts.get(side, 1) for side in Side])
    return found[order[is_first & (rank < limit[kind // len(SPACES)])]]
