"""The registry of tasks: one declaration for each kind of training data, and the rules for its rows.

A task is one `Task` and a call of `register`. The pipelines write records by its features, and the readers make rows of
fixed shape by its rules. A task outside this package is registered by its own module: ``newsembed --import my_module
COMMAND …``, or ``import my_module`` in a gin file.
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import numpy as np

from ..errors import InputError
from ..formats.manifest import DataSet, manifest_path, read_example_counts, read_row_sizes
from ..formats.tfrecords import PIECES, FeatureSpec
from ..formats.vocabulary import CLS_ID, PAD_ID

Row = dict[str, np.ndarray]

SMOOTHING: Final = 0.7
MIXED: Final = "mixed"  # no task: a batch with rows of all tasks, or rows of all languages
_NAME: Final = re.compile(r"[a-z0-9_]+")
_REMEDY: Final = "Import the module that registers the task: newsembed --import MODULE COMMAND …"
_LENGTHS: Final = "TASK_FEATURE_LENGTHS"
_TASKS: Final[dict[str, "Task"]] = {}


def length_of(lengths: Mapping[str, int], feature: str, like: str | None = None) -> int:
    """The number of values of a feature in each row by `TASK_FEATURE_LENGTHS`, or of `like` where it has none.

    Raises:
      InputError: if there is none, or it is not a positive integer.
    """
    remedy = f"Set {_LENGTHS} = {{'{feature}': <length>, …}}."
    return _positive(lengths.get(feature, lengths.get(like) if like else None), feature, remedy)


def number_of(lengths: Mapping[str, int], name: str) -> int:
    """A number that a task reads from `TASK_FEATURE_LENGTHS` in addition to its lengths; 1 where absent.

    Raises:
      InputError: if it is not a positive integer.
    """
    return _positive(lengths.get(name, 1), name, "Leave it out for 1.")


def _positive(value: object, name: str, remedy: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"got {value!r}, expected a positive number", path=_LENGTHS, field=name, remedy=remedy)
    return value


class RowRule(Protocol):
    """How one feature of varying length becomes an array of fixed shape."""

    def shape(self, feature: str, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of the feature in each row; raises InputError for a length that is missing or not positive."""
        ...

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """int32 values of any number, cut or padded to `shape`; raises InputError for values that cannot be."""
        ...


@dataclasses.dataclass(frozen=True)
class CutOrPad:
    """Cuts the values of a feature to its length, or pads them.

    Attributes:
      like: the feature whose length counts where `TASK_FEATURE_LENGTHS` has none for this one.
      padding: the value that fills the row.
      keep_last: whether the last value stays when the values are cut, such as the closing [SEP] of a text.
    """

    like: str | None = None
    padding: int = PAD_ID
    keep_last: bool = False

    def shape(self, feature: str, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """``(length,)``."""
        return (length_of(lengths, feature, self.like),)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The values cut or padded to `shape`, int32 [length]."""
        (length,) = shape
        if values.size < length:
            return np.concatenate([values, np.full(length - values.size, self.padding, values.dtype)])
        row = values[:length].copy()
        if self.keep_last:
            row[-1] = values[-1]
        return row


TEXT: Final = CutOrPad(keep_last=True)
"""The rule for the word pieces of one text, [CLS] … [SEP]."""


@dataclasses.dataclass(frozen=True)
class Parts:
    """Values of several texts one after another, as many of each.

    Attributes:
      number: in `TASK_FEATURE_LENGTHS`, how many texts a row has; 1 where absent.
      rule: for the values of one text.
    """

    number: str
    rule: CutOrPad = TEXT

    def shape(self, feature: str, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """``(length,)`` for one text, ``(texts, length)`` for several."""
        shape, count = self.rule.shape(feature, lengths), number_of(lengths, self.number)
        return shape if count == 1 else (count, *shape)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The values of each text cut or padded, int32 of `shape`."""
        count = math.prod(shape[:-1])
        if values.size % count:
            raise _other_number(f"{values.size} values", self.number, count)
        return np.stack([self.rule.fit(part, shape[-1:]) for part in values.reshape(count, -1)]).reshape(shape)


@dataclasses.dataclass(frozen=True)
class Texts(Parts):
    """Several texts one after another, each from [CLS] on and cut or padded; places without a text are padding.

    Attributes:
      is_exact: whether more texts are an error; else the first ones are read.
    """

    is_exact: bool = False

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The texts cut or padded, int32 of `shape`."""
        count = math.prod(shape[:-1])
        texts = np.split(values, np.flatnonzero(values == CLS_ID)[1:])
        if self.is_exact and len(texts) > count:
            raise _other_number(f"{len(texts)} texts", self.number, count)
        rows = [self.rule.fit(text, shape[-1:]) for text in texts[:count]]
        return np.stack(rows + [np.zeros_like(rows[0])] * (count - len(rows))).reshape(shape)


@dataclasses.dataclass(frozen=True)
class Ids:
    """Ids of several texts one after another, some integers each; places without a text have zeros.

    Attributes:
      number: see `Parts`.
      size: integers of each.
      is_exact: whether another number of ids is an error; else the first ones are read.
    """

    number: str
    size: int = 2
    is_exact: bool = False

    def shape(self, feature: str, lengths: Mapping[str, int]) -> tuple[int, ...]:  # noqa: ARG002
        """``(size * texts,)``."""
        return (self.size * number_of(lengths, self.number),)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The ids, int32 of `shape`."""
        if values.size % self.size or (self.is_exact and values.shape != shape):
            raise _other_number(f"{values.size} values of ids", self.number, shape[0] // self.size)
        return CutOrPad().fit(values, shape)


def _other_number(found: str, number: str, expected: int) -> InputError:
    remedy = f"Leave {number!r} out of {_LENGTHS}, so that the manifest of the data tells; or write the records again."
    return InputError(f"got {found} in a record, expected those of {expected}", field=number, remedy=remedy)


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
    """

    name: str
    features: tuple[FeatureSpec, ...]
    rules: Mapping[str, RowRule]
    mixtures: tuple[str, ...] = ()
    is_packed: bool = False
    text: str = "tokens"
    day: str = ""

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
        """The shape of every feature in a row; `lengths` are `TASK_FEATURE_LENGTHS`.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        fixed = {spec.name: tuple(size for size in spec.shape if size is not None) for spec in self.row_features}
        return fixed | {name: rule.shape(name, lengths) for name, rule in self.rules.items()}


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
            values = example[name]
            if values.size and not 0 <= values.min() <= values.max() < bound:
                problem = f"got ids from {values.min()} to {values.max()}, expected 0 to {bound - 1}"
                remedy = "Train with the VOCABULARY_PATH, NUM_TOPICS or NUM_LANGUAGES that the data were written with."
                raise InputError(problem, path=path, field=name, remedy=remedy)
        return {
            name: self._rules[name].fit(example[name], shape) if name in self._rules else example[name]
            for name, shape in self._shapes.items()
        }


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
        problem = f"got the task {name!r}, expected one of {', '.join(_TASKS)}"
        raise InputError(problem, field="task", remedy=_REMEDY)
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
    if unknown := ", ".join(str(data_set) for data_set in counts if data_set.task not in _TASKS):
        problem = f"got {unknown}, expected sets of the tasks {', '.join(_TASKS)}"
        raise InputError(problem, path=manifest_path(folder), field="examples", remedy=_REMEDY)
    return counts


def complete_lengths(folder: str, lengths: Mapping[str, int], tasks: Iterable[str]) -> dict[str, int]:
    """`TASK_FEATURE_LENGTHS` with the sizes that it leaves out, such as the most labels of a document.

    The job that writes the records puts the largest sizes into the manifest of the folder (``"row_sizes"``), so that
    nothing is cut.
    """
    completed, sizes = dict(lengths), read_row_sizes(folder)
    for task in sorted(set(tasks)):
        for name, size in sizes.get(task, {}).items():
            if name not in lengths:
                completed[name] = max(size, completed.get(name, 1))
    return completed


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


def smoothed_sizes(counts: Mapping[DataSet, int], alpha: float = SMOOTHING) -> dict[DataSet, float]:
    """The sizes by which sets are sampled: m_i = n_1 (p_i / p_1)^alpha, where set 1 is the largest (section 3.4).

    Small languages are sampled more often than by their size.

    Args:
      counts: records by set, all positive.
      alpha: 1 samples by size, 0 all sets alike.

    Returns:
      The sizes, in the sorted order of the sets.
    """
    largest = max(counts.values())
    return {data_set: largest * (counts[data_set] / largest) ** alpha for data_set in sorted(counts)}
