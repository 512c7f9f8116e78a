"""What a run under T5X learns, from which data: the model, its objectives, the sets, and the loss of their batches.

T5X compiles one step, and each step trains on another task: the batches of all tasks have one shape, and of the loss
only the part of the batch's own task runs.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..formats.manifest import DataSet
from ..formats.vocabulary import VocabularyFile, read_vocabulary
from ..learning.batches import Batch, BatchOptions
from ..learning.mixture import MixtureBatches
from ..learning.objectives import Metrics, Model, Objective, Objectives, continuation_pieces, objectives_of
from ..learning.options import DataOptions, ModelOptions
from ..tasks import registry

GROUP: Final = "group"

Shapes = dict[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class Group:
    """Tasks whose rows have the same features and shapes, and which share one objective.

    Attributes:
      tasks: their names, sorted.
      shapes: the shape of every feature in a row.
    """

    tasks: tuple[str, ...]
    shapes: Shapes

    @property
    def name(self) -> str:
        """The first of the tasks."""
        return self.tasks[0]


@dataclasses.dataclass(frozen=True)
class BatchLayout:
    """The features of a batch that may be of any task.

    With one group, a batch has the features of its task. With several, it has the features of each, named
    "<group>/<feature>", zeros but for those of its own task, and the feature "group", the number of its group in all
    rows. A batch of one task with the plain names of its features is understood, too.

    Attributes:
      groups: at least one.
    """

    groups: tuple[Group, ...]

    def shapes(self) -> Shapes:
        """Returns the shape of every feature in a row of a batch; all are int32."""
        if len(self.groups) == 1:
            return dict(self.groups[0].shapes)
        named = {f"{group.name}/{name}": shape for group in self.groups for name, shape in group.shapes.items()}
        return {GROUP: (), **named}

    def number_of(self, task: str) -> int:
        """Returns the number of the group of a task."""
        return next(number for number, group in enumerate(self.groups) if task in group.tasks)

    def pack(self, task: str, rows: Batch) -> Batch:
        """Returns the batch of rows [B, ...] of one task."""
        if len(self.groups) == 1:
            return dict(rows)
        number = self.number_of(task)
        own = self.groups[number].name
        size = len(next(iter(rows.values())))
        batch = {name: np.zeros((size, *shape), np.int32) for name, shape in self.shapes().items()}
        batch[GROUP][:] = number
        return batch | {f"{own}/{name}": values for name, values in rows.items()}

    def number_in(self, batch: Mapping[str, jax.Array]) -> jax.Array | int:
        """Returns the number of the group of a batch: an int where its features tell, else an int32 scalar.

        Raises:
          InputError: for features of no group.
        """
        if GROUP in batch:
            # The rows agree; the maximum is the same on every device.
            return jnp.max(batch[GROUP])
        for number, group in enumerate(self.groups):
            if set(group.shapes) == set(batch):
                return number
        raise InputError(
            f"got the features {', '.join(sorted(batch))}",
            field="DatasetConfig.mixture_or_task_name",
            remedy=f"Name a task or mixture of {', '.join(task for group in self.groups for task in group.tasks)}.",
        )

    def rows_in(self, batch: Mapping[str, jax.Array], number: int) -> dict[str, jax.Array]:
        """Returns the features of one group of a batch, under their own names."""
        group = self.groups[number]
        prefix = f"{group.name}/" if GROUP in batch else ""
        return {name: batch[f"{prefix}{name}"] for name in group.shapes}


def make_layout(objectives: Objectives, lengths: Mapping[str, int]) -> BatchLayout:
    """Returns the layout of the tasks of a run.

    Args:
      objectives: of the tasks.
      lengths: `TASK_FEATURE_LENGTHS`.

    Raises:
      InputError: for a length that is missing or not positive.
    """
    found: list[tuple[int, Shapes, list[str]]] = []
    for task in sorted(objectives.of_task):
        shapes, objective = registry.get(task).shapes(lengths), id(objectives.of_task[task])
        alike = next((tasks for other, known, tasks in found if other == objective and known == shapes), None)
        if alike is None:
            found.append((objective, shapes, [task]))
        else:
            alike.append(task)
    return BatchLayout(tuple(Group(tuple(tasks), shapes) for _, shapes, tasks in found))


@dataclasses.dataclass(frozen=True, eq=False)
class Recipe:
    """A model with what it learns.

    Attributes:
      data: what it trains on; None where it does not train.
      vocabulary: of the model.
      objectives: of all tasks in the mixture, with the model.
      layout: of the batches; None without data.
      text_length: tokens of a text that the finished model reads, see `ModelOptions.text_length_of`.
    """

    data: DataOptions | None
    vocabulary: VocabularyFile
    objectives: Objectives
    layout: BatchLayout | None
    text_length: int | None

    def needed_data(self) -> tuple[DataOptions, BatchLayout]:
        """Returns data and layout.

        Raises:
          InputError: for a model without data.
        """
        if self.data is None or self.layout is None:
            raise InputError(
                "got None, but this run reads training data",
                field="EmbeddingModel.data",
                remedy="Set EmbeddingModel.data = @DataOptions(), as t5x/train.gin does.",
            )
        return self.data, self.layout

    def batch_options(
        self, directory: str, seed: int, batch_size: int, share: tuple[int, int] = (0, 1)
    ) -> BatchOptions:
        """Returns the options for whoever opens a set.

        Args:
          directory: the data folder.
          seed: of the shuffle.
          batch_size: examples over all processes.
          share: number of this process's part of every batch, and number of parts.
        """
        data, _ = self.needed_data()
        return BatchOptions(
            directory=directory,
            lengths=data.lengths,
            batch_size=batch_size // share[1],
            bounds=self.objectives.bounds,
            seed=seed,
            process_index=share[0],
            process_count=share[1],
            batch_days=data.batch_days,
        )

    def open_batches(self, mixture: str, options: BatchOptions) -> MixtureBatches:
        """Returns the batches of a mixture from the first one, as the trainer draws them.

        Raises:
          InputError: for a mixture with a task that the model was not made for, and for missing or damaged files.
        """
        data, _ = self.needed_data()
        weights = dataclasses.replace(data, mixture=mixture).weights()
        self.check_tasks(weights, mixture)
        return MixtureBatches(weights, data.open_set, options)

    def check_tasks(self, sets: Mapping[DataSet, float], mixture: str) -> None:
        """Refuses sets of tasks that the model was not made for.

        Raises:
          InputError: naming the tasks.
        """
        others = sorted({data_set.task for data_set in sets} - set(self.objectives.of_task))
        if others:
            own = ", ".join(self.objectives.of_task)
            raise InputError(
                f"got {mixture!r} with {', '.join(others)}; the model was made for {own}",
                field="DatasetConfig.mixture_or_task_name",
                remedy="Name the same mixture here and in DataOptions.mixture (both are %MIXTURE_OR_TASK_NAME).",
            )


def make_recipe(
    vocabulary_path: str, model: ModelOptions, data: DataOptions | None = None, objectives: Sequence[Objective] = ()
) -> Recipe:
    """Returns the recipe of a run; everything is checked before anything is allocated.

    Args:
      vocabulary_path: the vocab.txt of model and data.
      model: the architecture.
      data: what it trains on; None for a model that only embeds.
      objectives: take the place of the registered ones, each for the tasks that it serves.

    Raises:
      InputError: for a vocabulary, data, an architecture, an objective or options that do not fit each other.
    """
    vocabulary = read_vocabulary(vocabulary_path)
    config = model.config(vocabulary)
    seen = Model(config, continuation_pieces(vocabulary))
    if data is None:
        return Recipe(None, vocabulary, Objectives(seen, {}), None, model.text_length_of(None, config))
    if data.mixed_batches:
        raise data.refuse("mixed_batches", "False: the steps of T5X are those of one set each; use newsembed train")
    tasks = {data_set.task for data_set in data.weights()}
    data.check_lengths(tasks, config)
    data.check_vocabulary(data.data_dir)
    table = Objectives(seen, objectives_of(tasks, objectives))
    text_length = model.text_length_of(None if table.pretrains else data.feature_lengths, config)
    return Recipe(data, vocabulary, table, make_layout(table, data.lengths), text_length)


class Loss(NamedTuple):
    """The loss of a batch.

    Attributes:
      value: float32 scalar.
      metrics: what the objectives log, by group; zeros in groups that are not the batch's, or no such groups.
      number: number of the batch's group, int32 scalar.
    """

    value: jax.Array
    metrics: dict[str, Metrics]
    number: jax.Array


def loss_of_batch(
    objectives: Objectives, layout: BatchLayout, params: Any, batch: Mapping[str, jax.Array], key: jax.Array
) -> Loss:
    """Returns the loss of the task that a batch is of.

    The gradient of each task is computed inside its branch. Differentiating the branches from outside would keep what
    every one of them needs for its backward pass.

    Args:
      objectives: of all tasks.
      layout: of the batch.
      params: parameters of the model.
      batch: global arrays [B, ...].
      key: PRNG key of this step.

    Raises:
      InputError: for a batch with the features of no group.
    """
    number, groups = layout.number_in(batch), layout.groups

    def loss(own: int, params: Any) -> tuple[jax.Array, Metrics]:
        return objectives.loss(groups[own].tasks[0], params, layout.rows_in(batch, own), key)

    if isinstance(number, int):
        value, metrics = loss(number, params)
        return Loss(value, {groups[number].name: metrics}, jnp.asarray(number))
    shapes = [jax.eval_shape(lambda params, own=own: loss(own, params)[1], params) for own in range(len(groups))]
    zeros = {
        group.name: {name: jnp.zeros(value.shape, value.dtype) for name, value in shape.items()}
        for group, shape in zip(groups, shapes, strict=True)
    }

    def value_of(own: int, params: Any) -> Any:
        """Returns the loss of one group, with zeros for the metrics of the others."""
        value, metrics = loss(own, params)
        return value, zeros | {groups[own].name: metrics}

    def with_gradient(own: int, params: Any) -> Any:
        return jax.value_and_grad(functools.partial(value_of, own), has_aux=True)(params)

    def switched(function: Callable[..., Any], params: Any) -> Any:
        return jax.lax.switch(number, [functools.partial(function, own) for own in range(len(groups))], params)

    def backward(gradient: Any, cotangents: Any) -> Any:
        return (jax.tree.map(lambda array: cotangents[0] * array, gradient),)

    chosen = jax.custom_vjp(functools.partial(switched, value_of))
    chosen.defvjp(functools.partial(switched, with_gradient), backward)
    value, metrics = chosen(params)
    return Loss(value, metrics, number)
