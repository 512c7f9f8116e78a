"""Files through Beam's filesystems: every path may be local, gs:// or s3://."""

import contextlib
import hashlib
import io
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NoReturn, cast

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from ..errors import InputError
from . import object_stores

_DIGEST_BYTES = 1 << 20  # of each end of a file: enough to notice another file without reading terabytes


def use_options(beam_args: Sequence[str]) -> None:
    """Gives Beam's filesystems their options, such as ``--s3_region_name``.

    Without options, s3:// paths do not open outside a pipeline.
    """
    FileSystems.set_options(PipelineOptions(list(beam_args)))


def open_read(path: str) -> BinaryIO:
    """Opens a file for reading the bytes as stored, without decompression.

    Raises:
      InputError: if the file does not exist, or is a folder.
    """
    if not exists(path):
        _refuse_missing(path)
    try:
        return cast(BinaryIO, FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED))
    except IsADirectoryError as error:
        raise InputError(
            "is a folder, expected a file", path=path, remedy=f"name a file, or a pattern of files such as '{path}/*'"
        ) from error


def open_write(path: str) -> BinaryIO:
    """Creates a file, and its folder, for writing bytes without compression."""
    if path.startswith("s3://"):
        return object_stores.open_write(path)
    make_folder(path.rpartition("/")[0])
    return cast(BinaryIO, FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED))


def exists(path: str) -> bool:
    """Whether a file or folder exists; object stores have no folders.

    Raises:
      InputError: if no filesystem is installed for paths like this.
    """
    with _known_filesystem(path):
        return bool(FileSystems.exists(path))


def make_folder(path: str) -> None:
    """Creates a folder and its parents where they do not exist; object stores have no folders.

    Raises:
      OSError: if it cannot be created.
    """
    # Asking a store for the name of its bucket is an error, and every question takes time.
    if path and not object_stores.is_object(path) and not exists(path):
        try:
            FileSystems.mkdirs(path)
        except OSError:
            if not FileSystems.exists(path):  # another worker may have created it
                raise


def list_files(pattern: str) -> list[str]:
    """All files that match a glob pattern, sorted by path; ``**`` matches folders below folders."""
    anchored = _anchored(pattern)
    with _known_filesystem(pattern):
        found = FileSystems.match([anchored])[0].metadata_list
    added = len(anchored) - len(pattern)
    return sorted(metadata.path[added:] for metadata in found)


def _anchored(pattern: str) -> str:
    """The pattern with a folder before its first wildcard: Beam matches nothing without one, as in ``*.warc.gz``."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return pattern if "/" in literal or literal == pattern else f"./{pattern}"


def sizes_below(folder: str) -> dict[str, int]:
    """All files in a folder and the folders below it, sorted: path relative to the folder -> size in bytes.

    Local links are followed, and broken ones are listed with the size 0. Empty if there is no such folder.
    """
    folder = folder.rstrip("/")
    if "://" in folder:
        with _known_filesystem(folder):
            found = FileSystems.match([f"{folder}/**"])[0].metadata_list
        sizes = {metadata.path[len(folder) + 1 :]: int(metadata.size_in_bytes) for metadata in found}
        return {name: sizes[name] for name in sorted(sizes) if name and not name.endswith("/")}  # markers of folders
    return dict(sorted(_local_sizes(folder, "", frozenset())))


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
                    size = entry.stat().st_size if entry.is_file() else 0
                    yield f"{prefix}{entry.name}", size


def total_bytes(pattern: str) -> int:
    """The size of all files that match a glob pattern, in bytes."""
    with _known_filesystem(pattern):
        return sum(metadata.size_in_bytes for metadata in FileSystems.match([_anchored(pattern)])[0].metadata_list)


def move(source: str, target: str) -> None:
    """Renames a file, replacing the target."""
    make_folder(target.rpartition("/")[0])
    if not object_stores.is_object(target) and exists(target):  # there, a copy replaces the target
        FileSystems.delete([target])
    FileSystems.rename([source], [target])


def move_all(pairs: Sequence[tuple[str, str]]) -> None:
    """Renames files given as (source, target), replacing the targets; on an object store many at a time.

    Raises:
      OSError: if one cannot be moved; others may have been.
    """
    if any(object_stores.is_object(target) for _, target in pairs):
        object_stores.at_once(move, pairs)
        return
    for source, target in pairs:
        move(source, target)


def temporary_name(path: str) -> str:
    """A name in the folder of a file, for writing it before it is moved; two runs or workers never get the same."""
    return f"{path}.{uuid.uuid4().hex[:12]}.tmp"


def write_whole(path: str, raw: bytes) -> None:
    """Writes a file completely or not at all: under a temporary name first, which object stores do not need."""
    temporary = path if object_stores.is_object(path) else temporary_name(path)
    try:
        with open_write(temporary) as sink:
            sink.write(raw)
        if temporary != path:
            move(temporary, path)
    except BaseException:
        if temporary != path:
            with contextlib.suppress(OSError):  # the first error counts
                delete([temporary])
        raise


def copy(sources: Sequence[str], folder: str) -> None:
    """Copies files into a folder, each completely or not at all; within one object store in a few requests."""
    targets = [f"{folder}/{path.rpartition('/')[2]}" for path in sources]
    if sources and any(sources[0].startswith(store) and folder.startswith(store) for store in object_stores.STORES):
        FileSystems.copy(list(sources), targets)
        return
    for source, target in zip(sources, targets, strict=True):
        with open_read(source) as opened:
            write_whole(target, opened.read())


def delete(paths: Iterable[str]) -> None:
    """Deletes files and folder trees; paths that do not exist are ignored."""
    present: list[str] = []
    for path in paths:
        present += object_stores.listed_below(path) if object_stores.is_object(path) else [path] if exists(path) else []
    if present:
        FileSystems.delete(present)


def write_json(path: str, value: Any) -> None:
    """Writes JSON with sorted keys: equal values give equal bytes."""
    write_whole(path, (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8"))


def read_json(path: str) -> Any:
    """Reads a JSON file.

    Raises:
      InputError: if it is missing or not JSON.
    """
    with open_read(path) as source:
        raw = source.read()
    try:
        return json.loads(raw)
    except ValueError as error:
        raise InputError(
            f"not valid JSON: {error}", path=path, remedy="delete the file and run the job again"
        ) from error


def size_of(path: str) -> int:
    """The size of a file in bytes.

    Raises:
      InputError: if the file does not exist.
    """
    found = FileSystems.match([path])[0].metadata_list
    if not found:
        _refuse_missing(path)
    return int(found[0].size_in_bytes)


def file_digest(path: str) -> str:
    """A digest of a file's size and its first and last 1 MiB: cheap for files of any size.

    Raises:
      InputError: if the file does not exist.
    """
    size = size_of(path)
    digest = hashlib.sha256(str(size).encode())
    with open_read(path) as source:
        digest.update(source.read(_DIGEST_BYTES))
        if size > 2 * _DIGEST_BYTES:
            source.seek(size - _DIGEST_BYTES, io.SEEK_SET)
        digest.update(source.read(_DIGEST_BYTES))
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _known_filesystem(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, BeamIOError) as error:
        # Beam's words for a filesystem that is not installed.
        if "Unable to get filesystem" in str(error) or "Missing boto3" in str(error):
            raise object_stores.missing_support(path) from error
        if isinstance(error, BeamIOError):
            raise InputError(
                f"cannot be reached: {error}", path=path, remedy="check the path and your credentials for it"
            ) from error
        raise


def _refuse_missing(path: str) -> NoReturn:
    raise InputError(
        "no such file", path=path, remedy="check the path; folders of shards are given as the folder itself"
    )
