"""The features of a batch of any task: names, shapes, zeros, and the way back to the rows of one task."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.t5x_bridge.recipe import GROUP
from newsembed.tasks import registry

import toy_corpus as toy  # isort: skip


def test_tasks_of_one_objective_and_one_shape_share_a_group(make):
    layout = make("pretrain").layout
    assert [group.tasks for group in layout.groups] == [("mlm", "tlm")]
    assert layout.shapes() == registry.get("mlm").shapes(toy.LENGTHS)


def test_tasks_of_different_features_have_groups_of_their_own(make):
    layout = make().layout
    assert [group.tasks for group in layout.groups] == [("topics",), ("triplets",)]
    expected = {GROUP: ()}
    for task in ("topics", "triplets"):
        shapes = registry.get(task).shapes(toy.LENGTHS)
        expected |= {f"{task}/{name}": shape for name, shape in shapes.items()}
    assert layout.shapes() == expected


@pytest.mark.parametrize("task", ["topics", "triplets"])
def test_a_batch_holds_the_rows_of_its_task_and_zeros(make, corpus, task):
    layout = make().layout
    rows = toy.first_batch(corpus[0], task, 4)
    batch = layout.pack(task, rows)
    assert {name: values.shape[1:] for name, values in batch.items()} == layout.shapes()
    assert all(values.dtype == np.int32 and len(values) == 4 for values in batch.values())
    number = ["topics", "triplets"].index(task)
    assert batch[GROUP].tolist() == [number] * 4
    assert int(layout.number_in(batch)) == number
    found = layout.rows_in(batch, number)
    assert found.keys() == rows.keys()
    for name, values in rows.items():
        np.testing.assert_array_equal(found[name], values)
    others = [values for name, values in batch.items() if name != GROUP and not name.startswith(f"{task}/")]
    assert others
    assert not any(values.any() for values in others)


def test_rows_of_no_group_are_refused_by_their_features(make, corpus):
    rows = toy.first_batch(corpus[0], "mlm", 2)
    with pytest.raises(InputError, match="got the features positions, segment_ids, tokens, word_ids") as error:
        make().layout.number_in(rows)
    assert "topics, triplets" in error.value.remedy


def test_a_mixture_with_another_task_is_refused(make, corpus):
    recipe = make("topics")
    options = recipe.batch_options(corpus[0], 0, 8)
    with pytest.raises(InputError, match=r"got 'weak_supervision' with triplets; the model was made for topics"):
        recipe.open_batches("weak_supervision", options)
