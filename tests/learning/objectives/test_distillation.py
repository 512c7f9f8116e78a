"""Distillation, against loops over documents in float64."""

import dataclasses

import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.arrays import NO_DAY, Teacher, write_teacher
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.distillation import Distillation, soft_cross_entropy
from objective_runs import WITHOUT_DROPOUT, assert_close, embeddings_of, jit, parameters

UNKNOWN = 2  # the row of the batch whose positive the teacher lacks
SAME = 5  # the row whose anchor and positive are one document
TEMPERATURE = 0.1


@pytest.fixture(scope="module")
def batch(batches):
    rows = {name: np.array(values) for name, values in batches["triplets"].items()}
    rows["positive_doc_id"][SAME] = rows["anchor_doc_id"][SAME]
    return rows


@pytest.fixture(scope="module")
def teacher(batch):
    """Knows all documents of the batch but one, and five others."""
    rng = np.random.default_rng(0)
    ids = np.concatenate([batch["anchor_doc_id"], batch["positive_doc_id"], rng.integers(100, 200, (5, 2))])
    ids = np.array(sorted({tuple(row) for row in ids.tolist()} - {tuple(batch["positive_doc_id"][UNKNOWN].tolist())}))
    keys = rng.normal(size=(len(ids), WITHOUT_DROPOUT.embedding_size))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    neighbors = [rng.permutation(np.delete(np.arange(len(ids)), row))[:4] for row in range(len(ids))]
    shares = rng.dirichlet(np.ones(5), len(ids))[:, :4]  # the fifth is that of all others
    days = rng.integers(0, 4, len(ids))
    days[::5] = NO_DAY
    languages = rng.integers(0, 2, len(ids))
    lengths = rng.choice([999, 1_000], len(ids), p=[0.8, 0.2])
    ids, *facts, neighbors = (np.array(values, np.int32) for values in (ids, days, languages, lengths, neighbors))
    return Teacher(ids, keys.astype(np.float32), *facts, neighbors, shares.astype(np.float32))


@pytest.fixture(scope="module")
def path(teacher, tmp_path_factory):
    file = str(tmp_path_factory.mktemp("teacher") / "teacher.npz")
    write_teacher(file, teacher)
    return file


def objectives(path, **options):
    options = {"teacher": path, "temperature": TEMPERATURE} | options
    return Objectives(Model(WITHOUT_DROPOUT), {"triplets": Distillation(**options)})


def value_of(path, batch, **options):
    made = objectives(path, **options)
    loss = jit(jax.value_and_grad(lambda params: made.loss("triplets", params, batch, jax.random.key(0)), has_aux=True))
    return jax.tree.map(np.asarray, loss(parameters()))


def of_the_same_days(teacher, one, other, days):
    dates = [int(teacher.days[row]) for row in (one, other)]
    return NO_DAY not in dates and abs(dates[0] - dates[1]) <= days


def are_near(teacher, one, other, days, similarity):
    """Whether two documents are near in days and by their keys."""
    near = of_the_same_days(teacher, one, other, days)
    return near and float(np.float64(teacher.keys[one]) @ teacher.keys[other]) > similarity


def rank_of(teacher, other, one, days, similarity):
    """Of a document among those of its language and of the same days as another, by their cosine with that one."""
    cosines = np.float64(teacher.keys) @ teacher.keys[one]
    nearer = [row for row in range(len(cosines)) if row not in (one, other) and cosines[row] > cosines[other]]
    nearer = [row for row in nearer if teacher.languages[row] == teacher.languages[other]]
    nearer = [row for row in nearer if of_the_same_days(teacher, one, row, days)]
    return 1 + sum(not are_near(teacher, row, other, days, similarity) for row in nearer)


def by_hand(teacher, batch, days=1, similarity=0.1, rank=0):
    """(teacher's part, pairs' part, accuracy, texts that are known, and in pairs), each text on its own."""
    vectors = [np.float64(vectors) for vectors in embeddings_of(batch)[:2]]
    rows = {tuple(words): row for row, words in enumerate(teacher.doc_ids.tolist())}
    names = ("anchor_doc_id", "positive_doc_id")
    soft, paired, found = [], [], []
    for side in (0, 1):
        for number, vector in enumerate(vectors[side]):
            own, other = (rows.get(tuple(batch[names[s]][number].tolist())) for s in (side, 1 - side))
            if own is None or other is None:
                continue
            weights = np.exp(np.float64(teacher.keys) @ vector / TEMPERATURE)
            others = np.delete(weights, own).sum()
            near = teacher.neighbors[own]
            shares = np.float64(teacher.probabilities[own])
            rest = np.delete(weights, [own, *near]).sum()
            soft.append(-shares @ np.log(weights[near] / others) - (1 - shares.sum()) * np.log(rest / others))
            both = (other, own), (own, other)
            short = [(one, two) for one, two in both if teacher.lengths[two] < 1_000]
            if rank and any(rank_of(teacher, *pair, days, similarity) > rank for pair in short):
                continue
            candidates = weights.copy()
            for row in range(len(weights)):
                either = any(are_near(teacher, row, document, days, similarity) for document in (own, other))
                if row != other and (row == own or either):
                    candidates[row] = 0
            paired.append(-np.log(weights[other] / candidates.sum()))
            found.append(weights[other] >= candidates.max())
    return np.mean(soft), np.mean(paired), np.mean(found), len(soft), len(paired)


@pytest.mark.parametrize(
    ("pair_weight", "days", "similarity", "rank"),
    [(1.0, 1, 0.1, 0), (0.3, 0, -0.2, 0), (1.0, 5, 1.0, 0), (1.0, 5, 0.1, 1), (1.0, 1, 0.1, 2)],
)
def test_the_loss_of_a_batch_is_that_of_its_texts(path, teacher, batch, pair_weight, days, similarity, rank):
    options = {"pair_weight": pair_weight, "near_days": days, "near_similarity": similarity, "pair_rank": rank}
    (loss, metrics), _ = value_of(path, batch, **options)
    soft, paired, accuracy, known, in_pairs = by_hand(teacher, batch, days, similarity, rank)
    assert known == 22  # of 24
    assert in_pairs == 22 if rank == 0 else 2 < in_pairs < 20
    assert metrics["paired"] == pytest.approx(in_pairs / 24)
    assert metrics["known"] == pytest.approx(22 / 24)
    assert metrics["teacher_loss"] == pytest.approx(soft, rel=1e-4)
    assert metrics["pair_loss"] == pytest.approx(paired, rel=1e-4)
    assert metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert loss == pytest.approx(soft + pair_weight * paired, rel=1e-4)


def test_a_teacher_of_all_other_documents_leaves_no_rest():
    rng = np.random.default_rng(3)
    scores, own = rng.normal(size=(2, 4)).astype(np.float32), np.array([1, 3], np.int32)
    neighbors = np.array([[0, 2, 3], [2, 0, 1]], np.int32)
    shares = rng.dirichlet(np.ones(3), 2).astype(np.float32)
    loss, gradient = jax.value_and_grad(lambda x: soft_cross_entropy(x, own, neighbors, shares).sum())(scores)
    wanted = np.take_along_axis(np.float64(scores), neighbors, axis=1)
    shares_of_scores = np.exp(wanted) / np.exp(wanted).sum(axis=1, keepdims=True)
    assert loss == pytest.approx(-(shares * np.log(shares_of_scores)).sum(), rel=1e-5)
    assert np.isfinite(gradient).all()


def test_frozen_parameters_have_no_gradient_and_the_others_the_same(path, batch):
    (loss, _), gradient = value_of(path, batch)
    (same_loss, _), partly = value_of(path, batch, frozen="token_embedding|layers_0/")
    assert same_loss == pytest.approx(loss, rel=1e-6)
    for name in gradient:
        if name in ("token_embedding", "layers_0"):
            assert all(np.abs(values).max() > 0 for values in jax.tree.leaves(gradient["token_embedding"]))
            assert not any(values.any() for values in jax.tree.leaves(partly[name]))
        else:
            assert_close(partly[name], gradient[name])
    with pytest.raises(InputError, match=r"Distillation\.frozen: 'heads' matches no parameter"):
        value_of(path, batch, frozen="heads")


def test_texts_that_the_teacher_lacks_and_negatives_have_no_part(path, batch):
    (loss, _), gradient = value_of(path, batch)
    other = {name: values.copy() for name, values in batch.items()}
    for name in ("anchor_tokens", "positive_tokens"):
        other[name][UNKNOWN, 1:3] = 40
    other["negative_tokens"][:, 1:3] = 41
    (same_loss, _), same_gradient = value_of(path, other)
    assert same_loss == pytest.approx(loss, rel=1e-6)
    assert_close(same_gradient, gradient)
    other["anchor_tokens"][0, 1:3] = 40
    assert value_of(path, other)[0][0] != pytest.approx(loss, rel=1e-4)


def test_a_step_gets_the_teacher_as_an_argument_and_not_as_a_constant(path, teacher, batch):
    made = objectives(path)
    tables = made.tables("triplets")
    assert {name: values.shape for name, values in tables.items()} == {
        f"teacher/{field.name}": getattr(teacher, field.name).shape for field in dataclasses.fields(teacher)
    }

    def loss(batch):
        return made.loss("triplets", parameters(), batch, jax.random.key(0))[0]

    def value(tables):
        return float(jit(loss)({**tables, **batch}))

    keys = f"tensor<{len(teacher.keys)}x{teacher.keys.shape[1]}xf32>"
    lines = jax.jit(loss).lower({**tables, **batch}).as_text().splitlines()
    assert [line for line in lines if "constant" in line and keys in line] == []
    assert value(tables) == pytest.approx(value({}), rel=1e-6)
    other = tables | {"teacher/keys": np.roll(tables["teacher/keys"], 1, axis=0)}
    assert value(other) != pytest.approx(value({}), rel=1e-3)


def test_keys_of_another_model_and_a_missing_file_are_refused(path, teacher, tmp_path):
    narrow = dataclasses.replace(teacher, keys=np.ones((len(teacher.keys), 1), np.float32))
    file = str(tmp_path / "narrow.npz")
    write_teacher(file, narrow)
    with pytest.raises(InputError, match=r"narrow\.npz: keys: the keys have 1 numbers, the model's embedding has"):
        objectives(file)
    with pytest.raises(InputError, match=r"nothing\.npz"):
        objectives(str(tmp_path / "nothing.npz"))
