"""Which checkpoints stay: the rules in Orbax's terms, and values that make no sense."""

import orbax.checkpoint as ocp
import pytest
from newsembed.errors import InputError
from newsembed.training.keeping import Keeping

RULES = ocp.checkpoint_managers


def policies(keeping):
    return keeping.options().preservation_policy.policies


def test_each_rule_is_a_policy_of_its_own():
    (newest,) = policies(Keeping())
    assert (type(newest), newest.n) == (RULES.LatestN, 3)
    newest, period = policies(Keeping(newest=1, period=1))
    assert (newest.n, type(period), period.interval_steps) == (1, RULES.EveryNSteps, 1)
    *_, best = policies(Keeping(period=7, best="eval/loss"))
    assert (type(best), best.n, best.keep_checkpoints_without_metrics) == (RULES.BestN, 1, False)
    assert best.get_metric_fn({"eval/loss": 3, "other": 9}) == 3.0
    assert (best.reverse, policies(Keeping(best="a", best_mode="max"))[-1].reverse) == (True, False)


def test_metrics_are_stored_only_where_one_of_them_counts():
    plain, best = Keeping().options(), Keeping(best="a", best_mode="max").options()
    assert plain.best_fn is None
    assert (best.best_fn({"a": 2}), best.best_mode) == (2.0, "max")
    assert {(one.cleanup_tmp_directories, one.enable_async_checkpointing) for one in (plain, best)} == {(True, True)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"newest": 0}, "KEEP_CHECKPOINTS: got 0, expected at least 1"),
        ({"period": 0}, "KEEP_PERIOD: got 0, expected a number of steps or None"),
        ({"best_mode": "least"}, "KEEP_BEST_MODE: got 'least', expected min or max"),
    ],
)
def test_rules_that_make_no_sense_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        Keeping(**values)


def test_the_figure_that_counts_must_be_there():
    assert Keeping(best="a").figure({"b": 1.0, "a": 2}) == 2.0
    with pytest.raises(InputError, match="KEEP_BEST: got 'c', expected one of b, a"):
        Keeping(best="c").figure({"b": 1.0, "a": 2})
    with pytest.raises(InputError, match="expected one of nothing: the evaluation gives no metric"):
        Keeping(best="c").figure({})
