"""Data for T5X: the sets and rows of our trainer, step by step, and positions that continue exactly."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import RecordSource
from newsembed.learning.mixture import select_sets
from newsembed.learning.options import DataOptions, ModelOptions
from newsembed.t5x_bridge.datasets import get_dataset, get_eval_datasets, seqio_mixture
from newsembed.t5x_bridge.recipe import make_recipe
from newsembed.t5x_bridge.rows import ConverterClass
from newsembed.tasks.seqio_tasks import register_tasks

import toy_corpus as toy  # isort: skip


@dataclasses.dataclass
class Config:
    """T5X's DatasetConfig, as far as ours read it."""

    mixture_or_task_name: str = "weak_supervision"
    task_feature_lengths: Any = dataclasses.field(default_factory=lambda: dict(toy.LENGTHS))
    split: str = "train"
    batch_size: int = 8
    shuffle: bool = True
    seed: int | None = 3
    pack: bool = False


def same(left, right):
    assert left.keys() == right.keys()
    for name, values in left.items():
        np.testing.assert_array_equal(values, right[name])


def test_each_step_has_the_set_and_the_rows_of_our_trainer(make, corpus):
    recipe = make()
    found = get_dataset(Config(), 0, 1, ConverterClass(recipe))
    expected = recipe.open_batches("weak_supervision", recipe.batch_options(corpus[0], 3, 8))
    tasks = set()
    for step in range(12):
        draw = expected.draw(step)
        tasks.add(draw.data_set.task)
        same(next(found), recipe.layout.pack(draw.data_set.task, draw.batch))
    assert tasks == {"topics", "triplets"}


def test_two_shards_are_the_halves_of_each_batch(make):
    converter = ConverterClass(make())
    whole = get_dataset(Config(), 0, 1, converter)
    halves = [get_dataset(Config(), shard, 2, converter) for shard in range(2)]
    assert {name: spec.shape[0] for name, spec in halves[0].element_spec.items()} == dict.fromkeys(
        whole.element_spec, 4
    )
    for _ in range(5):
        parts = [next(half) for half in halves]
        same(next(whole), {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def saved(iterator, tmp_path, step):
    folder = tmp_path / f"checkpoint_{step}.tmp" / "dataset"
    folder.mkdir(parents=True)
    iterator.save(folder / "train_ds-000-of-001")
    return folder / "train_ds-000-of-001"


@pytest.mark.parametrize("start", [0, 5])
def test_a_batch_that_was_read_ahead_of_the_first_step_is_not_lost(make, tmp_path, start):
    converter = ConverterClass(make())
    iterator = get_dataset(Config(), 0, 1, converter)
    for _ in range(start):
        next(iterator)
    again = get_dataset(Config(), 0, 1, converter)
    again.load(saved(iterator, tmp_path / "a", start))
    ahead = next(again)
    resumed = get_dataset(Config(), 0, 1, converter)
    resumed.restore(saved(again, tmp_path / "b", start))
    same(next(resumed), ahead)
    for _ in range(3):
        same(next(resumed), next(again))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("seed", None, "got None, expected a number"),
        ("pack", True, "got True, expected False"),
        ("task_feature_lengths", {"tokens": 3}, "got {'tokens': 3}, expected"),
    ],
)
def test_options_that_would_train_something_else_are_refused(make, name, value, problem):
    with pytest.raises(InputError, match=problem) as error:
        get_dataset(Config(**{name: value}), 0, 1, ConverterClass(make()))
    assert error.value.field == f"train/DatasetConfig.{name}"


def test_held_out_sets_have_their_first_batches(make, corpus):
    recipe = make()
    found = get_eval_datasets(Config(split="validation", batch_size=4), 0, 1, 2, ConverterClass(recipe))
    assert list(found) == ["topics_en", "triplets_de", "triplets_en"]
    options = recipe.batch_options(f"{corpus[0]}/held_out", 3, 4)
    for name, dataset in found.items():
        task = name.split("_")[0]
        sets = select_sets(options.directory, "weak_supervision")
        (data_set,) = [known for known in sets if name == f"{known.task}_{known.language}"]
        expected = recipe.data.open_set(data_set, options)
        batches = list(dataset.as_numpy_iterator())
        assert len(batches) == {"topics_en": 2, "triplets_en": 2, "triplets_de": 1}[name]
        for batch in batches:
            same(batch, recipe.layout.pack(task, next(expected)))


def test_seqio_examples_become_our_rows(make, corpus):
    import seqio

    recipe = make()
    register_tasks(*corpus)
    task = seqio.get_mixture_or_task("newsembed_triplets_en")
    examples = task.get_dataset(sequence_length=None, split="train", shuffle=False)
    rows = list(ConverterClass(recipe)()(examples, None).as_numpy_iterator())
    assert len(rows) == 23
    options = recipe.batch_options(corpus[0], 0, 1)
    source = RecordSource(DataSet("triplets", "en"), options)
    expected = {tuple(source[number]["anchor_doc_id"]): source[number] for number in range(len(source))}
    for row in rows:
        same(row, expected[tuple(row["anchor_doc_id"])])


def test_seqio_s_own_reader_gives_batches_of_our_rows(make, corpus):
    import seqio

    recipe, name = make(), seqio_mixture(*corpus, "topics/en")
    assert name == "newsembed_topics_en"
    ways = {"shuffle": True, "seed": 1, "batch_size": 4, "trim_output_features": False}
    converter, whole = ConverterClass(recipe)(), seqio.ShardInfo(0, 1)
    dataset = seqio.get_dataset(
        name, dict(toy.LENGTHS), dataset_split="train", feature_converter=converter, shard_info=whole, **ways
    )
    batch = next(dataset.as_numpy_iterator())
    number = recipe.layout.number_of("topics")
    assert recipe.layout.number_in(batch) == number
    assert {feature: values.shape[1:] for feature, values in batch.items()} == recipe.layout.groups[number].shapes


def test_a_mixture_that_seqio_does_not_have_is_refused(corpus):
    with pytest.raises(InputError, match="got 'weak_supervision', but seqio has newsembed_mlm_en"):
        seqio_mixture(*corpus, "weak_supervision")


def test_mixed_batches_are_refused(corpus):
    data = DataOptions(*corpus, "weak_supervision", toy.LENGTHS, 8, mixed_batches=True)
    model = ModelOptions(lambda vocab_size: toy.toy_config(vocab_size=vocab_size))
    with pytest.raises(InputError, match="mixed_batches: got True, expected False: the steps of T5X"):
        make_recipe(corpus[1], model, data)
