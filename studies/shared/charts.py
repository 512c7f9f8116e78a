"""Plots by matplotlib as SVG that is the same for the same numbers, with text as text."""

import html
import io
import re
from typing import Any, Final

_TEXT: Final = {"text.parse_math": False}  # a name of a stranger may have dollars
# Okabe and Ito's colours, distinct for all kinds of colour vision.
SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f3c8d")
GREY, BLUE, RED = "#9aa5b1", *SERIES[:2]
# Where a legend covers no curve: right of the axes.
BESIDE: Final[dict[str, Any]] = {"frameon": False, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
DASHES: Final = ("-", "--", "-.", ":")  # lines differ in style as well as colour


def make_axes(width: float = 8, height: float = 2.8, columns: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, in inches."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("svg")
    with mpl.rc_context(_TEXT | {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def svg_of(figure: Any, label: str) -> str:
    """The figure as an ``<svg>`` element, with a description that no other plot of a page has; closes the figure."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    for place in figure.axes:
        place.set_facecolor("none")
    figure.set_facecolor("none")
    buffer = io.StringIO()
    with mpl.rc_context(_TEXT | {"svg.hashsalt": label, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # ids repeat in other plots of a page
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(label, quote=True)}" ', 1)


def themed(svg: str) -> str:
    """The plot in the colours of the page that contains it, light or dark."""
    colours = {colour: f"var(--s{place})" for place, colour in enumerate(SERIES)}
    for colour, name in {"#000000": "currentColor", "#ffffff": "none", GREY: "var(--weak)", **colours}.items():
        svg = svg.replace(colour, name)
    return svg
