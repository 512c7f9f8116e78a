"""Exchange of sentence embeddings between the shards that make them and the tasks that compare them, through files.

Other rows pass through a GroupByKey, see ``shuffle``. The local runner holds all of its elements in memory, and a
sentence takes 0.5 to 4 KB for its vector, once for each task: gigabytes for the articles of a month. Here each sender
writes its rows sorted by receiver, together with the bounds of each receiver's part. A receiver reads only its own
parts, so memory is bounded by one shard on every runner.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ...formats import files
from ..arrays import Array, write_array
from ..shards import Shard

_ROWS, _BOUNDS = "rows.npy", "bounds.npy"


def send(shard: Shard, stream: str, rows: Array, receivers: Array, receiver_count: int, chunk: int = 0) -> None:
    """Writes rows for the shards of a later phase.

    Args:
      shard: the sender.
      stream: name of the exchange within the job, starting with "_".
      rows: ``[N]``, any dtype without objects; rows for the same receiver keep their order.
      receivers: int ``[N]``, the receiver of each row, below ``receiver_count``.
      receiver_count: number of receivers.
      chunk: number of this call, if a shard sends in several calls.
    """
    order = np.argsort(receivers, kind="stable")
    bounds = np.searchsorted(receivers[order], np.arange(receiver_count + 1))
    # The bounds are written last: rows without bounds do not count as sent.
    for values, extension in ((rows[order], _ROWS), (bounds, _BOUNDS)):
        write_array(shard.path(stream, f"{chunk:05d}.{extension}"), values)


def receive(workspace: str, stream: str, receiver: int, dtype: np.dtype[Any] | None = None) -> Array:
    """Returns all rows that were sent to a receiver, in the order of the senders and their chunks.

    Args:
      workspace: of the job.
      stream: as the senders named it.
      receiver: its number.
      dtype: of the rows; needed if it is possible that no shard sent anything, not even zero rows.
    """
    parts = list(_parts(workspace, stream, receiver))
    return np.concatenate(parts) if parts or dtype is None else np.zeros(0, dtype)


def _parts(workspace: str, stream: str, receiver: int) -> Iterator[Array]:
    for path in files.list_files(f"{workspace}/{stream}/part-*.{_BOUNDS}"):
        with files.open_read(path) as source:
            _seek_items(source, receiver)
            start, end = np.frombuffer(source.read(16), np.int64)
        with files.open_read(path.removesuffix(_BOUNDS) + _ROWS) as source:
            dtype = _seek_items(source, start)
            yield np.frombuffer(source.read((end - start) * dtype.itemsize), dtype)


def _seek_items(source: BinaryIO, item: int) -> np.dtype[Any]:
    """Seeks to an item of a one-dimensional npy file and returns the dtype of its items."""
    np.lib.format.read_magic(source)
    _, _, dtype = np.lib.format.read_array_header_1_0(source)
    source.seek(int(source.tell() + item * dtype.itemsize))
    return dtype
