"""Translation pairs from files: TSV, TMX, or two files aligned line by line, distinguished by suffix.

=======================  ===============================================================================================
``pairs.tsv``            source language, target language, source text and target text on each line
``memory.tmx``           translation memory (TMX 1.4); pairs the source language of a unit with each other language
``corpus.de,corpus.en``  two files with a sentence on each line (Moses), source then target; suffixes are the languages
=======================  ===============================================================================================

Each name may end in ``.gz``; aligned files may have ``.txt`` after the language. The folder that ``newsembed bitext``
wrote stands for its TSV files.

A unit ``<tu>`` of TMX (1.4b, LISA/OSCAR 2005) has one text in several languages, one ``<tuv xml:lang=…>`` each. Its
source language (``srclang`` of the unit or of the header; the first variant if that is ``*all*`` or absent) is paired
with each other language. Codes of other formats within a segment (``<bpt>``, ``<ph>``, …) are dropped; text marked by
``<hi>`` is kept. A file that declares entities is refused, and nothing outside the file is read.
"""

import codecs
import contextlib
import gzip
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple, cast

from lxml import etree

from ...errors import InputError, refusing
from ...formats import files
from ...formats.manifest import has_manifest, read_manifest
from ...formats.records import Failure, Rejection
from ..extract.xml_text import SAFE
from ..shards import Shard
from ..texts import language_tag

PAIRS: Final = "pairs"  # stream of TSV files in the folder of `newsembed bitext`
HELP: Final = (
    "translation pairs, distinguished by suffix, each plain or .gz: TSV (x.tsv: source language, target language, "
    "source, target), TMX (x.tmx), or two files aligned line by line, joined by a comma (x.de,x.en: the suffix is the "
    "language); or the folder that `newsembed bitext` wrote"
)
_PART_BYTES: Final = 32 << 20
# Largest line in bytes, and largest unit of TMX in characters. Only a broken file has longer ones.
MOST_BYTES: Final = 1 << 20
_BETWEEN: Final = ","
_COLUMNS: Final = 4  # of TSV
_ALIGNED_NAME: Final = re.compile(r"(?i).+\.(?P<language>(?!(txt|gz)\b)[a-z]{2,3}([-_][a-z0-9]{2,8})*)(\.txt)?(\.gz)?")
_CODES: Final = frozenset({"bpt", "ept", "it", "ph", "ut", "sub"})  # of TMX: not text
_PARTS: Final = frozenset({"header", "tu"})  # of TMX, which are read
_XML_LANGUAGE: Final = "{http://www.w3.org/XML/1998/namespace}lang"
_GIVE_TMX: Final = "give a TMX file, plain or .gz"
_BROKEN_ARCHIVE: Final = (EOFError, OSError, zlib.error)


class TranslationPair(NamedTuple):
    """A text and its translation.

    Attributes:
      key: file, and byte offset of the line or number of the unit.
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


class BitextPart(NamedTuple):
    """The part of a file, or of two aligned files, that one shard reads.

    Attributes:
      paths: a TSV or TMX file, or a source file and the aligned target file.
      starts: byte offset in each file at which the first line begins.
      end: lines that begin at or after this byte of the first file belong to the next part; ``None`` for no limit.
    """

    paths: tuple[str, ...]
    starts: tuple[int, ...] = (0, 0)
    end: int | None = None


def plan_parts(given: str, field: str = "--bitext", size: int = _PART_BYTES) -> list[BitextPart]:
    """Returns the parts of one value of an option, each for one shard.

    Aligned files are read once to count their lines. TMX and compressed files are one part.

    Args:
      given: the value.
      field: the option, for messages.
      size: bytes of a part, about.

    Raises:
      InputError: if the suffix is unknown, a file is missing, aligned files differ in length, or TMX declares entities.
    """
    if has_manifest(given) and read_manifest(given).get("job") == "bitext":
        written = files.list_files(f"{PAIRS}/part-*.tsv", given)
        return [part for path in written for part in _line_parts((path,), size)]
    paths = tuple(given.split(_BETWEEN))
    kind = _BETWEEN if len(paths) == 2 else _suffix(given) if len(paths) == 1 else ""
    checks: dict[str, Callable[..., object]] = {_BETWEEN: _check_aligned, "tmx": _check_tmx, "tsv": files.size_of}
    if kind not in checks:
        remedy = "give x.tsv, x.tmx (plain or .gz), two aligned files joined by a comma (x.de,x.en), or a bitext folder"
        raise InputError("unknown format of translation pairs", path=given, field=field, remedy=remedy)
    try:
        checks[kind](*paths)
    except InputError as error:
        raise InputError(error.problem, path=error.path, field=field, remedy=error.remedy) from error
    return [BitextPart(paths)] if kind == "tmx" else _line_parts(paths, size)


def _line_parts(paths: tuple[str, ...], size: int) -> list[BitextPart]:
    """The parts of a TSV file, or of two aligned files."""
    total, starts = files.size_of(paths[0]), [(0,) * len(paths)]
    if total > size and not any(map(_is_compressed, paths)):
        starts += _aligned_starts(paths, size) if len(paths) == 2 else _starts(paths[0], total, size)
    ends = [*(start[0] for start in starts[1:]), None]
    return [BitextPart(paths, start, end) for start, end in zip(starts, ends, strict=True)]


def _starts(path: str, total: int, size: int) -> list[tuple[int]]:
    """Where the parts of a TSV file after the first begin: the first line at or after each multiple of the size."""
    second = (next(itertools.islice(read_lines(path, place - 1), 1, None), None) for place in range(size, total, size))
    return [(offset,) for offset in sorted({found[0] for found in second if found})]


def _aligned_starts(paths: tuple[str, ...], size: int) -> Iterator[tuple[int, ...]]:
    due = size
    for lines in zip(*map(read_lines, paths), strict=True):
        if (here := lines[0][0]) >= due:
            yield tuple(offset for offset, _ in lines)
            due = (here // size + 1) * size


def read_pairs(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of one part; counts every pair as read, and the others as rejected or failed."""
    return _read_tmx(shard, part.paths[0]) if is_tmx(part) else _read_lines_of(shard, part)


def is_tmx(part: BitextPart) -> bool:
    """Whether the part is a TMX file, which has no lines."""
    return len(part.paths) == 1 and _suffix(part.paths[0]) == "tmx"


def digest(given: str) -> str:
    """Returns the digest of one value of ``--bitext``: of its file, of both files, or of the folder's result."""
    if has_manifest(given):
        return str(read_manifest(given)["digest"])
    return " ".join(files.file_digest(path) for path in given.split(_BETWEEN))


def base_name(path: str) -> str:
    """Returns the name of a file without its folder."""
    return path.rpartition("/")[2]


def _suffix(path: str) -> str:
    return path.lower().removesuffix(".gz").rpartition(".")[2]


@contextlib.contextmanager
def _open_plain(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading and decompresses it if necessary."""
    with files.open_read(path) as raw:
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if _is_compressed(path) else raw


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(".gz")


def _accept(shard: Shard, key: str, languages: Sequence[str], texts: Sequence[str]) -> Iterator[TranslationPair]:
    """Yields the pair, or counts it as rejected or failed."""
    source, target = map(language_tag, languages)
    sample = " | ".join(texts)
    if source is None or target is None:
        wrong = languages[0] if source is None else languages[1]
        shard.fail(key, Failure.BROKEN_RECORD, f"language {wrong!r} is not a BCP-47 tag", sample)
    elif source == target:
        shard.reject(key, Rejection.SAME_LANGUAGE, f"both sides are {source}", sample)
    elif not all(text.strip() for text in texts):
        shard.reject(key, Rejection.EMPTY_SIDE, "no text on a side", sample)
    else:
        yield TranslationPair(key, source, target, texts[0], texts[1])


# TSV and aligned files


def read_lines(path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
    r"""Yields byte offset and bytes of every line from ``start`` on. Only ``\n`` ends a line, so files stay aligned.

    A line of more than ``MOST_BYTES`` is cut to one byte more than that, so that the caller sees that it is too long
    and memory stays bounded. A truncated or broken compressed file ends in an EOFError, OSError or zlib.error.
    """
    with _open_plain(path) as source:
        if start:
            source.seek(start)
        offset = start
        while line := source.readline(MOST_BYTES + 1):
            length, rest = len(line), line
            while len(rest) >= MOST_BYTES and not rest.endswith(b"\n"):
                rest = source.readline(MOST_BYTES)
                length += len(rest)
            yield offset, line if offset else line.removeprefix(codecs.BOM_UTF8)
            offset += length


def count_lines(path: str) -> int:
    r"""Counts the lines of a file; text after the last ``\n`` is a line.

    Raises:
      InputError: if the file is missing, or is compressed and broken.
    """
    with refusing("cannot be read to its end:", *_BROKEN_ARCHIVE, path=path, remedy="fetch the file again"):
        return sum(1 for _ in read_lines(path))


def _check_aligned(source: str, target: str) -> None:
    """Checks that two files are aligned.

    Raises:
      InputError: if a file is missing or broken, its name has no language, or the numbers of lines differ.
    """
    both, languages = f"{source},{target}", [_language_of(source), _language_of(target)]
    if languages[0] == languages[1]:
        remedy = "give a source and a target file with the suffixes of two languages"
        raise InputError(f"both files are named {languages[0]}", path=both, remedy=remedy)
    lines = [count_lines(source), count_lines(target)]
    if lines[0] != lines[1]:
        problem = f"got {lines[0]} and {lines[1]} lines, expected the same number"
        remedy = "give two files in which the same lines are translations of each other"
        raise InputError(problem, path=both, remedy=remedy)


def _language_of(path: str) -> str:
    """The language in the name of an aligned file: ``corpus.de``, ``corpus.pt-BR.gz``, ``newstest.deu.txt``."""
    found = _ALIGNED_NAME.fullmatch(base_name(path))
    tag = language_tag(found["language"]) if found else None
    if tag is None:
        remedy = "end the name of each file in its language, as in corpus.de,corpus.en (.txt and .gz may follow)"
        raise InputError("the name has no language", path=path, remedy=remedy)
    return tag


def _read_lines_of(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of the lines that begin in the part; skips blank lines of TSV."""
    name, offset = base_name(part.paths[0]), part.starts[0]
    aligned = [_language_of(path) for path in part.paths] if len(part.paths) == 2 else []
    try:
        for places in zip(*map(read_lines, part.paths, part.starts), strict=True):
            offset, lines = places[0][0], [line for _, line in places]
            if part.end is not None and offset >= part.end:
                return
            if aligned or lines[0].strip():
                shard.read()
                yield from _parse(shard, f"{name}:{offset}", lines, aligned)
    except _BROKEN_ARCHIVE as error:
        shard.read()
        shard.fail(f"{name}:{offset}", Failure.TRUNCATED, f"after the line that begins here: {error}")


def _parse(shard: Shard, key: str, lines: Sequence[bytes], aligned: Sequence[str]) -> Iterator[TranslationPair]:
    """Yields the pair of a line of TSV, or of two lines in the languages ``aligned``; counts one failure for a pair."""
    if too_long := [line for line in lines if len(line) > MOST_BYTES]:
        sample = too_long[0][:200].decode("utf-8", errors="replace")
        shard.fail(key, Failure.TOO_LARGE, f"a line of more than {MOST_BYTES} bytes", sample)
        return
    try:
        texts = [line.decode("utf-8").rstrip("\r\n") for line in lines]
    except UnicodeDecodeError as error:
        shard.fail(key, Failure.UNDECODABLE, str(error), error.object.decode("utf-8", errors="replace"))
        return
    cells = [*aligned, *texts] if aligned else texts[0].split("\t")
    if len(cells) != _COLUMNS:
        problem = f"got {len(cells)} columns, expected {_COLUMNS}: source language, target language, source, target"
        shard.fail(key, Failure.BROKEN_RECORD, problem, texts[0])
        return
    yield from _accept(shard, key, cells[:2], cells[2:])


# TMX


def _parse_tmx(path: str, source: BinaryIO) -> Iterator[etree._Element]:
    """Yields the root when it begins, the header, and complete units, of which one is held at a time.

    Raises:
      InputError: if the file is not TMX, or declares entities.
    """
    root = None
    for event, element in etree.iterparse(source, ("start", "end"), remove_comments=True, remove_pis=True, **SAFE):
        if root is None:
            root, name, document = element, etree.QName(element).localname, element.getroottree().docinfo.internalDTD
            if name != "tmx":
                raise InputError(f"not TMX: the root element is <{name}>", path=path, remedy=_GIVE_TMX)
            if (declared := next(document.iterentities(), None) if document is not None else None) is not None:
                remedy = "replace its entities by their text if you trust the file"
                raise InputError(f"declares the entity {declared.name!r}", path=path, remedy=remedy)
            yield root
        elif event == "end" and etree.QName(element).localname in _PARTS:
            yield element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _check_tmx(path: str) -> None:
    """Reads the root element, before which entities are declared; an error further on becomes a dead letter."""
    about = {"path": path, "remedy": _GIVE_TMX}
    with refusing("not TMX:", etree.XMLSyntaxError, *_BROKEN_ARCHIVE, **about), _open_plain(path) as source:
        if next(_parse_tmx(path, source), None) is None:
            raise InputError("not TMX: it has no elements", **about)


def _read_tmx(shard: Shard, path: str) -> Iterator[TranslationPair]:
    """Yields the pairs of all units up to the end, or up to an error in the file, which counts as one failed record."""
    source_language, number = "", 0
    try:
        with _open_plain(path) as source:
            for element in itertools.islice(_parse_tmx(path, source), 1, None):
                if etree.QName(element).localname == "header":
                    source_language = element.get("srclang", "")
                else:
                    key, number = f"{base_name(path)}:{number}", number + 1
                    yield from _pairs_of(shard, key, element.get("srclang", source_language), _variants(element))
    except (etree.XMLSyntaxError, *_BROKEN_ARCHIVE) as error:
        shard.read()
        reason = Failure.BROKEN_RECORD if isinstance(error, etree.XMLSyntaxError) else Failure.TRUNCATED
        shard.fail(f"{base_name(path)}:{number}", reason, f"from here on: {error}")


def _variants(unit: etree._Element) -> list[tuple[str, str]]:
    """Returns language and text of each variant of a unit; codes within a segment are no text."""
    found = []
    for variant in unit.iterfind("{*}tuv"):
        for segment in variant.iterfind("{*}seg"):
            text = " ".join("".join(_texts_of(segment)).split())
            found.append((variant.get(_XML_LANGUAGE, variant.get("lang", "")), text))  # the latter until TMX 1.2
    return found


def _texts_of(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if etree.QName(child).localname not in _CODES:
            yield from _texts_of(child)
        yield child.tail or ""


def _pairs_of(
    shard: Shard, key: str, source_language: str, variants: Sequence[tuple[str, str]]
) -> Iterator[TranslationPair]:
    if sum(len(text) for _, text in variants) > MOST_BYTES:
        shard.read()
        shard.fail(key, Failure.TOO_LARGE, f"a unit of more than {MOST_BYTES} characters")
    elif len(variants) < 2:
        shard.read()
        problem = f"got {len(variants)} variants (tuv with seg), expected two or more"
        shard.fail(key, Failure.MISSING_FIELD, problem, variants[0][1] if variants else "")
    else:
        wanted, tags = language_tag(source_language) or "", [language_tag(language) or "" for language, _ in variants]
        plain = [tag.partition("-")[0] for tag in tags]
        # The variant in the source language, else in a form of it (en-GB for en), else the first.
        either = ((tags, wanted), (plain, wanted.partition("-")[0]))
        places = [names.index(name) for names, name in either if name in names]
        language, text = variants[source := places[0] if wanted and places else 0]
        for number, (other_language, other_text) in enumerate(variants):
            if number != source:
                shard.read()
                yield from _accept(shard, f"{key}:{number}", (language, other_language), (text, other_text))
