"""Denoising: loss and gradient equal NumPy in float64; the noise, alpha, chunks and what is refused."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.denoising import Denoising
from newsembed.models.encoders import AutoencoderConfig
from newsembed.models.encoders.autoencoder import distinct_words
from toy_corpus import toy_config

WORDS, UNITS, ROWS = 40, 6, 5
MODEL = Model(AutoencoderConfig(vocab_size=WORDS, embedding_size=UNITS, max_length=16))
KEY = jax.random.key(5)
ROLES = ("anchor", "positive", "negative")


@pytest.fixture(scope="module")
def params():
    fresh = nn.unbox(jax.jit(MODEL.module.init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32))["params"])
    keys = iter(jax.random.split(jax.random.key(1), 4))
    return jax.tree.map(lambda array: array + jax.random.normal(next(keys), array.shape) / 3, fresh)


def make_batch(lengths=(9, 12, 7)):
    rng = np.random.default_rng(0)
    texts = {f"{role}_tokens": rng.integers(0, WORDS, (ROWS, size)) for role, size in zip(ROLES, lengths, strict=True)}
    texts["negative_tokens"][3] = 0  # a text without words
    ids = {f"{role}_doc_id": np.zeros((ROWS, 2)) for role in ROLES} | {
        f"{role}_event": np.ones((ROWS, 3)) for role in ROLES
    }
    return {name: jnp.array(values, jnp.int32) for name, values in (texts | ids | {"augmentation": [3] * ROWS}).items()}


BATCH = make_batch()


def value_and_gradient(params, batch=BATCH, **options):
    objective = Denoising(**options)
    compute = jax.jit(jax.value_and_grad(lambda p, b: objective.loss(MODEL, p, b, KEY), has_aux=True))
    (loss, metrics), gradient = compute(params, batch)
    return float(loss), {name: float(value) for name, value in metrics.items()}, jax.tree.map(np.asarray, gradient)


def binary(tokens):
    x = np.zeros((len(tokens), WORDS))
    for number, row in enumerate(np.asarray(tokens)):
        x[number, [token for token in row if token >= 5]] = 1
    return x


def logistic(values):
    return 1 / (1 + np.exp(-values))


def reference(params, alpha, inputs):
    """Loss, mean second term and gradient by hand, in float64; `inputs` are the vectors that the encoder reads."""
    w, b, v, c = (
        np.asarray(params[name], np.float64)
        for name in ("encoder_kernel", "encoder_bias", "decoder_kernel", "decoder_bias")
    )
    x = [binary(BATCH[f"{role}_tokens"]) for role in ROLES]
    s = [logistic(one @ w + b) for one in inputs]
    h = [one - logistic(b) for one in s]
    is_word = np.arange(WORDS) >= 5
    y = [logistic(one @ v.T + c) for one in h]
    entropies = [
        -((one * np.log(two) + (1 - one) * np.log(1 - two)) * is_word).sum(1) for one, two in zip(x, y, strict=True)
    ]
    gap = (h[0] * h[2]).sum(1) - (h[0] * h[1]).sum(1)
    similarity = np.log1p(np.exp(gap))
    of_gap = alpha * logistic(gap)[:, None]
    of_h = [of_gap * (h[2] - h[1]), -of_gap * h[0], of_gap * h[0]]
    gradient = dict.fromkeys(("encoder_kernel", "encoder_bias", "decoder_kernel", "decoder_bias"), 0.0)
    for role in range(3):
        of_z = (y[role] - x[role]) * is_word
        whole = of_h[role] + of_z @ v
        of_sum = whole * s[role] * (1 - s[role])
        gradient["encoder_kernel"] += inputs[role].T @ of_sum / ROWS
        gradient["encoder_bias"] += (of_sum - whole * logistic(b) * (1 - logistic(b))).sum(0) / ROWS
        gradient["decoder_kernel"] += of_z.T @ h[role] / ROWS
        gradient["decoder_bias"] += of_z.sum(0) / ROWS
    return (sum(entropies) + alpha * similarity).mean(), np.mean(entropies), similarity.mean(), gradient


def corrupted(share):
    """The inputs as the step's key draws them: by text, in the order of the triplets."""
    length = max(BATCH[f"{role}_tokens"].shape[1] for role in ROLES)
    rows = [np.pad(BATCH[f"{role}_tokens"], ((0, 0), (0, length - BATCH[f"{role}_tokens"].shape[1]))) for role in ROLES]
    words = distinct_words(jnp.array(np.stack(rows, 1).reshape(-1, length)))
    kept = jnp.where(jax.random.bernoulli(KEY, 1 - share, words.shape), words, 0)
    return [binary(np.asarray(kept)[role::3]) for role in range(3)]


@pytest.mark.parametrize(("alpha", "share"), [(7.0, 0.0), (7.0, 0.3), (0.0, 0.3)])
def test_loss_and_gradient_are_those_of_numpy(params, alpha, share):
    loss, metrics, gradient = value_and_gradient(params, alpha=alpha, masking_share=share)
    expected, entropy, similarity, of_params = reference(params, alpha, corrupted(share))
    assert loss == pytest.approx(expected, rel=1e-5)
    assert metrics["reconstruction"] == pytest.approx(entropy, rel=1e-5)
    assert metrics["similarity_loss"] == pytest.approx(similarity, rel=1e-5)
    for name, right in of_params.items():
        np.testing.assert_allclose(gradient[name], right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("chunk", [11, 40])
def test_chunks_of_the_vocabulary_change_nothing(params, chunk):
    whole, parts = (value_and_gradient(params, vocabulary_chunk=size) for size in (0, chunk))
    assert parts[0] == pytest.approx(whole[0], rel=1e-5)
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5), whole[2], parts[2])


def test_the_accuracy_counts_anchors_that_are_closer_to_the_positive(params):
    texts = BATCH["anchor_tokens"]
    same = {**BATCH, "positive_tokens": texts, "negative_tokens": jnp.zeros_like(texts)}
    assert value_and_gradient(params, same, masking_share=0.0)[1]["accuracy"] == 1
    reverse = {**same, "positive_tokens": same["negative_tokens"], "negative_tokens": same["anchor_tokens"]}
    assert value_and_gradient(params, reverse, masking_share=0.0)[1]["accuracy"] == 0


def test_held_out_texts_lose_no_words(params):
    evaluated = Denoising(alpha=2.0).evaluated()
    assert evaluated == Denoising(alpha=2.0, masking_share=0.0)
    pairs = evaluated.pairs(MODEL, params, BATCH)
    expected = MODEL.module.apply({"params": params}, BATCH["anchor_tokens"], method="embed")
    np.testing.assert_allclose(pairs.query, expected, rtol=1e-5)
    np.testing.assert_array_equal(pairs.answer_ids[0], [0, 0, 1, 1, 1])


def test_several_negatives_are_refused(params):
    batch = {**BATCH, "negative_tokens": jnp.ones((ROWS, 2, 7), jnp.int32)}
    with pytest.raises(InputError, match="got 2 negatives"):
        Denoising().loss(MODEL, params, batch, KEY)


def test_another_architecture_is_refused():
    with pytest.raises(InputError, match="the objective Denoising needs reconstruction"):
        Objectives(Model(toy_config(), np.zeros(64, bool)), {"triplets": Denoising()})
