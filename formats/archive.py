"""The archive: articles with their words, vectors and events, as tables in a LanceDB database.

::

    articles.lance   one row for each article, see `schema`
    terms.lance      for each word the number of articles that hold it
    seen.lance       what `newsembed update` knows of every article that passed its rules, duplicates included
    crawl.lance      the state of its crawls: names and contents of files
    runs.lance       one row for each run that changed the archive: the versions of the other tables, settings, report
    SHA256SUMS       digests of all files, where the archive is on a local disk
    last_run.json, dead_letters/     what the last `newsembed update` read, whatever came of it
    trainings/000001/                of a training on the archive, see :mod:`.trainings`
    .work/, .training/               of the run and of the training in progress, or of one that was cut off

The database is a local folder or a URI of an object store. A run commits to the other tables first and adds its row to
``runs`` last, in one step. A reader opens the versions that the last row names, so that it sees a run whole or not at
all. What a run that was cut off has committed is undone when the next one begins.
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib.util
import json
import os
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, reading
from . import files, folders
from .digests import SUMS, check_no_pipes, differing, read_sums, some_of
from .parquet import schema_of
from .records import Article

FORMAT_VERSION: Final = 1
CACHE_VARIABLE: Final = "NEWSEMBED_CACHE_GB"
_MOST_CACHE_GB: Final = 100_000
LAST_RUN: Final = "last_run.json"  # report of the last run, whatever came of it
DEAD_LETTERS: Final = "dead_letters"  # what it rejected, Parquet
WORK: Final = ".work"  # of the run in progress, or of one that was cut off
OTHER_FILES: Final = (LAST_RUN, DEAD_LETTERS, WORK)
ARTICLES, TERMS, SEEN, CRAWL, RUNS, LOCK = "articles", "terms", "seen", "crawl", "runs", "lock"
EXACT_LIMIT: Final = 50_000  # articles; the vectors of so few are compared one by one
_CHECKED_BYTES: Final = 512 << 20  # archives up to this size are compared with their digests when they are opened
_PROBED_SHARE: Final = 0.2  # of the partitions of the vectors: recall@10 .95 where half of a vector is noise
AT_ONCE: Final = 1_000  # values in a condition
_HINT: Final = "latest_version_hint.json"  # the only file of a table that changes; it is checked when it is used
_REMEDY: Final = (
    "build it again, restore it from a copy, or return to an earlier version by newsembed update --rollback"
)

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

# The columns that results show.
SHOWN: Final = ("doc_id", "url", "publisher", "title", "byline_date", "language", "image_url")
# What the record `Article` has; those that a source of articles does not know are null.
ARTICLE_COLUMNS: Final = {field.name: field.type for field in schema_of(Article)}
RUN_SCHEMA: Final = pa.schema(
    [
        ("number", pa.int64()),
        *((name, pa.string()) for name in ("started", "versions", "settings", "report")),  # the last three are JSON
        ("merges", pa.list_(pa.struct([(name, pa.string()) for name in ("event_id", "into", "doc_id")]))),
    ]
)
TERM_SCHEMA: Final = pa.schema([("term", pa.string()), ("documents", pa.int64())])
NO_TERMS: Final = TERM_SCHEMA.empty_table()
_TERMS_KNOWN: Final = 100_000  # words whose frequencies are in memory


def schema(dimensions: int, encoder_digest: str = "") -> pa.Schema:
    """The columns of ``articles``, with the version of the format and the digest of the encoder as metadata.

    ``canonical_url`` finds an article by any spelling of its URL, ``words`` are the words as a search compares them,
    ``event_id`` is the doc_id of the article that opened its event ("" for none), ``vector`` has unit length.
    """
    added = {"canonical_url": pa.string(), "words": pa.string(), "event_id": pa.string()}
    columns = {**ARTICLE_COLUMNS, **added, "vector": pa.list_(pa.float32(), dimensions)}
    metadata = {"newsembed.format": str(FORMAT_VERSION), "newsembed.encoder_digest": encoder_digest}
    return pa.schema(columns.items(), metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The fields of an article that search results show."""

    doc_id: str
    url: str
    publisher: str
    title: str
    byline_date: datetime.date | None = None
    language: str = ""
    image_url: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return dataclasses.asdict(self) | {"byline_date": self.byline_date.isoformat() if self.byline_date else None}


@dataclasses.dataclass(frozen=True, slots=True)
class EventMerge:
    """Two events that turned out to be one.

    Attributes:
      event_id: of the event that ended.
      into: of the event that has its articles since.
      doc_id: of the article that joined them.
    """

    event_id: str
    into: str
    doc_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One version of an archive.

    Attributes:
      number: from 1.
      started: UTC time.
      versions: of the tables, by name.
      settings: JSON values that later runs read: the encoder, how it reads, what was learned.
      report: JSON values: what the run did.
      merges: events that became one in this run.
    """

    number: int
    started: str
    versions: Mapping[str, int]
    settings: Mapping[str, Any]
    report: Mapping[str, Any]
    merges: tuple[EventMerge, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """The row of the table ``runs``."""
        texts = {name: json.dumps(getattr(self, name)) for name in ("versions", "settings", "report")}
        merges = [dataclasses.asdict(merge) for merge in self.merges]
        return {"number": self.number, "started": self.started, **texts, "merges": merges}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `to_row` gave."""
        texts = {name: json.loads(row[name]) for name in ("versions", "settings", "report")}
        return cls(row["number"], row["started"], **texts, merges=tuple(EventMerge(**merge) for merge in row["merges"]))


def is_archive(uri: str) -> bool:
    """Whether there is an archive that has a version."""
    return os.path.isdir(table_folder(uri, RUNS)) if "://" not in uri else RUNS in table_names(connect(uri))


def read_runs(uri: str) -> list[Run]:
    """The runs of an archive, oldest first; none where there is no archive."""
    with reading_tables(uri, RUNS):
        if not is_archive(uri):
            return []
        rows = connect(uri).open_table(RUNS).search().to_arrow().sort_by("number").to_pylist()
        return [Run.from_row(row) for row in rows]


def last_number(uri: str) -> int:
    """The number of the last run; cheap."""
    with reading_tables(uri, RUNS):
        if not is_archive(uri):
            raise _missing(uri)
        return int(max(connect(uri).open_table(RUNS).search().select(["number"]).to_arrow()["number"].to_pylist()))


def check_startable(uri: str, field: str = "--archive") -> None:
    """Checks that a first run may write here: there is an archive, or nothing but what such a run leaves.

    Raises:
      InputError: for a local folder with other files; names some of them.
    """
    if "://" in uri or is_archive(uri) or not os.path.exists(uri):
        return
    if not os.path.isdir(uri):
        raise InputError("is a file", path=uri, field=field, remedy="name a new or an empty folder")
    own = {f"{name}.lance" for name in (ARTICLES, TERMS, SEEN, CRAWL)} | {SUMS, folders.LOCK, *OTHER_FILES}
    if others := sorted(set(os.listdir(uri)) - own):
        problem, remedy = f"is not an archive, and not empty: it has {some_of(others)}", "name a new or an empty folder"
        raise InputError(problem, path=uri, field=field, remedy=remedy)


class Archive:
    """One version of an archive, for reading. Later runs do not change what it shows, as long as the version is kept.

    Rows are named by numbers that hold within a version.

    Args:
      uri: folder or URI of the database.
      run: the version, also one that is not published yet; None for the last.

    Raises:
      InputError: if there is no archive, or a file of it is missing or damaged.

    Attributes:
      uri: as given.
      run: the version.
      dimensions: of the vectors.
    """

    def __init__(self, uri: str, run: Run | None = None) -> None:
        self.uri = uri
        runs = [run] if run else read_runs(uri)
        if not runs:
            raise _missing(uri)
        self.run = runs[-1]
        _check_files(uri)
        self._database = connect(uri)
        self._tables, self._frequencies = dict[str, Any](), dict[str, int]()
        self._articles = self.table(ARTICLES)
        self.dimensions = int(self._articles.schema.field("vector").type.list_size)
        self._count = int(self._articles.count_rows())
        # A search with filters asks two or three times.
        self._counted = functools.lru_cache(1_024)(lambda where: int(self._articles.count_rows(where)))

    def __len__(self) -> int:
        return self._count

    def table(self, name: str) -> Any:
        """A table at this version; None if the version has none of this name."""
        if name in self.run.versions and name not in self._tables:
            with reading_tables(self.uri, name):
                table = self._database.open_table(name)
                table.checkout(self.run.versions[name])
            self._tables[name] = table
        return self._tables.get(name)

    def whole(self, name: str) -> pa.Table | None:
        """All rows of a table at this version; None if the version has none of this name."""
        table = self.table(name)
        with reading_tables(self.uri, name):
            return None if table is None else table.search().to_arrow()

    def rows(self, columns: Sequence[str], where: str = "") -> pa.Table:
        """Columns of the articles that meet a condition in SQL, and their numbers as ``_rowid``."""
        query = self._inner(ARTICLES).query().select([*columns]).with_row_id()
        return self._fetched(query.where(where) if where else query)

    def take(self, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Columns of articles by their numbers, in this order."""
        wanted = [int(number) for number in numbers]
        if not wanted:
            return self.rows(columns, "false")
        found = self._fetched(self._inner(ARTICLES).take_row_ids(wanted).select([*columns]).with_row_id())
        return found.take(pc.index_in(pa.array(wanted, pa.uint64()), found["_rowid"]))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All articles, in batches."""
        with reading_tables(self.uri):
            query = self._articles.search()
            yield from (query.select([*columns]) if columns else query).to_batches()

    def documents(self, numbers: Sequence[int]) -> list[IndexedDocument]:
        """What results show of articles."""
        return [IndexedDocument(**row) for row in self.take(numbers, SHOWN).select(SHOWN).to_pylist()]

    def vectors(self, numbers: Sequence[int]) -> FloatArray:
        """The vectors of articles, float32 ``[n, D]``."""
        return vectors_of(self.take(numbers, ["vector"])["vector"], self.dimensions)

    def count(self, where: str = "") -> int:
        """How many articles meet a condition."""
        with reading_tables(self.uri):
            return self._counted(where) if where else self._count

    def matching(self, terms: Iterable[str], count: int, where: str = "") -> tuple[IntArray, npt.NDArray[np.float64]]:
        """The articles with the highest BM25 score for words, best first: their numbers and scores."""
        from lancedb.query import MatchQuery

        query = self._inner(ARTICLES).query().nearest_to_text(MatchQuery(" ".join(terms), "words"))
        chosen = query.select(["_score"]).with_row_id().limit(count)
        found = self._fetched(chosen.where(where) if where else chosen)
        numbers, scores = found["_rowid"].to_numpy().astype(np.int64), found["_score"].to_numpy().astype(np.float64)
        order = np.lexsort((numbers, -scores))
        return numbers[order], scores[order]

    def _inner(self, name: str) -> Any:
        """What a synchronous table is around; that one asks up to seven times for the schema in each search."""
        return self.table(name)._table  # noqa: SLF001 - the library has no other way to it

    def _fetched(self, query: Any) -> pa.Table:
        """The rows of a query to `_inner`."""
        from lancedb.background_loop import LOOP

        with reading_tables(self.uri):
            return LOOP.run(query.to_arrow())

    def nearest(self, vector: FloatArray, count: int, where: str = "") -> tuple[IntArray, FloatArray]:
        """The articles of highest cosine with a unit vector by the index, best first: their numbers and cosines."""
        with reading_tables(self.uri):
            chosen = self._articles.search(vector, vector_column_name="vector").distance_type("dot")
            chosen = chosen.select(["_distance"]).with_row_id(True).limit(count)
            chosen = chosen.nprobes(max(1, int(_PROBED_SHARE * partitions(self._count))))
            if where:
                chosen = chosen.where(where, prefilter=True)
                if self.count(where) <= EXACT_LIMIT // 5:
                    chosen = chosen.bypass_vector_index()
            found = chosen.to_arrow()
        return found["_rowid"].to_numpy().astype(np.int64), (1 - found["_distance"].to_numpy()).astype(np.float32)

    def read_terms(self) -> None:
        """Reads how many articles hold each word, unless the words are too many: no query has to look them up then."""
        table = self.table(TERMS)
        if table is not None and table.count_rows() <= _TERMS_KNOWN:
            found = table.search().to_arrow()
            self._frequencies = dict(zip(found["term"].to_pylist(), found["documents"].to_pylist(), strict=True))

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """How many articles hold each word."""
        if len(self._frequencies) > _TERMS_KNOWN:
            self._frequencies = {}
        known, asked = self._frequencies, set(terms)
        unknown = sorted(term for term in asked if term not in known)  # a difference of sets would go through all known
        for start in range(0, len(unknown), AT_ONCE):
            part = unknown[start : start + AT_ONCE]
            found = self._fetched(self._inner(TERMS).query().where(any_of("term", part)))
            counts = zip(found["term"].to_pylist(), found["documents"].to_pylist(), strict=True)
            known.update(dict.fromkeys(part, 0) | dict(counts))
        return {term: known[term] for term in asked}


def vectors_of(column: Any, dimensions: int) -> FloatArray:
    """The float32 ``[n, D]`` of a column of vectors."""
    flat: FloatArray = column.combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, dimensions)


def vector_column(vectors: FloatArray) -> pa.Array:
    """A column of vectors."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), vectors.shape[1])


def any_of(column: str, values: Iterable[str]) -> str:
    """The condition that a column has one of some values."""
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})" if quoted else "false"


# The database


def partitions(rows: int) -> int:
    """Of the index of so many vectors."""
    return max(1, int(np.sqrt(rows)))


def connect(uri: str) -> Any:
    """The database of a folder or URI.

    Raises:
      InputError: for a path that LanceDB does not take, a named pipe in the folder, or a wrong `CACHE_VARIABLE`.
    """
    check_no_pipes(uri)
    os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of its own later changes with every search
    client = "lance_namespace_urllib3_client"
    if "lancedb" not in sys.modules and (spec := importlib.util.find_spec(client)):
        # Half of the time of the import goes into a client of REST services, which a local database does not need.
        stub = types.ModuleType(client)
        stub.__path__ = list(spec.submodule_search_locations or ())
        sys.modules.setdefault(client, stub)
        try:
            import lancedb
        finally:
            if sys.modules[client] is stub:
                del sys.modules[client]
    import lancedb

    with reading(uri, "name a folder without control characters"):
        return lancedb.connect(uri, session=lancedb.Session(index_cache_size_bytes=_cache_bytes()))


def _cache_bytes() -> int:
    """How much of the indexes a process keeps in memory; LanceDB itself keeps 6 GB."""
    given = os.environ.get(CACHE_VARIABLE) or "6"
    with contextlib.suppress(ValueError):
        if 0 <= (size := float(given)) <= _MOST_CACHE_GB:
            return int(size * 2**30)
    raise InputError(f"got {given!r}", field=CACHE_VARIABLE, remedy="give a number of gigabytes, such as 0.5")


def table_names(database: Any) -> list[str]:
    """The tables that a database has, also those that no run has published."""
    return list(database.list_tables(limit=100).tables)


def table_folder(uri: str, name: str) -> str:
    """Where a table is."""
    return f"{uri.rstrip('/')}/{name}.lance"


@contextlib.contextmanager
def reading_tables(uri: str, table: str = "") -> Iterator[None]:
    """Names the archive in errors of the database, and the table where only one is read.

    Raises:
      InputError: for a table or a file of it that is missing or damaged.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a panic of the database has a class that no module gives
        where = table and f"table {table}"
        raise InputError(f"no readable archive: {error}", path=uri, field=where, remedy=_REMEDY) from error


def _missing(uri: str) -> InputError:
    why = "it has no runs" if "://" in uri or os.path.exists(uri) else "no such folder"
    inside = f"{uri.rstrip('/')}/archive"  # where `newsembed explore` makes it
    is_inside = os.path.isdir(table_folder(inside, RUNS))
    remedy = f"name {inside}" if is_inside else "build it with newsembed index or newsembed update"
    return InputError(f"no readable archive: {why}", path=uri, remedy=remedy)


def tables_files(uri: str) -> dict[str, int]:
    """The files of all tables of a local archive that never change, relative to it, and their sizes in bytes."""
    sizes = files.sizes_below(uri)
    return {name: sizes[name] for name in sizes if ".lance/" in name and not name.endswith(_HINT)}


def _check_files(uri: str) -> None:
    """Compares a local archive that is not large with its digests; what was removed meanwhile was of old versions."""
    if "://" in uri or not os.path.exists(os.path.join(uri, SUMS)):
        return
    known, there = read_sums(uri) or {}, tables_files(uri)
    listed = {name: known[name] for name in there if name in known}
    if sum(there[name] for name in listed) > _CHECKED_BYTES:
        return
    if wrong := [name for name in differing(uri, listed) if os.path.exists(os.path.join(uri, name))]:
        problem = f"no readable archive: not the content that {SUMS} lists: {some_of(wrong)}"
        raise InputError(problem, path=uri, remedy=_REMEDY)
