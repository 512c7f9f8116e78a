"""Error bars of scores, tests of encoders against each other, and published figures with tests against them.

Intervals: the percentile bootstrap (95 %). Queries about one event share its wording, so events are resampled, each
with all of its queries. Pairs of sentences are resampled one by one.

t-tests on a cross-lingual benchmark are paired over its cells X→Y or its folds. T-MDE (Table 4.4) tests folds. Folds
whose training and test halves swap are not independent, so the plain t-test is too sure of itself. Nadeau and Bengio
(2003, "Inference for the Generalization Error", section 3) correct the variance of the mean:
``(1 / k + n_test / n_train) s^2`` in place of ``s^2 / k``. Both tests are reported. NTDV (thesis, section 3.4) tests
its folds against the figures that other papers print, as if these had no error; they are in ``published.json``.

`paired_test` compares two encoders on one score, each with one for each seed of its training. Seeds are paired: a fold
or a resample contributes the mean over seeds of ``first - second``. Folds are tested with the variance of Nadeau and
Bengio. Resamples are a bootstrap over the units that the benchmark resamples (days, articles): the interval is that of
the percentiles, and p is twice the share of resamples on the rarer side of 0. Both cover other test data. Neither
covers other seeds: these are averaged, not drawn.
"""

import dataclasses
import functools
import itertools
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..formats.files import packaged
from .benchmark import ARROW, AVERAGES, Result, Score

FloatArray = npt.NDArray[np.float64]
_RESAMPLES: Final = 2000
_AT_A_TIME: Final = 200
_SEED: Final = 0
_ROUNDING: Final = 1e-9  # of a difference that is none
_TEST_OF_TRAIN: Final = 1.0  # both halves of a sample are of one size


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean or difference with its 95 % interval.

    Attributes:
      value: the number.
      low, high: the ends; None without an interval.
      p: two-sided; None without a test.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def direction(self) -> str:
        """The sign of a difference: "lower", "higher" or "equal"."""
        return "equal" if abs(self.value) < _ROUNDING else "lower" if self.value < 0 else "higher"

    def verdict(self, expected: str) -> str:
        """Compares a difference with the expected direction: agrees, differs, within error, or no error bar."""
        if self.low is None or self.high is None:
            return "no error bar"
        if self.low <= 0 <= self.high:
            return "within error"
        return "agrees" if self.direction == expected else "differs"


def mean_interval(values: FloatArray, events: npt.NDArray[Any]) -> Interval:
    """Mean over queries; the interval resamples events, each with all of its queries."""
    names, members = np.unique(events, return_inverse=True)
    if len(names) < 2:
        return Interval(float(values.mean()))
    sums, counts = totals_of_events(values, members)
    return statistic_interval(_first_mean, sums[None], counts[None])


def resampled_means(values: FloatArray, events: npt.NDArray[Any]) -> FloatArray:
    """Means over queries on 2,000 resamples of the events, each with all of its queries.

    The resamples depend on the number of events alone, so those of two encoders are the same.

    Args:
      values: of the queries, ``[Q]``.
      events: of the queries, ``[Q]``.
    """
    sums, counts = totals_of_events(values, np.unique(events, return_inverse=True)[1])
    return _resampled(_first_mean, sums[None], counts[None])


def _first_mean(means: FloatArray) -> FloatArray:
    return means[:, 0]


def totals_of_events(
    values: FloatArray, members: npt.NDArray[np.int64], events: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values of each event, ``[events]``; ``members`` are the numbers of their events."""
    sums, counts = np.bincount(members, values, events), np.bincount(members, minlength=events)
    return sums.astype(np.float64), counts.astype(np.float64)


def statistic_interval(statistic: Callable[[FloatArray], FloatArray], sums: FloatArray, counts: FloatArray) -> Interval:
    """A statistic of means over queries, and its percentile interval over resampled events.

    Draws that leave a mean without queries do not count.

    Args:
      statistic: maps means ``[draws, means]`` to ``[draws]``.
      sums: of the scores of each event, ``[means, events]``.
      counts: number of queries of each event, ``[means, events]``.
    """
    value = float(statistic((sums.sum(axis=1) / counts.sum(axis=1))[None])[0])
    low, high = np.nanpercentile(_resampled(statistic, sums, counts), [2.5, 97.5])
    return Interval(value, float(low), float(high))


def _resampled(statistic: Callable[[FloatArray], FloatArray], sums: FloatArray, counts: FloatArray) -> FloatArray:
    """The statistic on each resample of the events, ``[resamples]``; see :func:`statistic_interval`."""
    events = sums.shape[1]
    rng = np.random.default_rng(_SEED)
    drawn = []
    for _ in range(_RESAMPLES // _AT_A_TIME):
        times = rng.multinomial(events, np.full(events, 1 / events), _AT_A_TIME).astype(np.float64)
        with np.errstate(invalid="ignore"):
            drawn.append(statistic((times @ sums.T) / (times @ counts.T)))
    return np.concatenate(drawn)


def spearman_interval(gold: FloatArray, predicted: FloatArray) -> Interval:
    """Spearman's correlation of two arrays ``[N]``; the interval resamples pairs."""
    from scipy.stats import bootstrap, spearmanr

    found = bootstrap(
        (gold, predicted),
        lambda one, two: spearmanr(one, two).statistic,
        paired=True,
        vectorized=False,
        n_resamples=_RESAMPLES // 2,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    low, high = found.confidence_interval
    return Interval(float(spearmanr(gold, predicted).statistic), float(low), float(high))


@dataclasses.dataclass(frozen=True)
class PairedTest(Interval):
    """``first`` minus ``second``, the mean over seeds of the difference of the scores.

    Attributes:
      method: "folds" or "resamples".
      count: number of folds or resamples.
    """

    method: str = ""
    count: int = 0


def paired_test(first: Sequence[Score], second: Sequence[Score]) -> PairedTest | None:
    """Tests two encoders; None if the scores have neither common resamples nor common folds.

    Args:
      first: the scores of one encoder on a benchmark, one for each seed.
      second: those of the other, with the same seeds in the same order.
    """
    for method, test in (("draws", _bootstrap), ("folds", _corrected_t)):
        rows = [[getattr(score, method) for score in scores] for scores in (first, second)]
        lengths = {len(row) for scores in rows for row in scores}
        if len(lengths) == 1 and min(lengths) > 1 and len(first) == len(second):
            gaps = np.mean(np.array(rows[0]) - np.array(rows[1]), axis=0)
            observed = math.fsum(one.value - two.value for one, two in zip(first, second, strict=True)) / len(first)
            return test(observed, gaps)
    return None


def _bootstrap(observed: float, gaps: FloatArray) -> PairedTest:
    low, high = np.percentile(gaps, [2.5, 97.5])
    # Twice the share on the rarer side of 0, from 1 / draws to 1.
    rarer = min(float(np.mean(gaps <= 0)), float(np.mean(gaps >= 0)))
    p = min(1.0, max(2 * rarer, 1 / len(gaps)))
    return PairedTest(observed, float(low), float(high), p, "resamples", len(gaps))


def _corrected_t(observed: float, gaps: FloatArray) -> PairedTest:
    from scipy.stats import t

    folds = len(gaps)
    error = math.sqrt(float(gaps.var(ddof=1)) * (1 / folds + _TEST_OF_TRAIN))
    reach = float(t.ppf(0.975, folds - 1)) * error
    p = float(2 * t.sf(abs(observed) / error, folds - 1)) if error else float(observed == 0)
    return PairedTest(observed, observed - reach, observed + reach, p, "folds", folds)


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A two-sided t-test of ``first`` against ``second`` on one benchmark.

    Attributes:
      part: the cells ("Same", "Cross" or "All"), or the part of the score whose folds are compared.
      second: an encoder, or a printed system as its source names it.
      difference: mean of ``first`` minus ``second`` over the cells or folds.
      t, p: SciPy's statistic and p-value; NaN if all differences are equal.
      count: number of cells or folds.
      corrected_t, corrected_p: of Nadeau and Bengio, for folds of two encoders.
      source: of a printed figure.
    """

    benchmark: str
    part: str
    first: str
    second: str
    difference: float
    t: float
    p: float
    count: int
    corrected_t: float | None = None
    corrected_p: float | None = None
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; NaN and infinity, which JSON lacks, become null."""
        values = {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, "")}
        is_bad = {name for name, value in values.items() if isinstance(value, float) and not math.isfinite(value)}
        return {name: None if name in is_bad else value for name, value in values.items()}


def comparisons(results: Sequence[Result], benchmarks: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Comparison]]:
    """All t-tests of a run, by their name in its manifest; failed results are left out.

    Args:
      results: of the run.
      benchmarks: of its manifest, by name.
    """
    done = [one for one in results if one.status == "ok"]
    pairs = [pair for pair in itertools.combinations(done, 2) if pair[0].benchmark == pair[1].benchmark]
    return {
        "comparisons": [test for pair in pairs for test in _compare_cells(*pair)],
        "fold_comparisons": [test for pair in pairs for test in _compare_folds(*pair)],
        "printed_comparisons": [
            test for one in done for test in _compare_printed(one, benchmarks.get(one.benchmark, {}))
        ],
    }


def _compare_cells(one: Result, two: Result) -> Iterator[Comparison]:
    """Over the cells X→Y that both have."""
    left, right = ({score.part: score.value for score in result.scores if ARROW in score.part} for result in (one, two))
    has_averages = all(any(score.part == "Cross" for score in result.scores) for result in (one, two))
    for average in AVERAGES if has_averages else ():
        parts = [
            part
            for part in left
            if part in right and average in ("All", "Same" if len(set(part.split(ARROW))) == 1 else "Cross")
        ]
        if len(parts) >= 2:
            yield _t_test(one, two, average, [left[part] for part in parts], [right[part] for part in parts])


def _compare_folds(one: Result, two: Result) -> Iterator[Comparison]:
    from scipy.stats import t as student

    left, right = ({score.part: score.folds for score in result.scores if score.folds} for result in (one, two))
    for average in AVERAGES:
        if len(left.get(average, ())) == len(right.get(average, ())) > 0:
            test = _t_test(one, two, average, left[average], right[average])
            corrected = test.t / math.sqrt(1 + test.count * _TEST_OF_TRAIN)
            p = float(2 * student.sf(abs(corrected), test.count - 1))
            yield dataclasses.replace(test, corrected_t=corrected, corrected_p=p)


def _compare_printed(result: Result, benchmark: Mapping[str, Any]) -> Iterator[Comparison]:
    """The folds with the published figures of the same protocol."""
    from scipy.stats import ttest_1samp

    folds = {(score.metric, score.part): score.folds for score in result.scores if score.folds}
    for system, column, value, source in beside(benchmark, list(folds)):
        t, p = _quiet(ttest_1samp, folds[column], value)
        difference, count = float(np.mean(folds[column])) - value, len(folds[column])
        row = (result.benchmark, column[1], result.encoder, system, difference, t, p, count)
        yield Comparison(*row, source=source)


def _t_test(one: Result, two: Result, part: str, left: Sequence[float], right: Sequence[float]) -> Comparison:
    from scipy.stats import ttest_rel

    t, p = _quiet(ttest_rel, left, right)
    difference = float(np.mean(left) - np.mean(right))
    return Comparison(one.benchmark, part, one.encoder, two.encoder, difference, t, p, len(left))


def _quiet(test: Callable[..., Any], *values: Any) -> tuple[float, float]:
    """Statistic and p-value; equal differences have no spread, and the result is NaN."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        found = test(*values)
    return float(found.statistic), float(found.pvalue)


@functools.cache
def published() -> list[dict[str, Any]]:
    """The columns of published tables.

    Each has ``suite``: the benchmark's ``protocol["suite"]``; ``sets``: possible names of the folder or file that the
    benchmark reads; ``metric`` and ``part`` of the score; ``source``: where the numbers were published; ``values`` by
    the encoder's name there, in the metric's own range.
    """
    return json.loads(packaged(__package__, "published.json"))


def beside(
    benchmark: Mapping[str, Any], columns: Sequence[tuple[str, str]]
) -> list[tuple[str, tuple[str, str], float, str]]:
    """Returns the published numbers for the table of one benchmark.

    Args:
      benchmark: its entry in the results manifest: ``protocol`` and ``data``.
      columns: (metric, part) of the table's columns.

    Returns:
      (encoder, (metric, part), value, source) of every published number that belongs in the table.
    """
    protocol = benchmark.get("protocol", {})
    names = {os.path.basename(os.path.abspath(row["path"])) for row in benchmark.get("data", ())}
    found = []
    for row in published() if not protocol.get("excluded") else ():
        column = (row["metric"], row["part"])
        if row["suite"] == protocol.get("suite") and names & set(row["sets"]) and column in columns:
            found += [(name, column, value, row["source"]) for name, value in row["values"].items()]
    return found
