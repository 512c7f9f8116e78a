"""What is evaluated of the held-out sets, and how their figures are averaged, without a model."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions
from newsembed.learning.objectives import Pairs
from newsembed.learning.partitioning import Partitioner
from newsembed.training import held_out as module
from newsembed.training.held_out import Evaluation, HeldOut, answer_ranks, join_pairs, open_held_out
from vectors import unit

ENGLISH, GERMAN, TOPICS = DataSet("triplets", "en"), DataSet("triplets", "de"), DataSet("topics", "en")


@pytest.fixture(scope="module")
def mesh():
    return Partitioner().make_mesh(jax.devices()[:1])


class Rows:
    """Batches that count up from a number; the state is the number."""

    def __init__(self, first):
        self.at, self.first = first, first

    def __next__(self):
        self.at += 1
        return {"tokens": np.full((1, 1), self.at - 1, np.int32)}

    def get_state(self):
        return str(self.at).encode()

    def set_state(self, state):
        self.at = int(state)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"retrieval_rows": 1}, "EVAL_RETRIEVAL_ROWS: got 1, expected 0 where no EVAL_DATA_DIR is named"),
        ({"period": 1}, "EVAL_PERIOD: got 1, expected 0 where there is neither"),
        ({"start": True, "data_dir": "h"}, "EVAL_START: got True, expected False in a run that evaluates nothing"),
    ],
)
def test_options_that_do_not_fit_are_refused(values, problem):
    with pytest.raises(InputError, match=problem):
        HeldOut(**values)


@pytest.mark.parametrize(
    ("size", "processes", "batches", "rows", "expected"),
    [
        (4, 1, 8, 0, {ENGLISH: (2, 0), GERMAN: (1, 0)}),  # 11 and 3 records: whole batches, but one at least
        (4, 1, 1, 9, {ENGLISH: (1, 3), GERMAN: (1, 1)}),
        (2, 2, 8, 99, {ENGLISH: (2, 3), GERMAN: (1, 1)}),
    ],
)
def test_the_batches_of_a_set_are_whole_and_those_of_retrieval_reach_its_rows(
    monkeypatch, tmp_path, size, processes, batches, rows, expected
):
    monkeypatch.setattr(
        module,
        "select_sets",
        lambda folder, mixture: {ENGLISH: 11, GERMAN: 3} if (folder, mixture) == ("h", "m") else {},
    )
    opened = []

    def open_set(data_set, options):
        opened.append((data_set, options))
        return Rows(7)

    options = BatchOptions(str(tmp_path), {"tokens": 1}, size, {}, process_count=processes, batch_days=7)
    held = HeldOut(period=1, data_dir="h", batches=batches, retrieval_rows=rows)
    found = open_held_out(held, "m", open_set, options)
    assert {name: (one.loss_count, one.retrieval_count) for name, one in found.items()} == expected
    assert list(found) == [GERMAN, ENGLISH]
    assert [name for name, _ in opened] == [GERMAN, ENGLISH]
    assert {(one.directory, one.batch_days, one.batch_size) for _, one in opened} == {("h", 0, size)}
    assert {one.beginning for one in found.values()} == {b"7"}


def test_nothing_is_opened_where_nothing_is_evaluated_and_never_the_training_data(tmp_path):
    options = BatchOptions(str(tmp_path), {"tokens": 1}, 1, {})
    assert open_held_out(HeldOut(data_dir="h"), "m", None, options) == {}
    assert open_held_out(HeldOut(period=1, evaluate=dict), "m", None, options) == {}
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(InputError, match="EVAL_DATA_DIR: got DATA_DIR") as raised:
        open_held_out(HeldOut(period=1, data_dir=str(link)), "m", None, options)
    assert raised.value.path == str(link)


class Toy:
    """An objective: the loss is the number of the batch, by a factor in a table, plus the parameter and the mask."""

    model = types.SimpleNamespace(module=None, config=None)

    def __init__(self, is_evaluated=False):
        self.is_evaluated = is_evaluated

    def evaluated(self):
        return Toy(is_evaluated=True)

    def tables(self, task):
        return {"factor": np.float32(10 if task == "topics" else 1)}

    def loss(self, task, params, batch, key):
        assert self.is_evaluated
        assert isinstance(batch["factor"], jax.core.Tracer)  # an argument of the program, not a constant
        return batch["factor"] * batch["tokens"][0, 0] + params, {"mask": jax.random.uniform(key)}

    def pairs(self, task, params, batch):
        assert self.is_evaluated
        if task == "topics":
            return None
        number = batch["tokens"][0, 0]
        angle = jnp.where(number % 2 == 0, 0.0, params)  # the answers of odd rows are turned away
        query = jnp.array([[1.0, 0.0]])
        answer = jnp.stack([jnp.cos(angle), jnp.sin(angle)])[None]
        ids = jnp.array([[0, 0, 0, 0, 0]], jnp.int32)
        return Pairs(
            query, answer, ids.at[0, 0].set(2 * number + 1), ids.at[0, 0].set(2 * number + 2), jnp.zeros(1, jnp.int32)
        )


def held(first, count, retrieval_count=0):
    return module._HeldOutSet(Rows(first), str(first).encode(), count, retrieval_count)


def evaluation_of(mesh, sets, **options):
    return Evaluation(HeldOut(**options), sets, Toy(), Partitioner(), mesh, "vocab.txt", 9)


def test_losses_are_means_over_batches_then_over_sets(mesh):
    evaluation = evaluation_of(mesh, {ENGLISH: held(0, 3), GERMAN: held(10, 1), TOPICS: held(1, 2)})
    found = evaluation.losses(0.5)
    masks = [float(jax.random.uniform(jax.random.fold_in(jax.random.key(0x5EED), number))) for number in range(3)]
    expected = {
        "loss/triplets/en": 1.5, "loss/triplets/de": 10.5, "loss/topics/en": 15.5, "loss/triplets": 6.0,
        "loss/topics": 15.5, "loss": (1.5 + 10.5 + 15.5) / 3, "mask/triplets/en": np.mean(masks),
        "mask/triplets/de": masks[0], "mask/topics/en": np.mean(masks[:2]),
    }  # fmt: skip
    assert found == pytest.approx(expected)
    assert evaluation.losses(0.5) == found, "the same batches and masks again"
    assert evaluation_of(mesh, {}).losses(0.5) == {}


def test_retrieval_figures_are_means_over_the_sets_that_have_pairs(mesh):
    sets = {ENGLISH: held(0, 1, 4), GERMAN: held(10, 1, 1), TOPICS: held(1, 1, 2)}
    evaluation = evaluation_of(mesh, sets, data_dir="h", retrieval_rows=4)
    # English: answers of rows 0 and 2 tie at 1, those of rows 1 and 3 are at -1. Each even one has the other one before
    # it (ties count against), each odd one all others. German: one row, which is first.
    ranks = np.array([2, 4, 2, 4])
    assert evaluation.retrieval(np.float32(np.pi)) == pytest.approx({
        "retrieval_mrr/triplets/en": np.mean(1 / ranks), "retrieval_mrr/triplets/de": 1.0,
        "retrieval_mrr": (np.mean(1 / ranks) + 1) / 2, "retrieval_recall_at_1/triplets/en": 0.0,
        "retrieval_recall_at_1/triplets/de": 1.0, "retrieval_recall_at_1": 0.5,
    })  # fmt: skip
    fewer = evaluation_of(mesh, {ENGLISH: held(0, 1, 4)}, data_dir="h", retrieval_rows=2)
    assert fewer.retrieval(np.float32(np.pi))["retrieval_mrr"] == pytest.approx((1 + 1 / 2) / 2)
    assert evaluation_of(mesh, sets).retrieval(0.0) == {}


def test_an_evaluation_joins_all_figures_under_one_prefix(mesh):
    sets = {GERMAN: held(10, 1, 1)}
    options = {"data_dir": "h", "retrieval_rows": 1, "period": 2}
    on = evaluation_of(mesh, sets, **options, evaluate=lambda taken: {"score": taken.step + taken.text_length})
    found = on.run(4, np.float32(0.5))
    assert (found["eval/loss"], found["eval/retrieval_mrr"], found["eval/score"]) == (10.5, 1.0, 13)
    for value in (float("nan"), float("inf")):
        broken = evaluation_of(mesh, sets, **options, evaluate=lambda _, value=value: {"good": 1.0, "score": value})
        with pytest.raises(InputError, match=f"eval/score: got {value}, expected a finite number"):
            broken.run(1, np.float32(0.5))


def drawn(rng, rows, documents):
    def ids():
        story = rng.integers(0, 4, rows)
        return np.stack(
            [rng.integers(0, documents, rows), np.zeros(rows, int), story, story * 7, rng.integers(0, 5, rows)], axis=1
        ).astype(np.int32)

    return Pairs(unit(rng, rows, 4), unit(rng, rows, 4), ids(), ids(), rng.integers(0, 4, rows).astype(np.int32))


def same(left, right, days=1):
    """Whether two documents are one, or report one event."""
    is_known = left[4] != 0 and right[4] != 0 and left[2:4] != [0, 0]
    return left[:2] == right[:2] or (is_known and left[2:4] == right[2:4] and abs(left[4] - right[4]) <= days)


@pytest.mark.parametrize("days", [0, 1])
def test_ranks_equal_a_plain_search(days, monkeypatch):
    monkeypatch.setattr("newsembed.training.held_out._QUERIES", 7)
    pairs = drawn(np.random.default_rng(5), 40, 5)
    expected = []
    for i in range(40):
        mine = (pairs.query_ids[i].tolist(), pairs.answer_ids[i].tolist())
        rivals = [j for j in range(40) if not any(same(one, pairs.answer_ids[j].tolist(), days) for one in mine)]
        own = float(pairs.query[i] @ pairs.answer[i])
        expected.append(1 + sum(float(pairs.query[i] @ pairs.answer[j]) > own for j in rivals))
    assert answer_ranks(pairs, event_days=days).tolist() == expected


def test_rows_that_come_twice_count_once_and_the_limit_holds():
    pairs = drawn(np.random.default_rng(1), 12, 1000)
    parts = [Pairs(*(array[:8] for array in pairs)), Pairs(*(array[4:] for array in pairs))]
    joined = join_pairs(parts, 100)
    for found, expected in zip(joined, pairs, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(join_pairs(parts, 5).kind) == 5
    # The same documents in another row of Table 1 are another question.
    other = pairs._replace(kind=pairs.kind + 1)
    assert len(join_pairs([pairs, other], 100).kind) == 24
