"""Alpha-entmax against its exact special cases, finite differences and its definition, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from newsembed.models.encoders.star import entmax

EXACT = 12  # steps for float64
ALPHAS = np.array([1.05, 1.2, 1.5, 1.8, 2.0])


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def scores():
    return jnp.asarray(np.random.default_rng(0).normal(size=(5, 9)) * 2)


def test_two_is_the_projection_onto_the_simplex(scores):
    expected = jax.vmap(optax.projections.projection_simplex)(scores)
    np.testing.assert_allclose(entmax(scores, 2.0, EXACT), expected, atol=1e-14)


def test_one_and_a_half_has_its_closed_form(scores):
    """[z / 2 - tau]^2 with the tau of Peters et al. (algorithm 2), over supports of every size."""
    for row in np.asarray(scores):
        half = np.sort(row / 2)[::-1]
        for size in range(1, len(half) + 1):
            top = half[:size]
            mean, spread = top.mean(), size * top.var()
            if spread <= 1:
                tau = mean - np.sqrt((1 - spread) / size)
                if (size == len(half) or half[size] <= tau) and half[size - 1] > tau:
                    break
        np.testing.assert_allclose(entmax(jnp.asarray(row), 1.5, EXACT), np.maximum(row / 2 - tau, 0) ** 2, atol=1e-12)


def test_shares_add_up_to_one_have_zeros_and_follow_shifts_and_orders(scores):
    shares = entmax(scores, ALPHAS, EXACT)
    np.testing.assert_allclose(shares.sum(-1), 1, atol=1e-14)
    assert (np.asarray(shares[2:]) == 0).any(axis=1).all()
    np.testing.assert_allclose(entmax(scores + 7, ALPHAS, EXACT), shares, atol=1e-12)
    order = np.random.default_rng(1).permutation(9)
    np.testing.assert_allclose(entmax(scores[:, order], ALPHAS, EXACT), shares[:, order], atol=1e-14)


def test_derivatives_by_scores_and_alpha_are_those_of_finite_differences(scores):
    weights = jnp.asarray(np.random.default_rng(2).normal(size=9))

    def value(scores, alpha):
        return entmax(scores, alpha, EXACT) @ weights

    alphas = jnp.asarray(ALPHAS)
    by_scores, by_alpha = jax.grad(lambda *given: value(*given).sum(), (0, 1))(scores, alphas)
    step = 1e-6
    slope = (value(scores, alphas + step) - value(scores, alphas - step)) / (2 * step)
    np.testing.assert_allclose(by_alpha, slope, rtol=1e-5, atol=1e-7)
    for place in range(9):
        moved = [value(scores.at[:, place].add(sign * step), alphas) for sign in (1, -1)]
        np.testing.assert_allclose(by_scores[:, place], (moved[0] - moved[1]) / (2 * step), rtol=1e-5, atol=1e-7)


def test_masked_scores_get_nothing_and_pass_no_gradient(scores):
    masked = scores.at[:, 3].set(-jnp.inf)
    np.testing.assert_allclose(
        np.delete(entmax(masked, ALPHAS, EXACT), 3, axis=1), entmax(np.delete(scores, 3, 1), ALPHAS, EXACT), atol=1e-14
    )
    shares, gradient = jax.value_and_grad(lambda given: (entmax(given, ALPHAS, EXACT)[:, 0]).sum())(masked)
    assert np.isfinite(shares)
    assert np.isfinite(gradient).all()
    assert (np.asarray(gradient)[:, 3] == 0).all()
    assert entmax(jnp.array([-jnp.inf, 2.0, -jnp.inf]), 1.5).tolist() == [0.0, 1.0, 0.0]


def test_some_steps_find_what_bisection_finds_among_thousands_of_scores():
    rng = np.random.default_rng(4)
    for scores in (rng.normal(size=3000), rng.uniform(size=3000), np.zeros(3000), np.r_[9.0, rng.normal(size=2999)]):
        for alpha in ALPHAS:
            scaled = scores * (alpha - 1)
            low, high = scaled.max() - 1, scaled.max()
            for _ in range(80):
                middle = (low + high) / 2
                total = (np.maximum(scaled - middle, 0) ** (1 / (alpha - 1))).sum()
                low, high = (middle, high) if total >= 1 else (low, middle)
            expected = np.maximum(scaled - low, 0) ** (1 / (alpha - 1))
            np.testing.assert_allclose(entmax(jnp.asarray(scores), alpha), expected, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 7, 32])
def test_few_scores_one_by_one_equal_the_same_scores_among_masked_ones(count):
    """More than 32 scores are solved together and with more steps; masked ones have no share."""
    rng = np.random.default_rng(5)
    kinds = [rng.normal(size=count), 0.01 * rng.uniform(size=count), np.zeros(count), np.arange(count) < count / 2]
    scores = jnp.asarray(np.repeat(np.stack(kinds).astype(float), 25, axis=0))
    alphas = jnp.tile(jnp.linspace(1.01, 2.0, 25), len(kinds))
    wide = jnp.pad(scores, [(0, 0), (0, 40)], constant_values=-jnp.inf)
    few = entmax(scores, alphas)
    np.testing.assert_allclose(few, entmax(wide, alphas)[:, :count], atol=1e-12)
    np.testing.assert_allclose(few.sum(axis=-1), 1.0, atol=1e-12)
