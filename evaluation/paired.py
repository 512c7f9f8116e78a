"""Paired tests of two encoders on one score: over the folds or the resamples that a benchmark gives to all encoders.

Each encoder has one score for each seed of its training. Seeds are paired: a fold or a resample contributes the mean
over seeds of ``first - second``.

- Folds: a two-sided t-test over folds with the variance of Nadeau and Bengio (2003), because folds whose training and
  test halves swap are not independent; see ``compare.py`` for the plain one.
- Resamples: a bootstrap over the units that the benchmark resamples (days, articles). The interval is that of the
  percentiles, and p is twice the share of resamples on the rarer side of 0.

Both cover other test data. Neither covers other seeds: these are averaged, not drawn.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from .benchmark import Score

_CONFIDENCE: Final = 0.95
_TEST_OF_TRAIN: Final = 1.0  # both halves of a sample are of one size


@dataclasses.dataclass(frozen=True, slots=True)
class PairedTest:
    """``first`` minus ``second``.

    Attributes:
      difference: mean over seeds of the difference of the scores.
      low, high: the ends of its 95 % interval.
      p: two-sided.
      method: "folds" or "resamples".
      count: number of folds or resamples.
    """

    difference: float
    low: float
    high: float
    p: float
    method: str
    count: int


def paired_test(first: Sequence[Score], second: Sequence[Score]) -> PairedTest | None:
    """Tests two encoders; None if the scores have neither common resamples nor common folds.

    Args:
      first: the scores of one encoder on a benchmark, one for each seed.
      second: those of the other, with the same seeds in the same order.
    """
    for method, test in (("draws", _bootstrap), ("folds", _corrected_t)):
        rows = [[getattr(score, method) for score in scores] for scores in (first, second)]
        lengths = {len(row) for scores in rows for row in scores}
        if len(lengths) == 1 and min(lengths) > 1 and len(first) == len(second):
            gaps = np.mean(np.array(rows[0]) - np.array(rows[1]), axis=0)
            observed = math.fsum(one.value - two.value for one, two in zip(first, second, strict=True)) / len(first)
            return test(observed, gaps)
    return None


def _bootstrap(observed: float, gaps: npt.NDArray[np.float64]) -> PairedTest:
    tail = 100 * (1 - _CONFIDENCE) / 2
    low, high = np.percentile(gaps, [tail, 100 - tail])
    return PairedTest(observed, float(low), float(high), two_sided(gaps), "resamples", len(gaps))


def _corrected_t(observed: float, gaps: npt.NDArray[np.float64]) -> PairedTest:
    from scipy.stats import t

    folds = len(gaps)
    error = math.sqrt(float(gaps.var(ddof=1)) * (1 / folds + _TEST_OF_TRAIN))
    reach = float(t.ppf((1 + _CONFIDENCE) / 2, folds - 1)) * error
    p = float(2 * t.sf(abs(observed) / error, folds - 1)) if error else float(observed == 0)
    return PairedTest(observed, observed - reach, observed + reach, p, "folds", folds)


def two_sided(draws: npt.NDArray[np.float64]) -> float:
    """The p value of resampled differences: twice the share on the rarer side of 0, from 1 / draws to 1."""
    rarer = min(float(np.mean(draws <= 0)), float(np.mean(draws >= 0)))
    return min(1.0, max(2 * rarer, 1 / len(draws)))
