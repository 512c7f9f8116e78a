"""Cutoffs, and scores by the months since them: whether they decay, with error bars over events.

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
import datetime
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...evaluation.statistics import FloatArray, Interval, mean_interval, statistic_interval, totals_of_events

_MONTH: Final = re.compile(r"\d{4}-\d{2}$")
_DAYS_PER_MONTH: Final = 365.25 / 12


@dataclasses.dataclass(frozen=True, order=True)
class Cutoff:
    """The last day whose articles are mined, and the text that the user wrote for it."""

    last_day: datetime.date
    name: str


def parse_cutoffs(text: str) -> list[Cutoff]:
    """Cutoffs of "2018-01,2018-07-15", ascending; a month means its last day."""
    remedy, found = "give dates such as 2018-01,2018-07", []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        is_month = _MONTH.match(part)
        try:
            day = datetime.date.fromisoformat(f"{part}-01" if is_month else part)
        except ValueError as error:
            problem = f"got {part!r}, expected YYYY-MM or YYYY-MM-DD"
            raise InputError(problem, field="--cutoffs", remedy=remedy) from error
        if is_month:
            day = (day + datetime.timedelta(days=31)).replace(day=1) - datetime.timedelta(days=1)
        found.append(Cutoff(day, part))
    if len({cutoff.last_day for cutoff in found}) < max(len(found), 1):
        problem = f"got the same cutoff twice: {text}" if found else "no cutoff"
        raise InputError(problem, field="--cutoffs", remedy=remedy)
    return sorted(found)


def months_since(days: Sequence[datetime.date], cutoff: Cutoff) -> npt.NDArray[np.int64]:
    """Months from a cutoff to each day, int64 ``[N]``: 1 is the first month after it, 0 the last month up to it."""
    gaps = np.array([(day - cutoff.last_day).days for day in days], np.float64)
    return np.ceil(gaps / _DAYS_PER_MONTH).astype(np.int64)


@dataclasses.dataclass(frozen=True)
class Queries:
    """The event and the byline day of each query."""

    events: tuple[str, ...]
    days: tuple[datetime.date, ...]


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
class Effect:
    """How much more models lose after their cutoffs than before them.

    Attributes:
      effect: see the module; negative for a decay.
      by_seed: the effect of each seed.
    """

    effect: Interval
    by_seed: tuple[float, ...]

    @property
    def direction(self) -> str:
        """The direction of the score: "falls", "rises" or "stays"."""
        return {"lower": "falls", "higher": "rises", "equal": "stays"}[self.effect.direction]

    @property
    def verdict(self) -> str:
        """Compares it with the expected fall.

        "agrees" if the interval and all seeds are below 0, "differs" if they are above 0, else "within error".
        """
        verdict, sign = self.effect.verdict("lower"), 1 if self.effect.value > 0 else -1
        is_clear = verdict == "no error bar" or all(sign * seed > 0 for seed in self.by_seed)
        return verdict if is_clear else "within error"


def by_month(
    scores: FloatArray, fresh: FloatArray, months: npt.NDArray[np.int64], events: Sequence[str], bin_months: int
) -> list[Point]:
    """Scores by bins of months since the cutoff.

    Args:
      scores: of each query, ``[N]``; NaN for no score.
      fresh: the same of the fresh model.
      months: since the cutoff, ``[N]``, see :func:`months_since`.
      events: the event of each query.
      bin_months: number of months in a bin; the first bin after the cutoff begins with month 1.
    """
    has_score = ~np.isnan(scores) & ~np.isnan(fresh)
    bins = np.ceil(months / bin_months).astype(int)
    names = np.asarray(events)
    points = []
    for number in np.unique(bins[has_score]).tolist():
        inside = has_score & (bins == number)
        own, minus_fresh = (mean_interval(values[inside], names[inside]) for values in (scores, scores - fresh))
        first, last = (number - 1) * bin_months + 1, number * bin_months
        points.append(Point(first, last, own, minus_fresh, int(inside.sum()), len(set(names[inside]))))
    return points


def effect_of(
    cutoffs: Sequence[tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]], events: Sequence[str]
) -> Effect | None:
    """The mean staleness of cutoffs; None if all queries are on one side of one of them.

    Events are resampled for all cutoffs together, since all have the same queries.

    Args:
      cutoffs: of each the scores ``[seeds, N]``, NaN for no score, those of the fresh model, and the months since the
        cutoff ``[N]``.
      events: the event of each query.
    """
    _, members = np.unique(np.asarray(events), return_inverse=True)
    totals: list[tuple[FloatArray, FloatArray]] = []  # sums and counts [events] of each cutoff after, then up to it
    by_seed = []
    for seeds, fresh, months in cutoffs:
        gaps = seeds - fresh
        valid = ~np.isnan(gaps).any(axis=0)
        sides = [valid & (months > 0), valid & (months <= 0)]
        if any(len(set(members[side])) < 2 for side in sides):
            return None
        mean = gaps.mean(axis=0)
        totals += [totals_of_events(mean[side], members[side], members.max() + 1) for side in sides]
        by_seed.append(gaps[:, sides[0]].mean(axis=1) - gaps[:, sides[1]].mean(axis=1))
    sums, counts = (np.stack(arrays) for arrays in zip(*totals, strict=True))

    def statistic(means: FloatArray) -> FloatArray:
        return np.asarray((means[:, 0::2] - means[:, 1::2]).mean(axis=1))

    return Effect(statistic_interval(statistic, sums, counts), tuple(np.mean(by_seed, axis=0).tolist()))
