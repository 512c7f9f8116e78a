"""Reads articles to embed from Parquet (the stream ``Article`` on disk) or JSONL."""

import dataclasses
import datetime
import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import InputError
from ..formats.jsonl import read_jsonl

_BATCH_ROWS: Final = 1024
_OPTIONAL: Final = ("doc_id", "url", "publisher", "language", "byline_date")
_REMEDY: Final = (
    "give articles as Parquet or JSONL with the fields title and body, and url, publisher, byline_date where known"
)


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleText:
    """What embedding and showing an article needs; a subset of the stream record ``Article``.

    Attributes:
      doc_id: 16 hex digits; where the file has none, the first 64 bits of SHA-1 of the URL, or of the texts without one.
      byline_date: UTC day, ``None`` if unknown or no date.
    """

    doc_id: str
    url: str
    publisher: str
    title: str
    body: str
    language: str = ""
    byline_date: datetime.date | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.title.strip() or self.body.strip())


def read_articles(path: str) -> Iterator[ArticleText]:
    """Yields the articles of a file, or of all Parquet or JSONL files under a folder in the order of their names.

    Raises:
      InputError: if there is no such file, it is no Parquet or JSONL, or a row lacks ``title`` or ``body``.
    """
    for file in article_files(path):
        rows = _parquet_rows(file) if file.endswith(".parquet") else read_jsonl(file)
        for where, row in rows:
            yield _article(row, where)


def article_files(path: str) -> list[str]:
    """The files that :func:`read_articles` reads for ``path``.

    Raises:
      InputError: if there are none.
    """
    if os.path.isdir(path):
        for pattern in ("*.parquet", "*.jsonl*"):
            if found := sorted(glob.glob(os.path.join(glob.escape(path), "**", pattern), recursive=True)):
                return found
        raise InputError("the folder holds no .parquet and no .jsonl files", path=path, remedy=_REMEDY)
    if not os.path.isfile(path):
        raise InputError("no such file or folder", path=path, remedy=_REMEDY)
    if not path.endswith((".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst")):
        raise InputError(
            "the name ends neither in .parquet nor in .jsonl, .jsonl.gz or .jsonl.zst", path=path, remedy=_REMEDY
        )
    return [path]


def _parquet_rows(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in ("title", "body", *_OPTIONAL) if name in file.schema_arrow.names]
            number = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:row {number}", row
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"no readable Parquet: {error}", path=path, remedy=_REMEDY) from error


def _article(row: Mapping[str, Any], where: str) -> ArticleText:
    for field in ("title", "body"):
        if field not in row:
            raise InputError("the field is missing", path=where, field=field, remedy=_REMEDY)
    texts = {
        field: _text(row.get(field), where, field)
        for field in ("doc_id", "url", "publisher", "title", "body", "language")
    }
    if not texts["doc_id"]:
        named = texts["url"] or f"{texts['title']}\n{texts['body']}"
        texts["doc_id"] = hashlib.sha1(named.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
    return ArticleText(**texts, byline_date=_date(row.get("byline_date")))


def _text(value: Any, where: str, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"got a {type(value).__name__}, expected a string", path=where, field=field, remedy=_REMEDY)
    return value


def _date(value: Any) -> datetime.date | None:
    """A day, or ``None`` for what is none: crawled dates can be junk, and here they are only shown."""
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value)[:10])
    except ValueError:
        return None
