"""The registry of tasks: one declaration for each kind of training data.

A task is one `Task` and a call of `register`. The pipelines write records by its features, and the readers make rows by
its rules. A task outside this package is registered by its own module: ``newsembed --import my_module COMMAND …``, or
``import my_module`` in a gin file.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ..errors import InputError
from ..formats.manifest import DataSet, manifest_path, read_example_counts
from ..formats.tfrecords.schema import PIECES, FeatureSpec
from .rows import Lengths, RowRule

Row = dict[str, np.ndarray]

_NAME: Final = re.compile(r"[a-z0-9_]+")
_REMEDY: Final = "Import the module that registers the task: newsembed --import MODULE COMMAND …"
_TASKS: Final[dict[str, "Task"]] = {}


@dataclasses.dataclass(frozen=True)
class Task:
    """One kind of training data.

    Attributes:
      name: lower-case letters, digits and underscores; the name in folders, manifests and options.
      features: the features of every record, in the order of the row.
      rules: for each integer feature of varying length, how it becomes an array of fixed shape.
      mixtures: the mixtures that the task belongs to; it can always be trained alone, by its own name.
      is_packed: whether a row holds several texts, told apart by `segment_ids` and `positions`.
      day: the feature whose last value is the day of a record, in days since 1970-01-01; "" if records have no day.
      text: the feature with the texts from which a run computes weights of word pieces, whitening and the like.
      sizes: numbers that `TASK_FEATURE_LENGTHS` may leave out, because the data tell (see `tasks.sizes`): by name, a
        function from a record to how many it has, once or for each of its parts.
    """

    name: str
    features: tuple[FeatureSpec, ...]
    rules: Mapping[str, RowRule]
    mixtures: tuple[str, ...] = ()
    is_packed: bool = False
    text: str = "tokens"
    day: str = ""
    sizes: Mapping[str, Callable[[Row], Sequence[int]]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"got the task name {self.name!r}, expected lower-case letters, digits and underscores")
        variable = {spec.name for spec in self.row_features if spec.is_variable}
        if set(self.rules) != variable:
            raise ValueError(f"task {self.name}: got rules for {sorted(self.rules)}, expected {sorted(variable)}")
        if self.day and self.day not in {spec.name for spec in self.row_features}:
            raise ValueError(f"task {self.name}: got the day {self.day!r}, expected an integer feature")
        if self.text not in variable:
            raise ValueError(f"task {self.name}: got the text {self.text!r}, expected one of {sorted(variable)}")

    @property
    def row_features(self) -> tuple[FeatureSpec, ...]:
        """The features that reach the device: all integer ones."""
        return tuple(spec for spec in self.features if spec.kind == "int")

    @property
    def text_features(self) -> tuple[str, ...]:
        """The names of the features that hold word pieces."""
        return tuple(spec.name for spec in self.row_features if spec.holds == PIECES)

    def shapes(self, lengths: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shape of every feature in a row.

        Args:
          lengths: `TASK_FEATURE_LENGTHS`.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        asked = Lengths(self.name, lengths)
        return {
            spec.name: self.rules[spec.name].shape(spec.name, asked)
            if spec.is_variable
            else tuple(size for size in spec.shape if size is not None)
            for spec in self.row_features
        }

    def text_lengths(self, lengths: Mapping[str, int]) -> dict[str, int]:
        """The number of tokens of each feature that holds word pieces, in the order of the features.

        Args:
          lengths: `TASK_FEATURE_LENGTHS`.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        return {name: shape[-1] for name, shape in self._text_shapes(lengths).items()}

    def texts_per_row(self, lengths: Mapping[str, int]) -> int:
        """The number of texts that each feature of word pieces has in a row; 1 where the features differ in it.

        Args:
          lengths: `TASK_FEATURE_LENGTHS`.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        counts = {math.prod(shape[:-1]) for shape in self._text_shapes(lengths).values()}
        return counts.pop() if len(counts) == 1 else 1

    def _text_shapes(self, lengths: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        asked = Lengths(self.name, lengths)
        return {name: self.rules[name].shape(name, asked) for name in self.text_features}


class RowMaker:
    """Makes rows of fixed shape of the records of one task, and checks their ids.

    Args:
      task: whose records.
      lengths: `TASK_FEATURE_LENGTHS`.
      bounds: how many there are of what features hold ids of (`FeatureSpec.holds`); others are not checked.

    Raises:
      InputError: for a length that is missing or not positive.
    """

    def __init__(self, task: Task, lengths: Mapping[str, int], bounds: Mapping[str, int]) -> None:
        self._rules = task.rules
        self._shapes = task.shapes(lengths)
        self._bounds = {spec.name: bounds[spec.holds] for spec in task.row_features if spec.holds in bounds}

    def __call__(self, example: Mapping[str, np.ndarray], path: str) -> Row:
        """The row of one record.

        Args:
          example: int32 arrays of any length, by feature.
          path: where the record is, for errors.

        Returns:
          int32 arrays by feature, in the order of the task's features.

        Raises:
          InputError: for ids out of bounds, or values that do not fit the rule of their feature.
        """
        for name, bound in self._bounds.items():
            _check_ids(example[name], bound, name, path)
        return {name: self._fit(name, example[name], shape) for name, shape in self._shapes.items()}

    def _fit(self, name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return self._rules[name].fit(values, shape) if name in self._rules else values


def register(task: Task) -> Task:
    """Adds a task under its name and returns it. An equal task may be registered again.

    Raises:
      ValueError: if another task has this name.
    """
    known = _TASKS.setdefault(task.name, task)
    if known != task:
        raise ValueError(f"the task {task.name!r} is registered twice: {known} and {task}")
    return known


def get(name: str) -> Task:
    """The task with this name.

    Raises:
      InputError: if there is none.
    """
    if name not in _TASKS:
        raise InputError(
            f"got the task {name!r}, expected one of {', '.join(_TASKS)}",
            field="task",
            remedy=_REMEDY,
        )
    return _TASKS[name]


def names() -> tuple[str, ...]:
    """The names of all tasks, in the order in which they were registered."""
    return tuple(_TASKS)


def example_counts(folder: str) -> dict[DataSet, int]:
    """The sets of training data in a folder with their record counts; empty sets are left out.

    Raises:
      InputError: without a readable manifest that counts examples, or for a set of an unknown task.
    """
    counts = read_example_counts(folder)
    unknown = ", ".join(str(data_set) for data_set in counts if data_set.task not in _TASKS)
    if unknown:
        raise InputError(
            f"got {unknown}, expected sets of the tasks {', '.join(_TASKS)}",
            path=manifest_path(folder),
            field="examples",
            remedy=_REMEDY,
        )
    return counts


def text_features() -> frozenset[str]:
    """The names of the features that hold word pieces in any task."""
    return frozenset(name for task in _TASKS.values() for name in task.text_features)


def mixtures() -> dict[str, tuple[str, ...]]:
    """The names of the tasks of every mixture."""
    found: dict[str, tuple[str, ...]] = {}
    for task in _TASKS.values():
        for mixture in task.mixtures:
            found[mixture] = (*found.get(mixture, ()), task.name)
    return found


def _check_ids(values: np.ndarray, bound: int, name: str, path: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < bound:
        raise InputError(
            f"got ids from {values.min()} to {values.max()}, expected 0 to {bound - 1}",
            path=path,
            field=name,
            remedy="Train with the vocabulary (or the number of topics) that the data were written with.",
        )
