"""Reads benchmark files as they are distributed: opens, decodes and digests them; errors say where to get them."""

import contextlib
import csv
import gzip
import hashlib
import os
import sys
from collections.abc import Iterator
from typing import IO, cast

from ..errors import InputError


@contextlib.contextmanager
def opened(path: str, remedy: str) -> Iterator[IO[bytes]]:
    """Opens a file for reading bytes, decompressed if the name ends in ``.gz``.

    Raises:
      InputError: if the file is missing, unreadable or truncated, with ``remedy``: where to get it and its layout.
    """
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
            yield cast("IO[bytes]", file)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", path=path, remedy=remedy) from error


def read_text(path: str, remedy: str, encoding: str = "utf-8-sig") -> str:
    """Returns the whole file as text.

    Raises:
      InputError: if it cannot be read or is not in ``encoding``.
    """
    with opened(path, remedy) as file:
        raw = file.read()
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"not {encoding}: {error}", path=path, remedy=f"{remedy}, in {encoding}") from error


def read_rows(path: str, remedy: str, *, delimiter: str, quoted: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields ("path:line", fields) of each row of a table that is not blank; the line is the last one of the row.

    Args:
      path: the file, UTF-8.
      remedy: for a file that cannot be read.
      delimiter: between fields.
      quoted: whether ``"`` quotes fields, which may then contain line breaks; otherwise it is text.

    Raises:
      InputError: if the file cannot be read.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # articles are longer than the default of 128 KiB
    lines = read_text(path, remedy).replace("\r\n", "\n").replace("\0", "").split("\n")
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    for row in reader:
        fields = [field.rstrip("\n") for field in row]
        if any(field.strip() for field in fields):
            yield f"{path}:{reader.line_num}", fields


def folder_entries(path: str, remedy: str) -> list[str]:
    """Returns the names in a folder, sorted, without hidden ones.

    Raises:
      InputError: if there is no such folder, with ``remedy``.
    """
    try:
        return sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy=remedy) from error


def digest(path: str) -> str:
    """Returns the SHA-256 of a file, or of the relative names and contents of all files in a folder, as 64 hex digits.

    Raises:
      OSError: if a file cannot be read.
    """
    if not os.path.isdir(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    total = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            inner = os.path.join(folder, name)
            total.update(
                os.path.relpath(inner, path).encode("utf-8", "surrogateescape") + b"\0" + digest(inner).encode()
            )
    return total.hexdigest()
