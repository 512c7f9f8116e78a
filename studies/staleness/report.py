"""The table, the plot and the numbers of a staleness study."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...evaluation.statistics import Interval
from ..shared.charts import GREY, make_axes, svg_of
from ..shared.pages import Block, Table, bullets, markdown, with_interval
from ..shared.study import Outcome, problem_lines, write_files
from .decay import Cutoff, Effect, Point, Queries, by_month, effect_of, months_since

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


@dataclasses.dataclass(frozen=True)
class Line:
    """The numbers of a cutoff; None and empty if its model or the fresh one has no scores."""

    cutoff: Cutoff
    articles: int
    triplets: int
    outcome: Outcome
    points: tuple[Point, ...] = ()
    staleness: Effect | None = None

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
            line = dataclasses.replace(line, points=tuple(points), staleness=effect)
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
        [one.cutoff.name, f"{one.articles:,}", f"{one.triplets:,}", *_effect(one.staleness), one.verdict]
        for one in lines
    ]
    rows += [["all", "", "", *_effect(pooled), pooled.verdict]] if pooled else []
    headings = ["cutoff", "articles", "triplets", "staleness", "by seed", "expected", "measured", "verdict"]
    blocks: list[Block] = [Table(headings, rows), _NOTE]
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
