"""Reads WARC files: where each record begins and ends, where the next one begins after damage, and the responses.

A damaged record costs only itself. The checksum of its gzip member shows the damage; without gzip the line that must
follow its content, or the digest of its block if the header has one. Reading continues at the next gzip member or line
that begins a record. Digests of payloads are not compared: programs disagree on what the payload of a response is.
"""

import base64
import datetime
import hashlib
import io
import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, cast

from ...formats.codings import TooLargeError, undo_codings
from .responses import media_type, target_of

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
_MOST_DIGITS: Final = 18  # of a length
_DIGESTS: Final = ("md5", "sha1", "sha256", "sha512")
_NAMES: Final = re.compile(rb"^(?:warc-type|content-type|content-length)(?=\s*:)", re.IGNORECASE | re.MULTILINE)
_URL: Final = re.compile(rb"^warc-target-uri\s*:\s*<?([^\r\n>]*)", re.IGNORECASE | re.MULTILINE)


class Frame(NamedTuple):
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


class Gap(NamedTuple):
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


class Response(NamedTuple):
    """One captured HTTP response.

    Attributes:
      url: target URI.
      status: HTTP status code.
      content_type: media type in lower case, without parameters, or "".
      charset: charset in the header, or "".
      payload: body without transfer and content coding.
      fetched_at: time of the capture, UTC.
      cut: what says that the body is not whole, or "".
      oversized: whether the record is larger than the limit.
      leads_to: URL of the page to which a redirect leads, or "".
    """

    url: str
    status: int
    content_type: str
    charset: str
    payload: bytes
    fetched_at: datetime.datetime | None
    cut: str = ""
    oversized: bool = False
    leads_to: str = ""


_Frames = Generator[Frame | Gap, None, int]  # returns the offset where reading continues


class _DamageError(Exception):
    """The bytes are not a record. ``raw`` is what was read; ``ended``: the input ended inside the record."""

    def __init__(self, problem: str, raw: bytes = b"", *, ended: bool = False) -> None:
        super().__init__(problem)
        self.raw = raw
        self.ended = ended


def _at(source: BinaryIO, position: int, size: int = _PIECE) -> bytes:
    """The ``size`` bytes at a position, fewer only at the end of the file."""
    source.seek(position)
    return source.read(size)


class _Window:
    """The bytes of a file from a position on."""

    def __init__(self, source: BinaryIO, position: int) -> None:
        self.source = source
        self.position = position  # of the next bytes of the file
        self.taken = 0
        self._held = b""

    def pull(self) -> bytes:
        """The next bytes; empty at the end."""
        found = _at(self.source, self.position)
        self.position += len(found)
        return found

    def extend(self) -> bool:
        """Whether a record continues after the end."""
        return False

    def bound(self, size: int) -> int:
        """How much of a content to read that says it has ``size`` bytes: if that is false, no more than is its own.

        Otherwise a file of headers that all state a large size would be read again for each of them.
        """
        place = self.position - len(self._held)
        is_true = size <= _PROBE_BYTES or (
            _at(self.source, place + size - 1, 1) and _ends(_Window(self.source, place + size))
        )
        return size if is_true else min(size, _next_beginning(self.source, place) - place)

    def peek(self, size: int) -> bytes:
        """The next bytes, at least ``size`` of them unless the input ends before."""
        while len(self._held) < size and (piece := self.pull()):
            self._held += piece
        return self._held

    def take(self, size: int) -> bytes:
        """Returns and passes over the next bytes, at most ``size``; empty at the end only."""
        found = self._held or self.pull()
        self._held = found[size:]
        self.taken += min(size, len(found))
        return found[:size]


class _Member(_Window):
    """The decompressed bytes of one gzip member, or of several if a record is spread over them."""

    def __init__(self, source: BinaryIO, position: int) -> None:
        super().__init__(source, position)
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self._packed = b""
        self.end = position

    def pull(self) -> bytes:
        """The next bytes; empty after the last one, when length and checksum are correct.

        Raises:
          _DamageError: if the compressed data is damaged or the file ends.
        """
        while not self._zlib.eof:
            self._packed = self._packed or super().pull()
            if not self._packed:
                raise _DamageError("the file ends inside this record", ended=True)
            try:
                found = self._zlib.decompress(self._packed, _PIECE)
            except zlib.error as error:
                raise _DamageError(f"damaged gzip data: {error}") from error
            self._packed = self._zlib.unconsumed_tail
            self.end = self.position - len(self._zlib.unused_data)  # only once nothing is left of the member
            if found:
                return found
        return b""

    def bound(self, size: int) -> int:
        """The size: a member is read only once."""
        return size

    def extend(self) -> bool:
        """Continues with the next member, unless a record begins there."""
        if _at(self.source, self.end, len(_GZIP)) != _GZIP or _begins_record(self.source, self.end):
            return False
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self.position, self._packed = self.end, b""
        return True


def read_frames(source: BinaryIO, start: int = 0, *, places_only: bool = False) -> Iterator[Frame | Gap]:
    """Yields the records of a WARC file from an offset on, and the gaps between them.

    Args:
      source: the file; plain, or compressed with gzip: one member for each record, or one for all.
      start: offset of a record or gap.
      places_only: leave out the contents, which then need no memory.
    """
    blocks = io.BufferedReader(cast(io.RawIOBase, source), _BLOCK)  # short steps back need no request to a store
    position = start
    while head := _at(blocks, position, len(_GZIP)):
        frames = _of_member if head.startswith(_GZIP[:2]) else _of_plain
        position = yield from frames(blocks, position, places_only)
    blocks.detach()  # leaves the file open


def _of_member(source: BinaryIO, offset: int, places_only: bool) -> _Frames:
    """Yields the records of one gzip member; returns where reading continues."""
    member = _Member(source, offset)
    # The checksum follows the last record, so each record waits until the next one begins or the member ends.
    waiting: Frame | None = None
    try:
        while _more(member):
            if waiting:
                yield waiting
                waiting = None
            waiting = Frame(offset, _record(member, places_only))
    except _DamageError as damage:
        damage.raw = damage.raw or (waiting.raw if waiting else b"")
        return (yield from _after_damage(source, offset, damage, places_only))
    if waiting:
        yield waiting
    return member.end


def _of_plain(source: BinaryIO, offset: int, places_only: bool) -> _Frames:
    """Yields one record that is not compressed, or a gap; returns where reading continues."""
    window = _Window(source, offset)
    if not _more(window):
        return offset + window.taken
    begin = offset + window.taken
    try:
        raw = _record(window, places_only)
    except _DamageError as damage:
        return (yield from _after_damage(source, begin, damage, places_only))
    if not _ends(window):
        unclosed = _DamageError("no record follows its content, so its length is wrong or bytes are missing", raw)
        return (yield from _after_damage(source, begin, unclosed, places_only))
    mismatch = "" if places_only else _digest_mismatch(raw)
    yield Gap(begin, offset + window.taken, mismatch, _url_in(raw)) if mismatch else Frame(begin, raw)
    return offset + window.taken


def _after_damage(source: BinaryIO, offset: int, damage: _DamageError, places_only: bool) -> _Frames:
    """Yields a record that the end of the file cuts, or a gap; returns where the next record begins."""
    following = _next_beginning(source, offset + 1)
    is_last = _at(source, following, 1) == b""
    if is_last and damage.ended and _END_OF_HEADER.search(damage.raw):
        yield Frame(offset, b"" if places_only else damage.raw, cut=True)
    else:
        yield Gap(offset, following, str(damage), _url_in(damage.raw))
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


def _ends(window: _Window) -> bool:
    """Whether the file ends here, or the end of a record and the beginning of the next follow."""
    is_closed = _RECORD_END.match(window.peek(4)) is not None
    return not _more(window) or (is_closed and _BEGINNING_HERE.match(window.peek(_PROBE_BYTES)) is not None)


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
    stated = int(length[1][:_MOST_DIGITS])
    pieces, left = [header], window.bound(stated)
    missing = stated - left
    kept = 0 if places_only else MAX_CONTENT_BYTES + _HTTP_BYTES
    try:
        while left and ((piece := window.take(min(left, _PIECE))) or window.extend()):
            left -= len(piece)
            pieces.append(piece[:kept])
            kept -= len(pieces[-1])
    except _DamageError as damage:
        raise _DamageError(str(damage), b"".join(pieces), ended=damage.ended) from damage
    if left := left + missing:
        problem = f"the file or the next record comes {left} bytes before the end of this record"
        raise _DamageError(problem, b"".join(pieces), ended=True)
    return b"" if places_only else b"".join(pieces)


def _next_beginning(source: BinaryIO, position: int) -> int:
    """The first offset from ``position`` (at least 1) on where a record begins, plain or in gzip; else the end."""
    size = _PROBE_BYTES  # small at first: damage every few bytes must not cost a block each
    while True:
        # One byte earlier: a plain record begins after a line end. Pieces overlap, because a beginning has many bytes.
        piece = _at(source, position - 1, size + _OVERLAP)
        found = [match.start() for match in _BEGINNING.finditer(piece, 1)]
        found += [match.start() for match in _GZIP_BEGINNING.finditer(piece, 1)]
        for place in sorted(found):
            if piece[place : place + 1] == b"W" or _begins_record(source, position - 1 + place):
                return position - 1 + place
        if len(piece) < size + _OVERLAP:
            return position - 1 + len(piece)
        position, size = position + size, min(2 * size, _BLOCK)


def _begins_record(source: BinaryIO, offset: int) -> bool:
    """Whether a gzip member that holds a record begins here."""
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(_at(source, offset, _PROBE_BYTES), 16).startswith(b"WARC/")
    except zlib.error:
        return False


def response_of(frame: Frame) -> Response | Gap | None:
    """The response in a record, ``None`` for other records, or the reason why it cannot be read."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    problem = "the file ends inside this record, which is not a response" if frame.cut else ""
    try:
        header, content = frame.parts()
        raw, every = io.BytesIO(header + content), WarcRecordType.any_type
        record = next(iter(ArchiveIterator(raw, parse_http=True, record_types=every, stream_detect=False)), None)
        if record is None or record.record_type in (WarcRecordType.unknown, WarcRecordType.no_type):
            problem = "no WARC record" if record is None else "unknown type of record"
        elif record.record_type in (WarcRecordType.response, WarcRecordType.resource):
            if record.record_type == WarcRecordType.response and not record.is_http and content.startswith(b"HTTP/"):
                record.is_http = True  # some writers name no Content-Type, and damage can hide it
                record.parse_http()
            found = _response(record, cut=frame.cut)
            if found.url:
                return found
            problem = "no WARC-Target-URI"
    except Exception as error:  # noqa: BLE001 - FastWARC raises many types; each becomes a dead letter
        problem = f"{type(error).__name__}: {error}"
    return Gap(frame.offset, frame.offset, problem) if problem else None


def _response(record: Any, *, cut: bool) -> Response:
    sent, expected, date = record.http_headers, record.content_length, record.record_date
    payload = decoded = record.reader.read(MAX_CONTENT_BYTES)
    oversized, problem = expected > MAX_CONTENT_BYTES, ""
    fields: dict[str, list[str]] = {}
    own = [(b"content-type", (record.headers.get("Content-Type") or "").encode("latin-1", "replace"))]
    for name, value in sent.items_bytes() if sent is not None else own:
        fields.setdefault(name.decode("latin-1").strip().lower(), []).append(value.decode("latin-1"))
    codings = [*fields.get("content-encoding", []), *fields.get("transfer-encoding", [])]
    length, location, refresh = (fields.get(name, [""])[0] for name in ("content-length", "location", "refresh"))
    try:
        decoded, problem = undo_codings(payload, ",".join(codings), MAX_CONTENT_BYTES)
    except TooLargeError:
        oversized = True
    if cut or len(payload) < min(expected, MAX_CONTENT_BYTES):
        problem = f"the file ends after {len(payload)} bytes of this record"
    elif reason := record.headers.get("WARC-Truncated"):
        problem = f"WARC-Truncated: {reason}"
    elif not codings and length.isdecimal() and len(length) < 16 and len(payload) < int(length):
        problem = f"{len(payload)} of {length} bytes"
    content_type, charset = media_type(fields.get("content-type", []))
    url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
    status = int(sent.status_code or 0) if sent is not None else 200
    page = decoded if content_type in ("", "text/html", "application/xhtml+xml") else b""
    return Response(
        url=url,
        status=status,
        content_type=content_type,
        charset=charset,
        payload=decoded,
        fetched_at=date.astimezone(datetime.UTC) if date is not None else None,
        cut=problem,
        oversized=oversized or len(decoded) >= MAX_CONTENT_BYTES,
        leads_to=target_of(url, status, location, refresh, page),
    )
