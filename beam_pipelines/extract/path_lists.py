"""Reads lists of WARC files, as Common Crawl publishes them for each month of CC-NEWS (``warc.paths.gz``)."""

import gzip
import zlib
from concurrent.futures import ThreadPoolExecutor

from ...errors import InputError
from ...formats import files

_ENDINGS = (".txt", ".paths", ".txt.gz", ".paths.gz")
_PARALLEL = 16  # concurrent lookups


def is_path_list(path: str) -> bool:
    """Returns whether an input is a list of paths: it starts with "@" or has the file extension of a list."""
    return path.startswith("@") or path.endswith(_ENDINGS)


def list_path(path: str) -> str:
    """Returns the path of a list, without the "@"."""
    return path.removeprefix("@")


def read_path_list(path: str, base: str = "") -> list[str]:
    """Returns the paths of a list, plain or gzipped, one per line; blank lines and lines starting with # are skipped.

    Args:
      path: path of the list, local, gs:// or s3://, with or without "@".
      base: prefix of relative paths, such as ``s3://commoncrawl/``; the folder of the list if empty.

    Raises:
      InputError: if a file does not exist, naming the list and the line; if the list is empty or not text.
    """
    place = list_path(path)
    prefix = f"{base.rstrip('/')}/" if base else f"{place.rpartition('/')[0]}/" if "/" in place else ""
    named = [(number, line if _is_absolute(line) else prefix + line) for number, line in _lines(place)]
    if not named:
        raise InputError("contains no path", path=place, field="--warc", remedy="write one path per line")
    with ThreadPoolExecutor(_PARALLEL) as pool:
        present = list(pool.map(files.exists, (target for _, target in named)))
    for (number, target), found in zip(named, present, strict=True):
        if not found:
            raise InputError(
                f"no such file: {target}",
                path=f"{place}:{number}",
                field="--warc",
                remedy="check --warc_base, or remove the line",
            )
    return [target for _, target in named]


def _is_absolute(line: str) -> bool:
    return line.startswith("/") or "://" in line


def _lines(path: str) -> list[tuple[int, str]]:
    with files.open_read(path) as source:
        raw = source.read()
    try:
        text = (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(
            f"not a list of paths: {error}",
            path=path,
            field="--warc",
            remedy="fetch it again, or give the WARC files directly",
        ) from error
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]
