"""Margin scoring of translation pairs: the cosine of two sentences relative to those of their nearest neighbors.

Source: Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings" (ACL 2019),
section 3: the ratio margin, equation 2 with margin(a, b) = a / b, and the retrieval that they call "max".
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..formats.arrays import highest
from .one_thread import ONE_BLAS_THREAD

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
# (left, right, count) -> rows of right and their cosines, both [N, count] by falling cosine.
Search = Callable[[Any, Any, int], tuple[Numbers, Floats]]

NEIGHBORS: Final = 4  # k of the paper
DEFAULT_MARGIN: Final = 1.1  # from which pairs are accepted unless known pairs choose the threshold
_COSINES_AT_ONCE: Final = 8_000_000  # 32 MB
_LEAST_MEAN: Final = 1e-6  # sentences whose neighbors are not similar at all have no margin


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of rows with their scores.

    Attributes:
      left: rows of the left side, int64 ``[P]``.
      right: rows of the right side, int64 ``[P]``.
      cosines: float32 ``[P]``.
      margins: float32 ``[P]``.
    """

    left: Numbers
    right: Numbers
    cosines: Floats
    margins: Floats

    def __len__(self) -> int:
        return len(self.left)

    def take(self, which: Any) -> "Candidates":
        """Returns some of the pairs, by a mask or row numbers."""
        return Candidates(self.left[which], self.right[which], self.cosines[which], self.margins[which])


def nearest(left: Any, right: Any, count: int = NEIGHBORS) -> tuple[Numbers, Floats]:
    """Returns the nearest rows of ``right`` for each row of ``left``, exactly, ties by lower row.

    Args:
      left: unit rows, float32 ``[N, D]``, dense or CSR.
      right: unit rows, float32 ``[M, D]``, of the same kind.
      count: how many; fewer if M is smaller.

    Returns:
      Rows of ``right``, int64 ``[N, min(count, M)]``, and cosines, float32 of that shape, by falling cosine.
    """
    rows, width = left.shape[0], right.shape[0]
    count = min(count, width)
    found, cosines = np.zeros((rows, count), np.int64), np.zeros((rows, count), np.float32)
    step = max(1, _COSINES_AT_ONCE // max(1, width))
    with ONE_BLAS_THREAD:
        for start in range(0, rows if count else 0, step):
            part = left[start : start + step] @ right.T
            scores = np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float32)
            found[start : start + step], cosines[start : start + step] = highest(scores, count)
    return found, cosines


def ratio_margins(cosines: Floats, left_means: Floats, right_means: Floats) -> Floats:
    """Returns the ratio margin of each pair (equation 2): the cosine over the mean of both neighborhoods.

    Args:
      cosines: of the pairs, float32 ``[...]``.
      left_means: mean cosine of each left sentence to its k nearest right sentences, of a shape that broadcasts.
      right_means: that of each right sentence to its k nearest left sentences.

    Returns:
      float32 ``[...]``; 0 where the neighborhoods have no positive mean.
    """
    means = (np.asarray(left_means, np.float32) + right_means) / 2
    usable = means > _LEAST_MEAN
    return np.where(usable, cosines / np.where(usable, means, 1), 0).astype(np.float32)


@dataclasses.dataclass(frozen=True, slots=True)
class Neighborhoods:
    """The k nearest rows on the other side of each row, and the means of their cosines.

    Attributes:
      forward: rows of the right side, int64 ``[N, k]``, and cosines, float32 ``[N, k]``.
      backward: rows of the left side, int64 ``[M, k]``, and cosines, float32 ``[M, k]``.
    """

    forward: tuple[Numbers, Floats]
    backward: tuple[Numbers, Floats]

    @property
    def means(self) -> tuple[Floats, Floats]:
        """Mean cosine of the neighbors of each left and of each right row, float32 ``[N]`` and ``[M]``."""
        left, right = (_means(cosines) for _, cosines in (self.forward, self.backward))
        return left, right


def _means(cosines: Floats) -> Floats:
    return cosines.mean(1, dtype=np.float64).astype(np.float32) if cosines.size else np.zeros(len(cosines), np.float32)


def find_neighborhoods(left: Any, right: Any, count: int = NEIGHBORS, search: Search = nearest) -> Neighborhoods:
    """Returns the neighborhoods of unit rows ``[N, D]`` and ``[M, D]``, by :func:`nearest` or another search."""
    return Neighborhoods(search(left, right, count), search(right, left, count))


def best_pairs(found: Neighborhoods) -> Candidates:
    """Returns for each sentence of both sides its neighbor of the highest margin; a pair that is both is there once.

    The pairs are sorted by left, then right row. Pairs without a positive margin are left out.
    """
    left_means, right_means = found.means
    (right_rows, cosines), (left_rows, back) = found.forward, found.backward
    margins = ratio_margins(cosines, left_means[:, None], right_means[right_rows])
    back_margins = ratio_margins(back, left_means[left_rows], right_means[:, None])
    parts = []
    for rows, values, scores, is_forward in (
        (right_rows, cosines, margins, True),
        (left_rows, back, back_margins, False),
    ):
        if not rows.size:
            continue
        best = np.argmax(scores, axis=1)[:, None]
        others = np.take_along_axis(rows, best, 1)[:, 0]
        own = np.arange(len(rows))
        sides = (own, others) if is_forward else (others, own)
        numbers = (np.take_along_axis(table, best, 1)[:, 0] for table in (values, scores))
        parts.append(Candidates(*sides, *numbers))
    return union(parts)


def union(parts: list[Candidates]) -> Candidates:
    """Returns all pairs with a positive margin, each once, sorted by left, then right row."""
    kinds = {"left": np.int64, "right": np.int64, "cosines": np.float32, "margins": np.float32}
    joined = Candidates(*(
        np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)]) for name, kind in kinds.items()
    ))  # fmt: skip
    joined = joined.take(np.flatnonzero(joined.margins > 0))
    order = np.lexsort((-joined.margins, joined.right, joined.left))
    joined = joined.take(order)
    is_new = np.ones(len(joined), bool)
    is_new[1:] = (joined.left[1:] != joined.left[:-1]) | (joined.right[1:] != joined.right[:-1])
    return joined.take(is_new)


def one_to_one(pairs: Candidates) -> npt.NDArray[np.bool_]:
    """Returns which pairs remain if each sentence may have one translation: the highest margins first.

    Ties go to the lower left, then the lower right row. bool ``[P]``.
    """
    kept = np.zeros(len(pairs), bool)
    lefts: set[int] = set()
    rights: set[int] = set()
    order = np.lexsort((pairs.right, pairs.left, -pairs.margins))
    for place, left, right in zip(order.tolist(), pairs.left[order].tolist(), pairs.right[order].tolist(), strict=True):
        if left not in lefts and right not in rights:
            lefts.add(left)
            rights.add(right)
            kept[place] = True
    return kept


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """A margin from which pairs are accepted, and what that gives.

    Attributes:
      margin: the least that is accepted.
      precision: share of the accepted pairs that are true.
      recall: share of the true pairs that are accepted.
    """

    margin: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def thresholds(margins: Floats, right: Any, wrong: Any, total: float) -> list[Threshold]:
    """Returns every threshold that accepts another set of pairs, by falling margin.

    Args:
      margins: of the mined pairs, float32 ``[P]``.
      right: weight of each pair among the true ones, ``[P]``: 1 for a translation and 0 for another pair if all count
        the same.
      wrong: weight of each pair among the others, ``[P]``.
      total: weight of all translations that there are, above 0.
    """
    order = np.argsort(-margins, kind="stable")
    values, true, false = margins[order], np.cumsum(right[order], dtype=float), np.cumsum(wrong[order], dtype=float)
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True)) if len(values) else np.zeros(0, np.int64)
    return [
        Threshold(float(values[end]), float(true[end] / accepted), float(true[end] / total))
        for end in ends
        if (accepted := true[end] + false[end]) > 0
    ]


def at_margin(found: list[Threshold], margin: float) -> Threshold:
    """Returns what a margin gives: that of the last of :func:`thresholds` that is not below it; 0 if there is none."""
    reached = [one for one in found if one.margin >= margin]
    return dataclasses.replace(reached[-1], margin=margin) if reached else Threshold(margin, 0.0, 0.0)


def best_f1(found: list[Threshold]) -> Threshold:
    """Returns the threshold of the highest F1, the higher margin if several have it."""
    return max(found, key=lambda one: one.f1, default=Threshold(float("inf"), 0.0, 0.0))


def for_precision(found: list[Threshold], precision: float) -> Threshold | None:
    """Returns the lowest threshold whose precision is at least ``precision``; None if there is none."""
    reached = [one for one in found if one.precision >= precision]
    return reached[-1] if reached else None
