"""The smoothing of set sizes (paper, section 3.4): small languages are sampled more often than by their size."""

from collections.abc import Mapping
from typing import Final

from ..formats.manifest import DataSet

SMOOTHING: Final = 0.7


def smoothed_sizes(counts: Mapping[DataSet, int], alpha: float = SMOOTHING) -> dict[DataSet, float]:
    """The sizes by which sets are sampled: m_i = n_1 (p_i / p_1)^alpha, where set 1 is the largest.

    Args:
      counts: records by set, all positive.
      alpha: 1 samples by size, 0 all sets alike.

    Returns:
      The sizes, in the sorted order of the sets.
    """
    largest = max(counts.values())
    return {data_set: largest * (counts[data_set] / largest) ** alpha for data_set in sorted(counts)}
