"""The table, the plot and the numbers of a staleness study: scores by the months since a cutoff, and whether they fall.

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
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError, refusing
from ...evaluation.statistics import FloatArray, Interval, mean_interval, statistic_interval, totals_of_events
from ..shared.charts import GREY, make_axes, svg_of
from ..shared.pages import Block, Table, bullets, markdown, with_interval
from ..shared.study import LANGUAGE_GROUPS, Outcome, language_group, problem_lines, write_files

FRESH: Final = "fresh"
EXPECTED: Final = "falls"
_NOTE: Final = (
    "mAP: same-event retrieval, mean over queries and seeds. Minus fresh: the difference from the model that was "
    "trained on all documents, on the same queries. In brackets: 95 % interval, bootstrap over events with all of "
    "their queries. Staleness of a cutoff: minus fresh after the cutoff less that up to it; negative: later events "
    "are retrieved worse, beyond the effect of fewer documents. A verdict agrees or differs only if the interval and "
    "every seed are on one side of 0. The bars cover other events, not another corpus. Expected: the score falls with "
    "the months, as in the paper's appendix C; `newsembed tables newsembed-11` has its figures."
)
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
        with refusing(f"got {part!r}, expected YYYY-MM or YYYY-MM-DD", ValueError, field="--cutoffs", remedy=remedy):
            day = datetime.date.fromisoformat(f"{part}-01" if is_month else part)
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
    """The event, the byline day and the language of each query; "" for an unknown language."""

    events: tuple[str, ...]
    days: tuple[datetime.date, ...]
    languages: tuple[str, ...]

    def groups(self) -> dict[str, list[int]]:
        """The numbers of the queries in English and of those in other languages."""
        found: dict[str, list[int]] = {group: [] for group in LANGUAGE_GROUPS}
        for number, language in enumerate(self.languages):
            if language:
                found[language_group(language)].append(number)
        return found


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


@dataclasses.dataclass(frozen=True)
class Line:
    """The numbers of a cutoff; None and empty if its model or the fresh one has no scores."""

    cutoff: Cutoff
    articles: int
    triplets: int
    outcome: Outcome
    points: tuple[Point, ...] = ()
    staleness: Effect | None = None
    by_language: Mapping[str, Effect | None] = dataclasses.field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether the scores decay as expected, or why that is unknown."""
        if not self.outcome.scores:
            return "failed"
        return self.staleness.verdict if self.staleness else "no queries on both sides"


def lines_of(
    cutoffs: Sequence[Cutoff],
    articles: Mapping[str, int],
    triplets: Mapping[str, int],
    outcomes: Sequence[Outcome],
    queries: Queries,
    bin_months: int,
) -> tuple[list[Line], Effect | None]:
    """The numbers of every cutoff, and the staleness of those with scores together, if they have the same seeds."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    lines, pooled = [], []
    for cutoff in cutoffs:
        own, fresh = by_name[cutoff.name], by_name[FRESH]
        line = Line(cutoff, articles[cutoff.name], triplets[cutoff.name], own)
        if seeds := sorted(set(own.scores) & set(fresh.scores)):
            ours, theirs = (np.stack([one.scores[seed] for seed in seeds]) for one in (own, fresh))
            months = months_since(queries.days, cutoff)
            points = by_month(ours.mean(axis=0), theirs.mean(axis=0), months, queries.events, bin_months)
            effect = effect_of([(ours, theirs, months)], queries.events)
            parts = {
                name: effect_of([(ours[:, some], theirs[:, some], months[some])], [queries.events[one] for one in some])
                for name, some in queries.groups().items()
                if len(some)
            }
            line = dataclasses.replace(line, points=tuple(points), staleness=effect, by_language=parts)
            if effect is not None:
                pooled.append((ours, theirs, months))
        lines.append(line)
    is_even = len(pooled) > 1 and len({len(ours) for ours, _, _ in pooled}) == 1
    return lines, effect_of(pooled, queries.events) if is_even else None


def write_report(
    output: str, lines: Sequence[Line], pooled: Effect | None, fresh: Outcome, manifest: Mapping[str, Any]
) -> tuple[str, str]:
    """Writes ``table.md``, ``table.json`` and ``plot.svg``; returns the Markdown, and their paths for the terminal."""
    cutoffs = [
        {
            "cutoff": line.cutoff.name,
            "last_day": line.cutoff.last_day.isoformat(),
            "articles": line.articles,
            "triplets": line.triplets,
            "verdict": line.verdict,
            "staleness": _effect_json(line.staleness),
            "by_language": {name: _effect_json(one) for name, one in line.by_language.items()},
            "months": [dataclasses.asdict(point) for point in line.points],
            **_outcome_json(line.outcome),
        }
        for line in lines
    ]
    numbers = {**manifest, "cutoffs": cutoffs, "all": _effect_json(pooled), "fresh": _outcome_json(fresh)}
    text, picture = report_text(lines, pooled, fresh), plot(lines) if any(one.points for one in lines) else None
    return text, write_files(output, numbers, text, picture)


def _effect_json(found: Effect | None) -> dict[str, Any] | None:
    return None if found is None else dataclasses.asdict(found) | {"expected": EXPECTED, "verdict": found.verdict}


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    means = {str(seed): float(np.nanmean(values)) for seed, values in outcome.scores.items()}
    return {"problems": dict(outcome.problems), "training_seconds": outcome.seconds, "mAP_by_seed": means}


def report_text(lines: Sequence[Line], pooled: Effect | None, fresh: Outcome) -> str:
    """Staleness by cutoff, then scores by the months since, as Markdown."""
    rows = [
        [
            *(one.cutoff.name, f"{one.articles:,}", f"{one.triplets:,}", *_effect(one.staleness), one.verdict),
            *(_effect(one.by_language.get(group))[0] for group in LANGUAGE_GROUPS),
        ]
        for one in lines
    ]
    rows += [["all", "", "", *_effect(pooled), pooled.verdict, "", ""]] if pooled else []
    headings = ["cutoff", "articles", "triplets", "staleness", "by seed", "expected", "measured", "verdict"]
    blocks: list[Block] = [Table([*headings, *LANGUAGE_GROUPS], rows), _NOTE]
    points = [
        [
            *(line.cutoff.name, f"{point.first_month} to {point.last_month}", with_interval(point.score, ".4f")),
            *(with_interval(point.minus_fresh, "+.4f"), str(point.queries), str(point.events)),
        ]
        for line in lines
        for point in line.points
    ]
    if points:
        blocks.append(Table(["cutoff", "months since", "mAP", "minus fresh", "queries", "events"], points))
    wrong = problem_lines([*(line.outcome for line in lines), fresh])
    return markdown("Staleness", [*blocks, *bullets("Failed:", wrong)])


def _effect(found: Effect | None) -> list[str]:
    if found is None:
        return ["-", "-", EXPECTED, "-"]
    by_seed = ", ".join(f"{value:+.4f}" for value in found.by_seed)
    return [with_interval(found.effect, "+.4f"), by_seed, EXPECTED, found.direction]


def plot(lines: Sequence[Line]) -> str:
    """Score, and its difference from the fresh model's, by months since the cutoff, as SVG with intervals."""
    figure, both = make_axes(width=10, height=3.4, columns=2)
    shown = [line for line in lines if line.points]
    for place, name, label in ((both[0], "score", "mAP"), (both[1], "minus_fresh", "mAP minus the fresh model's")):
        for number, line in enumerate(shown):
            width = line.points[0].last_month - line.points[0].first_month + 1
            # Cutoffs are shifted a little, so that their bars do not overlap.
            shift = (number - (len(shown) - 1) / 2) * width * 0.08
            middles = [(point.first_month + point.last_month - 1) / 2 + shift for point in line.points]
            found: list[Interval] = [getattr(point, name) for point in line.points]
            ends = np.array([[one.value if end is None else end for end in (one.low, one.high)] for one in found])
            values = np.array([one.value for one in found])
            style = {"marker": "o", "markersize": 4, "linewidth": 1.2, "capsize": 2, "label": line.cutoff.name}
            place.errorbar(middles, values, yerr=np.maximum([values - ends[:, 0], ends[:, 1] - values], 0), **style)
        place.axvline(0, color=GREY, linewidth=1)
        place.set_xlabel("months since the cutoff")
        place.set_ylabel(label)
    both[1].axhline(0, color=GREY, linewidth=1)
    both[0].legend(frameon=False, fontsize=7, title="documents up to")
    return svg_of(figure, "Scores by months since the cutoff")
