"""Rows that one phase sends to the shards of a later one, grouped by Beam's GroupByKey.

A sender keeps its rows in files of its own shard, so that a resumed job finds them. Beam gets one element for each
sender and receiver, with the bytes of all its rows, because a row as a Python object takes ten times its bytes.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..formats import files
from .arrays import Array, read_array, write_array
from .shards import Phase, Shard

# A block of rows: number of the sender, number of its file, the bytes.
Block = tuple[int, int, bytes]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows that a phase sends to the shards of a later one.

    Attributes:
      stream: its name in the workspace, starting with "_".
      dtype: of the rows, without objects.
      receivers: the receiver of each row: rows ``[N]`` to int ``[N]``. Workers get it, so it must be picklable.
    """

    stream: str
    dtype: np.dtype[Any]
    receivers: Callable[[Array], Array]


@dataclasses.dataclass(frozen=True)
class Received:
    """What a shard gets.

    Attributes:
      payload: of the shard.
      rows: of each stream, in the order of the senders and of the rows of a sender.
    """

    payload: Any
    rows: Mapping[str, Array]


def write_rows(shard: Shard, stream: str, rows: Array, chunk: int = 0) -> None:
    """Writes rows that a shard sends, see :class:`Rows`.

    Args:
      shard: the sender.
      stream: see :class:`Rows`.
      rows: ``[N]``; may be none.
      chunk: number of this call, if a shard writes in several calls; a reader holds one chunk at a time.
    """
    write_array(shard.path(stream, f"{chunk:05d}.npy"), rows)


def blocks_of(sender: int, phase: Phase, rows: Rows) -> Iterator[tuple[int, Block]]:
    """Yields (receiver, block) for the rows that one shard has written.

    Args:
      sender: number of the shard.
      phase: of the shard.
      rows: what it has written.
    """
    prefix = f"{phase.workspace}/{rows.stream}/part-{sender:05d}-of-{phase.shard_count:05d}"
    for chunk, path in enumerate(sorted(files.list_files(f"{prefix}.*.npy"))):
        values = read_array(path)
        receivers = rows.receivers(values)
        order = np.argsort(receivers, kind="stable")  # rows for one receiver keep their order
        ordered = receivers[order].astype(np.int64)
        bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
        for start, end in itertools.pairwise(bounds.tolist()):
            yield int(ordered[start]), (sender, chunk, values[order[start:end]].tobytes())


def received(grouped: tuple[int, Mapping[str, Iterable[Any]]], streams: Iterable[Rows]) -> tuple[int, Received]:
    """Returns (index, what the shard gets) from the groups of a CoGroupByKey.

    Args:
      grouped: index of the receiver, and its groups: one payload under "", and blocks by stream, in any order.
      streams: of the receiver.
    """
    index, groups = grouped
    rows = {
        one.stream: np.frombuffer(b"".join(raw for *_, raw in sorted(groups[one.stream])), one.dtype) for one in streams
    }
    (payload,) = groups[""]
    return index, Received(payload, rows)
