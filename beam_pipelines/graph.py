"""The graph of a job: phases in one Beam pipeline, where each phase starts when the one before it is complete."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from ..formats import files
from .shards import Phase, ProcessShards, ShardFunction
from .shuffle import Block, Rows, blocks_of, received

# Called with (phase, complete shards or other parts, number of parts, what else grows).
Progress = Callable[[str, int, int, str], None]


@dataclasses.dataclass(frozen=True)
class Parts:
    """What progress counts in a phase whose shards take long.

    Attributes:
      pattern: matches the files that shards write one after another.
      total: how many there will be.
      growing: matches files that grow in between; their size is shown next to the count.
    """

    pattern: str
    total: int
    growing: str = ""

    def progress(self) -> tuple[int, int, str]:
        """The number of complete parts, the number of all parts, and the size of what grows."""
        grown = f"{files.total_bytes(self.growing) / 1e6:,.1f} MB" if self.growing else ""
        return len(files.list_files(self.pattern)), self.total, grown


class Graph:
    """Phases that run as one Beam pipeline, in the order in which they are added.

    A phase reads files that all shards of an earlier phase write, so it must not start before. Beam starts a transform
    when its side inputs are complete: each phase has the complete shards of the one before it as a side input.

    Attributes:
      pipeline: to which the phases are attached.
      phases: those that run, and what progress counts in them.
      complete: phases of an earlier run, which are not attached.
    """

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self.pipeline = pipeline
        self.phases: list[tuple[Phase, Parts]] = []
        self.complete: list[tuple[Phase, Parts]] = []
        self._last: beam.PCollection | None = None
        self._complete_shards: dict[str, beam.PCollection] = {}

    def start(self, label: str, values: Iterable[Any]) -> beam.PCollection:
        """Returns the values, distributed over the workers after all phases that have been added are complete."""
        # Create distributes its values by a reshuffle.
        created = self.pipeline | f"{label}/Create" >> beam.Create(list(values))
        if self._last is None:
            return created
        return created | f"{label}/Wait" >> beam.Map(_first, beam.pvalue.AsIter(self._last))

    def add(self, phase: Phase, attach: Callable[[], beam.PCollection | None], parts: Parts | None = None) -> None:
        """Adds a phase, unless an earlier run has completed it.

        Args:
          phase: of the job.
          attach: attaches its transforms to values of :meth:`start`; returns what its `ProcessShards` returns, or
            ``None`` if no other phase follows.
          parts: what progress counts; the shards by default.
        """
        counted = parts or Parts(phase.reports, phase.shard_count)
        if self.is_complete(phase):
            self.complete.append((phase, counted))
            return
        self._last = attach()
        if self._last is not None:
            self._complete_shards[phase.name] = self._last
        self.phases.append((phase, counted))

    def map_shards(
        self, phase: Phase, function: ShardFunction, payloads: Sequence[Any], parts: Parts | None = None
    ) -> None:
        """Adds a phase that runs ``function(shard, payloads[shard.index])`` for each shard."""
        self.add(phase, lambda: self.start(phase.name, enumerate(payloads)) | ProcessShards(function, phase), parts)

    def map_rows(
        self,
        phase: Phase,
        function: ShardFunction,
        payloads: Sequence[Any],
        streams: Sequence[tuple[Phase, Rows]],
        parts: Parts | None = None,
    ) -> None:
        """Adds a phase whose shards get rows of earlier phases.

        Runs ``function(shard, received)`` for each shard, where ``received`` is a :class:`.shuffle.Received`.

        Args:
          phase: to add.
          function: of a shard.
          payloads: one for each shard.
          streams: the phases that send, and what.
          parts: what progress counts; the shards by default.
        """
        self.add(phase, lambda: self._received(phase, payloads, streams) | ProcessShards(function, phase), parts)

    def _received(
        self, phase: Phase, payloads: Sequence[Any], streams: Sequence[tuple[Phase, Rows]]
    ) -> beam.PCollection:
        """Returns (index, what the shard gets) once all phases that have been added are complete."""
        created = beam.Create(list(enumerate(payloads)), reshuffle=False)
        grouped = {"": self.pipeline | f"{phase.name}/Create" >> created}
        for sender, rows in streams:
            label = f"{phase.name}/{rows.stream}"
            senders = self._complete_shards.get(sender.name)
            if senders is None:  # an earlier graph or run has completed the phase
                senders = self.start(label, range(sender.shard_count))
            with_bytes = not isinstance(self.pipeline.runner, FnApiRunner)
            read = beam.FlatMap(blocks_of, sender, rows, with_bytes=with_bytes).with_output_types(tuple[int, Block])
            grouped[rows.stream] = senders | f"{label}/Read" >> read
        groups = grouped | f"{phase.name}/Group" >> beam.CoGroupByKey()
        # The groups are complete when their senders are. Other phases are waited for before rows are read.
        if self._last is not None and all(self._complete_shards.get(one.name) is not self._last for one, _ in streams):
            groups = groups | f"{phase.name}/Wait" >> beam.Map(_first, beam.pvalue.AsIter(self._last))
        return groups | f"{phase.name}/Rows" >> beam.Map(received, streams)

    def progress(self) -> list[tuple[str, int, int, str]]:
        """The state of every phase that has started: name, complete parts, all parts, what else grows."""
        states = []
        for phase, parts in self.phases:
            done, total, grown = parts.progress()
            states.append((phase.name, done, total, grown))
            if not self.is_complete(phase):
                break
        return states

    @contextlib.contextmanager
    def watched(self, report: Progress) -> Iterator[None]:
        """Reports progress by the parts that appear, from a thread: the runner says nothing until it is done."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(0.5):
                for state in self.progress():
                    report(*state)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()

    def is_complete(self, phase: Phase) -> bool:
        """Whether all shards of a phase have been written."""
        return len(files.list_files(phase.reports)) >= phase.shard_count


def _first(value: Any, _complete: Iterable[int]) -> Any:
    return value
