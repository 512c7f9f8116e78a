"""The graph of a job: phases in one Beam pipeline, where each phase starts when the one before it is complete.

A phase may send rows to the shards of a later one, grouped by Beam's GroupByKey. A sender writes its rows to files of
its own shard, sorted by receiver, so that a resumed job finds them. Beam gets one element for each pair of a sender and
a receiver. On a cluster the element holds the bytes of the rows. The local runner keeps the elements of a whole stage
in memory, with several copies; there the element says which part of which file has the rows, and the receiver reads it.
"""

import dataclasses
import glob
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from ..formats import files
from .arrays import Array, read_array, write_array
from .shards import Phase, Shard

# Called with (phase, complete shards or other parts, number of parts, what else grows).
Progress = Callable[[str, int, int, str], None]

# Rows of one sender for one receiver: number of the sender, of its file, first row, end, and the rows as an npy
# file, b"" if they are to be read from the file of the sender.
Block = tuple[int, int, int, int, bytes]
_ROWS, _BOUNDS = "rows.npy", "bounds.npy"


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows that a phase sends to the shards of a later one.

    Attributes:
      stream: its name in the workspace, starting with "_".
      dtype: of the rows if there are none; else that of the files counts.
    """

    stream: str
    dtype: np.dtype[Any]


@dataclasses.dataclass(frozen=True)
class Received:
    """What a shard gets.

    Attributes:
      payload: of the shard.
      rows: of each stream, in the order of the senders and of the rows of a sender.
    """

    payload: Any
    rows: Mapping[str, Array]


def send(shard: Shard, stream: str, rows: Array, receivers: Array, chunk: int = 0) -> None:
    """Writes rows that a shard sends.

    Args:
      shard: the sender.
      stream: see :class:`Rows`.
      rows: ``[N]``, any dtype without objects; rows for one receiver keep their order.
      receivers: int ``[N]``, the receiver of each row.
      chunk: number of this call, if a shard sends in several calls.
    """
    order = np.argsort(receivers, kind="stable")
    ordered = np.asarray(receivers)[order].astype(np.int64)
    edges = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    bounds = [(int(ordered[start]), start, end) for start, end in itertools.pairwise(edges.tolist())]
    # The bounds are written last: rows without bounds do not count as sent.
    write_array(shard.path(stream, f"{chunk:05d}.{_ROWS}"), rows[order])
    write_array(shard.path(stream, f"{chunk:05d}.{_BOUNDS}"), np.array(bounds, np.int64).reshape(-1, 3))


def blocks_of(sender: int, phase: Phase, rows: Rows, *, with_bytes: bool) -> Iterator[tuple[int, Block]]:
    """Yields (receiver, block) for the rows that one shard has sent.

    Args:
      sender: number of the shard.
      phase: of the shard.
      rows: what it has sent.
      with_bytes: whether a block holds the bytes of the rows.
    """
    prefix = _prefix(phase, rows, sender)
    for path in sorted(files.list_files(f"{glob.escape(prefix)}.*.{_BOUNDS}")):
        chunk = int(path.removesuffix(f".{_BOUNDS}").rpartition(".")[2])
        values = read_array(f"{prefix}.{chunk:05d}.{_ROWS}") if with_bytes else None
        for receiver, start, end in read_array(path).tolist():
            raw = b"" if values is None else _packed(values[start:end])
            yield receiver, (sender, chunk, start, end, raw)


def received(
    grouped: tuple[int, Mapping[str, Iterable[Any]]], streams: Sequence[tuple[Phase, Rows]]
) -> tuple[int, Received]:
    """Returns (index, what the shard gets) from the groups of a CoGroupByKey.

    Args:
      grouped: index of the receiver, and its groups: one payload under "", and blocks by stream, in any order.
      streams: of the receiver, each with the phase that sends it.
    """
    index, groups = grouped
    rows = {}
    for phase, one in streams:
        parts = [_rows_of(block, phase, one) for block in sorted(groups[one.stream])]
        rows[one.stream] = np.concatenate(parts) if parts else np.zeros(0, one.dtype)
    (payload,) = groups[""]
    return index, Received(payload, rows)


def _rows_of(block: Block, phase: Phase, rows: Rows) -> Array:
    sender, chunk, start, end, raw = block
    if raw:
        return np.asarray(np.load(io.BytesIO(raw), allow_pickle=False))
    with files.open_read(f"{_prefix(phase, rows, sender)}.{chunk:05d}.{_ROWS}") as source:
        dtype = _seek_items(source, start)
        return np.frombuffer(source.read((end - start) * dtype.itemsize), dtype)


def _packed(values: Array) -> bytes:
    sink = io.BytesIO()
    np.save(sink, values)
    return sink.getvalue()


def _prefix(phase: Phase, rows: Rows, sender: int) -> str:
    return f"{phase.workspace}/{rows.stream}/part-{sender:05d}-of-{phase.shard_count:05d}"


def _seek_items(source: BinaryIO, item: int) -> np.dtype[Any]:
    """Seeks to an item of a one-dimensional npy file and returns the dtype of its items."""
    np.lib.format.read_magic(source)
    _, _, dtype = np.lib.format.read_array_header_1_0(source)
    source.seek(int(source.tell() + item * dtype.itemsize))
    return dtype


class Parts(NamedTuple):
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
      phases: all phases, and what progress counts in them.
      waiting: those that run; the others are complete since an earlier run, and are not attached.
    """

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self.pipeline = pipeline
        self.phases: list[tuple[Phase, Parts]] = []
        self.waiting: list[tuple[Phase, Parts]] = []
        self._last: beam.PCollection | None = None
        self._complete_shards: dict[str, beam.PCollection] = {}

    def start(self, label: str, values: Iterable[Any]) -> beam.PCollection:
        """Returns the values, distributed over the workers after all phases that have been added are complete."""
        # Create distributes its values by a reshuffle.
        created = self.pipeline | f"{label}/Create" >> beam.Create(list(values))
        if self._last is None:
            return created
        return created | f"{label}/Wait" >> beam.Map(_first, beam.pvalue.AsIter(self._last))

    def add(self, phase: Phase, attach: Callable[[], beam.PCollection], parts: Parts | None = None) -> None:
        """Adds a phase, unless an earlier run has completed it.

        Args:
          phase: of the job.
          attach: attaches its transforms to values of :meth:`start` or :meth:`gathered`; returns what its
            `process_shards` returns.
          parts: what progress counts; the shards by default.
        """
        self.phases.append((phase, parts or Parts(phase.reports, phase.shard_count)))
        if not phase.is_complete():
            self._last = self._complete_shards[phase.name] = attach()
            self.waiting.append(self.phases[-1])

    def gathered(
        self, phase: Phase, payloads: Sequence[Any], streams: Sequence[tuple[Phase, Rows]]
    ) -> beam.PCollection:
        """Returns (index, a :class:`Received`) for each shard, once all phases that have been added are complete.

        Args:
          phase: of the shards.
          payloads: one for each shard.
          streams: the phases that send, and what.
        """
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
        for phase, parts in self.waiting:
            done, total, grown = parts.progress()
            states.append((phase.name, done, total, grown))
            if not phase.is_complete():
                break
        return states


def _first(value: Any, _complete: Iterable[int]) -> Any:
    return value
