"""Translation pairs from two aligned files (Moses, OPUS): line n of one is the translation of line n of the other."""

import re
import zlib
from collections.abc import Iterator
from typing import Final

from ...errors import InputError
from ...formats import files
from ..shards import Shard
from .pairs import (
    RANGE_BYTES,
    BitextPart,
    TranslationPair,
    accept_pair,
    base_name,
    decode_line,
    is_compressed,
    language_tag,
    open_plain,
    read_lines,
)

_BLOCK_BYTES: Final = 1 << 20
_NAME: Final = re.compile(
    r".+\.(?P<language>(?!(txt|gz)\b)[a-z]{2,3}([-_][a-z0-9]{2,8})*)(\.txt)?(\.gz)?", re.IGNORECASE
)


def plan(source: str, target: str, size: int = RANGE_BYTES) -> list[BitextPart]:
    """Checks that two files are aligned and cuts them into parts of about ``size`` bytes of the source.

    Compressed files are one part.

    Raises:
      InputError: if a file is missing or broken, its name has no language, or the numbers of lines differ.
    """
    languages = [language_of(source), language_of(target)]
    if languages[0] == languages[1]:
        raise InputError(
            f"both files are named {languages[0]}",
            path=f"{source},{target}",
            field="--bitext",
            remedy="give a source and a target file with the suffixes of two languages",
        )
    lines = [count_lines(source), count_lines(target)]
    if lines[0] != lines[1]:
        raise InputError(
            f"got {lines[0]} and {lines[1]} lines, expected the same number",
            path=f"{source},{target}",
            field="--bitext",
            remedy="give two files in which the same lines are translations of each other",
        )
    if is_compressed(source) or is_compressed(target) or files.size_of(source) <= size:
        return [BitextPart((source, target), (0, 0))]
    starts = list(_starts(source, target, size))
    ends = [*(first for first, _ in starts[1:]), None]
    return [BitextPart((source, target), start, end) for start, end in zip(starts, ends, strict=True)]


def _starts(source: str, target: str, size: int) -> Iterator[tuple[int, int]]:
    due = 0
    for (here, _), (there, _) in zip(read_lines(source), read_lines(target), strict=True):
        if here >= due:
            yield here, there
            due = (here // size + 1) * size


def read(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of the lines that begin in the part."""
    (source, target), (source_start, target_start) = part.paths, part.starts
    languages = (language_of(source), language_of(target))
    name = base_name(source)
    for (offset, left), (_, right) in zip(
        read_lines(source, source_start), read_lines(target, target_start), strict=True
    ):
        if part.end is not None and offset >= part.end:
            return
        shard.read()
        key = f"{name}:{offset}"
        texts = [decode_line(shard, key, left)]
        if texts[0] is not None:  # count one failure per pair
            texts.append(decode_line(shard, key, right))
        if texts[0] is not None and texts[1] is not None:
            pair = accept_pair(shard, key, languages, (texts[0], texts[1]))
            if pair is not None:
                yield pair


def language_of(path: str) -> str:
    """Returns the language in the name of a file: ``corpus.de``, ``corpus.pt-BR.gz``, ``newstest.deu.txt``.

    Raises:
      InputError: if the name has no language.
    """
    found = _NAME.fullmatch(base_name(path))
    tag = language_tag(found["language"]) if found else None
    if tag is None:
        raise InputError(
            "the name has no language",
            path=path,
            field="--bitext",
            remedy="end the name of each file in its language, as in corpus.de,corpus.en (.txt and .gz may follow)",
        )
    return tag


def count_lines(path: str) -> int:
    r"""Counts the lines of a file; text after the last ``\n`` is a line.

    Raises:
      InputError: if the file is missing, or is compressed and broken.
    """
    lines, last = 0, b"\n"
    try:
        with open_plain(path) as source:
            while block := source.read(_BLOCK_BYTES):
                lines += block.count(b"\n")
                last = block[-1:]
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"cannot be read to its end: {error}", path=path, field="--bitext", remedy="fetch the file again"
        ) from error
    return lines + (last != b"\n")
