"""The paired tests of the rows of an ablation against its control, on benchmarks with folds or resamples."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...evaluation.paired import PairedTest, paired_test
from ...evaluation.results import Result
from ..shared.report import markdown_table, with_interval
from ..shared.runs import counted
from .conduct import OK, RowResult
from .table import Direction, Table
from .zscores import Difference, Verdict


@dataclasses.dataclass(frozen=True)
class RowTest:
    """A row against the control on one benchmark, at the last step.

    Attributes:
      row: its name.
      benchmark: its name.
      metric: the score, and its part if that is not the whole.
      seeds: the number of seeds that both have.
      expected: the direction that the table expects.
      test: row minus control.
    """

    row: str
    benchmark: str
    metric: str
    seeds: int
    expected: Direction
    test: PairedTest

    @property
    def verdict(self) -> Verdict:
        """How the difference compares with the expected direction: agrees, differs or within error."""
        return Difference(self.test.difference, self.test.low, self.test.high, self.test.p).verdict(self.expected)

    @property
    def difference(self) -> str:
        """The difference with its interval."""
        return with_interval(self.test.difference, self.test.low, self.test.high, "+.4f")

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**dataclasses.asdict(self), "verdict": self.verdict}


def row_tests(table: Table, results: Sequence[RowResult]) -> list[RowTest]:
    """All tests, in the order of rows and benchmarks; none without a scored control."""
    scored = {result.row.name: result for result in results if result.status == OK}
    control = scored.pop(table.control, None)
    if control is None:
        return []
    found = []
    for result in scored.values():
        seeds = [seed for seed in result.results if seed in control.results]
        for name, metric in control.metrics.items():
            pairs = [(_of(name, result.results[seed]), _of(name, control.results[seed])) for seed in seeds]
            scores = [
                [counted(one, table.group, table.metric) for one in side if one is not None]
                for side in zip(*pairs, strict=True)
            ]
            test = paired_test(*scores) if scores else None
            if test is not None:
                found.append(RowTest(result.row.name, name, metric, len(seeds), result.row.expected, test))
    return found


def _of(benchmark: str, results: Sequence[Result]) -> Result | None:
    return next((result for result in results if result.benchmark == benchmark), None)


def sentence(table: Table, tests: Sequence[RowTest]) -> str:
    """The tests of every row in one line, or "" if there are none."""
    if not tests:
        return ""
    several = len({test.benchmark for test in tests}) > 1
    texts = []
    for test in tests:
        name = f"{test.row} on {test.benchmark}" if several else test.row
        texts.append(f"{name} {test.difference}, p {p_text(test.test.p)}, {test.verdict}")
    over = f" ({table.test})" if table.test else ""
    where = "" if several else f" of {tests[0].metric} on {tests[0].benchmark}"
    return f"Paired test{over}{where}, minus {table.control}: {'; '.join(texts)}."


def section(table: Table, tests: Sequence[RowTest]) -> list[str]:
    """The lines of a table with all tests; none if there are none."""
    if not tests:
        return []
    columns = dict.fromkeys(("row", "benchmark", "score"), "") | dict.fromkeys(
        (f"minus {table.control}, 95 %", "p", "seeds"), ":"
    )
    rows = [
        [one.row, one.benchmark, one.metric, one.difference, p_text(one.test.p), str(one.seeds), one.verdict]
        for one in tests
    ]
    what = table.test or "over the folds or resamples of each benchmark"
    heading = (
        f"Paired test at the last step: {what}. A fold or resample counts with the mean of its differences over seeds, "
        "so the interval covers other test data and not other seeds; it is not adjusted for the number of rows."
    )
    return ["", heading, "", *markdown_table({**columns, "verdict": ""}, rows)]


def p_text(p: float | None) -> str:
    """A p value for a table; "-" for none."""
    if p is None:
        return "-"
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
