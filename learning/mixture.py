"""The choice of the (task, language) set of each step (paper, section 3.4), or rows of all sets in each (Table 10).

The choice depends on the step number and the seed only, so all hosts choose the same set.
"""

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..formats.manifest import DataSet
from ..tasks import registry
from ..tasks.registry import MIXED
from .batches import Batch, BatchIterator, BatchOpener, BatchOptions


def select_sets(directory: str, mixture: str) -> dict[DataSet, int]:
    """The sets that a mixture trains on, with their record counts.

    Args:
      directory: the data folder.
      mixture: "pretrain", "weak_supervision", a task, or "task/language".

    Raises:
      InputError: for an unknown mixture, or one of which the folder has no data.
    """
    task, _, language = mixture.partition("/")
    mixtures = registry.mixtures()
    tasks = mixtures.get(task) or ((task,) if task in registry.names() else ())
    if not tasks:
        known = ", ".join([*mixtures, *registry.names()])
        raise InputError(
            f"got {mixture!r}, expected one of {known}, or <task>/<language>",
            field="MIXTURE_OR_TASK_NAME",
            remedy="Set MIXTURE_OR_TASK_NAME to one of these.",
        )
    counts = registry.example_counts(directory)
    chosen = {
        data_set: n for data_set, n in counts.items() if data_set.task in tasks and language in ("", data_set.language)
    }
    if not chosen:
        there = ", ".join(map(str, sorted(counts))) or "nothing"
        raise InputError(
            f"got {there}, expected examples of {mixture}",
            path=directory,
            field="examples",
            remedy="Name a folder that holds them.",
        )
    return chosen


class Draw(NamedTuple):
    """One global step's set and this process's share of its batch.

    Attributes:
      data_set: the set.
      batch: the rows.
      places: names the records of the rows, as "file:number".
    """

    data_set: DataSet
    batch: Batch
    places: Callable[[], list[str]] = list


class MixtureBatches:
    """The iterators of all sets of a mixture, and the choice of one for each step.

    Args:
      weights: of each set, in proportion to its probability.
      open_set: makes the iterator of one set.
      options: given to `open_set`.
    """

    def __init__(self, weights: Mapping[DataSet, float], open_set: BatchOpener, options: BatchOptions) -> None:
        self._sets = sorted(weights)
        self._borders = np.cumsum([weights[data_set] for data_set in self._sets])
        self._seed = options.seed
        self._iterators: dict[DataSet, BatchIterator] = {
            data_set: open_set(data_set, options) for data_set in self._sets
        }

    def choose(self, step: int) -> DataSet:
        """The set of a step, a function of the step number and the seed only."""
        point = np.random.default_rng([self._seed, step]).random() * self._borders[-1]
        return self._sets[min(int(np.searchsorted(self._borders, point, side="right")), len(self._sets) - 1)]

    def draw(self, step: int) -> Draw:
        """The set of `step` and its next batch. Call it once for each step, in order."""
        data_set = self.choose(step)
        iterator = self._iterators[data_set]
        batch = next(iterator)
        return Draw(data_set, batch, iterator.places())

    def get_state(self) -> bytes:
        """The states of all iterators as JSON."""
        states = {
            str(data_set): base64.b64encode(iterator.get_state()).decode()
            for data_set, iterator in self._iterators.items()
        }
        return json.dumps(states).encode()

    def set_state(self, state: bytes) -> None:
        """Continues all iterators at their states.

        Raises:
          InputError: if the state belongs to other sets.
        """
        states = json.loads(state)
        names = {str(data_set) for data_set in self._sets}
        if set(states) != names:
            raise InputError(
                f"the checkpoint was trained on {', '.join(sorted(states))}, this run on {', '.join(sorted(names))}",
                field="MIXTURE_OR_TASK_NAME",
                remedy="Resume with the same mixture and data, or start another MODEL_DIR with "
                "INITIAL_CHECKPOINT_PATH.",
            )
        for data_set, iterator in self._iterators.items():
            iterator.set_state(base64.b64decode(states[str(data_set)]))


def mixed_rows(weights: Mapping[DataSet, float], batch_size: int, parts: int) -> dict[str, int]:
    """How many rows of each task are in a mixed batch: in proportion to the weights, and a multiple of `parts`.

    Args:
      weights: of each set.
      batch_size: rows of a global batch, a multiple of `parts`.
      parts: how many parts the devices cut a batch into.

    Raises:
      InputError: if there are fewer rows on a device than tasks.
    """
    tasks = sorted({data_set.task for data_set in weights})
    spare = batch_size // parts - len(tasks)  # each task has one row on each part
    if spare < 0:
        raise InputError(
            f"a batch of {batch_size} rows on {parts} devices cannot hold rows of {', '.join(tasks)} on each of them",
            field="BATCH_SIZE",
            remedy=f"Set BATCH_SIZE = {len(tasks) * parts} or more, or DataOptions.mixed_batches = False.",
        )
    shares = np.array([sum(weight for one, weight in weights.items() if one.task == task) for task in tasks])
    wanted = np.maximum(shares / shares.sum() * (spare + len(tasks)) - 1, 0)
    wanted *= spare / max(wanted.sum(), 1e-9)
    rows = np.floor(wanted).astype(int)
    rows[np.argsort(rows - wanted, kind="stable")[: spare - rows.sum()]] += 1
    return {task: parts * (1 + int(number)) for task, number in zip(tasks, rows, strict=True)}


class MixedBatches(MixtureBatches):
    """Batches with rows of all sets: the ablation of alternating steps (paper, Table 10).

    Each task has a fixed number of rows in a batch. They come from its languages by their weights, interleaved.
    Features are named ``<task>/<feature>``.

    Args:
      weights: of each set, in proportion to its probability.
      open_set: makes the iterator of the sets of a task.
      options: given to `open_set`, with the number of rows of the task.
      rows: of each task in a global batch, see `mixed_rows`.
    """

    def __init__(
        self, weights: Mapping[DataSet, float], open_set: BatchOpener, options: BatchOptions, rows: Mapping[str, int]
    ) -> None:
        self._sets = [DataSet(task, MIXED) for task in sorted(rows)]
        self._iterators = {}
        for part in self._sets:
            own = {data_set: weights[data_set] for data_set in sorted(weights) if data_set.task == part.task}
            size = rows[part.task] // options.process_count
            self._iterators[part] = open_set(part, dataclasses.replace(options, batch_size=size, mixed=own))

    def choose(self, step: int) -> DataSet:  # noqa: ARG002
        """All sets."""
        return DataSet(MIXED, MIXED)

    def draw(self, step: int) -> Draw:
        """The next batch. Call it once for each step, in order."""
        batch: Batch = {}
        for part, iterator in self._iterators.items():
            batch |= {f"{part.task}/{name}": values for name, values in next(iterator).items()}
        places = [iterator.places() for iterator in self._iterators.values()]
        return Draw(self.choose(step), batch, lambda: [place for of_part in places for place in of_part()])
