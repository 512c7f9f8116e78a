"""``newsembed triplets``: (anchor, positive, negative) by byline date, with an evergreen filter (section 2.2.1 of the paper)."""

import hashlib
import heapq
import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
import numpy as np

from ...tasks.errors import InputError
from .. import files
from ..jobs import InputSpec, Job, JobRun
from ..parquet import read_batches, read_records, read_stream, shard_paths
from ..records import Article, Neighbor, Rejection, Triplet
from ..shards import GroupByShard, ProcessShards, Shard, shard_of
from .dates import DateStats, count_by_month, date_stats, fit, fit_sharpness
from .evergreen import EvergreenModel, default_model, fit_model, pair_features, read_labels
from .mine import TripletsOptions, group_by_query, merge_spaces, mine, order_key
from .table import read_table, write_table

_COUNTS, _MODEL, _TABLE = "_month_counts", "_date_model/model.npz", "documents/table.npz"
_FILTER = "evergreen.json"  # published: the weights that were used
_BATCH = 500
_SHARPNESS_SAMPLE = 400


def run(job: JobRun) -> None:
    """Fits the byline-date model, then pairs each article with its neighbors.

    A record is an article; it is written if it became the anchor of a triplet. Stream: ``triplets``; in the folder's
    root ``evergreen.json``, the weights of the evergreen filter that were used, and ``documents/table.npz``, how well
    each article's date can be told from its text.
    """
    paths = shard_paths(f"{job.input('articles')}/articles")
    neighbors = shard_paths(f"{job.input('neighbors')}/neighbors")
    first, months = _months(paths)
    job.map_shards("count months", partial(_count, first=first, months=months), paths, accounted=False)
    job.map_shards("fit dates", partial(_fit, first=first), [paths], accounted=False)
    job.map_shards("score dates", partial(_score, first=first), paths)
    job.map_shards("table", _tabulate, [None], accounted=False)
    job.map_shards("evergreen", partial(_prepare_filter, labels="".join(job.inputs["labels"])), [neighbors], accounted=False)
    phase = job.phase("mine", len(paths))
    with job.pipeline(phase) as pipeline:
        found = pipeline | beam.Create(neighbors) | beam.Reshuffle() | beam.FlatMap(_route, len(paths))
        _ = found | GroupByShard(len(paths)) | ProcessShards(partial(_mine, options=job.options, shard_count=len(paths)), phase)


def _months(paths: Sequence[str]) -> tuple[int, int]:
    """(first month, number of months) of all byline dates."""
    found = [
        date.year * 12 + date.month - 1
        for path in paths
        for batch in read_batches(path, ["byline_date"])
        for date in batch.column(0).to_pylist()
        if date
    ]
    if not found:
        raise InputError(
            "no article has a byline date", path=paths[0], field="byline_date", remedy="run clean with --require_byline_date=true"
        )
    return min(found), max(found) - min(found) + 1


def _dated(path: str) -> Iterator[list[Article]]:
    """Batches of the articles that have a date; the others can be in no triplet."""
    dated = (article for article in read_records(path, Article) if article.byline_date)
    while batch := list(itertools.islice(dated, _BATCH)):
        yield batch


def _count(shard: Shard, path: str, first: int, months: int) -> None:
    counts = sum((count_by_month(batch, first, months) for batch in _dated(path)), count_by_month([], first, months))
    with files.open_write(shard.path(_COUNTS, "npy")) as sink:
        np.save(sink, counts)


def _fit(shard: Shard, paths: Sequence[str], first: int) -> None:
    total: Any = 0
    for path in files.list_files(f"{shard.workspace}/{_COUNTS}/*.npy"):
        with files.open_read(path) as source:
            total = total + np.load(source)
    models = fit(total)
    every = (article for path in paths for batch in _dated(path) for article in batch)
    # Drawn by the digest of the id, so that the same articles are drawn however they are sharded.
    sample = heapq.nsmallest(_SHARPNESS_SAMPLE, every, key=lambda article: hashlib.blake2b(article.doc_id.encode()).digest())
    with files.open_write(f"{shard.workspace}/{_MODEL}") as sink:
        np.savez(sink, models=models, sharpness=fit_sharpness(sample, models, first))


@lru_cache(maxsize=1)
def _models(path: str) -> tuple[Any, float]:
    with files.open_read(path) as source:
        arrays = np.load(source)
        return arrays["models"], float(arrays["sharpness"])


def _score(shard: Shard, path: str, first: int) -> None:
    models, sharpness = _models(f"{shard.workspace}/{_MODEL}")
    output = shard.records("_date_stats", DateStats)
    for article in read_records(path, Article):
        shard.read()
        if article.byline_date is None:
            shard.reject(article.url, Rejection.NO_BYLINE_DATE, "", article.title)
    for batch in _dated(path):
        for row in date_stats(batch, models, sharpness, first):
            output.write(row)
            shard.written()


def _tabulate(shard: Shard, _: None) -> None:
    write_table(f"{shard.workspace}/{_TABLE}", read_stream(f"{shard.workspace}/_date_stats", DateStats))


def _route(path: str, shard_count: int) -> Iterator[tuple[int, tuple[str, str, str, float, int]]]:
    for one in read_records(path, Neighbor):
        yield shard_of(one.query, shard_count), (one.query, one.neighbor, one.space, one.similarity, one.day_gap)


def _prepare_filter(shard: Shard, neighbors: Sequence[str], labels: str) -> None:
    """Writes the evergreen filter's weights: the default ones, or those fitted on the user's labels."""
    model = default_model()
    if labels:
        table, wanted = read_table(f"{shard.workspace}/{_TABLE}"), read_labels(labels)
        found = [one for path in neighbors for one in read_records(path, Neighbor) if (one.query, one.neighbor) in wanted]
        pairs = [(query, candidate) for query, group in sorted(group_by_query(found).items()) for candidate in merge_spaces(group)]
        rows = [(table.get(query), table.get(candidate.doc_id), candidate, wanted[query, candidate.doc_id]) for query, candidate in pairs]
        known = [
            (pair_features(anchor, other, candidate.similarities), label) for anchor, other, candidate, label in rows if anchor and other
        ]
        if not known:
            raise InputError(
                "none of the labelled pairs is among the neighbors",
                path=labels,
                field="--labels",
                remedy="label pairs of this corpus, by doc_id",
            )
        model = fit_model(
            np.array([features for features, _ in known]),
            [label for _, label in known],
            f"{len(known)} labels of {labels.rpartition('/')[2]}",
        )
    files.write_json(f"{shard.workspace}/{_FILTER}", model.to_json())


@lru_cache(maxsize=1)
def _filter(path: str) -> EvergreenModel:
    return EvergreenModel.from_json(files.read_json(path), path)


def _mine(shard: Shard, rows: list[tuple[str, str, str, float, int]], options: TripletsOptions, shard_count: int) -> None:
    table = read_table(f"{shard.workspace}/{_TABLE}")
    model = _filter(f"{shard.workspace}/{_FILTER}")
    grouped = {query: [Neighbor(*row) for row in group] for query, group in itertools.groupby(rows, key=lambda row: row[0])}
    output = shard.records("triplets", Triplet)
    mined: list[Triplet] = []
    for doc_id in table.doc_ids():
        if shard_of(doc_id, shard_count) != shard.index:
            continue
        shard.read()
        result = mine(doc_id, grouped.get(doc_id, ()), table, model, options)
        shard.tally("negatives dropped as evergreen", result.evergreen)
        if result.rejection is not None:
            shard.reject(doc_id, result.rejection, f"{len(grouped.get(doc_id, ()))} neighbors")
            continue
        mined.extend(result.triplets)
        shard.written()
        shard.tally("triplets", len(result.triplets))
        shard.tally("positive pairs", len({triplet.positive for triplet in result.triplets}))
    for triplet in sorted(mined, key=order_key):
        output.write(triplet)


JOB = Job(
    name="triplets",
    summary="(anchor, positive, negative) by byline date, with an evergreen filter",
    example="newsembed triplets --articles work/clean --neighbors work/neighbors --output work/triplets",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("neighbors", "folder that `newsembed neighbors` wrote"),
        InputSpec("labels", "TSV of labelled pairs (anchor, other, 1 false negative or 0) to fit the evergreen filter on", required=False),
    ),
    options=TripletsOptions,
    run=run,
)
