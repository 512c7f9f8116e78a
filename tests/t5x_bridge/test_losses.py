"""The loss over all tasks equals the objective of the batch's own task: value, metrics and gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.t5x_bridge.recipe import loss_of_batch

import toy_corpus as toy  # isort: skip

KEY = jax.random.key(7)


@pytest.fixture(scope="module")
def recipe(make):
    return make(dropout_rate=0.2)


@pytest.fixture(scope="module")
def params(recipe):
    from flax import linen as nn

    module = recipe.objectives.model.module
    return nn.unbox(module.init(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))["params"])


@pytest.mark.parametrize("task", ["topics", "triplets"])
def test_a_batch_of_two_groups_has_the_loss_and_gradient_of_its_own_task(recipe, params, corpus, task):
    rows = toy.first_batch(corpus[0], task, 4)
    batch = recipe.layout.pack(task, rows)

    def ours(params):
        return recipe.objectives.loss(task, params, rows, KEY)

    def theirs(params):
        loss = loss_of_batch(recipe.objectives, recipe.layout, params, batch, KEY)
        return loss.value, loss

    (value, metrics), gradient = jax.jit(jax.value_and_grad(ours, has_aux=True))(params)
    (found, loss), found_gradient = jax.jit(jax.value_and_grad(theirs, has_aux=True))(params)
    assert float(found) == pytest.approx(float(value), rel=1e-6)
    assert int(loss.number) == ["topics", "triplets"].index(task)
    for name, wanted in metrics.items():
        assert float(loss.metrics[task][name]) == pytest.approx(float(wanted), rel=1e-5, abs=1e-6)
    (other,) = {"topics", "triplets"} - {task}
    assert all(float(value) == 0 for value in loss.metrics[other].values())
    assert any(np.abs(array).max() > 0 for array in jax.tree.leaves(gradient))
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6), gradient, found_gradient
    )
