"""Scores by months since a cutoff, and whether they decay, with error bars over events.

Queries about one event share its wording, so events, not queries, are resampled: intervals are the percentile bootstrap
(95 %) over events.

A model with an early cutoff is worse for two reasons: it knows nothing of later events, and it saw fewer documents.
Only the first is staleness. Comparing it with a model trained on all documents ("fresh") on the same queries removes
the difficulty of the months. The second reason has its effect before the cutoff as well as after it, so the staleness
of a cutoff is::

    mean over queries after it of (cutoff - fresh)  -  mean over queries up to it of (cutoff - fresh)

If it is negative, the model is worse on later events. The bars cover other events, not other seeds; the value of every
seed is reported too.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...evaluation.intervals import FloatArray, Interval, mean_interval, statistic_interval, totals_of_events

EXPECTED: Final = "falls"


@dataclasses.dataclass(frozen=True)
class Point:
    """The queries of one bin: months ``first_month`` to ``last_month`` (inclusive) since the cutoff."""

    first_month: int
    last_month: int
    score: Interval
    minus_fresh: Interval
    queries: int
    events: int


@dataclasses.dataclass(frozen=True)
class Staleness:
    """How much more a model loses after its cutoff than before it.

    Attributes:
      effect: see the module; negative for a decay.
      by_seed: the effect of each seed.
    """

    effect: Interval
    by_seed: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """Compares it with the expected fall.

        "agrees" if the interval and all seeds are below 0, "differs" if they are above 0, else "within error".
        """
        if self.effect.low is None or self.effect.high is None:
            return "no error bar"
        if self.effect.high < 0 and max(self.by_seed) < 0:
            return "agrees"
        return "differs" if self.effect.low > 0 and min(self.by_seed) > 0 else "within error"


def by_month(
    scores: FloatArray, fresh: FloatArray, months: npt.NDArray[np.int64], events: Sequence[str], bin_months: int
) -> list[Point]:
    """Scores by bins of months since the cutoff.

    Args:
      scores: of each query, ``[N]``; NaN for no score.
      fresh: the same of the fresh model.
      months: since the cutoff, ``[N]``, see ``cutoffs.months_since``.
      events: the event of each query.
      bin_months: number of months in a bin; the first bin after the cutoff begins with month 1.
    """
    has_score = ~np.isnan(scores) & ~np.isnan(fresh)
    bins = np.ceil(months / bin_months).astype(int)
    names = np.asarray(events)
    points = []
    for number in sorted(set(bins[has_score].tolist())):
        inside = has_score & (bins == number)
        points.append(
            Point(
                (number - 1) * bin_months + 1,
                number * bin_months,
                mean_interval(scores[inside], names[inside]),
                mean_interval(scores[inside] - fresh[inside], names[inside]),
                int(inside.sum()),
                len(set(names[inside])),
            )
        )
    return points


def staleness(
    seeds: FloatArray, fresh: FloatArray, months: npt.NDArray[np.int64], events: Sequence[str]
) -> Staleness | None:
    """The staleness of one cutoff; None if all queries are on one side of it.

    Args:
      seeds: scores ``[seeds, N]``, NaN for no score.
      fresh: the same of the fresh model.
      months: since the cutoff, ``[N]``.
      events: the event of each query.
    """
    return pooled_staleness([(seeds, fresh, months)], events)


def pooled_staleness(
    cutoffs: Sequence[tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]], events: Sequence[str]
) -> Staleness | None:
    """The mean staleness of several cutoffs; events are resampled for all together, since all have the same queries."""
    _, members = np.unique(np.asarray(events), return_inverse=True)
    parts: list[tuple[FloatArray, FloatArray]] = []  # sums and counts [events] of each cutoff after, then up to it
    by_seed = []
    for seeds, fresh, months in cutoffs:
        gaps = seeds - fresh
        valid = ~np.isnan(gaps).any(axis=0)
        sides = [valid & (months > 0), valid & (months <= 0)]
        if any(len(set(members[side])) < 2 for side in sides):
            return None
        mean = gaps.mean(axis=0)
        parts += [totals_of_events(mean[side], members[side], members.max() + 1) for side in sides]
        by_seed.append([float(one[sides[0]].mean() - one[sides[1]].mean()) for one in gaps])
    sums, counts = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])

    def statistic(means: FloatArray) -> FloatArray:
        return np.asarray((means[:, 0::2] - means[:, 1::2]).mean(axis=1))

    return Staleness(statistic_interval(statistic, sums, counts), tuple(np.mean(by_seed, axis=0).tolist()))


def direction(effect: Mapping[str, Any] | Interval) -> str:
    """The direction of a score: "falls", "rises" or "stays"."""
    value = effect.value if isinstance(effect, Interval) else float(effect["value"])
    return "falls" if value < 0 else "rises" if value > 0 else "stays"
