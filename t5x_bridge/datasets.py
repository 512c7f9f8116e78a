"""Training data for T5X: batches of one (language, task) set a step, in the order of our trainer.

In a gin file of T5X::

    train_script.train.get_dataset_fn = @datasets.get_dataset
    train_script.train.train_eval_get_dataset_fn = @datasets.get_eval_datasets
"""

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from clu.data import dataset_iterator

from ..errors import InputError
from ..formats.t5x import DataPosition, step_of
from ..learning.batches import Batch
from ..learning.mixture import MixtureBatches, select_sets
from ..tasks.seqio_tasks import register_tasks, task_name
from .recipe import BatchLayout, Recipe

TRAIN: Final = "train"
VALIDATION: Final = "validation"
PREFIX: Final = "newsembed"


class MixtureIterator(dataset_iterator.DatasetIterator):
    """The batches of a mixture as T5X takes them, with a position that its checkpoints keep.

    Args:
      batches: of the mixture.
      layout: of a batch.
      batch_size: examples of this process's share.
    """

    def __init__(self, batches: MixtureBatches, layout: BatchLayout, batch_size: int) -> None:
        self._batches, self._layout, self._batch_size = batches, layout, batch_size
        self._taken = 0
        self._beginning = batches.get_state()
        self._start = (0, self._beginning)

    def __next__(self) -> Batch:
        """The batch of the next step: int32 arrays by feature name."""
        draw = self._batches.draw(self._taken)
        self._taken += 1
        return self._layout.pack(draw.data_set.task, draw.batch)

    @property
    def element_spec(self) -> dict[str, Any]:
        """The shape and type of every feature of a batch."""
        shapes = self._layout.shapes()
        return {
            name: dataset_iterator.ArraySpec(np.int32, (self._batch_size, *shape)) for name, shape in shapes.items()
        }

    def reset(self) -> None:
        """Returns to the first batch."""
        self._batches.set_state(self._beginning)
        self._taken, self._start = 0, (0, self._beginning)

    def save(self, filename: os.PathLike[str] | str) -> None:
        """Writes the position after the last batch that a step has used.

        T5X reads a first batch ahead of its first step. A checkpoint that it saves between the two, of which the path
        has the step, keeps the position before that batch.
        """
        path = os.fspath(filename)
        started, state = self._start
        if not step_of(path) == started == self._taken - 1:
            started, state = self._taken, self._batches.get_state()
        DataPosition(started, state.decode()).write(path)

    def restore(self, filename: os.PathLike[str] | str) -> None:
        """Continues at a position.

        Raises:
          InputError: if the file is missing, broken, or of other data.
        """
        position = DataPosition.read(os.fspath(filename))
        state = position.iterators.encode()
        self._batches.set_state(state)
        self._taken, self._start = position.batches, (position.batches, state)

    load = restore


def get_dataset(
    cfg: Any,
    shard_id: int,
    num_shards: int,
    feature_converter_cls: Any,
    num_epochs: int | None = None,
    continue_from_last_checkpoint: bool = False,
) -> MixtureIterator:
    """Returns the batches of T5X's `DatasetConfig`, one set a step; `train_script.train.get_dataset_fn`.

    `mixture_or_task_name` is a mixture of ours, a task or "task/language"; `split` "train" reads DATA_DIR.

    Args:
      cfg: T5X's `DatasetConfig`.
      shard_id: number of this process's part of each batch.
      num_shards: number of parts.
      feature_converter_cls: of the model, `EmbeddingModel.FEATURE_CONVERTER_CLS`.
      num_epochs: None.
      continue_from_last_checkpoint: False.

    Raises:
      InputError: for data or options that do not fit.
    """
    del continue_from_last_checkpoint
    recipe: Recipe = feature_converter_cls.recipe
    data, layout = recipe.needed_data()
    _check(cfg, data.feature_lengths, num_epochs)
    options = recipe.batch_options(data.data_dir, cfg.seed, cfg.batch_size, (shard_id, num_shards))
    batches = recipe.open_batches(cfg.mixture_or_task_name, options)
    return MixtureIterator(batches, layout, options.batch_size)


def seqio_mixture(data_dir: str, vocabulary_path: str, mixture: str) -> str:
    """Registers our seqio tasks and mixtures, and returns the name of one, for T5X's own `utils.get_dataset`.

    seqio mixes the languages of a task within a batch, by the paper's rates.

    Args:
      data_dir: DATA_DIR.
      vocabulary_path: VOCABULARY_PATH.
      mixture: a mixture whose tasks have the same features ("pretrain"), a task, or "task/language".

    Raises:
      InputError: if the folder or the vocabulary cannot be read, or seqio has no such mixture.
    """
    names = register_tasks(data_dir, vocabulary_path)
    task, _, language = mixture.partition("/")
    name = task_name(task, language) if language else f"{PREFIX}_{task}"
    if name not in names:
        raise InputError(
            f"got {mixture!r}, but seqio has {', '.join(names)}",
            path=data_dir,
            field="seqio_mixture.mixture",
            remedy="Name one of them without the prefix, or draw the mixture with datasets.get_dataset.",
        )
    return name


def get_eval_datasets(
    cfg: Any, shard_id: int, num_shards: int, eval_steps: int, feature_converter_cls: Any
) -> dict[str, Any]:
    """Returns the held-out batches of each set by its name; `train_script.train.train_eval_get_dataset_fn`.

    Each set has its first `eval_steps` batches, at most as many as it has records for, and at least one. They are the
    same at every evaluation, and those of our trainer's held-out evaluation.

    Args:
      cfg: T5X's `DatasetConfig`.
      shard_id: number of this process's part of each batch.
      num_shards: number of parts.
      eval_steps: batches of each set.
      feature_converter_cls: of the model.

    Raises:
      InputError: for data or options that do not fit.
    """
    import tensorflow as tf

    recipe: Recipe = feature_converter_cls.recipe
    data, layout = recipe.needed_data()
    folder = held_out_folder(recipe, cfg.split)
    sets = select_sets(folder, cfg.mixture_or_task_name)
    recipe.check_tasks(dict.fromkeys(sets, 1.0), cfg.mixture_or_task_name)
    options = recipe.batch_options(folder, cfg.seed or 0, cfg.batch_size, (shard_id, num_shards))
    _check_sizes(data.lengths_of(folder), data.lengths, folder)
    found = {}
    for data_set, count in sorted(sets.items()):
        iterator = data.open_set(data_set, options)
        number = max(1, min(eval_steps, count // cfg.batch_size))
        packed = [layout.pack(data_set.task, next(iterator)) for _ in range(number)]
        stacked = {name: np.stack([batch[name] for batch in packed]) for name in packed[0]}
        found[str(data_set).replace("/", "_")] = tf.data.Dataset.from_tensor_slices(stacked)
    return found


def _check_sizes(held_out: Mapping[str, int], lengths: Mapping[str, int], folder: str) -> None:
    """Refuses held-out records that the rows of the run have no room for.

    Raises:
      InputError: naming the size.
    """
    for name, size in held_out.items():
        if size > lengths.get(name, size):
            raise InputError(
                f"got records with {size} {name}, the rows of the run have room for {lengths[name]}",
                path=folder,
                field=name,
                remedy=f"Set {name!r} in TASK_FEATURE_LENGTHS to {size}.",
            )


def held_out_folder(recipe: Recipe, split: str) -> str:
    """Returns the folder of a split of T5X: "train" is DATA_DIR, "validation" its folder of held-out examples.

    Raises:
      InputError: for another split.
    """
    data, _ = recipe.needed_data()
    folders = {TRAIN: data.data_dir, VALIDATION: os.path.join(data.data_dir, "held_out")}
    if split not in folders:
        raise InputError(
            f"got {split!r}, expected one of {', '.join(folders)}",
            field="DatasetConfig.split",
            remedy="`newsembed examples --held_out_share=0.08` writes the validation split.",
        )
    return folders[split]


def _check(cfg: Any, lengths: Mapping[str, int], num_epochs: int | None) -> None:
    """Refuses what would not train as asked.

    Raises:
      InputError: naming the option.
    """
    expected: dict[str, tuple[Any, bool, str]] = {
        "split": (cfg.split, cfg.split == TRAIN, f"{TRAIN!r}"),
        "seed": (cfg.seed, isinstance(cfg.seed, int), "a number, so that a run that was stopped continues its data"),
        "shuffle": (cfg.shuffle, bool(cfg.shuffle), "True: the order follows from the seed"),
        "pack": (cfg.pack, not cfg.pack, "False: `newsembed pack` has packed the rows"),
        "task_feature_lengths": (
            cfg.task_feature_lengths,
            dict(cfg.task_feature_lengths) == dict(lengths),
            f"{lengths}",
        ),
        "num_epochs": (num_epochs, num_epochs is None, "None: the epochs follow each other without end"),
    }
    for name, (value, is_right, wanted) in expected.items():
        if not is_right:
            raise InputError(f"got {value!r}, expected {wanted}", field=f"train/DatasetConfig.{name}")
