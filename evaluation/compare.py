"""t-tests of encoders on a cross-lingual benchmark: paired over its cells X→Y or its folds, or against printed figures.

T-MDE (Table 4.4) tests folds. Folds whose training and test halves swap are not independent, so the plain t-test is too
sure of itself. Nadeau and Bengio (2003, "Inference for the Generalization Error", section 3) correct the variance of
the mean: ``(1 / k + n_test / n_train) s^2`` in place of ``s^2 / k``. Both tests are reported.

NTDV (thesis, section 3.4) tests its folds against the figures that other papers print, as if these had no error.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .crosslingual import ARROW, AVERAGES
from .published import beside
from .results import Result


class _Row:
    """A base of dataclasses."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; NaN and infinity, which JSON lacks, become null."""
        values: dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison(_Row):
    """A paired two-sided t-test of ``first`` against ``second``.

    Attributes:
      group: the cells: "Same", "Cross" or "All".
      difference: mean of ``first`` minus ``second`` over the cells.
      t, p: SciPy's statistic and p-value; NaN if all differences are equal.
      cells: number of cells.
    """

    benchmark: str
    group: str
    first: str
    second: str
    difference: float
    t: float
    p: float
    cells: int


@dataclasses.dataclass(frozen=True, slots=True)
class FoldComparison(_Row):
    """Two-sided t-tests of ``first`` against ``second`` over paired folds.

    Attributes:
      group: "Same", "Cross" or "All".
      difference: mean of ``first`` minus ``second`` over the folds.
      t, p: of the plain paired t-test, as published; NaN if all differences are equal.
      corrected_t, corrected_p: of Nadeau and Bengio's.
      folds: their number; the tests have one degree of freedom less.
    """

    benchmark: str
    group: str
    first: str
    second: str
    difference: float
    t: float
    p: float
    corrected_t: float
    corrected_p: float
    folds: int


@dataclasses.dataclass(frozen=True, slots=True)
class PrintedComparison(_Row):
    """A two-sided one-sample t-test of the folds of an encoder against a printed figure.

    Attributes:
      part: of the score.
      system: as its source names it.
      difference: mean over the folds minus the printed figure.
      t, p: SciPy's statistic and p-value; NaN if all folds are equal.
      folds: their number.
      source: of the figure.
    """

    benchmark: str
    part: str
    encoder: str
    system: str
    difference: float
    t: float
    p: float
    folds: int
    source: str


def compare(results: Sequence[Result]) -> list[Comparison]:
    """Compares all pairs of encoders on every benchmark that has cells X→Y; failed results are left out."""
    found = []
    for one, two in itertools.combinations(results, 2):
        if one.benchmark == two.benchmark and one.status == two.status == "ok":
            left, right = _cells(one), _cells(two)
            shared = [part for part in left if part in right]
            for group in AVERAGES:
                parts = [part for part in shared if group in {"All", _group(part)}]
                if len(parts) >= 2:
                    values = [left[part] for part in parts], [right[part] for part in parts]
                    found.append(_test(one, two, group, *values))
    return found


def compare_folds(results: Sequence[Result]) -> list[FoldComparison]:
    """Compares all pairs of encoders on every benchmark with folds; failed results are left out."""
    found = []
    for one, two in itertools.combinations(results, 2):
        if one.benchmark == two.benchmark and one.status == two.status == "ok":
            left, right = ({score.part: score.folds for score in result.scores if score.folds} for result in (one, two))
            shared = [group for group in AVERAGES if len(left.get(group, ())) == len(right.get(group, ())) > 0]
            found += [_fold_test(one, two, group, left[group], right[group]) for group in shared]
    return found


def compare_printed(results: Sequence[Result], benchmarks: Mapping[str, Mapping[str, Any]]) -> list[PrintedComparison]:
    """Compares the folds of every encoder with the published figures of the same protocol; failed results are left out.

    Args:
      results: of a run.
      benchmarks: of its manifest, by name.
    """
    import warnings

    import numpy as np
    from scipy.stats import ttest_1samp

    found = []
    for result in results:
        scores = [score for score in result.scores if score.folds] if result.status == "ok" else []
        columns = [(score.metric, score.part) for score in scores]
        folds = {(score.metric, score.part): score.folds for score in scores}
        for system, column, value, source in beside(benchmarks.get(result.benchmark, {}), columns):
            values = folds[column]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)  # equal folds have no spread: the result is NaN
                test = ttest_1samp(values, value)
            difference, t, p = float(np.mean(values)) - value, float(test.statistic), float(test.pvalue)
            row = (result.benchmark, column[1], result.encoder, system, difference, t, p, len(values), source)
            found.append(PrintedComparison(*row))
    return found


def _fold_test(one: Result, two: Result, group: str, left: Sequence[float], right: Sequence[float]) -> FoldComparison:
    from scipy.stats import t as student

    test = _test(one, two, group, list(left), list(right))
    folds = len(left)
    test_of_train = 1.0  # both halves of a sample have the same size
    corrected = test.t / math.sqrt(1 + folds * test_of_train)
    p = float(2 * student.sf(abs(corrected), folds - 1))
    return FoldComparison(
        one.benchmark, group, one.encoder, two.encoder, test.difference, test.t, test.p, corrected, p, folds
    )


def _group(part: str) -> str:
    source, _, target = part.partition(ARROW)
    return "Same" if source == target else "Cross"


def _cells(result: Result) -> dict[str, float]:
    if not any(score.part == "Cross" for score in result.scores):
        return {}
    return {score.part: score.value for score in result.scores if ARROW in score.part}


def _test(one: Result, two: Result, group: str, left: list[float], right: list[float]) -> Comparison:
    import warnings

    import numpy as np
    from scipy.stats import ttest_rel

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # equal differences have no spread: the result is NaN
        test = ttest_rel(left, right)
    difference = float(np.mean(left) - np.mean(right))
    return Comparison(
        one.benchmark, group, one.encoder, two.encoder, difference, float(test.statistic), float(test.pvalue), len(left)
    )
