"""Schedules and updates against plain NumPy."""

import flax.linen as nn
import jax
import numpy as np
import optax
import pytest
from newsembed.errors import InputError
from newsembed.learning.optimizers import Moments, adam, add_pull_to_start, depths, learning_rate_schedule, sgd
from toy_corpus import toy_config


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


def test_weight_decay_finds_matrices_by_the_name_of_their_boxes():
    box = nn.Partitioned(np.full((2, 2), 2.0, np.float32), names=(None, None))
    params = {"dense": {"kernel": box, "bias": nn.Partitioned(np.full(2, 2.0, np.float32), (None,))}}
    found = nn.unbox(updates(params, jax.tree.map(np.zeros_like, params), learning_rate=0.5, weight_decay=0.1))
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


def test_the_smallest_scale_is_what_an_array_that_starts_at_zero_counts_as():
    params = {"table": np.full(2, 5.0, np.float32), "zero": np.zeros(2, np.float32)}
    ones = jax.tree.map(np.ones_like, params)
    found = updates(params, ones, learning_rate=0.1, multiply_by_parameter_scale=0.02)
    np.testing.assert_allclose(found["table"], -0.5, rtol=1e-4)
    np.testing.assert_allclose(found["zero"], -0.1 * 0.02, rtol=1e-4)


def test_each_group_has_its_rate_by_the_first_expression_that_matches():
    params = {name: np.ones(2, np.float32) for name in ("layers_0", "layers_1", "table", "head")}
    ones = jax.tree.map(np.ones_like, params)
    factors = {"layers_1": 3.0, "layers_": 0.5, "table": 0.0}
    found = updates(params, ones, learning_rate=0.1, weight_decay=0.1, trainable=factors)
    for name, factor in {"layers_0": 0.5, "layers_1": 3.0, "table": 0.0, "head": 0.0}.items():
        np.testing.assert_allclose(found[name], -0.1 * factor, rtol=1e-4)
    with pytest.raises(InputError, match="'embedding' matches no parameter"):
        updates(params, ones, learning_rate=0.1, trainable={"table": 1.0, "embedding": 1.0})


def test_schedule_rises_then_falls_to_zero():
    schedule = learning_rate_schedule(peak=1.0, warmup_steps=4, decay="linear", decay_steps=12)
    rates = [float(schedule(step)) for step in range(13)]
    assert rates[0] == pytest.approx(0.25)
    assert max(rates) == pytest.approx(1.0)
    assert rates[12] == pytest.approx(0.0)
    assert rates[4:] == sorted(rates[4:], reverse=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"warmup_steps": 4, "decay": "linear", "decay_steps": 8}, [0.5, 1, 1.5, 2, 2, 1.5, 1, 0.5, 0, 0]),
        ({"warmup_steps": 2, "decay": "linear", "decay_steps": 1}, [1, 2, 2, 0]),
        ({"warmup_steps": 1, "decay": "linear", "decay_steps": 3}, [2, 2, 1, 0]),
        ({"decay": "linear", "decay_steps": 2}, [2, 1, 0]),
        ({"decay": "cosine", "decay_steps": 4}, [1 + np.cos(np.pi * step / 4) for step in range(5)]),
        ({"warmup_steps": 2, "decay": "cosine", "decay_steps": 4}, [1, 2, 2, 1, 0]),
        ({"warmup_steps": 4}, [0.5, 1, 1.5, 2, 2, 2]),
        ({}, [2, 2]),
    ],
)
def test_rates_of_the_first_steps(options, expected):
    schedule = learning_rate_schedule(peak=2.0, **options)
    np.testing.assert_allclose([float(schedule(step)) for step in range(len(expected))], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"), [({"decay": "steps"}, "expected constant"), ({"decay": "linear"}, "number of steps")]
)
def test_impossible_schedules_say_why(options, message):
    with pytest.raises(InputError, match=message):
        learning_rate_schedule(peak=1.0, **options)


LAYERED = {
    "token_embedding": np.full((3, 2), 0.5, np.float32),
    "input_norm": {"scale": np.ones(2, np.float32)},
    **{f"layers_{n}": {"mlp_in": {"kernel": np.full((2, 2), 0.1 * (n + 1), np.float32)}} for n in range(12)},
    "embedding_head": {"kernel": np.full((2, 2), 0.3, np.float32)},
}


def leaves(tree):
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


DEFAULT = Moments(b1=0.9, b2=0.999, epsilon=1e-8)


def numpy_adam(params, gradients, steps, *, rate, decay=0.0, pull=0.0, factors=None, moments=DEFAULT):
    """Adam by its formulas, in float64, with decoupled weight decay (on all arrays) and the pull to the start."""
    factors = factors or dict.fromkeys(params, 1.0)
    start = {name: np.float64(value) for name, value in params.items()}
    now, mean, square = dict(start), dict.fromkeys(params, 0.0), dict.fromkeys(params, 0.0)
    for step in range(1, steps + 1):
        for name in params:
            gradient = np.float64(gradients(step)[name])
            mean[name] = moments.b1 * mean[name] + (1 - moments.b1) * gradient
            square[name] = moments.b2 * square[name] + (1 - moments.b2) * gradient**2
            spread = np.sqrt(square[name] / (1 - moments.b2**step)) + moments.epsilon
            direction = mean[name] / (1 - moments.b1**step) / spread
            direction = direction + decay * now[name] + pull * (now[name] - start[name])
            now[name] = now[name] - rate * factors[name] * direction
    return now


def trained(params, gradients, steps, restart_after=None, **options):
    """The parameters after some steps; the state may pass through the host on the way, as in a checkpoint."""
    transformation = adam(**options)
    state = transformation.init(jax.tree.map(np.ones_like, params))  # before the parameters are restored
    for step in range(1, steps + 1):
        change, state = transformation.update(gradients(step), state, params)
        params = optax.apply_updates(params, change)
        if step == restart_after:
            params, state = jax.device_get((params, state))
            transformation = adam(**options)
    return jax.device_get(params)


def drawn(step):
    rng = np.random.default_rng(step)
    return jax.tree.map(lambda array: rng.normal(size=array.shape).astype(np.float32), LAYERED)


@pytest.mark.parametrize("moments", [Moments(), Moments(b1=0.5, b2=0.9, epsilon=0.3)])
def test_adam_equals_its_formula_with_the_moments_of_the_options(moments):
    found = leaves(trained(LAYERED, drawn, 4, learning_rate=0.05, moments=moments))
    expected_moments = moments if moments.b1 == 0.5 else DEFAULT
    expected = numpy_adam(leaves(LAYERED), lambda step: leaves(drawn(step)), 4, rate=0.05, moments=expected_moments)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6)


def test_gradients_of_a_larger_norm_are_scaled_down_before_their_means_are_taken():
    params = {"kernel": np.zeros(2, np.float32)}
    given = {1: np.array([3.0, -4.0], np.float32), 2: np.array([0.3, 0.4], np.float32)}
    found = trained(params, lambda step: {"kernel": given[step]}, 2, learning_rate=0.1, clip_norm=1.0)
    clipped = {1: given[1] / 5, 2: given[2]}
    expected = numpy_adam(params, lambda step: {"kernel": clipped[step]}, 2, rate=0.1)
    np.testing.assert_allclose(found["kernel"], expected["kernel"], rtol=1e-5)
    free = trained(params, lambda step: {"kernel": given[step]}, 2, learning_rate=0.1)
    assert np.abs(free["kernel"] - expected["kernel"]).max() > 0.01


@pytest.mark.parametrize("restart_after", [None, 3])
def test_the_pull_to_the_start_equals_its_formula_also_after_a_restart(restart_after):
    options = {"learning_rate": 0.05, "pull_to_start": 0.7}
    found = leaves(trained(LAYERED, drawn, 7, restart_after, **options))
    expected = numpy_adam(leaves(LAYERED), lambda step: leaves(drawn(step)), 7, rate=0.05, pull=0.7)
    free = leaves(trained(LAYERED, drawn, 7, learning_rate=0.05))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6)
        assert np.abs(free[name] - value).max() > 1e-3


def test_the_state_of_the_pull_counts_its_updates_and_keeps_the_start():
    pull, params = add_pull_to_start(0.5), {"table": np.float32([1, 2])}
    state = pull.init({"table": np.float32([7, 7])})
    for expected, now in ((1, 1.0), (2, 3.0)):
        moved = {"table": now * params["table"]}
        change, state = pull.update({"table": np.zeros(2, np.float32)}, state, moved)
        assert int(state.count) == expected
        np.testing.assert_array_equal(state.start["table"], params["table"])
        np.testing.assert_allclose(change["table"], 0.5 * (now - 1) * params["table"])


def test_a_pull_alone_brings_parameters_back_to_where_they_started():
    def once(step):
        return jax.tree.map(np.ones_like if step == 1 else np.zeros_like, LAYERED)

    options = {"learning_rate": 0.1, "moments": Moments(b1=0.0), "pull_to_start": 2.0}
    moved, back = (leaves(trained(LAYERED, once, steps, **options)) for steps in (1, 40))
    for name, start in leaves(LAYERED).items():
        assert np.abs(moved[name] - start).min() > 0.05
        np.testing.assert_allclose(back[name], start, atol=1e-3)


def test_layer_decay_equals_its_formula():
    options = {"learning_rate": 0.05, "layer_decay": 0.8, "pull_to_start": 0.5}
    found = leaves(trained(LAYERED, drawn, 4, **options))
    depth = {"['token_embedding']": 13, "['input_norm']['scale']": 13, "['embedding_head']['kernel']": 0}
    depth |= {f"['layers_{n}']['mlp_in']['kernel']": 12 - n for n in range(12)}
    factors = {name: 0.8**number for name, number in depth.items()}
    expected = numpy_adam(leaves(LAYERED), lambda step: leaves(drawn(step)), 4, rate=0.05, pull=0.5, factors=factors)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6)


def test_every_parameter_of_the_encoder_has_its_depth():
    config = toy_config(num_layers=3, pooling="weighted", norm="post")
    params = jax.eval_shape(config.module().init, jax.random.key(0), np.zeros((1, 1), np.int32))["params"]
    found = {}
    for path, depth in jax.tree_util.tree_leaves_with_path(depths(nn.unbox(params))):
        found.setdefault(path[0].key, set()).add(depth)
    heads = ("pooling_logits", "embedding_head", "topic_head", "mlm_transform", "mlm_norm", "mlm_bias")
    expected = {"token_embedding": 4, "position_embedding": 4, "input_norm": 4, "layers_0": 3, "layers_1": 2}
    expected |= {"layers_2": 1, **dict.fromkeys(heads, 0)}
    assert found == {name: {depth} for name, depth in expected.items()}


def test_a_decay_by_layer_needs_layers():
    params = {"table": np.ones(2, np.float32)}
    with pytest.raises(InputError, match="layer_decay: the model has no layers"):
        adam(learning_rate=0.1, layer_decay=0.9).init(params)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"layer_decay": 0.0}, "layer_decay"),
        ({"layer_decay": 1.1}, "layer_decay"),
        ({"pull_to_start": -0.1}, "pull"),
        ({"multiply_by_parameter_scale": 0.0}, "multiply_by_parameter_scale"),
        ({"trainable": {"table": 1.0, "head": -0.1}}, "trainable"),
    ],
)
def test_impossible_options_are_named(options, field):
    with pytest.raises(InputError, match=f"adam.{field}.*: got"):
        adam(learning_rate=0.1, **options)


def test_an_expression_counts_from_the_start_of_a_path():
    params = {"table": np.ones(2, np.float32), "head_table": np.ones(2, np.float32)}
    ones = jax.tree.map(np.ones_like, params)
    for trainable in ("table", {"table": 1.0}):
        found = updates(params, ones, learning_rate=0.1, trainable=trainable)
        assert (found["table"] < 0).all()
        np.testing.assert_array_equal(found["head_table"], 0.0)
    with pytest.raises(InputError, match="parameters start with head_table, table"):
        updates(params, ones, learning_rate=0.1, trainable="kernel")


def test_sgd_follows_the_gradient_with_momentum_and_clipping():
    params = {"kernel": np.zeros(2, np.float32)}
    gradient = {"kernel": np.array([3.0, -4.0], np.float32)}

    def steps(count, **options):
        transformation, moved = sgd(**options), params
        state = transformation.init(params)
        for _ in range(count):
            step, state = transformation.update(gradient, state, moved)
            moved = optax.apply_updates(moved, step)
        return np.asarray(moved["kernel"])

    np.testing.assert_allclose(steps(2, learning_rate=0.1), [-0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(steps(2, learning_rate=0.1, momentum=0.5), [-0.75, 1.0], rtol=1e-6)
    # Nesterov: the update is g + 0.5 (g + 0.5 trace), so 1.5 g, then 1.75 g
    np.testing.assert_allclose(steps(2, learning_rate=0.1, momentum=0.5, nesterov=True), [-0.975, 1.3], rtol=1e-6)
    np.testing.assert_allclose(steps(1, learning_rate=1.0, clip_norm=1.0), [-0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(steps(2, learning_rate=lambda count: 0.1 * (count + 1)), [-0.9, 1.2], rtol=1e-6)
    with pytest.raises(InputError, match=r"sgd\.momentum"):
        sgd(0.1, momentum=1.0)
    with pytest.raises(InputError, match=r"sgd\.nesterov"):
        sgd(0.1, nesterov=True)


def test_inverse_root_decay_falls_with_the_root_of_the_step():
    schedule = learning_rate_schedule(peak=2.0, warmup_steps=4, decay="inverse_root")
    steps = np.arange(1, 40)
    expected = 2.0 * np.minimum(steps / 4, np.sqrt(4 / steps))
    np.testing.assert_allclose([schedule(step - 1) for step in steps], expected, rtol=1e-6)
    with pytest.raises(InputError, match="warmup_steps: got 0"):
        learning_rate_schedule(peak=2.0, decay="inverse_root")
