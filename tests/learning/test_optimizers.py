"""Schedules and updates against plain NumPy."""

import jax
import numpy as np
import optax
import pytest
from newsembed.errors import InputError
from newsembed.learning.optimizers import Moments, adam, learning_rate_schedule, sgd

PARAMS = {
    "table": np.array([3.0, -4.0], np.float32),
    "head_table": np.ones(2, np.float32),
    "layers_0": {"kernel": np.full((2, 2), 2.0, np.float32), "bias": np.full(2, 0.01, np.float32)},
    "layers_1": {"kernel": np.full((2, 2), 0.3, np.float32), "bias": np.zeros(2, np.float32)},
}
ONES = jax.tree.map(np.ones_like, PARAMS)
LOWEST = dict.fromkeys(("layers_0/kernel", "layers_0/bias"), 0.5)


def leaves(tree):
    paths = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in paths}


def updates(gradients=ONES, **options):
    transformation = adam(**{"learning_rate": 0.1} | options)
    return leaves(transformation.update(gradients, transformation.init(PARAMS), PARAMS)[0])


def test_weight_decay_is_for_matrices_alone():
    found = updates(jax.tree.map(np.zeros_like, PARAMS), learning_rate=0.5, weight_decay=0.1)
    for name, value in leaves(PARAMS).items():
        np.testing.assert_allclose(found[name], -0.05 * value if name.endswith("kernel") else 0.0, rtol=1e-6)


@pytest.mark.parametrize(("smallest", "least"), [(True, 1e-3), (0.02, 0.02)])
def test_relative_updates_follow_the_size_of_each_array_that_is_not_smaller(smallest, least):
    found = updates(multiply_by_parameter_scale=smallest)
    for name, value in leaves(PARAMS).items():
        scale = max(least, np.sqrt(np.mean(value**2)))
        np.testing.assert_allclose(found[name], np.full_like(value, -0.1 * scale), rtol=1e-4)


@pytest.mark.parametrize(
    ("trainable", "factors"),
    [
        ("table", {"table": 1.0}),
        ("layers_.*kernel", {"layers_0/kernel": 1.0, "layers_1/kernel": 1.0}),
        ({"layers_1/k": 3.0, "layers_": 0.5}, {"layers_1/kernel": 3.0, "layers_1/bias": 0.5} | LOWEST),
    ],
)
def test_each_group_has_its_rate_by_the_first_expression_that_matches_from_the_start(trainable, factors):
    plain, found = updates(weight_decay=0.1), updates(weight_decay=0.1, trainable=trainable)
    for name, value in plain.items():
        np.testing.assert_allclose(found[name], factors.get(name, 0.0) * value, rtol=1e-6)


@pytest.mark.parametrize("trainable", ["layers_[", {"layers_[": 1.0}])
def test_a_text_that_is_no_expression_is_refused(trainable):
    with pytest.raises(InputError, match=r"adam.trainable: 'layers_\[' is no regular expression: unterminated"):
        updates(trainable=trainable)


@pytest.mark.parametrize("trainable", ["embedding", {"table": 1.0, "embedding": 1.0}])
def test_an_expression_that_matches_nothing_is_named(trainable):
    with pytest.raises(InputError, match=r"'embedding' matches no parameter\n.*start with head_table, layers_0"):
        updates(trainable=trainable)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"warmup_steps": 4, "decay": "linear", "decay_steps": 8}, [0.5, 1, 1.5, 2, 2, 1.5, 1, 0.5, 0, 0]),
        ({"decay": "linear", "decay_steps": 2}, [2, 1, 0]),
        ({"warmup_steps": 2, "decay": "cosine", "decay_steps": 4}, [1, 2, 2, 1, 0]),
        ({"warmup_steps": 4, "decay": "inverse_root"}, [2 * min(n / 4, np.sqrt(4 / n)) for n in range(1, 20)]),
        ({}, [2, 2]),
    ],
)
def test_rates_of_the_first_steps(options, expected):
    schedule = learning_rate_schedule(peak=2.0, **options)
    np.testing.assert_allclose([float(schedule(step)) for step in range(len(expected))], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"decay": "linear"}, "number of steps"), ({"decay": "inverse_root"}, "WARMUP_STEPS: got 0")],
)
def test_impossible_schedules_say_why(options, message):
    with pytest.raises(InputError, match=message):
        learning_rate_schedule(peak=1.0, **options)


def numpy_adam(params, gradients, moments):
    """Adam by its formulas, in float64, with a rate of 0.05."""
    now = {name: np.float64(value) for name, value in params.items()}
    mean, square = dict.fromkeys(params, 0.0), dict.fromkeys(params, 0.0)
    for step, gradient in enumerate(gradients, 1):
        for name in params:
            mean[name] = moments.b1 * mean[name] + (1 - moments.b1) * np.float64(gradient[name])
            square[name] = moments.b2 * square[name] + (1 - moments.b2) * np.float64(gradient[name]) ** 2
            spread = np.sqrt(square[name] / (1 - moments.b2**step)) + moments.epsilon
            now[name] = now[name] - 0.05 * mean[name] / (1 - moments.b1**step) / spread
    return now


def moved(params, gradients, transformation):
    state = transformation.init(params)
    for gradient in gradients:
        change, state = transformation.update(gradient, state, params)
        params = optax.apply_updates(params, change)
    return leaves(params)


@pytest.mark.parametrize("moments", [Moments(), Moments(b1=0.5, b2=0.9, epsilon=0.3)])
def test_adam_equals_its_formula_with_the_moments_of_the_options(moments):
    rng = np.random.default_rng(0)
    gradients = [jax.tree.map(lambda one: rng.normal(size=one.shape).astype(np.float32), PARAMS) for _ in range(4)]
    found = moved(PARAMS, gradients, adam(learning_rate=0.05, moments=moments))
    for name, value in numpy_adam(leaves(PARAMS), map(leaves, gradients), moments).items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6)


def test_gradients_of_a_larger_norm_are_scaled_down_before_their_means_are_taken():
    params = {"kernel": np.zeros(2, np.float32)}
    given = [{"kernel": np.array(values, np.float32)} for values in ([3.0, -4.0], [0.3, 0.4])]
    found = moved(params, given, adam(learning_rate=0.05, clip_norm=1.0))
    expected = numpy_adam(params, [{"kernel": given[0]["kernel"] / 5}, given[1]], Moments())
    np.testing.assert_allclose(found["kernel"], expected["kernel"], rtol=1e-5)
    assert np.abs(moved(params, given, adam(learning_rate=0.05))["kernel"] - expected["kernel"]).max() > 0.005


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"multiply_by_parameter_scale": 0.0}, "multiply_by_parameter_scale"),
        ({"trainable": {"table": 1.0, "head": -0.1}}, "trainable"),
    ],
)
def test_impossible_options_are_named(options, field):
    with pytest.raises(InputError, match=f"adam.{field}.*: got"):
        adam(learning_rate=0.1, **options)


@pytest.mark.parametrize(
    ("steps", "options", "expected"),
    [
        (2, {"learning_rate": 0.1}, [-0.6, 0.8]),
        (2, {"learning_rate": 0.1, "momentum": 0.5}, [-0.75, 1.0]),
        (1, {"learning_rate": 1.0, "clip_norm": 1.0}, [-0.6, 0.8]),
        (2, {"learning_rate": lambda count: 0.1 * (count + 1)}, [-0.9, 1.2]),
    ],
)
def test_sgd_follows_the_gradient_with_momentum_and_clipping(steps, options, expected):
    gradient = {"kernel": np.array([3.0, -4.0], np.float32)}
    found = moved({"kernel": np.zeros(2, np.float32)}, [gradient] * steps, sgd(**options))
    np.testing.assert_allclose(found["kernel"], expected, rtol=1e-6)
