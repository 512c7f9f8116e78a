"""Search over blocks of days: positives near the day of the query, negatives far from it, or all days."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...formats.records import Space
from ..entities.tables import Floats
from .found import FOUND, Found, Side, keep_best, make_found
from .index import Engine, Index, build_index, choose_engine, highest, queries_at_once
from .rows import Rows, read_blocks

_QUERIES_AT_ONCE = 2_048  # bounds the pairs in memory


@dataclasses.dataclass(frozen=True)
class Plan:
    """Settings of a search.

    Attributes:
      counts: neighbors to keep for each query and space, by side.
      positive_days: largest day gap of a positive.
      negative_days: smallest day gap of a negative.
      engine: engine of large indexes.
      exact_below: rows of an index below which search is exact.
    """

    counts: Mapping[Side, int]
    positive_days: int
    negative_days: int
    engine: Engine
    exact_below: int


@dataclasses.dataclass(frozen=True)
class Task:
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


def search_near(rows: Rows, first_day: int, last_day: int, plan: Plan, part: int, parts: int) -> Iterator[Found]:
    """Yields the positives of the documents from ``first_day`` to ``last_day`` (inclusive), one day at a time.

    Args:
      rows: documents of these days and of ``plan.positive_days`` days before and after.
      first_day: first day of the queries.
      last_day: last day of the queries.
      plan: settings of the search.
      part: only of the documents with ``id % parts == part``: several workers share a block with very many documents.
      parts: number of parts.
    """
    asked = (rows.days >= first_day) & (rows.days <= last_day) & (rows.ids % np.uint64(parts) == part)
    for day in np.unique(rows.days[asked]):
        queries = rows.take(asked & (rows.days == day))
        candidates = rows.take(np.abs(rows.days - day) <= plan.positive_days)
        yield keep_best(
            np.concatenate([_search_all(queries, candidates, space, Side.POSITIVE, plan) for space in Space]),
            plan.counts,
        )


def _search_all(queries: Rows, candidates: Rows, space: Space, side: Side, plan: Plan) -> Found:
    asked, present = queries.having(space), candidates.having(space)
    if not len(asked) or not len(present):
        return np.zeros(0, FOUND)
    index = build_index(candidates.vectors_of(space, present), plan.engine, plan.exact_below, len(asked))
    # One more than wanted, because a document finds itself.
    hits, _ = index.search(queries.vectors_of(space, asked), plan.counts[side] + 1)
    valid = hits.ravel() >= 0
    return make_found(
        queries, candidates, np.repeat(asked, hits.shape[1])[valid], present[hits.ravel()[valid]], side, space
    )


class FarSearch:
    """Searches one set of candidates for many batches of queries; indexes are built once.

    Args:
      candidates: documents to search.
      plan: settings of the search.
      side: NEGATIVE to search only documents far from the query's day, GLOBAL to search all.
      queries: number of queries to come, for the choice of the engine.
    """

    def __init__(self, candidates: Rows, plan: Plan, side: Side, queries: int) -> None:
        self.candidates = candidates
        self._queries = queries
        self._plan = plan
        self._side = side
        self._present = {space: present for space in Space if len(present := candidates.having(space))}
        self._indexes: dict[Space, Index] = {}

    def engines(self) -> Iterator[Engine]:
        """Yields the engine of every index."""
        for present in self._present.values():
            yield choose_engine(self._plan.engine, len(present), self._plan.exact_below, self._queries)

    def search(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """Returns the nearest candidates in one space.

        Args:
          queries: any documents.
          asked: row numbers of the documents to search for, int ``[A]``; all have a vector in the space.
          space: the space to search.

        Returns:
          Row numbers of candidates, int ``[A, K]``, and their cosines, float32 ``[A, K]``, -inf where there are fewer.
        """
        if space not in self._present or not len(asked):
            return _nothing(len(asked))
        nearest, farthest = _gap_range(queries.days, self.candidates.days)
        if self._side is Side.NEGATIVE and farthest < self._plan.negative_days:
            return _nothing(len(asked))
        if self._side is Side.GLOBAL or nearest >= self._plan.negative_days:
            return self._by_index(queries, asked, space)
        return self._by_mask(queries, asked, space)

    def _by_index(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        present = self._present[space]
        if space not in self._indexes:
            vectors = self.candidates.vectors_of(space, present)
            self._indexes[space] = build_index(vectors, self._plan.engine, self._plan.exact_below, self._queries)
        # One more than wanted, because in a search of all days a document finds itself.
        hits, similarities = self._indexes[space].search(
            queries.vectors_of(space, asked), self._plan.counts[self._side] + 1
        )
        return present[hits], np.where(hits >= 0, similarities, -np.inf)

    def _by_mask(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """Searches exactly, for queries that are far from only some of the candidates."""
        present = self._present[space]
        count = min(self._plan.counts[self._side], len(present))
        step = queries_at_once(len(present))
        days, day_of = np.unique(queries.days[asked], return_inverse=True)
        is_far = np.abs(days[:, None] - self.candidates.days[present]) >= self._plan.negative_days
        penalties = np.where(is_far, 0, -np.inf).astype(np.float32)
        vectors = self.candidates.vectors_of(space, present)
        found = []
        for start in range(0, len(asked), step):
            scores = queries.vectors[space][asked[start : start + step]] @ vectors.T
            scores += penalties[day_of[start : start + step]]
            found.append(highest(scores, count))
        return present[np.concatenate([rows for rows, _ in found])], np.concatenate([values for _, values in found])


def _nothing(queries: int) -> tuple[Any, Floats]:
    return np.zeros((queries, 0), np.int64), np.zeros((queries, 0), np.float32)


def search_far(searches: Sequence[FarSearch], queries: Rows, side: Side, plan: Plan) -> Found:
    """Returns the best pairs of all spaces over several sets of candidates.

    Similarities in the other spaces are computed only for these pairs.

    Args:
      searches: one search for each set of candidates.
      queries: any documents.
      side: the days to search.
      plan: settings of the search.
    """
    found = [np.zeros(0, FOUND)]
    for space in Space:
        asked = queries.having(space)
        parts = [search.search(queries, asked, space) for search in searches]
        similarities = np.concatenate([values for _, values in parts], axis=1)
        if not similarities.size:
            continue
        columns, best = highest(similarities, min(plan.counts[side] + 1, similarities.shape[1]))
        numbers = np.take_along_axis(np.concatenate([rows for rows, _ in parts], axis=1), columns, axis=1)
        owners = np.repeat(np.arange(len(searches)), [rows.shape[1] for rows, _ in parts])[columns]
        for owner, search in enumerate(searches):
            places, slots = np.nonzero((owners == owner) & np.isfinite(best))
            found.append(make_found(queries, search.candidates, asked[places], numbers[places, slots], side, space))
    return keep_best(np.concatenate(found), plan.counts)


def _gap_range(left: Any, right: Any) -> tuple[int, int]:
    """Returns the smallest and the largest distance in days between two sets of days."""
    low, high = int(right.min()) - int(left.max()), int(right.max()) - int(left.min())
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def run_task(task: Task, plan: Plan, workspace: str, block_days: int, note: Callable[[str], None]) -> Iterator[Found]:
    """Runs one task over the blocks in ``workspace``.

    Args:
      task: what to search.
      plan: settings of the search.
      workspace: the job's temporary folder.
      block_days: days of a block.
      note: called with the name of the engine of each index.

    Yields:
      The best pairs of some of its queries at a time.
    """
    if task.side is Side.POSITIVE:
        margin = -(-plan.positive_days // block_days)
        first, last = min(task.blocks), max(task.blocks)
        first_day, last_day = first * block_days, (last + 1) * block_days - 1
        days = (first_day - plan.positive_days, last_day + plan.positive_days)
        rows = read_blocks(workspace, range(first - margin, last + margin + 1), days)
        yield from search_near(rows, first_day, last_day, plan, task.part, task.parts)
        return
    searches = []
    for block in task.blocks if task.side is Side.NEGATIVE else [None]:
        candidates = read_blocks(workspace, task.blocks if block is None else [block])
        if task.parts > 1:
            candidates = candidates.take(candidates.ids % np.uint64(task.parts) == task.part)
        searches.append(FarSearch(candidates, plan, task.side, task.queries))
        for engine in searches[-1].engines():
            note(engine.value)
    for query_block in task.query_blocks:
        queries = read_blocks(workspace, [query_block])
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            part = queries.take(slice(start, start + _QUERIES_AT_ONCE))
            yield search_far(searches, part, task.side, plan)


def plan_tasks(
    documents: Mapping[int, int],
    sides: Sequence[Side],
    blocks_together: int,
    most_rows: int,
    block_days: int,
    negative_days: int,
) -> list[Task]:
    """Cuts the work into tasks, the longest first, so that workers finish at about the same time.

    Args:
      documents: number of documents by block.
      sides: the days to search.
      blocks_together: number of adjacent blocks in one task, whose results are merged at once.
      most_rows: largest number of rows of one index, and of queries near them; larger sets are split by hash.
      block_days: days of a block.
      negative_days: smallest day gap of a negative.
    """
    blocks = sorted(documents)
    groups: dict[int, list[int]] = {}
    for block in blocks:
        groups.setdefault(block // blocks_together, []).append(block)
    tasks = []
    for block in blocks if Side.POSITIVE in sides else ():
        parts = -(-documents[block] // most_rows)
        tasks += [Task(Side.POSITIVE, (block,), (block,), documents[block], part, parts) for part in range(parts)]
    if Side.NEGATIVE in sides:
        for group in groups.values():
            far = tuple(
                block
                for block in blocks
                if any((abs(block - other) + 1) * block_days > negative_days for other in group)
            )
            parts = -(-max(documents[block] for block in group) // most_rows)
            queries = sum(documents[block] for block in far)
            tasks += [Task(Side.NEGATIVE, tuple(group), far, queries, part, parts) for part in range(parts) if far]
    if Side.GLOBAL in sides and blocks:
        rows = sum(documents.values())
        parts = -(-rows // most_rows)
        tasks += [Task(Side.GLOBAL, tuple(blocks), tuple(blocks), rows, part, parts) for part in range(parts)]
    return sorted(tasks, key=lambda task: -_scores(task, documents, block_days))


def _scores(task: Task, documents: Mapping[int, int], block_days: int) -> float:
    """Returns the number of pairs that a task compares, which is roughly proportional to its time."""
    candidates = sum(documents[block] for block in task.blocks) / task.parts
    return task.queries * candidates / (block_days if task.side is Side.POSITIVE else 1)
