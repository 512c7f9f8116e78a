"""A rule for positives that dates calibrate: how rare the similarity of a pair is, in all spaces together.

Pairs of articles some weeks apart (`neighbors.background`) share subjects, but seldom report one event. The rarity of a
pair is the sum over the spaces of ``-log(share of such pairs that are at least as similar)``, as in Fisher's method of
combining tests; a space in which the pair is not known adds 0. So a similarity that many pairs reach, such as an entity
vector of one frequent name, counts little, and weak evidence of several spaces adds up.

A subject that the news has for weeks makes every pair of its documents rare among all pairs. Its documents are near to
many some weeks apart, which their contrast says (`neighbors.contrast`). The rarity of the contrast, less what it is for
an average document, is by how much too rare a pair looks. Half of it is taken off, because a contrast is a mean over
few documents.

The spaces are not independent, so the bar is not taken from a distribution. With ``n(r)`` near pairs of at least rarity
``r`` among ``N`` possible ones, and ``f(r)`` of ``F`` pairs some weeks apart, the share of near pairs that report one
event is about ``1 - (N f(r) / F) / n(r)``, as in `learned`. Copies that are published again weeks later count against
it, so it is a careful estimate.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..arrays import COSINE_BINS, Array, cosine_histogram
from ..neighbors.contrast import NEAREST_SHARE

BINS: Final = 2_000  # of a histogram of rarities
_WIDTH: Final = 0.05
_LEAST_KNOWN: Final = 100  # pairs: a space with fewer adds nothing
_TAIL: Final = 0.001  # share of pairs from where on a tail is taken as exponential: a sample has too few pairs there
_LEAST_IN_TAIL: Final = 20
_LEAST_FAR: Final = 1_000
_FAR_IN_TAIL: Final = 100
_LEAST_NEAR: Final = 50  # pairs from which a precision is estimated
_LEAST_PRECISION: Final = 0.5
_BELOW_BEST: Final = 0.05
_CORRECTED: Final = 0.5
# The mean rarity of this share of pairs, the most similar ones, where the tail is exponential.
_EXPECTED: Final = 1 - math.log(NEAREST_SHARE)

Histogram = np.ndarray[Any, np.dtype[np.int64]]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The bar of the rarities.

    Attributes:
      bar: the least rarity of a positive.
      precision: estimated share of the near pairs from the bar on that report one event.
      pairs: number of these pairs.
      curve: estimated precision from each bin on, ``[BINS]``; NaN where there are too few pairs.
    """

    bar: float
    precision: float
    pairs: int
    curve: Floats

    def to_json(self, shown: Iterable[int]) -> dict[str, Any]:
        """Returns the bar, and the estimated precision from some rarities on."""
        known = {f"{one}": float(self.curve[round(one / _WIDTH)]) for one in shown}
        curve = {name: round(value, 4) for name, value in known.items() if not math.isnan(value)}
        return {"bar": self.bar, "precision": round(self.precision, 4), "pairs": self.pairs, "precision_from": curve}


def tails_of(far: Array) -> Floats:
    """Returns ``-log(share of pairs that are at least as similar)`` by space and bin of the cosine.

    Args:
      far: similarities of pairs some weeks apart, float32 ``[P, spaces]``, NaN where unknown.

    Returns:
      float64 ``[spaces, COSINE_BINS]``; zeros for a space in which fewer than 100 pairs are known.
    """
    return np.stack([_tail_of(cosine_histogram(column)) for column in far.T])


def _tail_of(counts: Histogram) -> Floats:
    total = int(counts.sum())
    if total < _LEAST_KNOWN:
        return np.zeros(len(counts))
    reached = np.cumsum(counts[::-1])[::-1]
    table = np.maximum(-np.log((reached + 0.5) / total), 0.0)
    start, scale = _exponential(counts, reached, max(_TAIL * total, _LEAST_IN_TAIL))
    beyond = np.arange(len(counts) - start)
    table[start:] = table[start] + beyond / scale
    return np.asarray(table)


def _exponential(counts: Histogram, reached: Histogram, least: float) -> tuple[int, float]:
    """The last bin from which on there are this many pairs, and the mean distance of these from it, in bins."""
    start = int(np.flatnonzero(reached >= least)[-1])
    distances = np.arange(len(counts) - start)
    return start, max(1.0, float(counts[start:] @ distances) / int(reached[start]))


def rarities(similarities: Array, contrasts: Array, tails: Floats) -> Floats:
    """Returns the rarity of each pair, float64 ``[P]``.

    Args:
      similarities: ``[P, spaces]`` or more columns, NaN where unknown.
      contrasts: of the pairs, in the same form; nothing is taken off where it is NaN.
      tails: of the spaces that count, see :func:`tails_of`.
    """
    total = np.zeros(len(similarities))
    # Pairs have a column for each space that exists.
    for column, contrast, table in zip(similarities.T, contrasts.T, tails, strict=False):
        known = np.flatnonzero(~np.isnan(column))
        own = contrast[known]
        excess = np.where(np.isnan(own), 0, _looked_up(table, np.nan_to_num(own)) - _EXPECTED)
        total[known] += np.maximum(_looked_up(table, column[known]) - _CORRECTED * excess, 0)
    return total


def _looked_up(table: Floats, cosines: Array) -> Floats:
    bins = np.floor((cosines.astype(np.float64) + 1) / 2 * COSINE_BINS)
    return np.asarray(table[np.clip(bins, 0, COSINE_BINS - 1).astype(np.int64)])


def rarity_strengths(similarities: Array, contrasts: Array, tails: Floats, bar: float) -> Floats:
    """Returns by how much the rarity of each pair exceeds the bar, float64 ``[P]``; NaN below it."""
    above = rarities(similarities, contrasts, tails) - bar
    return np.where(above >= 0, above, np.nan)


def rarity_histogram(values: Floats) -> Histogram:
    """Counts rarities in bins of 0.05, int64 ``[BINS]``; the last bin has all greater ones."""
    return np.bincount(np.minimum(values / _WIDTH, BINS - 1).astype(np.int64), minlength=BINS)


def calibrate(near: Histogram, far: Histogram, possible: int, precision: float) -> Calibration | str:
    """Returns the bar: the least rarity with the precision, or why there is none.

    Where no rarity has the precision, the bar is the least one within 5 points of the best.

    Args:
      near: near pairs of different publishers, by rarity.
      far: all pairs some weeks apart, by rarity.
      possible: number of near pairs that are possible: N of the module's formula.
      precision: the precision that is asked for.
    """
    total = int(far.sum())
    if total < _LEAST_FAR:
        return f"only {total} pairs of articles are 8 to 28 days apart, and {_LEAST_FAR:,} are needed to calibrate"
    reached = np.cumsum(far[::-1])[::-1]
    shares = reached / total
    start, scale = _exponential(far, reached, _FAR_IN_TAIL)
    shares[start:] = shares[start] * np.exp(-np.arange(BINS - start) / scale)
    found = np.cumsum(near[::-1])[::-1]
    curve = np.where(found >= _LEAST_NEAR, 1 - possible * shares / np.maximum(found, 1), np.nan)
    best = float(np.nanmax(curve, initial=-np.inf))
    if best < _LEAST_PRECISION:
        return (
            f"near pairs are hardly more similar than pairs some weeks apart (estimated precision {max(best, 0):.2f})"
        )
    least = precision if best >= precision else best - _BELOW_BEST
    place = int(np.flatnonzero(curve >= least)[0])
    return Calibration(round(place * _WIDTH, 2), float(curve[place]), int(found[place]), curve)
