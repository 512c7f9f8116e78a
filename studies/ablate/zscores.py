"""The score of an ablation row: its mean z-score over steps and benchmarks, with error bars over seeds.

Definition. x(r, s, t, b) is the score of row r trained with seed s, at step t, on benchmark b, in b's own metric. Every
(t, b) is standardised over all runs, those of the control included::

    z(r, s, t, b) = (x(r, s, t, b) - mean over r', s' of x(r', s', t, b)) / std over r', s' of x(r', s', t, b)

with the standard deviation of the population (divisor n), and 0 where all runs have the same score. The score of a run
is the mean over its steps and benchmarks, Z(r, s) = mean over t, b of z(r, s, t, b); that of a row is the mean of Z(r,
s) over its seeds. The paper's Table 10 also standardises over a range of steps and all ablations.

Error bars. Steps and benchmarks of one run are correlated, so only the seeds are independent draws. The ± of a row is
half the 95 % interval of the mean over its seeds (Student's t). Rows of one seed start from one pretrained model and
read the data in the same order, which moves them together, so seeds are blocks: the differences from the control are
tested with the residual variance of row + seed, (rows - 1)(seeds - 1) degrees of freedom, against Dunnett's
distribution of many treatments and one control. Its 95 % intervals hold for all rows at once. A row that lacks a seed
of the control has no interval until that seed is trained. The bars cover other seeds, not another corpus or test set.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...evaluation.statistics import Interval

Floats = npt.NDArray[np.float64]
Cell = tuple[str, str]  # (step, benchmark)
_ROUNDING: Final = 1e-9  # scores whose relative difference is smaller are equal
_CONFIDENCE: Final = 0.95
_DRAWS: Final = 0  # seed of SciPy's integration of Dunnett's distribution


def row_scores(runs: Mapping[str, Sequence[Mapping[Cell, float]]]) -> dict[str, Floats]:
    """Z of every run of every row, ``[seeds]`` by row; see the module.

    Args:
      runs: scores by (step, benchmark), the same cells in each.
    """
    from scipy.stats import zscore

    flat = [run for row in runs.values() for run in row]
    cells = sorted(flat[0])
    values = np.array([[run[cell] for cell in cells] for run in flat], np.float64)
    spread = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    standardised = np.zeros_like(values)
    if spread.any():
        standardised[:, spread] = zscore(values[:, spread], axis=0)
    borders = np.cumsum([len(row) for row in runs.values()])[:-1]
    return dict(zip(runs, np.split(standardised.mean(axis=1), borders), strict=True))


def differences(rows: Mapping[str, Mapping[int, float]], control: str) -> dict[str, Interval]:
    """Every other row minus the control, with simultaneous intervals; empty if the control has no scores.

    Without an interval and p, adjusted for the number of rows, where there are too few seeds.

    Args:
      rows: the value of every run, by row and seed.
      control: the name of the control.
    """
    theirs = rows.get(control)
    if not theirs:
        return {}
    mean = float(np.mean(list(theirs.values())))
    found = {name: Interval(float(np.mean(list(own.values()))) - mean) for name, own in rows.items() if name != control}
    whole = [name for name in found if rows[name].keys() == theirs.keys()]
    if whole and len(theirs) > 1:
        found |= _intervals(whole, np.array([[rows[name][seed] for seed in theirs] for name in (control, *whole)]))
    return found


def _intervals(names: Sequence[str], values: Floats) -> dict[str, Interval]:
    """The intervals of rows against the first, from values ``[1 + rows, seeds]``; none where nothing varies."""
    from scipy.optimize import brentq

    rows, seeds = values.shape
    means = values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    freedom = (rows - 1) * (seeds - 1)
    error = math.sqrt(2 * float((residuals**2).sum()) / freedom / seeds)
    if error <= _ROUNDING:
        return {}
    critical = float(brentq(lambda bar: within(bar, rows - 1, freedom) - _CONFIDENCE, 1.0, 100.0, xtol=1e-4))
    found = {}
    for name, gap in zip(names, (means[1:] - means[0]).tolist(), strict=True):
        p = 1 - within(abs(gap) / error, rows - 1, freedom)
        found[name] = Interval(gap, gap - critical * error, gap + critical * error, p)
    return found


def within(bar: float, count: int, freedom: int) -> float:
    """The probability that ``count`` differences from a control are all within ``bar`` standard errors (Dunnett 1955).

    They share the control, so any two of equally many observations correlate by 1/2.
    """
    from scipy.stats import multivariate_t, t

    if count == 1:
        return float(2 * t.cdf(bar, freedom) - 1)
    limits, draws = np.full(count, bar), np.random.default_rng(_DRAWS)
    shape = (np.eye(count) + 1) / 2
    return float(multivariate_t.cdf(limits, shape=shape, df=freedom, lower_limit=-limits, random_state=draws))
