"""Z-scores against a case worked by hand, and the differences from the full system with their error bars."""

import numpy as np
import pytest
from newsembed.evaluation.statistics import Interval
from newsembed.studies.ablate import report
from newsembed.studies.ablate.report import row_scores

# One seed. At (step 1, events): 1, 2, 3 with mean 2 and population deviation sqrt(2/3). At (1, sts): 0.5 for all, no
# spread. At (2, events): 4, 4, 7 with mean 5 and deviation sqrt(2). At (2, sts): 10, 30, 20 with mean 20 and deviation
# sqrt(200/3).
HAND = {
    "full": [{("1", "events"): 1.0, ("1", "sts"): 0.5, ("2", "events"): 4.0, ("2", "sts"): 10.0}],
    "a": [{("1", "events"): 2.0, ("1", "sts"): 0.5, ("2", "events"): 4.0, ("2", "sts"): 30.0}],
    "b": [{("1", "events"): 3.0, ("1", "sts"): 0.5, ("2", "events"): 7.0, ("2", "sts"): 20.0}],
}


def differences(rows, control):
    """The differences of rows whose seeds are numbered."""
    return report.differences({name: dict(enumerate(values)) for name, values in rows.items()}, control)


def test_z_scores_are_those_worked_by_hand():
    scores = row_scores(HAND)
    step_1, step_2, sts = 1 / np.sqrt(2 / 3), 1 / np.sqrt(2), 10 / np.sqrt(200 / 3)
    assert scores["full"] == pytest.approx([(-step_1 + 0 - step_2 - sts) / 4])
    assert scores["a"] == pytest.approx([(0 + 0 - step_2 + sts) / 4])
    assert scores["b"] == pytest.approx([(step_1 + 0 + 2 * step_2 + 0) / 4])
    assert sum(map(sum, scores.values())) == pytest.approx(0)


def test_clear_differences_stand_out_and_small_ones_do_not():
    rows = {"full": [1.0, 1.1, 0.9], "worse": [-1.0, -0.9, -1.1], "better": [3.0, 3.1, 2.9], "same": [1.05, 0.9, 1.0]}
    found = differences({name: np.array(values) for name, values in rows.items()}, "full")
    assert {name: one.verdict("lower") for name, one in found.items()} == {
        "worse": "agrees",
        "better": "differs",
        "same": "within error",
    }
    assert {name: one.verdict("higher") for name, one in found.items()} == {
        "worse": "differs",
        "better": "agrees",
        "same": "within error",
    }
    assert found["worse"].value == pytest.approx(-2)
    assert found["worse"].low < -2 < found["worse"].high < 0
    assert found["worse"].p < 0.01 < 0.5 < found["same"].p


@pytest.mark.parametrize(("rows", "freedom", "bar"), [(2, 20, 2.086), (3, 10, 2.57), (6, 10, 3.01), (10, 20, 2.95)])
def test_the_bars_are_those_of_dunnett_s_table(rows, freedom, bar):
    """Dunnett (1964), two-sided, 5 %: rows - 1 treatments and a control."""
    assert report.within(bar, rows - 1, freedom) == pytest.approx(0.95, abs=0.004)


def test_a_row_that_lacks_a_seed_has_no_error_bar_and_the_others_theirs():
    rows = {"full": [1.0, 1.2, 0.9], "b": [0.0, 0.3, -0.2]}
    found = differences({**rows, "a": [0.0]}, "full")
    assert (found["a"].value, found["a"].low) == (pytest.approx(-1.0333, abs=1e-4), None)
    assert found["b"] == differences(rows, "full")["b"]


def test_without_spread_or_without_the_full_system_there_is_no_interval():
    assert differences({"full": np.ones(3), "a": np.zeros(3)}, "full")["a"] == Interval(-1.0)
    assert [Interval(value).direction for value in (-1e-16, 1e-16, 1e-3)] == ["equal", "equal", "higher"]
    assert differences({"a": np.zeros(3)}, "full") == {}


def test_intervals_with_blocks_have_the_degrees_of_freedom_of_two_factors():
    values = np.random.default_rng(5).normal(size=(3, 6)) + np.arange(6)
    found = differences(dict(zip(("full", "a", "b"), values, strict=True)), "full")
    rest = 0.0  # what neither the row nor the seed explains
    for row in range(3):
        for seed in range(6):
            rest += (values[row, seed] - values[row].mean() - values[:, seed].mean() + values.mean()) ** 2
    error = np.sqrt(2 * rest / 10 / 6)  # (3 - 1) (6 - 1) = 10 degrees of freedom
    for place, name in enumerate("ab", 1):
        assert found[name].value == pytest.approx(values[place].mean() - values[0].mean())
        # Dunnett (1964), two-sided, 5 %: 2.57 for two treatments and 10 degrees of freedom
        assert found[name].high - found[name].value == pytest.approx(2.57 * error, rel=0.005)
        assert found[name].value - found[name].low == pytest.approx(2.57 * error, rel=0.005)


def test_two_rows_with_blocks_are_a_paired_t_test():
    from scipy.stats import ttest_rel

    full, other = np.random.default_rng(6).normal(size=(2, 5))
    found = differences({"full": full, "a": other}, "full")["a"]
    expected = ttest_rel(other, full)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-3)
