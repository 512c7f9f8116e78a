"""Decodes the content coding of a response within a size limit: a kilobyte of gzip can expand to a megabyte."""

import zlib

ACCEPTED = "gzip, deflate"  # value of Accept-Encoding
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 16


class TooLargeError(Exception):
    """The decompressed data exceeds the size limit."""


class BrokenCodingError(Exception):
    """The content coding was not requested, or the data is truncated or corrupt."""


def decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Returns the body without its content coding.

    Args:
      body: the body as sent, without transfer coding.
      coding: value of the Content-Encoding header, or "".
      max_bytes: maximum size of the result.

    Raises:
      TooLargeError: if the result exceeds ``max_bytes``.
      BrokenCodingError: if the coding is not gzip, deflate or identity, or the data is corrupt.
    """
    for name in reversed([part.strip().lower() for part in coding.split(",") if part.strip()]):
        if name in ("gzip", "x-gzip"):
            # Some servers declare gzip and send plain text; browsers accept that, so this is not an error.
            body = gunzip(body, max_bytes) if body.startswith(_GZIP_MAGIC) else body
        elif name == "deflate":
            body = _inflate(body, max_bytes)
        elif name != "identity":
            raise BrokenCodingError(f"got the content coding {name!r}, asked for {ACCEPTED}")
    return body


def gunzip(body: bytes, max_bytes: int) -> bytes:
    """Returns the content of all members of a gzip file; data after the last member is ignored, as gzip does.

    Raises:
      TooLargeError: if the result exceeds ``max_bytes``.
      BrokenCodingError: if a member is truncated or corrupt.
    """
    found: list[bytes] = []
    while body.startswith(_GZIP_MAGIC):
        member = zlib.decompressobj(wbits=31)
        found.append(_bounded(member, body, max_bytes - sum(map(len, found))))
        body = member.unused_data
    return b"".join(found)


def _inflate(body: bytes, max_bytes: int) -> bytes:
    """Decodes deflate: the zlib format (RFC 9110, 8.4.1.2), or raw deflate, which some servers send."""
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
