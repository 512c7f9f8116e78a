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
from newsembed.training.held_out import Evaluation, HeldOut, HeldOutLosses, HeldOutRetrieval, open_held_out

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
        ({"period": -1, "data_dir": "h"}, "HeldOut: got period -1 and 8 batches"),
        ({"batches": 0}, "HeldOut: got period 0 and 0 batches"),
        ({"retrieval_rows": -1, "data_dir": "h"}, "EVAL_RETRIEVAL_ROWS: got -1 with EVAL_DATA_DIR = 'h'"),
        ({"retrieval_rows": 1}, "EVAL_RETRIEVAL_ROWS: got 1 with EVAL_DATA_DIR = None"),
        ({"period": 1}, "HeldOut: got EVAL_PERIOD = 1, but nothing to evaluate"),
        ({"start": True, "data_dir": "h"}, "EVAL_START: got True in a run that evaluates nothing"),
    ],
)
def test_options_that_do_not_fit_are_refused(values, problem):
    with pytest.raises(InputError, match=problem):
        HeldOut(**values)


def test_options_at_their_bounds_are_accepted():
    HeldOut(batches=1, retrieval_rows=1, data_dir="h")
    found = HeldOut(period=3, evaluate=dict)
    assert [found.is_due(step) for step in (2, 3, 4, 6)] == [False, True, False, True]
    assert not HeldOut().is_due(0)
    assert not HeldOut(period=1, data_dir="h").start


@pytest.mark.parametrize(
    ("size", "processes", "batches", "rows", "expected"),
    [
        (4, 1, 8, 0, {ENGLISH: (2, 0), GERMAN: (1, 0)}),  # 11 and 3 records: whole batches, but one at least
        (4, 1, 1, 9, {ENGLISH: (1, 3), GERMAN: (1, 1)}),
        (2, 2, 8, 99, {ENGLISH: (2, 3), GERMAN: (1, 1)}),
        (1, 1, 8, 8, {ENGLISH: (8, 8), GERMAN: (3, 3)}),
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
    assert {name: (one.count, one.retrieval_count) for name, one in found.items()} == expected
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


def test_losses_are_means_over_batches_then_over_sets(mesh):
    sets = {ENGLISH: held(0, 3), GERMAN: held(10, 1), TOPICS: held(1, 2)}
    losses = HeldOutLosses(sets, Toy(), Partitioner(), mesh)
    found = losses.compute(0.5)
    masks = [float(jax.random.uniform(jax.random.fold_in(jax.random.key(0x5EED), number))) for number in range(3)]
    expected = {
        "loss/triplets/en": 1.5, "loss/triplets/de": 10.5, "loss/topics/en": 15.5, "loss/triplets": 6.0,
        "loss/topics": 15.5, "loss": (1.5 + 10.5 + 15.5) / 3, "mask/triplets/en": np.mean(masks),
        "mask/triplets/de": masks[0], "mask/topics/en": np.mean(masks[:2]),
    }  # fmt: skip
    assert found == pytest.approx(expected)
    assert losses.compute(0.5) == found, "the same batches and masks again"
    assert HeldOutLosses({}, Toy(), Partitioner(), mesh).compute(0.5) == {}


def test_retrieval_figures_are_means_over_the_sets_that_have_pairs(mesh):
    sets = {ENGLISH: held(0, 1, 4), GERMAN: held(10, 1, 1), TOPICS: held(1, 1, 2)}
    retrieval = HeldOutRetrieval(sets, 4, Toy(), Partitioner(), mesh)
    # English: answers of rows 0 and 2 tie at 1, those of rows 1 and 3 are at -1. Each even one has the other one before
    # it (ties count against), each odd one all others. German: one row, which is first.
    ranks = np.array([2, 4, 2, 4])
    assert retrieval.compute(np.float32(np.pi)) == pytest.approx({
        "retrieval_mrr/triplets/en": np.mean(1 / ranks), "retrieval_mrr/triplets/de": 1.0,
        "retrieval_mrr": (np.mean(1 / ranks) + 1) / 2, "retrieval_recall_at_1/triplets/en": 0.0,
        "retrieval_recall_at_1/triplets/de": 1.0, "retrieval_recall_at_1": 0.5,
    })  # fmt: skip
    fewer = HeldOutRetrieval({ENGLISH: held(0, 1, 4)}, 2, Toy(), Partitioner(), mesh)
    assert fewer.compute(np.float32(np.pi))["retrieval_mrr"] == pytest.approx((1 + 1 / 2) / 2)
    assert HeldOutRetrieval(sets, 0, Toy(), Partitioner(), mesh).compute(0.0) == {}


def test_an_evaluation_joins_all_figures_under_one_prefix():
    losses, retrieval = (
        types.SimpleNamespace(compute=lambda params, name=name: {name: params}) for name in ("loss", "mrr")
    )
    snapshots = types.SimpleNamespace(take=lambda step, params: (step, params))
    on = Evaluation(
        HeldOut(period=2, start=True, evaluate=lambda taken: {"score": taken[0] + taken[1]}),
        losses,
        retrieval,
        snapshots,
    )
    assert on.run(4, 0.5) == {"eval/loss": 0.5, "eval/mrr": 0.5, "eval/score": 4.5}
    assert (on.is_on, on.is_due_at_start, on.is_due(4), on.is_due(5)) == (True, True, True, False)
    off = Evaluation(HeldOut(), losses, retrieval, snapshots)
    assert (off.is_on, off.is_due_at_start) == (False, False)
    assert off.run(4, 0.5) == {"eval/loss": 0.5, "eval/mrr": 0.5}
    for value in (float("nan"), float("inf")):
        broken = Evaluation(
            HeldOut(period=1, evaluate=lambda _, value=value: {"good": 1.0, "score": value}),
            losses,
            retrieval,
            snapshots,
        )
        with pytest.raises(InputError, match=f"eval/score: got {value}, expected a finite number"):
            broken.run(1, 0.5)
