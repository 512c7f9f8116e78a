"""Shared code of the readers of translation pairs: the pair, its checks, and reading of lines from large files."""

import codecs
import contextlib
import dataclasses
import functools
import gzip
import io
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

from ...formats import files
from ...formats.records import Failure, Rejection
from ..shards import Shard
from ..texts import language_key

RANGE_BYTES: Final = 32 << 20  # size of one part of a file that can be cut
# Largest line in bytes, and largest translation unit in characters. Only a broken file has longer ones.
MOST_BYTES: Final = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class TranslationPair:
    """A text and its translation.

    Attributes:
      key: file and byte offset, unique within a file.
      source_language: BCP-47 tag.
      target_language: BCP-47 tag.
      source: text, not blank.
      target: text, not blank.
    """

    key: str
    source_language: str
    target_language: str
    source: str
    target: str

    @property
    def languages(self) -> str:
        """``"<source>-<target>"``, used in paths."""
        return f"{self.source_language}-{self.target_language}"


@dataclasses.dataclass(frozen=True)
class BitextPart:
    """The part of a file, or of two aligned files, that one shard reads.

    Attributes:
      paths: a TSV or TMX file, or a source file and the aligned target file.
      starts: byte offset in each file at which the part begins.
      end: records that begin at or after this byte of the first file belong to the next part; ``None`` for no limit.
    """

    paths: tuple[str, ...]
    starts: tuple[int, ...] = (0,)
    end: int | None = None


def accept_pair(shard: Shard, key: str, languages: tuple[str, str], texts: tuple[str, str]) -> TranslationPair | None:
    """Returns the pair, or ``None`` after counting it as rejected or failed."""
    tags = []
    for language in languages:
        tag = language_tag(language)
        if tag is None:
            shard.fail(key, Failure.BROKEN_RECORD, f"language {language!r} is not a BCP-47 tag", " | ".join(texts))
            return None
        tags.append(tag)
    if tags[0] == tags[1]:
        shard.reject(key, Rejection.SAME_LANGUAGE, f"both sides are {tags[0]}", " | ".join(texts))
        return None
    blank = [side for side, text in zip(("source", "target"), texts, strict=True) if not text.strip()]
    if blank:
        shard.reject(key, Rejection.EMPTY_SIDE, f"no text: {' and '.join(blank)}", " | ".join(texts))
        return None
    return TranslationPair(key, tags[0], tags[1], *texts)


@functools.lru_cache(maxsize=4_096)  # a file has few different tags
def language_tag(language: str) -> str | None:
    """Returns a language tag in the form of BCP-47 (RFC 5646, section 2.1.1), ``None`` if it is not a tag.

    A code of three letters becomes that of two letters where there is one: articles have the latter.

    >>> language_tag("EN"), language_tag("pt_br"), language_tag("ZH-hant-tw"), language_tag("deu"), language_tag("fil")
    ('en', 'pt-BR', 'zh-Hant-TW', 'de', 'fil')
    """
    tag = language.strip().replace("_", "-")
    if not tag or language_key(tag) is None:
        return None
    first, *subtags = tag.lower().split("-")
    written = [_shortest_code(first)]
    for subtag in subtags:
        private = len(first) == 1 or any(len(before) == 1 for before in written)  # after x-, u-, …: lower case
        if not private and subtag.isalpha() and len(subtag) in (2, 4):
            subtag = subtag.upper() if len(subtag) == 2 else subtag.title()  # noqa: PLW2901 - the subtag in its canonical case
        written.append(subtag)
    return "-".join(written)


def _shortest_code(code: str) -> str:
    """Returns the code of ISO 639-1 for one of ISO 639-2 or 639-3 (``deu``, ``ger``), other codes as they are."""
    if len(code) != 3:
        return code
    from babel.core import get_global

    alias = str(get_global("language_aliases").get(code, code))
    return alias if len(alias) == 2 else code


def base_name(path: str) -> str:
    """Returns the name of a file without its folder."""
    return path.rpartition("/")[2]


def is_compressed(path: str) -> bool:
    """Returns whether a file is compressed, by its suffix."""
    return path.lower().endswith(".gz")


@contextlib.contextmanager
def open_plain(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading and decompresses it if necessary."""
    with files.open_read(path) as raw:
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if is_compressed(path) else raw


def read_lines(path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
    r"""Yields byte offset and bytes of every line from ``start`` on. Only ``\n`` ends a line, so files stay aligned.

    A line of more than ``MOST_BYTES`` is cut to one byte more than that, so that the caller sees that it is too long
    and memory stays bounded. A truncated or broken compressed file ends in an EOFError, OSError or zlib.error.
    """
    with open_plain(path) as source:
        if start:
            source.seek(start, io.SEEK_SET)
        offset = start
        while line := source.readline(MOST_BYTES + 1):
            length = len(line)
            if length > MOST_BYTES and not line.endswith(b"\n"):
                length += _skip_line(source)
            yield offset, line if offset else line.removeprefix(codecs.BOM_UTF8)
            offset += length


def _skip_line(source: BinaryIO) -> int:
    skipped = 0
    while rest := source.readline(MOST_BYTES):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def decode_line(shard: Shard, key: str, line: bytes) -> str | None:
    """Returns the text of a line without its end, or ``None`` after counting a failure: too long, or not UTF-8."""
    if len(line) > MOST_BYTES:
        shard.fail(
            key,
            Failure.TOO_LARGE,
            f"a line of more than {MOST_BYTES} bytes",
            line[:200].decode("utf-8", errors="replace"),
        )
        return None
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        shard.fail(key, Failure.UNDECODABLE, str(error), line.decode("utf-8", errors="replace"))
        return None
