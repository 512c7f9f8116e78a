"""Rows of ids, which are sent to the shard of their document and grouped there."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from ...formats.parquet import read_records
from ...formats.records import Failure, TopicLabels, Triplet
from ...tasks.topics import TOPICS
from ...tasks.triplets import TRIPLETS
from ..arrays import doc_id_of, doc_ids_of
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from ..texts import language_key

_TRIPLET_ROWS, _LABEL_ROWS = "_triplets", "_labels"
_LANGUAGE_BYTES = 64
# Rows that are sent to the shard of their document: triplets, and single labels; labels of one record are consecutive.
_TRIPLETS: Final = np.dtype(
    [("anchor", np.uint64), ("positive", np.uint64), ("negative", np.uint64), ("language", f"S{_LANGUAGE_BYTES}")]
)
_LABELS: Final = np.dtype([("doc_id", np.uint64), ("record", np.int64), ("topic", np.int64), ("label", np.int8)])
# Rows that are received: (task, anchor, positive, negative, language) or (task, doc_id, topic ids, labels).
TripletRow = tuple[str, str, str, str, str]
TopicRow = tuple[str, str, tuple[int, ...], tuple[int, ...]]


def sent_rows() -> tuple[Rows, Rows]:
    """Returns the streams of triplets and labels, which are sent to the shards of their documents."""
    return Rows(_TRIPLET_ROWS, _TRIPLETS), Rows(_LABEL_ROWS, _LABELS)


def send_triplets(shard: Shard, path: str, shard_count: int) -> None:
    """Sends the triplets of one Parquet shard to the shards of their anchors."""
    sent: list[tuple[Any, ...]] = []
    for triplet in read_records(path, Triplet):
        shard.read()
        doc_ids, language = (triplet.anchor, triplet.positive, triplet.negative), language_key(triplet.language)
        if language is None or len(language) > _LANGUAGE_BYTES:
            shard.fail("-".join(doc_ids), Failure.BROKEN_RECORD, f"language {triplet.language!r} is not a BCP-47 tag")
            continue
        shard.written()
        sent.append((*(int(doc_id, 16) for doc_id in doc_ids), language.encode("ascii")))
    rows = np.array(sent, _TRIPLETS)
    send(shard, _TRIPLET_ROWS, rows, shard_numbers(rows["anchor"], shard_count))


def send_labels(shard: Shard, path: str, shard_count: int) -> None:
    """Sends the topic labels of one Parquet shard to the shards of their documents."""
    sent: list[tuple[int, int, int, int]] = []
    for number, one in enumerate(read_records(path, TopicLabels), shard.index << 32):  # unique among the senders
        shard.read()
        if len(one.topic_ids) != len(one.labels) or not one.topic_ids or not set(one.labels) <= {0, 1}:
            shard.fail(one.doc_id, Failure.BROKEN_RECORD, f"topics {one.topic_ids} with labels {one.labels}")
            continue
        shard.written()
        doc_id = int(one.doc_id, 16)
        sent += [(doc_id, number, topic, label) for topic, label in zip(one.topic_ids, one.labels, strict=True)]
    rows = np.array(sent, _LABELS)
    send(shard, _LABEL_ROWS, rows, shard_numbers(rows["doc_id"], shard_count))


def send_rows(shard: Shard, source: tuple[str, str], shard_count: int) -> None:
    """Sends the rows of one Parquet shard, which is given as (task, path)."""
    (send_triplets if source[0] == TRIPLETS.name else send_labels)(shard, source[1], shard_count)


def receive_rows(received: Received) -> Iterator[TripletRow | TopicRow]:
    """Yields all triplets and labelled documents of one shard."""
    triplets, labels = received.rows[_TRIPLET_ROWS], received.rows[_LABEL_ROWS]
    doc_ids = (doc_ids_of(triplets[name]).tolist() for name in ("anchor", "positive", "negative"))
    for *of_row, language in zip(*doc_ids, triplets["language"].tolist(), strict=True):
        yield TRIPLETS.name, *of_row, language.decode("ascii")
    if not len(labels):
        return
    record = labels[["doc_id", "record"]]
    for part in np.split(labels, np.flatnonzero(record[1:] != record[:-1]) + 1):
        yield (
            TOPICS.name,
            doc_id_of(int(part["doc_id"][0])),
            tuple(part["topic"].tolist()),
            tuple(part["label"].tolist()),
        )


def group_negatives(rows: Iterable[Any], count: int) -> list[list[Any]]:
    """Groups triplets that differ only in their negative.

    Args:
      rows: rows of :func:`receive_rows`.
      count: largest number of triplets in a group.

    Returns:
      Groups in the order of their first row; a row of another task is a group of its own.
    """
    groups: list[list[Any]] = []
    open_groups: dict[Any, list[Any]] = {}
    for row in rows:
        shared = (*row[:3], row[4]) if row[0] == TRIPLETS.name else row
        group = open_groups.get(shared)
        if group is None or len(group) == count or row[0] != TRIPLETS.name:
            groups.append([row])
            open_groups[shared] = groups[-1]
        else:
            group.append(row)
    return groups
