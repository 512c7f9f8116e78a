"""Writes a new version of an archive from the one before and from what a run has found."""

import dataclasses
import datetime
import os
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..beam_pipelines.arrays import doc_id_of, doc_ids_of, doc_numbers_of
from ..formats.archive import (
    CRAWL_STATE,
    DEAD_LETTERS_FILE,
    MEMBERS,
    EventMember,
    EventMerge,
    VersionWriter,
    copy_folder,
)
from ..formats.archive_parts import (
    MERGES,
    PARENTS,
    SIGNATURES,
    SKETCHES,
    VECTORS,
    append_arrays,
    append_articles,
    part_paths,
    read_array_part,
    write_array,
)
from ..formats.arrays import Array
from ..formats.parquet import ParquetShardWriter, read_batches, read_records, write_shard
from ..formats.records import Article, DeadLetter
from ..serving.events import NO_EVENT, UNDATED, EventOptions, Ids, Merge, Vectors, assign
from .duplicates import Found, Rows

_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclasses.dataclass(frozen=True)
class Members:
    """The articles of a version, in the order of its streams.

    Attributes:
      doc_ids: uint64 ``[N]``.
      days: int64 ``[N]``, ordinals of byline dates; :data:`~.events.UNDATED` without one.
      events: uint64 ``[N]``; :data:`~.events.NO_EVENT` for none.
    """

    doc_ids: Ids
    days: npt.NDArray[np.int64]
    events: Ids

    def __len__(self) -> int:
        return len(self.doc_ids)


@dataclasses.dataclass(frozen=True)
class Change:
    """What a run does to the articles of a version.

    Attributes:
      removed: bool ``[N]``, the articles that another one replaces.
      heirs: for each removed article, in order, the row of the one that replaces it, among those that stay and the
        new ones.
      new: the new articles.
      vectors: float32 ``[n, D]``, unit rows.
    """

    removed: npt.NDArray[np.bool_]
    heirs: npt.NDArray[np.int64]
    new: Sequence[Article]
    vectors: Vectors


def read_members(version: str) -> Members:
    """The articles of a version and their events; none without a version."""
    batches = list(read_batches(os.path.join(version, MEMBERS))) if version else []
    if not batches:
        return Members(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint64))
    table = pa.Table.from_batches(batches)
    opened = [event or doc_id_of(NO_EVENT) for event in table.column("event_id").to_pylist()]
    days = table.column("byline_date").cast(pa.int32()).fill_null(UNDATED - _EPOCH).to_numpy().astype(np.int64) + _EPOCH
    return Members(doc_numbers_of(table.column("doc_id")), days, doc_numbers_of(pa.array(opened, pa.string())))


def find_change(
    parents: Rows, found: Found, articles: Sequence[Article], vectors: Vectors, new_rows: Sequence[int]
) -> Change:
    """Where the articles of a version are removed and added.

    Args:
      parents: of the signatures of the version.
      found: the duplicates.
      articles: those that are kept among the new ones.
      vectors: theirs.
      new_rows: the rows of their signatures, ascending.
    """
    before = np.flatnonzero(parents == np.arange(len(parents)))  # in the order of the articles
    removed = np.isin(before, found.superseded)
    after = np.concatenate([before[~removed], np.asarray(new_rows, np.int64)])
    roots = np.array([found.root(row) for row in found.superseded.tolist()], np.int64)
    return Change(removed, np.searchsorted(after, roots), articles, vectors)


def write_streams(writer: VersionWriter, change: Change, found: Found, signatures: Array, sketches: Array) -> None:
    """Writes articles, vectors, and the state of the search for duplicates."""
    append_articles(writer, change.new, change.removed)
    append_arrays(writer, VECTORS, change.vectors, change.removed)
    append_arrays(writer, SIGNATURES, signatures)
    append_arrays(writer, SKETCHES, sketches)
    write_array(writer.path(PARENTS), found.parents)


def write_events(
    writer: VersionWriter, before: Members, change: Change, options: EventOptions, today: datetime.date
) -> tuple[Members, list[Merge]]:
    """Assigns events to the new articles; writes the members and the merges.

    An article that replaces another belongs to the event of the latter.
    """
    stay = ~change.removed
    doc_ids = np.concatenate([before.doc_ids[stay], _numbers([article.doc_id for article in change.new])])
    new_days = [article.byline_date.toordinal() if article.byline_date else UNDATED for article in change.new]
    days = np.concatenate([before.days[stay], np.array(new_days, np.int64)])
    events = np.concatenate([before.events[stay], np.full(len(change.new), NO_EVENT, np.uint64)])
    lost = before.events[change.removed]
    for event, heir in zip(lost.tolist(), change.heirs.tolist(), strict=True):
        if events[heir] == NO_EVENT:
            events[heir] = event
    inherited = events.copy()
    events, merges = assign(doc_ids, days, events, _vector_rows(writer, change), options)
    merges = [*_emptied(lost, change.heirs, inherited, doc_ids), *merges]
    _check_ended(events, merges)
    members = Members(doc_ids, days, events)
    _write_members(writer.path(MEMBERS), members)
    earlier = list(read_records(os.path.join(writer.base, MERGES), EventMerge)) if writer.base else []
    records = [
        EventMerge(doc_id_of(one.event), doc_id_of(one.into), doc_id_of(one.doc_id), writer.number, today)
        for one in merges
    ]
    write_shard(writer.path(MERGES), [*earlier, *records], EventMerge)
    return members, merges


def write_rest(writer: VersionWriter, crawl_state: str, dead_letters: Sequence[DeadLetter]) -> None:
    """Writes the state of the crawl, and what this run rejected."""
    if crawl_state:
        copy_folder(crawl_state, writer.path(CRAWL_STATE))
    else:
        writer.carry(CRAWL_STATE)
    if dead_letters:
        write_shard(writer.path(DEAD_LETTERS_FILE), dead_letters, DeadLetter)


def _numbers(doc_ids: Sequence[str]) -> Ids:
    return doc_numbers_of(pa.array(doc_ids, pa.string()))


def _emptied(lost: Ids, heirs: npt.NDArray[np.int64], events: Ids, doc_ids: Ids) -> list[Merge]:
    """The events whose last article was replaced by one of another event, with which they are merged."""
    merges = list[Merge]()
    for event, heir in zip(lost.tolist(), heirs.tolist(), strict=True):
        is_over = event != NO_EVENT and not np.any(events == event)
        if is_over and event not in {merge.event for merge in merges}:
            merges.append(Merge(event, int(events[heir]), int(doc_ids[heir])))
    return merges


def _check_ended(events: Ids, merges: Sequence[Merge]) -> None:
    """Checks that no article has an event that has ended.

    Raises:
      RuntimeError: if one has.
    """
    if np.isin(events, np.array([merge.event for merge in merges], np.uint64)).any():
        raise RuntimeError("an article has an event that has ended")


def _vector_rows(writer: VersionWriter, change: Change) -> Callable[[npt.NDArray[np.int64]], Vectors]:
    """Reads vectors by row, among the articles that stay and the new ones."""
    parts = [read_array_part(path) for path in part_paths(writer.base, VECTORS)]
    ends = np.cumsum([0, *map(len, parts)])
    stay = np.flatnonzero(~change.removed)

    def read(rows: npt.NDArray[np.int64]) -> Vectors:
        """Returns the vectors of rows: those of the articles that stay come first, then the new ones."""
        result = np.zeros((len(rows), change.vectors.shape[1]), np.float32)
        is_new = rows >= len(stay)
        result[is_new] = change.vectors[rows[is_new] - len(stay)]
        old = stay[rows[~is_new]]
        places, held = np.flatnonzero(~is_new), np.searchsorted(ends, old, side="right") - 1
        for number, part in enumerate(parts):
            here = held == number
            result[places[here]] = part[old[here] - ends[number]]
        return result

    return read


def _write_members(path: str, members: Members) -> None:
    events = pa.array(["" if event == NO_EVENT else doc_id_of(event) for event in members.events.tolist()], pa.string())
    days = pa.array((members.days - _EPOCH).astype(np.int32), mask=members.days == UNDATED).cast(pa.date32())
    with ParquetShardWriter(path, EventMember) as sink:
        columns = {"doc_id": doc_ids_of(members.doc_ids), "event_id": events, "byline_date": days}
        sink.write_columns(columns)
