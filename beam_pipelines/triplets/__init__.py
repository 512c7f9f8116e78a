"""``newsembed triplets``: mines triplets by byline date, with an evergreen filter (section 2.2.1 of the paper)."""

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.arrays import write_arrays
from ...formats.parquet import column_bounds, read_records, read_stream, shard_paths
from ...formats.records import Article, Rejection, Space, Triplet
from ..arrays import doc_id_of, read_array, write_array
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from . import calibration
from .candidates import SPACES, known_pairs, read_candidates
from .dates import count_by_month, date_stats, with_read_words
from .dates import fit_model as fit_date_model
from .events import STORIES, crowded_out, links_of, stories_of, write_stories
from .evergreen import EvergreenModel, check_labels, default_model, fit_model, pair_features, read_labels
from .mine import MINED, REASONS, TripletsOptions, mine, order_key, same_event_pairs
from .table import (
    ANCHORS,
    FACTS,
    NUMBERS,
    RANKS,
    TABLE,
    range_splits,
    rank_numbers,
    read_table,
    send_stats,
    sort_documents,
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
    article can be predicted from its text, and ``documents/stories.npz`` with the articles that report one story. The
    bars that were calibrated and the estimated precisions are in ``positives.json`` (``--rule=rarity``) or in
    ``learned.json`` (thresholds, with neighbors in a learned space).
    """
    options: TripletsOptions = job.options
    labels = "".join(job.inputs["labels"])
    if labels:
        check_labels(read_labels(labels).values(), labels)  # before the work
    paths = shard_paths(f"{job.input('articles')}/articles")
    neighbors = shard_paths(f"{job.input('neighbors')}/neighbors")
    first, months = _months(paths)
    count, anchor_shards = len(paths), len(neighbors)
    with job.graph("triplets", max(count, anchor_shards)):
        job.map_shards("count months", partial(_count, first=first, months=months), paths, accounted=False)
        job.map_shards("fit dates", partial(_fit, first=first, ranges=count), [None], accounted=False)
        job.map_shards("score dates", partial(_score, first=first, anchor_shards=anchor_shards), paths)
        rank, numbers = partial(rank_numbers, ranges=count), [("score dates", NUMBERS)]
        job.map_rows("ranks", rank, [None] * count, numbers, accounted=False, listed=False)
        ranked = [("score dates", FACTS), ("ranks", RANKS)]
        job.map_rows("sort documents", sort_documents, [None] * count, ranked, accounted=False, listed=False)
        job.map_shards("table", _tabulate, [None], accounted=False)
        job.map_shards("evergreen", partial(_prepare_filter, labels=labels), [neighbors], accounted=False)
        learned = calibration.map_stages(job, paths, neighbors)
        pair = partial(_pair, folder=job.input("neighbors"), options=options, learned=learned, count=anchor_shards)
        job.map_rows("pair", pair, neighbors, [("score dates", ANCHORS)], accounted=False)
        events = partial(_send_crowded, most=options.max_anchors_per_event, anchor_shards=anchor_shards)
        job.map_shards("events", events, [None], accounted=False)
        job.map_shards("stories", _stories, [None], accounted=False)
        job.map_rows("mine", partial(_mine, learned=learned), range(anchor_shards), [("events", _CROWDED)])
    calibration.warn(job.workspace)


def _months(paths: Sequence[str]) -> tuple[int, int]:
    """Returns (first month, number of months) of all byline dates.

    Raises:
      InputError: if no article has a byline date.
    """
    bounds = [one for path in paths if (one := column_bounds(path, "byline_date")) is not None]
    found = [date.year * 12 + date.month - 1 for of_shard in bounds for date in of_shard]
    if not found:
        raise InputError(
            "no article has a byline date",
            path=paths[0],
            field="byline_date",
            remedy="run clean with --require_byline_date=true",
        )
    return min(found), max(found) - min(found) + 1


def _dated(path: str) -> Iterator[list[Article]]:
    """Yields batches of the articles that have a date; others cannot be in a triplet."""
    dated = (article for article in read_records(path, Article) if article.byline_date)
    while batch := list(itertools.islice(dated, _BATCH)):
        yield batch


def _count(shard: Shard, path: str, first: int, months: int) -> None:
    """Counts n-grams, and writes those articles of the shard that may be in the sample of all."""
    counts, sample = count_by_month([], first, months), list[Article]()
    for batch in _dated(path):
        counts = counts + count_by_month(batch, first, months)
        sample = _drawn([*sample, *map(with_read_words, batch)])
    with files.open_write(shard.path(_COUNTS, "npy")) as sink:
        np.save(sink, counts)
    writer = shard.records(_SAMPLE, Article)
    for article in sample:
        writer.write(article)


def _drawn(articles: Iterable[Article]) -> list[Article]:
    """The sample, drawn by the digest of the id, so that it does not depend on the sharding."""
    return heapq.nsmallest(
        _SHARPNESS_SAMPLE, articles, key=lambda article: hashlib.blake2b(article.doc_id.encode()).digest()
    )


def _fit(shard: Shard, _: None, first: int, ranges: int) -> None:
    total: Any = 0
    for path in files.list_files(f"{shard.workspace}/{_COUNTS}/*.npy"):
        with files.open_read(path) as source:
            total = total + np.load(source)
    sample = _drawn(read_stream(f"{shard.workspace}/{_SAMPLE}", Article))
    models, sharpness = fit_date_model(sample, total, first)
    splits = range_splits(date_stats(sample, models, sharpness, first), ranges)
    arrays = {"models": models, "sharpness": np.asarray(sharpness), "splits": splits}
    write_arrays(f"{shard.workspace}/{_MODEL}", arrays)


@lru_cache(maxsize=1)
def _models(path: str) -> tuple[Any, float, Any]:
    with files.open_read(path) as source:
        arrays = np.load(source)
        return arrays["models"], float(arrays["sharpness"]), arrays["splits"]


def _score(shard: Shard, path: str, first: int, anchor_shards: int) -> None:
    models, sharpness, splits = _models(f"{shard.workspace}/{_MODEL}")
    for article in read_records(path, Article):
        shard.read()
        if article.byline_date is None:
            shard.reject(article.url, Rejection.NO_BYLINE_DATE, "", article.title)
    stats = [one for batch in _dated(path) for one in date_stats(batch, models, sharpness, first)]
    send_stats(shard, stats, splits, anchor_shards)
    shard.written(len(stats))


def _tabulate(shard: Shard, _: None) -> None:
    write_table(shard.workspace)


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
            raise InputError(
                "none of the labelled pairs is among the neighbors",
                path=labels,
                field="--labels",
                remedy="label pairs of this corpus, by doc_id",
            )
        values = [wanted[anchor, other] for anchor, other in known[["anchor", "other"]].tolist()]
        model = fit_model(pair_features(table, known), values, f"{len(known)} labels of {labels.rpartition('/')[2]}")
    files.write_json(f"{shard.workspace}/{_FILTER}", model.to_json())


@lru_cache(maxsize=1)
def _filter(path: str) -> EvergreenModel:
    return EvergreenModel.from_json(files.read_json(path), path)


def _pair(shard: Shard, received: Received, folder: str, options: TripletsOptions, learned: bool, count: int) -> None:
    """Pairs the anchors of one of ``count`` shards of the neighbors, which are sharded by anchor.

    Raises:
      InputError: if the file has neighbors of an anchor of another shard.
    """
    table, model = read_table(f"{shard.workspace}/{TABLE}"), _filter(f"{shard.workspace}/{_FILTER}")
    path, anchors = received.payload, np.sort(received.rows[ANCHORS.stream])
    candidates = read_candidates(path)
    if len(misplaced := candidates["anchor"][shard_numbers(candidates["anchor"], count) != shard.index]):
        raise InputError(
            f"holds neighbors of {doc_id_of(int(misplaced[0]))}, which belong in another shard",
            path=path,
            remedy="run `newsembed neighbors` again; its shards must not be renamed or removed",
        )
    strengths = calibration.strengths_of(shard.workspace, folder, options, learned=learned)
    triplets, outcomes = mine(anchors, candidates, table, model, options, strengths)
    write_array(shard.path(_PAIRED, "npy"), triplets)
    write_array(shard.path(_OUTCOMES, "npy"), outcomes)
    write_array(shard.path(_SAME_EVENT, "npy"), links_of(same_event_pairs(candidates, table, options, strengths)))


def _send_crowded(shard: Shard, _: None, most: int, anchor_shards: int) -> None:
    """Sends the anchors that exceed the limit of their event. One worker can hold the pairs, which are only ids."""
    paired = (read_array(path) for path in files.list_files(f"{shard.workspace}/{_PAIRED}/*.npy"))
    pairs = np.concatenate([np.unique(np.stack([part["anchor"], part["positive"]], axis=1), axis=0) for part in paired])
    crowded = crowded_out(np.unique(pairs[:, 0]), pairs, most)
    send(shard, _CROWDED.stream, crowded, shard_numbers(crowded, anchor_shards))


def _stories(shard: Shard, _: None) -> None:
    """Writes the story of each document that has pairs. One worker can hold the pairs, which are only ids."""
    pairs = np.concatenate([read_array(path) for path in files.list_files(f"{shard.workspace}/{_SAME_EVENT}/*.npy")])
    documents, stories = stories_of(pairs)
    write_stories(f"{shard.workspace}/{STORIES}", documents, stories)
    sizes = np.unique(stories, return_counts=True)[1]
    shard.tally("stories", len(sizes))
    shard.tally("documents in stories", len(documents))
    shard.tally("documents in the largest story", int(sizes.max(initial=0)))


def _mine(shard: Shard, received: Received, learned: bool) -> None:
    table, crowded = read_table(f"{shard.workspace}/{TABLE}"), received.rows[_CROWDED.stream]
    (paired,), (outcomes_path,) = (
        files.list_files(f"{shard.workspace}/{name}/part-{received.payload:05d}-*.npy") for name in (_PAIRED, _OUTCOMES)
    )
    found, outcomes = read_array(paired), read_array(outcomes_path)
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
    rows = map(partial(_triplet, learned=learned), found.tolist(), languages)
    for triplet in sorted(rows, key=order_key):
        output.write(triplet)


def _triplet(row: tuple[Any, ...], language: str, learned: bool) -> Triplet:
    anchor, positive, negative, positive_similarity, negative_similarity, positive_gap, negative_gap, score = row
    # Folders without a learned space have the three similarities of section 2.2.
    known = len(SPACES) if learned else SPACES.index(Space.LEARNED)
    return Triplet(
        anchor=doc_id_of(anchor),
        positive=doc_id_of(positive),
        negative=doc_id_of(negative),
        language=language,
        positive_similarity=tuple(map(float, positive_similarity[:known])),
        negative_similarity=tuple(map(float, negative_similarity[:known])),
        positive_day_gap=positive_gap,
        negative_day_gap=negative_gap,
        evergreen_score=score,
    )


JOB = Job(
    name="triplets",
    summary="mine (anchor, positive, negative) by byline date, with an evergreen filter",
    example="newsembed triplets --articles work/clean --neighbors work/neighbors --output work/triplets",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("neighbors", "folder that `newsembed neighbors` wrote"),
        InputSpec(
            "labels",
            "TSV of labelled pairs (anchor, other, 1 for a false negative or 0) to fit the evergreen filter on",
            required=False,
        ),
    ),
    options=TripletsOptions,
    run=run,
)
