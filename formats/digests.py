"""SHA-256 digests of files: written with each result, compared when it is read.

The manifest of a job lists them under ``"sha256"``. Other folders (checkpoints, indexes, embeddings, exports) have a
file ``SHA256SUMS``, which ``sha256sum --check`` of coreutils reads too. Folders of older versions have neither and are
read without comparison.
"""

import concurrent.futures
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, Final

from ..errors import InputError
from .whole import replacing

SUMS: Final = "SHA256SUMS"
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_PIECE: Final = 1 << 20
_THREADS: Final = 4  # hashing releases Python's lock
_SHOWN: Final = 5
# Digests of local files that this process has read, so that a build reads each file for this once.
_known: dict[tuple[str, int, int, int], str] = {}


class HashingSink:
    """A binary file for writing that computes the digest of what is written.

    Args:
      sink: the file; closed with this object.
    """

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Writes bytes and returns their number."""
        size = memoryview(data).nbytes
        self._sink.write(data)
        self._hash.update(data)
        self._position += size
        return size

    def tell(self) -> int:
        """Number of bytes written."""
        return self._position

    def flush(self) -> None:
        """Passes what was written on to the file."""
        self._sink.flush()

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            self.closed = True
            self._sink.close()

    def readable(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False."""
        return False

    @property
    def sha256(self) -> str:
        """Digest of all bytes so far, in hexadecimal digits."""
        return self._hash.hexdigest()


def file_sha256(path: str) -> str:
    """Digest of a file, in hexadecimal digits. A local file that did not change is read once by a process.

    Raises:
      OSError: if it cannot be read.
    """
    if "://" in path:
        from . import files

        with files.open_read(path) as source:
            return _digest_of(source)
    facts = os.stat(path)
    key = (os.path.realpath(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if key not in _known:
        with open(path, "rb") as source:
            _known[key] = _digest_of(source)
    return _known[key]


def differing(folder: str, expected: Mapping[str, str]) -> list[str]:
    """The files, relative to a folder, that cannot be read or have another digest than expected; sorted."""

    def differs(name: str) -> bool:
        try:
            return file_sha256(f"{folder.rstrip('/')}/{name}") != expected[name]
        except OSError:
            return True

    names = sorted(expected)
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        return [name for name, is_other in zip(names, pool.map(differs, names), strict=True) if is_other]


def write_sums(folder: str) -> None:
    """Writes ``SHA256SUMS`` for all files in a local folder and the folders below it."""
    remove_sums(folder)
    names = sorted(
        os.path.relpath(os.path.join(above, name), folder) for above, _, found in os.walk(folder) for name in found
    )
    write_list(folder, {name: file_sha256(os.path.join(folder, name)) for name in names if not name.endswith(".tmp")})


def write_list(folder: str, sums: Mapping[str, str]) -> None:
    """Replaces ``SHA256SUMS`` of a local folder.

    Args:
      folder: local.
      sums: digests by file, relative to the folder.
    """
    with replacing(os.path.join(folder, SUMS)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def remove_sums(folder: str) -> None:
    """Removes ``SHA256SUMS``, before files of the folder are replaced."""
    if os.path.exists(path := os.path.join(folder, SUMS)):
        os.remove(path)


def read_sums(folder: str) -> dict[str, str] | None:
    """Digests by file, relative to the folder; ``None`` if it has no ``SHA256SUMS``.

    Raises:
      InputError: if the list is damaged.
    """
    path = f"{folder.rstrip('/')}/{SUMS}"
    if "://" in path:
        from . import files

        if not files.exists(path):
            return None
        with files.open_read(path) as source:
            raw = source.read()
    else:
        if not os.path.exists(path):
            return None
        with open(path, "rb") as source:
            raw = source.read()
    sums = {}
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            remedy = "restore the file from a copy, or delete it to read the folder without comparison"
            raise InputError(
                "expected a SHA-256 digest and a file name", path=path, field=f"line {number}", remedy=remedy
            )
        sums[found[2]] = found[1]
    return sums


def check_sums(folder: str, remedy: str, only: Iterable[str] | None = None) -> None:
    """Compares files of a folder with its ``SHA256SUMS``; does nothing where there is none.

    Args:
      folder: local.
      remedy: what the user can do if a file differs.
      only: see :func:`damage`.

    Raises:
      InputError: if a file is missing or differs.
    """
    if problem := damage(folder, only):
        raise InputError(problem, path=folder, remedy=remedy)


def damage(folder: str, only: Iterable[str] | None = None) -> str:
    """What differs from the ``SHA256SUMS`` of a folder, as a sentence; empty if nothing does or there is no such file.

    Args:
      folder: local.
      only: the files or folders below `folder` that are read; None means all.

    Raises:
      InputError: if the list is damaged.
    """
    sums = read_sums(folder) or {}
    if only is not None:
        parts = tuple(only)
        sums = {name: sums[name] for name in sums if any(name == part or name.startswith(f"{part}/") for part in parts)}
    wrong = differing(folder, sums)
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return f"not the content that {SUMS} lists: {', '.join(wrong[:_SHOWN])}{more}" if wrong else ""


def _digest_of(source: BinaryIO) -> str:
    found = hashlib.sha256()
    while piece := source.read(_PIECE):
        found.update(piece)
    return found.hexdigest()
