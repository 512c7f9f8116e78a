"""Object stores, gs:// and s3://, through fsspec: whole objects, and requests that are repeated when they fail.

A filesystem is fetched for each request and never kept: fsspec gives each process its own, also after a fork.
"""

import contextlib
import io
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, cast

from ..errors import InputError

_BUCKET: Final = re.compile("(gs|s3)://[^/]+")
_REMEDIES: Final = {
    "s3": "check the path, --s3_endpoint_url, --s3_region_name and the keys: --s3_access_key_id and "
    "--s3_secret_access_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "check the path and the credentials: GOOGLE_APPLICATION_CREDENTIALS, or run: "
    "gcloud auth application-default login",
}
NO_FILE: Final = "check the path; folders of shards are given as the folder itself"
_BLOCK_BYTES: Final = 4 << 20  # of a read; a file that is read in order costs a request for each
_PART_BYTES: Final = 16 << 20  # of an upload
_THREADS: Final = 16
# The clients of both stores repeat each request themselves; this is for what they do not repeat, as a broken upload.
_TRIES: Final = 3
_SECONDS: Final = 10.0  # until a store counts as one that cannot be reached
_S3_LIMITS: Final = {"connect_timeout": 5, "read_timeout": 60, "retries": {"total_max_attempts": 3, "mode": "standard"}}
# Broken connections and answers that are not whole, by name: without S3, there is no botocore.
_BROKEN: Final = {
    *("botocore.exceptions.HTTPClientError", "botocore.exceptions.ConnectionError"),
    *("botocore.exceptions.IncompleteReadError", "botocore.parsers.ResponseParserError"),
}


def use_options(beam_args: Sequence[str]) -> None:
    """Takes Beam's options of S3, such as ``--s3_region_name``; without them, the environment says what to use.

    Beam itself sets them in its workers.
    """
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    FileSystems.set_options(PipelineOptions(list(beam_args)))


def check_reachable(paths: Iterable[str]) -> None:
    """Asks the store of each bucket once, within seconds; other paths than these are ignored.

    Raises:
      InputError: if the store does not answer, refuses the keys, or has no such bucket.
    """
    for path in sorted({found[0] for found in map(_BUCKET.match, paths) if found}):
        bucket = path[5:]
        try:
            if path.startswith("s3"):
                _filesystem(path, is_check=True).call_s3("list_objects_v2", Bucket=bucket, MaxKeys=1, timeout=_SECONDS)
            else:
                _filesystem(path).call("GET", "b/{}/o", bucket, maxResults=1, json_out=True, timeout=_SECONDS)
        except InputError:
            raise
        except Exception as error:  # see _ask
            status, code = _answer(error)
            # A bucket may allow other requests than lists, and a store that has too much to do now is there.
            if code != "AccessDenied" and "Forbidden" not in str(error) and not _is_busy(status):
                raise _unusable(path, error) from error


def exists(path: str) -> bool:
    """Whether there is an object of this name."""
    return _size(path) is not None


def _size(path: str) -> int | None:
    try:
        found = _ask(path, "info", path)
    except FileNotFoundError:
        return None
    return None if found["type"] == "directory" else int(found["size"])


def sizes(pattern: str) -> dict[str, int]:
    """The objects that match a glob pattern, and their sizes in bytes; ``**`` matches folders below folders."""
    return _listed(re.sub(r"\*\*(?!/|$)", "**/*", pattern), "glob")


def sizes_below(folder: str) -> dict[str, int]:
    """The objects whose names start with a folder, and their sizes in bytes."""
    return {path: size for path, size in _listed(folder, "find").items() if path.startswith(f"{folder}/")}


def _listed(path: str, method: str) -> dict[str, int]:
    try:
        found = _ask(path, method, path, detail=True)
    except FileNotFoundError:
        return {}
    scheme = path.partition("://")[0]
    return {f"{scheme}://{name}": int(info["size"]) for name, info in found.items() if info["type"] != "directory"}


def open_read(path: str) -> BinaryIO:
    """Opens an object for reading the bytes as stored; each block is a request.

    Raises:
      InputError: if there is no such object, or the store cannot be reached, also while reading.
    """
    size = _size(path)
    if size is None:
        raise InputError("no such file", path=path, remedy=NO_FILE)
    return io.BufferedReader(_Object(path, size), _BLOCK_BYTES)


def read_range(path: str, start: int, end: int) -> bytes:
    """The bytes of an object from `start` to before `end`, which are in it.

    Raises:
      InputError: if the object has fewer.
    """
    raw: bytes = _ask(path, "cat_file", path, start=start, end=end) if start < end else b""
    if len(raw) != max(0, end - start):
        problem = f"got {len(raw)} bytes from byte {start}, expected {end - start}"
        raise InputError(problem, path=path, remedy="do not replace files while they are read; try again")
    return raw


def open_write(path: str) -> BinaryIO:
    """Creates an object for writing bytes, through a file of the folder for temporary files.

    It appears when it is closed; after an error in its ``with`` statement, it does not.
    """
    return cast(BinaryIO, _Upload(path))


def move(source: str, target: str) -> None:
    """Renames an object, replacing the target."""
    copy(source, target)
    _remove(source)


def copy(source: str, target: str) -> None:
    """Copies an object within one store, which does it without a transfer."""
    _ask(target, "cp_file", source, target)


def delete(path: str) -> None:
    """Deletes the object of a path, if there is one, and all objects below it."""
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(_remove, [path, *sizes_below(path.rstrip("/"))]))


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # also if the answer to the first request was lost
        _ask(path, "rm_file", path)


class _Object(io.RawIOBase):
    """An object's bytes, for reading from any position."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self.name, self._size, self._position = path, size, 0
        self._tail = b""  # the last block, which a BufferedReader forgets at the end of the file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = max(0, offset + (0, self._position, self._size)[whence])
        return self._position

    def readinto(self, buffer: Any) -> int:
        end, tail = min(self._size, self._position + len(buffer)), self._size - len(self._tail)
        if self._position < tail:
            raw = read_range(self.name, self._position, end)
            self._tail = raw if end == self._size and len(raw) <= _BLOCK_BYTES else self._tail
        else:
            raw = self._tail[self._position - tail :][: len(buffer)]
        buffer[: len(raw)] = raw
        self._position += len(raw)
        return len(raw)

    def readall(self) -> bytes:
        whole = bytearray(max(0, self._size - self._position))
        for start in range(0, len(whole), _PART_BYTES):
            self.readinto(memoryview(whole)[start : start + _PART_BYTES])
        return bytes(whole)


class _Upload(io.BufferedWriter):
    """A local file, which is uploaded and deleted when it is closed."""

    def __init__(self, path: str) -> None:
        self._path, self._local = path, tempfile.NamedTemporaryFile(buffering=0)  # noqa: SIM115 - close
        super().__init__(cast(io.RawIOBase, self._local.file))

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.flush()
            _ask(self._path, "put_file", self._local.name, self._path, chunksize=_PART_BYTES)
        finally:
            super().close()
            self._local.close()

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is not None:
            self._local.close()
        self.close()

    def __del__(self) -> None:
        self._local.close()  # never closed: not whole


def _ask(path: str, method: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a method of the filesystem of a path, several times if connections break or the store has too much to do.

    Raises:
      FileNotFoundError: if there is no such object or bucket.
      InputError: for all other errors.
    """
    for number in range(1, _TRIES + 1):
        try:
            return getattr(_filesystem(path), method)(*args, **kwargs)
        except FileNotFoundError:
            # An upload in parts is unknown after its last request, whose answer may have been lost: it starts again.
            if number == _TRIES or method != "put_file":
                raise
        except InputError:
            raise
        except Exception as error:  # the clients raise errors of a dozen families
            if number == _TRIES or not _is_passing(error):
                raise _unusable(path, error) from error
        time.sleep(random.uniform(0.5, 1) * 2 ** (number - 1))
    raise AssertionError


def _answer(error: BaseException) -> tuple[str, str]:
    """The status of the answer that an error is about, and its code; both may be empty."""
    found = getattr(error, "response", None) or getattr(error.__cause__, "response", None)  # of botocore, or of s3fs
    if not isinstance(found, dict):
        return str(getattr(error, "code", None) or ""), ""
    status = found.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
    return str(status), str(found.get("Error", {}).get("Code", ""))


def _is_busy(status: str) -> bool:
    return status in ("408", "429") or status.startswith("5")


def _is_passing(error: BaseException) -> bool:
    """Whether a request may succeed later: there were too many, the server had an error, or the connection broke."""
    import aiohttp
    from fsspec.exceptions import FSTimeoutError

    status, _ = _answer(error)
    if status:
        return _is_busy(status)
    if isinstance(error, (PermissionError, FSTimeoutError)):  # the latter for a time limit of ours
        return False
    families = {f"{family.__module__}.{family.__name__}" for family in type(error).__mro__}
    return isinstance(error, (OSError, aiohttp.ClientError)) or not families.isdisjoint(_BROKEN)


def _filesystem(path: str, *, is_check: bool = False) -> Any:
    scheme = path.partition("://")[0]
    if scheme not in _REMEDIES:
        raise _missing_support(path)
    # It would ask over gRPC which kind of bucket each one is.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        import fsspec

        filesystem = fsspec.filesystem(
            scheme, use_listings_cache=False, skip_instance_cache=is_check, **_options(scheme)
        )
        if scheme == "s3":
            filesystem.retries = 1 if is_check else filesystem.retries
            import s3fs

            s3fs.core.set_custom_error_handler(_is_passing)
        else:
            # Its own `info` lists the objects below at the same time: a second request, and a dearer one.
            filesystem.info = fsspec.asyn.sync_wrapper(filesystem._get_object, filesystem)  # noqa: SLF001
            logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it logs the tracebacks of errors that it raises
    except ImportError as error:
        raise _missing_support(path) from error
    return filesystem


def _options(scheme: str) -> dict[str, Any]:
    if scheme == "gs":
        emulator = os.environ.get("STORAGE_EMULATOR_HOST")
        return {"endpoint_url": emulator, "token": "anon" if emulator else None, "requests_timeout": 60}
    limits: dict[str, Any] = {"config_kwargs": _S3_LIMITS}
    beam = sys.modules.get("apache_beam.io.filesystems")
    if beam is None or beam.FileSystems._pipeline_options is None:  # noqa: SLF001 - where each worker of Beam has them
        return limits
    from apache_beam.options.pipeline_options import S3Options

    given = beam.FileSystems._pipeline_options.view_as(S3Options)  # noqa: SLF001
    client = {"region_name": given.s3_region_name, "api_version": given.s3_api_version, "verify": given.s3_verify}
    return limits | {
        "endpoint_url": given.s3_endpoint_url,
        "key": given.s3_access_key_id,
        "secret": given.s3_secret_access_key,
        "token": given.s3_session_token,
        "use_ssl": not given.s3_disable_ssl,
        "client_kwargs": {name: value for name, value in client.items() if value is not None},
    }


def _unusable(path: str, error: BaseException) -> InputError:
    scheme = path.partition("://")[0]
    endpoint = _options(scheme).get("endpoint_url") or "the default endpoint"
    said = str(error) or f"no answer within {_SECONDS:.0f} s"
    return InputError(f"{endpoint} cannot be used: {said}", path=path, remedy=_REMEDIES[scheme])


def _missing_support(path: str) -> InputError:
    remedy = "gs:// needs `pip install 'newsembed[gcs]'`, s3:// needs 'newsembed[aws]'; download https:// files first"
    return InputError("no filesystem is installed for paths like this", path=path, remedy=remedy)
