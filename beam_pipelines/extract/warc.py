"""Frames of WARC files: where each record begins and ends, and where the next one begins after damage.

A damaged record costs only itself. The checksum of its gzip member shows the damage; without gzip the line that must
follow its content, or the digest of its block if the header has one. Reading continues at the next gzip member or line
that begins a record. Digests of payloads are not compared: programs disagree on what the payload of a response is.
"""

import base64
import dataclasses
import hashlib
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO, Final

MAX_CONTENT_BYTES: Final = 20 << 20  # of a record; what exceeds it is passed over
_MAX_HEADER_BYTES: Final = 1 << 20
_HTTP_BYTES: Final = 1 << 20  # for the headers of a response, in addition to its content
_BLOCK: Final = 1 << 20
_PIECE: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b\x08"
_GZIP_WINDOW: Final = 31  # zlib's number for a gzip header and a checksum
_PROBE_BYTES: Final = 1 << 12  # of a possible gzip member: enough for its first bytes
_RECORD_END: Final = re.compile(rb"\r\n\r\n|\n\n")
_BEGINNING_HERE: Final = re.compile(rb"WARC/\d\.\d+\s*\n|\x1f\x8b\x08")
_VERSION: Final = re.compile(rb"WARC/\d\.\d+\s*\n")
_BEGINNING: Final = re.compile(rb"(?<=\n)WARC/\d\.\d+\r?\n(?=[\w-]+:)")
_GZIP_BEGINNING: Final = re.compile(re.escape(_GZIP))
_OVERLAP: Final = 256  # bytes, more than match one of the two
_END_OF_HEADER: Final = re.compile(rb"\r?\n\r?\n")
_LENGTH: Final = re.compile(rb"^content-length\s*:\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
_BLOCK_DIGEST: Final = re.compile(rb"^warc-block-digest\s*:\s*([\w-]+):([\w=]+)\s*$", re.IGNORECASE | re.MULTILINE)
_DIGESTS: Final = ("md5", "sha1", "sha256", "sha512")
_NAMES: Final = re.compile(rb"^(?:warc-type|content-type|content-length)(?=\s*:)", re.IGNORECASE | re.MULTILINE)
_URL: Final = re.compile(rb"^warc-target-uri\s*:\s*<?([^\r\n>]*)", re.IGNORECASE | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Frame:
    """One record of a WARC file.

    Attributes:
      offset: byte offset where it begins, or where its gzip member begins.
      raw: header and content; the content is cut after :data:`MAX_CONTENT_BYTES` and the headers of a response. Empty
        if only the places were asked for.
      cut: whether the file ends inside the record.
    """

    offset: int
    raw: bytes
    cut: bool = False

    def parts(self) -> tuple[bytes, bytes]:
        """The header, in which the names of :data:`_NAMES` are spelled in the usual way, and the content.

        Names of headers may be in any case, but readers of WARC files expect one spelling.
        """
        end = _END_OF_HEADER.search(self.raw)
        place = end.end() if end else len(self.raw)
        header = _NAMES.sub(lambda name: name[0].title().replace(b"Warc", b"WARC"), self.raw[:place])
        return header, self.raw[place:]


@dataclasses.dataclass(frozen=True)
class Gap:
    """Bytes of a WARC file that hold no readable record.

    Attributes:
      offset: of the first byte.
      end: offset after the last byte.
      problem: what is wrong.
      url: of the record that is damaged, if its header could be read.
    """

    offset: int
    end: int
    problem: str
    url: str = ""


_Frames = Generator[Frame | Gap, None, int]  # returns the offset where reading continues


class _DamageError(Exception):
    """The bytes are not a record. ``raw`` is what was read; ``ended``: the input ended inside the record."""

    def __init__(self, problem: str, raw: bytes = b"", *, ended: bool = False) -> None:
        super().__init__(problem)
        self.raw = raw
        self.ended = ended


class _Blocks:
    """Reads at any position; reading on where the last call ended needs no seek."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._start = source.tell()
        self._block = b""

    def read(self, position: int, size: int = _PIECE) -> bytes:
        """The ``size`` bytes at a position, fewer only at the end of the file."""
        end = self._start + len(self._block)
        if not self._start <= position <= end:
            self._source.seek(position)
            self._start, self._block, end = position, b"", position
        while end < position + size and (more := self._source.read(_BLOCK)):
            self._block = self._block[position - self._start :] + more
            self._start, end = position, end + len(more)
        first = position - self._start
        return self._block[first : first + size]


class _Window:
    """The bytes that ``pull`` returns, one piece after another; an empty piece is the end.

    ``extend`` is asked inside a record at the end: it returns whether the record continues and ``pull`` has more.
    """

    def __init__(self, pull: Callable[[], bytes], extend: Callable[[], bool] = lambda: False) -> None:
        self._pull = pull
        self.extend = extend
        self._held = b""
        self.taken = 0

    def peek(self, size: int) -> bytes:
        """The next bytes, at least ``size`` of them unless the input ends before."""
        while len(self._held) < size and (piece := self._pull()):
            self._held += piece
        return self._held

    def take(self, size: int) -> bytes:
        """Returns and passes over the next bytes, at most ``size``; empty at the end only."""
        found = self._held or self._pull()
        self._held = found[size:]
        self.taken += min(size, len(found))
        return found[:size]


class _Member:
    """The decompressed bytes of one gzip member, or of several if a record is spread over them."""

    def __init__(self, blocks: _Blocks, offset: int) -> None:
        self._blocks = blocks
        self._position = offset
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self._held = b""
        self.end = offset

    def pull(self) -> bytes:
        """The next bytes; empty after the last one, when length and checksum are correct.

        Raises:
          _DamageError: if the compressed data is damaged or the file ends.
        """
        while not self._zlib.eof:
            if not self._held:
                self._held = self._blocks.read(self._position)
                self._position += len(self._held)
                if not self._held:
                    raise _DamageError("the file ends inside this record", ended=True)
            try:
                found = self._zlib.decompress(self._held, _PIECE)
            except zlib.error as error:
                raise _DamageError(f"damaged gzip data: {error}") from error
            self._held = self._zlib.unconsumed_tail
            self.end = self._position - len(self._zlib.unused_data)  # only once nothing is left of the member
            if found:
                return found
        return b""

    def extend(self) -> bool:
        """Continues with the next member, unless a record begins there."""
        if self._blocks.read(self.end, len(_GZIP)) != _GZIP or _begins_record(self._blocks, self.end):
            return False
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self._position, self._held = self.end, b""
        return True


def read_frames(source: BinaryIO, start: int = 0, *, places_only: bool = False) -> Iterator[Frame | Gap]:
    """Yields the records of a WARC file from an offset on, and the gaps between them.

    Args:
      source: the file; plain, or compressed with gzip: one member for each record, or one for all.
      start: offset of a record or gap.
      places_only: leave out the contents, which then need no memory.
    """
    source.seek(start)
    blocks = _Blocks(source)
    position = start
    while head := blocks.read(position, len(_GZIP)):
        frames = _of_member if head.startswith(_GZIP[:2]) else _of_plain
        position = yield from frames(blocks, position, places_only)


def _of_member(blocks: _Blocks, offset: int, places_only: bool) -> _Frames:
    """Yields the records of one gzip member; returns where reading continues."""
    member = _Member(blocks, offset)
    window = _Window(member.pull, member.extend)
    # The checksum follows the last record, so each record waits until the next one begins or the member ends.
    waiting: Frame | None = None
    try:
        while _more(window):
            if waiting:
                yield waiting
                waiting = None
            waiting = Frame(offset, _record(window, places_only))
    except _DamageError as damage:
        raw = damage.raw or (waiting.raw if waiting else b"")
        return (yield from _after_damage(blocks, offset, damage, raw, places_only))
    if waiting:
        yield waiting
    return member.end


def _of_plain(blocks: _Blocks, offset: int, places_only: bool) -> _Frames:
    """Yields one record that is not compressed, or a gap; returns where reading continues."""
    position = offset

    def pull() -> bytes:
        nonlocal position
        found = blocks.read(position)
        position += len(found)
        return found

    window = _Window(pull)
    if not _more(window):
        return offset + window.taken
    begin = offset + window.taken
    try:
        raw = _record(window, places_only)
    except _DamageError as damage:
        return (yield from _after_damage(blocks, begin, damage, damage.raw, places_only))
    is_closed = _RECORD_END.match(window.peek(4)) is not None
    if _more(window) and not (is_closed and _BEGINNING_HERE.match(window.peek(_PROBE_BYTES))):
        unclosed = _DamageError("no record follows its content, so its length is wrong or bytes are missing")
        return (yield from _after_damage(blocks, begin, unclosed, raw, places_only))
    mismatch = "" if places_only else _digest_mismatch(raw)
    yield Gap(begin, offset + window.taken, mismatch, _url_in(raw)) if mismatch else Frame(begin, raw)
    return offset + window.taken


def _after_damage(blocks: _Blocks, offset: int, damage: _DamageError, raw: bytes, places_only: bool) -> _Frames:
    """Yields a record that the end of the file cuts, or a gap; returns where the next record begins."""
    following = _next_beginning(blocks, offset + 1)
    is_last = blocks.read(following, 1) == b""
    if is_last and damage.ended and _END_OF_HEADER.search(raw):
        yield Frame(offset, b"" if places_only else raw, cut=True)
    else:
        yield Gap(offset, following, str(damage), _url_in(raw))
    return following


def _url_in(raw: bytes) -> str:
    url = _URL.search(raw)
    return url[1].decode("utf-8", "replace").strip() if url else ""


def _digest_mismatch(raw: bytes) -> str:
    """What is wrong with the block of a record by the digest in its header; "" without one, or if the block was cut."""
    end = _END_OF_HEADER.search(raw)
    assert end is not None
    header, block = raw[: end.end()], memoryview(raw)[end.end() :]
    length, stated = _LENGTH.search(header), _BLOCK_DIGEST.search(header)
    if stated is None or length is None or len(block) != int(length[1]):
        return ""
    name, expected = stated[1].decode().lower().replace("-", ""), stated[2].decode()
    if name not in _DIGESTS:
        return ""
    digest = hashlib.new(name, block, usedforsecurity=False).digest()
    spellings = (base64.b32encode(digest).decode().rstrip("="), digest.hex().upper())
    return "" if expected.upper().rstrip("=") in spellings else "its content differs from WARC-Block-Digest"


def _more(window: _Window) -> bool:
    """Whether bytes follow, apart from the line ends and zeros between records."""
    while held := window.peek(1):
        rest = held.lstrip(b"\r\n\0")
        window.take(len(held) - len(rest))
        if rest:
            return True
    return False


def _record(window: _Window, places_only: bool) -> bytes:
    """Takes one record from a window.

    Raises:
      _DamageError: if the window does not begin with a record.
    """
    size = _PROBE_BYTES
    while (end := _END_OF_HEADER.search(held := window.peek(size))) is None:
        if len(held) < size and not window.extend():
            raise _DamageError("the file ends inside the header of this record", held, ended=True)
        if size > _MAX_HEADER_BYTES:
            raise _DamageError(f"no WARC header within {_MAX_HEADER_BYTES} bytes")
        size *= 2
    header = held[: end.end()]
    length = _LENGTH.search(header)
    if not _VERSION.match(header) or length is None:
        raise _DamageError("no WARC header", header)
    window.take(len(header))
    pieces, left = [header], int(length[1])
    kept = 0 if places_only else MAX_CONTENT_BYTES + _HTTP_BYTES
    try:
        while left and ((piece := window.take(min(left, _PIECE))) or window.extend()):
            left -= len(piece)
            pieces.append(piece[:kept])
            kept -= len(pieces[-1])
    except _DamageError as damage:
        raise _DamageError(str(damage), b"".join(pieces), ended=damage.ended) from damage
    if left:
        raise _DamageError(f"the file ends {left} bytes before the end of this record", b"".join(pieces), ended=True)
    return b"" if places_only else b"".join(pieces)


def _next_beginning(blocks: _Blocks, position: int) -> int:
    """The first offset from ``position`` (at least 1) on where a record begins, plain or in gzip; else the end."""
    while True:
        # One byte earlier: a plain record begins after a line end. Pieces overlap, because a beginning has many bytes.
        piece = blocks.read(position - 1, _BLOCK + _OVERLAP)
        found = [match.start() for match in _BEGINNING.finditer(piece, 1)]
        found += [match.start() for match in _GZIP_BEGINNING.finditer(piece, 1)]
        for place in sorted(found):
            if piece[place : place + 1] == b"W" or _begins_record(blocks, position - 1 + place):
                return position - 1 + place
        if len(piece) < _BLOCK + _OVERLAP:
            return position - 1 + len(piece)
        position += _BLOCK


def _begins_record(blocks: _Blocks, offset: int) -> bool:
    """Whether a gzip member that holds a record begins here."""
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(blocks.read(offset, _PROBE_BYTES), 16).startswith(b"WARC/")
    except zlib.error:
        return False
