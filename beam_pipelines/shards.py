"""Shards, the unit of work of a job: written once, counted, and skipped if they are complete.

A job's pipelines carry small elements (ids, dates, signatures, vectors). Bodies stay in Parquet shards, which the
shard functions read and write. A shard function may run twice (retries, speculative execution, a killed job), so it
writes to temporary names. Its report is written last and marks the shard as complete.
"""

import contextlib
import dataclasses
import os
import types
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from ..formats import files
from ..formats.parquet import ParquetShardWriter
from ..formats.records import DeadLetter, Failure, Rejection
from ..formats.tfrecords.writer import TFRecordShardWriter
from ..tasks.one_thread import ONE_BLAS_THREAD
from . import metrics
from .accounting import Counts
from .arrays import Ids
from .output_folder import REPORTS

R = TypeVar("R")
_SAMPLE_CHARACTERS = 500


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
        return f"{self.workspace}/{REPORTS}/{self.name}/*.json"

    def report_path(self, index: int) -> str:
        """Returns the path of the report of one shard."""
        return f"{self.workspace}/{REPORTS}/{self.name}/{index:05d}.json"


class Shard:
    """The outputs and counters of one shard. Use it as a context manager.

    Attributes:
      index: number of this shard within its phase.
      workspace: the job's temporary folder, for reading streams of earlier phases.
    """

    def __init__(self, phase: Phase, index: int) -> None:
        self.index = index
        self.workspace = phase.workspace
        self._phase = phase
        self._stack = contextlib.ExitStack()
        self._read = self._written = 0
        self._rejected: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._tallies: Counter[str] = Counter()
        self._dead_letters: ParquetShardWriter[DeadLetter] | None = None
        self._writers: list[ParquetShardWriter[Any] | TFRecordShardWriter] = []

    def path(self, stream: str, extension: str) -> str:
        """Returns the path of this shard in a stream; streams whose name starts with "_" are not published."""
        return f"{self.workspace}/{stream}/part-{self.index:05d}-of-{self._phase.shard_count:05d}.{extension}"

    def records(self, stream: str, record_type: type[R]) -> ParquetShardWriter[R]:
        """Opens this shard of a Parquet stream; it is closed and moved to its name when the shard function returns."""
        writer = ParquetShardWriter(self.path(stream, "parquet"), record_type)
        self._writers.append(writer)
        return self._stack.enter_context(writer)

    def examples(self, stream: str) -> TFRecordShardWriter:
        """Opens this shard of a TFRecord stream; it is closed and moved to its name when the shard function returns."""
        writer = TFRecordShardWriter(self.path(stream, "tfrecord"))
        self._writers.append(writer)
        return self._stack.enter_context(writer)

    def read(self, count: int = 1) -> None:
        """Counts records that were read."""
        self._read += count

    def written(self, count: int = 1) -> None:
        """Counts records that were passed on."""
        self._written += count

    def tally(self, name: str, count: int = 1) -> None:
        """Adds to a named number that is not part of the balance."""
        self._tallies[name] += count

    def reject(self, key: str, reason: Rejection, detail: str = "", sample: str = "") -> None:
        """Counts a well-formed record that a rule rejected, and keeps it as a dead letter."""
        self._rejected[reason.value] += 1
        self._write_dead_letter(DeadLetter(key, "rejected", reason.value, detail, sample[:_SAMPLE_CHARACTERS]))

    def fail(self, key: str, reason: Failure, detail: str = "", sample: str = "") -> None:
        """Counts a record that could not be processed, and keeps it as a dead letter."""
        self._failed[reason.value] += 1
        self._write_dead_letter(DeadLetter(key, "failed", reason.value, detail, sample[:_SAMPLE_CHARACTERS]))

    def _write_dead_letter(self, letter: DeadLetter) -> None:
        if self._dead_letters is None:
            self._dead_letters = self.records(f"dead_letters/{self._phase.name}", DeadLetter)
        self._dead_letters.write(letter)

    def counts(self) -> Counts:
        """Returns the counts so far."""
        return Counts(self._read, self._written, dict(self._rejected), dict(self._failed), dict(self._tallies))

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._stack.__exit__(error_type, error, trace)
        if error_type is None:
            counts = self.counts()
            if counts.balance:
                raise RuntimeError(
                    f"phase {self._phase.name}, shard {self.index}: "
                    f"{counts.balance} records unaccounted for: {counts.to_json()}"
                )
            digests = {writer.path[len(self.workspace) + 1 :]: writer.sha256 for writer in self._writers}
            files.write_json(self._phase.report_path(self.index), counts.to_json() | {"sha256": digests})


ShardFunction = Callable[[Shard, Any], None]


class _ShardDoFn(beam.DoFn):
    def __init__(self, function: ShardFunction, phase: Phase) -> None:
        self._function = function
        self._phase = phase

    def process(self, element: tuple[int, Any]) -> Iterable[int]:
        index, payload = element
        report = self._phase.report_path(index)
        if files.exists(report):
            counts = Counts.from_json(files.read_json(report))
        else:
            with ONE_BLAS_THREAD, Shard(self._phase, index) as shard:  # the same bits whatever the number of cores
                self._function(shard, payload)
            counts = shard.counts()
        metrics.count(self._phase.name, counts)
        yield index


@dataclasses.dataclass
class ProcessShards(beam.PTransform):
    """Runs ``function(shard, payload)`` for every ``(index, payload)`` whose shard is not complete."""

    function: ShardFunction
    phase: Phase

    def __post_init__(self) -> None:
        super().__init__(label=f"Process({self.phase.name})")

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        """Applies the transform to ``(index, payload)`` pairs; returns the indices of the complete shards."""
        return pcoll | beam.ParDo(_ShardDoFn(self.function, self.phase))


@dataclasses.dataclass
class GroupByShard(beam.PTransform):
    """Groups (shard index, value) into (shard index, sorted values), with one group for every index, even if empty.

    Values are sorted so that later steps do not depend on bundling. They must be comparable: tuples of ids and numbers.

    Attributes:
      shard_count: number of shards; indices are below it.
    """

    shard_count: int

    def __post_init__(self) -> None:
        super().__init__(label="GroupByShard")

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        """Applies the transform to ``(index, value)`` pairs."""
        every = pcoll.pipeline | "EveryShard" >> beam.Create(
            [(index, None) for index in range(self.shard_count)], reshuffle=False
        )
        return (
            {"values": pcoll, "every": every}
            | beam.CoGroupByKey()
            | beam.MapTuple(lambda index, groups: (index, sorted(groups["values"])))
        )


def shard_of(key: str, shard_count: int) -> int:
    """Returns the shard of a document id (or any hexadecimal key): its top 32 bits modulo the number of shards."""
    return int(key[:8], 16) % shard_count


def shard_numbers(ids: Ids, shard_count: int) -> npt.NDArray[np.uint64]:
    """Returns `shard_of` for many document ids, given as numbers: uint64 ``[N]``."""
    return (ids >> np.uint64(32)) % np.uint64(shard_count)


def available_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
