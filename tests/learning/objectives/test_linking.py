"""The triplet loss on pairs, against loops over triplets in float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.linking import Linking, Triplets, multi_similarity, triplet_margin
from newsembed.models.encoders import StarConfig
from objective_runs import jit, pair_rows
from toy_corpus import VOCAB_SIZE
from vectors import unit

CONFIG = StarConfig(VOCAB_SIZE, hidden_size=8, num_heads=2)


def triplets_of(scores, same, epsilon):
    """Every triplet that the miner keeps, by its definition."""
    found = []
    for i in range(len(scores)):
        positives = [j for j in range(scores.shape[1]) if same[i, j]]
        negatives = [k for k in range(scores.shape[1]) if not same[i, k]]
        if not positives or not negatives:
            continue
        least, most = min(scores[i, j] for j in positives), max(scores[i, k] for k in negatives)
        rivals = [k for k in negatives if scores[i, k] > least - epsilon]
        found += [(i, j, k) for j in positives if scores[i, j] < most + epsilon for k in rivals]
    return found


def mean_of(losses):
    kept = [loss for loss in losses if loss > 0]
    return np.mean(kept) if kept else 0.0


@pytest.mark.parametrize("seed", range(4))
def test_mining_and_margin_equal_loops(seed):
    rng = np.random.default_rng(seed)
    articles, posts = unit(rng, 7, 3), unit(rng, 7, 3)
    ids = rng.integers(0, 4, 7)
    scores, same = articles @ posts.T, ids[:, None] == ids[None]
    mined = multi_similarity(jnp.asarray(scores), jnp.asarray(same), 0.1)
    expected = triplets_of(scores, same, 0.1)
    kept = np.asarray(mined.positive)[:, :, None] & np.asarray(mined.negative)[:, None, :]
    assert sorted(map(tuple, np.argwhere(kept).tolist())) == sorted(expected)
    losses = [
        np.sum((articles[i] - posts[j]) ** 2) - np.sum((articles[i] - posts[k]) ** 2) + 0.075 for i, j, k in expected
    ]
    loss, count = triplet_margin(jnp.asarray(scores), mined, 0.075)
    assert float(loss) == pytest.approx(mean_of(losses), rel=1e-5)
    assert count == sum(loss > 0 for loss in losses)


def test_without_a_triplet_loss_and_gradient_are_zero():
    nothing = Triplets(jnp.zeros((2, 2), bool), jnp.ones((2, 2), bool))

    def loss(scores):
        return triplet_margin(scores, nothing)[0]

    value, gradient = jax.value_and_grad(loss)(jnp.array([[0.1, 0.9], [0.9, 0.1]]))
    assert value == 0
    assert not np.any(gradient)
    one_article = multi_similarity(jnp.array([[0.3, 0.2], [0.1, 0.0]]), jnp.ones((2, 2), bool))
    assert triplet_margin(jnp.array([[0.3, 0.2], [0.1, 0.0]]), one_article)[0] == 0


@pytest.fixture(scope="module")
def batch(batches):
    pairs = pair_rows(batches)
    ids = pairs["anchor_doc_id"]
    ids[4] = ids[7]  # two posts about one article
    pairs["anchor_tokens"][4] = pairs["anchor_tokens"][7]
    return pairs | {"positive_doc_id": ids}


def objectives(**options):
    return Objectives(Model(CONFIG, None), {"pairs": Linking(**options)})


@pytest.fixture(scope="module")
def params():
    return jax.tree.map(jax.numpy.asarray, drawn(CONFIG))


def embedded(params, batch):
    apply = jit(lambda rows: CONFIG.module().apply({"params": params}, rows, method="embed"))
    return [np.float64(apply(batch[f"{side}_tokens"])) for side in ("anchor", "positive")]


@pytest.mark.parametrize("mining", ["multi_similarity", "all"])
def test_the_loss_of_a_batch_is_that_of_its_triplets(batch, params, mining):
    articles, posts = embedded(params, batch)
    names = np.arange(12)
    names[4] = 7
    if mining == "all":
        vectors, names = np.concatenate([articles, posts]), np.tile(names, 2)
        scores, same = vectors @ vectors.T, names[:, None] == names[None]
        triples = itertools.product(range(24), repeat=3)
        found = [(i, j, k) for i, j, k in triples if i != j and same[i, j] and not same[i, k]]
    else:
        scores, same = articles @ posts.T, names[:, None] == names[None]
        found = triplets_of(scores, same, 0.1)
    expected = mean_of([2 * (scores[i, k] - scores[i, j]) + 0.075 for i, j, k in found])
    made = objectives(mining=mining)
    loss, metrics = jit(lambda params: made.loss("pairs", params, batch, jax.random.key(0)))(params)
    assert loss == pytest.approx(expected, rel=1e-4)
    cosines, other = articles @ posts.T, np.arange(12)[:, None] != np.arange(12)[None]
    other[[4, 7], [7, 4]] = False
    rivals = np.where(other, cosines, -np.inf).max(1)
    assert metrics["accuracy"] == pytest.approx(np.mean(np.diag(cosines) >= rivals))


def test_chunks_change_nothing_and_posts_are_ranked(batch, params):
    def value(chunk):
        made = objectives(gradient_chunk=chunk)
        return jit(jax.value_and_grad(lambda p: made.loss("pairs", p, batch, jax.random.key(0))[0]))(params)

    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, atol=1e-6), value(0), value(8))
    found = objectives().pairs("pairs", params, batch)
    articles, posts = embedded(params, batch)
    np.testing.assert_allclose(found.query, posts, atol=1e-6)
    np.testing.assert_allclose(found.answer, articles, atol=1e-6)
    np.testing.assert_array_equal(found.query_ids[:, :2], batch["positive_doc_id"])
