"""SimLTE's loss: the contrastive term against NumPy in float64, and masked words alone."""

import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.contrastive import Contrastive
from newsembed.learning.objectives.masked_texts import MaskedTexts
from objective_runs import CONFIG, KEY, WITHOUT_DROPOUT, jit, loss_of, method_of, parameters
from toy_corpus import toy_objectives

FEATURES = ("anchor_tokens", "positive_tokens", "anchor_doc_id", "positive_doc_id")


@pytest.fixture(scope="module")
def pairs(batches):
    rows = {name: np.array(batches["triplets"][name]) for name in FEATURES}
    # Every pair is of an article of its own.
    rows["anchor_doc_id"] = rows["positive_doc_id"] = np.stack([np.arange(12), np.arange(12)], 1).astype(np.int32)
    return rows | {"day": np.zeros(12, np.int32)}


def test_the_loss_is_equation_1_and_a_tenth_of_the_masked_language_model(pairs):
    loss, metrics = loss_of("pairs", pairs, temperature=0.05, mlm_weight=0.1)
    left, right = (np.float64(method_of("embed")(pairs[name])) for name in FEATURES[:2])
    cosines = left @ right.T / np.linalg.norm(left, axis=1)[:, None] / np.linalg.norm(right, axis=1)
    exponents = np.exp(cosines / 0.05)
    equation_1 = np.mean([-np.log(exponents[i, i] / exponents[i].sum()) for i in range(12)])
    assert float(loss) == pytest.approx(equation_1 + 0.1 * float(metrics["mlm_loss"]), abs=2e-6)
    assert metrics["mlm_loss"] > 1


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


def test_masked_texts_count_their_weight_and_flops(pairs):
    objectives = Objectives(toy_objectives(CONFIG, "pairs").model, {"pairs": MaskedTexts(masking_rate=0.5)})
    assert objectives.pretrains
    assert objectives.evaluated().of_task["pairs"] == MaskedTexts(masking_rate=0.5)
    lengths = {"anchor_tokens": 8, "positive_tokens": 6}
    predicted = 2 * 3 * 8  # positions of two texts of three pairs: counts are rounded up to 8
    expected = 6 * CONFIG.flops("encode", 8) + CONFIG.flops("mlm_logits", predicted)
    assert objectives.of_task["pairs"].flops(CONFIG, lengths, 3) == expected
    with pytest.raises(InputError, match=r"MaskedTexts.mlm_weight: got 0"):
        MaskedTexts(mlm_weight=0.0)
    with pytest.raises(InputError, match="continuation pieces"):
        Objectives(Model(CONFIG), {"pairs": MaskedTexts()})
