"""Plots of a build as inline SVG: funnel, dates, languages, day gaps, similarities, losses."""

import collections
import glob
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...formats import files
from ...formats.model_folder import ModelFolder
from ...formats.parquet import read_batches, shard_paths
from ..shared.charts import BESIDE, BLUE, GREY, RED, SERIES, make_axes, svg_of


def all_plots(output: str, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(title, SVG) of every plot for which the build has data."""
    figures = {
        "Records in, out, rejected and failed, by job": _funnel(rows),
        "Articles by month of their byline date": _dates(output),
        "Articles by language": _languages(output),
        "Days between anchor and positive, anchor and negative": _day_gaps(output),
        "Training loss": _losses(output),
    }
    return [(title, svg_of(figure, title)) for title, figure in figures.items() if figure is not None]


def _funnel(rows: Sequence[Mapping[str, Any]]) -> Any:
    figure, axes = make_axes(height=0.35 * len(rows) + 0.8)
    names = [row["job"] for row in rows]
    left = [0] * len(rows)
    parts = {
        "out": ([row["out"] for row in rows], BLUE),
        "rejected": ([sum(row["rejected"].values()) for row in rows], GREY),
        "failed": ([sum(row["failed"].values()) for row in rows], RED),
    }
    for label, (widths, colour) in parts.items():
        axes.barh(names, widths, left=left, color=colour, label=label)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.legend(**BESIDE)
    axes.set_xlabel("records")
    return figure


def _column(folder: str, name: str) -> Iterator[Any]:
    """Values of one column of a stream; nothing if the build has no such stream."""
    if files.list_files("part-*.parquet", folder):
        for path in shard_paths(folder):
            for batch in read_batches(path, [name]):
                yield from batch.column(name).to_pylist()


def _dates(output: str) -> Any:
    months = collections.Counter(
        date.strftime("%Y-%m") for date in _column(f"{output}/clean/articles", "byline_date") if date
    )
    if not months:
        return None
    figure, axes = make_axes()
    names = sorted(months)
    axes.bar(range(len(names)), [months[name] for name in names], color=BLUE, width=1)
    step = max(1, len(names) // 10)
    axes.set_xticks(range(0, len(names), step), names[::step], rotation=45, ha="right")
    axes.set_ylabel("articles")
    return figure


def _languages(output: str) -> Any:
    languages = collections.Counter(_column(f"{output}/clean/articles", "language")).most_common(25)
    if not languages:
        return None
    figure, axes = make_axes(height=2.4)
    bars = axes.bar([name or "unknown" for name, _ in languages], [count for _, count in languages], color=BLUE)
    axes.bar_label(bars, labels=[f"{count:,}" for _, count in languages], fontsize=7)
    axes.set_ylabel("articles")
    return figure


def _day_gaps(output: str) -> Any:
    folder = f"{output}/triplets/triplets"
    positive, negative = list(_column(folder, "positive_day_gap")), list(_column(folder, "negative_day_gap"))
    if not positive:
        return None
    figure, axes = make_axes(columns=2)
    axes[0].hist(positive, bins=[-1.5, -0.5, 0.5, 1.5], color=BLUE, rwidth=0.9)
    axes[0].set_xticks([-1, 0, 1])
    axes[0].set_xlabel("positive minus anchor (days)")
    axes[1].hist(negative, bins=60, color=RED)
    axes[1].set_xlabel("negative minus anchor (days)")
    axes[0].set_ylabel("triplets")
    return figure


def _losses(output: str) -> Any:
    paths = files.list_files(ModelFolder(f"{glob.escape(output)}/*").metrics_file)
    curves = {path.split("/")[-2]: _loss_curves(path) for path in paths}
    curves = {name: curve for name, curve in curves.items() if curve}
    if not curves:
        return None
    figure, axes = make_axes(columns=len(curves), width=5.5 * len(curves))
    for place, (name, tasks) in zip([axes] if len(curves) == 1 else axes, curves.items(), strict=True):
        for (task, points), colour in zip(sorted(tasks.items()), itertools.cycle(SERIES), strict=False):
            steps, losses = zip(*points, strict=True)
            place.plot(steps, losses, label=task, linewidth=1.2, color=colour)
        place.set_title(name)
        place.set_xlabel("step")
        place.legend(**BESIDE, fontsize=7)
    return figure


def _loss_curves(path: str) -> dict[str, list[tuple[int, float]]]:
    """Loss by step of each (task, language) set in a trainer's ``metrics.jsonl``."""
    curves: dict[str, list[tuple[int, float]]] = collections.defaultdict(list)
    with files.open_read(path) as source:
        for line in source.read().decode("utf-8").splitlines():
            row = json.loads(line)
            for name, value in row.items():
                if name == "loss" or name.startswith("loss/"):
                    curves[name].append((int(row["step"]), float(value)))
    return curves
