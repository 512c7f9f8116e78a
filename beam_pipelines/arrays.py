"""Arrays on disk, and document ids as 64-bit numbers."""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..formats import files
from ..formats.arrays import read_npy

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
_ID_DIGITS = 16  # of a document id


def write_array(path: str, values: Array) -> None:
    """Writes an npy file under a temporary name, then moves it to ``path``."""
    temporary = files.temporary_name(path)
    with files.open_write(temporary) as sink:
        np.save(sink, values)
    files.move(temporary, path)


def read_array(path: str) -> Array:
    """Reads an npy file.

    Raises:
      InputError: if it is not an npy file.
    """
    with files.open_read(path) as source:
        return read_npy(source, path)


def map_array(path: str) -> Array:
    """Maps a local npy file into memory, read-only: only the pages in use are in memory."""
    try:
        # A plain array over the same memory: slicing a memmap is ten times slower.
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError:  # an array without elements cannot be mapped
        return np.asarray(np.load(path, allow_pickle=False))


def map_file(path: str) -> Array:
    """Maps an npy file into memory, read-only; one of a store from a copy on the local disk, see :func:`map_arrays`."""
    if "://" not in path:
        return map_array(path)
    with files.open_read(path) as source:
        return _map_copy(source)


def _map_copy(source: IO[bytes]) -> Array:
    """Maps a copy that has no name; it is gone when the process ends."""
    with tempfile.NamedTemporaryFile(prefix="newsembed-arrays-", suffix=".npy") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        return map_array(copy.name)


def new_mapped(path: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Maps a new local file of zeros into memory, to write and read: only the pages in use are in memory."""
    if 0 in shape:  # a file without bytes cannot be mapped
        return np.zeros(shape, dtype)
    return np.asarray(np.memmap(path, dtype, "w+", shape=shape))


def map_arrays(path: str) -> dict[str, Array]:
    """Maps the arrays of an npz file into memory, from a copy on the local disk.

    A table of the whole corpus that a worker looks documents up in does not become part of its own memory: pages are
    read when they are used, and the kernel may drop them.

    Args:
      path: local or remote.
    """
    with files.open_read(path) as source, zipfile.ZipFile(source) as archive:
        return {name.removesuffix(".npy"): _map_copy(archive.open(name)) for name in archive.namelist()}


def slices(count: int, size: int) -> Iterator[slice]:
    """Yields the slices that cut so many items into parts of at most ``size``."""
    return (slice(start, start + size) for start in range(0, count, size))


def doc_id_of(number: int) -> str:
    """Returns the document id of a number, as 16 hex digits."""
    return f"{number:016x}"


def doc_ids_of(numbers: Ids) -> pa.Array:
    """Returns the document ids of many numbers, as an Arrow array of strings."""
    digits = numbers.astype(">u8").tobytes().hex().encode()
    ends = np.arange(0, len(digits) + 1, _ID_DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(digits))


def doc_numbers_of(doc_ids: pa.Array) -> Ids:
    """Returns the numbers of many document ids, uint64 ``[N]``.

    Args:
      doc_ids: Arrow array of strings of 16 hex digits.
    """
    return np.frombuffer(bytes.fromhex("".join(doc_ids.to_pylist())), ">u8").astype(np.uint64)


def find(ids: Ids, wanted: Ids) -> Places:
    """Returns the place of each wanted number in sorted ones, int64 ``[P]``; -1 if it is not there."""
    places = np.searchsorted(ids, wanted)
    there = places < len(ids)
    there[there] = ids[places[there]] == wanted[there]
    return np.where(there, places, -1)


def find_one(ids: Ids, wanted: int) -> int:
    """Returns the place of one number in sorted ones, -1 if it is not there."""
    return int(find(ids, np.array([wanted], np.uint64))[0])


def lowest_connected(one: Places, two: Places, count: int) -> Places:
    """Returns the lowest node in the connected component of each of so many nodes, int64 ``[count]``.

    Args:
      one: a node of each edge, int64 ``[E]``.
      two: the other node.
      count: of nodes.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(one), bool), (one, two)), shape=(count, count))
    _, components = connected_components(edges, directed=False)
    _, first = np.unique(components, return_index=True)
    return first[components]


def changes(*keys: Array) -> npt.NDArray[np.bool_]:
    """Returns whether each row has other keys than the row before it, bool ``[N]``."""
    found = np.ones(len(keys[0]), bool)
    found[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return found


def rank_within(*keys: Array) -> Places:
    """Returns the number of earlier rows with the same keys, int64 ``[N]``."""
    order = np.lexsort(keys[::-1])  # stable
    is_first = changes(*(key[order] for key in keys))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    return ranks
