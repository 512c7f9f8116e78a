"""Streaming reader of TMX, the exchange format of translation memories (TMX 1.4b, LISA/OSCAR 2005).

A unit ``<tu>`` has one text in several languages, one ``<tuv xml:lang=…>`` each. Its source language (``srclang`` of
the unit or of the header; the first variant if that is ``*all*`` or absent) is paired with each other language. Codes
of other formats within a segment (``<bpt>``, ``<ph>``, …) are dropped; text marked by ``<hi>`` is kept. A file that
declares entities is refused, and nothing outside the file is read.
"""

import dataclasses
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final
from xml.parsers import expat

from ...errors import InputError
from ...formats.records import Failure
from ..shards import Shard
from .pairs import MOST_BYTES, BitextPart, TranslationPair, accept_pair, base_name, language_tag, open_plain

_CHUNK_BYTES: Final = 1 << 16
_CODES: Final = frozenset({"bpt", "ept", "it", "ph", "ut", "sub"})
_LANGUAGE_ATTRIBUTES: Final = ("xml:lang", "lang")  # the latter until TMX 1.2
_NOT_TMX: Final = "not TMX"
_GIVE_TMX: Final = "give a TMX file, plain or .gz"


@dataclasses.dataclass
class _Unit:
    """One ``<tu>``: its byte offset, its source language, and (language, text) of its variants."""

    offset: int
    source_language: str
    variants: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    characters: int = 0


def plan(path: str) -> list[BitextPart]:
    """Returns one part for the whole file, because XML cannot be cut. Reads up to the root element.

    Raises:
      InputError: if the file is missing, is not TMX, or declares entities.
    """
    parser = _Parser(path)
    try:
        with open_plain(path) as source:
            while not parser.root_seen and (chunk := source.read(_CHUNK_BYTES)):
                parser.feed(chunk)
            if not parser.root_seen:
                parser.feed(b"", last=True)
    except (expat.ExpatError, EOFError, OSError, zlib.error) as error:
        if not parser.root_seen:
            raise InputError(f"{_NOT_TMX}: {error}", path=path, field="--bitext", remedy=_GIVE_TMX) from error
        # an error further on becomes a dead letter when the file is read
    return [BitextPart((path,))]


def read(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of all units up to the end, or up to an error in the file, which counts as one failed record."""
    (path,) = part.paths
    for unit in _read_units(shard, path):
        yield from _pairs_of(shard, f"{base_name(path)}:{unit.offset}", unit)


def _read_units(shard: Shard, path: str) -> Iterator[_Unit]:
    parser = _Parser(path)
    with open_plain(path) as source:
        more = True
        while more:
            problem = None
            try:
                more = parser.feed_from(source)
            except (expat.ExpatError, EOFError, OSError, zlib.error) as error:
                problem, more = error, False
            yield from parser.units
            parser.units.clear()
            if problem is not None:
                shard.read()
                # A truncated archive raises while it is decompressed; truncated XML raises only when parsing is ended.
                broken = isinstance(problem, expat.ExpatError) and not parser.ended
                shard.fail(
                    f"{base_name(path)}:{parser.offset}",
                    Failure.BROKEN_RECORD if broken else Failure.TRUNCATED,
                    f"from here on: {problem}",
                )


def _pairs_of(shard: Shard, key: str, unit: _Unit) -> Iterator[TranslationPair]:
    if unit.characters > MOST_BYTES or len(unit.variants) < 2:
        shard.read()
        if unit.characters > MOST_BYTES:
            shard.fail(key, Failure.TOO_LARGE, f"a unit of more than {MOST_BYTES} characters")
        else:
            sample = unit.variants[0][1] if unit.variants else ""
            shard.fail(
                key,
                Failure.MISSING_FIELD,
                f"got {len(unit.variants)} variants (tuv with seg), expected two or more",
                sample,
            )
        return
    source = _source_of(unit)
    for number, variant in enumerate(unit.variants):
        if number != source:
            shard.read()
            (language, text), (other_language, other_text) = unit.variants[source], variant
            pair = accept_pair(shard, f"{key}:{number}", (language, other_language), (text, other_text))
            if pair is not None:
                yield pair


def _source_of(unit: _Unit) -> int:
    """Returns the index of the variant in the source language, else in a form of it (en-GB for en), else 0."""
    wanted = language_tag(unit.source_language)
    if wanted is None:
        return 0
    tags = [language_tag(language) or "" for language, _ in unit.variants]
    if wanted in tags:
        return tags.index(wanted)
    primary = [tag.partition("-")[0] for tag in tags]
    return primary.index(wanted.partition("-")[0]) if wanted.partition("-")[0] in primary else 0


class _Parser:
    """Collects units from an XML stream; holds at most one unit and one chunk.

    Attributes:
      root_seen: whether the root element has begun; entities are declared before it.
      units: complete units; the reader removes them.
      ended: whether the end of the file was reached.
    """

    def __init__(self, path: str) -> None:
        self.root_seen = False
        self.ended = False
        self.units: list[_Unit] = []
        self._path = path
        self._source_language = ""
        self._unit: _Unit | None = None
        self._language = ""
        self._text: list[str] | None = None
        self._codes = 0  # number of open elements that are not text
        self._expat = expat.ParserCreate()
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._refuse_entity

    @property
    def offset(self) -> int:
        """Byte at which the incomplete unit begins, or the position of the parser."""
        return self._unit.offset if self._unit else max(self._expat.CurrentByteIndex, 0)

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        """Parses a chunk; ``last`` ends the file."""
        self.ended = last
        self._expat.Parse(chunk, last)

    def feed_from(self, source: BinaryIO) -> bool:
        """Parses the next chunk; returns whether there was one."""
        chunk = source.read(_CHUNK_BYTES)
        self.feed(chunk, last=not chunk)
        return bool(chunk)

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = qualified.rpartition(":")[2]
        if not self.root_seen:
            if name != "tmx":
                problem = f"{_NOT_TMX}: the root element is <{qualified}>"
                raise InputError(problem, path=self._path, field="--bitext", remedy=_GIVE_TMX)
            self.root_seen = True
        elif name == "header":
            self._source_language = attributes.get("srclang", "")
        elif name == "tu":
            self._unit = _Unit(self._expat.CurrentByteIndex, attributes.get("srclang", self._source_language))
        elif name == "tuv":
            self._language = next((attributes[name] for name in _LANGUAGE_ATTRIBUTES if name in attributes), "")
        elif name == "seg" and self._unit:
            self._text = []
        elif name in _CODES:
            self._codes += 1

    def _end(self, qualified: str) -> None:
        name = qualified.rpartition(":")[2]
        if name in _CODES:
            self._codes -= 1
        elif name == "seg" and self._unit and self._text is not None:
            self._unit.variants.append((self._language, " ".join("".join(self._text).split())))
            self._text = None
        elif name == "tu" and self._unit:
            self.units.append(self._unit)
            self._unit = None

    def _characters(self, text: str) -> None:
        if self._unit and self._text is not None and not self._codes:
            self._unit.characters += len(text)
            if self._unit.characters <= MOST_BYTES:
                self._text.append(text)

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise InputError(
            f"declares the entity {name!r}",
            path=self._path,
            field="--bitext",
            remedy="replace its entities by their text if you trust the file",
        )
