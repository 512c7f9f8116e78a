"""Rows that the shards of one phase send to the shards of a later one, through files.

A GroupByKey would do, but the local runner keeps what passes it in memory, and a row as a Python object weighs ten times its bytes. Here each
sender writes its rows sorted by receiver, with the bounds of each receiver's part beside them, and a receiver reads its parts only: memory is
that of one shard, on every runner.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ..formats import files
from .arrays import Array, write_array
from .shards import Shard

_ROWS, _BOUNDS = "rows.npy", "bounds.npy"


def send(shard: Shard, stream: str, rows: Array, receivers: Array, receiver_count: int, chunk: int = 0) -> None:
    """Writes rows for others to receive.

    Args:
      shard: the sender.
      stream: name of the exchange within the job, starting with "_".
      rows: ``[N]``, any dtype without objects; the rows for one receiver stay in their order.
      receivers: int ``[N]``, the receiver of each row, below ``receiver_count``.
      receiver_count: number of receivers.
      chunk: number of this call, where a shard sends piece by piece.
    """
    order = np.argsort(receivers, kind="stable")
    bounds = np.searchsorted(receivers[order], np.arange(receiver_count + 1))
    # The bounds come last: rows without them were never sent.
    for values, extension in ((rows[order], _ROWS), (bounds, _BOUNDS)):
        write_array(shard.path(stream, f"{chunk:05d}.{extension}"), values)


def receive(workspace: str, stream: str, receiver: int) -> Array:
    """All rows that were sent to a receiver, in the order of the senders and their chunks; at least one must have sent, be it nothing."""
    return np.concatenate(list(_parts(workspace, stream, receiver)))


def _parts(workspace: str, stream: str, receiver: int) -> Iterator[Array]:
    for path in files.list_files(f"{workspace}/{stream}/part-*.{_BOUNDS}"):
        with files.open_read(path) as source:
            _seek_items(source, receiver)
            start, end = np.frombuffer(source.read(16), np.int64)
        with files.open_read(path.removesuffix(_BOUNDS) + _ROWS) as source:
            dtype = _seek_items(source, start)
            yield np.frombuffer(source.read((end - start) * dtype.itemsize), dtype)


def _seek_items(source: BinaryIO, item: int) -> np.dtype[Any]:
    """Moves to an item of a one-dimensional npy file; returns the type of its items."""
    np.lib.format.read_magic(source)
    _, _, dtype = np.lib.format.read_array_header_1_0(source)
    source.seek(int(source.tell() + item * dtype.itemsize))
    return dtype
