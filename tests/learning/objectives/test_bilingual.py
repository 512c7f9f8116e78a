"""Translation both ways: against float64 NumPy, what is trained, either order of the languages, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.errors import InputError
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.translation import BilingualTranslation, texts_by_language
from newsembed.models.encoders import BilingualConfig, TranslatorConfig
from newsembed.models.losses import draw_negatives
from objective_runs import translation_rows

CONFIG = BilingualConfig(40, max_length=16, token_size=6, hidden_size=5, vector_size=4, num_heads=3)
KEY = jax.random.key(5)
PAIRS = 6


@pytest.fixture(scope="module")
def batch():
    return translation_rows([0, 1, 0, 0, 1, 1])


@pytest.fixture(scope="module")
def params():
    return jax.tree.map(jnp.asarray, drawn(CONFIG))


def loss_of(batch, params, **options):
    model, objective = Model(CONFIG), BilingualTranslation(**options)
    loss, metrics = jax.jit(lambda p, b: objective.loss(model, p, b, KEY))(params, batch)
    return float(loss), {name: float(value) for name, value in metrics.items()}


@pytest.fixture(scope="module")
def hand(batch, params):
    """What the loss is made of, from the vectors and the logits of the module, in float64."""
    module = CONFIG.module()

    def apply(method, *arguments):
        given, translator = arguments[:-1], arguments[-1]
        run = jax.jit(lambda *given: module.apply({"params": params}, *given, translator, method=method))
        return run(*given)

    source, target = np.pad(batch["source_tokens"], ((0, 0), (0, 0))), np.pad(batch["target_tokens"], ((0, 0), (0, 1)))
    is_first = batch["target_language"][:, None] == 0
    texts = np.where(is_first, target, source), np.where(is_first, source, target)
    vectors, losses, hits, tokens = [], 0.0, 0, 0
    for reader, (text, written) in ((1, texts), (0, texts[::-1])):
        reading = apply("read", jnp.array(text), reader)
        vectors.append(np.float64(reading.sentence))
        states = apply("write", reading, jnp.array(written[:, :-1]), reader)
        table, bias = map(np.float64, apply("target_table", reader))
        logits = np.float64(states) @ table.T + bias
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        for row, place in zip(*np.nonzero(written[:, 1:]), strict=True):
            losses -= logs[row, place, written[row, place + 1]]
            hits += logs[row, place].argmax() == written[row, place + 1]
            tokens += 1
    score = np.float64(params["language_scores"])
    odds = [np.where(text > 0, score[text], 0).sum(axis=1) for text in texts]
    language = np.mean([np.log1p(np.exp(odds[0])), np.log1p(np.exp(-odds[1]))])
    return vectors, losses, hits, tokens, language


@pytest.mark.parametrize("chunk", [0, 16])
def test_the_loss_is_that_of_the_thesis(batch, params, hand, chunk):
    (left, right), losses, hits, tokens, language = hand
    norm, margin, beta = np.linalg.norm, 1.5, 0.3
    v = (norm(left, axis=1).mean() + norm(right, axis=1).mean()) / 2
    others = np.asarray(draw_negatives(jax.random.split(KEY, 3)[2], PAIRS, 3))
    gaps = [[norm(left[i] - right[i]) ** 2 - norm(left[i] - right[j]) ** 2 for j in others[i]] for i in range(PAIRS)]
    distance = np.maximum(0, margin + margin * np.array(gaps) / (2 * v + 1)).sum(axis=1).mean()
    loss, metrics = loss_of(batch, params, distance_weight=beta, margin=margin, negatives=3, vocabulary_chunk=chunk)
    assert metrics["distance_loss"] == pytest.approx(distance, rel=1e-5)
    assert metrics["translation_loss"] == pytest.approx(losses / tokens, rel=1e-5)
    assert metrics["accuracy"] == pytest.approx(hits / tokens)
    assert metrics["language_loss"] == pytest.approx(language, rel=1e-5)
    assert loss == pytest.approx((1 - beta) * losses / PAIRS + beta * distance + language, rel=1e-5)


def test_a_pair_counts_alike_whichever_side_is_the_target(batch, params):
    texts = [np.asarray(side) for side in texts_by_language(batch)]
    turned = {"source_tokens": texts[0], "target_tokens": texts[1], "target_language": np.ones(PAIRS, np.int32)}
    again = [np.asarray(side) for side in texts_by_language(turned)]
    for found, expected in zip(again, texts, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert loss_of(turned, params)[0] == pytest.approx(loss_of(batch, params)[0], rel=1e-6)


def test_only_the_shared_layers_and_the_languages_get_a_gradient(batch, params):
    model, objective = Model(CONFIG), BilingualTranslation()
    gradient = jax.jit(jax.grad(lambda p: objective.loss(model, p, batch, KEY)[0]))(params)
    moved = {name for name, part in gradient.items() if any(np.any(array) for array in jax.tree.leaves(part))}
    assert moved == {"shared_recurrence", "shared_heads", "shared_states", "language_scores"}


def test_it_needs_two_translators_and_bounds_two_languages():
    objectives = Objectives(Model(CONFIG), {"translation": BilingualTranslation()})
    assert objectives.bounds["languages"] == 2
    with pytest.raises(InputError, match=r"bilingual.*translator architecture"):
        Objectives(Model(TranslatorConfig(40, hidden_size=8, num_heads=2)), objectives.of_task)
