"""The losses against plain float64 references, and who is left out of the denominator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models import losses
from newsembed.models.losses import DocumentIds, Kept

# Compiled: op by op, each operation would be a program of its own.
info_nce = jax.jit(losses.info_nce, static_argnames=("temperature", "symmetric", "chunks"))
masked_language_model = jax.jit(losses.masked_language_model)
topic_bce = jax.jit(losses.topic_bce)


def unit(rng, rows, size=6):
    vectors = rng.normal(size=(rows, size))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def reference_info_nce(anchor, positive, negative, temperature, names=None):
    """Term by term, in float64; `names`: (anchor, positive, negative) document names."""
    total = 0.0
    for i in range(len(anchor)):
        candidates = [(positive[j], names and names[1][j]) for j in range(len(anchor)) if j != i]
        candidates += [(negative[j], names and names[2][j]) for j in range(len(anchor))]
        own = np.exp(anchor[i] @ positive[i] / temperature)
        others = [
            np.exp(anchor[i] @ vector / temperature)
            for vector, name in candidates
            if not names or name not in (names[0][i], names[1][i])
        ]
        total -= np.log(own / (own + sum(others)))
    return total / len(anchor)


def ids(names):
    return jnp.array([[-1, name] for name in names], jnp.int32)


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
    doc_ids = DocumentIds(ids(names[0]), ids(names[1]), ids(sum(names[2], [])).reshape(6, 2, 2))
    arrays = tuple(map(jnp.float32, (anchor, positive, negatives)))

    def loss(*vectors):
        options = {"doc_ids": doc_ids, "kept": Kept(kept, there), "symmetric": symmetric, "chunks": chunks}
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


def test_without_negatives_an_anchor_meets_the_positives_alone():
    rng = np.random.default_rng(6)
    anchor, positive = unit(rng, 5), unit(rng, 5)
    scores = anchor @ positive.T / 0.05
    expected = np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores))
    assert float(info_nce(jnp.float32(anchor), jnp.float32(positive)).loss) == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_which_nothing_is_kept_has_no_loss():
    same = jnp.eye(3)
    result = info_nce(same, same, same, kept=Kept(jnp.zeros(3, bool)))
    assert (float(result.loss), float(result.accuracy)) == (0, 0)


def test_a_prefix_has_length_one_and_a_finite_gradient_even_where_it_is_zero():
    vectors = jnp.array([[3.0, 4.0, 12.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(losses.normalized_prefix(vectors, 2), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    tiny = jnp.float32([[3e-9, 4e-9, 1]])  # short, but not zero
    np.testing.assert_allclose(losses.normalized_prefix(tiny, 2), [[0.6, 0.8]], rtol=1e-6)
    assert np.isfinite(jax.grad(lambda v: losses.normalized_prefix(v, 2).sum())(vectors)).all()


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


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_info_nce_equals_its_formula(temperature):
    rng = np.random.default_rng(0)
    anchor, positive, negative = (unit(rng, 7) for _ in range(3))
    expected = reference_info_nce(anchor, positive, negative, temperature)
    loss, accuracy = info_nce(*map(jnp.float32, (anchor, positive, negative)), temperature=temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    scores = anchor @ np.concatenate([positive, negative]).T
    assert float(accuracy) == pytest.approx(np.mean(scores.argmax(axis=1) == np.arange(7)))


def test_the_same_document_leaves_the_denominator_and_nothing_else_does():
    rng = np.random.default_rng(1)
    anchor, positive, negative = (unit(rng, 5) for _ in range(3))
    # Rows 0 and 3 share their positive; the negative of 2 is the anchor of 1; the positive of 4 is the anchor of 0; 1's
    # negative is 1's positive.
    names = ([10, 11, 12, 13, 14], [20, 21, 22, 20, 10], [30, 21, 11, 33, 34])
    doc_ids = DocumentIds(*map(ids, names))
    vectors = tuple(map(jnp.float32, (anchor, positive, negative)))
    expected = reference_info_nce(anchor, positive, negative, 0.05, names)
    assert float(info_nce(*vectors, doc_ids=doc_ids).loss) == pytest.approx(expected, rel=1e-5)
    assert expected < reference_info_nce(anchor, positive, negative, 0.05)
    distinct = DocumentIds(*map(ids, ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15])))
    np.testing.assert_allclose(info_nce(*vectors, doc_ids=distinct).loss, info_nce(*vectors).loss)


def test_a_masked_candidate_gets_no_gradient_and_all_gradients_are_finite():
    rng = np.random.default_rng(2)
    anchor, positive, negative = (jnp.float32(unit(rng, 2)) for _ in range(3))
    doc_ids = DocumentIds(ids([1, 2]), ids([3, 4]), ids([3, 2]))
    alone = [x[:1] for x in (anchor, positive, negative)]
    gradient = jax.grad(lambda n: info_nce(*alone[:2], n, doc_ids=DocumentIds(*(x[:1] for x in doc_ids[:3]))).loss)(
        alone[2]
    )
    np.testing.assert_array_equal(gradient, 0)
    full = jax.grad(lambda a: info_nce(a, positive, negative, doc_ids=doc_ids).loss)(anchor)
    assert np.isfinite(full).all()


def test_info_nce_stays_finite_at_the_extremes():
    same = jnp.ones((3, 4)) / 2
    assert float(info_nce(same, same, same, temperature=1e-3).loss) == pytest.approx(np.log(6), rel=1e-5)


def test_masked_language_model_equals_its_formula_and_ignores_empty_slots():
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(2, 4, 9)) * 3, rng.integers(0, 9, (2, 4))
    weights = np.array([[1, 1, 0, 0], [1, 0, 0, 1]], np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    right = np.take_along_axis(log_probabilities, targets[..., None], -1)[..., 0]
    result = masked_language_model(jnp.float32(logits), jnp.int32(targets), jnp.float32(weights))
    assert float(result.loss) == pytest.approx(-(right * weights).sum() / 4, rel=1e-5)
    assert float(result.accuracy) == pytest.approx(((logits.argmax(-1) == targets) * weights).sum() / 4)
    empty, one = (
        masked_language_model(jnp.float32(logits), jnp.int32(targets), jnp.zeros((2, 4)).at[1, 2].set(weight))
        for weight in (0, 1)
    )
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


def event_reference(anchor, positive, negatives, events, *, by_id=True, similarity=None, days=1, symmetric=False):
    """Term by term, in float64. `events`: of anchors [B, 3], positives [B, 3] and negatives [B, N, 3]."""
    count = len(anchor)

    def near(left, right):
        return left[2] != 0 and right[2] != 0 and abs(left[2] - right[2]) <= days

    def leaves(i, event, vector, answer):
        row = (events[0][i], events[1][i])
        same = any(one[:2] == event[:2] != [0, 0] and near(one, event) for one in row)
        close = similarity is not None and answer @ vector > similarity and any(near(one, event) for one in row)
        return (by_id and same) or close

    def term(i, query, answer, candidates):
        others = [vector for vector, event in candidates if not leaves(i, event, vector, answer)]
        scores = [query @ vector / 0.05 for vector in (answer, *others)]
        return np.log(np.sum(np.exp(scores))) - scores[0]

    total = 0.0
    for i in range(count):
        forward = [(positive[j], events[1][j]) for j in range(count) if j != i]
        forward += [(negatives[j][n], events[2][j][n]) for j in range(count) for n in range(negatives.shape[1])]
        loss = term(i, anchor[i], positive[i], forward)
        if symmetric:
            backward = [(anchor[j], events[0][j]) for j in range(count) if j != i]
            loss = (loss + term(i, positive[i], anchor[i], backward)) / 2
        total += loss
    return total / count


@pytest.mark.parametrize("chunks", [1, 4])
@pytest.mark.parametrize(
    "rule",
    [
        {"by_id": True},
        {"by_id": True, "days": 3},
        {"by_id": False, "similarity": 0.3},
        {"by_id": True, "similarity": -0.1, "days": 2},
        {"by_id": True, "similarity": 0.2, "symmetric": True},
    ],
)
def test_reports_of_the_same_event_leave_the_denominator(chunks, rule):
    rng = np.random.default_rng(11)
    anchor, positive = unit(rng, 8), unit(rng, 8)
    negatives = unit(rng, 16).reshape(8, 2, -1)

    def drawn(*shape):  # few stories and days, some of them unknown
        stories, days = rng.integers(0, 3, shape), rng.integers(0, 6, shape)
        return np.stack([np.zeros_like(stories), -stories, days], axis=-1).astype(np.int32)

    events = drawn(8), drawn(8), drawn(8, 2)
    lists = [array.tolist() for array in events]
    expected, plain = (event_reference(anchor, positive, negatives, lists, **one) for one in (rule, {"by_id": False}))
    assert abs(expected - plain) > 0.01  # the rule makes a difference here
    symmetric = rule.get("symmetric", False)
    same_event = losses.SameEvent(
        losses.DocumentEvents(*events), rule["by_id"], rule.get("similarity"), rule.get("days", 1)
    )
    # No document is twice in the batch.
    names = np.arange(8 * 4, dtype=np.int32).reshape(8, 4)
    own = [np.stack([names[:, n], names[:, n] + 1], axis=-1) for n in range(2)]
    others = np.stack([names[:, 2:], names[:, 2:] + 1], axis=-1)
    found = info_nce(
        *map(jnp.float32, (anchor, positive, negatives)),
        doc_ids=DocumentIds(*own, others, same_event),
        symmetric=symmetric,
        chunks=chunks,
    )
    assert float(found.loss) == pytest.approx(expected, rel=1e-5)


def test_the_similarity_that_masks_passes_no_gradient():
    rng = np.random.default_rng(12)
    anchor, positive = (jnp.float32(unit(rng, 5)) for _ in range(2))
    days = np.tile(np.array([0, 0, 9], np.int32), (5, 1))
    names = np.arange(20, dtype=np.int32).reshape(5, 2, 2)

    def loss(similarity, positives):
        rule = losses.SameEvent(losses.DocumentEvents(days, days, days), by_id=False, similarity=similarity, days=1)
        ids = DocumentIds(names[:, 0], names[:, 1], names[:, 1], rule)
        return losses.info_nce(anchor, positives, doc_ids=ids).loss

    # A bar that no cosine reaches masks nothing; its gradient is that of the plain loss.
    plain = jax.grad(lambda positives: losses.info_nce(anchor, positives).loss)(positive)
    np.testing.assert_allclose(jax.grad(lambda p: loss(1.1, p))(positive), plain, rtol=1e-5, atol=1e-7)
    # Below all cosines everything but the own positive leaves, so that there is nothing to learn.
    np.testing.assert_allclose(jax.grad(lambda p: loss(-1.1, p))(positive), 0, atol=1e-7)


def test_documents_of_unknown_events_stay_in_the_denominator_whatever_their_days():
    rng = np.random.default_rng(13)
    anchor, positive = (jnp.float32(unit(rng, 4)) for _ in range(2))
    unknown = np.tile(np.array([0, 0, 9], np.int32), (4, 1))
    rule = losses.SameEvent(losses.DocumentEvents(unknown, unknown, unknown), by_id=True, similarity=None, days=1)
    names = np.arange(24, dtype=np.int32).reshape(4, 3, 2)
    ids = DocumentIds(names[:, 0], names[:, 1], names[:, 2], rule)
    masked, plain = losses.info_nce(anchor, positive, doc_ids=ids), losses.info_nce(anchor, positive)
    assert float(masked.loss) == pytest.approx(float(plain.loss), rel=1e-6)
