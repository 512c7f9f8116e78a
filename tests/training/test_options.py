"""The trainer's groups of options: what they compute, and values that make no sense."""

import optax
import pytest
from newsembed.errors import InputError
from newsembed.training.held_out import HeldOut
from newsembed.training.keeping import Keeping
from newsembed.training.options import (
    CheckpointOptions,
    OptimizerOptions,
    RunOptions,
)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: RunOptions("m", 1, log_period=0), "LOG_PERIOD"),
        (lambda: CheckpointOptions(period=0), "CHECKPOINT_PERIOD"),
    ],
)
def test_a_period_is_at_least_one_step(make, name):
    with pytest.raises(InputError, match=f"{name}: got 0, expected at least 1"):
        make()


@pytest.mark.parametrize(("best", "period", "fits"), [(None, 0, True), ("eval/loss", 2, True), ("eval/loss", 3, False)])
def test_the_best_checkpoint_is_kept_only_where_all_are_evaluated(best, period, fits):
    options = CheckpointOptions(period=4, keeping=Keeping(best=best))
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train_steps": -1}, "TRAIN_STEPS: got -1, expected 0 or more"),
        ({"peak_flops_per_device": 0.0}, "PEAK_FLOPS_PER_DEVICE: got 0.0, expected a positive number"),
        ({"peak_flops_per_device": float("nan")}, "PEAK_FLOPS_PER_DEVICE: got nan"),
    ],
)
def test_numbers_of_a_run_are_checked(values, message):
    assert RunOptions("m", 0, peak_flops_per_device=1e12).train_steps == 0
    with pytest.raises(InputError, match=message):
        RunOptions(**{"model_dir": "m", "train_steps": 1} | values)
