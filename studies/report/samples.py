"""Samples to look at: rejected records by reason, and random triplets."""

import collections
import dataclasses
import random
from typing import Any

from ...formats import files
from ...formats.parquet import read_batches, read_stream, shard_paths
from ...formats.records import DeadLetter, Triplet

_PER_REASON = 10
_LETTER = [field.name for field in dataclasses.fields(DeadLetter)]
_TRIPLETS = 100


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


def rejected(output: str, per_reason: int = _PER_REASON) -> list[Rejected]:
    """Every reason of every job with its count and a few records, by reservoir sampling.

    Jobs are in the order of their names; the most frequent reason of each comes first.

    Args:
      output: work folder of a build, or the folder of one job.
      per_reason: records of each reason.
    """
    draw = random.Random(0)
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    chosen: dict[tuple[str, str, str], list[DeadLetter]] = collections.defaultdict(list)
    found = [path for part in ("", "*/") for path in files.list_files(f"{output}/{part}dead_letters/**")]
    for path in found:
        if not path.endswith(".parquet"):
            continue
        job = path.partition("/dead_letters/")[0].rpartition("/")[2]
        for batch in read_batches(path, _LETTER):
            for row, (reason, outcome) in enumerate(
                zip(batch.column("reason").to_pylist(), batch.column("outcome").to_pylist(), strict=True)
            ):
                key = (job, reason, outcome)
                place = draw.randrange(counts[key] + 1)
                counts[key] += 1
                if counts[key] <= per_reason:
                    chosen[key].append(_letter(batch, row))
                elif place < per_reason:
                    chosen[key][place] = _letter(batch, row)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    return [Rejected(*key, count=count, letters=chosen[key]) for key, count in ordered]


def _letter(batch: Any, row: int) -> DeadLetter:
    return DeadLetter(*(batch.column(name)[row].as_py() for name in _LETTER))


def triplets(output: str) -> list[dict[str, Any]]:
    """At most a hundred triplets, by reservoir sampling, with titles, publishers and dates of their documents."""
    folder = f"{output}/triplets/triplets"
    if not files.list_files(f"{folder}/part-*.parquet"):
        return []
    draw = random.Random(0)
    chosen: list[Triplet] = []
    for number, triplet in enumerate(read_stream(folder, Triplet)):
        if len(chosen) < _TRIPLETS:
            chosen.append(triplet)
        elif (place := draw.randrange(number + 1)) < _TRIPLETS:
            chosen[place] = triplet
    wanted = {doc_id for triplet in chosen for doc_id in (triplet.anchor, triplet.positive, triplet.negative)}
    documents = _documents(f"{output}/clean/articles", wanted)
    return [
        {role: documents.get(getattr(triplet, role), {}) for role in ("anchor", "positive", "negative")}
        for triplet in chosen
    ]


def _documents(folder: str, wanted: set[str]) -> dict[str, dict[str, str]]:
    found = {}
    for path in shard_paths(folder):
        for batch in read_batches(path, ["doc_id", "title", "publisher", "byline_date", "url", "language"]):
            for row in batch.to_pylist():
                if row["doc_id"] in wanted:
                    found[row["doc_id"]] = {name: str(value) for name, value in row.items()}
    return found
