"""Plots by matplotlib as SVG that is the same for the same numbers, with text as text."""

import html
import io
import re
from typing import Any, Final

_TEXT: Final = {"text.parse_math": False}  # a name of a stranger may have dollars
GREY, BLUE, RED = "#9aa5b1", "#2f6fab", "#c0504d"
# Okabe and Ito's colours, distinct for all kinds of colour vision.
SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f3c8d")
DASHES: Final = ("-", "--", "-.", ":")  # lines differ in style as well as colour


def make_axes(width: float = 8, height: float = 2.8, columns: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, in inches."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("svg")
    with mpl.rc_context(_TEXT | {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        return plt.subplots(1, columns, figsize=(width, height))


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
