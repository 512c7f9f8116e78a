"""Embeddings from co-occurrence in documents: PPMI, truncated SVD, and random signatures that distinguish items.

Co-occurrence needs all documents at once. They are in mapped files on the local disk, which are not part of the
worker's own memory: pages are read when they are used, and the kernel may drop them.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...formats.arrays import unit_rows
from ...tasks.one_thread import ONE_BLAS_THREAD
from ..arrays import Array, Floats, new_mapped, slices

# Item numbers of some documents, concatenated, int ``[sum(lengths)]``, and count by document, int ``[documents]``.
Documents = tuple[Array, Array]
_NUMBERS_AT_ONCE: Final = 100_000
_ENTRIES_AT_ONCE: Final = 250_000  # about 15 MB
_CONTEXT_SMOOTHING: Final = 0.75  # as in word2vec: rare contexts would otherwise dominate PMI
_MOST_CONTEXTS: Final = 10_000  # the most frequent items, which bounds the matrix


def embed_items(
    keys: Sequence[str],
    documents: Iterable[Documents],
    dimensions: int,
    signature_dimensions: int = 128,
    identity: float = 0.7,
) -> Floats:
    """Embeds items by the documents that they share.

    SVD vectors alone do not separate events: all football reports point in the same direction. Therefore each row is
    the unit SVD vector, concatenated with a unit random signature of the key, weighted so that the cosine of two rows
    is ``(1 - identity) * cosine of their contexts + identity * [same key]``, up to noise of about
    ``identity / sqrt(signature_dimensions)``. The mean over a document then represents both its theme and its actors.

    Args:
      keys: id of each of the N items.
      documents: the corpus, in parts.
      dimensions: dimensions of the SVD.
      signature_dimensions: dimensions of the random signature.
      identity: share of the signature in the cosine, in [0, 1].

    Returns:
      float32 ``[N, dimensions + signature_dimensions]`` with rows of unit length.
    """
    context = unit_rows(ppmi_svd(len(keys), documents, dimensions))
    signature = _signatures(keys, signature_dimensions)
    values = np.concatenate([np.sqrt(1 - identity) * context, np.sqrt(identity) * signature], axis=1)
    return unit_rows(values.astype(np.float32))


def ppmi_svd(items: int, documents: Iterable[Documents], dimensions: int) -> Floats:
    """Returns the truncated SVD of the positive pointwise mutual information of co-occurrence in documents.

    Args:
      items: N, the number of items.
      documents: the corpus, in parts.
      dimensions: D; dimensions beyond the rank of the data are zero.

    Returns:
      float32 ``[N, D]``; zero rows for items that never occur with another.
    """
    from sklearn.utils.extmath import randomized_svd

    values = np.zeros((items, dimensions), np.float32)
    with tempfile.TemporaryDirectory(prefix="newsembed-cooccurrence-") as folder:
        pmi = positive_pmi(folder, items, documents, _MOST_CONTEXTS)
        rank = min(dimensions, min(pmi.shape) - 1)
        if rank > 0 and pmi.nnz:
            with ONE_BLAS_THREAD:  # again: SciPy's BLAS may have been loaded since the shard's block began
                left, scale, _ = randomized_svd(pmi, rank, n_iter=4, random_state=0)
            values[:, :rank] = left * np.sqrt(scale)
    return values


def positive_pmi(folder: str, items: int, documents: Iterable[Documents], most_contexts: int) -> Any:
    """Returns the positive PMI of items and contexts, CSR float32 ``[items, contexts]``, mapped from files.

    Counts are computed and turned into PMI for some items at a time: most entries are dropped, and all at once they
    would take gigabytes.

    Args:
      folder: for the files, which must stay as long as the result is used.
      items: number of items.
      documents: the corpus, in parts. Repeats within a document count once.
      most_contexts: only so many items are contexts, the most frequent ones.
    """
    found = _write_occurrences(folder, items, documents, most_contexts)
    contexts, row_total, column_total = found.contexts, found.item_totals, found.context_totals**_CONTEXT_SMOOTHING
    dtype = np.dtype(np.int32 if items * len(contexts) < 2**31 else np.int64)
    columns, values = _Lists(f"{folder}/columns", dtype), _Lists(f"{folder}/values", np.dtype(np.float32))
    for start, end in _runs(np.append(0, np.cumsum(np.minimum(row_total, len(contexts)))), _ENTRIES_AT_ONCE):
        together = found.together(start, end).tocoo()
        apart = together.row + start != contexts[together.col]
        row, column, count = together.row[apart], together.col[apart], together.data[apart].astype(np.float64)
        pmi = np.log(count * column_total.sum() / (row_total[start + row] * column_total[column]))
        positive = pmi > 0
        lengths = np.bincount(row[positive], minlength=end - start)
        columns.append(column[positive], lengths)
        values.append(pmi[positive], lengths)
    return _csr(values.numbers(), columns.numbers(), columns.starts(), len(contexts))


def _runs(starts: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yields (first, end) of runs of lists with at most so many numbers together, at least one list each.

    Args:
      starts: of each list, and the end of the last.
      most: numbers of a run.
    """
    first = 0
    while first < len(starts) - 1:
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield first, end
        first = end


def _signatures(keys: Sequence[str], dimensions: int) -> Floats:
    """Returns random unit vectors that depend only on the key: float32 ``[len(keys), dimensions]``, ±1/√dimensions."""
    if not dimensions or not keys:
        return np.zeros((len(keys), 0), np.float32)
    digests = b"".join(hashlib.shake_128(key.encode()).digest((dimensions + 7) // 8) for key in keys)
    bits = np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(keys), -1), axis=1)[:, :dimensions]
    return ((2.0 * bits - 1.0) / np.sqrt(dimensions)).astype(np.float32)


class _Occurrences(NamedTuple):
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
        found = _csr(self.by_item.data, documents, starts - starts[0], self.by_item.shape[1]) @ self.among
        found.sort_indices()
        return found


def _write_occurrences(folder: str, items: int, documents: Iterable[Documents], most_contexts: int) -> _Occurrences:
    """Writes the items of the documents into files, and maps them."""
    lists = _Lists(f"{folder}/items", np.dtype(np.int32))
    frequency = np.zeros(items, np.int64)
    for numbers, lengths in documents:
        owners, distinct = np.divmod(np.unique(np.repeat(np.arange(len(lengths)), lengths) * items + numbers), items)
        lists.append(distinct, np.bincount(owners, minlength=len(lengths)))
        frequency += np.bincount(distinct, minlength=items)
    contexts = np.sort(np.argsort(-frequency, kind="stable")[:most_contexts])
    context_of = np.full(items, -1)
    context_of[contexts] = np.arange(len(contexts))
    dtype = np.dtype(np.int32 if max(lists.total, len(lists)) < 2**31 else np.int64)  # SciPy would copy another one
    among = _Lists(f"{folder}/contexts", dtype)
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
    for part in slices(lists.total, _NUMBERS_AT_ONCE):
        ones[part] = 1
    starts = np.append(0, np.cumsum(frequency))
    matrices = _csr(ones, among.numbers(), among.starts(), len(contexts)), _csr(ones, by_item, starts, len(lists))
    return _Occurrences(contexts, *matrices, item_totals, context_totals)


class _Lists:
    """Lists of numbers, one after another in a file."""

    def __init__(self, path: str, dtype: np.dtype[Any]) -> None:
        self.total = 0  # how many numbers there are
        self._path, self._dtype = path, dtype
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
        return np.asarray(np.memmap(self._path, self._dtype, "r")) if self.total else np.zeros(0, self._dtype)

    def starts(self) -> Array:
        """Returns where each list starts, and the end of the last, int64 ``[lists + 1]``."""
        return np.append(0, np.cumsum(np.concatenate(self._lengths), dtype=np.int64))

    def parts(self) -> Iterator[tuple[int, Array, Array]]:
        """Yields some lists at a time: number of the first one, their numbers, and their lengths, both int64."""
        numbers, starts = self.numbers(), self.starts()
        for first, end in _runs(starts, _NUMBERS_AT_ONCE):
            yield first, numbers[starts[first] : starts[end]].astype(np.int64), np.diff(starts[first : end + 1])


def _csr(values: Array, columns: Array, starts: Array, width: int) -> Any:
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
