"""Translation and its distance: against float64 NumPy, one device like eight, held-out pairs, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.errors import InputError
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.learning.objectives.translation import Translation
from newsembed.models.encoders import EncoderConfig, LaserConfig, TranslatorConfig
from newsembed.models.losses import contrastive_distance, draw_negatives
from newsembed.training.held_out import join_pairs
from objective_runs import translation_rows

CONFIG = TranslatorConfig(
    40, hidden_size=8, num_layers=1, num_heads=2, mlp_size=12, num_languages=3, language_size=4, dropout_rate=0.0
)
KEY = jax.random.key(5)
PAIRS = 6


@pytest.fixture(scope="module")
def batch():
    return translation_rows([0, 1, 2, 0, 1, 2])


@pytest.fixture(scope="module")
def params():
    return jax.tree.map(jnp.asarray, drawn(CONFIG, deviation=0.1))


def loss_of(batch, params, **options):
    model, objective = Model(CONFIG), Translation(**options)
    loss, metrics = jax.jit(lambda p, b: objective.loss(model, p, b, KEY))(params, batch)
    return float(loss), {name: float(value) for name, value in metrics.items()}


def by_hand(batch, params, *, weight, smoothing, negative_weight, margin, negatives):
    """The loss of the class, from the vectors and the logits of the module; `models` tests the distance."""
    module = CONFIG.module()

    def apply(method, *arguments):
        run = jax.jit(lambda *given: module.apply({"params": params}, *given, method=method))
        return jax.tree.map(np.float64, run(*arguments))

    targets = batch["target_tokens"]
    left, states = apply("translation", batch["source_tokens"], targets[:, :-1], batch["target_language"])
    right = apply("sentence", targets)
    table, bias = apply("target_table")
    logits = states @ table.T + bias
    logs = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    translation, hits, tokens = np.zeros(PAIRS), 0, 0
    for row in range(PAIRS):
        for place, token in enumerate(targets[row, 1:]):
            if token:
                smoothed = (1 - smoothing) * logs[row, place, token] + smoothing * logs[row, place].mean()
                translation[row] -= smoothed
                hits += logs[row, place].argmax() == token
                tokens += 1
    others = draw_negatives(jax.random.split(KEY, 3)[2], PAIRS, negatives)
    own, terms = contrastive_distance(left, right, others, scale="batch_means", margin=margin)
    total = translation.sum() / 2 + weight * float(jnp.sum(own + negative_weight * terms))
    return total / tokens, translation.sum() / tokens, hits / tokens


@pytest.mark.parametrize("chunk", [0, 16])
def test_the_loss_is_that_of_the_thesis(batch, params, chunk):
    expected = by_hand(batch, params, weight=0.7, smoothing=0.1, negative_weight=2.0, margin=0.9, negatives=3)
    loss, metrics = loss_of(
        batch, params, distance_weight=0.7, negative_weight=2.0, margin=0.9, negatives=3, vocabulary_chunk=chunk
    )
    assert loss == pytest.approx(expected[0], rel=1e-5)
    assert metrics["translation_loss"] == pytest.approx(expected[1], rel=1e-5)
    assert metrics["accuracy"] == pytest.approx(expected[2])
    assert metrics["pair_distance"] > 0
    assert metrics["negative_loss"] > 0


def test_held_out_pairs_have_the_ids_of_their_texts(batch, params):
    twice = {name: np.concatenate([values, values[:2]]) for name, values in batch.items()}
    found = jax.tree.map(np.asarray, Translation().pairs(Model(CONFIG), params, twice))
    np.testing.assert_allclose(np.linalg.norm(found.query, axis=1), 1.0, rtol=1e-5)
    assert len({tuple(row) for row in found.query_ids.tolist()}) == PAIRS
    assert len({tuple(row) for row in np.concatenate([found.query_ids, found.answer_ids]).tolist()}) == 2 * PAIRS
    assert len(join_pairs([found], 100).query) == PAIRS


def test_it_is_the_objective_of_the_task_and_bounds_its_languages():
    objectives = Objectives(Model(CONFIG), objectives_of(["translation"]))
    assert objectives.bounds == {"pieces": 40, "topics": 0, "languages": 3}
    assert Objectives(Model(LaserConfig(40)), objectives_of(["translation"])).bounds["languages"] == 2
    with pytest.raises(InputError, match="translation.*news"):
        Objectives(Model(EncoderConfig(40)), objectives_of(["translation"]))


def test_a_batch_of_one_pair_has_no_negatives(batch, params):
    one = {name: values[:1] for name, values in batch.items()}
    with pytest.raises(InputError, match="no negatives"):
        loss_of(one, params, distance_weight=0.1)
