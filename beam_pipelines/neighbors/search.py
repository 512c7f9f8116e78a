"""Searching blocks of days: positives near the query's day, negatives far from it, or all days at once."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...formats.records import Space
from ..entities.tables import Floats
from .found import FOUND, Found, Side, keep_best, make_found
from .index import Engine, Index, build_index, choose_engine, highest
from .rows import Rows, read_blocks

_QUERIES_AT_ONCE = 8_192  # whose pairs are in memory at a time
_PAIRS_AT_ONCE = 8_000_000  # scores in memory at a time, 32 MB


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to search.

    Attributes:
      counts: neighbors to keep for each query, space and side.
      positive_days: largest day gap of a positive.
      negative_days: smallest day gap of a negative.
      engine: who searches large indexes.
      exact_below: rows below which search is exact.
    """

    counts: Mapping[Side, int]
    positive_days: int
    negative_days: int
    engine: Engine
    exact_below: int


@dataclasses.dataclass(frozen=True)
class Task:
    """One worker's search: the queries of some blocks against the candidates of some (for positives, the same).

    Attributes:
      side: what to search for.
      blocks: blocks of the candidates.
      query_blocks: blocks of the queries.
      queries: number of documents in ``query_blocks``.
      part: of ``parts`` hash shards, the candidates with ``id % parts == part``.
    """

    side: Side
    blocks: tuple[int, ...]
    query_blocks: tuple[int, ...]
    queries: int
    part: int = 0
    parts: int = 1


def search_near(rows: Rows, first_day: int, last_day: int, plan: Plan) -> Iterator[Found]:
    """Positives of the documents from ``first_day`` to ``last_day``, each among those at most ``plan.positive_days`` away; a day at a time."""
    for day in np.unique(rows.days[(rows.days >= first_day) & (rows.days <= last_day)]):
        queries = rows.take(rows.days == day)
        candidates = rows.take(np.abs(rows.days - day) <= plan.positive_days)
        yield keep_best(
            np.concatenate([_search_all(queries, candidates, space, Side.POSITIVE, plan) for space in Space]),
            plan.counts,
        )


def _search_all(queries: Rows, candidates: Rows, space: Space, side: Side, plan: Plan) -> Found:
    asked, there = queries.having(space), candidates.having(space)
    if not len(asked) or not len(there):
        return np.zeros(0, FOUND)
    index = build_index(candidates.vectors[space][there], plan.engine, plan.exact_below, len(asked))
    # One more than wanted, since a document finds itself.
    hits, _ = index.search(queries.vectors[space][asked], plan.counts[side] + 1)
    valid = hits.ravel() >= 0
    return make_found(
        queries, candidates, np.repeat(asked, hits.shape[1])[valid], there[hits.ravel()[valid]], side, space
    )


class FarSearch:
    """Searches one set of candidates again and again; indexes are built once.

    Args:
      candidates: documents of one block.
      plan: what to search.
      side: NEGATIVE for documents far from the query's day only, GLOBAL for all.
      queries: how many there will be, for the choice of the engine.
    """

    def __init__(self, candidates: Rows, plan: Plan, side: Side, queries: int) -> None:
        self.candidates = candidates
        self._queries = queries
        self._plan = plan
        self._side = side
        self._there = {space: there for space in Space if len(there := candidates.having(space))}
        self._indexes: dict[Space, Index] = {}

    def engines(self) -> Iterator[Engine]:
        """The engine of every index."""
        for there in self._there.values():
            yield choose_engine(self._plan.engine, len(there), self._plan.exact_below, self._queries)

    def search(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """The nearest candidates in one space.

        Args:
          queries: any documents.
          asked: numbers of those to search for, int ``[A]``; all have a vector in the space.
          space: which one.

        Returns:
          Numbers of candidates, int ``[A, K]``, and their cosines, float32 ``[A, K]``, -inf where there are fewer.
        """
        if space not in self._there or not len(asked):
            return _nothing(len(asked))
        nearest, farthest = _gap_range(queries.days, self.candidates.days)
        if self._side is Side.NEGATIVE and farthest < self._plan.negative_days:
            return _nothing(len(asked))
        if self._side is Side.GLOBAL or nearest >= self._plan.negative_days:
            return self._by_index(queries, asked, space)
        return self._by_mask(queries, asked, space)

    def _by_index(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        there = self._there[space]
        if space not in self._indexes:
            vectors = self.candidates.vectors[space][there]
            self._indexes[space] = build_index(vectors, self._plan.engine, self._plan.exact_below, self._queries)
        # One more than wanted, since in a search of all days a document finds itself.
        hits, similarities = self._indexes[space].search(
            queries.vectors[space][asked], self._plan.counts[self._side] + 1
        )
        return there[hits], np.where(hits >= 0, similarities, -np.inf)

    def _by_mask(self, queries: Rows, asked: Any, space: Space) -> tuple[Any, Floats]:
        """Exact search for queries that are far from some candidates only."""
        there = self._there[space]
        count = min(self._plan.counts[self._side], len(there))
        step = max(1, _PAIRS_AT_ONCE // len(there))
        days, day_of = np.unique(queries.days[asked], return_inverse=True)
        is_far = np.abs(days[:, None] - self.candidates.days[there]) >= self._plan.negative_days
        penalties = np.where(is_far, 0, -np.inf).astype(np.float32)
        found = []
        for start in range(0, len(asked), step):
            scores = queries.vectors[space][asked[start : start + step]] @ self.candidates.vectors[space][there].T
            scores += penalties[day_of[start : start + step]]
            found.append(highest(scores, count))
        return there[np.concatenate([rows for rows, _ in found])], np.concatenate([values for _, values in found])


def _nothing(queries: int) -> tuple[Any, Floats]:
    return np.zeros((queries, 0), np.int64), np.zeros((queries, 0), np.float32)


def search_far(searches: Sequence[FarSearch], queries: Rows, side: Side, plan: Plan) -> Found:
    """The best pairs of all spaces over several sets of candidates. Only these get their similarities in the other spaces."""
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
    """Smallest and largest distance in days between two ranges of days."""
    low, high = int(right.min()) - int(left.max()), int(right.max()) - int(left.min())
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def run_task(task: Task, plan: Plan, workspace: str, block_days: int, note: Callable[[str], None]) -> Iterator[Found]:
    """Runs one task over the blocks in ``workspace``; ``note`` gets the name of each engine used.

    Yields:
      The best pairs of some of its queries at a time.
    """
    if task.side is Side.POSITIVE:
        margin = -(-plan.positive_days // block_days)
        first, last = min(task.blocks), max(task.blocks)
        rows = read_blocks(workspace, range(first - margin, last + margin + 1))
        yield from search_near(rows, first * block_days, (last + 1) * block_days - 1, plan)
        return
    searches = []
    for block in task.blocks if task.side is Side.NEGATIVE else [None]:
        candidates = read_blocks(workspace, task.blocks if block is None else [block])
        searches.append(
            FarSearch(
                candidates.take(candidates.ids % np.uint64(task.parts) == task.part), plan, task.side, task.queries
            )
        )
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
    """Cuts the work into tasks, the longest first, so that workers end at about the same time.

    Args:
      documents: number of documents by block.
      sides: what to search for.
      blocks_together: blocks of one task, whose results are merged at once.
      most_rows: rows of one index; larger sets are split by hash.
      block_days: days of a block.
      negative_days: smallest day gap of a negative.
    """
    blocks = sorted(documents)
    groups: dict[int, list[int]] = {}
    for block in blocks:
        groups.setdefault(block // blocks_together, []).append(block)
    tasks = [Task(Side.POSITIVE, (block,), (block,), documents[block]) for block in blocks if Side.POSITIVE in sides]
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
    """Pairs of documents that a task looks at: roughly its time."""
    candidates = sum(documents[block] for block in task.blocks) / task.parts
    return task.queries * candidates / (block_days if task.side is Side.POSITIVE else 1)
