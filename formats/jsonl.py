"""JSON-lines files, plain, ``.gz``, ``.bz2`` or ``.zst``, with errors that name the line."""

import codecs
import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from ..errors import InputError

_CHUNK_BYTES: Final = 1 << 20
_REMEDY: Final = "write one JSON object a line, in UTF-8"
_ENCODING_REMEDY: Final = "convert the file, for example by `iconv -f WINDOWS-1252 -t UTF-8`"


class CompressionError(OSError):
    """A file is not compressed as its name says."""


def read_jsonl(path: str, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("path:line", object) of every line of a local file that is not blank.

    Args:
      path: of the file.
      name: what places and errors of lines call it; "" for its path.

    Raises:
      InputError: for a file that cannot be opened, is truncated or is not compressed as its name says, and for a line
        that is not a JSON object.
    """
    for number, line in enumerate(_local_lines(path), 1):
        if line.strip():
            where = f"{name or path}:{number}"
            try:
                row = json.loads(line.decode("utf-8"))  # json itself would guess UTF-16
            except UnicodeDecodeError as error:
                problem = f"not UTF-8: byte 0x{line[error.start]:02x} at {error.start} of the line"
                raise InputError(problem, path=where, remedy=_ENCODING_REMEDY) from error
            except ValueError as error:
                raise InputError(f"not JSON: {error}", path=where, remedy=_REMEDY) from error
            if not isinstance(row, dict):
                raise InputError(f"got a JSON {type(row).__name__}, expected an object", path=where, remedy=_REMEDY)
            yield where, row


def read_lines(source: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the complete lines of an open file, without line ends and without a byte order mark before the first.

    Args:
      source: the file as it is stored.
      path: its name, whose ending says how the file is compressed.

    Raises:
      CompressionError: if the file is not compressed as its name says.
      EOFError: after the last complete line, if the compressed data is truncated or corrupt.
    """
    for number, line in enumerate(_split(_chunks(source, path))):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    pending = b""
    for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        yield from lines
    if pending:
        yield pending


def _local_lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as source:
            yield from read_lines(source, path)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        is_missing = isinstance(error, FileNotFoundError)
        remedy = "check the path" if is_missing else "give a complete JSON-lines file"
        raise InputError(f"cannot be read: {reason}", path=path, remedy=remedy) from error


def _chunks(source: BinaryIO, path: str) -> Iterator[bytes]:
    decompressed = next((chunks for ending, chunks in _COMPRESSED.items() if path.endswith(ending)), None)
    if decompressed is None:
        yield from iter(lambda: source.read(_CHUNK_BYTES), b"")
        return
    errors: tuple[type[Exception], ...] = (OSError, zlib.error)
    if decompressed is _zstd_chunks:
        import zstandard

        errors = (*errors, zstandard.ZstdError)
    started = False
    try:
        for chunk in decompressed(source):
            started = started or bool(chunk)
            yield chunk
    except errors as error:
        if started:
            raise EOFError(str(error)) from error
        raise CompressionError(str(error)) from error


def _gzip_chunks(source: BinaryIO) -> Iterator[bytes]:
    import gzip

    stream = gzip.GzipFile(fileobj=source)
    # Not read(), which discards its data if the end is missing.
    yield from iter(lambda: stream.read1(_CHUNK_BYTES), b"")


def _bzip2_chunks(source: BinaryIO) -> Iterator[bytes]:
    import bz2

    # Not bz2.BZ2File, which ignores a truncated last stream if another one is complete.
    stream = bz2.BZ2Decompressor()
    started = False
    while chunk := source.read(_CHUNK_BYTES):
        while chunk:
            if stream.eof:
                stream = bz2.BZ2Decompressor()
            started = True
            yield stream.decompress(chunk)
            chunk = stream.unused_data
    if started and not stream.eof:
        raise EOFError("the last bzip2 stream is truncated")


def _zstd_chunks(source: BinaryIO) -> Iterator[bytes]:
    # zstandard's stream reader does not detect truncated files, so the frames are read one by one here.
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    started = False
    while chunk := source.read(_CHUNK_BYTES):
        while chunk:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            started = True
            yield frame.decompress(chunk)
            chunk = frame.unused_data
    if started and not frame.eof:
        raise EOFError("the last zstd frame is truncated")


_COMPRESSED: Final = {".zst": _zstd_chunks, ".gz": _gzip_chunks, ".bz2": _bzip2_chunks}
