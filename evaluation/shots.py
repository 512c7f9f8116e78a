"""The curve of few-shot scores over the number of documents of each class (SimLTE, Figure 2), as SVG."""

import collections
import io
import re
from typing import Final

from .results import Results

_FEWEST: Final = 3  # points of a curve
_METRIC: Final = re.compile(r"(\d+)-shot (.+)")

Curves = dict[tuple[str, str], dict[str, list[tuple[int, float, float]]]]


def curves(results: Results) -> Curves:
    """Returns (shots, mean, half the 95 % interval), ascending, by encoder, by (benchmark, metric) with three or more.

    The interval covers other draws and is 0 where there is one draw.
    """
    found: Curves = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results.results:
        for score in result.scores:
            if match := _METRIC.fullmatch(score.metric):
                half = score.confidence or 0.0
                found[result.benchmark, match[2]][result.encoder].append((int(match[1]), score.value, half))
    return {
        key: {encoder: sorted(points) for encoder, points in by_encoder.items()}
        for key, by_encoder in found.items()
        if max(map(len, by_encoder.values())) >= _FEWEST
    }


def shots_plot(results: Results) -> str | None:
    """Returns the curves of all benchmarks as one SVG, a panel for each, or ``None`` if there is none."""
    panels = curves(results)
    if not panels:
        return None
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2 * len(panels)), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(len(panels), squeeze=False)[:, 0]
    for place, ((benchmark, metric), by_encoder) in zip(axes, panels.items(), strict=True):
        for encoder, points in by_encoder.items():
            shots, means, halves = zip(*points, strict=True)
            place.errorbar(shots, means, halves, marker="o", markersize=4, capsize=3, label=encoder)
        place.set_xscale("log", base=2)
        place.xaxis.set_major_formatter("{x:g}")
        place.set(title=benchmark, xlabel="documents of each class", ylabel=metric)
        place.legend(frameon=False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
