"""Greedy showing: a ranked list without articles that are too similar to one that is already shown. NumPy only.

Okura, Tagami and Tajima 2016, section 4: walk the list, and show an article unless its greatest similarity to those
shown exceeds a threshold.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

_BLOCK: Final = 256


class Walk(NamedTuple):
    """The result of a walk along a list of which N articles were looked at.

    Attributes:
      shown: bool [N], in the order of the list.
      nearest: int64 [N], the place in the list of the most similar article shown before, the first of equal ones; -1
        for the first article.
      cosine: float32 [N], its cosine, at most 1; -1 for the first article.
    """

    shown: npt.NDArray[np.bool_]
    nearest: npt.NDArray[np.int64]
    cosine: npt.NDArray[np.float32]


def walk(vectors: Any, threshold: float, most: int | None = None) -> Walk:
    """Walks along a list and decides about each article.

    An article exactly at the threshold is shown, so that a threshold of 1 shows all. Of two articles that exclude each
    other the first in the list is shown; with another order of the list another one may be.

    Args:
      vectors: float32 [N, D] in the order of the list, rows of length 1 or 0, dense or a SciPy CSR matrix.
      threshold: greatest cosine to a shown article.
      most: articles to show; the walk ends with the last of them. ``None`` walks along the whole list.

    Returns:
      As many entries as articles were looked at.
    """
    count = vectors.shape[0]
    shown, nearest, cosine = np.zeros(count, bool), np.full(count, -1), np.full(count, -1.0, np.float32)
    room = count if most is None else most
    places = np.zeros(0, np.int64)
    for start in range(0, count, _BLOCK):
        block = vectors[start : start + _BLOCK]
        before, within = _products(block, vectors[places]), _products(block, block)
        here = np.zeros(0, np.int64)  # places in the block of those shown
        for row in range(block.shape[0]):
            if len(places) + len(here) == room:
                end = start + row
                return Walk(shown[:end], nearest[:end], cosine[:end])
            candidates = np.concatenate([before[row], within[row, here]])
            if len(candidates):
                best = int(np.argmax(candidates))
                nearest[start + row] = np.concatenate([places, start + here])[best]
                cosine[start + row] = candidates[best]
            if not len(candidates) or cosine[start + row] <= threshold:
                shown[start + row] = True
                here = np.append(here, row)
        places = np.concatenate([places, start + here])
    return Walk(shown, nearest, cosine)


def _products(left: Any, right: Any) -> npt.NDArray[np.float32]:
    """Cosines [N, M]; what rounding puts above 1 is 1."""
    products = left @ right.T
    dense = products if isinstance(products, np.ndarray) else products.toarray()
    return np.minimum(np.asarray(dense, np.float32), 1.0)
