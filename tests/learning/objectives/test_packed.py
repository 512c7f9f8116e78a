"""The masked language model on packed rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.learning.objectives import Model
from newsembed.learning.objectives.packed import MaskedLanguageModel
from objective_runs import CONFIG, KEY, WITHOUT_DROPOUT, jit, loss_of, parameters
from toy_corpus import toy_objectives


def test_packed_rows_of_the_masked_language_model_equal_rows_of_their_own():
    """Two pieces in one row or in two: with every word masked alike, the terms of the loss are the same."""
    pieces = np.array([[2, 10, 11, 12, 3], [2, 20, 21, 22, 3]], np.int32)
    places, targets = np.array([[1, 3], [2, 3]], np.int32), np.array([[9, 8], [7, 6]], np.int32)
    layout = np.repeat([[1, 2]], 5, axis=1).astype(np.int32), np.tile(np.arange(5, dtype=np.int32), (1, 2))
    objective = MaskedLanguageModel(vocabulary_chunk=10)
    terms = jit(functools.partial(objective.prediction_terms, Model(WITHOUT_DROPOUT)))
    packed = terms(
        parameters(),
        (pieces.reshape(1, -1), (places + [[0], [5]]).reshape(1, -1), targets.reshape(1, -1), *layout),
        KEY,
    )
    alone = terms(parameters(), (pieces, places, targets), KEY)
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one.reshape(-1), two.reshape(-1), rtol=1e-5), packed, alone
    )


def test_the_loss_is_the_mean_cross_entropy_of_the_masked_pieces(batches):
    """Against NumPy in float64, from the logits of the rows that the objective masked."""
    batch, objective, model = jax.tree.map(jnp.asarray, batches["mlm"]), MaskedLanguageModel(), Model(WITHOUT_DROPOUT)
    mask_key, _ = jax.random.split(KEY)
    masked = objective.mask(model, mask_key, batch["tokens"], batch["word_ids"])
    apply = functools.partial(model.module.apply, {"params": parameters()})
    hidden = apply(masked.tokens, batch["segment_ids"], batch["positions"], method="encode")
    logits = np.float64(apply(hidden, method="mlm_logits"))
    total, hits, count = 0.0, 0, 0
    for row, (places, targets, weights) in enumerate(
        zip(masked.positions, masked.targets, masked.weights, strict=True)
    ):
        for place, target, weight in zip(places, targets, weights, strict=True):
            if weight:
                scores = logits[row, place]
                total += np.log(np.exp(scores).sum()) - scores[target]
                hits += scores.argmax() == target
                count += 1
    loss, metrics = loss_of("mlm", batch)
    assert count > 12
    assert loss == pytest.approx(total / count, rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(hits / count)}


def test_masks_and_dropout_follow_from_the_key(batches):
    batch, objectives = jax.tree.map(jnp.asarray, batches["mlm"]), toy_objectives(CONFIG, "mlm")
    first, same, other = (objectives.loss("mlm", parameters(), batch, jax.random.key(seed))[0] for seed in (7, 7, 8))
    assert first == same
    assert first != other
