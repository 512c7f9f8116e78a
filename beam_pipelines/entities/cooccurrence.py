"""Embeddings from co-occurrence in documents: PPMI, truncated SVD, and random signatures that distinguish items."""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...tasks.one_thread import ONE_BLAS_THREAD
from .occurrences import Documents, Lists, Occurrences, csr, write_occurrences
from .tables import Floats

_ENTRIES_AT_ONCE = 250_000  # about 15 MB
_ROWS_AT_ONCE = 4_096
_ROUNDING = 1e-6  # of the length of a unit vector
_CONTEXT_SMOOTHING = 0.75  # as in word2vec: rare contexts would otherwise dominate PMI


def embed_items(
    keys: Sequence[str], documents: Iterable[Documents], dimensions: int, signature_dimensions: int, identity: float
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
    signature = signatures(keys, signature_dimensions)
    values = np.concatenate([np.sqrt(1 - identity) * context, np.sqrt(identity) * signature], axis=1)
    return unit_rows(values.astype(np.float32))


def ppmi_svd(items: int, documents: Iterable[Documents], dimensions: int, most_contexts: int = 10_000) -> Floats:
    """Returns the truncated SVD of the positive pointwise mutual information of co-occurrence in documents.

    Args:
      items: N, the number of items.
      documents: the corpus, in parts.
      dimensions: D; dimensions beyond the rank of the data are zero.
      most_contexts: only the most frequent items are contexts, which bounds the matrix.

    Returns:
      float32 ``[N, D]``; zero rows for items that never occur with another.
    """
    from sklearn.utils.extmath import randomized_svd

    values = np.zeros((items, dimensions), np.float32)
    with tempfile.TemporaryDirectory(prefix="newsembed-cooccurrence-") as folder:
        pmi = positive_pmi(folder, write_occurrences(folder, items, documents, most_contexts))
        rank = min(dimensions, min(pmi.shape) - 1)
        if rank > 0 and pmi.nnz:
            with ONE_BLAS_THREAD:  # again: SciPy's BLAS may have been loaded since the shard's block began
                left, scale, _ = randomized_svd(pmi, rank, n_iter=4, random_state=0)
            values[:, :rank] = left * np.sqrt(scale)
    return values


def positive_pmi(folder: str, occurrences: Occurrences) -> Any:
    """Returns the positive PMI of items and contexts, CSR float32 ``[items, contexts]``, mapped from files.

    Counts are computed and turned into PMI for some items at a time: most entries are dropped, and all at once they
    would take gigabytes.

    Args:
      folder: for the files, which must stay as long as the result is used.
      occurrences: items and contexts of the documents.
    """
    contexts, items = occurrences.contexts, len(occurrences.item_totals)
    row_total, column_total = occurrences.item_totals, occurrences.context_totals**_CONTEXT_SMOOTHING
    dtype = np.dtype(np.int32 if items * len(contexts) < 2**31 else np.int64)
    columns, values = Lists(f"{folder}/columns", dtype), Lists(f"{folder}/values", np.dtype(np.float32))
    for start, end in _blocks(np.minimum(row_total, len(contexts))):
        together = occurrences.together(start, end).tocoo()
        apart = together.row + start != contexts[together.col]
        row, column, count = together.row[apart], together.col[apart], together.data[apart].astype(np.float64)
        pmi = np.log(count * column_total.sum() / (row_total[start + row] * column_total[column]))
        positive = pmi > 0
        lengths = np.bincount(row[positive], minlength=end - start)
        columns.append(column[positive], lengths)
        values.append(pmi[positive], lengths)
    return csr(values.numbers(), columns.numbers(), columns.starts(), len(contexts))


def _blocks(entries: np.ndarray[Any, Any]) -> Iterator[tuple[int, int]]:
    """Yields (first, end) of runs of rows with about `_ENTRIES_AT_ONCE` entries, at least one row each."""
    start = 0
    while start < len(entries):
        total = np.cumsum(entries[start:])
        end = start + max(1, int(np.searchsorted(total, _ENTRIES_AT_ONCE, side="right")))
        yield start, end
        start = end


def signatures(keys: Sequence[str], dimensions: int) -> Floats:
    """Returns random unit vectors that depend only on the key: float32 ``[len(keys), dimensions]``, ±1/√dimensions."""
    if not dimensions or not keys:
        return np.zeros((len(keys), 0), np.float32)
    digests = b"".join(hashlib.shake_128(key.encode()).digest((dimensions + 7) // 8) for key in keys)
    bits = np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(keys), -1), axis=1)[:, :dimensions]
    return ((2.0 * bits - 1.0) / np.sqrt(dimensions)).astype(np.float32)


def unit_rows(values: Floats) -> Floats:
    """Returns rows scaled to length 1; zero rows stay zero. Rows that all have length 1 or 0 are not copied."""
    norms = np.zeros((len(values), 1), values.dtype)
    for start in range(0, len(values), _ROWS_AT_ONCE):  # the norm of rows takes a copy of them
        part = slice(start, start + _ROWS_AT_ONCE)
        norms[part] = np.linalg.norm(values[part], axis=1, keepdims=True)
    if values.dtype == np.float32 and np.all((np.abs(norms - 1) < _ROUNDING) | (norms == 0)):
        return values
    return np.asarray(values / np.where(norms > 0, norms, 1), np.float32)
