"""Files, local or in an object store (gs://, s3://): read, listed, moved, and written whole or not at all.

Paths with a scheme are those of `stores`, which has no folders.
"""

import contextlib
import glob
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, BinaryIO, Final, TextIO

from ..errors import InputError, of_file_system, reading, refusing
from . import stores

_TEMPORARY: Final = ".tmp"  # the end of the names of files that are not complete
_NAME_BYTES: Final = 220  # of a name, so that the temporary one is no longer than file systems take
_THREADS: Final = 16  # requests at a time; each waits for the network, not for a core
_DIGEST_BYTES: Final = 1 << 20  # of each end of a file: enough to notice another file without reading terabytes


def packaged(package: str, name: str) -> str:
    """The text of a file that comes with a package of ours."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def is_object(path: str) -> bool:
    """Whether a path is in an object store."""
    return "://" in path


def exists(path: str) -> bool:
    """Whether a file or folder exists; object stores have no folders.

    Raises:
      InputError: if no filesystem is installed for paths like this.
    """
    return stores.exists(path) if is_object(path) else os.path.exists(path)


def open_read(path: str) -> BinaryIO:
    """Opens a file for reading the bytes as stored, without decompression.

    Raises:
      InputError: if the file does not exist, or is a folder or a named pipe.
    """
    if is_object(path):
        return stores.open_read(path)
    if not os.path.exists(path):
        raise InputError("no such file", path=path, remedy=stores.NO_FILE)
    if os.path.isdir(path):
        remedy = f"name a file, or a pattern of files such as '{path}/*'"
        raise InputError("is a folder, expected a file", path=path, remedy=remedy)
    check_no_pipe(path)
    return open(path, "rb")


def check_no_pipe(path: str) -> None:
    """Refuses a named pipe, on which a reader waits for ever; one of the shell is in /dev.

    Raises:
      InputError: for a named pipe.
    """
    if not path.startswith("/dev/") and os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise InputError("is a named pipe, expected a file", path=path, remedy="name a file")


def open_write(path: str) -> BinaryIO:
    """Creates a file, and its folder, for writing bytes without compression."""
    if is_object(path):
        return stores.open_write(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return open(path, "wb")


def list_files(pattern: str, folder: str = "") -> list[str]:
    """All files that match a glob pattern, sorted by path; ``**`` matches folders below folders.

    Args:
      pattern: relative to `folder`, if one is given.
      folder: a name, in which no character has another meaning.
    """
    if folder:
        pattern = f"{glob.escape(folder.rstrip('/'))}/{pattern}"
    if is_object(pattern):
        return sorted(stores.sizes(pattern))
    pattern = re.sub(r"\*\*(?!/|$)", "**/*", pattern)  # **.txt, as the stores read it
    return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True, include_hidden=True)))


def sizes_below(folder: str) -> dict[str, int]:
    """All files in a folder and the folders below it, sorted: path relative to the folder -> size in bytes.

    Local links are followed, and broken ones are listed with the size 0. Empty if there is no such folder.
    """
    folder = folder.rstrip("/")
    if not is_object(folder):
        return dict(sorted(_local_sizes(folder, "", frozenset())))
    found = {path[len(folder) + 1 :]: size for path, size in sorted(stores.sizes_below(folder).items())}
    return {name: size for name, size in found.items() if name and not name.endswith("/")}  # markers of folders


def _local_sizes(folder: str, prefix: str, above: frozenset[str]) -> Iterator[tuple[str, int]]:
    real = os.path.realpath(folder)
    if real in above or not os.path.isdir(folder):  # a link to a folder above
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _local_sizes(entry.path, f"{prefix}{entry.name}/", above | {real})
            else:
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    yield f"{prefix}{entry.name}", entry.stat().st_size if entry.is_file() else 0


def size_of(path: str) -> int:
    """The size of a file in bytes."""
    with open_read(path) as source:
        return source.seek(0, io.SEEK_END)


def total_bytes(pattern: str) -> int:
    """The size of all files that match a glob pattern, in bytes."""
    if is_object(pattern):
        return sum(stores.sizes(pattern).values())
    total = 0
    for path in list_files(pattern):
        with contextlib.suppress(FileNotFoundError):  # a temporary file that was renamed meanwhile
            total += os.path.getsize(path)
    return total


def move(source: str, target: str) -> None:
    """Renames a file, replacing the target."""
    if is_object(target):
        stores.move(source, target)
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    os.replace(source, target)


def move_all(pairs: Sequence[tuple[str, str]]) -> None:
    """Renames files given as (source, target), replacing the targets; on an object store many at a time.

    Raises:
      OSError: if one cannot be moved; others may have been.
    """
    with ThreadPoolExecutor(_THREADS if any(is_object(target) for _, target in pairs) else 1) as pool:
        list(pool.map(lambda pair: move(*pair), pairs))


def copy(sources: Sequence[str], folder: str) -> None:
    """Copies files into a folder, each completely or not at all; within one object store without a transfer."""
    targets = [f"{folder}/{path.rpartition('/')[2]}" for path in sources]
    with ThreadPoolExecutor(_THREADS if is_object(folder) else 1) as pool:
        list(pool.map(_copy, sources, targets))


def _copy(source: str, target: str) -> None:
    if is_object(target) and source.partition("://")[0] == target.partition("://")[0]:
        stores.copy(source, target)
        return
    with open_read(source) as opened:
        write_whole(target, opened.read())


def delete(paths: Iterable[str]) -> None:
    """Deletes files and folder trees; paths that do not exist are ignored."""
    for path in paths:
        if is_object(path):
            stores.delete(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def file_digest(path: str) -> str:
    """A digest of a file's size and its first and last 1 MiB: cheap for files of any size."""
    with open_read(path) as source:
        size = source.seek(0, io.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        for start in (0, min(size, max(_DIGEST_BYTES, size - _DIGEST_BYTES))):
            source.seek(start)
            digest.update(source.read(_DIGEST_BYTES))
    return digest.hexdigest()[:16]


def temporary_name(path: str) -> str:
    """A name in the folder of a file, for writing it before it is moved; two runs or workers never get the same."""
    folder, slash, name = path.rpartition("/")
    start = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
    return f"{folder}{slash}{start}.{uuid.uuid4().hex[:12]}{_TEMPORARY}"


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """The temporary name of a local file, which replaces the file on leaving the context without an error.

    It is in the same folder and ends in ``.tmp``. After an error it is deleted, also on a full disk.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # the error came before the first byte
            os.remove(temporary)
        raise


@contextlib.contextmanager
def writing_text(path: str) -> Iterator[TextIO]:
    """A text file in UTF-8 that replaces the file of this name on leaving the context; its folder is made.

    A pipe or a device, such as /dev/stdout, is written to.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    is_replaced = os.path.isfile(path) or not os.path.exists(path)
    with (
        replacing(path) if is_replaced else contextlib.nullcontext(path) as place,
        open(place, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def write_whole(path: str, raw: bytes) -> None:
    """Writes a file, and its folder, completely or not at all."""
    with contextlib.nullcontext(path) if is_object(path) else replacing(path) as place, open_write(place) as sink:
        sink.write(raw)


def read_bytes(path: str, remedy: str) -> bytes:
    """The content of a file; `remedy` is what the user can do where it cannot be read."""
    if not is_object(path):
        check_no_pipe(path)
    with reading(path, remedy, OSError), open_read(path) if is_object(path) else open(path, "rb") as file:
        return file.read()


def read_json(path: str, remedy: str = "delete the file and run the job again", kind: type = object) -> Any:
    """The value of a JSON file, which is of this type.

    Raises:
      InputError: with the remedy, if it is missing, not JSON, or of another type.
    """
    raw = read_bytes(path, remedy)
    with refusing("not valid JSON:", ValueError, path=path, remedy=remedy):
        value = json.loads(raw)
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "another value"
        raise InputError(f"got a JSON {type(value).__name__}, expected {expected}", path=path, remedy=remedy)
    return value


def write_json(path: str, value: Any) -> None:
    """Writes JSON with sorted keys, complete or not at all; equal values give equal bytes."""
    write_whole(path, (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())


def check_output(path: str, *, is_folder: bool) -> None:
    """Checks that the output of a command can be at a path, before the work is done.

    Args:
      path: as given for ``--output``; of an object store it is asked whether it answers.
      is_folder: whether the output is a folder, else a file.

    Raises:
      InputError: for a file where a folder is needed, or the other way round, or a place that cannot be written.
    """
    if is_object(path):
        stores.check_reachable([path])
        return
    if os.path.exists(path) and os.path.isdir(path) != is_folder:
        found, needed = ("a file", "a folder") if is_folder else ("a folder", "a file")
        raise InputError(f"is {found}, the output is {needed}", path=path, field="--output", remedy="name another path")
    if not is_folder and os.path.exists(path) and not os.path.isfile(path):
        return  # a pipe or a device
    place = os.path.abspath(path if is_folder else os.path.dirname(os.path.abspath(path)))
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(path)  # a name may be too long
        with tempfile.TemporaryFile(dir=place):  # permissions do not say it all
            pass
    except OSError as error:
        known = of_file_system(OSError(error.errno, error.strerror, place))
        problem, remedy = f"cannot be written: {place}: {error.strerror}", known.remedy if known else None
        raise InputError(problem, path=path, field="--output", remedy=remedy or "name another path") from error
