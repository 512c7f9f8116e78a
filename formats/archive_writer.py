"""Writing an archive: one process at a time makes the next version, and publishes it in one step."""

import collections
import contextlib
import dataclasses
import datetime
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from .. import __version__
from ..errors import InputError
from .archive import (
    ARTICLES,
    AT_ONCE,
    EXACT_LIMIT,
    LOCK,
    NO_TERMS,
    RUN_SCHEMA,
    RUNS,
    TERM_SCHEMA,
    TERMS,
    EventMerge,
    Run,
    any_of,
    check_startable,
    connect,
    partitions,
    read_runs,
    reading_tables,
    table_folder,
    table_names,
    tables_files,
)
from .digests import file_sha256, read_sums, write_list
from .folders import locked, now

_STALE_SHARE: Final = 0.02  # of the articles may be outside of the indexes; a search reads their texts instead
_NEVER: Final = datetime.timedelta(36_500)
_RUNS_APART: Final = 32  # rows of runs in files of their own, which each look for a new version opens
_SLACK: Final = datetime.timedelta(seconds=10)  # the age of a version grows while the older ones are removed
_SYSTEM_ERROR: Final = re.compile(r"\(os error (\d+)\)")
# The words of an index are those of the column, without further steps of its tokenizer.
_AS_THEY_ARE: Final = dict.fromkeys(
    ("lower_case", "stem", "remove_stop_words", "ascii_folding", "with_position"), False
)


class Writer:
    """The next version of an archive. A context manager: one process writes at a time, the others are refused.

    Nothing shows until `publish`.

    Args:
      uri: folder or URI; the folder is made.
      field: the option that names it, for errors.

    Raises:
      InputError: if another process writes the archive, or the folder holds other files.

    Attributes:
      base: the version before; None for the first.
    """

    def __init__(self, uri: str, field: str = "--output") -> None:
        self.uri, self._field = uri, field
        self.base: Run | None = None
        self._touched = dict[str, Any]()
        self._terms = collections.Counter[str]()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        check_startable(self.uri, self._field)
        self._open.enter_context(_locked(self.uri, self._field))
        with self._open:
            runs = read_runs(self.uri)
            self.base = runs[-1] if runs else None
            self.runs = runs
            self._database = connect(self.uri)
            self._undo()
            self._open = self._open.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._open.close()
        if isinstance(error, RuntimeError) and (found := _SYSTEM_ERROR.search(str(error))):
            number = int(found[1])  # LanceDB passes on the errors of the system as texts
            raise OSError(number, os.strerror(number), self.uri) from error

    def _undo(self) -> None:
        """Takes back what a run that was cut off has committed."""
        versions = self.base.versions if self.base else {}
        with reading_tables(self.uri):
            for name in set(table_names(self._database)) - {RUNS, LOCK}:
                if name not in versions:
                    self._database.drop_table(name)
                    continue
                table = self._database.open_table(name)
                if table.version != versions[name]:
                    table.checkout(versions[name])
                    table.restore()

    def create(self, shape: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Writes all articles anew."""
        self._terms = collections.Counter()
        self.overwrite(TERMS, NO_TERMS)
        reader = pa.RecordBatchReader.from_batches(shape, map(self._counting, batches))
        self._touched[ARTICLES] = self._database.create_table(ARTICLES, reader, schema=shape, mode="overwrite")

    def change(self, rows: pa.Table, removed: Iterable[str] = ()) -> None:
        """Adds articles, or replaces those with the same ``doc_id``, and removes others, in one step.

        Args:
          rows: of the schema of the table.
          removed: ids of articles.
        """
        table = self._table(ARTICLES)
        gone = sorted({*removed} - {*rows["doc_id"].to_pylist()})
        names = [*gone, *rows["doc_id"].to_pylist()]
        for start in range(0, len(names), AT_ONCE):
            before = table.search().where(any_of("doc_id", names[start : start + AT_ONCE])).select(["words"])
            for words in before.to_arrow()["words"].to_pylist():
                self._terms.subtract(set(words.split()))
        for batch in rows.to_batches():
            self._counting(batch)
        merge = table.merge_insert("doc_id").when_matched_update_all().when_not_matched_insert_all()
        if gone:
            merge = merge.when_not_matched_by_source_delete(any_of("doc_id", gone))
        merge.execute(rows)

    def set_events(self, events: Mapping[str, str]) -> None:
        """Gives articles another event, by their ids."""
        if events:
            self.update_rows(ARTICLES, "doc_id", pa.table({"doc_id": [*events], "event_id": [*events.values()]}))

    def overwrite(self, name: str, rows: pa.Table) -> None:
        """Replaces a table."""
        self._touched[name] = self._database.create_table(name, rows, mode="overwrite")

    def append(self, name: str, rows: pa.Table) -> None:
        """Adds rows to a table, which is made."""
        if self.base and name in self.base.versions:
            self._table(name).add(rows)
        else:
            self.overwrite(name, rows)

    def update_rows(self, name: str, key: str, rows: pa.Table) -> None:
        """Changes some columns of rows that are there, by a key."""
        self._table(name).merge_insert(key).when_matched_update_all().execute(rows)

    def finish(
        self, settings: Mapping[str, Any], report: Mapping[str, Any], merges: Sequence[EventMerge] = (), keep: int = 2
    ) -> Run:
        """Indexes what has changed; the new version is complete, but nobody sees it before `publish`.

        Args:
          settings: JSON values.
          report: JSON values.
          merges: events that became one.
          keep: versions that can be opened afterwards, at least 2.
        """
        self._write_terms()
        for name, table in self._touched.items():
            _index(name, table)
            kept = [run.versions[name] for run in self.runs[-keep + 1 :] if name in run.versions]
            _prune(table, min(kept, default=0))
        versions = {name: int(table.version) for name, table in self._touched.items()}
        number, before = (self.base.number + 1, self.base.versions) if self.base else (1, {})
        kept_settings = {**settings, "newsembed": __version__}
        return Run(number, now(), {**before, **versions}, kept_settings, report, tuple(merges))

    def roll_back(self, number: int) -> Run:
        """Publishes an earlier version again.

        Raises:
          InputError: if it is not kept.
        """
        kept = {run.number: run for run in self.runs if self._has(run)}
        before = kept.get(number)
        if before is None:
            remedy = f"name a version that is kept: {', '.join(map(str, kept))}; --keep_versions says how many are"
            raise InputError(f"version {number} is not there", path=self.uri, field="--rollback", remedy=remedy)
        new = self.runs[-1].number + 1
        report = {**before.report, "rollback": number, "version": new}
        run = dataclasses.replace(before, number=new, started=now(), report=report, merges=())
        self.publish(run)
        return run

    def _has(self, run: Run) -> bool:
        """Whether the tables of a run are kept."""
        with contextlib.suppress(ValueError, OSError, RuntimeError):
            for name, version in run.versions.items():
                self._database.open_table(name).checkout(version)
            return True
        return False

    def publish(self, run: Run) -> None:
        """Makes a version the one that readers see, in one step."""
        rows = pa.Table.from_pylist([run.to_row()], RUN_SCHEMA)
        if self.base:
            table = self._database.open_table(RUNS)
            table.add(rows)
            if not run.number % _RUNS_APART:
                table.optimize(cleanup_older_than=datetime.timedelta(days=1))  # when nobody reads them
        else:
            self._database.create_table(RUNS, rows)
        _write_sums(self.uri)

    def _table(self, name: str) -> Any:
        """A table that this run changes."""
        if name not in self._touched:
            self._touched[name] = self._database.open_table(name)
        return self._touched[name]

    def _counting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for words in batch.column("words").to_pylist():
            self._terms.update(set(words.split()))
        return batch

    def _write_terms(self) -> None:
        if not self._terms:
            return
        counts = pa.table([pa.array(self._terms.keys()), pa.array(self._terms.values())], schema=TERM_SCHEMA)
        with reading_tables(self.uri):
            known = self._table(TERMS).to_arrow()
        counts = pa.concat_tables([known, counts]).group_by("term").aggregate([("documents", "sum")])
        counts = counts.rename_columns(["term", "documents"])
        counts = counts.filter(pc.greater(counts["documents"], 0)).sort_by("term").cast(TERM_SCHEMA)
        self.overwrite(TERMS, counts)
        self._terms.clear()


def _index(name: str, table: Any) -> None:
    """Indexes what a run has changed, as far as that pays."""
    from lancedb.index import FTS, Bitmap, BTree, IvfFlat

    rows, indexed = table.count_rows(), {index.columns[0]: index.name for index in table.list_indices()}
    wanted = dict[str, Any]()
    if name == ARTICLES and rows:
        wanted["words"] = FTS(base_tokenizer="whitespace", max_token_length=None, **_AS_THEY_ARE)
    if name == ARTICLES and rows > EXACT_LIMIT:
        wanted["vector"] = IvfFlat(distance_type="dot", num_partitions=partitions(rows))
        wanted |= {"doc_id": BTree(), "byline_date": BTree(), "canonical_url": BTree()}
        # Without these a search among few articles, such as those of a rare language, reads the vectors of all.
        wanted |= {"language": Bitmap(), "publisher": BTree()}
    if name == TERMS and rows:
        wanted["term"] = BTree()
    for column, config in wanted.items():
        if column not in indexed:
            table.create_index(column, config=config)
    stale = max((table.index_stats(index).num_unindexed_rows for index in indexed.values()), default=0)
    if rows <= EXACT_LIMIT or stale > _STALE_SHARE * rows:
        table.optimize(cleanup_older_than=_NEVER)


def _prune(table: Any, oldest: int) -> None:
    """Removes the versions of a table before the oldest one that is kept."""
    versions = {version["version"]: version["timestamp"] for version in table.list_versions()}
    if oldest in versions and min(versions) < oldest:
        first = min(time for version, time in versions.items() if version >= oldest)  # of a clock that jumped, too
        age = datetime.datetime.now(datetime.UTC) - first.astimezone() + _SLACK
        if age >= _SLACK:  # else the clock was ahead; they are removed when it is right again
            table.optimize(cleanup_older_than=age)


@contextlib.contextmanager
def _locked(uri: str, field: str) -> Iterator[None]:
    """Keeps other writers out: by a lock on the folder, or on an object store by a table that is made and dropped."""
    if "://" in uri:
        database = connect(uri)
        owner = f"{socket.gethostname()}, process {os.getpid()}, {now()}"
        try:
            database.create_table(LOCK, pa.table({"owner": [owner]}))
        except (ValueError, OSError, RuntimeError) as error:
            if LOCK not in table_names(database):
                raise InputError(f"cannot be written: {error}", path=uri, field=field, remedy="check it") from error
            found = database.open_table(LOCK).to_arrow()["owner"][0].as_py()
            place = table_folder(uri, LOCK)
            remedy = f"run the command again when it has ended; if it no longer runs, delete {place}"
            problem = f"another process writes this archive: {found}"
            raise InputError(problem, path=uri, field=field, remedy=remedy) from error
        try:
            yield
        finally:
            database.drop_table(LOCK)
        return
    with locked(uri, field):
        yield


def _write_sums(uri: str) -> None:
    """Lists the digests of all files of a local archive. A file of a table never changes, so that old ones hold."""
    if "://" in uri:
        return
    known = read_sums(uri) or {}
    names = [name for name in tables_files(uri) if not name.startswith(LOCK)]
    write_list(uri, {name: known.get(name) or file_sha256(os.path.join(uri, name)) for name in names})
