"""``skew.tsv``: positives and negatives of every topic before and after sampling, in total and by language."""

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
    "remark",
)
_ALL = "all"
FEW_LABELS = 10  # fewer of a side are named in the column `remark`


@dataclasses.dataclass(frozen=True, slots=True)
class LabelCount:
    """Numbers of positives and negatives of a topic in one shard of articles, for one language and publisher."""

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
        """Yields the counts, sorted by topic, language and publisher."""
        for key in sorted(self._counts):
            yield LabelCount(*key, *self._counts[key])


@dataclasses.dataclass(slots=True)
class Totals:
    """Numbers of labels of a topic, and the publishers that have a positive."""

    positives: int = 0
    negatives: int = 0
    publishers: set[str] = dataclasses.field(default_factory=set)

    def add(self, count: LabelCount) -> None:
        """Adds the counts of a shard."""
        self.positives += count.positives
        self.negatives += count.negatives
        if count.positives:
            self.publishers.add(count.publisher)


def total_labels(counts: Iterable[LabelCount]) -> dict[tuple[int, str], Totals]:
    """Returns totals by topic and language; the language "all" has the totals over all languages."""
    totals: dict[tuple[int, str], Totals] = collections.defaultdict(Totals)
    for count in counts:
        for language in (_ALL, count.language):
            totals[count.topic_id, language].add(count)
    return dict(totals)


def topic_totals(counts: Iterable[LabelCount]) -> dict[int, Totals]:
    """Returns totals by topic over all languages."""
    return {topic_id: totals for (topic_id, language), totals in total_labels(counts).items() if language == _ALL}


def skew_rows(
    topics: Mapping[int, str], before: Iterable[LabelCount], after: Iterable[LabelCount]
) -> Iterator[tuple[object, ...]]:
    """Yields the rows of the table: for each topic one of all languages, then one per language.

    ``ratio`` is the ratio of positives to negatives after sampling, empty if there are no negatives. ``remark`` of a
    topic's first row names the sides without labels, or with fewer than :data:`FEW_LABELS`.

    Args:
      topics: name by topic.
      before: counts before sampling.
      after: counts after sampling.
    """
    found, sampled = total_labels(before), total_labels(after)
    yield _COLUMNS
    every = {(topic_id, _ALL) for topic_id in topics} | found.keys()
    for topic_id, language in sorted(every, key=lambda key: (key[0], key[1] != _ALL, key[1])):
        one, kept = found.get((topic_id, language), Totals()), sampled.get((topic_id, language), Totals())
        counts = (len(one.publishers), one.positives, one.negatives, kept.positives, kept.negatives)
        ratio = f"{kept.positives / kept.negatives:.4f}" if kept.negatives else ""
        yield (topic_id, topics[topic_id], language, *counts, ratio, _remark(one, kept) if language == _ALL else "")


def _remark(found: Totals, kept: Totals) -> str:
    """Names what a topic lacks: "no_negatives" where none was found, "few_positives" where few stay."""
    remarks = []
    for side in ("positives", "negatives"):
        if not getattr(found, side):
            remarks.append(f"no_{side}")
        elif getattr(kept, side) < FEW_LABELS:
            remarks.append(f"few_{side}")
    return " ".join(remarks)
