"""The parts of the benchmarks of an ablation, such as languages: the scores of each row and their differences."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...evaluation.benchmark import Score
from ...evaluation.paired import PairedTest, paired_test
from ...evaluation.results import Result
from ..shared.report import markdown_table, with_interval
from ..shared.runs import counted
from .conduct import OK, RowResult
from .paired import p_text
from .table import Table
from .zscores import Difference, differences, summarise


@dataclasses.dataclass(frozen=True)
class PartScore:
    """A row on one part of a benchmark, at the last step.

    Attributes:
      row: its name.
      benchmark: its name.
      part: such as a language.
      metric: of the score that counts.
      count: number of queries, documents or pairs.
      values: of each seed, float64 ``[seeds]``.
      difference: from the control, over seeds; None for the control.
      test: the paired test against the control over the folds or resamples, None where there are none.
    """

    row: str
    benchmark: str
    part: str
    metric: str
    count: int
    values: npt.NDArray[np.float64]
    difference: Difference | None
    test: PairedTest | None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**dataclasses.asdict(self), "values": self.values.tolist()}


def part_scores(table: Table, results: Sequence[RowResult]) -> list[PartScore]:
    """All parts of all benchmarks, by benchmark, part and row; none where a benchmark has only the whole."""
    scored = {result.row.name: result.results for result in results if result.status == OK}
    first = next((found for by_seed in scored.values() for found in by_seed.values()), ())
    lines: list[PartScore] = []
    for result in first:
        metric = counted(result, table.group, table.metric).metric
        parts = [score.part for score in result.scores if score.metric == metric]
        for part in parts if len(parts) > 1 else ():
            key = (result.benchmark, metric, part)
            by_row = {name: dict(_of_part(by_seed, *key)) for name, by_seed in scored.items()}
            lines += _compared(key, {name: found for name, found in by_row.items() if found}, table.control)
    return lines


def _of_part(
    by_seed: Mapping[int, Sequence[Result]], benchmark: str, metric: str, part: str
) -> Iterator[tuple[int, Score]]:
    for seed, results in by_seed.items():
        for result in results:
            for score in result.scores if result.benchmark == benchmark else ():
                if (score.metric, score.part) == (metric, part):
                    yield seed, score


def _compared(
    key: tuple[str, str, str], by_row: Mapping[str, Mapping[int, Score]], control: str
) -> Iterator[PartScore]:
    benchmark, metric, part = key
    values = {name: np.array([score.value for score in found.values()]) for name, found in by_row.items()}
    gaps = differences(values, control, {name: tuple(found) for name, found in by_row.items()})
    for name, found in by_row.items():
        common = [seed for seed in found if seed in by_row.get(control, ())]
        sides = [[scores[seed] for seed in common] for scores in (found, by_row.get(control, {}))]
        test = paired_test(*sides) if common and name != control else None
        count = next(iter(found.values())).count
        yield PartScore(name, benchmark, part, metric, count, values[name], gaps.get(name), test)


def section(table: Table, lines: Sequence[PartScore]) -> list[str]:
    """The lines of a table with all parts; none if there are none."""
    if not lines:
        return []
    columns = dict.fromkeys(("benchmark", "part", "row"), "") | dict.fromkeys(
        ("queries", "score", f"minus {table.control}, over seeds", "p", "over test data", "p "), ":"
    )
    heading = (
        "Parts at the last step, mean over seeds ± half the 95 % interval. Over seeds: Dunnett's interval with seeds "
        f"as blocks. Over test data: {table.test or 'the paired test over folds or resamples'}, of the mean over "
        "seeds. Neither is adjusted for the number of parts."
    )
    return ["", heading, "", *markdown_table(columns, [_cells(line) for line in lines])]


def _cells(line: PartScore) -> list[str]:
    mean, gap, test = summarise(line.values), line.difference, line.test
    score = f"{mean.value:.4f}" + (f" ± {mean.confidence:.4f}" if mean.confidence is not None else "")
    return [
        line.benchmark,
        line.part,
        line.row,
        f"{line.count:,}",
        score,
        with_interval(gap.mean, gap.low, gap.high, "+.4f") if gap else "-",
        p_text(gap.p if gap else None),
        with_interval(test.difference, test.low, test.high, "+.4f") if test else "-",
        p_text(test.p if test else None),
    ]
