"""Charts of a diagnosis as inline SVG in the light or dark colours of the page."""

import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

# Okabe and Ito's colours, distinct for all kinds of colour vision; the page gives each a light and a dark value.
SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f3c8d")
_INK: Final = "#010203"  # stands for the page's own text colour
_DASHES: Final = ("-", "--", "-.", ":")  # lines differ in style as well as colour
_SIDE, _DOT = 420, 3.2  # of a map and its points, in SVG units


def histograms(title: str, edges: Sequence[float], counts: Mapping[str, Sequence[int]]) -> str:
    """Outlined histograms of cosines of several kinds over one axis, each of area 1; titles are unique on a page."""
    import numpy as np

    figure, place = _start()
    for number, (name, values) in enumerate(counts.items()):
        density = np.array(values) / max(1, sum(values)) / np.diff(edges)
        colour = SERIES[number % len(SERIES)]
        place.stairs(density, edges, color=colour, linestyle=_DASHES[number % len(_DASHES)], linewidth=1.6, label=name)
        place.stairs(density, edges, fill=True, color=colour, alpha=0.12)
    place.set_xlabel("cosine")
    place.set_ylabel("density")
    place.legend(frameon=False)
    return _finish(figure, f"{title}: histograms of {', '.join(counts)} over cosine")


def lines(title: str, points: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Lines with marked points over a logarithmic axis of lengths."""
    figure, place = _start()
    for number, (name, values) in enumerate(points.items()):
        xs, ys = [x for x, _ in values], [y for _, y in values]
        style = _DASHES[number % len(_DASHES)]
        place.plot(
            xs,
            ys,
            color=SERIES[number % len(SERIES)],
            linestyle=style,
            marker="o",
            markersize=4,
            linewidth=1.6,
            label=name,
        )
    place.set_xscale("log", base=2)
    place.xaxis.set_major_formatter("{x:g}")
    place.set_xlabel(x_label)
    place.set_ylabel(y_label)
    place.legend(frameon=False)
    return _finish(figure, f"{title}: {y_label} by {x_label}: {', '.join(points)}")


def scatter(points: Sequence[Sequence[float]], titles: Sequence[str], classes: Sequence[str], label: str) -> str:
    """A map: one dot for each point, with its title on hover; the page colours the dots by their classes.

    Args:
      points: ``[N][2]``, in any unit.
      titles: of the points.
      classes: of the points, space-separated.
      label: description of the map.
    """
    xs, ys = [x for x, _ in points], [y for _, y in points]
    span = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    scale = (_SIDE - 4 * _DOT) / span
    left, top = (min(xs) + max(xs) - span) / 2, (min(ys) + max(ys) + span) / 2
    dots = "".join(
        f'<circle cx="{(x - left) * scale + 2 * _DOT:.1f}" cy="{(top - y) * scale + 2 * _DOT:.1f}" r="{_DOT}" '
        f'class="{own}"><title>{html.escape(title)}</title></circle>'
        for x, y, title, own in zip(xs, ys, titles, classes, strict=True)
    )
    described = f'role="img" aria-label="{html.escape(label, quote=True)}"'
    return f'<svg class="dots" viewBox="0 0 {_SIDE} {_SIDE}" {described}>{dots}</svg>'


def _start() -> tuple[Any, Any]:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("svg")
    ink = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK)
    with mpl.rc_context({**ink, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        return plt.subplots(figsize=(7.2, 2.6))


def _finish(figure: Any, label: str) -> str:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    for place in figure.axes:
        place.set_facecolor("none")
        for text in place.get_legend().get_texts():
            text.set_color(_INK)
    figure.set_facecolor("none")
    buffer = io.StringIO()
    # The same salt gives the same bytes; text is kept as text, so that it can be searched and read aloud.
    with mpl.rc_context({"svg.hashsalt": label, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # ids repeat in other charts of the page
    for number, colour in enumerate(SERIES):
        text = text.replace(colour, f"var(--s{number})")
    text = text.replace(_INK, "currentColor")
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(label, quote=True)}" ', 1)
