"""Error bars of scores: the percentile bootstrap (95 %).

Queries about one event share its wording, so events are resampled, each with all of its queries. Pairs of sentences are
resampled one by one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
_RESAMPLES: Final = 2000
_AT_A_TIME: Final = 200
_SEED: Final = 0


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; None for fewer than two events."""

    value: float
    low: float | None = None
    high: float | None = None


def mean_interval(values: FloatArray, events: npt.NDArray[Any]) -> Interval:
    """Mean over queries; the interval resamples events, each with all of its queries."""
    names, members = np.unique(events, return_inverse=True)
    if len(names) < 2:
        return Interval(float(values.mean()))
    sums, counts = totals_of_events(values, members, len(names))
    return statistic_interval(_first_mean, sums[None], counts[None])


def resampled_means(values: FloatArray, events: npt.NDArray[Any]) -> FloatArray:
    """Means over queries on 2,000 resamples of the events, each with all of its queries.

    The resamples depend on the number of events alone, so those of two encoders are the same.

    Args:
      values: of the queries, ``[Q]``.
      events: of the queries, ``[Q]``.
    """
    names, members = np.unique(events, return_inverse=True)
    sums, counts = totals_of_events(values, members, len(names))
    return _resampled(_first_mean, sums[None], counts[None])


def _first_mean(means: FloatArray) -> FloatArray:
    return means[:, 0]


def totals_of_events(values: FloatArray, members: npt.NDArray[np.int64], events: int) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values of each event, ``[events]``."""
    sums, counts = np.zeros(events), np.zeros(events)
    np.add.at(sums, members, values)
    np.add.at(counts, members, 1.0)
    return sums, counts


def statistic_interval(statistic: Callable[[FloatArray], FloatArray], sums: FloatArray, counts: FloatArray) -> Interval:
    """A statistic of means over queries, and its percentile interval over resampled events.

    Draws that leave a mean without queries do not count.

    Args:
      statistic: maps means ``[draws, means]`` to ``[draws]``.
      sums: of the scores of each event, ``[means, events]``.
      counts: number of queries of each event, ``[means, events]``.
    """
    value = float(statistic((sums.sum(axis=1) / counts.sum(axis=1))[None])[0])
    low, high = np.nanpercentile(_resampled(statistic, sums, counts), [2.5, 97.5])
    return Interval(value, float(low), float(high))


def _resampled(statistic: Callable[[FloatArray], FloatArray], sums: FloatArray, counts: FloatArray) -> FloatArray:
    """The statistic on each resample of the events, ``[resamples]``; see :func:`statistic_interval`."""
    events = sums.shape[1]
    rng = np.random.default_rng(_SEED)
    drawn = []
    for _ in range(_RESAMPLES // _AT_A_TIME):
        times = rng.multinomial(events, np.full(events, 1 / events), _AT_A_TIME).astype(np.float64)
        with np.errstate(invalid="ignore"):
            drawn.append(statistic((times @ sums.T) / (times @ counts.T)))
    return np.concatenate(drawn)


def spearman_interval(gold: FloatArray, predicted: FloatArray) -> Interval:
    """Spearman's correlation of two arrays ``[N]``; the interval resamples pairs."""
    from scipy.stats import bootstrap, spearmanr

    found = bootstrap(
        (gold, predicted),
        lambda one, two: spearmanr(one, two).statistic,
        paired=True,
        vectorized=False,
        n_resamples=_RESAMPLES // 2,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    low, high = found.confidence_interval
    return Interval(float(spearmanr(gold, predicted).statistic), float(low), float(high))
