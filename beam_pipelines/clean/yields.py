"""Counts the outcome of each publisher's articles, and finds publishers with a lower yield than in earlier runs.

When a publisher changes its template, authors, dates or bodies can be lost from one day to the next. The totals of a
crawl do not show this.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.records import Rejection

TABLE: Final = "yields.tsv"
DUPLICATES: Final = (Rejection.DUPLICATE_URL, Rejection.DUPLICATE_BODY, Rejection.NEAR_DUPLICATE)
_KEPT: Final = ""  # in place of a reason
_COLUMNS: Final = ("publisher", "in", "kept", "duplicates", "yield", "reasons")
_MIN_ARTICLES_OF_LOST_PUBLISHER: Final = 20  # records in earlier runs


@dataclasses.dataclass(frozen=True)
class PublisherYield:
    """The outcome of the articles of one publisher.

    Attributes:
      publisher: publisher as in the articles.
      read: number of articles read.
      kept: number of articles in the result.
      rejected: number of rejected articles by :class:`~newsembed.formats.records.Rejection` value.
    """

    publisher: str
    read: int
    kept: int
    rejected: Mapping[str, int]

    @property
    def duplicates(self) -> int:
        """Number of articles rejected as duplicates."""
        return sum(self.rejected.get(reason.value, 0) for reason in DUPLICATES)

    @property
    def judged(self) -> int:
        """Number of articles without duplicates, whose number depends on the other articles of the run."""
        return self.read - self.duplicates

    @property
    def rate(self) -> float:
        """Share of the judged articles that is kept, in [0, 1]; 0 if there are none."""
        return self.kept / self.judged if self.judged else 0.0


@dataclasses.dataclass(frozen=True)
class YieldAlarm:
    """A publisher with a lower yield than in earlier runs.

    Attributes:
      publisher: publisher as in the articles.
      kind: "dropped", or "lost" if the run has no article of the publisher.
      before: yield of the earlier runs, in [0, 1].
      now: yield of this run, in [0, 1].
      judged_before: number of articles behind ``before``.
      judged_now: number of articles behind ``now``.
      p_value: p-value of Fisher's exact test, see :func:`find_alarms`; 1 for a lost publisher.
      reason: the rejection whose share grew most; "" for a lost publisher.
    """

    publisher: str
    kind: str
    before: float
    now: float
    judged_before: int
    judged_now: int
    p_value: float
    reason: str


class YieldCounter:
    """Counts the outcomes of articles by publisher and reason."""

    def __init__(self) -> None:
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def keep(self, publisher: str) -> None:
        """Counts an article that is kept."""
        self._counts[publisher, _KEPT] += 1

    def reject(self, publisher: str, reason: Rejection) -> None:
        """Counts an article that is rejected."""
        self._counts[publisher, reason.value] += 1

    def to_json(self) -> list[tuple[str, str, int]]:
        """Returns (publisher, reason, count) tuples, sorted; the reason of kept articles is ""."""
        return [(publisher, reason, count) for (publisher, reason), count in sorted(self._counts.items())]


def merge_counts(parts: Iterable[Iterable[tuple[str, str, int]]]) -> list[PublisherYield]:
    """Returns the table of a run from the counts of its shards, sorted by number of articles, largest first."""
    kept: collections.Counter[str] = collections.Counter()
    rejected: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for part in parts:
        for publisher, reason, count in part:
            name = " ".join(publisher.split())  # a tab would break the table
            rejected[name].update({reason: count} if reason != _KEPT else {})
            kept[name] += count if reason == _KEPT else 0
    rows = [
        PublisherYield(name, kept[name] + reasons.total(), kept[name], dict(reasons))
        for name, reasons in rejected.items()
    ]
    return sorted(rows, key=lambda row: (-row.read, row.publisher))


def write_yields(path: str, rows: Sequence[PublisherYield]) -> None:
    """Writes the table as TSV: publisher, in, kept, duplicates, yield, and the reasons by descending count."""
    lines = ["\t".join(_COLUMNS)]
    for row in rows:
        reasons = " ".join(
            f"{name}:{count}" for name, count in sorted(row.rejected.items(), key=lambda item: (-item[1], item[0]))
        )
        lines.append(f"{row.publisher}\t{row.read}\t{row.kept}\t{row.duplicates}\t{row.rate:.4f}\t{reasons}")
    with files.open_write(path) as sink:
        sink.write("".join(f"{line}\n" for line in lines).encode())


def read_yields(folder: str) -> list[PublisherYield]:
    """Returns the table in the output folder of an earlier run.

    Raises:
      InputError: if the folder has no table, or a line of it is invalid.
    """
    path = f"{folder.rstrip('/')}/{TABLE}"
    if not files.exists(path):
        raise InputError(
            f"contains no {TABLE}", path=folder, remedy="give the output folder of a `newsembed clean` run"
        )
    with files.open_read(path) as source:
        heading, *lines = source.read().decode("utf-8").rstrip("\n").split("\n")
    if tuple(heading.split("\t")) != _COLUMNS:
        raise InputError(
            f"got the columns {heading.split(chr(9))}, expected {list(_COLUMNS)}",
            path=path,
            remedy="do not edit the table",
        )
    rows = []
    for number, line in enumerate(lines, start=2):
        try:
            publisher, read, kept, _, _, reasons = line.split("\t")
            counts = (pair.rpartition(":") for pair in reasons.split())
            rows.append(
                PublisherYield(publisher, int(read), int(kept), {name: int(count) for name, _, count in counts})
            )
        except ValueError as error:
            raise InputError(f"line {number}: {error}", path=path, remedy="do not edit the table") from error
    return rows


def pool(tables: Iterable[Sequence[PublisherYield]]) -> dict[str, PublisherYield]:
    """Returns the sum of the tables of several runs, by publisher."""
    pooled: dict[str, PublisherYield] = {}
    for table in tables:
        for row in table:
            there = pooled.get(row.publisher, PublisherYield(row.publisher, 0, 0, {}))
            rejected = collections.Counter(there.rejected)
            rejected.update(row.rejected)
            pooled[row.publisher] = PublisherYield(
                row.publisher, there.read + row.read, there.kept + row.kept, dict(rejected)
            )
    return pooled


def find_alarms(
    now: Sequence[PublisherYield], history: Mapping[str, PublisherYield], least_drop: float, false_discovery_rate: float
) -> list[YieldAlarm]:
    """Returns the publishers whose yield dropped, and the lost publishers.

    The kept and rejected articles of a publisher, now and before, form a two-by-two table. Fisher's exact test
    (one-sided) gives the probability of so few kept articles if nothing changed. The Benjamini-Hochberg procedure
    (1995) selects publishers at the false discovery rate. The drop must also be large enough, because with many
    articles even small drops are significant.

    Args:
      now: the table of this run.
      history: tables of earlier runs, see :func:`pool`.
      least_drop: minimum drop of the yield, in [0, 1].
      false_discovery_rate: expected share of false alarms among the dropped publishers.

    Returns:
      Dropped publishers by p-value, then lost publishers by descending number of articles.
    """
    from scipy.stats import false_discovery_control, hypergeom

    known = [
        (row, history[row.publisher])
        for row in now
        if row.judged and row.publisher in history and history[row.publisher].judged
    ]
    alarms = []
    if known:
        kept, judged, kept_before, judged_before = np.array(
            [(row.kept, row.judged, before.kept, before.judged) for row, before in known], np.int64
        ).T
        p_values = hypergeom.cdf(kept, judged + judged_before, kept + kept_before, judged).clip(0, 1)
        for (row, before), p_value, adjusted in zip(
            known, p_values.tolist(), false_discovery_control(p_values).tolist(), strict=True
        ):
            if adjusted <= false_discovery_rate and before.rate - row.rate >= least_drop:
                alarms.append(
                    YieldAlarm(
                        row.publisher,
                        "dropped",
                        before.rate,
                        row.rate,
                        before.judged,
                        row.judged,
                        p_value,
                        _grown_reason(row, before),
                    )
                )
    here = {row.publisher for row in now}
    lost = [
        YieldAlarm(name, "lost", before.rate, 0.0, before.judged, 0, 1.0, "")
        for name, before in history.items()
        if name not in here and before.read >= _MIN_ARTICLES_OF_LOST_PUBLISHER
    ]
    return [
        *sorted(alarms, key=lambda alarm: (alarm.p_value, alarm.publisher)),
        *sorted(lost, key=lambda alarm: (-alarm.judged_before, alarm.publisher)),
    ]


def _grown_reason(now: PublisherYield, before: PublisherYield) -> str:
    rules = sorted(set(now.rejected) - set(DUPLICATES))
    return max(
        rules,
        key=lambda name: now.rejected[name] / now.judged - before.rejected.get(name, 0) / before.judged,
        default="",
    )


def alarm_to_json(alarm: YieldAlarm) -> dict[str, Any]:
    """Returns an alarm as it is written to the manifest."""
    rounded = {"before": round(alarm.before, 4), "now": round(alarm.now, 4), "p_value": float(f"{alarm.p_value:.3g}")}
    return {**dataclasses.asdict(alarm), **rounded}
