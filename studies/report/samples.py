"""Samples to look at: rejected records by reason, and random triplets."""

import collections
import dataclasses
import random
from typing import Any, Final

from ...formats import files
from ...formats.parquet import read_batches, read_stream, shard_paths
from ...formats.records import DeadLetter, Triplet

_PER_REASON: Final = 10
_TRIPLETS: Final = 100
_LETTER: Final = [field.name for field in dataclasses.fields(DeadLetter)]
_SHOWN: Final = ["doc_id", "title", "publisher", "byline_date", "language"]


@dataclasses.dataclass(frozen=True)
class Rejected:
    """The records of one job that were rejected or failed for one reason.

    Attributes:
      job: its name.
      reason: a :class:`~...beam_pipelines.records.Rejection` or ``Failure`` value.
      outcome: "rejected" or "failed".
      count: number of records.
      letters: a random sample of them.
    """

    job: str
    reason: str
    outcome: str
    count: int
    letters: list[DeadLetter]


def _place(number: int, most: int, draw: random.Random) -> int:
    """Where item ``number`` of a stream goes in a random sample of ``most`` (reservoir sampling), if below ``most``."""
    place = draw.randrange(number + 1)
    return number if number < most else place


def rejected(output: str, per_reason: int = _PER_REASON) -> list[Rejected]:
    """Every reason of every job with its count and a few records.

    Jobs are in the order of their names; the most frequent reason of each comes first.

    Args:
      output: work folder of a build, or the folder of one job.
      per_reason: records of each reason.
    """
    draw = random.Random(0)
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    chosen: dict[tuple[str, str, str], list[DeadLetter]] = collections.defaultdict(list)
    found = [path for part in ("", "*/") for path in files.list_files(f"{part}dead_letters/**", output)]
    for path in (path for path in found if path.endswith(".parquet")):
        job = path.partition("/dead_letters/")[0].rpartition("/")[2]
        for batch in read_batches(path, _LETTER):
            columns = (batch.column(name).to_pylist() for name in ("reason", "outcome"))
            for row, (reason, outcome) in enumerate(zip(*columns, strict=True)):
                key = (job, reason, outcome)
                place = _place(counts[key], per_reason, draw)
                if place < per_reason:
                    letter = DeadLetter(*(batch.column(name)[row].as_py() for name in _LETTER))
                    chosen[key][place : place + 1] = [letter]
                counts[key] += 1
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    return [Rejected(*key, count=count, letters=chosen[key]) for key, count in ordered]


def triplets(output: str) -> list[dict[str, Any]]:
    """At most a hundred random triplets, with titles, publishers and dates of their documents."""
    folder = f"{output}/triplets/triplets"
    if not files.list_files("part-*.parquet", folder):
        return []
    draw, chosen = random.Random(0), list[Triplet]()
    for number, triplet in enumerate(read_stream(folder, Triplet)):
        place = _place(number, _TRIPLETS, draw)
        if place < _TRIPLETS:
            chosen[place : place + 1] = [triplet]
    roles = ("anchor", "positive", "negative")
    wanted = {getattr(triplet, role) for triplet in chosen for role in roles}
    documents = {
        row["doc_id"]: {name: str(value) for name, value in row.items()}
        for path in shard_paths(f"{output}/clean/articles")
        for batch in read_batches(path, _SHOWN)
        for row in batch.to_pylist()
        if row["doc_id"] in wanted
    }
    return [{role: documents.get(getattr(triplet, role), {}) for role in roles} for triplet in chosen]
