"""Translation pairs from TSV: source language, target language, source text and target text on each line."""

import zlib
from collections.abc import Iterator
from typing import Final

from ...formats import files
from ...formats.records import Failure
from ..shards import Shard
from .pairs import (
    RANGE_BYTES,
    BitextPart,
    TranslationPair,
    accept_pair,
    base_name,
    decode_line,
    is_compressed,
    read_lines,
)

_COLUMNS: Final = 4


def plan(path: str, size: int = RANGE_BYTES) -> list[BitextPart]:
    """Cuts a file into ranges of ``size`` bytes; a compressed file is one part."""
    total = files.size_of(path)
    if is_compressed(path) or total <= size:
        return [BitextPart((path,))]
    starts = list(range(0, total, size))
    return [BitextPart((path,), (start,), end) for start, end in zip(starts, [*starts[1:], None], strict=True)]


def read(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of the lines that begin in the part; skips blank lines."""
    name = base_name(part.paths[0])
    for offset, line in _lines_of(shard, part):
        shard.read()
        pair = _parse(shard, f"{name}:{offset}", line)
        if pair is not None:
            yield pair


def _parse(shard: Shard, key: str, line: bytes) -> TranslationPair | None:
    text = decode_line(shard, key, line)
    if text is None:
        return None
    cells = text.split("\t")
    if len(cells) != _COLUMNS:
        shard.fail(
            key,
            Failure.BROKEN_RECORD,
            f"got {len(cells)} columns, expected {_COLUMNS}: source language, target language, source, target",
            text,
        )
        return None
    return accept_pair(shard, key, (cells[0], cells[1]), (cells[2], cells[3]))


def _lines_of(shard: Shard, part: BitextPart) -> Iterator[tuple[int, bytes]]:
    (path,), (start,) = part.paths, part.starts
    offset = start
    lines = read_lines(path, max(start - 1, 0))
    try:
        if start:
            next(lines, None)  # a line that began before this range belongs to the previous range
        for offset, line in lines:
            if part.end is not None and offset >= part.end:
                return
            if line.strip():
                yield offset, line
    except (EOFError, OSError, zlib.error) as error:
        shard.read()
        shard.fail(f"{base_name(path)}:{offset}", Failure.TRUNCATED, f"after the line that begins here: {error}")
