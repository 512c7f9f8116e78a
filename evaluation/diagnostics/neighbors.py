"""Nearest articles, and the agreement of two encoders on them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..encoders import Embeddings, cosine_similarities

_BLOCK = 256  # rows of the similarity matrix held at once

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


def nearest(embeddings: Embeddings, queries: Sequence[int] | IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """Returns the k articles nearest to each query, without the query; the earlier of tied articles comes first.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      queries: Q rows of ``embeddings``.
      k: number of neighbors; at most N - 1 are returned.

    Returns:
      (rows int64 ``[Q, k]``, cosines float32 ``[Q, k]``), the nearest first.
    """
    places = np.asarray(queries, np.int64)
    k = min(k, embeddings.shape[0] - 1)
    found, cosines = np.zeros((len(places), k), np.int64), np.zeros((len(places), k), np.float32)
    for start in range(0, len(places), _BLOCK):
        own = places[start : start + _BLOCK]
        similarities = cosine_similarities(embeddings[own], embeddings)
        similarities[np.arange(len(own)), own] = -np.inf
        order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        found[start : start + _BLOCK] = order
        cosines[start : start + _BLOCK] = np.take_along_axis(similarities, order, axis=1)
    return found, cosines


def shared_neighbors(first: Embeddings, second: Embeddings, k: int) -> float:
    """Returns the share of the k nearest articles on which two encoders agree, mean over all articles.

    It is 1 if they agree on all, and k / (N - 1) by chance.

    Args:
      first: float32 ``[N, D]`` of unit length, dense or CSR.
      second: embeddings of the same articles by another encoder, ``[N, E]``.
      k: number of neighbors, at least 1; at most N - 1 are compared.
    """
    everything = np.arange(first.shape[0])
    one, other = (nearest(embeddings, everything, k)[0] for embeddings in (first, second))
    common = [len(set(left) & set(right)) for left, right in zip(one.tolist(), other.tolist(), strict=True)]
    return float(np.mean(common) / one.shape[1])
