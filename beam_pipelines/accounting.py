"""Record accounting: in = out + rejected + failed at every step, or the job fails."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

# In tallies, of articles that a user brings:
UNREAD_FIELD: Final = "unread_field:"  # before the name of a field that no rule reads
UNREAD_DATES: Final = "unread_dates"  # articles without a byline date whose row states one
CUT_BODIES: Final = "cut_bodies"  # articles whose body was too long
MARKUP_IN_BODIES: Final = "markup_in_bodies"  # articles whose body has HTML tags


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counts of the records of a shard, a phase or a job.

    Attributes:
      read: number of records read.
      written: number of records passed on.
      rejected: number of rejected records by :class:`~newsembed.formats.records.Rejection`.
      failed: number of failed records by :class:`~newsembed.formats.records.Failure`.
      tallies: further named numbers (neighbors found, tokens packed, …) that are not part of the balance.
    """

    read: int = 0
    written: int = 0
    rejected: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tallies: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def balance(self) -> int:
        """Number of records that are not accounted for; 0 unless there is a bug."""
        return self.read - self.written - sum(self.rejected.values()) - sum(self.failed.values())

    def to_json(self) -> dict[str, Any]:
        """Returns the counts as they are in a report or a manifest."""
        return {
            "in": self.read,
            "out": self.written,
            "rejected": dict(sorted(self.rejected.items())),
            "failed": dict(sorted(self.failed.items())),
            "tallies": dict(sorted(self.tallies.items())),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Counts":
        """Returns the counts that :meth:`to_json` wrote."""
        return Counts(value["in"], value["out"], value["rejected"], value["failed"], value["tallies"])


def add_counts(parts: Iterable[Counts]) -> Counts:
    """Returns the sum of the counts of shards that worked in parallel."""
    listed = list(parts)
    return Counts(
        sum(part.read for part in listed),
        sum(part.written for part in listed),
        _sum_named(part.rejected for part in listed),
        _sum_named(part.failed for part in listed),
        _sum_named(part.tallies for part in listed),
    )


def chain_counts(phases: Iterable[Counts]) -> Counts:
    """Returns the counts of phases that processed the same records in sequence: in of the first, out of the last."""
    listed = list(phases)
    if not listed:
        return Counts()
    total = add_counts(listed)
    return dataclasses.replace(total, read=listed[0].read, written=listed[-1].written)


def _sum_named(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: collections.Counter[str] = collections.Counter()
    for part in parts:
        total.update(part)
    return dict(total)
