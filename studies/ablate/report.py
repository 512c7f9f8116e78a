"""The table, the plot and the numbers of an ablation, and the score of a row: its mean z-score.

Definition. x(r, s, t, b) is the score of row r trained with seed s, at step t, on benchmark b, in b's own metric. Every
(t, b) is standardised over all runs, those of the control included::

    z(r, s, t, b) = (x(r, s, t, b) - mean over r', s' of x(r', s', t, b)) / std over r', s' of x(r', s', t, b)

with the standard deviation of the population (divisor n), and 0 where all runs have the same score. The score of a run
is the mean over its steps and benchmarks, Z(r, s) = mean over t, b of z(r, s, t, b); that of a row is the mean of Z(r,
s) over its seeds. The paper's Table 10 also standardises over a range of steps and all ablations.

Where benchmarks have scores by language, the same is done for the scores of English and for those of each other
language, which are the two columns of the paper's Table 10.

Error bars. Steps and benchmarks of one run are correlated, so only the seeds are independent draws. The ± of a row is
half the 95 % interval of the mean over its seeds (Student's t). Rows of one seed start from one pretrained model and
read the data in the same order, which moves them together, so seeds are blocks: the differences from the control are
tested with the residual variance of row + seed, (rows - 1)(seeds - 1) degrees of freedom, against Dunnett's
distribution of many treatments and one control. Its 95 % intervals hold for all rows at once. A row that lacks a seed
of the control has no interval until that seed is trained. The bars cover other seeds, not another corpus or test set.
"""

import collections
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...evaluation.benchmark import Result, Score, over_runs
from ...evaluation.statistics import Interval, PairedTest, paired_test
from ..shared.charts import BLUE, GREY, RED, make_axes, svg_of
from ..shared.pages import Block, Table, bullets, markdown, with_interval
from ..shared.study import LANGUAGE_GROUPS, Outcome, language_group, problem_lines, write_files
from .rows import Ablation
from .table import Row
from .table import Table as Declaration

Floats = npt.NDArray[np.float64]
Cell = tuple[str, ...]  # (step, benchmark), also with a language
_WHOLE: Final = "all"
_ROUNDING: Final = 1e-9  # scores whose relative difference is smaller are equal
_CONFIDENCE: Final = 0.95
_DRAWS: Final = 0  # seed of SciPy's integration of Dunnett's distribution
_COLOURS: Final = {"agrees": BLUE, "differs": RED}
_VERDICTS: Final = ("agrees", "differs", "within error", "no error bar", "failed", "not applicable")
_LANGUAGE: Final = re.compile("[a-z]{2,3}$")  # a part of a benchmark; others are genres or means
_NOTE: Final = (
    "z: mean over steps and benchmarks of the score's z-score among all runs of this table, then over seeds; ± is half "
    "the 95 % interval of the mean over seeds (Student's t). The difference from {control} has Dunnett's 95 % interval "
    "with seeds as blocks, which holds for all rows at once, and its p. The bars cover other seeds of pretraining and "
    "training, not another corpus or other test sets."
)
_TESTS: Final = (
    "Minus {control} at the last step. Over seeds: Dunnett's interval with seeds as blocks. Over test data: {test}. A "
    "fold or resample counts with the mean of its differences over seeds, so the interval covers other test data and "
    "not other seeds. Neither is adjusted for the number of parts, nor the test for that of rows."
)


@dataclasses.dataclass(frozen=True)
class Line:
    """A row with its results.

    Attributes:
      row: its declaration.
      outcome: has the `Results` of each seed.
      reason: why the row does not apply.
      examples: that it was trained on, by task.
    """

    row: Row
    outcome: Outcome
    reason: str = ""
    examples: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def status(self) -> str:
        """Whether at least one seed was scored: "ok", else "failed"; or "not applicable"."""
        return "not applicable" if self.reason else "ok" if self.outcome.scores else "failed"

    @property
    def seeds(self) -> str:
        """How many seeds were scored."""
        scored = len(self.outcome.scores)
        return f"{scored} of {scored + len(self.outcome.problems.keys() - {'mining'}) or '-'}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A row on one part of a benchmark, at the last step.

    Attributes:
      row: its name.
      benchmark: its name.
      part: such as a language.
      metric: of the score that counts, with its part if that is not the whole.
      counts: whether the part is the one that counts.
      count: number of queries, documents or pairs.
      values: by seed.
      difference: from the control, over seeds; None for the control, and where the table does not compare parts.
      test: the paired test against the control over the folds or resamples; None where there are none.
      verdict: how the difference of the test compares with the expected direction.
    """

    row: str
    benchmark: str
    part: str
    metric: str
    counts: bool
    count: int
    values: Mapping[int, float]
    difference: Interval | None
    test: PairedTest | None
    verdict: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The numbers of an ablation.

    Attributes:
      table: its declaration.
      lines: of all rows.
      z: of each seed, float64 ``[seeds]``, by row with scores.
      gaps: from the control, by row.
      by_language: the same for English and for other languages, of benchmarks with both.
      comparisons: of all rows on the parts of the benchmarks.
    """

    table: Declaration
    lines: Sequence[Line]
    z: Mapping[str, Floats]
    gaps: Mapping[str, Interval]
    by_language: Mapping[str, Mapping[str, Interval]]
    comparisons: Sequence[Comparison]

    def verdicts(self, line: Line) -> tuple[str, str, str]:
        """The expected direction, the measured one, and how they compare or why not; "-" for none."""
        expected = "-" if line.row.name == self.table.control else line.row.expected
        if line.status != "ok" or not (gap := self.gaps.get(line.row.name)):
            return expected, "-", "-" if line.status == "ok" else line.status
        return expected, gap.direction, gap.verdict(line.row.expected)


def report_of(table: Declaration, lines: Sequence[Line]) -> Report:
    """The z-scores of all rows that have scores, and their differences from the control."""
    scored = {line.row.name: line.outcome.scores for line in lines if line.status == "ok"}

    def compared(
        cells: Callable[[Result], Iterable[tuple[Cell, float]]],
    ) -> tuple[dict[str, Floats], dict[str, Interval]]:
        """The z-scores by row and their differences, of cells with their scores."""
        runs = {
            name: [dict(cell for one in of.results for cell in cells(one)) for of in own.values()]
            for name, own in scored.items()
        }
        z = row_scores(runs) if any(map(any, runs.values())) else {}
        by_seed = {name: dict(zip(scored[name], values.tolist(), strict=True)) for name, values in z.items()}
        return z, differences(by_seed, table.control)

    z, gaps = compared(lambda one: [((one.encoder, one.benchmark), counted(one, table).value)])
    by_language = {
        group: found
        for group in LANGUAGE_GROUPS
        if (found := compared(functools.partial(_in_group, table=table, group=group))[1])
    }
    # The results of the last step, by row and seed.
    last = {
        name: {seed: [one for one in of.results if one.encoder == of.results[-1].encoder] for seed, of in own.items()}
        for name, own in scored.items()
    }
    made: list[Comparison] = []
    for result in next((results for own in last.values() for results in own.values()), ()):
        main = counted(result, table)
        for part in (one.part for one in result.scores if one.metric == main.metric):
            if part == main.part or table.by_part:
                made += _compared(table, last, (result.benchmark, main.metric, part), counts=part == main.part)
    return Report(table, lines, z, gaps, by_language, made)


def counted(result: Result, table: Declaration) -> Score:
    """The score of a benchmark that counts in a table.

    It is of the table's group; where the benchmark lacks it, of the whole, else of the first part. Of these it is the
    table's metric, else the first.
    """
    parts = {score.part.lower() for score in result.scores}
    part = next((one for one in (table.group.lower(), _WHOLE) if one in parts), result.scores[0].part.lower())
    scores = [score for score in result.scores if score.part.lower() == part]
    return next((score for score in scores if score.metric == table.metric), scores[0])


def _in_group(result: Result, table: Declaration, group: str) -> Iterator[tuple[Cell, float]]:
    """The scores of a benchmark in the languages of a group."""
    main = counted(result, table)
    for score in result.scores:
        is_language = score.metric == main.metric and score.part != main.part and _LANGUAGE.match(score.part)
        if is_language and language_group(score.part) == group:
            yield (result.encoder, result.benchmark, score.part), score.value


def _compared(
    table: Declaration,
    last: Mapping[str, Mapping[int, Sequence[Result]]],
    key: tuple[str, str, str],
    *,
    counts: bool,
) -> Iterator[Comparison]:
    """The rows on one (benchmark, metric, part), which counts or not."""
    scores: dict[str, dict[int, Score]] = collections.defaultdict(dict)
    for name, by_seed in last.items():
        for seed, results in by_seed.items():
            for score in (one for result in results if result.benchmark == key[0] for one in result.scores):
                if (score.metric, score.part) == key[1:]:
                    scores[name][seed] = score
    values = {name: {seed: one.value for seed, one in own.items()} for name, own in scores.items()}
    gaps = differences(values, table.control) if table.by_part else {}
    theirs = scores.get(table.control, {})
    benchmark, metric, part = key
    shown = metric if part.lower() == _WHOLE else f"{metric} {part}"
    for name, own in scores.items():
        common = [seed for seed in own if seed in theirs and name != table.control]
        test = paired_test([own[seed] for seed in common], [theirs[seed] for seed in common])
        size, verdict = next(iter(own.values())).count, test.verdict(table.row(name).expected) if test else "-"
        yield Comparison(name, benchmark, part, shown, counts, size, values[name], gaps.get(name), test, verdict)


def write_report(ablation: Ablation, lines: Sequence[Line], manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    """Writes ``table.md``, ``table.json`` and ``plot.svg``; returns the Markdown, its statement, and their paths."""
    made = report_of(ablation.table, lines)
    text = report_text(made)
    numbers = {**manifest, "rows": [_to_json(made, line) for line in lines]}
    numbers["comparisons"] = [dataclasses.asdict(one) for one in made.comparisons]
    return text, statement(made), write_files(ablation.output, numbers, text, plot(made) if made.z else None)


def report_text(made: Report) -> str:
    """The table, the scores at the last step, and what went wrong, as Markdown."""
    table = made.table
    headings = ["row", "leaves out", "z", f"minus {table.control}", "p", "expected", "measured", "verdict", "seeds"]
    rows = []
    for line in made.lines:
        name, row = line.row.name, line.row
        z = _mean(made.z[name].tolist(), "+.2f") if name in made.z else "-"
        counts = [f"{line.examples[task]:,}" if line.examples else "-" for task in table.counted]
        gap = _gap(made.gaps.get(name), "+.2f")
        rows.append([name, row.removes, z, *gap, *made.verdicts(line), line.seeds, *counts])
    wrong = [f"{line.row.name}: {line.reason}" for line in made.lines if line.reason]
    wrong += problem_lines([line.outcome for line in made.lines])
    note = f"{_NOTE.format(control=table.control)} {table.note}".strip()
    blocks: list[Block] = [Table([*headings, *table.counted], rows), note, statement(made)]
    if made.by_language:
        columns = [f"{group}: {heading}" for group in made.by_language for heading in (f"minus {table.control}", "p")]
        names = [line.row.name for line in made.lines if line.row.name in made.z]
        cells = [
            [name, *(text for gaps in made.by_language.values() for text in _gap(gaps.get(name), "+.2f"))]
            for name in names
        ]
        blocks += ["z by the language of the texts:", Table(["row", *columns], cells)]
    scores: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for one in made.comparisons:
        if one.counts:
            scores[one.row][f"{one.benchmark}, {one.metric}"] = _mean(one.values.values())
    if scores:
        blocks.append("Scores after the last step, mean over seeds ± half the 95 % interval:")
        blocks.append(_by_column(scores))
    tested = [
        [
            *(one.benchmark, one.metric, one.row, f"{one.count:,}", _mean(one.values.values())),
            *(*_gap(one.difference), *_gap(one.test), one.verdict),
        ]
        for one in made.comparisons
        if table.by_part or one.test
    ]
    if tested:
        blocks.append(
            _TESTS.format(control=table.control, test=table.test or "the paired test over folds or resamples")
        )
        headings = ["benchmark", "score", "row", "queries", "mean", "over seeds", "p", "over test data", "p", "verdict"]
        blocks.append(Table(headings, tested))
    if table.printed:
        printed = {name: {key: f"{one:.4f}" for key, one in of.items()} for name, of in table.printed.items()}
        blocks += ["Printed figures:", _by_column(printed)]
    return markdown(table.title, [*blocks, *bullets("Failed or not applicable:", wrong)])


def _by_column(rows: Mapping[str, Mapping[str, str]]) -> Table:
    """A table of texts by row and column; "-" where a row lacks a column."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    return Table(
        ["row", *columns], [[name, *(row.get(column, "-") for column in columns)] for name, row in rows.items()]
    )


def statement(made: Report) -> str:
    """How many rows point in which direction, in one line."""
    found = [made.verdicts(line) for line in made.lines if line.row.name != made.table.control]
    verdicts = [verdict for *_, verdict in found]
    right = [expected == measured for expected, measured, _ in found if measured != "-"]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in _VERDICTS if name in verdicts)
    return (
        f"Of {len(found)} rows: {counts or 'none compared'}. "
        f"{sum(right)} of {len(right)} measured means differ in the expected direction."
    )


def _gap(found: Interval | None, form: str = "+.4f") -> tuple[str, str]:
    """A difference with its interval, and its p."""
    p = None if found is None else found.p
    return with_interval(found, form), "-" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _mean(values: Iterable[float], form: str = ".4f") -> str:
    """The mean over seeds and half its interval."""
    found = over_runs("", list(values), "", 0)
    half = "" if found.confidence is None else f" ± {found.confidence:{form.lstrip('+')}}"
    return f"{found.value:{form}}{half}"


def plot(made: Report) -> str:
    """Each row's difference from the control with its interval, as SVG."""
    shown = [(made.verdicts(line)[-1], line.row.name) for line in made.lines if line.row.name in made.gaps]
    figure, axes = make_axes(width=7.5, height=0.32 * max(1, len(shown)) + 1.1)
    axes.axvline(0, color=GREY, linewidth=1)
    for place, (verdict, name) in enumerate(shown):
        gap, colour = made.gaps[name], _COLOURS.get(verdict, GREY)
        if gap.low is not None and gap.high is not None:
            axes.plot([gap.low, gap.high], [place, place], color=colour, linewidth=1.5)
        axes.plot([gap.value], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(shown)), [f"{name} ({verdict})" for verdict, name in shown])
    axes.invert_yaxis()
    axes.set_xlabel(f"z-score minus that of {made.table.control}, with Dunnett's 95 % interval")
    return svg_of(figure, made.table.title)


def _to_json(made: Report, line: Line) -> dict[str, Any]:
    name, gap, outcome = line.row.name, made.gaps.get(line.row.name), line.outcome
    values = made.z[name].tolist() if name in made.z else []
    z = over_runs("z", values, "all", 0) if values else None
    expected, _, verdict = made.verdicts(line)
    scores = [
        {"seed": seed, "step": int(one.encoder), "benchmark": one.benchmark, "value": counted(one, made.table).value}
        for seed, found in outcome.scores.items()
        for one in found.results
    ]
    return {
        "row": name,
        "status": line.status,
        "reason": line.reason,
        "problems": dict(outcome.problems),
        "z": z and {"mean": z.value, "half_interval": z.confidence},
        "z_by_seed": z and dict(zip(map(str, outcome.scores), values, strict=True)),
        f"minus_{made.table.control}": gap and dataclasses.asdict(gap),
        "by_language": {group: dataclasses.asdict(of[name]) for group, of in made.by_language.items() if name in of},
        "expected": expected,
        "verdict": verdict,
        "examples": dict(line.examples),
        "training_seconds": outcome.seconds,
        "scores": scores,
    }


def row_scores(runs: Mapping[str, Sequence[Mapping[Cell, float]]]) -> dict[str, Floats]:
    """Z of every run of every row, ``[seeds]`` by row; see the module.

    Args:
      runs: scores by (step, benchmark), the same cells in each.
    """
    from scipy.stats import zscore

    flat = [run for row in runs.values() for run in row]
    cells = sorted(flat[0])
    values = np.array([[run[cell] for cell in cells] for run in flat], np.float64)
    spread = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    standardised = np.zeros_like(values)
    if spread.any():
        standardised[:, spread] = zscore(values[:, spread], axis=0)
    borders = np.cumsum([len(row) for row in runs.values()])[:-1]
    return dict(zip(runs, np.split(standardised.mean(axis=1), borders), strict=True))


def differences(rows: Mapping[str, Mapping[int, float]], control: str) -> dict[str, Interval]:
    """Every other row minus the control, with simultaneous intervals; empty if the control has no scores.

    Without an interval and p, adjusted for the number of rows, where there are too few seeds.

    Args:
      rows: the value of every run, by row and seed.
      control: the name of the control.
    """
    theirs = rows.get(control)
    if not theirs:
        return {}
    mean = float(np.mean(list(theirs.values())))
    found = {name: Interval(float(np.mean(list(own.values()))) - mean) for name, own in rows.items() if name != control}
    whole = [name for name in found if rows[name].keys() == theirs.keys()]
    if whole and len(theirs) > 1:
        found |= _intervals(whole, np.array([[rows[name][seed] for seed in theirs] for name in (control, *whole)]))
    return found


def _intervals(names: Sequence[str], values: Floats) -> dict[str, Interval]:
    """The intervals of rows against the first, from values ``[1 + rows, seeds]``; none where nothing varies."""
    from scipy.optimize import brentq

    rows, seeds = values.shape
    means = values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    freedom = (rows - 1) * (seeds - 1)
    error = math.sqrt(2 * float((residuals**2).sum()) / freedom / seeds)
    if error <= _ROUNDING:
        return {}
    critical = float(brentq(lambda bar: within(bar, rows - 1, freedom) - _CONFIDENCE, 1.0, 100.0, xtol=1e-4))
    found = {}
    for name, gap in zip(names, (means[1:] - means[0]).tolist(), strict=True):
        p = 1 - within(abs(gap) / error, rows - 1, freedom)
        found[name] = Interval(gap, gap - critical * error, gap + critical * error, p)
    return found


def within(bar: float, count: int, freedom: int) -> float:
    """The probability that ``count`` differences from a control are all within ``bar`` standard errors (Dunnett 1955).

    They share the control, so any two of equally many observations correlate by 1/2.
    """
    from scipy.stats import multivariate_t, t

    if count == 1:
        return float(2 * t.cdf(bar, freedom) - 1)
    limits, draws = np.full(count, bar), np.random.default_rng(_DRAWS)
    shape = (np.eye(count) + 1) / 2
    return float(multivariate_t.cdf(limits, shape=shape, df=freedom, lower_limit=-limits, random_state=draws))
