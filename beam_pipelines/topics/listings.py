"""What the hubs of each title list, counted in parts by document, so that no worker needs all articles or listings.

A title is sent as a digest of 64 bits.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from ...formats import files
from ...formats.parquet import read_batches
from ..arrays import Array, doc_numbers_of, read_array, text_digests, write_array
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from .choose import Group, HubHead, hub_title

HUBS: Final = "hubs"
_ROW: Final = np.dtype([("id", "<u8"), ("title", "<u8"), ("kind", "<u8")])
LISTINGS: Final = Rows("_listings", _ROW)
_PRESENT, _LISTED, _SIGNED = range(3)  # kinds: an article; one that a hub lists; one with an author of this name
_COUNTS: Final = np.dtype([("title", "<u8"), ("documents", "<i8"), ("signed", "<i8")])
_LISTED_STREAM, _COUNTS_STREAM, _SIZES_STREAM = "_listed", "_title_counts", "_group_sizes"
_GROUPS: Final = "_title_groups.json"
_HUBS_AT_ONCE: Final = 64
_ROWS_TOGETHER: Final = 100_000


def send_listings(shard: Shard, source: tuple[str, str], shard_count: int) -> None:
    """Sends the listings of a shard of hubs, or the articles of a shard of articles; ``source`` is (kind, path)."""
    kind, path = source
    waiting: list[Array] = []
    chunk = 0
    for rows in _hub_rows(path) if kind == HUBS else _article_rows(path):
        waiting.append(rows)
        if sum(map(len, waiting)) >= _ROWS_TOGETHER:
            _send(shard, waiting, shard_count, chunk)
            waiting, chunk = [], chunk + 1
    _send(shard, waiting, shard_count, chunk)


def _send(shard: Shard, parts: list[Array], shard_count: int, chunk: int) -> None:
    rows = np.concatenate([np.zeros(0, _ROW), *parts])
    send(shard, LISTINGS.stream, rows, shard_numbers(rows["id"], shard_count), chunk)


def _hub_rows(path: str) -> Iterator[Array]:
    for batch in read_batches(path, ["hub_id", "url", "publisher", "title", "doc_ids"], _HUBS_AT_ONCE):
        heads = [HubHead(*fields) for fields in zip(*(column.to_pylist() for column in batch.columns[:4]), strict=True)]
        members = batch.column("doc_ids")
        titles = np.repeat(text_digests([hub_title(head) for head in heads]), _lengths(members))
        yield _rows(doc_numbers_of(members.flatten()), titles, _LISTED)


def _article_rows(path: str) -> Iterator[Array]:
    for batch in read_batches(path, ["doc_id", "authors"]):
        ids, authors = doc_numbers_of(batch.column("doc_id")), batch.column("authors")
        names = [" ".join(name.casefold().split()) for name in authors.flatten().to_pylist()]
        yield _rows(ids, np.zeros(len(ids), np.uint64), _PRESENT)
        yield _rows(np.repeat(ids, _lengths(authors)), text_digests(names), _SIGNED)


def _lengths(lists: pa.Array) -> Array:
    return np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.int64)


def _rows(ids: Array, titles: Array, kind: int) -> Array:
    rows = np.zeros(len(ids), _ROW)
    rows["id"], rows["title"], rows["kind"] = ids, titles, kind
    return rows


def count_listings(shard: Shard, received: Received) -> None:
    """Counts the articles of a part by title, and writes which title lists which article, each once."""
    rows = received.rows[LISTINGS.stream]
    present = np.unique(rows["id"][rows["kind"] == _PRESENT])
    rows = rows[(rows["kind"] != _PRESENT) & np.isin(rows["id"], present)]
    rows = rows[np.lexsort((rows["kind"], rows["title"], rows["id"]))]
    # A listed article comes before the same one by its author; both are there if the title lists a signed article.
    same = (rows["id"][1:] == rows["id"][:-1]) & (rows["title"][1:] == rows["title"][:-1])
    again, signed = np.zeros((2, len(rows)), bool)
    again[1:] = same & (rows["kind"][1:] == rows["kind"][:-1])
    signed[1:] = same & (rows["kind"][1:] == _SIGNED) & (rows["kind"][:-1] == _LISTED)
    listed = rows[(rows["kind"] == _LISTED) & ~again]
    write_array(shard.path(_LISTED_STREAM, "npy"), listed)
    titles, documents = np.unique(listed["title"], return_counts=True)
    counts = np.zeros(len(titles), _COUNTS)
    counts["title"], counts["documents"] = titles, documents
    places = np.searchsorted(titles, rows["title"][signed])
    counts["signed"] = np.bincount(places, minlength=len(titles))
    write_array(shard.path(_COUNTS_STREAM, "npy"), counts)


def title_counts(workspace: str, titles: set[str]) -> dict[str, tuple[int, int]]:
    """Returns the numbers of listed and of signed articles by title."""
    ordered = sorted(titles)
    digests = text_digests(ordered)
    order = np.argsort(digests)
    totals = np.zeros((len(ordered), 2), np.int64)
    for path in files.list_files(f"{workspace}/{_COUNTS_STREAM}/part-*.npy"):
        part = read_array(path)
        places = order[np.searchsorted(digests, part["title"], sorter=order)]
        totals[places] += np.stack([part["documents"], part["signed"]], axis=1)
    return {title: (documents, signed) for title, (documents, signed) in zip(ordered, totals.tolist(), strict=True)}


def write_groups(workspace: str, groups: Mapping[str, Group]) -> None:
    """Writes the group of each title that has one."""
    files.write_json(f"{workspace}/{_GROUPS}", dict(groups))


def read_groups(workspace: str) -> dict[str, Group]:
    """Returns what :func:`write_groups` wrote."""
    return {title: (is_entity, name) for title, (is_entity, name) in files.read_json(f"{workspace}/{_GROUPS}").items()}


def count_groups(shard: Shard, number: int) -> None:
    """Counts the articles of a part by group: an article that two titles of a group list counts once."""
    groups = read_groups(shard.workspace)
    listed = read_array(files.list_files(f"{shard.workspace}/{_LISTED_STREAM}/part-*.npy")[number])
    numbers = {group: place for place, group in enumerate(sorted(set(groups.values())))}
    digests = text_digests(list(groups))
    order = np.argsort(digests)
    listed = listed[np.isin(listed["title"], digests)]
    of_title = np.array([numbers[group] for group in groups.values()], np.int64)
    of_row = of_title[order[np.searchsorted(digests, listed["title"], sorter=order)]]
    pairs = np.unique(np.stack([listed["id"], of_row.astype(np.uint64)], axis=1), axis=0)
    write_array(shard.path(_SIZES_STREAM, "npy"), np.bincount(pairs[:, 1].astype(np.int64), minlength=len(numbers)))


def group_sizes(workspace: str) -> dict[Group, int]:
    """Returns the number of articles by group."""
    groups = sorted(set(read_groups(workspace).values()))
    totals = np.zeros(len(groups), np.int64)
    for path in files.list_files(f"{workspace}/{_SIZES_STREAM}/part-*.npy"):
        totals += read_array(path)
    return dict(zip(groups, totals.tolist(), strict=True))
