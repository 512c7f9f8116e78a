"""The score of an ablation row: its mean z-score over steps and benchmarks, with error bars over seeds.

Definition. x(r, s, t, b) is the score of row r trained with seed s, at step t, on benchmark b, in b's own metric. Every
(t, b) is standardised over all runs, those of the control included::

    z(r, s, t, b) = (x(r, s, t, b) - mean over r', s' of x(r', s', t, b)) / std over r', s' of x(r', s', t, b)

with the standard deviation of the population (divisor n), and 0 where all runs have the same score. The score of a run
is the mean over its steps and benchmarks, Z(r, s) = mean over t, b of z(r, s, t, b); that of a row is the mean of Z(r,
s) over its seeds. With one seed this is our reading of the z-score of the paper's Table 10, whose wording was not
available.

Error bars. Steps and benchmarks of one run are correlated, so only the seeds are independent draws. The ± of a row is
half the 95 % interval of the mean over its seeds (Student's t). Rows of one seed start from one pretrained model and
read the data in the same order, which moves them together, so seeds are blocks: the differences from the control are
tested with the residual variance of row + seed, (rows - 1)(seeds - 1) degrees of freedom, against Dunnett's
distribution of many treatments and one control. Its 95 % intervals hold for all rows at once. If a row lacks a seed,
they are Dunnett's intervals without blocks. Both cover other seeds, not another corpus or test set.
"""

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ...evaluation.benchmark import Score, over_runs
from .table import Direction

Cell = tuple[str, str]  # (step, benchmark)
Verdict = Literal["agrees", "differs", "within error", "no error bar"]
_ROUNDING: Final = 1e-9  # scores whose relative difference is smaller are equal
_CONFIDENCE: Final = 0.95
_DRAWS: Final = 0  # seed of SciPy's integration of Dunnett's distribution


@dataclasses.dataclass(frozen=True)
class Difference:
    """A row minus the control.

    Attributes:
      mean: difference of the mean z-scores.
      low, high: simultaneous 95 % interval; None if there are too few seeds.
      p: two-sided, adjusted for the number of rows; None if there are too few seeds.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def direction(self) -> str:
        """How the row compares with the control: "lower", "higher" or "equal"."""
        return "equal" if self.mean == 0 else "lower" if self.mean < 0 else "higher"

    def verdict(self, expected: Direction) -> Verdict:
        """Compares it with the expected direction: agrees, differs, within error, or no error bar."""
        if self.low is None or self.high is None:
            return "no error bar"
        if self.low <= 0 <= self.high:
            return "within error"
        return "agrees" if self.direction == expected else "differs"


def run_scores(runs: Sequence[Mapping[Cell, float]]) -> npt.NDArray[np.float64]:
    """Z of each run, float64 ``[runs]``; see the module.

    Args:
      runs: scores by (step, benchmark), the same cells in each.

    Raises:
      ValueError: if a run has other cells than the first.
    """
    from scipy.stats import zscore

    cells = sorted(runs[0]) if runs else []
    if any(sorted(run) != cells for run in runs):
        raise ValueError("the runs were scored at different steps or on different benchmarks")
    values = np.array([[run[cell] for cell in cells] for run in runs], np.float64).reshape(len(runs), len(cells))
    spread = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    standardised = np.zeros_like(values)
    if spread.any():
        standardised[:, spread] = zscore(values[:, spread], axis=0)
    means: npt.NDArray[np.float64] = standardised.mean(axis=1)
    return means


def row_scores(runs: Mapping[str, Sequence[Mapping[Cell, float]]]) -> dict[str, npt.NDArray[np.float64]]:
    """Z of every run of every row, ``[seeds]`` by row."""
    flat = run_scores([run for row in runs.values() for run in row])
    borders = np.cumsum([len(row) for row in runs.values()])[:-1]
    return dict(zip(runs, np.split(flat, borders), strict=True))


def summarise(values: npt.NDArray[np.float64]) -> Score:
    """A row's z-score: mean over seeds, with deviation and interval."""
    return over_runs("z", values.tolist(), "all", len(values))


def differences(
    rows: Mapping[str, npt.NDArray[np.float64]], control: str, seeds: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Difference]:
    """Compares every other row with the control; empty if the control has no scores.

    Args:
      rows: Z of every run by row, ``[seeds]``.
      control: the name of the control.
      seeds: the seeds of these runs, by row; by default the first ones.
    """
    if control not in rows:
        return {}
    others = [name for name in rows if name != control]
    found = {name: Difference(float(rows[name].mean() - rows[control].mean())) for name in others}
    places = {name: tuple(seeds[name]) if seeds else tuple(range(len(values))) for name, values in rows.items()}
    if not others:
        return found
    has_blocks = len(set(places.values())) == 1 and len(rows[control]) > 1
    intervals = (
        _blocked(np.stack([rows[name] for name in (control, *others)]))
        if has_blocks
        else _unblocked([rows[name] for name in (control, *others)])
    )
    for name, (low, high, p) in zip(others, intervals, strict=False):  # none, if nothing varies
        found[name] = dataclasses.replace(found[name], low=low, high=high, p=p)
    return found


def _blocked(values: npt.NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """(low, high, p) of each row but the first against it.

    Args:
      values: ``[rows, seeds]``.
    """
    from scipy.optimize import brentq

    rows, seeds = values.shape
    means = values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    freedom = (rows - 1) * (seeds - 1)
    error = math.sqrt(2 * float((residuals**2).sum()) / freedom / seeds)
    if error <= _ROUNDING:
        return []
    critical = float(brentq(lambda bar: _within(bar, rows - 1, freedom) - _CONFIDENCE, 1.0, 100.0, xtol=1e-4))
    gaps = (means[1:] - means[0]).tolist()
    return [
        (gap - critical * error, gap + critical * error, 1 - _within(abs(gap) / error, rows - 1, freedom))
        for gap in gaps
    ]


def _within(bar: float, count: int, freedom: int) -> float:
    """The probability that ``count`` differences from a control are all within ``bar`` standard errors (Dunnett 1955).

    They share the control, so any two of equally many observations correlate by 1/2.
    """
    from scipy.stats import multivariate_t, t

    if count == 1:
        return float(2 * t.cdf(bar, freedom) - 1)
    limits = np.full(count, bar)
    shape = (np.eye(count) + 1) / 2
    return float(
        multivariate_t.cdf(
            limits, shape=shape, df=freedom, lower_limit=-limits, random_state=np.random.default_rng(_DRAWS)
        )
    )


def _unblocked(rows: Sequence[npt.NDArray[np.float64]]) -> list[tuple[float, float, float]]:
    """The same for rows with different seeds, or different numbers of seeds."""
    within = sum(float(((values - values.mean()) ** 2).sum()) for values in rows)
    if within <= _ROUNDING**2 or sum(map(len, rows)) <= len(rows):
        return []
    from scipy.stats import dunnett

    with warnings.catch_warnings():
        # A row whose seeds agree up to rounding adds no variance, which is correct.
        warnings.simplefilter("ignore", RuntimeWarning)
        test: Any = dunnett(*rows[1:], control=rows[0], rng=np.random.default_rng(_DRAWS))
        interval = test.confidence_interval(_CONFIDENCE)
    return list(zip(interval.low.tolist(), interval.high.tolist(), test.pvalue.tolist(), strict=True))
