"""Z-scores against a case worked by hand, and the differences from the full system with their error bars."""

import numpy as np
import pytest
from newsembed.studies.ablate import zscores
from newsembed.studies.ablate.zscores import Difference, differences, row_scores, run_scores, summarise

# One seed. At (step 1, events): 1, 2, 3 with mean 2 and population deviation sqrt(2/3). At (1, sts): 0.5 for all, no
# spread. At (2, events): 4, 4, 7 with mean 5 and deviation sqrt(2). At (2, sts): 10, 30, 20 with mean 20 and deviation
# sqrt(200/3).
HAND = {
    "full": [{("1", "events"): 1.0, ("1", "sts"): 0.5, ("2", "events"): 4.0, ("2", "sts"): 10.0}],
    "a": [{("1", "events"): 2.0, ("1", "sts"): 0.5, ("2", "events"): 4.0, ("2", "sts"): 30.0}],
    "b": [{("1", "events"): 3.0, ("1", "sts"): 0.5, ("2", "events"): 7.0, ("2", "sts"): 20.0}],
}


def test_z_scores_are_those_worked_by_hand():
    scores = row_scores(HAND)
    step_1, step_2, sts = 1 / np.sqrt(2 / 3), 1 / np.sqrt(2), 10 / np.sqrt(200 / 3)
    assert scores["full"] == pytest.approx([(-step_1 + 0 - step_2 - sts) / 4])
    assert scores["a"] == pytest.approx([(0 + 0 - step_2 + sts) / 4])
    assert scores["b"] == pytest.approx([(step_1 + 0 + 2 * step_2 + 0) / 4])
    assert sum(map(sum, scores.values())) == pytest.approx(0)


def test_the_scale_of_a_metric_plays_no_part():
    stretched = {
        row: [{cell: 100 * value - 3 for cell, value in run.items()} for run in runs] for row, runs in HAND.items()
    }
    for row, values in row_scores(HAND).items():
        assert row_scores(stretched)[row] == pytest.approx(values)


def test_runs_of_different_cells_are_no_table():
    with pytest.raises(ValueError, match="different"):
        run_scores([{("1", "a"): 1.0}, {("2", "a"): 1.0}])


def test_one_seed_has_a_direction_but_no_error_bar():
    found = differences(row_scores(HAND), "full")
    assert found["b"].direction == "higher"
    assert (found["b"].low, found["b"].p, found["b"].verdict("lower")) == (None, None, "no error bar")
    assert summarise(row_scores(HAND)["a"]).confidence is None


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
    assert found["worse"].mean == pytest.approx(-2)
    assert found["worse"].low < -2 < found["worse"].high < 0
    assert found["worse"].p < 0.01 < 0.5 < found["same"].p


def test_intervals_are_dunnett_s_where_seeds_move_nothing_together():
    from scipy.stats import dunnett

    rows = {"full": [1.0, 2.0, 3.0], "a": [2.0, 3.0, 1.0], "b": [4.0, 1.5, 2.5]}
    with_blocks = differences({name: np.array(values) for name, values in rows.items()}, "full")
    seeds = {"full": [0, 1, 2], "a": [3, 4, 5], "b": [6, 7, 8]}
    without = differences({name: np.array(values) for name, values in rows.items()}, "full", seeds)
    test = dunnett(rows["a"], rows["b"], control=rows["full"], rng=np.random.default_rng(0))
    assert without["a"].p == pytest.approx(test.pvalue[0], abs=0.01)
    assert without["b"].high == pytest.approx(test.confidence_interval().high[1], abs=0.02)
    # Four degrees of freedom with blocks, six without.
    assert with_blocks["a"].mean == without["a"].mean == 0


@pytest.mark.parametrize(("rows", "freedom", "bar"), [(2, 20, 2.086), (3, 10, 2.57), (6, 10, 3.01), (10, 20, 2.95)])
def test_the_bars_are_those_of_dunnett_s_table(rows, freedom, bar):
    """Dunnett (1964), two-sided, 5 %: rows - 1 treatments and a control."""
    assert zscores._within(bar, rows - 1, freedom) == pytest.approx(0.95, abs=0.004)


def test_what_moves_all_rows_of_a_seed_is_no_error():
    noise = np.array([[0.01, -0.01, 0.0], [-0.01, 0.01, 0.0], [0.0, 0.01, -0.01]])
    seed = np.array([5.0, -5.0, 1.0])
    rows = dict(zip(("full", "a", "b"), noise + seed + np.array([[0.0], [-0.2], [0.0]]), strict=True))
    found = differences(rows, "full")
    assert found["a"].verdict("lower") == "agrees"
    assert found["b"].verdict("lower") == "within error"
    unequal = differences(rows, "full", {"full": [0, 1, 2], "a": [0, 1, 2], "b": [3, 4, 5]})
    assert unequal["a"].verdict("lower") == "within error"


def test_rows_with_other_numbers_of_seeds_are_compared():
    found = differences({"full": np.array([1.0, 1.2, 0.9]), "a": np.array([0.0])}, "full")
    assert found["a"].low < found["a"].mean < found["a"].high


def test_without_spread_or_without_the_full_system_there_is_no_interval():
    assert differences({"full": np.ones(3), "a": np.zeros(3)}, "full")["a"] == Difference(-1.0)
    assert differences({"a": np.zeros(3)}, "full") == {}


def test_any_row_may_be_the_control():
    found = differences({"a": np.zeros(3), "b": np.ones(3)}, "b")
    assert found == {"a": Difference(-1.0)}


def test_intervals_with_blocks_have_the_degrees_of_freedom_of_two_factors():
    values = np.random.default_rng(5).normal(size=(3, 6)) + np.arange(6)
    found = differences(dict(zip(("full", "a", "b"), values, strict=True)), "full")
    rest = 0.0  # what neither the row nor the seed explains
    for row in range(3):
        for seed in range(6):
            rest += (values[row, seed] - values[row].mean() - values[:, seed].mean() + values.mean()) ** 2
    error = np.sqrt(2 * rest / 10 / 6)  # (3 - 1) (6 - 1) = 10 degrees of freedom
    for place, name in enumerate("ab", 1):
        assert found[name].mean == pytest.approx(values[place].mean() - values[0].mean())
        # Dunnett (1964), two-sided, 5 %: 2.57 for two treatments and 10 degrees of freedom
        assert found[name].high - found[name].mean == pytest.approx(2.57 * error, rel=0.005)
        assert found[name].mean - found[name].low == pytest.approx(2.57 * error, rel=0.005)


def test_two_rows_with_blocks_are_a_paired_t_test():
    from scipy.stats import ttest_rel

    full, other = np.random.default_rng(6).normal(size=(2, 5))
    found = differences({"full": full, "a": other}, "full")["a"]
    expected = ttest_rel(other, full)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-3)
