"""LASER's classifier: one step against NumPy, the epoch that is kept, and what it learns."""

import numpy as np
import pytest
from newsembed.evaluation import heads as perceptron
from newsembed.evaluation.heads import Perceptron, predict, train

RANDOM = np.random.default_rng(0)
CENTERS = np.eye(6, dtype=np.float32)[:3]


def rows(count, noise=0.2):
    classes = np.arange(count, dtype=np.int32) % 3
    features = CENTERS[classes] + noise * RANDOM.normal(size=(count, 6))
    return features.astype(np.float32), classes


def parameters(layers):
    return [array for layer in layers for array in layer]


def test_it_learns_classes_and_the_same_seed_gives_the_same_parameters():
    head = Perceptron(epochs=200, learning_rate=1e-2)
    known, dev, asked = rows(32), rows(9), rows(300)
    first, second, other = (train(head, known, dev, 3, seed) for seed in (0, 0, 1))
    assert np.mean(predict(first, asked[0]) == asked[1]) > 0.95
    assert [array.shape for array in parameters(first)] == [(6, 10), (10,), (10, 8), (8,), (8, 3), (3,)]
    for one, two, three in zip(*map(parameters, (first, second, other)), strict=True):
        np.testing.assert_array_equal(one, two)
        assert (one != three).any()


def test_one_step_of_a_whole_batch_is_that_of_numpy(monkeypatch):
    """Adam's first step is the sign of the gradient times the learning rate; here of the plain formulas."""
    known = rows(7)
    start = [(RANDOM.normal(size=(6, 4)), RANDOM.normal(size=4)), (RANDOM.normal(size=(4, 3)), RANDOM.normal(size=3))]
    start = [(weights.astype(np.float32), bias.astype(np.float32)) for weights, bias in start]
    monkeypatch.setattr(perceptron, "_initial", lambda key, sizes: start)
    head = Perceptron(hidden=(4,), dropout=0.0, learning_rate=1e-3, batch_size=7, epochs=1)
    found = parameters(train(head, known, known, 3))

    (weights, bias), (top, top_bias) = start
    inner = np.tanh(known[0] @ weights + bias)
    logits = inner @ top + top_bias
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = (chances - np.eye(3)[known[1]]) / 7
    back = (error @ top.T) * (1 - inner**2)
    gradients = [known[0].T @ back, back.sum(0), inner.T @ error, error.sum(0)]
    for array, before, gradient in zip(found, [weights, bias, top, top_bias], gradients, strict=True):
        np.testing.assert_allclose(array, before - 1e-3 * np.sign(gradient), atol=2e-5)


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_last_of_the_best_epochs_on_dev_is_kept(epochs):
    known, dev = rows(12), rows(3)
    # All epochs guess the only class of this dev part or none of them do: equal accuracies keep the last epoch.
    nothing = (dev[0], np.full(3, 9, np.int32))
    kept = parameters(train(Perceptron(epochs=3), known, nothing, 3))
    fewer = parameters(train(Perceptron(epochs=epochs), known, nothing, 3))
    is_same = all((one == two).all() for one, two in zip(kept, fewer, strict=True))
    assert is_same == (epochs == 3)


def test_a_better_epoch_before_the_last_is_kept():
    known, dev = rows(12), rows(30)
    wrong = (dev[0], (dev[1] + 1) % 3)  # the better it learns, the worse it is on this dev part
    head = Perceptron(epochs=200, learning_rate=1e-2)
    kept = train(head, known, wrong, 3)
    assert np.mean(predict(train(head, known, dev, 3), wrong[0]) == wrong[1]) < 0.1
    assert np.mean(predict(kept, wrong[0]) == wrong[1]) >= 0.3


def test_a_smaller_last_batch_counts_each_document_once(monkeypatch):
    """Seven documents in batches of four."""
    seen = []
    real = perceptron._logits

    def spy(layers, values, dropout=0.0, key=None):
        if key is not None:
            import jax

            jax.debug.callback(lambda array: seen.append(np.asarray(array)), values)
        return real(layers, values, dropout, key)

    monkeypatch.setattr(perceptron, "_logits", spy)
    known = (np.arange(7, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32), np.zeros(7, np.int32))
    import jax

    perceptron._trainer.cache_clear()
    train(Perceptron(batch_size=4, epochs=1, dropout=0.5), known, known, 2)
    jax.effects_barrier()
    perceptron._trainer.cache_clear()
    used = [int(row[0]) for batch in seen for row in batch]
    assert len(seen) == 2
    assert set(used) == set(range(7))
    assert len(used) == 8  # the row that fills the last batch has no weight


def test_dropout_keeps_the_mean_and_drops_its_share():
    import jax

    ones, layers = np.ones((200, 50), np.float32), [(np.eye(50, dtype=np.float32), np.zeros(50, np.float32))]
    kept = np.asarray(perceptron._logits(layers, ones, 0.2, jax.random.key(0)))
    assert set(np.unique(kept.round(3))) == {0.0, 1.25}
    assert np.mean(kept == 0) == pytest.approx(0.2, abs=0.02)
    np.testing.assert_array_equal(perceptron._logits(layers, ones), ones)
