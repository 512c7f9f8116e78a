"""Results as tables, one for each benchmark: Markdown for files, rich for the terminal."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .benchmark import ALL, Score
from .compare import Comparison, FoldComparison, PrintedComparison, compare, compare_folds, compare_printed
from .crosslingual import AVERAGES
from .published import beside
from .results import Result, Results

if TYPE_CHECKING:
    from rich.table import Table

FAILED: Final = "failed"
_ABSENT: Final = "-"
_OVERALL: Final = {ALL, *AVERAGES}


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """The table of one benchmark as text.

    Attributes:
      title: name of the benchmark.
      columns: headings.
      rows: cells; ``rows[i][j]`` belongs to ``columns[j]``.
      errors: (encoder, error) of the failed rows.
      notes: sources of published numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    errors: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


def grids(results: Results) -> list[Grid]:
    """Returns the tables of all benchmarks, in the order in which they ran."""
    names = dict.fromkeys(result.benchmark for result in results.results)
    facts = results.manifest.get("benchmarks", {})
    return [
        _grid(name, [result for result in results.results if result.benchmark == name], facts.get(name, {}))
        for name in names
    ]


def markdown(results: Results) -> str:
    """Returns the tables of all benchmarks as GitHub-flavoured Markdown."""
    return "\n\n".join(_block(grid) for grid in grids(results))


def _block(grid: Grid) -> str:
    lines = [f"## {grid.title}", "", _line(grid.columns), _line(["---"] + ["---:"] * (len(grid.columns) - 1))]
    lines += [_line(row) for row in grid.rows]
    lines += ["", *(f"- {encoder} {FAILED}: {_escape(' '.join(error.split()))}" for encoder, error in grid.errors)]
    lines += [f"- {note}" for note in grid.notes]
    return "\n".join(lines).rstrip()


def report(results: Results) -> str:
    """Returns ``results.md``: one table over all benchmarks, a table for each benchmark, t-tests and leakage."""
    recipe = [_block(main_scores(results))] if "recipe" in results.manifest else []
    blocks = [_block(summary(results)), markdown(results)] if len(grids(results)) > 1 else [markdown(results)]
    tests = (_comparisons(results), _fold_comparisons(results), _printed_comparisons(results), _leakage(results))
    blocks = recipe + blocks + [_block(grid) for grid in tests if grid.rows]
    if any(score.confidence is not None for result in results.results for score in result.scores):
        interval = "95 % confidence interval of the mean over seeds, folds or repeats (Student's t)"
        blocks.append(f"± is half the width of the {interval}.")
    if any(score.low is not None for result in results.results for score in result.scores):
        blocks.append("[low, high] is the 95 % bootstrap interval over events, or over pairs of sentences.")
    return "\n\n".join(blocks)


def summary(results: Results) -> Grid:
    """Returns a table of encoders side by side: overall scores on all benchmarks, time and rate of embedding."""
    encoders = list(dict.fromkeys(result.encoder for result in results.results))
    cells = {(result.encoder, result.benchmark): result for result in results.results}
    rows: list[tuple[str, ...]] = []
    for benchmark in dict.fromkeys(result.benchmark for result in results.results):
        here = [cells[encoder, benchmark] for encoder in encoders]
        keys = dict.fromkeys(
            (score.metric, score.part) for result in here for score in result.scores if score.part in _OVERALL
        )
        for metric, part in keys or {("score", ALL): None}:
            shown = [
                FAILED
                if result.status == FAILED
                else _number(next((s for s in result.scores if (s.metric, s.part) == (metric, part)), None))
                for result in here
            ]
            rows.append((benchmark, metric if part == ALL else f"{metric} {part}", *shown))
        rates = [
            _ABSENT if result.status == FAILED else f"{result.seconds:.1f} s, {_rate(result)}/s" for result in here
        ]
        rows.append((benchmark, "time, texts/s", *rates))
    return Grid("All benchmarks", ("benchmark", "metric", *encoders), tuple(rows), ())


def main_scores(results: Results) -> Grid:
    """Returns the table of a recipe: encoders in rows, the main score of each benchmark in columns, then the notes."""
    recipe = results.manifest["recipe"]
    encoders = list(dict.fromkeys(result.encoder for result in results.results))
    cells: dict[tuple[str, str], str] = {}
    headings: dict[str, str] = {}
    for result in results.results:
        metric = recipe["metrics"].get(result.benchmark, "")
        overall = [score for score in result.scores if score.part in _OVERALL]
        shown = next((score for score in overall if not metric or score.metric == metric), None)
        cells[result.encoder, result.benchmark] = FAILED if result.status == FAILED else _number(shown)
        headings.setdefault(result.benchmark, result.benchmark)
        if shown is not None:
            headings[result.benchmark] = f"{result.benchmark}, {shown.metric}"
    rows = tuple((encoder, *(cells[encoder, benchmark] for benchmark in headings)) for encoder in encoders)
    notes = tuple(f"{name}: {note}" for name, note in recipe["notes"].items())
    return Grid("Main scores", ("encoder", *headings.values()), rows, (), notes)


def console(results: Results) -> "list[Table]":
    """Returns the tables for ``rich.print``: a column for each encoder, so that many languages fit."""
    from rich.markup import escape
    from rich.table import Table

    tables = []
    first = [main_scores(results)] if "recipe" in results.manifest else []
    for grid in [*first, *grids(results)]:
        table = Table(title=escape(grid.title), title_justify="left")
        table.add_column("")
        for row in grid.rows:
            table.add_column(escape(row[0]), justify="right", overflow="fold", style="red" if FAILED in row else None)
        for heading, *cells in zip(grid.columns[1:], *(row[1:] for row in grid.rows), strict=True):
            table.add_row(escape(heading), *map(escape, cells))
        tables.append(table)
    return tables


def _grid(name: str, results: list[Result], facts: Mapping[str, Any]) -> Grid:
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
    theirs: dict[str, dict[tuple[str, str], float]] = {}
    sources = []
    for encoder, key, value, source in beside(facts, keys) if facts else ():
        theirs.setdefault(f"{encoder} (published)", {})[key] = value
        sources.append(source)
    for encoder, values in theirs.items():
        rows.append((encoder, *(f"{values[key]:.4f}" if key in values else _ABSENT for key in keys), *[_ABSENT] * 3))
    notes = tuple(f"published: {source}" for source in dict.fromkeys(sources))
    return Grid(name, ("encoder", *headings, "width", "seconds", "texts/s"), tuple(rows), errors, notes)


def _t_test(row: Comparison | FoldComparison | PrintedComparison, part: str, names: str) -> tuple[str, ...]:
    return row.benchmark, part, names, f"{row.difference:+.4f}", f"{row.t:.2f}", f"{row.p:.4f}"


def _comparisons(results: Results) -> Grid:
    rows = tuple(
        (*_t_test(row, row.group, f"{row.first} - {row.second}"), str(row.cells)) for row in compare(results.results)
    )
    return Grid(
        "Paired t-tests over X→Y cells", ("benchmark", "cells", "encoders", "difference", "t", "p", "count"), rows, ()
    )


def _fold_comparisons(results: Results) -> Grid:
    rows = tuple(
        (
            *_t_test(row, row.group, f"{row.first} - {row.second}"),
            f"{row.corrected_t:.2f}",
            f"{row.corrected_p:.4f}",
            str(row.folds),
        )
        for row in compare_folds(results.results)
    )
    columns = ("benchmark", "part", "encoders", "difference", "t", "p", "corrected t", "corrected p", "folds")
    return Grid("Paired t-tests over folds (corrected: Nadeau and Bengio)", columns, rows, ())


def _printed_comparisons(results: Results) -> Grid:
    found = compare_printed(results.results, results.manifest.get("benchmarks", {}))
    rows = tuple((*_t_test(row, row.part, f"{row.encoder} - {row.system}"), str(row.folds)) for row in found)
    columns = ("benchmark", "part", "encoder and printed system", "difference", "t", "p", "folds")
    notes = tuple(dict.fromkeys(row.source for row in found))
    return Grid("One-sample t-tests of folds against printed figures", columns, rows, (), notes)


def _leakage(results: Results) -> Grid:
    facts = results.manifest.get("leakage", {})
    rows = tuple(
        (name, *(str(row[key]) for key in ("texts", "exact", "near")))
        for name, row in facts.get("benchmarks", {}).items()
    )
    left_out = "left out" if facts.get("dropped") else "kept"
    return Grid(f"Texts among the training articles ({left_out})", ("benchmark", "texts", "exact", "near"), rows, ())


def _number(score: Score | None) -> str:
    if score is None:
        return _ABSENT
    if score.low is not None and score.high is not None:
        return f"{score.value:.4f} [{score.low:.4f}, {score.high:.4f}]"
    return f"{score.value:.4f}" if score.confidence is None else f"{score.value:.4f} ± {score.confidence:.4f}"


def _rate(result: Result) -> str:
    return _ABSENT if result.texts_per_second is None else f"{result.texts_per_second:.0f}"


def _line(cells: "tuple[str, ...] | list[str]") -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
