"""Shards, the unit of work of a job: written once, counted, and skipped if they are complete.

A job's pipelines carry small elements (ids, dates, signatures, vectors). Bodies stay in Parquet shards, which the
shard functions read and write. A shard function may run twice (retries, speculative execution, a killed job), so it
writes to temporary names. Its report is written last and marks the shard as complete. It has the counts of the shard:
in = out + rejected + failed at every step, or the job fails.
"""

import contextlib
import ctypes
import dataclasses
import functools
import glob
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.metrics import Metrics

from ..formats import files, parquet
from ..formats.manifest import HELD_OUT, DataSet
from ..formats.records import DeadLetter, Failure, Rejection
from ..formats.tfrecords import TFRecordShardWriter
from ..tasks.one_thread import ONE_BLAS_THREAD
from ..tasks.registry import Task
from .arrays import Array, Ids, read_array, write_array

_LOOK_SECONDS: Final = 1.0
_deadlines: Final = dict[int, float]()  # by thread
_lock: Final = threading.Lock()


class RecordTimeoutError(Exception):
    """The work on a record took too long."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends what is inside about a second after a time; one limit in a thread at a time.

    It ends between two steps of Python: a call of a C library is not cut short.

    Raises:
      RecordTimeoutError: in this thread.
    """
    _watch(os.getpid())
    thread = threading.get_ident()
    with _lock:
        _deadlines[thread] = time.monotonic() + seconds
    try:
        yield
    finally:
        with _lock:
            is_ended = _deadlines.pop(thread, None) is None
        if is_ended:
            _raise_in(thread, None)  # it may wait to be raised


@functools.cache
def _watch(_process: int) -> None:
    """Starts the thread that looks at the deadlines; a process that was forked has none."""

    def watch() -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            _look(time.monotonic())

    threading.Thread(target=watch, name="newsembed time limits", daemon=True).start()


def _look(now: float) -> None:
    with _lock:
        for thread in [thread for thread, end in _deadlines.items() if now >= end]:
            del _deadlines[thread]
            _raise_in(thread, RecordTimeoutError)


def _raise_in(thread: int, error: type[Exception] | None) -> None:
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


R = TypeVar("R")
NAMESPACE: Final = "newsembed"  # of Beam's metrics
# Prefixes of tallies: the examples of each set of TFRecords.
TRAINING_EXAMPLES: Final = "examples/"
HELD_OUT_EXAMPLES: Final = "held_out examples/"
RECORD_SECONDS: Final = 60.0  # of work on a record; most take a thousandth of a second
REPORTS: Final = "_reports"  # in a workspace: a folder for each phase, with a report for each complete shard
_SAMPLE_CHARACTERS: Final = 500


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counts of the records of a shard, a phase or a job.

    Attributes:
      read: number of records read.
      written: number of records passed on.
      rejected: number of rejected records by :class:`~newsembed.formats.records.Rejection`.
      failed: number of failed records by :class:`~newsembed.formats.records.Failure`.
      tallies: further named numbers (neighbors found, tokens packed, …) that are not part of the balance.
    """

    read: int = 0
    written: int = 0
    rejected: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tallies: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def balance(self) -> int:
        """Number of records that are not accounted for; 0 unless there is a bug."""
        return self.read - self.written - sum(self.rejected.values()) - sum(self.failed.values())

    def tallies_under(self, prefix: str) -> dict[str, int]:
        """Returns the tallies whose names begin with a prefix, without it, sorted by name."""
        return {name.removeprefix(prefix): n for name, n in sorted(self.tallies.items()) if name.startswith(prefix)}

    def totals(self) -> dict[str, int]:
        """The numbers of the balance, by name."""
        dropped = {"rejected": sum(self.rejected.values()), "failed": sum(self.failed.values())}
        return {"in": self.read, "out": self.written, **dropped}

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as they are in a report or a manifest."""
        named = {"rejected": self.rejected, "failed": self.failed, "tallies": self.tallies}
        return {"in": self.read, "out": self.written} | {name: dict(sorted(one.items())) for name, one in named.items()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Counts":
        """Returns the counts that :meth:`to_json` wrote."""
        return Counts(value["in"], value["out"], value["rejected"], value["failed"], value["tallies"])


def add_counts(parts: Iterable[Counts]) -> Counts:
    """Returns the sum of the counts of shards that worked in parallel."""
    read, written = 0, 0
    named: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for part in parts:
        read, written = read + part.read, written + part.written
        for total, counts in zip(named, (part.rejected, part.failed, part.tallies), strict=True):
            total.update(counts)
    return Counts(read, written, *map(dict, named))


def chain_counts(phases: Sequence[Counts]) -> Counts:
    """Returns the counts of phases that processed the same records in sequence: in of the first, out of the last."""
    if not phases:
        return Counts()
    return dataclasses.replace(add_counts(phases), read=phases[0].read, written=phases[-1].written)


@dataclasses.dataclass(frozen=True)
class Phase:
    """One pipeline of a job.

    Attributes:
      workspace: the job's temporary folder.
      name: unique within the job.
      shard_count: number of shards this phase writes.
    """

    workspace: str
    name: str
    shard_count: int

    @property
    def reports(self) -> str:
        """Glob pattern of the reports of all shards."""
        return f"{glob.escape(self.workspace)}/{REPORTS}/{self.name}/*.json"

    def is_complete(self) -> bool:
        """Whether all shards have been written."""
        return len(files.list_files(self.reports)) >= self.shard_count

    def report_path(self, index: int) -> str:
        """Returns the path of the report of one shard."""
        return f"{self.workspace}/{REPORTS}/{self.name}/{index:05d}.json"


class Shard:
    """The outputs and counters of one shard. Use it as a context manager.

    Attributes:
      index: number of this shard within its phase.
      count: number of shards of the phase.
      workspace: the job's temporary folder, for reading streams of earlier phases.
    """

    def __init__(self, phase: Phase, index: int) -> None:
        self.index, self.count = index, phase.shard_count
        self.workspace = phase.workspace
        self._phase = phase
        self._stack = contextlib.ExitStack()
        self._balance: Counter[str] = Counter()
        self._named: dict[str, Counter[str]] = {"rejected": Counter(), "failed": Counter(), "tallies": Counter()}
        self._dead_letters: parquet.ParquetShardWriter[DeadLetter] | None = None
        self._writers: list[parquet.ParquetShardWriter[Any] | TFRecordShardWriter] = []
        self._examples: dict[str, TFRecordShardWriter] = {}

    def path(self, stream: str, extension: str) -> str:
        """Returns the path of this shard in a stream; streams whose name starts with "_" are not published."""
        return f"{self.workspace}/{stream}/part-{self.index:05d}-of-{self.count:05d}.{extension}"

    def write_array(self, stream: str, values: Array) -> None:
        """Writes an array as this shard of a stream."""
        write_array(self.path(stream, "npy"), values)

    def arrays(self, stream: str) -> Iterator[Array]:
        """Yields the arrays that all shards of an earlier phase wrote, in their order."""
        return map(read_array, files.list_files(f"{stream}/part-*.npy", self.workspace))

    def read_stream(self, stream: str, record_type: type[R]) -> Iterator[R]:
        """Yields the records of a stream of this job that an earlier phase wrote."""
        return parquet.read_stream(f"{self.workspace}/{stream}", record_type)

    def records(self, stream: str, record_type: type[R]) -> parquet.ParquetShardWriter[R]:
        """Opens this shard of a Parquet stream; it is closed and moved to its name when the shard function returns."""
        writer = parquet.ParquetShardWriter(self.path(stream, "parquet"), record_type)
        self._writers.append(writer)
        return self._stack.enter_context(writer)

    def write_example(self, task: Task, language: str, values: Mapping[str, Any], *, held_out: bool = False) -> None:
        """Writes one record of a task to this shard of its TFRecords, or of those that are held out, and tallies it."""
        data_set = DataSet(task.name, language)
        stream = f"{HELD_OUT}/{data_set.stream}" if held_out else data_set.stream
        if stream not in self._examples:
            writer = TFRecordShardWriter(self.path(stream, "tfrecord"))
            self._writers.append(writer)
            self._examples[stream] = self._stack.enter_context(writer)
        self._examples[stream].write(values, task.features)
        self.tally(f"{HELD_OUT_EXAMPLES if held_out else TRAINING_EXAMPLES}{data_set}")

    def read(self, count: int = 1) -> None:
        """Counts records that were read."""
        self._balance["read"] += count

    def written(self, count: int = 1) -> None:
        """Counts records that were passed on."""
        self._balance["written"] += count

    def tally(self, name: str, count: int = 1) -> None:
        """Adds to a named number that is not part of the balance."""
        self._named["tallies"][name] += count

    def limited(self, key: str, function: Callable[..., R], *args: Any) -> R | None:
        """The result of the work on a record; where it takes a minute, None, and the record has failed."""
        try:
            with time_limit(RECORD_SECONDS):
                return function(*args)
        except RecordTimeoutError:
            self.fail(key, Failure.TIMEOUT, f"more than {RECORD_SECONDS:g} s")
            return None

    def reject(self, key: str, reason: Rejection, detail: str = "", sample: str = "") -> None:
        """Counts a well-formed record that a rule rejected, and keeps it as a dead letter."""
        self._drop("rejected", key, reason, detail, sample)

    def fail(self, key: str, reason: Failure, detail: str = "", sample: str = "") -> None:
        """Counts a record that could not be processed, and keeps it as a dead letter."""
        self._drop("failed", key, reason, detail, sample)

    def _drop(self, outcome: str, key: str, reason: Rejection | Failure, detail: str, sample: str) -> None:
        self._named[outcome][reason.value] += 1
        if self._dead_letters is None:
            self._dead_letters = self.records(f"dead_letters/{self._phase.name}", DeadLetter)
        self._dead_letters.write(DeadLetter(key, outcome, reason.value, detail, sample[:_SAMPLE_CHARACTERS]))

    def counts(self) -> Counts:
        """Returns the counts so far."""
        return Counts(self._balance["read"], self._balance["written"], **self._named)

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: PYI036 - they are passed on
        self._stack.__exit__(*error)
        if error[0] is None:
            counts = self.counts()
            if counts.balance:
                what = f"{counts.balance} records unaccounted for: {counts.to_json()}"
                raise RuntimeError(f"phase {self._phase.name}, shard {self.index}: {what}")
            names = {writer: writer.path[len(self.workspace) + 1 :] for writer in self._writers}
            digests = {name: writer.sha256 for writer, name in names.items()}
            blocks = {names[writer]: [writer.rows, *writer.blocks.offsets] for writer in self._examples.values()}
            report = counts.to_json() | {"sha256": digests, "blocks": blocks}
            files.write_json(self._phase.report_path(self.index), report)


ShardFunction = Callable[[Shard, Any], None]


def _process_shard(element: tuple[int, Any], function: ShardFunction, phase: Phase) -> int:
    index, payload = element
    report = phase.report_path(index)
    if files.exists(report):
        counts = Counts.from_json(files.read_json(report))
    else:
        with ONE_BLAS_THREAD, Shard(phase, index) as shard:  # the same bits whatever the number of cores
            function(shard, payload)
        counts = shard.counts()
    # What an engine shows while the job runs. A complete shard is counted by its report, so a bundle that runs again
    # counts neither less nor more.
    for name, value in counts.totals().items():
        Metrics.counter(NAMESPACE, f"{phase.name}/{name}").inc(value)
    return index


def process_shards(function: ShardFunction, phase: Phase) -> beam.PTransform:
    """Runs ``function(shard, payload)`` for every ``(index, payload)`` whose shard is not complete.

    Returns:
      A transform whose values are the indices of the complete shards.
    """
    return f"Process({phase.name})" >> beam.Map(_process_shard, function, phase)


@beam.ptransform_fn
def group_by_shard(values: beam.PCollection, shard_count: int) -> beam.PCollection:
    """Groups (shard index, value) into (shard index, sorted values), with one group for every index, even if empty.

    Values are sorted so that later steps do not depend on bundling. They must be comparable: tuples of ids and numbers.

    Args:
      values: the pairs.
      shard_count: number of shards; indices are below it.
    """
    indices = [(index, None) for index in range(shard_count)]
    every = values.pipeline | "EveryShard" >> beam.Create(indices, reshuffle=False)
    groups = {"values": values, "every": every} | beam.CoGroupByKey()
    return groups | beam.MapTuple(lambda index, group: (index, sorted(group["values"])))


def shard_of(key: str, shard_count: int) -> int:
    """Returns the shard of a document id (or any hexadecimal key): its top 32 bits modulo the number of shards."""
    return int(key[:8], 16) % shard_count


def shard_numbers(ids: Ids, shard_count: int) -> npt.NDArray[np.uint64]:
    """Returns `shard_of` for many document ids, given as numbers: uint64 ``[N]``."""
    return (ids >> np.uint64(32)) % np.uint64(shard_count)


def available_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
