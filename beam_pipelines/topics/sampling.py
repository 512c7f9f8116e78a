"""Sampling of labels: positives and negatives of a topic are brought to a ratio by dropping those in excess (2.2.2).

The labels of a side with the smallest draws stay. A shard keeps the smallest draws of its labels, so that the bound for
a wanted number of labels is exact where the number is small; large numbers are met within a few percent.
"""

import collections
import dataclasses
import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

LEAST = 2_048  # draws of each topic and side that a shard keeps
DRAWS = 1 << 48  # draws are less
POSITIVE, NEGATIVE = 1, 0


@dataclasses.dataclass(frozen=True, slots=True)
class LeastDraws:
    """The smallest draws of the positives (``label`` 1) or negatives (0) of a topic in one shard, ascending."""

    topic_id: int
    label: int
    draws: tuple[int, ...]


class DrawCollector:
    """Collects the smallest draws of a shard."""

    def __init__(self) -> None:
        self._draws: dict[tuple[int, int], list[int]] = collections.defaultdict(list)

    def add(self, topic_id: int, label: int, number: int) -> None:
        """Adds the draw of one label."""
        draws = self._draws[topic_id, label]
        draws.append(number)
        if len(draws) >= 2 * LEAST:
            draws[:] = heapq.nsmallest(LEAST, draws)

    def least(self) -> Iterator[LeastDraws]:
        """Yields the smallest draws by topic and label."""
        for (topic_id, label), draws in sorted(self._draws.items()):
            yield LeastDraws(topic_id, label, tuple(heapq.nsmallest(LEAST, draws)))


def merge_draws(parts: Iterable[LeastDraws]) -> dict[tuple[int, int], tuple[int, ...]]:
    """Returns the smallest draws by (topic, label) over all shards, ascending."""
    merged = DrawCollector()
    for part in parts:
        for number in part.draws:
            merged.add(part.topic_id, part.label, number)
    return {(least.topic_id, least.label): least.draws for least in merged.least()}


def draw(doc_id: str, topic: str) -> int:
    """Returns a number below `DRAWS` that depends only on the label: other topics do not change a topic's sample."""
    return int.from_bytes(hashlib.blake2b(f"{doc_id}:{topic}".encode(), digest_size=6).digest(), "big")


def wanted_labels(positives: int, negatives: int, ratio: float) -> tuple[int, int]:
    """Returns how many positives and negatives of a topic stay, so that their ratio is ``ratio``.

    Labels are dropped from one side only, the one in excess; at least one of it stays. A topic without labels of one
    side loses all of the other: they would teach its logit a constant.

    >>> wanted_labels(100, 40, 0.25), wanted_labels(10, 400, 0.25), wanted_labels(5, 0, 0.25)
    ((10, 40), (10, 40), (0, 0))

    Args:
      positives: number found.
      negatives: number found.
      ratio: positives divided by negatives; 0 keeps all labels.
    """
    if not ratio:
        return positives, negatives
    if not positives or not negatives:
        return 0, 0
    if positives > ratio * negatives:
        return max(1, int(ratio * negatives + 0.5)), negatives
    return positives, min(negatives, max(1, int(positives / ratio + 0.5)))


def bound_of(wanted: int, found: int, least: Sequence[int]) -> int:
    """Returns the bound that the draws of ``wanted`` of ``found`` labels are below.

    Args:
      wanted: number of labels to keep.
      found: number of labels.
      least: the smallest of their draws, ascending.
    """
    if wanted >= found:
        return DRAWS
    return least[wanted] if wanted < len(least) else DRAWS * wanted // found


def keep_bounds(
    counts: Mapping[int, tuple[int, int]], draws: Mapping[tuple[int, int], Sequence[int]], ratio: float
) -> dict[int, tuple[int, int]]:
    """Returns for each topic the bounds of the draws of the positives and of the negatives that stay.

    Args:
      counts: (positives, negatives) by topic.
      draws: see :func:`merge_draws`.
      ratio: wanted ratio of positives to negatives; 0 keeps all labels.
    """
    bounds = {}
    for topic, (positives, negatives) in counts.items():
        keep_positives, keep_negatives = wanted_labels(positives, negatives, ratio)
        bounds[topic] = (
            bound_of(keep_positives, positives, draws.get((topic, POSITIVE), ())),
            bound_of(keep_negatives, negatives, draws.get((topic, NEGATIVE), ())),
        )
    return bounds
