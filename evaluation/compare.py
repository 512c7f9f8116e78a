"""Paired t-tests of two encoders over the cells X→Y of a cross-lingual benchmark (T-MDE's tables)."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from .crosslingual import ARROW, AVERAGES
from .results import Result


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
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

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; NaN, which JSON lacks, becomes null."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in dataclasses.asdict(self).items()
        }


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
