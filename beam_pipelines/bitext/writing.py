"""Writes mined pairs as TSV and with their scores; each pair of texts once, each sentence in one pair."""

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Final

from ...formats import files
from ...formats.parquet import read_records
from ...formats.records import MinedPair, Rejection
from ..shards import Shard
from .readers import PAIRS

SCORES: Final = "scores"  # stream of `MinedPair`
_AT_ONCE: Final = 200_000  # pairs that one worker sorts


@dataclasses.dataclass(frozen=True)
class Part:
    """What one shard writes.

    Attributes:
      paths: all tasks of a pair of languages.
      part: number of the part: the pairs whose target text has this remainder.
      parts: number of parts.
    """

    paths: tuple[str, ...]
    part: int
    parts: int


def plan_writing(paths: dict[str, list[str]], counts: dict[str, int]) -> list[Part]:
    """Returns the parts, given the files of the tasks and the number of pairs by pair of languages."""
    return [
        Part(tuple(paths[languages]), part, parts)
        for languages in sorted(paths)
        if counts.get(languages)
        for parts in [-(-counts[languages] // _AT_ONCE)]
        for part in range(parts)
    ]


def write_pairs(shard: Shard, part: Part) -> None:
    """Writes one part, the highest margins first."""
    found = [
        pair
        for path in part.paths
        for pair in read_records(path, MinedPair)
        if zlib.crc32(pair.target.encode()) % part.parts == part.part
    ]
    shard.read(len(found))
    found.sort(key=_order)
    kept = _unique(shard, found)
    shard.written(len(kept))
    writer = shard.records(SCORES, MinedPair)
    lines = []
    for pair in kept:
        writer.write(pair)
        lines.append(f"{pair.source_language}\t{pair.target_language}\t{pair.source}\t{pair.target}")
    files.write_whole(shard.path(PAIRS, "tsv"), "".join(f"{line}\n" for line in lines).encode())


def _order(pair: MinedPair) -> tuple[float, str, str, str, str]:
    return -pair.margin, pair.source, pair.target, pair.source_doc, pair.target_doc


def _unique(shard: Shard, pairs: Sequence[MinedPair]) -> list[MinedPair]:
    """Drops repeated pairs of texts and target sentences: articles at the end of a block are in two blocks."""
    texts: set[tuple[str, str]] = set()
    sentences: set[tuple[str, int]] = set()
    kept = []
    for pair in pairs:
        key = f"{pair.source_doc}:{pair.source_number} {pair.target_doc}:{pair.target_number}"
        sample = f"{pair.source[:240]} | {pair.target[:240]}"
        if (pair.source, pair.target) in texts:
            shard.reject(key, Rejection.REPEATED_PAIR, "the same texts elsewhere", sample)
        elif (pair.target_doc, pair.target_number) in sentences:
            shard.reject(key, Rejection.SENTENCE_TAKEN, "a side has a better translation", sample)
        else:
            texts.add((pair.source, pair.target))
            sentences.add((pair.target_doc, pair.target_number))
            kept.append(pair)
    return kept
