"""Schedules and updates against plain NumPy."""

import gin
import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.training.optimizers import adam, learning_rate_schedule


@pytest.fixture(autouse=True)
def _no_bindings():
    gin.clear_config()  # gin fills arguments in from what earlier tests have loaded


def updates(params, gradients, **options):
    transformation = adam(**options)
    return jax.device_get(transformation.update(gradients, transformation.init(params), params)[0])


def test_first_adam_step_is_the_sign_of_the_gradient():
    found = updates(
        {"kernel": np.ones((2, 2), np.float32)},
        {"kernel": np.array([[3.0, -4.0], [0.1, -0.2]], np.float32)},
        learning_rate=0.1,
    )
    np.testing.assert_allclose(found["kernel"], [[-0.1, 0.1], [-0.1, 0.1]], rtol=1e-4)


def test_weight_decay_is_for_matrices_alone():
    params = {"dense": {"kernel": np.full((2, 2), 2.0, np.float32), "bias": np.full(2, 2.0, np.float32)}}
    still = jax.tree.map(np.zeros_like, params)
    found = updates(params, still, learning_rate=0.5, weight_decay=0.1)
    np.testing.assert_allclose(found["dense"]["kernel"], -0.5 * 0.1 * 2.0, rtol=1e-6)
    np.testing.assert_array_equal(found["dense"]["bias"], 0.0)


def test_relative_updates_follow_the_size_of_each_array():
    params = {
        "table": np.array([3.0, -4.0], np.float32),
        "small": np.full(2, 0.01, np.float32),
        "zero": np.zeros(2, np.float32),
    }
    ones = jax.tree.map(np.ones_like, params)
    found = updates(params, ones, learning_rate=0.1, multiply_by_parameter_scale=True)
    np.testing.assert_allclose(found["table"], -0.1 * np.sqrt(12.5), rtol=1e-4)
    np.testing.assert_allclose(found["small"], -0.1 * 0.01, rtol=1e-4)
    assert (found["zero"] < 0).all()  # an array that starts at 0 can leave it


def test_only_the_trainable_parameters_move():
    params = {"table": np.ones(2, np.float32), "layers_0": {"kernel": np.ones((2, 2), np.float32)}}
    ones = jax.tree.map(np.ones_like, params)
    found = updates(params, ones, learning_rate=0.1, weight_decay=0.1, trainable="table")
    assert (found["table"] < 0).all()
    np.testing.assert_array_equal(found["layers_0"]["kernel"], 0.0)
    assert (updates(params, ones, learning_rate=0.1, trainable="layers_.*kernel")["layers_0"]["kernel"] < 0).all()
    with pytest.raises(InputError, match="matches no parameter"):
        updates(params, ones, learning_rate=0.1, trainable="embedding")


def test_schedule_rises_then_falls_to_zero():
    schedule = learning_rate_schedule(peak=1.0, warmup_steps=4, decay="linear", decay_steps=12)
    rates = [float(schedule(step)) for step in range(13)]
    assert rates[0] == pytest.approx(0.25)
    assert max(rates) == pytest.approx(1.0)
    assert rates[12] == pytest.approx(0.0)
    assert rates[4:] == sorted(rates[4:], reverse=True)


@pytest.mark.parametrize(
    ("options", "message"), [({"decay": "steps"}, "expected constant"), ({"decay": "linear"}, "number of steps")]
)
def test_impossible_schedules_say_why(options, message):
    with pytest.raises(InputError, match=message):
        learning_rate_schedule(peak=1.0, **options)
