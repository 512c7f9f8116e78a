"""Embeddings from co-occurrence in documents: PPMI, truncated SVD, and a signature that keeps identities apart."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from .tables import Floats

_CONTEXT_SMOOTHING = 0.75  # as in word2vec: rare contexts would otherwise dominate PMI


def embed_items(
    keys: Sequence[str], documents: Sequence[np.ndarray[Any, Any]], dimensions: int, signature_dimensions: int, identity: float
) -> Floats:
    """Embeds items by the documents they share.

    A mean of SVD vectors alone blurs events: all football reports point the same way. So each row is the unit SVD
    vector beside a unit random signature of the key, weighted so that the cosine of two rows is
    ``(1 - identity) * cosine of their contexts + identity * [same key]``, up to the signatures' noise of
    about ``identity / sqrt(signature_dimensions)``. The mean over a document then holds both its theme and its cast.

    Args:
      keys: id of each item, N.
      documents: item numbers of each document.
      dimensions: of the SVD.
      signature_dimensions: of the random part.
      identity: share of the identity in the cosine, in [0, 1].

    Returns:
      float32 ``[N, dimensions + signature_dimensions]`` with rows of unit length.
    """
    context = unit_rows(ppmi_svd(len(keys), documents, dimensions))
    signature = signatures(keys, signature_dimensions)
    values = np.concatenate([np.sqrt(1 - identity) * context, np.sqrt(identity) * signature], axis=1)
    return unit_rows(values.astype(np.float32))


def ppmi_svd(items: int, documents: Sequence[np.ndarray[Any, Any]], dimensions: int, most_contexts: int = 10_000) -> Floats:
    """Truncated SVD of the positive pointwise mutual information of co-occurrence in documents.

    Args:
      items: number of items N.
      documents: item numbers of each document.
      dimensions: D; what the data's rank leaves open is zero.
      most_contexts: only the most frequent items serve as contexts, which bounds the matrix.

    Returns:
      float32 ``[N, D]``; zero rows for items that never meet another.
    """
    import scipy.sparse
    import threadpoolctl
    from sklearn.utils.extmath import randomized_svd

    lengths = [len(document) for document in documents]
    columns = np.concatenate([np.zeros(0, np.int64), *documents]).astype(np.int64)
    matrix = scipy.sparse.csr_matrix(
        (np.ones(len(columns), np.float32), columns, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])), shape=(len(lengths), items)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    frequency = np.asarray(matrix.sum(axis=0)).ravel()
    contexts = np.sort(np.argsort(-frequency, kind="stable")[:most_contexts])
    pmi = _positive_pmi((matrix.T @ matrix[:, contexts]).tocoo(), contexts)
    rank = min(dimensions, min(pmi.shape) - 1)
    values = np.zeros((items, dimensions), np.float32)
    if rank > 0 and pmi.nnz:
        with threadpoolctl.threadpool_limits(1):  # the same bits whatever the number of cores
            left, scale, _ = randomized_svd(pmi, rank, n_iter=4, random_state=0)
        values[:, :rank] = left * np.sqrt(scale)
    return values


def _positive_pmi(together: Any, contexts: np.ndarray[Any, Any]) -> Any:
    import scipy.sparse

    apart = together.row != contexts[together.col]
    row, column, count = together.row[apart], together.col[apart], together.data[apart].astype(np.float64)
    row_total = np.bincount(row, count, together.shape[0])
    column_total = np.bincount(column, count, together.shape[1]) ** _CONTEXT_SMOOTHING
    pmi = np.log(count * column_total.sum() / (row_total[row] * column_total[column]))
    positive = pmi > 0
    return scipy.sparse.csr_matrix((pmi[positive].astype(np.float32), (row[positive], column[positive])), shape=together.shape)


def signatures(keys: Sequence[str], dimensions: int) -> Floats:
    """Random unit vectors that depend on the key alone: float32 ``[len(keys), dimensions]``, entries ±1/√dimensions."""
    if not dimensions:
        return np.zeros((len(keys), 0), np.float32)
    digests = b"".join(hashlib.shake_128(key.encode()).digest((dimensions + 7) // 8) for key in keys)
    bits = np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(keys), -1), axis=1)[:, :dimensions]
    return ((2.0 * bits - 1.0) / np.sqrt(dimensions)).astype(np.float32)


def unit_rows(values: Floats) -> Floats:
    """Rows scaled to length 1; zero rows stay zero."""
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(norms > 0, norms, 1), np.float32)
