"""The sizes of rows that follow from the data: a row is as wide as the largest record needs, so that nothing is cut.

The job that writes the records puts the sizes into the manifest (``"row_sizes"``). Folders of older versions lack them;
their records are read instead.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ..formats.manifest import example_paths, read_row_sizes
from ..formats.tfrecords.example import decode_example
from ..formats.tfrecords.reader import RecordFile
from .registry import Task, example_counts, get


def complete_lengths(folder: str, lengths: Mapping[str, int], tasks: Iterable[str]) -> dict[str, int]:
    """`TASK_FEATURE_LENGTHS` with the sizes that it leaves out.

    Args:
      folder: of the training data.
      lengths: as given.
      tasks: names of the tasks that are read.

    Raises:
      InputError: if the folder cannot be read.
    """
    completed = dict(lengths)
    for task in sorted(set(tasks)):
        for name, size in _sizes_of(folder, get(task)).items():
            if name not in lengths:
                completed[name] = max(size, completed.get(name, 1))
    return completed


def count_beyond(folder: str, lengths: Mapping[str, int], task: str) -> dict[str, tuple[int, int]]:
    """The values that rows of the given lengths leave out, by the name of the size: (left out, all).

    Args:
      folder: of the training data.
      lengths: `TASK_FEATURE_LENGTHS`; sizes that it leaves out cut nothing.
      task: whose records.

    Raises:
      InputError: if the folder cannot be read.
    """
    declared = get(task)
    narrow = {name for name, size in _sizes_of(folder, declared).items() if lengths.get(name, size) < size}
    if not narrow:
        return {}
    beyond, every = dict.fromkeys(sorted(narrow), 0), dict.fromkeys(narrow, 0)
    for record in _records(folder, declared):
        for name in narrow:
            counts = declared.sizes[name](record)
            beyond[name] += sum(max(0, count - lengths[name]) for count in counts)
            every[name] += sum(counts)
    return {name: (count, every[name]) for name, count in beyond.items()}


def _sizes_of(folder: str, task: Task) -> dict[str, int]:
    """The largest sizes of the records of a task."""
    if not task.sizes:
        return {}
    known = read_row_sizes(folder).get(task.name, {})
    if known.keys() >= task.sizes.keys():
        return {name: known[name] for name in task.sizes}
    largest = dict.fromkeys(task.sizes, 1)
    for record in _records(folder, task):
        for name, count in task.sizes.items():
            largest[name] = max(largest[name], *count(record))
    return largest


def _records(folder: str, task: Task) -> Iterator[dict[str, np.ndarray]]:
    for data_set in sorted(example_counts(folder)):
        if data_set.task != task.name:
            continue
        for path in example_paths(folder, data_set):
            file = RecordFile(path)
            for number in range(len(file)):
                yield decode_example(file[number], task.row_features, path)
