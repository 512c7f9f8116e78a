"""The table, the plot and the manifest of a staleness study."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...evaluation.intervals import FloatArray, Interval
from ..report.plots import GREY, make_axes, svg_of, use_plain_style
from ..shared.report import bullets, markdown_table, with_interval, write_files
from .conduct import FRESH, ModelResult
from .cutoffs import Cutoff, months_since
from .decay import EXPECTED, Point, Staleness, by_month, direction, pooled_staleness, staleness

_NOTE: Final = (
    "mAP: same-event retrieval, mean over queries and seeds. Minus fresh: the difference from the model that was "
    "trained on all documents, on the same queries. In brackets: 95 % interval, bootstrap over events with all of "
    "their queries. Staleness of a cutoff: minus fresh after the cutoff less that up to it; negative: later events "
    "are retrieved worse, beyond the effect of fewer documents. A verdict agrees or differs only if the interval and "
    "every seed are on one side of 0. The bars cover other events, not another corpus. Expected: the score falls with "
    "the months, as we read the paper's appendix C, whose figures were not available."
)


@dataclasses.dataclass(frozen=True)
class Queries:
    """The event and the byline day of each query."""

    events: tuple[str, ...]
    days: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Line:
    """The numbers of a cutoff; None and empty if its model or the fresh one has no scores."""

    cutoff: Cutoff
    articles: int
    result: ModelResult
    points: tuple[Point, ...] = ()
    staleness: Staleness | None = None

    @property
    def verdict(self) -> str:
        """Whether the scores decay as expected, or why that is unknown."""
        if not self.result.scores:
            return "failed"
        return self.staleness.verdict if self.staleness else "no queries on both sides"


def lines_of(
    cutoffs: Sequence[Cutoff],
    articles: Mapping[str, int],
    results: Sequence[ModelResult],
    queries: Queries,
    bin_months: int,
) -> tuple[list[Line], Staleness | None]:
    """The numbers of every cutoff, and the pooled staleness of those that have scores."""
    by_name = {result.name: result for result in results}
    fresh = by_name[FRESH]
    lines, pooled = [], []
    for cutoff in cutoffs:
        result = by_name[cutoff.name]
        seeds = sorted(set(result.scores) & set(fresh.scores))
        if not seeds:
            lines.append(Line(cutoff, articles[cutoff.name], result))
            continue
        ours, theirs = (np.stack([model.scores[seed] for seed in seeds]) for model in (result, fresh))
        months = months_since(queries.days, cutoff)
        points = by_month(ours.mean(axis=0), theirs.mean(axis=0), months, queries.events, bin_months)
        found = staleness(ours, theirs, months, queries.events)
        lines.append(Line(cutoff, articles[cutoff.name], result, tuple(points), found))
        if found is not None:
            pooled.append((ours, theirs, months))
    return lines, _pool(pooled, queries)


def _pool(cutoffs: list[tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]], queries: Queries) -> Staleness | None:
    """The staleness of all cutoffs together; None if they have different numbers of seeds."""
    if len(cutoffs) < 2 or len({len(seeds) for seeds, _, _ in cutoffs}) > 1:
        return None
    return pooled_staleness(cutoffs, queries.events)


def write_report(
    output: str, lines: Sequence[Line], pooled: Staleness | None, fresh: ModelResult, manifest: Mapping[str, Any]
) -> None:
    """Writes ``table.md``, ``table.json`` and ``plot.svg``."""
    numbers = {
        "cutoffs": [_to_json(line) for line in lines],
        "all": _staleness_json(pooled),
        "fresh": _result_json(fresh),
    }
    shown = plot(lines) if any(line.points for line in lines) else None
    write_files(output, {**manifest, **numbers}, markdown(lines, pooled, fresh), shown)


def markdown(lines: Sequence[Line], pooled: Staleness | None, fresh: ModelResult) -> str:
    """Staleness by cutoff, then scores by the months since."""
    numbers = dict.fromkeys(("articles", "triplets", "staleness", "by seed"), ":")
    columns = {"cutoff": "", **numbers, **dict.fromkeys(("expected", "measured", "verdict"), "")}
    rows = [
        [
            line.cutoff.name,
            f"{line.articles:,}",
            f"{line.result.examples.get('triplets', 0):,}",
            *_effect(line.staleness, line.verdict),
        ]
        for line in lines
    ]
    if pooled is not None:
        rows.append(["all", "", "", *_effect(pooled, pooled.verdict)])
    parts = ["# Staleness", "", *markdown_table(columns, rows), "", _NOTE]
    points = [_point(line, point) for line in lines for point in line.points]
    if points:
        scored = dict.fromkeys(("months since", "mAP", "minus fresh", "queries", "events"), ":")
        parts += ["", *markdown_table({"cutoff": "", **scored}, points)]
    wrong = [
        f"{result.name}, {where}: {text}"
        for result in (*(line.result for line in lines), fresh)
        for where, text in result.problems.items()
    ]
    return "\n".join([*parts, *bullets("Failed:", wrong)]) + "\n"


def _effect(found: Staleness | None, verdict: str) -> list[str]:
    if found is None:
        return ["-", "-", EXPECTED, "-", verdict]
    by_seed = ", ".join(f"{value:+.4f}" for value in found.by_seed)
    return [_interval(found.effect, "+.4f"), by_seed, EXPECTED, direction(found.effect), verdict]


def _point(line: Line, point: Point) -> list[str]:
    months = f"{point.first_month} to {point.last_month}"
    scores = [_interval(point.score, ".4f"), _interval(point.minus_fresh, "+.4f")]
    return [line.cutoff.name, months, *scores, str(point.queries), str(point.events)]


def _interval(found: Interval, form: str) -> str:
    return with_interval(found.value, found.low, found.high, form)


def plot(lines: Sequence[Line]) -> str:
    """Score, and its difference from the fresh model's, by months since the cutoff, as SVG with intervals."""
    use_plain_style()
    figure, both = make_axes(width=10, height=3.4, columns=2)
    shown = [line for line in lines if line.points]
    for place, name, label in ((both[0], "score", "mAP"), (both[1], "minus_fresh", "mAP minus the fresh model's")):
        for number, line in enumerate(shown):
            width = line.points[0].last_month - line.points[0].first_month + 1
            # Cutoffs are shifted a little, so that their bars do not overlap.
            shift = (number - (len(shown) - 1) / 2) * width * 0.08
            middles = [(point.first_month + point.last_month - 1) / 2 + shift for point in line.points]
            found: list[Interval] = [getattr(point, name) for point in line.points]
            ends = [
                [i.value - (i.value if i.low is None else i.low) for i in found],
                [(i.value if i.high is None else i.high) - i.value for i in found],
            ]
            place.errorbar(
                middles,
                [i.value for i in found],
                yerr=np.maximum(ends, 0),
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=line.cutoff.name,
            )
        place.axvline(0, color=GREY, linewidth=1)
        place.set_xlabel("months since the cutoff")
        place.set_ylabel(label)
    both[1].axhline(0, color=GREY, linewidth=1)
    both[0].legend(frameon=False, fontsize=7, title="documents up to")
    figure.tight_layout()
    return svg_of(figure)


def _to_json(line: Line) -> dict[str, Any]:
    return {
        "cutoff": line.cutoff.name,
        "last_day": line.cutoff.last_day.isoformat(),
        "articles": line.articles,
        "verdict": line.verdict,
        "staleness": _staleness_json(line.staleness),
        "months": [dataclasses.asdict(point) for point in line.points],
        **_result_json(line.result),
    }


def _staleness_json(found: Staleness | None) -> dict[str, Any] | None:
    return None if found is None else dataclasses.asdict(found) | {"expected": EXPECTED, "verdict": found.verdict}


def _result_json(result: ModelResult) -> dict[str, Any]:
    means = {str(seed): float(np.nanmean(values)) for seed, values in result.scores.items()}
    return {
        "problems": dict(result.problems),
        "examples": dict(result.examples),
        "training_seconds": result.seconds,
        "mAP_by_seed": means,
    }
