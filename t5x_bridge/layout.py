"""One shape for the batches of all tasks: T5X compiles one step, and each step trains on another task."""

import dataclasses
from collections.abc import Mapping
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..learning.batches import Batch
from ..learning.objectives import Objectives
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
