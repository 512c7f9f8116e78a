"""Which items each document has, in mapped files on the local disk.

Co-occurrence needs all documents at once. In mapped files they are not part of the worker's own memory: pages are read
when they are used, and the kernel may drop them.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from ..arrays import Array, new_mapped

# Item numbers of some documents, concatenated, int ``[sum(lengths)]``, and count by document, int ``[documents]``.
Documents = tuple[Array, Array]
_NUMBERS_AT_ONCE: Final = 100_000


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """The items and contexts of N documents. Contexts are some of the items.

    Attributes:
      contexts: item number of each of C contexts, sorted, int ``[C]``.
      among: CSR float32 ``[N, C]``, 1 where a document has a context.
      by_item: CSR float32 ``[items, N]``, 1 where a document has an item.
      item_totals: for each item, the contexts besides itself in all its documents, float64 ``[items]``.
      context_totals: for each context, the items besides itself in all its documents, float64 ``[C]``.
    """

    contexts: Array
    among: Any
    by_item: Any
    item_totals: Array
    context_totals: Array

    def together(self, start: int, end: int) -> Any:
        """Returns in how many documents the items from ``start`` to ``end - 1`` are with each context, sorted CSR."""
        starts = self.by_item.indptr[start : end + 1]
        documents = self.by_item.indices[starts[0] : starts[-1]]  # a slice of the matrix would copy them
        found = csr(self.by_item.data, documents, starts - starts[0], self.by_item.shape[1]) @ self.among
        found.sort_indices()
        return found


def write_occurrences(folder: str, items: int, documents: Iterable[Documents], most_contexts: int) -> Occurrences:
    """Writes the items of the documents into files, and maps them.

    Args:
      folder: for the files, which must stay as long as the result is used.
      items: number of items.
      documents: the corpus, in parts. Repeats within a document count once.
      most_contexts: only so many items are contexts, the most frequent ones.
    """
    lists = Lists(f"{folder}/items", np.dtype(np.int32))
    frequency = np.zeros(items, np.int64)
    for numbers, lengths in documents:
        owners, distinct = np.divmod(np.unique(np.repeat(np.arange(len(lengths)), lengths) * items + numbers), items)
        lists.append(distinct, np.bincount(owners, minlength=len(lengths)))
        frequency += np.bincount(distinct, minlength=items)
    contexts = np.sort(np.argsort(-frequency, kind="stable")[:most_contexts])
    context_of = np.full(items, -1)
    context_of[contexts] = np.arange(len(contexts))
    dtype = np.dtype(np.int32 if max(lists.total, len(lists)) < 2**31 else np.int64)  # SciPy would copy another one
    among = Lists(f"{folder}/contexts", dtype)
    by_item = new_mapped(f"{folder}/documents", (lists.total,), dtype)
    free = np.cumsum(frequency) - frequency  # the next place of each item
    item_totals, context_totals = np.zeros(items), np.zeros(len(contexts))
    for first, numbers, sizes in lists.parts():
        owners, found = np.repeat(np.arange(len(sizes)), sizes), context_of[numbers]
        is_context = found >= 0
        context_sizes = np.bincount(owners, is_context, minlength=len(sizes))
        among.append(found[is_context], context_sizes)
        # Sums of whole numbers, which are exact in any order.
        item_totals += np.bincount(numbers, context_sizes[owners] - is_context, minlength=items)
        context_totals += np.bincount(found[is_context], sizes[owners[is_context]] - 1, minlength=len(contexts))
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=items)
        rank = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        by_item[free[numbers[order]] + rank] = first + owners[order]
        free += counts
    ones = new_mapped(f"{folder}/ones", (lists.total,), np.float32)
    for start in range(0, lists.total, _NUMBERS_AT_ONCE):
        ones[start : start + _NUMBERS_AT_ONCE] = 1
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(frequency)])
    return Occurrences(
        contexts,
        csr(ones, among.numbers(), among.starts(), len(contexts)),
        csr(ones, by_item, starts, len(lists)),
        item_totals,
        context_totals,
    )


class Lists:
    """Lists of numbers, one after another in a file.

    Args:
      path: of the file.
      dtype: of the numbers.

    Attributes:
      total: how many numbers there are.
    """

    def __init__(self, path: str, dtype: np.dtype[Any]) -> None:
        self.total = 0
        self._path = path
        self._dtype = dtype
        self._lengths: list[Array] = [np.zeros(0, np.int32)]

    def __len__(self) -> int:
        return sum(map(len, self._lengths))

    def append(self, numbers: Array, lengths: Array) -> None:
        """Adds lists: their numbers, concatenated, and the length of each."""
        with open(self._path, "ab") as sink:
            sink.write(numbers.astype(self._dtype).tobytes())
        self._lengths.append(lengths.astype(np.int32))
        self.total += len(numbers)

    def numbers(self) -> Array:
        """Maps the numbers of all lists."""
        if not self.total:  # a file without bytes cannot be mapped
            return np.zeros(0, self._dtype)
        return np.asarray(np.memmap(self._path, self._dtype, "r"))

    def starts(self) -> Array:
        """Returns where each list starts, and the end of the last, int64 ``[lists + 1]``."""
        lengths = np.concatenate(self._lengths)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])

    def parts(self) -> Iterator[tuple[int, Array, Array]]:
        """Yields some lists at a time: number of the first one, their numbers, and their lengths, both int64."""
        numbers, starts = self.numbers(), self.starts()
        first = 0
        while first < len(starts) - 1:
            end = max(first + 1, int(np.searchsorted(starts, starts[first] + _NUMBERS_AT_ONCE, side="right")) - 1)
            yield first, numbers[starts[first] : starts[end]].astype(np.int64), np.diff(starts[first : end + 1])
            first = end


def csr(values: Array, columns: Array, starts: Array, width: int) -> Any:
    """Returns a sparse matrix over mapped arrays, without a copy of them.

    Args:
      values: float32, at least as many as ``columns``.
      columns: column of each entry, rows one after another.
      starts: first entry of each row, and the end of the last, int ``[rows + 1]``.
      width: number of columns.
    """
    import scipy.sparse

    parts = (values[: len(columns)], columns, starts.astype(columns.dtype))
    return scipy.sparse.csr_matrix(parts, shape=(len(starts) - 1, width))
