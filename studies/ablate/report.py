"""The table, the plot and the manifest of an ablation."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...evaluation.benchmark import over_runs
from ...evaluation.compare import FoldComparison, compare_folds
from ..report.plots import BLUE, GREY, RED, make_axes, svg_of, use_plain_style
from ..shared.report import bullets, markdown_table, with_interval, write_files
from . import parts
from .conduct import OK, RowResult
from .paired import RowTest, p_text, row_tests, section, sentence
from .table import Table
from .zscores import Cell, Difference, differences, row_scores, summarise

_COLOURS: Final = {"agrees": BLUE, "differs": RED}
_VERDICTS: Final = ("agrees", "differs", "within error", "no error bar", "failed", "not applicable")
_NOTE: Final = (
    "z: mean over steps and benchmarks of the score's z-score among all runs of this table, then over seeds; ± is half "
    "the 95 % interval of the mean over seeds (Student's t). The difference from {control} has Dunnett's 95 % interval "
    "with seeds as blocks, which holds for all rows at once, and its p. The bars cover other seeds of pretraining and "
    "training, not another corpus or other test sets."
)


@dataclasses.dataclass(frozen=True)
class Line:
    """The numbers of one row; None where it has none.

    Attributes:
      result: the outcome of the row.
      is_control: whether it is the control.
      values: Z of each seed, float64 ``[seeds]``.
      difference: from the control.
    """

    result: RowResult
    is_control: bool
    values: npt.NDArray[np.float64] | None = None
    difference: Difference | None = None

    @property
    def verdict(self) -> str:
        """How the difference compares with the expected direction, or why there is none."""
        if self.result.status != OK:
            return self.result.status
        return self.difference.verdict(self.result.row.expected) if self.difference else "-"

    @property
    def expected(self) -> str | None:
        """The expected direction; None for the control."""
        return None if self.is_control else self.result.row.expected


def lines_of(table: Table, results: Sequence[RowResult]) -> list[Line]:
    """Z-scores of all rows that have scores, and their differences from the control."""
    scored: dict[str, Sequence[Mapping[Cell, float]]] = {
        result.row.name: list(result.scores.values()) for result in results if result.status == OK
    }
    values = row_scores(scored) if scored else {}
    seeds = {result.row.name: list(result.scores) for result in results if result.status == OK}
    gaps = differences(values, table.control, seeds)
    return [
        Line(result, result.row.name == table.control, values.get(result.row.name), gaps.get(result.row.name))
        for result in results
    ]


def write_report(
    output: str, table: Table, results: Sequence[RowResult], manifest: Mapping[str, Any]
) -> tuple[str, str]:
    """Writes ``table.md``, ``table.json`` and ``plot.svg``; returns the Markdown and its :func:`statement`."""
    lines = lines_of(table, results)
    text = markdown(table, lines)
    tests = row_tests(table, results)
    numbers = {**manifest, "rows": [_to_json(table, line, lines, tests) for line in lines]}
    if table.by_part:
        numbers["parts"] = [one.to_dict() for one in parts.part_scores(table, results)]
    write_files(output, numbers, text, plot(table, lines) if any(line.values is not None for line in lines) else None)
    return text, statement(table, lines)


def markdown(table: Table, lines: Sequence[Line]) -> str:
    """The table, the scores at the last step, and what went wrong."""
    words = {"row": "", "leaves out": ""}
    numbers = dict.fromkeys(("z", f"minus {table.control}", "p"), ":")
    judged = dict.fromkeys(("expected", "measured", "verdict"), "")
    counts = dict.fromkeys(("seeds", *table.counted), ":")
    rows = [_cells(table, line) for line in lines]
    note = f"{_NOTE.format(control=table.control)} {table.note}".strip()
    wrong = [
        f"{line.result.row.name}: {text}"
        for line in lines
        for text in (line.result.reason, *(f"seed {seed}: {problem}" for seed, problem in line.result.problems.items()))
        if text
    ]
    found = [f"# {table.title}", "", *markdown_table(words | numbers | judged | counts, rows), "", note, ""]
    results = [line.result for line in lines]
    by_part = parts.section(table, parts.part_scores(table, results)) if table.by_part else []
    found += [statement(table, lines), *_scores(lines), *by_part, *section(table, row_tests(table, results))]
    found += [*_folds(table, lines), *_printed(table), *bullets("Failed or not applicable:", wrong)]
    return "\n".join(found) + "\n"


def statement(table: Table, lines: Sequence[Line]) -> str:
    """How many rows point in which direction, and the paired tests of the benchmarks that have some, in one line."""
    others = [line for line in lines if not line.is_control]
    verdicts = [line.verdict for line in others]
    measured = [line for line in others if line.difference is not None]
    expected = sum(line.difference is not None and line.difference.direction == line.expected for line in measured)
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in _VERDICTS if name in verdicts)
    text = (
        f"Of {len(others)} rows: {counts or 'none compared'}. "
        f"{expected} of {len(measured)} measured means differ in the expected direction."
    )
    return f"{text} {sentence(table, row_tests(table, [line.result for line in lines]))}".rstrip()


def _cells(table: Table, line: Line) -> list[str]:
    result = line.result
    head, expected = [result.row.name, result.row.removes], line.expected or "-"
    if line.values is None:
        seeds = f"0 of {len(result.problems) or '-'}"
        return [*head, *["-"] * 3, expected, "-", result.status, seeds, *["-"] * len(table.counted)]
    score, gap = summarise(line.values), line.difference
    z = f"{score.value:+.2f}" if score.confidence is None else f"{score.value:+.2f} ± {score.confidence:.2f}"
    seeds = f"{len(result.scores)} of {len(result.scores) + len(result.problems)}"
    counts = [f"{result.examples.get(task, 0):,}" for task in table.counted]
    difference = with_interval(gap.mean, gap.low, gap.high, "+.2f") if gap else "-"
    direction = gap.direction if gap else "-"
    return [*head, z, difference, p_text(gap.p if gap else None), expected, direction, line.verdict, seeds, *counts]


def _scores(lines: Sequence[Line]) -> list[str]:
    """A table of the plain scores at the last step, mean over seeds."""
    measured = [line for line in lines if line.values is not None]
    if not measured:
        return []
    first = measured[0].result
    scored = list(next(iter(first.scores.values())))
    last = max((step for step, _ in scored), key=int)
    names = [benchmark for step, benchmark in scored if step == last]
    rows = []
    for line in measured:
        by_seed = line.result.scores.values()
        means = [over_runs("", [scores[last, name] for scores in by_seed], "", 0) for name in names]
        cells = [
            f"{one.value:.4f}" + (f" ± {one.confidence:.4f}" if one.confidence is not None else "") for one in means
        ]
        rows.append([line.result.row.name, *cells])
    columns = {"row": "", **{f"{name}, {first.metrics[name]}": ":" for name in names}}
    heading = f"Scores after {last} steps, mean over seeds ± half the 95 % interval:"
    return ["", heading, "", *markdown_table(columns, rows)]


def _folds(table: Table, lines: Sequence[Line]) -> list[str]:
    """The paired t-tests of each row against the control over the folds of the benchmarks that have some, by seed."""
    tests = {line.result.row.name: fold_tests(table, lines, line) for line in lines}
    rows = [
        [
            name,
            test.benchmark,
            test.group,
            str(seed),
            f"{test.difference:+.4f}",
            _digits(test.p),
            _digits(test.corrected_p),
        ]
        for name, found in tests.items()
        for seed, test in found
        if table.group.lower() in ("all", test.group.lower())
    ]
    if not rows:
        return []
    columns = dict.fromkeys(("row", "benchmark", "part"), "") | dict.fromkeys(
        ("seed", "difference", "p", "p, corrected"), ":"
    )
    heading = (
        f"Minus {table.control} with the same seed at the last step: two-sided paired t-tests over folds, and with the "
        "variance of Nadeau and Bengio (2003), since folds whose halves swap are not independent:"
    )
    return ["", heading, "", *markdown_table(columns, rows)]


def fold_tests(table: Table, lines: Sequence[Line], line: Line) -> list[tuple[int, FoldComparison]]:
    """The seed and the test of each benchmark with folds, of a row against the control; none of the control itself."""
    control = next(other.result for other in lines if other.is_control)
    found = []
    for seed, results in line.result.results.items() if not line.is_control else ():
        for one in results:
            for two in control.results.get(seed, ()):
                left, right = (
                    dataclasses.replace(result, encoder=name)
                    for result, name in ((one, line.result.row.name), (two, table.control))
                )
                found += [(seed, test) for test in compare_folds([left, right])]
    return found


def _digits(p: float) -> str:
    return "-" if math.isnan(p) else f"{p:.4f}"


def _printed(table: Table) -> list[str]:
    """The published figures of the rows that have some."""
    metrics = list(dict.fromkeys(metric for figures in table.printed.values() for metric in figures))
    if not metrics:
        return []
    rows = [
        [name, *(f"{figures[metric]:.4f}" if metric in figures else "-" for metric in metrics)]
        for name, figures in table.printed.items()
    ]
    return ["", "Printed figures:", "", *markdown_table({"row": "", **dict.fromkeys(metrics, ":")}, rows)]


def plot(table: Table, lines: Sequence[Line]) -> str:
    """Each row's difference from the control with its interval, as SVG."""
    use_plain_style()
    shown = [line for line in lines if line.difference is not None]
    figure, axes = make_axes(width=7.5, height=0.32 * max(1, len(shown)) + 1.1)
    axes.axvline(0, color=GREY, linewidth=1)
    for place, line in enumerate(shown):
        gap = line.difference
        if gap is None:
            continue
        colour = _COLOURS.get(line.verdict, GREY)
        if gap.low is not None and gap.high is not None:
            axes.plot([gap.low, gap.high], [place, place], color=colour, linewidth=1.5)
        axes.plot([gap.mean], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(shown)), [f"{line.result.row.name} ({line.verdict})" for line in shown])
    axes.invert_yaxis()
    axes.set_xlabel(f"z-score minus that of {table.control}, with Dunnett's 95 % interval")
    return svg_of(figure)


def _to_json(table: Table, line: Line, lines: Sequence[Line], tests: Sequence[RowTest]) -> dict[str, Any]:
    result = line.result
    z = summarise(line.values) if line.values is not None else None
    return {
        "row": result.row.name,
        "removes": result.row.removes,
        "gin_file": result.row.gin_file,
        "status": result.status,
        "reason": result.reason,
        "problems": {str(seed): problem for seed, problem in result.problems.items()},
        "z": None if z is None else {"mean": z.value, "std": z.std, "half_interval": z.confidence, "runs": z.runs},
        "z_by_seed": None
        if line.values is None
        else dict(zip(map(str, result.scores), line.values.tolist(), strict=True)),
        f"minus_{table.control}": None if line.difference is None else dataclasses.asdict(line.difference),
        "expected": line.expected,
        "verdict": line.verdict,
        "examples": dict(result.examples),
        "folds": [{"seed": seed, **test.to_dict()} for seed, test in fold_tests(table, lines, line)],
        "paired": [test.to_dict() for test in tests if test.row == result.row.name],
        "training_seconds": result.seconds,
        "metrics": dict(result.metrics),
        "scores": [
            {"seed": seed, "step": int(step), "benchmark": benchmark, "value": value}
            for seed, cells in result.scores.items()
            for (step, benchmark), value in cells.items()
        ],
    }
