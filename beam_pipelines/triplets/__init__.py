"""``newsembed triplets``: mines triplets by byline date, with an evergreen filter (section 2.2.1 of the paper)."""

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.arrays import read_arrays, write_arrays
from ...formats.parquet import column_bounds, read_records
from ...formats.records import Article, Rejection, Triplet
from ..arrays import doc_id_of, read_array
from ..graph import Received, Rows, send
from ..jobs import ARTICLES, InputSpec, Job, JobRun, optional
from ..shards import Shard, shard_numbers
from .evergreen import EvergreenModel, check_labels, default_model, pair_features, read_labels
from .evergreen import fit_model as fit_filter
from .rules import (
    MINED,
    REASONS,
    TripletsOptions,
    known_pairs,
    mine,
    order_key,
    read_candidates,
    same_event_pairs,
)
from .table import (
    ANCHORS,
    FEATURES,
    FOLDS,
    STORIES,
    TABLE,
    count_by_month,
    crowded_out,
    date_stats,
    fit_model,
    links_of,
    read_table,
    stories_of,
    with_read_words,
    write_part,
    write_stories,
    write_table,
)

_COUNTS, _MODEL = "_month_counts", "_date_model/model.npz"
_PAIRED, _OUTCOMES, _SAME_EVENT = "_paired", "_outcomes", "_same_event"
_CROWDED = Rows("_crowded", np.dtype(np.uint64))  # anchors, sent to their shards
_SAMPLE = "_sample"
_FILTER = "evergreen.json"  # published: the weights that were used
_BATCH = 500
_SHARPNESS_SAMPLE = 400


def run(job: JobRun) -> None:
    """Fits the byline-date model, then pairs each article with its neighbors.

    A record is an article; it counts as written if it is the anchor of a triplet. Writes the stream ``triplets``,
    ``evergreen.json`` with the weights of the evergreen filter, ``documents/table.npz`` with how well the date of each
    article can be predicted from its text, and ``documents/stories.npz`` with the articles that report one story.
    """
    options: TripletsOptions = job.options
    labels = "".join(job.inputs["labels"])
    if labels:
        check_labels(read_labels(labels).values(), labels)  # before the work
    paths, neighbors = job.shards("articles"), job.shards("neighbors")
    first, months = _months(paths)
    anchor_shards = len(neighbors)
    with job.graph(max(len(paths), anchor_shards)):
        job.map_shards("count months", _count, paths, first=first, months=months, accounted=False)
        job.map_shards("fit dates", _fit, [None], first=first, accounted=False)
        job.map_shards("score dates", _score, paths, first=first, anchor_shards=anchor_shards)
        job.map_shards("table", write_table, [None], accounted=False)
        job.map_shards("evergreen", _prepare_filter, [neighbors], labels=labels, accounted=False)
        job.map_rows("pair", _pair, neighbors, [("score dates", ANCHORS)], options=options, accounted=False)
        job.map_shards("events", _send_crowded, [anchor_shards], most=options.max_anchors_per_event, accounted=False)
        job.map_shards("stories", _stories, [None], accounted=False)
        job.map_rows("mine", _mine, range(anchor_shards), [("events", _CROWDED)])


def _months(paths: Sequence[str]) -> tuple[int, int]:
    """Returns (first month, number of months) of all byline dates.

    Raises:
      InputError: if no article has a byline date.
    """
    found = [date.year * 12 + date.month - 1 for path in paths for date in column_bounds(path, "byline_date")]
    if not found:
        remedy = "run clean with --require_byline_date=true"
        raise InputError("no article has a byline date", path=paths[0], field="byline_date", remedy=remedy)
    return min(found), max(found) - min(found) + 1


def _dated(path: str) -> Iterator[list[Article]]:
    """Yields batches of the articles that have a date; others cannot be in a triplet."""
    dated = (article for article in read_records(path, Article) if article.byline_date)
    while batch := list(itertools.islice(dated, _BATCH)):
        yield batch


def _count(shard: Shard, path: str, first: int, months: int) -> None:
    """Counts n-grams, and writes those articles of the shard that may be in the sample of all."""
    counts, sample = np.zeros((FOLDS, months, FEATURES), np.float32), list[Article]()
    for batch in _dated(path):
        counts += count_by_month(batch, first, months)
        sample = _drawn([*sample, *map(with_read_words, batch)])
    shard.write_array(_COUNTS, counts)
    writer = shard.records(_SAMPLE, Article)
    for article in sample:
        writer.write(article)


def _drawn(articles: Iterable[Article]) -> list[Article]:
    """The sample, drawn by the digest of the id, so that it does not depend on the sharding."""
    return heapq.nsmallest(_SHARPNESS_SAMPLE, articles, key=lambda one: hashlib.blake2b(one.doc_id.encode()).digest())


def _fit(shard: Shard, _: None, first: int) -> None:
    total: Any = sum(shard.arrays(_COUNTS))
    sample = _drawn(shard.read_stream(_SAMPLE, Article))
    models, sharpness = fit_model(sample, total, first)
    write_arrays(f"{shard.workspace}/{_MODEL}", {"models": models, "sharpness": np.asarray(sharpness)})


@lru_cache(maxsize=1)
def _models(path: str) -> tuple[Any, float]:
    arrays = read_arrays(path)
    return arrays["models"], float(arrays["sharpness"])


def _score(shard: Shard, path: str, first: int, anchor_shards: int) -> None:
    models, sharpness = _models(f"{shard.workspace}/{_MODEL}")
    for article in read_records(path, Article):
        shard.read()
        if article.byline_date is None:
            shard.reject(article.key, Rejection.NO_BYLINE_DATE, "", article.title)
    stats = [one for batch in _dated(path) for one in date_stats(batch, models, sharpness, first)]
    write_part(shard, stats, anchor_shards)
    shard.written(len(stats))


def _prepare_filter(shard: Shard, neighbors: Sequence[str], labels: str) -> None:
    """Writes the weights of the evergreen filter: the defaults, or weights fitted on the user's labels.

    Raises:
      InputError: if the labels are broken, or none of the labelled pairs is among the neighbors.
    """
    model = default_model()
    if labels:
        table = read_table(f"{shard.workspace}/{TABLE}")
        wanted = {(int(anchor, 16), int(other, 16)): label for (anchor, other), label in read_labels(labels).items()}
        known = known_pairs(neighbors, wanted, table)
        if not len(known):
            problem = "none of the labelled pairs is among the neighbors"
            raise InputError(problem, path=labels, field="--labels", remedy="label pairs of this corpus, by doc_id")
        values = [wanted[anchor, other] for anchor, other in known[["anchor", "other"]].tolist()]
        model = fit_filter(pair_features(table, known), values, f"{len(known)} labels of {labels.rpartition('/')[2]}")
    files.write_json(f"{shard.workspace}/{_FILTER}", model.to_json())


def _pair(shard: Shard, received: Received, options: TripletsOptions) -> None:
    """Pairs the anchors of a shard of the neighbors, which are sharded by anchor.

    Raises:
      InputError: if the file has neighbors of an anchor of another shard.
    """
    table = read_table(f"{shard.workspace}/{TABLE}")
    model = EvergreenModel.from_json(files.read_json(f"{shard.workspace}/{_FILTER}"))
    path, anchors = received.payload, np.sort(received.rows[ANCHORS.stream])
    candidates = read_candidates(path)
    candidates = candidates[table.has(candidates)]
    triplets, outcomes = mine(anchors, candidates, table, model, options)
    shard.write_array(_PAIRED, triplets)
    shard.write_array(_OUTCOMES, outcomes)
    shard.write_array(_SAME_EVENT, links_of(same_event_pairs(candidates, options)))


def _send_crowded(shard: Shard, anchor_shards: int, most: int) -> None:
    """Sends the anchors that exceed the limit of their event. One worker can hold the pairs, which are only ids."""
    paired = (np.stack([part["anchor"], part["positive"]], axis=1) for part in shard.arrays(_PAIRED))
    pairs = np.concatenate([np.unique(part, axis=0) for part in paired])
    crowded = crowded_out(np.unique(pairs[:, 0]), pairs, most)
    send(shard, _CROWDED.stream, crowded, shard_numbers(crowded, anchor_shards))


def _stories(shard: Shard, _: None) -> None:
    """Writes the story of each document that has pairs. One worker can hold the pairs, which are only ids."""
    pairs = np.concatenate(list(shard.arrays(_SAME_EVENT)))
    documents, stories = stories_of(pairs)
    write_stories(f"{shard.workspace}/{STORIES}", documents, stories)
    sizes = np.unique(stories, return_counts=True)[1]
    shard.tally("stories", len(sizes))
    shard.tally("documents in stories", len(documents))
    shard.tally("documents in the largest story", int(sizes.max(initial=0)))


def _mine(shard: Shard, received: Received) -> None:
    """Writes the triplets of one shard of anchors, without those of crowded events."""
    table, crowded = read_table(f"{shard.workspace}/{TABLE}"), received.rows[_CROWDED.stream]
    found, outcomes = (read_array(shard.path(name, "npy")) for name in (_PAIRED, _OUTCOMES))
    for anchor, reason, neighbors, evergreen, positives in outcomes.tolist():
        shard.read()
        shard.tally("negatives dropped as evergreen", evergreen)
        if reason != MINED:
            shard.reject(doc_id_of(anchor), REASONS[reason], f"{neighbors} neighbors")
        elif np.isin(anchor, crowded):
            shard.reject(doc_id_of(anchor), Rejection.CROWDED_EVENT, f"{positives} positives")
        else:
            shard.written()
            shard.tally("positive pairs", positives)
    found = found[~np.isin(found["anchor"], crowded)]
    shard.tally("triplets", len(found))
    languages = (table.language(place) for place in table.places(found["anchor"]).tolist())
    output = shard.records("triplets", Triplet)
    for triplet in sorted(map(_triplet, found.tolist(), languages), key=order_key):
        output.write(triplet)


def _triplet(row: tuple[Any, ...], language: str) -> Triplet:
    anchor, positive, negative = map(doc_id_of, row[:3])
    near, far = (tuple(map(float, values)) for values in row[3:5])
    return Triplet(anchor, positive, negative, language, near, far, *row[5:])


JOB = Job(
    name="triplets",
    example="newsembed triplets --articles work/clean --neighbors work/neighbors --output work/triplets",
    inputs=(
        ARTICLES,
        InputSpec("neighbors", "folder that `newsembed neighbors` wrote"),
        optional("labels", "TSV of anchor, other, 1 for a false negative or 0: fits the evergreen filter"),
    ),
    options=TripletsOptions,
    run=run,
)
