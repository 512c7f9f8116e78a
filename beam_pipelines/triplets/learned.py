"""The bars of the learned space, calibrated by dates: no labels are needed.

Reports of one event appear within days of each other. How often two articles that are some weeks apart reach a
similarity (`neighbors.far_pairs`) therefore tells how often two articles reach it because they share a subject. With
``n(s)`` near pairs of at least similarity ``s`` among ``N`` possible ones, and ``f(s)`` of ``F`` pairs some weeks
apart, the share of near pairs that report one event is about::

    precision(s) = 1 - (N f(s) / F) / n(s)

Pairs of one publisher are never positives: ``n`` and ``f`` leave them out, ``N`` and ``F`` count them.

A story that runs for days makes near pairs similar that report different events of it, which counts for this precision;
reports of one event weeks apart, and near pairs that the search did not find, count against it.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats import files
from ...formats.parquet import read_batches
from ...formats.records import Space
from ..arrays import COSINE_BINS, CosineHistogram, cosine_histogram, read_array
from ..jobs import JobRun
from ..neighbors.rows import FAR_PAIRS
from ..shards import Shard
from .rules import JOINT_MARGIN, SPACES, LearnedSpace, TripletsOptions, read_candidates
from .table import TABLE, read_table

_SUPPORT: Final = 0.8  # precision from which a pair supports another space
_FLOOR: Final = 0.5  # precision below which a pair is refused
_LEARNED: Final = "learned.json"  # published: the bars that were used
_DAYS, _SIMILARITIES = "_days", "_similarities"
_SHOWN: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def map_stages(job: JobRun, articles: Sequence[str], neighbors: Sequence[str]) -> bool:
    """Adds the stages to the job's graph, after the table of documents; returns whether there is a learned space.

    Args:
      job: the run of ``triplets``.
      articles: paths of the shards of articles.
      neighbors: those of the neighbors.
    """
    options: TripletsOptions = job.options
    folder = job.input("neighbors")
    far = files.list_files(f"{FAR_PAIRS}/*.npy", folder)  # one file, if there is a learned space
    if far and not options.min_learned:
        job.map_shards("days", _count_days, articles, accounted=False)
        job.map_shards("similarities", _count_near, neighbors, options=options, accounted=False)
    if far:
        job.map_shards("calibrate", _calibrate, far, options=options, path=folder, accounted=False)
    return bool(far)


@lru_cache(maxsize=1)
def read_space(workspace: str) -> LearnedSpace:
    """Returns the bars that the stages prepared."""
    found = files.read_json(f"{workspace}/{_LEARNED}")
    return LearnedSpace(*(float(found[field.name]) for field in dataclasses.fields(LearnedSpace)))


def _count_days(shard: Shard, path: str) -> None:
    """Counts the articles of a shard by day: int64 ``[days, 2]``."""
    dates = (date for batch in read_batches(path, ["byline_date"]) for date in batch.column(0).to_pylist() if date)
    days = np.array([date.toordinal() for date in dates], np.int64)
    shard.write_array(_DAYS, np.stack(np.unique(days, return_counts=True), axis=1))


def _count_near(shard: Shard, path: str, options: TripletsOptions) -> None:
    """Counts the near pairs of different publishers by similarity in the learned space: ``[bins]``."""
    table, near = read_table(f"{shard.workspace}/{TABLE}"), read_candidates(path)
    near = near[np.abs(near["gap"]) <= options.max_positive_days]
    near = near[table.has(near)]
    near = near[table.publishers(near["anchor"]) != table.publishers(near["other"])]
    shard.write_array(_SIMILARITIES, cosine_histogram(near["similarity"][:, SPACES.index(Space.LEARNED)]))


def _calibrate(shard: Shard, far: str, options: TripletsOptions, path: str) -> None:
    """Writes the bars of the learned space: those of the options, or calibrated ones."""
    if options.min_learned:
        support = options.min_learned - JOINT_MARGIN
        found = dataclasses.asdict(LearnedSpace(options.min_learned, support, support))
    else:
        days: collections.Counter[int] = collections.Counter()
        for part in shard.arrays(_DAYS):
            days.update(dict(part.tolist()))
        near, pairs = sum(shard.arrays(_SIMILARITIES), np.zeros(COSINE_BINS, np.int64)), read_array(far)
        background = cosine_histogram(pairs)
        possible = near_pairs(days, options.max_positive_days)
        space, curve = calibrate(near, background, len(pairs), possible, options.learned_precision, path)
        shown = {f"{cosine:g}": round(float(curve[int((cosine + 1) / 2 * len(curve))]), 4) for cosine in _SHOWN}
        found = dataclasses.asdict(space) | {"precision": shown}
    files.write_json(f"{shard.workspace}/{_LEARNED}", found)


def near_pairs(documents: Mapping[int, int], most_days: int) -> int:
    """Counts the ordered pairs of distinct documents that are at most this many days apart: N of the module's formula.

    Args:
      documents: number of documents by day.
      most_days: largest day gap.
    """
    days = np.array(sorted(documents), np.int64)
    counts = np.array([documents[day] for day in days.tolist()], np.int64)
    before = np.append(0, np.cumsum(counts))
    first, end = np.searchsorted(days, days - most_days), np.searchsorted(days, days + most_days, side="right")
    return int((counts * (before[end] - before[first])).sum() - counts.sum())


def precision_curve(
    near: CosineHistogram, background: CosineHistogram, pairs: int, possible: int
) -> npt.NDArray[np.float64]:
    """Returns the estimated precision of the near pairs from each bin on, float64 ``[bins]``.

    It never falls with the similarity: a bin has at most the precision of all bins above it.

    Args:
      near: near pairs by similarity.
      background: pairs some weeks apart by similarity, not empty.
      pairs: number of pairs some weeks apart, at least those of the background: F of the module's formula.
      possible: N of the module's formula.
    """
    reached = np.cumsum(near[::-1])
    by_subject = np.cumsum(background[::-1]) * (possible / pairs)
    precision = np.where(reached > 0, 1 - by_subject / np.maximum(reached, 1), 1.0)
    return np.asarray(np.minimum.accumulate(precision)[::-1])


def calibrate(
    near: CosineHistogram, background: CosineHistogram, pairs: int, possible: int, precision: float, path: str
) -> tuple[LearnedSpace, npt.NDArray[np.float64]]:
    """Returns the bars, and the curve of :func:`precision_curve`.

    The bar is the least similarity with the precision asked for; the support has 0.8 at least and the floor one half.

    Args:
      near: near pairs by similarity.
      background: pairs some weeks apart by similarity.
      pairs: F of the module's formula.
      possible: N of the module's formula.
      precision: at the bar.
      path: of the neighbors, for errors.

    Raises:
      InputError: without pairs some weeks apart, or if no similarity has the precision.
    """
    remedy = "give the bar as --min_learned"
    if not background.any():
        problem = "no articles of two publishers are 8 to 28 days apart, so the learned space cannot be calibrated"
        raise InputError(problem, path=path, field="--min_learned", remedy=remedy)
    curve = precision_curve(near, background, pairs, possible)
    if not near.any() or curve[np.flatnonzero(near)[-1]] < precision:
        problem = f"no similarity in the learned space has an estimated precision of {precision}"
        raise InputError(problem, path=path, field="--learned_precision", remedy=f"{remedy}, or use another encoder")
    bar, support, floor = (int(np.searchsorted(curve, least)) for least in (precision, _SUPPORT, _FLOOR))
    support = min(support, bar - 1)
    # The lower edges of these bins.
    return LearnedSpace(
        *(round(2 * place / COSINE_BINS - 1, 6) for place in (bar, support, min(floor, support)))
    ), curve
