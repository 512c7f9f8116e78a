"""Transfer and content codings of HTTP (RFC 9110, 9112; br of RFC 7932, zstd of RFC 8878), undone within limits.

Bytes are bounded by a limit on the result, time because each byte of the input is read once.
"""

import zlib
from collections.abc import Callable
from re import compile as pattern
from typing import Any, Final

ACCEPTED: Final = "gzip, deflate, br, zstd"  # value of Accept-Encoding
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = pattern(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")  # a frame, or one to skip
_GZIP, _ZLIB, _RAW = 31, 15, -15  # zlib's numbers for the three formats
_PIECE_BYTES: Final = 1 << 16
_ZSTD_PIECE_BYTES: Final = 1 << 9  # three bytes may stand for 128 KiB, and its decoder takes no limit
_ZSTD_WINDOW: Final = 1 << 23  # bytes, of RFC 9659
_MOST_MEMBERS: Final = 100_000
_MOST_CODINGS: Final = 8
_CHUNK: Final = pattern(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CHUNK_END: Final = pattern(rb"\r?\n")
_BINARY: Final = bytes({*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})  # WHATWG's binary data bytes
_HEAD_BYTES: Final = 1_445  # of which WHATWG says whether they are text
_CUT: Final = "the {} data is cut"
_Undone = tuple[bytes, str]  # what was read, and what is wrong: "" if it is whole


class TooLargeError(Exception):
    """The decoded data exceeds the size limit: a kilobyte of gzip can expand to a megabyte."""


class BrokenCodingError(Exception):
    """The data is cut or broken."""


def undo_codings(body: bytes, codings: str, max_bytes: int) -> _Undone:
    """The content of a message, and what is wrong with it: "" if it is whole.

    A name that is not known is passed over, as browsers do. So is a coding that the bytes do not have: some servers
    declare gzip and send text, and many archives decode a body and keep its headers.

    Args:
      body: the bytes as they were sent.
      codings: the values of Content-Encoding and then Transfer-Encoding, in the order in which they were applied.
      max_bytes: maximum size of the result.

    Returns:
      The content, or what comes before the place where it is cut or broken; and the problem.

    Raises:
      TooLargeError: if the result or a step before it exceeds ``max_bytes``, or the data has 100,000 parts.
    """
    problem = ""
    names = [name.strip().lower() for name in codings.split(",") if name.strip().lower() in CODINGS]
    for name in reversed(names[-_MOST_CODINGS:]):
        found, wrong = CODINGS[name](body, max_bytes) if body else (body, "")
        if wrong and name != "chunked" and is_text(body):
            continue
        body, problem = found, problem or wrong
    if len(names) > _MOST_CODINGS:
        problem = problem or f"it has {len(names)} codings"
    return body, problem


def is_text(body: bytes) -> bool:
    """Whether the first bytes are text, as WHATWG's MIME sniffing says: a byte order mark, or no control codes."""
    head = body[:_HEAD_BYTES]
    is_marked = head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
    return is_marked or len(head.translate(None, _BINARY)) == len(head)


def gunzip(body: bytes, max_bytes: int) -> _Undone:
    """The content of all members of a gzip file, and what is wrong with it; data after the last member is ignored."""
    found, place, members = bytearray(), 0, 0
    while body.startswith(_GZIP_MAGIC, place):
        members += 1
        place, problem = _inflate(body, place, _GZIP, found, max_bytes)
        if problem:
            return bytes(found), problem
        if members > _MOST_MEMBERS:
            raise TooLargeError
    return (bytes(found) if members else body), ""


def _inflate(body: bytes, place: int, wbits: int, found: bytearray, max_bytes: int) -> tuple[int, str]:
    """Appends the content of one stream; returns the place after it and what is wrong with it."""
    stream, size, view = zlib.decompressobj(wbits), 1 << 8, memoryview(body)
    while not stream.eof:
        piece = view[place : place + size]  # small at first: what follows a short member is copied
        if not piece:
            return place, _CUT.format("compressed")
        try:
            found += stream.decompress(piece, _PIECE_BYTES)
        except zlib.error as error:
            return place, f"broken compressed data: {error}"
        if len(found) > max_bytes:
            raise TooLargeError
        place += len(piece) - len(stream.unconsumed_tail) - len(stream.unused_data)
        size = min(2 * size, _PIECE_BYTES)
    return place, ""


def _undo_deflate(body: bytes, max_bytes: int) -> _Undone:
    """The zlib format (RFC 9110, 8.4.1.2), or raw deflate, which some servers send."""
    found = bytearray()
    is_zlib = body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
    problem = _inflate(body, 0, _ZLIB if is_zlib else _RAW, found, max_bytes)[1]
    return bytes(found), problem


def _undo_brotli(body: bytes, max_bytes: int) -> _Undone:
    import brotli

    stream, found, data = brotli.Decompressor(), bytearray(), body
    try:
        while not stream.is_finished():
            piece, data = stream.process(data, output_buffer_limit=_PIECE_BYTES), b""
            found += piece
            if len(found) > max_bytes:
                raise TooLargeError
            if not piece and not stream.is_finished():
                return bytes(found), _CUT.format("brotli")
    except brotli.error as error:
        return bytes(found), f"broken brotli data: {error}"
    return bytes(found), ""


def _undo_zstd(body: bytes, max_bytes: int) -> _Undone:
    import zstandard

    decoder, found, place, members = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW), bytearray(), 0, 0
    while _ZSTD_MAGIC.match(body, place):
        stream, members = decoder.decompressobj(), members + 1
        while not stream.eof:
            piece = body[place : place + _ZSTD_PIECE_BYTES]
            if not piece:
                return bytes(found), _CUT.format("zstd")
            try:
                found += stream.decompress(piece)
            except zstandard.ZstdError as error:
                return bytes(found), f"broken zstd data: {error}"
            place += len(piece) - len(stream.unused_data)
            if len(found) > max_bytes or members > _MOST_MEMBERS:
                raise TooLargeError
    return (bytes(found) if members else body), ""


def _unchunk(body: bytes, _max_bytes: int) -> _Undone:
    """The chunks of RFC 9112, 7.1; other bytes as they are."""
    found, place = bytearray(), 0
    while line := _CHUNK.match(body, place):
        start, size = line.end(), int(line[1], 16)
        if not size:
            return bytes(found), ""
        end = _CHUNK_END.match(body, start + size)
        if end is None and start + size < len(body):  # a text that begins with a number
            return (bytes(found), "broken chunks") if place else (body, "")
        found += body[start : start + size]
        place = end.end() if end else len(body)
    return (bytes(found), _CUT.format("chunked")) if place else (body, "")


CODINGS: Final[dict[str, Callable[[bytes, int], Any]]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": _undo_deflate,
    "br": _undo_brotli,
    "zstd": _undo_zstd,
    "chunked": _unchunk,
}
