"""SHA-256 digests of files: written with each result, compared when it is read.

The manifest of a job lists them under ``"sha256"``. Other folders (checkpoints, indexes, embeddings, exports) have a
file ``SHA256SUMS``, which ``sha256sum --check`` of coreutils reads too; a folder without one is not compared.
"""

import concurrent.futures
import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final, Self

from ..errors import InputError
from . import files

SUMS: Final = "SHA256SUMS"
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_THREADS: Final = 4  # hashing releases Python's lock
_UNFINISHED: Final = (".incomplete", ".part", ".aria2", ".crdownload")  # downloads
_POINTER: Final = b"version https://git-lfs"
# Digests of local files that this process has read, so that a build reads each file for this once.
_known: dict[tuple[str, int, int, int], str] = {}


class HashingSink(io.RawIOBase):
    """A binary file for writing that computes the digest of what is written.

    Args:
      sink: the file; closed with this object.
    """

    def __init__(self, sink: BinaryIO) -> None:
        super().__init__()
        self._sink, self._hash = sink, hashlib.sha256()

    def write(self, data: Any) -> int:
        """Writes bytes and returns their number."""
        self._hash.update(data)
        return self._sink.write(data)

    def tell(self) -> int:
        """Number of bytes written."""
        return self._sink.tell()

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            super().close()
            self._sink.close()

    def writable(self) -> bool:
        """True."""
        return True

    @property
    def sha256(self) -> str:
        """Digest of all bytes so far, in hexadecimal digits."""
        return self._hash.hexdigest()


class ShardWriter:
    """Base of writers of one shard, which are context managers: its digest is computed while it is written.

    Args:
      path: the shard; written under a temporary name and moved in on a clean exit.

    Attributes:
      path: as given.
      rows: number of records written so far.
      sha256: digest of the file, once it is closed.
    """

    def __init__(self, path: str) -> None:
        self.path, self.rows, self.sha256 = path, 0, ""
        self._temporary = files.temporary_name(path)
        self._sink = HashingSink(files.open_write(self._temporary))

    def _finish(self) -> None:
        """Writes what is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        ignored = () if error_type is None else (Exception,)  # the first error counts
        with contextlib.suppress(*ignored), self._sink:
            self._finish()
        if error_type is None:
            self.sha256 = self._sink.sha256
            files.move(self._temporary, self.path)
        else:
            files.delete([self._temporary])


def file_sha256(path: str) -> str:
    """Digest of a file, in hexadecimal digits. A local file that did not change is read once by a process.

    Raises:
      OSError: if it cannot be read.
    """
    key = None
    if not files.is_object(path):
        facts = os.stat(path)
        key = os.path.realpath(path), facts.st_size, facts.st_mtime_ns, facts.st_ino
    if key is None or key not in _known:
        with files.open_read(path) as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]  # of any binary file
        if key is None:
            return digest
        _known[key] = digest
    return _known[key]


def differing(folder: str, expected: Mapping[str, str]) -> list[str]:
    """The files, relative to a folder, that cannot be read or have another digest than expected; sorted."""

    def differs(name: str) -> bool:
        try:
            return file_sha256(f"{folder.rstrip('/')}/{name}") != expected[name]
        except (OSError, ValueError):  # the second of a name with a null character
            return True

    names = sorted(expected)
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        return [name for name, is_other in zip(names, pool.map(differs, names), strict=True) if is_other]


def write_sums(folder: str) -> None:
    """Writes ``SHA256SUMS`` for all files in a local folder and the folders below it."""
    remove_sums(folder)
    names = (name for name in files.sizes_below(folder) if not name.endswith(".tmp"))
    write_list(folder, {name: file_sha256(os.path.join(folder, name)) for name in names})


def write_list(folder: str, sums: Mapping[str, str]) -> None:
    """Replaces ``SHA256SUMS`` of a local folder.

    Args:
      folder: local.
      sums: digests by file, relative to the folder.
    """
    with files.writing_text(os.path.join(folder, SUMS)) as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def remove_sums(folder: str) -> None:
    """Removes ``SHA256SUMS``, before files of the folder are replaced."""
    if os.path.exists(path := os.path.join(folder, SUMS)):
        os.remove(path)


def read_sums(folder: str) -> dict[str, str] | None:
    """Digests by file, relative to the folder; ``None`` if it has no ``SHA256SUMS``."""
    check_no_pipes(folder)
    path = f"{folder.rstrip('/')}/{SUMS}"
    remedy = "restore the file from a copy, or delete it to read the folder without comparison"
    if not files.exists(path):
        return None
    sums = {}
    for number, line in enumerate(files.read_bytes(path, remedy).decode("utf-8", "replace").splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            problem = "expected a SHA-256 digest and a file name"
            raise InputError(problem, path=path, field=f"line {number}", remedy=remedy)
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
    return f"not the content that {SUMS} lists: {some_of(wrong)}" if wrong else ""


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_no_pipes(folder: str) -> None:
    """Refuses a local folder that holds named pipes: libraries would wait on them for ever.

    Raises:
      InputError: naming the first.
    """
    if not files.is_object(folder):
        for name in files.sizes_below(folder):
            files.check_no_pipe(os.path.join(folder, name))


def check_fetched(folder: str) -> None:
    """Compares the files of a folder of a model with what half-fetched ones look like.

    Raises:
      InputError: naming a download that has not ended, a pointer of Git LFS in place of a file, or a link to nothing.
    """
    check_no_pipes(folder)
    for name in files.sizes_below(folder):
        path, problem = os.path.join(folder, name), ""
        if name.endswith(_UNFINISHED):
            problem = "this download has not ended"
        elif not os.path.exists(path):
            problem = "this link leads to no file"
        elif name.endswith((".json", ".txt", ".safetensors")):
            with open(path, "rb") as file:
                problem = "" if file.read(len(_POINTER)) != _POINTER else "got a pointer of Git LFS, not the file"
        if problem:
            raise InputError(problem, path=path, remedy="Fetch the folder again, as a whole (`git lfs pull`).")
