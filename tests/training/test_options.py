"""The trainer's groups of options: what they compute, and values that make no sense."""

import optax
import orbax.checkpoint as ocp
import pytest
from newsembed.errors import InputError
from newsembed.training.held_out import HeldOut
from newsembed.training.options import CheckpointOptions, OptimizerOptions


@pytest.mark.parametrize(("best", "period", "fits"), [(None, 0, True), ("eval/loss", 2, True), ("eval/loss", 3, False)])
def test_the_best_checkpoint_is_kept_only_where_all_are_evaluated(best, period, fits):
    options = CheckpointOptions(period=4, keep_best=best)
    held_out = HeldOut(period=period, data_dir="h")
    if fits:
        options.check_evaluated(held_out)
    else:
        with pytest.raises(InputError, match="KEEP_BEST: got 'eval/loss', but checkpoints every 4 steps"):
            options.check_evaluated(held_out)


def test_the_learning_rate_of_a_step_counts_from_0():
    sgd = optax.sgd(0.1)
    assert OptimizerOptions(sgd).learning_rate_after(3) is None
    assert OptimizerOptions(sgd, learning_rate=0.5).learning_rate_after(3) == 0.5
    assert OptimizerOptions(sgd, learning_rate=lambda step: 10 + step).learning_rate_after(3) == 12.0


RULES = ocp.checkpoint_managers


def test_each_rule_is_a_policy_of_its_own_and_metrics_are_stored_only_where_one_counts():
    def policies(**values):
        options = CheckpointOptions(**values).for_orbax(is_alone=False)
        assert (options.cleanup_tmp_directories, options.enable_async_checkpointing) == (True, True)
        return options, options.preservation_policy.policies

    plain, (newest,) = policies()
    assert (plain.best_fn, type(newest), newest.n) == (None, RULES.LatestN, 3)
    _, (newest, period) = policies(keep=1, keep_period=1)
    assert (newest.n, type(period), period.interval_steps) == (1, RULES.EveryNSteps, 1)
    for mode in ("min", "max"):
        options, (*_, best) = policies(keep_period=7, keep_best="eval/loss", keep_best_mode=mode)
        assert (options.best_mode, options.best_fn({"eval/loss": 2}), best.reverse) == (mode, 2.0, mode == "min")
        assert (type(best), best.n, best.keep_checkpoints_without_metrics) == (RULES.BestN, 1, False)
        assert best.get_metric_fn({"eval/loss": 3, "other": 9}) == 3.0


def test_the_figure_that_counts_must_be_there():
    with pytest.raises(InputError, match="PATIENCE: got 2 without KEEP_BEST"):
        CheckpointOptions(patience=2)
    assert CheckpointOptions(keep_best="a").figure({"b": 1.0, "a": 2}) == 2.0
    with pytest.raises(InputError, match="KEEP_BEST: got 'c', expected one of b, a"):
        CheckpointOptions(keep_best="c").figure({"b": 1.0, "a": 2})
    with pytest.raises(InputError, match="expected one of nothing: the evaluation gives no metric"):
        CheckpointOptions(keep_best="c").figure({})
