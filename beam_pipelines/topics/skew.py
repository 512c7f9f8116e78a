"""``skew.tsv``: positives and negatives of every topic before and after sampling, in all and by language."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

_COLUMNS = (
    "topic_id",
    "topic",
    "language",
    "publishers",
    "positives",
    "negatives",
    "sampled_positives",
    "sampled_negatives",
    "ratio",
)
_ALL = "all"


@dataclasses.dataclass(frozen=True, slots=True)
class LabelCount:
    """Positives and negatives of a topic in one shard of articles, of one language and publisher."""

    topic_id: int
    language: str
    publisher: str
    positives: int
    negatives: int


class LabelCounter:
    """Counts the labels of a shard."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], list[int]] = collections.defaultdict(lambda: [0, 0])

    def add(self, language: str, publisher: str, positives: Iterable[int], negatives: Iterable[int]) -> None:
        """Adds the topics of one article."""
        for side, numbers in enumerate((positives, negatives)):
            for number in numbers:
                self._counts[number, language, publisher][side] += 1

    def counts(self) -> Iterator[LabelCount]:
        for key in sorted(self._counts):
            yield LabelCount(*key, *self._counts[key])


@dataclasses.dataclass(slots=True)
class Totals:
    """Labels of a topic, and the publishers that have a positive."""

    positives: int = 0
    negatives: int = 0
    publishers: set[str] = dataclasses.field(default_factory=set)

    def add(self, count: LabelCount) -> None:
        self.positives += count.positives
        self.negatives += count.negatives
        if count.positives:
            self.publishers.add(count.publisher)


def total_labels(counts: Iterable[LabelCount]) -> dict[tuple[int, str], Totals]:
    """Totals by topic and language, with those of all languages under "all"."""
    totals: dict[tuple[int, str], Totals] = collections.defaultdict(Totals)
    for count in counts:
        for language in (_ALL, count.language):
            totals[count.topic_id, language].add(count)
    return dict(totals)


def topic_totals(counts: Iterable[LabelCount]) -> dict[int, Totals]:
    """Totals by topic."""
    return {topic_id: totals for (topic_id, language), totals in total_labels(counts).items() if language == _ALL}


def skew_rows(
    topics: Mapping[int, str], before: Iterable[LabelCount], after: Iterable[LabelCount]
) -> Iterator[tuple[object, ...]]:
    """The table: a line for each topic, then one for each of its languages.

    ``ratio`` is that of positives to negatives after sampling, empty where there are no negatives.
    """
    found, sampled = total_labels(before), total_labels(after)
    yield _COLUMNS
    every = {(topic_id, _ALL) for topic_id in topics} | found.keys()
    for topic_id, language in sorted(every, key=lambda key: (key[0], key[1] != _ALL, key[1])):
        one, kept = found.get((topic_id, language), Totals()), sampled.get((topic_id, language), Totals())
        counts = (len(one.publishers), one.positives, one.negatives, kept.positives, kept.negatives)
        ratio = f"{kept.positives / kept.negatives:.4f}" if kept.negatives else ""
        yield (topic_id, topics[topic_id], language, *counts, ratio)
