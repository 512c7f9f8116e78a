"""The bar of the learned space, calibrated by dates: no labels are needed.

Reports of one event appear within days of each other. How often two articles that are some weeks apart reach a
similarity (`neighbors.background`) therefore tells how often two articles reach it because they share a subject. With
``n(s)`` near pairs of at least similarity ``s`` among ``N`` possible ones, and ``f(s)`` of ``F`` pairs some weeks
apart, the share of near pairs that report one event is about::

    precision(s) = 1 - (N f(s) / F) / n(s)

Pairs of one publisher are never positives: ``n`` and ``f`` leave them out, ``N`` and ``F`` count them.

A story that runs for days makes near pairs similar that report different events of it, which counts for this precision;
reports of one event weeks apart, and near pairs that the search did not find, count against it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..arrays import COSINE_BINS, Array, CosineHistogram

_SUPPORT: Final = 0.8  # precision from which a pair supports another space
_FLOOR: Final = 0.5  # precision below which a pair is refused


@dataclasses.dataclass(frozen=True)
class LearnedSpace:
    """What the similarity in the learned space says of a pair.

    Attributes:
      bar: similarity that is enough for a positive.
      support: similarity that is enough together with another space.
      floor: below it, a pair is not a positive, whatever the other spaces say.
    """

    bar: float
    support: float
    floor: float

    def margins(self, similarities: Array, joint_margin: float) -> npt.NDArray[np.float64]:
        """Returns 0 at the bar and ``-joint_margin`` at the support, linear in the similarity: float64 ``[P]``."""
        scaled = (similarities.astype(np.float64) - self.bar) / (self.bar - self.support)
        return np.asarray(joint_margin * scaled)

    def refuses(self, similarities: Array) -> npt.NDArray[np.bool_]:
        """Returns which pairs are below the floor, bool ``[P]``; a pair without a similarity (NaN) is not."""
        return np.asarray(similarities < self.floor)

    def to_json(self) -> dict[str, float]:
        """Returns the bars as in ``learned.json``."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "LearnedSpace":
        """Returns the bars that :meth:`to_json` wrote."""
        return LearnedSpace(*(float(value[field.name]) for field in dataclasses.fields(LearnedSpace)))


def near_pairs(documents: Mapping[int, int], most_days: int) -> int:
    """Counts the ordered pairs of distinct documents that are at most this many days apart: N of the module's formula.

    Args:
      documents: number of documents by day.
      most_days: largest day gap.
    """
    days = np.array(sorted(documents), np.int64)
    counts = np.array([documents[day] for day in days.tolist()], np.int64)
    before = np.append(0, np.cumsum(counts))
    first, end = np.searchsorted(days, days - most_days), np.searchsorted(days, days + most_days, side="right")
    return int((counts * (before[end] - before[first])).sum() - counts.sum())


def precision_curve(
    near: CosineHistogram, background: CosineHistogram, pairs: int, possible: int
) -> npt.NDArray[np.float64]:
    """Returns the estimated precision of the near pairs from each bin on, float64 ``[bins]``.

    It never falls with the similarity: a bin has at most the precision of all bins above it.

    Args:
      near: near pairs by similarity.
      background: pairs some weeks apart by similarity, not empty.
      pairs: number of pairs some weeks apart, at least those of the background: F of the module's formula.
      possible: N of the module's formula.
    """
    reached = np.cumsum(near[::-1])
    by_subject = np.cumsum(background[::-1]) * (possible / pairs)
    precision = np.where(reached > 0, 1 - by_subject / np.maximum(reached, 1), 1.0)
    return np.asarray(np.minimum.accumulate(precision)[::-1])


def calibrate(
    near: CosineHistogram, background: CosineHistogram, pairs: int, possible: int, precision: float, path: str
) -> tuple[LearnedSpace, npt.NDArray[np.float64]]:
    """Returns the bars, and the curve of :func:`precision_curve`.

    The bar is the least similarity with the precision asked for; the support has 0.8 at least and the floor one half.

    Args:
      near: near pairs by similarity.
      background: pairs some weeks apart by similarity.
      pairs: F of the module's formula.
      possible: N of the module's formula.
      precision: at the bar.
      path: of the neighbors, for errors.

    Raises:
      InputError: without pairs some weeks apart, or if no similarity has the precision.
    """
    remedy = "give the bar as --min_learned"
    if not background.any():
        problem = "no articles of two publishers are 8 to 28 days apart, so the learned space cannot be calibrated"
        raise InputError(problem, path=path, field="--min_learned", remedy=remedy)
    curve = precision_curve(near, background, pairs, possible)
    top = int(np.flatnonzero(near)[-1]) if near.any() else -1
    if top < 0 or curve[top] < precision:
        problem = f"no similarity in the learned space has an estimated precision of {precision}"
        raise InputError(problem, path=path, field="--learned_precision", remedy=f"{remedy}, or use another encoder")
    bar, support, floor = (int(np.searchsorted(curve, least)) for least in (precision, _SUPPORT, _FLOOR))
    support = min(support, bar - 1)
    return LearnedSpace(_edge(bar), _edge(support), _edge(min(floor, support))), curve


def _edge(number: int) -> float:
    """Returns the lower edge of a bin."""
    return round(2 * number / COSINE_BINS - 1, 6)
