"""The losses against plain float64 references, and who is left out of the denominator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models import losses
from newsembed.models.losses import Documents, Kept

# Compiled: op by op, each operation would be a program of its own.
info_nce = jax.jit(losses.info_nce, static_argnames=("temperature", "symmetric", "chunks"))
topic_bce = jax.jit(losses.topic_bce)


def unit(rng, rows, size=6):
    vectors = rng.normal(size=(rows, size))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def ids(names):
    return jnp.array([[-1, name, 0, 0, 0] for name in names], jnp.int32)


def general_reference(anchor, positive, negatives, names, kept, there, *, symmetric=False, temperature=0.05):
    """Term by term, in float64, with every option; `negatives` [B, N, D], `names` lists of names, `there` [B, N]."""
    rows = [i for i in range(len(anchor)) if kept[i]]
    total = 0.0
    for i in rows:
        mine = {names[0][i], names[1][i]}
        forward = [positive[j] for j in rows if j != i and names[1][j] not in mine]
        forward += [
            negatives[j][n]
            for j in rows
            for n in range(negatives.shape[1])
            if there[j][n] and names[2][j][n] not in mine
        ]
        backward = [anchor[j] for j in rows if j != i and names[0][j] not in mine]
        own = np.exp(anchor[i] @ positive[i] / temperature)
        one, two = (
            -np.log(own / (own + sum(np.exp(query @ vector / temperature) for vector in others)))
            for query, others in ((anchor[i], forward), (positive[i], backward))
        )
        total += (one + two) / 2 if symmetric else one
    return total / max(1, len(rows))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("chunks", [1, 3])
def test_every_option_of_info_nce_equals_its_formula(symmetric, chunks):
    rng = np.random.default_rng(5)
    anchor, positive = unit(rng, 6), unit(rng, 6)
    negatives = unit(rng, 12).reshape(6, 2, -1)
    names = (list(rng.integers(0, 8, 6)), list(rng.integers(0, 8, 6)), rng.integers(0, 8, (6, 2)).tolist())
    kept, there = np.array([1, 1, 0, 1, 1, 0], bool), rng.integers(0, 2, (6, 2)).astype(bool)
    documents = Documents(ids(names[0]), ids(names[1]), ids(sum(names[2], [])).reshape(6, 2, 5))
    arrays = tuple(map(jnp.float32, (anchor, positive, negatives)))

    def loss(*vectors):
        options = {"documents": documents, "kept": Kept(kept, there), "symmetric": symmetric, "chunks": chunks}
        return info_nce(*vectors, **options).loss

    expected = general_reference(anchor, positive, negatives, names, kept, there, symmetric=symmetric)
    assert float(loss(*arrays)) == pytest.approx(expected, rel=1e-5)
    gradients = jax.grad(loss, argnums=(0, 1, 2))(*arrays)
    for gradient, vectors in zip(gradients, (anchor, positive, negatives), strict=True):
        np.testing.assert_array_equal(np.asarray(gradient)[~kept], 0)  # a triplet without a part moves nothing
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        step = np.zeros_like(vectors)
        step[place] = 1e-6
        moved = [[v + sign * step if v is vectors else v for v in (anchor, positive, negatives)] for sign in (1, -1)]
        up, down = (general_reference(*three, names, kept, there, symmetric=symmetric) for three in moved)
        assert float(gradient[place]) == pytest.approx((up - down) / 2e-6, rel=1e-3)


def test_a_batch_of_which_nothing_is_kept_has_no_loss():
    same = jnp.eye(3)
    result = info_nce(same, same, same, kept=Kept(jnp.zeros(3, bool)))
    assert (float(result.loss), float(result.accuracy)) == (0, 0)


@pytest.mark.parametrize("chunks", [1, 2])
def test_alignment_and_uniformity_equal_their_formulas(chunks):
    rng = np.random.default_rng(7)
    x, y = unit(rng, 6), unit(rng, 6)
    kept = np.array([1, 1, 0, 1, 1, 1], bool)
    pairs = [
        np.exp(-2 * ((x[i] - x[j]) ** 2).sum()) for i in range(6) for j in range(6) if i != j and kept[i] and kept[j]
    ]
    assert float(losses.uniformity(jnp.float32(x), kept, chunks=chunks)) == pytest.approx(
        np.log(np.mean(pairs)), rel=1e-5
    )
    assert float(losses.alignment(jnp.float32(x), jnp.float32(y), kept)) == pytest.approx(
        ((x - y)[kept] ** 2).sum(1).mean(), rel=1e-5
    )
    assert float(losses.uniformity(jnp.ones((3, 4)) / 2)) == pytest.approx(0, abs=1e-6)
    assert float(losses.uniformity(jnp.ones((1, 4)) / 2)) == 0


def test_the_mean_cross_entropy_equals_its_formula_and_ignores_empty_slots():
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(2, 4, 9)) * 3, rng.integers(0, 9, (2, 4))
    weights = np.array([[1, 1, 0, 0], [1, 0, 0, 1]], np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    right = np.take_along_axis(log_probabilities, targets[..., None], -1)[..., 0]
    terms = losses.terms_of_logits(jnp.float32(logits), jnp.int32(targets))
    result = losses.mean_cross_entropy(terms, jnp.float32(weights))
    assert float(result.loss) == pytest.approx(-(right * weights).sum() / 4, rel=1e-5)
    assert float(result.accuracy) == pytest.approx(((logits.argmax(-1) == targets) * weights).sum() / 4)
    empty, one = (losses.mean_cross_entropy(terms, jnp.zeros((2, 4)).at[1, 2].set(weight)) for weight in (0, 1))
    assert float(empty.loss) == 0
    assert float(one.loss) == pytest.approx(-right[1, 2], rel=1e-5)


def test_topics_without_a_label_have_neither_loss_nor_gradient():
    logits = np.random.default_rng(4).normal(size=(4, 6)) * 4
    logits[0, 1], logits[1, 5], logits[2, 2] = 3, 2, 1  # the last one on the wrong side of 0
    topic_ids = np.array([[1, 4, 0], [5, 0, 0], [2, 0, 0], [0, 0, 0]])
    labels = np.array([[1, 0, -1], [1, -1, -1], [0, -1, -1], [-1, -1, -1]])
    listed = [(logits[0, 1], 1), (logits[0, 4], 0), (logits[1, 5], 1), (logits[2, 2], 0)]
    # The sum over the labels of a document, the mean over the three documents that have any.
    expected = -sum(np.log(1 / (1 + np.exp(-x))) if y else np.log(1 - 1 / (1 + np.exp(-x))) for x, y in listed) / 3
    result = topic_bce(jnp.float32(logits), jnp.int32(topic_ids), jnp.int32(labels))
    assert float(result.loss) == pytest.approx(expected, rel=1e-5)
    assert float(result.accuracy) == pytest.approx(np.mean([(x > 0) == (y > 0) for x, y in listed]))
    gradient = np.asarray(
        jax.grad(lambda x: topic_bce(x, jnp.int32(topic_ids), jnp.int32(labels)).loss)(jnp.float32(logits))
    )
    assert set(zip(*np.nonzero(gradient), strict=True)) == {(0, 1), (0, 4), (1, 5), (2, 2)}


@pytest.mark.parametrize(("days", "symmetric", "chunks"), [(1, False, 1), (3, False, 4), (2, True, 4)])
def test_reports_of_the_same_event_leave_the_denominator(days, symmetric, chunks):
    """They count as copies of the anchor's document would, and documents of no event as those of their own."""
    rng = np.random.default_rng(11)
    anchor, positive, negatives = unit(rng, 8), unit(rng, 8), unit(rng, 16).reshape(8, 2, -1)

    def drawn(*shape):  # few stories and days, some of them unknown
        stories, days = rng.integers(0, 3, shape), rng.integers(0, 6, shape)
        return np.stack([np.zeros_like(stories), -stories, days], axis=-1).astype(np.int32)

    events = drawn(8), drawn(8), drawn(8, 2)

    def same(left, right):
        return left[1] == right[1] != 0 and left[2] != 0 and right[2] != 0 and abs(left[2] - right[2]) <= days

    def term(i, query, answer, candidates):
        row = (events[0][i], events[1][i])
        others = [vector for vector, event in candidates if not any(same(one, event) for one in row)]
        scores = [query @ vector / 0.05 for vector in (answer, *others)]
        return np.log(np.sum(np.exp(scores))) - scores[0]

    expected = 0.0
    for i in range(8):
        forward = [(positive[j], events[1][j]) for j in range(8) if j != i]
        forward += [(negatives[j][n], events[2][j][n]) for j in range(8) for n in range(2)]
        loss = term(i, anchor[i], positive[i], forward)
        backward = [(anchor[j], events[0][j]) for j in range(8) if j != i]
        expected += (loss + term(i, positive[i], anchor[i], backward)) / 2 if symmetric else loss
    # No document is twice in the batch.
    names = np.arange(8 * 4, dtype=np.int32).reshape(8, 4)
    own = [np.stack([part, part + 1], axis=-1) for part in (names[:, 0], names[:, 1], names[:, 2:])]
    vectors = tuple(map(jnp.float32, (anchor, positive, negatives)))
    options = {"symmetric": symmetric, "chunks": chunks}
    found, plain = (
        float(info_nce(*vectors, documents=Documents(*rows, days=days), **options).loss)
        for rows in (
            [np.concatenate([ids, factor * event], axis=-1) for ids, event in zip(own, events, strict=True)]
            for factor in (1, 0)
        )
    )
    assert found == pytest.approx(expected / 8, rel=1e-5)
    assert abs(found - plain) > 0.01  # the rule makes a difference here
