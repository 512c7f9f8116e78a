"""The table, the plot and the manifest of an ablation."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...evaluation.benchmark import over_runs
from ...formats import files
from ..report.plots import BLUE, GREY, RED, make_axes, svg_of, use_house_style
from ..shared.arguments import write_text
from .conduct import OK, RowResult
from .rows import EXPECTED, FULL
from .zscores import Cell, Difference, differences, row_scores, summarise

TABLE, NUMBERS, PLOT = "table.md", "table.json", "plot.svg"
_COLOURS: Final = {"agrees": BLUE, "differs": RED}
_NOTE: Final = (
    "z: mean over steps and benchmarks of the score's z-score among all runs of this table, then over seeds; ± is half the 95 % interval of the mean over "
    "seeds (Student's t). Difference from the full system with Dunnett's 95 % interval, seeds as blocks, which holds for all rows at once; p likewise. The bars cover "
    "another seed of pretraining and training, not another corpus or other test sets. Expected is what the paper argues for each part; its own table was not at hand."
)


@dataclasses.dataclass(frozen=True)
class Line:
    """One row's numbers; None where it has none."""

    result: RowResult
    values: npt.NDArray[np.float64] | None = None
    difference: Difference | None = None

    @property
    def verdict(self) -> str:
        """Beside the expected direction: agrees, differs, within error, no error bar; or why there are no numbers."""
        if self.result.status != OK:
            return self.result.status
        return self.difference.verdict if self.difference else "-"


def lines_of(results: Sequence[RowResult]) -> list[Line]:
    """Z-scores of all rows that have scores, and their differences from the full system."""
    scored: dict[str, Sequence[Mapping[Cell, float]]] = {
        result.row.name: list(result.scores.values()) for result in results if result.status == OK
    }
    values = row_scores(scored) if scored else {}
    seeds = {result.row.name: list(result.scores) for result in results if result.status == OK}
    gaps = differences(values, seeds)
    return [Line(result, values.get(result.row.name), gaps.get(result.row.name)) for result in results]


def write_report(output: str, results: Sequence[RowResult], manifest: Mapping[str, Any]) -> list[Line]:
    """Writes ``table.md``, ``table.json`` and ``plot.svg``; returns the lines."""
    lines = lines_of(results)
    files.write_json(f"{output}/{NUMBERS}", {**manifest, "rows": [_to_json(line) for line in lines]})
    write_text(f"{output}/{TABLE}", markdown(lines))
    if any(line.values is not None for line in lines):
        write_text(f"{output}/{PLOT}", plot(lines))
    return lines


def markdown(lines: Sequence[Line]) -> str:
    """The table, the scores behind it at the last step, and what went wrong."""
    columns = (
        "row",
        "leaves out",
        "z",
        "minus full",
        "p",
        "expected",
        "measured",
        "verdict",
        "seeds",
        "triplets",
        "topics",
    )
    parts = ["# Ablation", "", _row(columns), _row(["---", "---", *["---:"] * 3, *["---"] * 3, *["---:"] * 3])]
    parts += [_row(_cells(line)) for line in lines]
    parts += ["", _NOTE, "", statement(lines), *_scores(lines)]
    wrong = [
        f"- {line.result.row.name}: {text}"
        for line in lines
        for text in (line.result.reason, *(f"seed {seed}: {problem}" for seed, problem in line.result.problems.items()))
        if text
    ]
    return "\n".join([*parts, *(["", "Failed or not applicable:", "", *wrong] if wrong else [])]) + "\n"


def statement(lines: Sequence[Line]) -> str:
    """How many rows point which way, in a sentence."""
    verdicts = [line.verdict for line in lines if line.result.row.name != FULL]
    lower = sum(line.difference is not None and line.difference.direction == EXPECTED for line in lines)
    counts = ", ".join(
        f"{verdicts.count(name)} {name}"
        for name in ("agrees", "differs", "within error", "no error bar", "failed", "not applicable")
        if name in verdicts
    )
    return f"Of {len(verdicts)} rows: {counts or 'none compared'}. {lower} of the measured means lie below the full system's."


def _cells(line: Line) -> list[str]:
    result = line.result
    head = [result.row.name, result.row.removes]
    expected = "-" if result.row.name == FULL else EXPECTED
    if line.values is None:
        return [*head, *["-"] * 3, expected, "-", result.status, f"0 of {len(result.problems) or '-'}", *["-"] * 2]
    score, gap = summarise(line.values), line.difference
    z = f"{score.value:+.2f}" if score.confidence is None else f"{score.value:+.2f} ± {score.confidence:.2f}"
    seeds = f"{len(result.scores)} of {len(result.scores) + len(result.problems)}"
    counts = [f"{result.examples.get(task, 0):,}" for task in ("triplets", "topics")]
    return [*head, z, _gap(gap), _p(gap), expected, *_measured(line), seeds, *counts]


def _measured(line: Line) -> list[str]:
    return [line.difference.direction if line.difference else "-", line.verdict]


def _p(gap: Difference | None) -> str:
    if gap is None or gap.p is None:
        return "-"
    return f"{gap.p:.3f}" if gap.p >= 0.001 else "< 0.001"


def _gap(gap: Difference | None) -> str:
    if gap is None:
        return "-"
    return (
        f"{gap.mean:+.2f}"
        if gap.low is None or gap.high is None
        else f"{gap.mean:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})"
    )


def _scores(lines: Sequence[Line]) -> list[str]:
    """A table of the plain scores at the last step, mean over seeds."""
    measured = [line for line in lines if line.values is not None]
    if not measured:
        return []
    first = measured[0].result
    cells = list(next(iter(first.scores.values())))
    last = max((step for step, _ in cells), key=int)
    names = [benchmark for step, benchmark in cells if step == last]
    rows = [["row", *(f"{name}, {first.metrics[name]}" for name in names)], ["---", *["---:"] * len(names)]]
    for line in measured:
        by_seed = line.result.scores.values()
        means = [over_runs("", [scores[last, name] for scores in by_seed], "", 0) for name in names]
        rows.append(
            [
                line.result.row.name,
                *(
                    f"{score.value:.4f}" + (f" ± {score.confidence:.4f}" if score.confidence is not None else "")
                    for score in means
                ),
            ]
        )
    return ["", f"Scores after {last} steps, mean over seeds ± half the 95 % interval:", "", *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"


def plot(lines: Sequence[Line]) -> str:
    """Each row's difference from the full system with its interval, as SVG."""
    use_house_style()
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
    axes.set_xlabel("z-score minus the full system's, with Dunnett's 95 % interval; left of the line: the part helps")
    return svg_of(figure)


def _to_json(line: Line) -> dict[str, Any]:
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
        "minus_full": None if line.difference is None else dataclasses.asdict(line.difference),
        "expected": None if result.row.name == FULL else EXPECTED,
        "verdict": line.verdict,
        "examples": dict(result.examples),
        "training_seconds": result.seconds,
        "metrics": dict(result.metrics),
        "scores": [
            {"seed": seed, "step": int(step), "benchmark": benchmark, "value": value}
            for seed, cells in result.scores.items()
            for (step, benchmark), value in cells.items()
        ],
    }
