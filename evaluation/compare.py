"""Are two encoders' cross-lingual averages different? Paired t-tests over the cells of X→Y (T-MDE's tables)."""

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
      group: which cells: "Same", "Cross" or "All".
      difference: mean of ``first`` minus ``second`` over the cells.
      t, p: SciPy's statistic and p-value; NaN where all differences are equal.
      cells: how many.
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
        """JSON values: NaN, which JSON lacks, becomes null."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in dataclasses.asdict(self).items()
        }


def compare(results: Sequence[Result]) -> list[Comparison]:
    """All pairs of encoders on every benchmark that has cells X→Y; failed results take no part."""
    found = []
    for one, two in itertools.combinations(results, 2):
        if one.benchmark == two.benchmark and one.status == two.status == "ok":
            left, right = _cells(one), _cells(two)
            shared = [part for part in left if part in right]
            for group in AVERAGES:
                parts = [
                    part for part in shared if group in {"All", "Same" if len(set(part.split(ARROW))) == 1 else "Cross"}
                ]
                if len(parts) >= 2:
                    found.append(
                        _test(one, two, group, [left[part] for part in parts], [right[part] for part in parts])
                    )
    return found


def _cells(result: Result) -> dict[str, float]:
    if not any(score.part == "Cross" for score in result.scores):
        return {}
    return {score.part: score.value for score in result.scores if ARROW in score.part}


def _test(one: Result, two: Result, group: str, left: list[float], right: list[float]) -> Comparison:
    import warnings

    import numpy as np
    from scipy.stats import ttest_rel

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # equal differences have no spread to divide by: NaN says so
        test = ttest_rel(left, right)
    difference = float(np.mean(left) - np.mean(right))
    return Comparison(
        one.benchmark, group, one.encoder, two.encoder, difference, float(test.statistic), float(test.pvalue), len(left)
    )
