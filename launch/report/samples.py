"""Samples for people's eyes: rejected records by reason, random triplets."""

import collections
import random
from typing import Any

from ...beam_pipelines import files
from ...beam_pipelines.parquet import read_batches, read_records, read_stream, shard_paths
from ...beam_pipelines.records import DeadLetter, Triplet

_PER_REASON = 5
_TRIPLETS = 100


def rejected(output: str) -> dict[str, list[DeadLetter]]:
    """Up to five dead letters of each (job, reason), the first in order of shards."""
    found: dict[str, list[DeadLetter]] = collections.defaultdict(list)
    for path in files.list_files(f"{output}/*/dead_letters/**"):
        if not path.endswith(".parquet"):
            continue
        job = path[len(output) :].strip("/").partition("/")[0]
        for letter in read_records(path, DeadLetter):
            kept = found[f"{job}: {letter.reason}"]
            if len(kept) < _PER_REASON:
                kept.append(letter)
    return dict(sorted(found.items()))


def triplets(output: str) -> list[dict[str, Any]]:
    """A hundred triplets drawn by reservoir sampling, with the titles, publishers and dates of their documents."""
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
    return [{role: documents.get(getattr(triplet, role), {}) for role in ("anchor", "positive", "negative")} for triplet in chosen]


def _documents(folder: str, wanted: set[str]) -> dict[str, dict[str, str]]:
    found = {}
    for path in shard_paths(folder):
        for batch in read_batches(path, ["doc_id", "title", "publisher", "byline_date", "url"]):
            for row in batch.to_pylist():
                if row["doc_id"] in wanted:
                    found[row["doc_id"]] = {name: str(value) for name, value in row.items()}
    return found
