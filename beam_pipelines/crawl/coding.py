"""Undoing the content coding of a response, within a bound: a kilobyte of gzip can hold a megabyte."""

import zlib

ACCEPTED = "gzip, deflate"  # what the crawler asks for
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 16


class TooLargeError(Exception):
    """More bytes than allowed after decompression."""


class BrokenCodingError(Exception):
    """A coding that was not asked for, or data that is cut or broken."""


def decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body without its content coding.

    Args:
      body: as sent, without a transfer coding.
      coding: value of Content-Encoding, or "".
      max_bytes: bound on the result.

    Raises:
      TooLargeError: beyond ``max_bytes``.
      BrokenCodingError: on any coding but gzip, deflate and identity, and on broken data.
    """
    for name in reversed([part.strip().lower() for part in coding.split(",") if part.strip()]):
        if name in ("gzip", "x-gzip"):
            # Some servers name the coding and send plain text; browsers show it, so it is no error here.
            body = gunzip(body, max_bytes) if body.startswith(_GZIP_MAGIC) else body
        elif name == "deflate":
            body = _inflate(body, max_bytes)
        elif name != "identity":
            raise BrokenCodingError(f"got the content coding {name!r}, asked for {ACCEPTED}")
    return body


def gunzip(body: bytes, max_bytes: int) -> bytes:
    """All members of a gzip file; what follows the last one is ignored, as gzip itself does.

    Raises:
      TooLargeError: beyond ``max_bytes``.
      BrokenCodingError: if a member is cut or broken.
    """
    found: list[bytes] = []
    while body.startswith(_GZIP_MAGIC):
        member = zlib.decompressobj(wbits=31)
        found.append(_bounded(member, body, max_bytes - sum(map(len, found))))
        body = member.unused_data
    return b"".join(found)


def _inflate(body: bytes, max_bytes: int) -> bytes:
    """Undoes deflate, which means zlib's format (RFC 9110, 8.4.1.2), and raw deflate to some servers."""
    if not body:
        return b""
    try:
        return _bounded(zlib.decompressobj(), body, max_bytes)
    except BrokenCodingError:
        return _bounded(zlib.decompressobj(wbits=-15), body, max_bytes)


def _bounded(stream: "zlib._Decompress", data: bytes, max_bytes: int) -> bytes:
    pieces, size = [], 0
    try:
        while data and not stream.eof:
            pieces.append(stream.decompress(data, _PIECE_BYTES))
            size += len(pieces[-1])
            if size > max_bytes:
                raise TooLargeError
            data = stream.unconsumed_tail
        if not stream.eof:
            pieces.append(stream.flush())
            size += len(pieces[-1])
    except zlib.error as error:
        raise BrokenCodingError(f"broken compressed data: {error}") from error
    if not stream.eof:
        raise BrokenCodingError("the compressed data is cut")
    if size > max_bytes:
        raise TooLargeError
    return b"".join(pieces)
