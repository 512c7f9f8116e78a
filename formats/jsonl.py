"""JSON-lines files, plain, ``.gz`` or ``.zst``, with errors that name the line."""

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any, Final

from ..errors import InputError

_CHUNK_BYTES: Final = 1 << 20
_REMEDY: Final = "write one JSON object a line, in UTF-8"


def read_jsonl(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("path:line", object) of every line that is not blank.

    Raises:
      InputError: on a file that cannot be opened, is cut short or not compressed as its name says, and on a line that is no JSON object.
    """
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                row = json.loads(line.decode("utf-8"))  # json itself would guess UTF-16
            except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
                raise InputError(f"not JSON: {error}", path=where, remedy=_REMEDY) from error
            if not isinstance(row, dict):
                raise InputError(f"got a JSON {type(row).__name__}, expected an object", path=where, remedy=_REMEDY)
            yield where, row


def _lines(path: str) -> Iterator[bytes]:
    pending = b""
    for chunk in _chunks(path):
        *lines, pending = (pending + chunk).split(b"\n")
        yield from lines
    if pending:
        yield pending


def _chunks(path: str) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            yield from _zstd_chunks(file) if path.endswith(".zst") else iter(lambda: file.read(_CHUNK_BYTES), b"")
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", path=path, remedy="give a whole JSON-lines file") from error


def _zstd_chunks(file: io.BufferedIOBase) -> Iterator[bytes]:
    # zstandard's own stream reader takes a cut file for a whole one, so the frames are walked here.
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    started = False
    while chunk := file.read(_CHUNK_BYTES):
        while chunk:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            started = True
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            chunk = frame.unused_data
    if started and not frame.eof:
        raise EOFError("the last zstd frame is cut short")
