"""Articles that users bring or jobs write, as Parquet (the stream ``Article``) or JSONL, on local disk.

`read_rows` reads either kind of file; `read_articles` makes records of what embedding and showing an article needs.
"""

import atexit
import dataclasses
import datetime
import functools
import glob
import gzip
import io
import itertools
import json
import os
import reprlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import InputError
from .dates import parse_day, place_of
from .digests import some_of
from .fields import columns_of, standard
from .files import write_whole
from .jsonl import ENDINGS, read_jsonl
from .manifest import has_manifest
from .records import make_doc_id
from .urls import canonical_url

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 1024
_ENDINGS: Final = (".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst")
_READABLE: Final = (".parquet", *ENDINGS)
_STREAM: Final = "articles"  # of the jobs that write articles
_TEXTS: Final = ("title", "body")
_Rows = Iterator[tuple[str, Mapping[str, Any]]]  # places to name in errors, and rows
_OPTIONAL: Final = ("doc_id", "url", "publisher", "language", "byline_date", "published_at", "image_url")
_STANDARD_INPUT: Final = "-"
_SPOOLED: Final = "newsembed-input-"
_REMEDY: Final = (
    "give articles as Parquet, JSONL or CSV with the fields title and body, and url, publisher, byline_date where known"
)


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleText:
    """What embedding and showing an article needs; a subset of the stream record ``Article``.

    Attributes:
      doc_id: 16 hex digits; where the file has none, the first 64 bits of SHA-1 of the canonical URL, or of the texts
        without one.
      url: where the article was published; "" if unknown.
      publisher: registered domain; "" if unknown.
      title: the title, may be empty.
      body: the text, may be empty.
      language: BCP-47 tag; "" if unknown.
      byline_date: UTC day, of ``published_at`` where the row has no byline date; ``None`` if unknown or not believed.
      image_url: of the thumbnail; "" if unknown.
    """

    doc_id: str
    url: str
    publisher: str
    title: str
    body: str
    language: str = ""
    byline_date: datetime.date | None = None
    image_url: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the article has no text at all."""
        return not (self.title.strip() or self.body.strip())


def read_articles(path: str) -> Iterator[ArticleText]:
    """Yields the articles of a file, or of all Parquet or JSONL files under a folder in the order of their names.

    Raises:
      InputError: if there is no such file, it is neither Parquet nor JSONL, or a row lacks ``title`` or ``body``.
    """
    for where, row in read_rows(article_files(path), _TEXTS, _OPTIONAL):
        yield article_of(row, where)


def to_table(articles: Iterable[ArticleText]) -> "pa.Table":
    """An Arrow table with a column for each field."""
    import pyarrow as pa

    from .parquet import schema_of

    return pa.Table.from_pylist([dataclasses.asdict(article) for article in articles], schema_of(ArticleText))


def write_articles(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes articles as Parquet or JSON lines, by the ending of the name; the file appears when it is complete.

    Args:
      path: ends in ``.parquet``, ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.zst``.
      rows: with title and body; the other fields are written as they are.

    Returns:
      The number of articles.

    Raises:
      InputError: for another ending, or a row without title or body.
    """
    if not path.endswith(_ENDINGS):
        raise InputError(f"the name ends in none of {', '.join(_ENDINGS)}", path=path, remedy="give another name")
    checked = [dict(row) for row in rows]
    for number, row in enumerate(checked, 1):
        article_of(row, f"article {number}")
    write_whole(path, _content(path, checked))
    return len(checked)


def _content(path: str, rows: list[dict[str, Any]]) -> bytes:
    """The content of a file of articles, by the ending of its name."""
    if path.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = list(dict.fromkeys(name for row in rows for name in row)) or list(_TEXTS)
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        return sink.getvalue()
    raw = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode("utf-8", "replace")
    if path.endswith(".gz"):
        return gzip.compress(raw, mtime=0)
    if path.endswith(".zst"):
        import zstandard

        return bytes(zstandard.ZstdCompressor().compress(raw))
    return raw


def read_rows(paths: Iterable[str], columns: Sequence[str], optional: Sequence[str] = ()) -> _Rows:
    """Yields ("path:line", row) of JSON-lines and CSV files and ("path:row number", row) of Parquet files.

    Fields under the names of other tools have ours, see :mod:`.fields`.

    Args:
      paths: files; those that do not end in ``.parquet`` are JSON lines or CSV.
      columns: what Parquet files must have; JSON objects come as they are.
      optional: what is also read of Parquet files that have it.

    Raises:
      InputError: for a file that cannot be read or lacks a column, and for a line that is not a JSON object.
    """
    for path in paths:
        if _is_archive(path):
            yield from _archive_rows(path, columns, optional)
        elif path.endswith(".parquet"):
            yield from _parquet_rows(path, columns, optional)
        else:
            name = "standard input" if os.path.basename(path).startswith(_SPOOLED) else ""
            yield from ((where, standard(row)) for where, row in read_jsonl(path, name))


def article_files(path: str) -> list[str]:
    """The files that :func:`read_articles` reads for ``path``; "-" is JSONL on standard input.

    The folder of a job, such as ``work/clean``, stands for its articles, and an archive or an index for its own.

    Raises:
      InputError: if there are none, or a folder holds both kinds.
    """
    if path == _STANDARD_INPUT:
        return [_spooled_input()]
    if _is_archive(path):
        return [path]
    if os.path.isdir(path):
        stream = os.path.join(path, _STREAM)
        if has_manifest(path) and os.path.isdir(stream):
            path = stream  # the folder of a job holds other streams and dead letters, too
        found = glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
        complete = sorted(name for name in found if name.endswith(_ENDINGS) and os.path.isfile(name))
        if complete := complete or sorted(name for name in found if name.endswith(_READABLE) and os.path.isfile(name)):
            if len({name.endswith(".parquet") for name in complete}) > 1:  # copies of each other, or parts?
                remedy = "keep the two kinds in two folders"
                raise InputError("the folder holds .parquet and .jsonl files", path=path, remedy=remedy)
            return complete
        there = some_of(sorted({os.path.splitext(name)[1] for name in found if os.path.isfile(name)}))
        problem = f"the folder holds no .parquet, .jsonl, .json and .csv files{there and f', there is {there}'}"
        raise InputError(problem, path=path, remedy=_instead(there))
    if not os.path.isfile(path):
        raise InputError("no such file or folder", path=path, remedy=_REMEDY)
    if not path.endswith(_READABLE):
        problem = "the name ends in none of .parquet, .jsonl, .ndjson, .json, .csv, .tsv (also .gz, .bz2, .xz, .zst)"
        raise InputError(problem, path=path, remedy=_instead(path))
    return [path]


def _instead(name: str) -> str:
    """What to do with a file of another kind."""
    packed = "unpack it, and give the files in it" if ".zip" in name else _REMEDY
    return "save it as CSV in UTF-8" if ".xls" in name else packed


def _is_archive(path: str) -> bool:
    return os.path.isdir(f"{path}/runs.lance")


def _archive_rows(path: str, columns: Sequence[str], optional: Sequence[str]) -> _Rows:
    from .archive import ARTICLE_COLUMNS, Archive

    names = [name for name in (*columns, *optional) if name in ARTICLE_COLUMNS]
    for batch in Archive(path).batches(names):
        for row in batch.to_pylist():
            yield f"{path}:{row.get('doc_id', '')}", row


@functools.cache
def _spooled_input() -> str:
    """Standard input as a temporary file: it is read more than once, and ends with this process."""
    handle, path = tempfile.mkstemp(suffix=".jsonl", prefix=_SPOOLED)
    atexit.register(os.remove, path)
    with open(handle, "wb") as sink:
        shutil.copyfileobj(sys.stdin.buffer, sink)
    return path


def _parquet_rows(path: str, columns: Sequence[str], optional: Sequence[str]) -> _Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from .parquet import damage_named

    with damage_named(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        present = file.schema_arrow.names
        found = {name: columns_of(name, present) for name in (*columns, *optional)}
        if lacking := [name for name in columns if not found[name]]:
            problem = f"the column is missing, there is {some_of(present)}"
            raise InputError(problem, path=path, field=lacking[0], remedy=_REMEDY)
        names = list(dict.fromkeys(itertools.chain.from_iterable(found.values())))
        batches = file.iter_batches(_BATCH_ROWS, columns=names)
        for number, row in enumerate(itertools.chain.from_iterable(map(pa.RecordBatch.to_pylist, batches)), 1):
            yield f"{path}:row {number}", standard(row)


def article_of(row: Mapping[str, Any], where: str) -> ArticleText:
    """The record of a row.

    Args:
      row: the fields of an article, and any others.
      where: the place to name in errors.

    Raises:
      InputError: if it lacks ``title`` or ``body``, or a field is not a string.
    """
    if lacking := [field for field in _TEXTS if field not in row]:
        problem = f"the field is missing, there is {some_of(list(row)) or 'none'}"
        raise InputError(problem, path=where, field=lacking[0], remedy=_REMEDY)
    texts = {
        field: _text(row.get(field), where, field)
        for field in ("doc_id", "url", "publisher", "title", "body", "language", "image_url")
    }
    if not texts["doc_id"]:
        texts["doc_id"] = make_doc_id(canonical_url(texts["url"]) or f"{texts['title']}\n{texts['body']}")
    place = place_of(texts["language"], texts["url"])
    byline_date = parse_day(row.get("byline_date"), place) or parse_day(row.get("published_at"), place)
    return ArticleText(**texts, byline_date=byline_date)


def _text(value: Any, where: str, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"got {reprlib.repr(value)}, expected a string", path=where, field=field, remedy=_REMEDY)
    return value
