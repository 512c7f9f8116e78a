"""Batches of training data: the interface of checkpointable iterators, and its implementation with grain."""

import bisect
import dataclasses
import functools
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import gin
import grain
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.files import is_object, size_of
from ..formats.manifest import DataSet, example_paths, read_blocks
from ..formats.remote import local_files
from ..formats.tfrecords import BlockCache, Blocks, RecordFile, decode_example
from ..tasks import registry

Batch = dict[str, np.ndarray]
Numbers = npt.NDArray[np.int64]

_RECORD: Final = "_record"  # rides along with a row inside the reader
_COPIED_GIGABYTES: Final = 16.0
_THREADS: Final = 2  # that read and decode
_PREFETCHED_BATCHES: Final = 4  # prepared ahead of the training loop
_SPARE_BLOCKS: Final = 16  # reading threads are at different places
_LANES: Final = 32
_WINDOW: Final = 4  # blocks of a lane whose records are shuffled together
BLOCKS_AT_ONCE: Final = 2 * _WINDOW * _LANES  # that all processes together need: the next window is fetched early


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

    def places(self) -> Callable[[], list[str]]:
        """What names the records of the batch that was returned last, as "file:number", counted from 0."""
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
      batch_days: BATCH_DAYS; each batch holds rows of one period of this many days, see `DayOrder`. 0 shuffles all
        records together.
      mixed: sets of one task whose rows every batch mixes, with their weights, in place of the set that is opened;
        empty: that set alone.
    """

    directory: str
    lengths: Mapping[str, int]
    batch_size: int
    bounds: Mapping[str, int]
    seed: int = 0
    process_index: int = 0
    process_count: int = 1
    batch_days: int = 0
    mixed: Mapping[DataSet, float] = dataclasses.field(default_factory=dict)


BatchOpener = Callable[[DataSet, BatchOptions], BatchIterator]  # opens one set, as `GrainBatches` does


@gin.register
class GrainBatches:
    """Batches of one set by grain, without TensorFlow.

    Each epoch is another seeded permutation of all records. Epochs follow each other without end, and batches may span
    two of them. Share p of n is the p-th of n equal blocks of every global batch, so the rows of a global batch do not
    depend on n. Neither does the state: a run may be resumed with another number of processes.

    A set in an object store is first copied to this machine, if it is not too large. Of a larger one each process reads
    its share block by block, in the order of `BlockOrder`.

    Args:
      data_set: what to read.
      options: how.
      copied_gigabytes: the size of the largest set that is copied from an object store.

    Raises:
      InputError: from the constructor for missing or damaged files, from `__next__` for records that do not fit the
        task.
    """

    def __init__(self, data_set: DataSet, options: BatchOptions, copied_gigabytes: float = _COPIED_GIGABYTES) -> None:
        weights = options.mixed or {data_set: 1.0}
        self._sources = [RecordSource(one, options, int(copied_gigabytes * 1e9)) for one in weights]
        self._starts = [0, *itertools.accumulate(map(len, self._sources))]
        self._identity = {
            "set": str(data_set),
            "records": self._starts[-1],
            "seed": options.seed,
            "batch_size": options.batch_size * options.process_count,
        }
        if options.batch_days:
            self._identity["batch_days"] = options.batch_days
        if not all(source.is_local for source in self._sources):
            self._identity["order"] = "blocks"
        self._records = np.zeros(0, np.int64)
        rows = [_rows(*one, data_set.task, options) for one in zip(self._sources, self._starts, strict=False)]
        stream = grain.MapDataset.mix(rows, list(weights.values())) if options.mixed else rows[0]
        stream = stream.batch(options.batch_size, drop_remainder=True)[options.process_index :: options.process_count]
        reading = grain.ReadOptions(num_threads=_THREADS, prefetch_buffer_size=_PREFETCHED_BATCHES)
        self._iterator: Any = iter(stream.to_iter_dataset(reading))

    def __iter__(self) -> "GrainBatches":
        return self

    def __next__(self) -> Batch:
        """The next batch."""
        batch = dict(next(self._iterator))
        self._records = batch.pop(_RECORD)
        return batch

    def places(self) -> Callable[[], list[str]]:
        """What names the records of the last batch, also after the next one."""
        records = self._records
        return lambda: list(map(self._place, records.tolist()))

    def _place(self, record: int) -> str:
        number = bisect.bisect_right(self._starts, record) - 1
        return self._sources[number].place(record - self._starts[number])

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


def _rows(source: "RecordSource", start: int, task: str, options: BatchOptions) -> Any:
    """The rows of all epochs, in the order of the global batches; each carries its number, counted from `start`."""
    size = options.batch_size * options.process_count
    numbers = grain.MapDataset.range(len(source))
    has_days = bool(options.batch_days and registry.get(task).day)
    # A set of fewer rows than a batch has only one batch, which spans epochs.
    if source.is_local and (not has_days or len(source) < size):
        numbers = numbers.seed(options.seed).shuffle().repeat()
    else:
        order = source.day_order(size) if has_days else source.block_order(size)
        numbers = grain.MapDataset.range(len(order)).repeat().map_with_index(lambda number, _: order[number])
    return numbers.map(lambda number: source[number] | {_RECORD: np.asarray(start + number, np.int64)})


class BlockOrder:
    """An endless order of the records of a set that is too large to be copied, for any number of processes.

    The rows of a global batch are divided among up to 32 lanes of neighbouring rows, so that a process reads a few
    lanes only. In each epoch the blocks are shuffled and dealt to the lanes. A lane takes the records of four blocks at
    a time, shuffled. The order depends on the arguments only.

    Args:
      sizes: the number of records of each block, int ``[B]``; records are numbered through the blocks.
      batch_size: rows of a global batch.
      seed: of the shuffles.
      soon: called with the numbers of blocks whose records come next.
    """

    def __init__(
        self, sizes: npt.ArrayLike, batch_size: int, seed: int, soon: Callable[[Numbers], None] = lambda _: None
    ) -> None:
        self._sizes = np.asarray(sizes, np.int64)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        self._batch_size, self._seed, self._soon = batch_size, seed, soon
        self.lanes = math.gcd(batch_size, _LANES)
        while self.lanes > len(self._sizes):
            self.lanes //= 2
        self._ends: list[list[int]] = [[] for _ in range(self.lanes)]  # of the epochs of each lane, in its own count
        self._shuffled = functools.lru_cache(maxsize=4)(self._shuffle)
        self._records = functools.lru_cache(maxsize=4 * self.lanes)(self._window)
        self._of_lane = functools.lru_cache(maxsize=4 * self.lanes)(self._deal)

    def __len__(self) -> int:
        """Records of the set."""
        return int(self._sizes.sum())

    def __getitem__(self, number: int) -> int:
        """The record at this place of the endless order."""
        step, row = divmod(number, self._batch_size)
        of_lane = self._batch_size // self.lanes
        lane, place = divmod(row, of_lane)
        return self._record(lane, step * of_lane + place)

    def _record(self, lane: int, place: int) -> int:
        ends = self._ends[lane]
        while not ends or ends[-1] <= place:
            ends.append((ends[-1] if ends else 0) + int(self._of_lane(len(ends), lane)[1][-1]))
        epoch = bisect.bisect_right(ends, place)
        place -= ends[epoch - 1] if epoch else 0
        window_ends = self._of_lane(epoch, lane)[1]
        window = int(np.searchsorted(window_ends, place, side="right"))
        return int(self._records(epoch, lane, window)[place - (int(window_ends[window - 1]) if window else 0)])

    def _shuffle(self, epoch: int) -> Numbers:
        return np.random.default_rng([self._seed, epoch]).permutation(len(self._sizes))

    def _deal(self, epoch: int, lane: int) -> tuple[Numbers, Numbers]:
        """The blocks of a lane in an epoch, and the ends of its windows in records."""
        blocks = self._shuffled(epoch)[lane :: self.lanes]
        ends = np.cumsum(self._sizes[blocks])
        return blocks, np.append(ends[_WINDOW - 1 : -1 : _WINDOW], ends[-1])

    def _window(self, epoch: int, lane: int, window: int) -> Numbers:
        blocks = self._of_lane(epoch, lane)[0][_WINDOW * window :]
        self._soon(blocks[: 2 * _WINDOW])
        ranges: list[Any] = [self._firsts[block] + np.arange(self._sizes[block]) for block in blocks[:_WINDOW].tolist()]
        records = np.concatenate(ranges)
        return np.random.default_rng([self._seed, epoch, lane, window]).permutation(records)


class RecordSource:
    """Random access to the rows of one set: decoded, checked, and of fixed shape.

    Args:
      data_set: what to read.
      options: how.
      copied_bytes: size of the largest set that is copied from an object store.

    Attributes:
      is_local: whether any row can be read at once, in any order.
    """

    def __init__(
        self, data_set: DataSet, options: BatchOptions, copied_bytes: int = int(_COPIED_GIGABYTES * 1e9)
    ) -> None:
        task = registry.get(data_set.task)
        self._features, self._day = task.row_features, task.day
        self._make_row = registry.RowMaker(task, options.lengths, options.bounds)
        self._options, self._set = options, data_set
        self._files, self.is_local = _opened(options, data_set, copied_bytes)
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

    def day_order(self, batch_size: int) -> "DayOrder":
        """The order by BATCH_DAYS.

        Raises:
          InputError: for a set in an object store that is not copied.
        """
        if not self.is_local:
            problem = f"{self._set} is too large to be copied, and BATCH_DAYS reads the day of each record first"
            remedy = "Raise GrainBatches.copied_gigabytes, or set BATCH_DAYS = 0."
            raise InputError(problem, path=self._options.directory, field="BATCH_DAYS", remedy=remedy)
        return DayOrder(self.days(), self._options.batch_days, batch_size, self._options.seed)

    def block_order(self, batch_size: int) -> BlockOrder:
        """The order in which few blocks are read at a time."""
        blocks = [(file, number) for file in self._files for number in range(len(file.blocks.offsets))]

        def fetch(numbers: Iterable[int]) -> None:
            for number in numbers:
                file, block = blocks[number]
                file.fetch(block)

        sizes = [size for file in self._files for size in file.sizes()]
        return BlockOrder(sizes, batch_size, self._options.seed, fetch)

    def place(self, index: int) -> str:
        """The place of a record, as "file:number", counted from 0."""
        file, number = self._locate(index)
        return f"{file.path}:{number}"

    def _locate(self, index: int) -> tuple[RecordFile, int]:
        number = bisect.bisect_right(self._ends, index)
        file = self._files[number]
        return file, index - (self._ends[number] - len(file))


def _opened(options: BatchOptions, data_set: DataSet, copied_bytes: int) -> tuple[list[RecordFile], bool]:
    """The files of a set, and whether they are on this machine.

    Raises:
      InputError: if a file cannot be read, or is to be read by block and the manifest does not say where these are.
    """
    folder = options.directory
    paths, blocks = example_paths(folder, data_set), read_blocks(folder)
    known: list[Blocks | None] = [blocks.get(f"{data_set.stream}/{os.path.basename(path)}") for path in paths]
    if not is_object(folder):
        return [RecordFile(path, places) for path, places in zip(paths, known, strict=True)], True
    sizes = list(map(size_of, paths))
    if sum(sizes) <= copied_bytes:
        copies = local_files(paths)
        copied = zip(copies, known, paths, strict=True)
        return [RecordFile(copy, places, shown=path) for copy, places, path in copied], True
    if None in known:
        problem = f"{sum(sizes) / 1e9:.0f} GB are too much to copy, and the manifest does not say where the records are"
        remedy = "Write the examples again with this version, or raise GrainBatches.copied_gigabytes."
        raise InputError(problem, path=paths[known.index(None)], remedy=remedy)
    cache = BlockCache(BLOCKS_AT_ONCE // options.process_count + _SPARE_BLOCKS)
    opened = zip(paths, known, sizes, strict=True)
    return [RecordFile(path, places, cache=cache, size=size) for path, places, size in opened], False


class DayOrder:
    """An endless order of the records of a set, in batches of the same period: reports of a week are hard negatives.

    In each epoch the calendar is cut into periods of `batch_days` days at another place, the records of a period are
    shuffled and cut into batches, and the batches are shuffled. What is left over in the periods forms batches of
    neighbouring periods. An epoch is the largest number of whole batches; each draws the records that it leaves out.
    The order depends on the arguments only.

    Args:
      days: the day of each record, int32 [N].
      batch_days: days of a period.
      batch_size: rows of a global batch, at most N.
      seed: of the shuffles.
    """

    def __init__(self, days: np.ndarray, batch_days: int, batch_size: int, seed: int) -> None:
        self._days, self._batch_days, self._batch_size, self._seed = days, batch_days, batch_size, seed
        self._epoch = functools.lru_cache(maxsize=2)(self.epoch)  # readers are at most one epoch apart

    def __len__(self) -> int:
        """Records of an epoch."""
        return len(self._days) // self._batch_size * self._batch_size

    def __getitem__(self, number: int) -> int:
        """The record at this place of the endless order."""
        epoch, place = divmod(number, len(self))
        return int(self._epoch(epoch)[place])

    def epoch(self, number: int) -> np.ndarray:
        """The records of one epoch in order, int64 [len(self)]."""
        rng = np.random.default_rng([self._seed, number])
        records = rng.permutation(len(self._days))[: len(self)]
        periods = (self._days[records] + rng.integers(self._batch_days)) // self._batch_days
        records = records[np.argsort(periods, kind="stable")]
        periods = np.sort(periods)
        starts = np.searchsorted(periods, periods)
        ends = np.searchsorted(periods, periods, side="right")
        whole = (ends - starts) // self._batch_size * self._batch_size
        is_whole = np.arange(len(records)) - starts < whole
        batches = np.concatenate([records[is_whole], records[~is_whole]]).reshape(-1, self._batch_size)
        return batches[rng.permutation(len(batches))].ravel()
