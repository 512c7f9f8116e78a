"""Batches of training data: the interface of checkpointable iterators, and its implementation with grain.

`tasks.seqio_tasks.SeqioBatches` implements the same interface over the same files with seqio.
"""

import bisect
import dataclasses
import itertools
import json
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

import gin
import grain
import numpy as np

from ..errors import InputError
from ..formats.manifest import DataSet, example_paths
from ..formats.tfrecords.example import decode_example
from ..formats.tfrecords.reader import RecordFile
from ..tasks import registry
from .day_order import DayOrder

Batch = dict[str, np.ndarray]

_RECORD: Final = "_record"  # rides along with a row inside the reader


@runtime_checkable
class BatchIterator(Protocol):
    """An endless stream of batches that can be stopped and resumed exactly."""

    def __next__(self) -> Batch:
        """The next batch of this process: int32 arrays [batch, …] by feature name."""
        ...

    def get_state(self) -> bytes:
        """The state from which `set_state` continues after the last batch that was returned."""
        ...

    def set_state(self, state: bytes) -> None:
        """Continues after the batch at which `get_state` was called on an iterator with the same arguments."""
        ...


@runtime_checkable
class TracedBatches(Protocol):
    """The further interface of iterators that know the records of a batch."""

    @property
    def last_records(self) -> np.ndarray:
        """int64 [batch], the number in the set of each record of the batch that was returned last."""
        ...

    def place(self, record: int) -> str:
        """The place of the record with this number, as "file:number", counted from 0."""
        ...


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """The options of a run that every implementation needs.

    Attributes:
      directory: holds `task=…/language=…/part-*.tfrecord` and `manifest.json`.
      lengths: `TASK_FEATURE_LENGTHS`.
      batch_size: examples of this process's share, the global batch size divided by `process_count`.
      bounds: the number of word pieces, of topics and the like, by `FeatureSpec.holds`; ids must be less.
      seed: of the shuffle.
      process_index: which share of each global batch is this process's, see `partitioning.data_share`.
      process_count: number of shares.
      batch_days: BATCH_DAYS; each batch holds rows of one period of this many days, see `day_order`. 0 shuffles all
        records together.
    """

    directory: str
    lengths: Mapping[str, int]
    batch_size: int
    bounds: Mapping[str, int]
    seed: int = 0
    process_index: int = 0
    process_count: int = 1
    batch_days: int = 0


class BatchOpener(Protocol):
    """Opens one set; `GrainBatches` and `SeqioBatches` are such callables."""

    def __call__(self, data_set: DataSet, options: BatchOptions) -> BatchIterator:
        """The iterator at its first batch."""
        ...


@gin.register
class GrainBatches:
    """Batches of one set by grain, without TensorFlow.

    Each epoch is another seeded permutation of all records. Epochs follow each other without end, and batches may span
    two of them. Share p of n is the p-th of n equal blocks of every global batch, so the rows of a global batch do not
    depend on n. Neither does the state: a run may be resumed with another number of processes.

    Args:
      data_set: what to read.
      options: how.
      num_threads: threads that read and decode.
      prefetch_batches: batches prepared ahead of the training loop.

    Raises:
      InputError: from the constructor for missing or damaged files, from `__next__` for records that do not fit the
        task.
    """

    def __init__(
        self, data_set: DataSet, options: BatchOptions, num_threads: int = 2, prefetch_batches: int = 4
    ) -> None:
        source = RecordSource(data_set, options)
        self._identity = {
            "set": str(data_set),
            "records": len(source),
            "seed": options.seed,
            "batch_size": options.batch_size * options.process_count,
        }
        if options.batch_days:
            self._identity["batch_days"] = options.batch_days
        self._source = source
        self._records = np.zeros(0, np.int64)
        stream = _rows(source, data_set, options)
        stream = stream.batch(options.batch_size, drop_remainder=True)[options.process_index :: options.process_count]
        reading = grain.ReadOptions(num_threads=num_threads, prefetch_buffer_size=prefetch_batches)
        self._iterator: Any = iter(stream.to_iter_dataset(reading))

    def __iter__(self) -> "GrainBatches":
        return self

    def __next__(self) -> Batch:
        """The next batch."""
        batch = dict(next(self._iterator))
        self._records = batch.pop(_RECORD)
        return batch

    @property
    def last_records(self) -> np.ndarray:
        """int64 [batch], the number in the set of each record of the last batch."""
        return self._records

    def place(self, record: int) -> str:
        """The place of a record, as "file:number", counted from 0."""
        return self._source.place(record)

    def get_state(self) -> bytes:
        """JSON: grain's position, and the data and options that it belongs to."""
        return json.dumps({"identity": self._identity, "position": self._iterator.get_state()}, sort_keys=True).encode()

    def set_state(self, state: bytes) -> None:
        """Continues after the batch at which `get_state` was called.

        Raises:
          InputError: if the state belongs to other data, another seed or another batch size.
        """
        values = json.loads(state)
        if values["identity"] != self._identity:
            raise InputError(
                f"the checkpoint was trained on {values['identity']}, the data are now {self._identity}",
                path=str(self._identity["set"]),
                remedy="Restore the data, seed and batch size of the run, or start another MODEL_DIR with "
                "INITIAL_CHECKPOINT_PATH.",
            )
        self._iterator.set_state(values["position"])


def _rows(source: "RecordSource", data_set: DataSet, options: BatchOptions) -> Any:
    """The rows of all epochs, in the order of the global batches."""
    rows = _Numbered(source)
    size = options.batch_size * options.process_count
    # A set of fewer rows than a batch has only one batch, which spans epochs.
    if not options.batch_days or not registry.get(data_set.task).day or len(source) < size:
        return grain.MapDataset.source(rows).seed(options.seed).shuffle().repeat()
    order = DayOrder(source.days(), options.batch_days, size, options.seed)
    return grain.MapDataset.range(len(order)).repeat().map_with_index(lambda number, _: rows[order[number]])


class _Numbered:
    """A source whose rows carry their number."""

    def __init__(self, source: "RecordSource") -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Batch:
        return self._source[index] | {_RECORD: np.asarray(index, np.int64)}


class RecordSource:
    """Random access to the rows of one set: decoded, checked, and of fixed shape."""

    def __init__(self, data_set: DataSet, options: BatchOptions) -> None:
        task = registry.get(data_set.task)
        self._features, self._day = task.row_features, task.day
        self._make_row = registry.RowMaker(task, options.lengths, options.bounds)
        self._files = [RecordFile(path) for path in example_paths(options.directory, data_set)]
        self._ends = list(itertools.accumulate(len(file) for file in self._files))
        expected = registry.example_counts(options.directory).get(data_set, 0)
        if len(self) != expected:
            raise InputError(
                f"the files of {data_set} hold {len(self)} records, the manifest says {expected}",
                path=os.path.dirname(self._files[0].path),
                remedy="The set was changed or cut off after it was written: run the job that writes it again.",
            )

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Batch:
        file, number = self._locate(index)
        return self._make_row(decode_example(file[number], self._features, file.path), file.path)

    def days(self) -> np.ndarray:
        """The day of each record, the last value of the feature `Task.day`, int32 [N]; reads all records.

        Raises:
          InputError: if no record has a day.
        """
        spec = next(spec for spec in self._features if spec.name == self._day)
        parts = [
            decode_example(file[n], (spec,), file.path)[self._day] for file in self._files for n in range(len(file))
        ]
        days = np.array([values[-1] for values in parts], np.int32)
        if not days.any():
            raise InputError(
                "no record has a day, which BATCH_DAYS groups by",
                path=os.path.dirname(self._files[0].path),
                field=self._day,
                remedy="Write the examples again with this version, or set BATCH_DAYS = 0.",
            )
        return days

    def place(self, index: int) -> str:
        """The place of a record, as "file:number", counted from 0."""
        file, number = self._locate(index)
        return f"{file.path}:{number}"

    def _locate(self, index: int) -> tuple[RecordFile, int]:
        number = bisect.bisect_right(self._ends, index)
        file = self._files[number]
        return file, index - (self._ends[number] - len(file))
