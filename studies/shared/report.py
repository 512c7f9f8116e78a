"""The report that a study writes: ``table.md``, ``table.json`` and ``plot.svg``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...formats import files
from .arguments import write_text

TABLE: Final = "table.md"
NUMBERS: Final = "table.json"
PLOT: Final = "plot.svg"


def write_files(output: str, numbers: Mapping[str, Any], text: str, plot: str | None) -> None:
    """Writes the three files.

    Args:
      output: folder of the study.
      numbers: JSON values.
      text: Markdown.
      plot: SVG; None if there is nothing to plot, which leaves an earlier file as it is.
    """
    files.write_json(f"{output}/{NUMBERS}", numbers)
    write_text(f"{output}/{TABLE}", text)
    if plot is not None:
        write_text(f"{output}/{PLOT}", plot)


def places_line(output: str) -> str:
    """The paths of the three files, for the terminal."""
    return f"table: {output}/{TABLE}   numbers: {output}/{NUMBERS}   plot: {output}/{PLOT}"


def markdown_table(columns: Mapping[str, str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table.

    Args:
      columns: ":" for a column that is aligned to the right, "" for one to the left, by heading.
      rows: the cells, as text.
    """
    return [_row(list(columns)), _row([f"---{side}" for side in columns.values()]), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"


def bullets(heading: str, lines: Sequence[str]) -> list[str]:
    """The lines of a Markdown list below its heading; none for an empty list."""
    return ["", heading, "", *(f"- {line}" for line in lines)] if lines else []


def with_interval(value: float, low: float | None, high: float | None, form: str) -> str:
    """A number and, where there is one, its interval in brackets, all in the format ``form``."""
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"
