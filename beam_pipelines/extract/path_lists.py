"""Lists of WARC files, as Common Crawl publishes them for each month of CC-NEWS (``warc.paths.gz``)."""

import gzip
import zlib
from concurrent.futures import ThreadPoolExecutor

from ...errors import InputError
from ...formats import files

_ENDINGS = (".txt", ".paths", ".txt.gz", ".paths.gz")
_PARALLEL = 16  # look-ups at a time


def is_path_list(path: str) -> bool:
    """Whether an input is a list of paths: it begins with "@", or its name ends like one."""
    return path.startswith("@") or path.endswith(_ENDINGS)


def list_path(path: str) -> str:
    """Where a list lies, without the "@"."""
    return path.removeprefix("@")


def read_path_list(path: str, base: str = "") -> list[str]:
    """Paths of a list, plain or gzipped, one a line; blank lines and lines that start with # are skipped.

    Args:
      path: of the list, local, gs:// or s3://, with or without "@".
      base: what relative paths begin with, such as ``s3://commoncrawl/``; the list's own folder if empty.

    Raises:
      InputError: if a file is not there, naming the list and the line; if the list holds none, or is no text.
    """
    place = list_path(path)
    prefix = f"{base.rstrip('/')}/" if base else f"{place.rpartition('/')[0]}/" if "/" in place else ""
    named = [(number, line if _is_absolute(line) else prefix + line) for number, line in _lines(place)]
    if not named:
        raise InputError("names no file", path=place, field="--warc", remedy="write one path a line")
    with ThreadPoolExecutor(_PARALLEL) as pool:
        present = list(pool.map(files.exists, (target for _, target in named)))
    for (number, target), found in zip(named, present, strict=True):
        if not found:
            raise InputError(
                f"no such file: {target}",
                path=f"{place}:{number}",
                field="--warc",
                remedy="check --warc_base, or take the line out",
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
            f"no list of paths: {error}",
            path=path,
            field="--warc",
            remedy="fetch it again, or name WARC files themselves",
        ) from error
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]
