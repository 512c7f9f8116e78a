"""Translation pairs from TSV files: source language, target language, source text, target text on each line."""

import dataclasses
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

from . import files
from .records import Failure
from .shards import Shard
from .texts import language_key

_RANGE_BYTES: Final = 32 << 20
_COLUMNS: Final = 4


@dataclasses.dataclass(frozen=True)
class TranslationPair:
    """One line.

    Attributes:
      key: file and byte offset of the line, unique.
      languages: ``"<source>-<target>"``, a part of paths.
      source: text.
      target: text.
    """

    key: str
    languages: str
    source: str
    target: str


def byte_ranges(path: str, size: int = _RANGE_BYTES) -> list[tuple[int, int | None]]:
    """Splits a file into ranges that can be read apart; ``None`` stands for its end. A .gz file has no such ranges."""
    total = files.size_of(path)
    if path.endswith(".gz") or total <= size:
        return [(0, None)]
    starts = list(range(0, total, size))
    return list(zip(starts, [*starts[1:], None], strict=True))


def read_pairs(shard: Shard, path: str, start: int = 0, end: int | None = None) -> Iterator[TranslationPair]:
    """Pairs of the lines that begin in ``[start, end)``; counts each line as read, and broken ones as failed."""
    for offset, line in _read_lines(shard, path, start, end):
        shard.read()
        key = f"{path.rpartition('/')[2]}:{offset}"
        try:
            cells = line.decode("utf-8").rstrip("\r\n").split("\t")
        except UnicodeDecodeError as error:
            shard.fail(key, Failure.UNDECODABLE, str(error), line.decode("utf-8", errors="replace"))
            continue
        problem = _problem(cells)
        if problem:
            shard.fail(key, Failure.BROKEN_RECORD, problem, line.decode("utf-8"))
        else:
            yield TranslationPair(key, f"{cells[0]}-{cells[1]}", cells[2], cells[3])


def _problem(cells: list[str]) -> str:
    if len(cells) != _COLUMNS:
        return f"got {len(cells)} columns, expected {_COLUMNS}: source language, target language, source, target"
    for language in cells[:2]:
        if not language or language_key(language) is None:
            return f"language {language!r} is no BCP-47 tag"
    return ""


def _read_lines(shard: Shard, path: str, start: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    with files.open_read(path) as raw:
        source = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if path.endswith(".gz") else raw
        offset = start
        if start:
            source.seek(start - 1, io.SEEK_SET)
            offset += len(source.readline()) - 1  # the line that began before this range is the last range's
        try:
            while end is None or offset < end:
                line = source.readline()
                if not line:
                    return
                if line.strip():
                    yield offset, line
                offset += len(line)
        except (EOFError, OSError, zlib.error) as error:
            shard.read()
            shard.fail(f"{path.rpartition('/')[2]}:{offset}", Failure.TRUNCATED, str(error))
