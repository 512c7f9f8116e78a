"""The masked language model: on packed rows, on texts of pairs, and beside SimLTE's contrastive loss."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import MASK_ID, SPECIAL_TOKENS
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.contrastive import Contrastive
from newsembed.learning.objectives.masked_language import MaskedTexts
from newsembed.models.masking import MASKING_RATE, mask_whole_words
from objective_runs import CONFIG, KEY, WITHOUT_DROPOUT, jit, loss_of, pair_rows, parameters
from toy_corpus import toy_objectives


def test_the_loss_is_the_mean_cross_entropy_of_the_masked_pieces(batches):
    """Against NumPy in float64, from the logits of the rows masked with the first half of the key."""
    batch, model = jax.tree.map(jnp.asarray, batches["mlm"]), Model(WITHOUT_DROPOUT)
    mask_key, _ = jax.random.split(KEY)
    ids = {"vocab_size": CONFIG.vocab_size, "mask_id": MASK_ID, "first_piece_id": len(SPECIAL_TOKENS)}
    masked = mask_whole_words(mask_key, batch["tokens"], batch["word_ids"], **ids, rate=MASKING_RATE)
    apply = functools.partial(model.module.apply, {"params": parameters()})
    hidden = apply(masked.tokens, batch["segment_ids"], batch["positions"], method="encode")
    table, bias = apply(method="output_table")
    logits = np.float64(apply(hidden, method="mlm_states")) @ np.float64(table).T + np.float64(bias)
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


@pytest.fixture(scope="module")
def pairs(batches):
    rows = pair_rows(batches)
    # Every pair is of an article of its own.
    rows["anchor_doc_id"] = rows["positive_doc_id"] = np.stack([np.arange(12), np.arange(12)], 1).astype(np.int32)
    return rows


def test_masked_words_alone_are_those_that_the_contrastive_objective_adds(pairs):
    model = toy_objectives(WITHOUT_DROPOUT, "pairs").model
    _, metrics = jit(lambda params: Contrastive(mlm_weight=0.1).loss(model, params, pairs, KEY))(parameters())
    alone = jit(
        jax.value_and_grad(lambda params: MaskedTexts().loss(model, params, pairs, jax.random.split(KEY)[1])[0])
    )
    loss, gradient = alone(parameters())
    assert float(loss) == pytest.approx(float(metrics["mlm_loss"]), rel=1e-6)
    sizes = {name: max(float(abs(array).max()) for array in jax.tree.leaves(part)) for name, part in gradient.items()}
    assert sizes["embedding_head"] == sizes["topic_head"] == 0
    assert sizes["token_embedding"] > 0


def test_masked_texts_count_their_weight(pairs):
    objectives = Objectives(toy_objectives(CONFIG, "pairs").model, {"pairs": MaskedTexts(masking_rate=0.5)})
    assert objectives.pretrains
    assert objectives.evaluated().of_task["pairs"] == MaskedTexts(masking_rate=0.5)
    with pytest.raises(InputError, match="continuation pieces"):
        Objectives(Model(CONFIG), {"pairs": MaskedTexts()})
