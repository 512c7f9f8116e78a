"""Alignment and uniformity (Wang and Isola 2020, arXiv 2005.10242) of embeddings of any kind.

The trainer reports them for each batch (``models.losses``); these functions read a whole collection, dense or sparse.
"""

import numpy as np

from ..encoders import Embeddings, cosine_similarities, paired_cosines
from .pairs import IntArray

_BLOCK = 256  # rows of the similarity matrix held at once
_SCALE = 2.0  # Wang and Isola's t


def alignment(embeddings: Embeddings, pairs: IntArray) -> float:
    """Returns the mean of ``|x - y|^2`` over pairs that belong together: 0 is best, 4 is worst.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR.
      pairs: int64 ``[P, 2]``, P >= 1.
    """
    cosines = paired_cosines(embeddings[pairs[:, 0]], embeddings[pairs[:, 1]])
    return float(2 - 2 * cosines.mean(dtype=np.float64))


def uniformity(embeddings: Embeddings) -> float:
    """Returns the log of the mean of ``exp(-2 |x - y|^2)`` over all pairs of different articles.

    It is 0 if all articles are one point, and near -4 if they are spread over a sphere.

    Args:
      embeddings: float32 ``[N, D]`` of unit length, dense or CSR, N >= 2.
    """
    rows, total = embeddings.shape[0], 0.0
    for start in range(0, rows, _BLOCK):
        cosines = cosine_similarities(embeddings[start : start + _BLOCK], embeddings).astype(np.float64)
        kernel = np.exp(-2 * _SCALE * (1 - cosines))
        total += float(kernel.sum() - kernel[np.arange(len(kernel)), np.arange(start, start + len(kernel))].sum())
    return float(np.log(total / (rows * (rows - 1))))
