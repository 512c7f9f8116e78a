"""Results as tables: Markdown for files, rich for the terminal. One table a benchmark, one row an encoder."""

import dataclasses
from typing import TYPE_CHECKING, Final

from .benchmark import ALL, Score
from .suites import Result, Results

if TYPE_CHECKING:
    from rich.table import Table

FAILED: Final = "failed"
_ABSENT: Final = "-"


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """One benchmark's table as text: ``rows[i][j]`` under ``columns[j]``, and the errors of failed rows by encoder."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    errors: tuple[tuple[str, str], ...]


def grids(results: Results) -> list[Grid]:
    """The tables of all benchmarks, in the order they ran."""
    names = dict.fromkeys(result.benchmark for result in results.results)
    return [_grid(name, [result for result in results.results if result.benchmark == name]) for name in names]


def markdown(results: Results) -> str:
    """GitHub-flavoured Markdown of all benchmarks."""
    blocks: list[str] = []
    for grid in grids(results):
        lines = [f"## {grid.title}", "", _line(grid.columns), _line(["---"] + ["---:"] * (len(grid.columns) - 1))]
        lines += [_line(row) for row in grid.rows]
        lines += ["", *(f"- {encoder} {FAILED}: {_escape(' '.join(error.split()))}" for encoder, error in grid.errors)]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks)


def console(results: Results) -> "list[Table]":
    """The same tables for ``rich.print``, encoders side by side, so that many languages still fit; errors stand below as captions."""
    from rich.markup import escape
    from rich.table import Table

    tables = []
    for grid in grids(results):
        caption = "\n".join(f"{encoder} {FAILED}: {error}" for encoder, error in grid.errors)
        table = Table(title=escape(grid.title), caption=escape(caption) or None, caption_justify="left")
        table.add_column("")
        for row in grid.rows:
            table.add_column(escape(row[0]), justify="right", overflow="fold", style="red" if FAILED in row else None)
        for heading, *cells in zip(grid.columns[1:], *(row[1:] for row in grid.rows), strict=True):
            table.add_row(escape(heading), *map(escape, cells))
        tables.append(table)
    return tables


def _grid(name: str, results: list[Result]) -> Grid:
    keys = list(dict.fromkeys((score.metric, score.part) for result in results for score in result.scores))
    headings = tuple(metric if part == ALL else f"{metric} {part}" for metric, part in keys) or ("score",)
    rows = []
    for result in results:
        if result.status == FAILED:
            cells = [FAILED] * len(headings) + [_ABSENT] * 3
        else:
            scores = {(score.metric, score.part): score for score in result.scores}
            cells = [_number(scores.get(key)) for key in keys]
            cells += [str(result.dimensions), f"{result.seconds:.1f}", _rate(result)]
        rows.append((result.encoder, *cells))
    errors = tuple((result.encoder, result.error) for result in results if result.status == FAILED)
    return Grid(name, ("encoder", *headings, "width", "seconds", "texts/s"), tuple(rows), errors)


def _number(score: Score | None) -> str:
    if score is None:
        return _ABSENT
    return f"{score.value:.4f}" if score.confidence is None else f"{score.value:.4f} ± {score.confidence:.4f}"


def _rate(result: Result) -> str:
    return _ABSENT if result.texts_per_second is None else f"{result.texts_per_second:.0f}"


def _line(cells: "tuple[str, ...] | list[str]") -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
