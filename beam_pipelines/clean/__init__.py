"""``newsembed clean``: applies rules, detects languages, removes duplicates; every rejection is named and counted."""

import collections
import dataclasses
import datetime
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import InputError
from ...formats.dates import RELEASED
from ...formats.parquet import read_records
from ...formats.records import Article, Cluster, Rejection
from ..arrays import Array, doc_id_of
from ..graph import Received, Rows, send
from ..jobs import InputSpec, Job, JobRun, optional
from ..shards import Shard
from .duplicates import DECISION, ENTRY, KEPT, REASONS, find_clusters, find_edges, sign, sketches_in, write_sketches
from .rules import SWITCHES, CleanOptions, bad_word, cleaned, read_bad_words, rejection_of, rejection_of_lines

# Rows that are sent to the shards of a later phase.
_BUCKETS, _DECISIONS = "_buckets", "_decisions"


def run(job: JobRun) -> None:
    """Applies the rules to each shard, finds duplicates across shards and keeps the earliest article of each cluster.

    Streams: ``articles`` and ``clusters`` (every member of a cluster of duplicates, and whether it was kept).
    """
    options: CleanOptions = job.options
    paths, bad_words = job.shards("articles"), job.inputs["bad_words"]
    count, threshold = len(paths), options.near_duplicate_threshold
    sent = [("rules", Rows(_BUCKETS, ENTRY))]
    with job.graph(count):
        job.map_shards("rules", _apply_rules, paths, options=with_latest_date(options), bad_words=bad_words)
        job.map_rows("buckets", _find_edges, range(count), sent, threshold=threshold, accounted=False)
        # There are few edges, only between duplicates: one worker finds the clusters.
        job.map_shards("clusters", _find_clusters, [None], accounted=False)
        job.map_rows("duplicates", _drop_duplicates, range(count), [("clusters", Rows(_DECISIONS, DECISION))])


def with_latest_date(options: CleanOptions) -> CleanOptions:
    """Returns the options with the default latest date, tomorrow: articles that were not fetched can be dated later.

    Raises:
      InputError: if the clock is so wrong that all articles would count as of the future.
    """
    if options.latest_date is not None:
        return options
    today = datetime.datetime.now(datetime.UTC).date()
    if today < RELEASED:
        remedy = "set the clock, or give the latest date of an article"
        raise InputError(f"this machine's clock says {today}", field="--latest_date", remedy=remedy)
    return dataclasses.replace(options, latest_date=today + datetime.timedelta(days=1))


def clean_articles(shard: Shard, path: str, options: CleanOptions, bad_words: Sequence[str]) -> Iterator[Article]:
    """Yields the articles of a shard that pass the rules, cleaned; counts all, and rejects the others by reason."""
    words = read_bad_words(bad_words)
    for raw in read_records(path, Article):
        shard.read()
        if (done := shard.limited(raw.key, checked, raw, options, words)) is None:
            continue
        article, dropped, broken = done
        for rule, lines in dropped.items():
            shard.tally(rule, lines)
        if broken is not None:
            shard.reject(raw.key, *broken, f"{raw.title}\n{raw.body}")
        else:
            shard.written()
            yield article


def _apply_rules(shard: Shard, path: str, options: CleanOptions, bad_words: Sequence[str]) -> None:
    kept = shard.records("_kept", Article)
    entries: list[Array] = [np.zeros(0, ENTRY)]
    sketches: list[Array] = []
    for article in clean_articles(shard, path, options, bad_words):
        found, sketch = sign(article, shard.index, len(sketches), options)
        kept.write(article)
        entries.append(found)
        sketches.append(sketch)
    write_sketches(shard.path("_sketches", ""), sketches)
    rows = np.concatenate(entries)
    send(shard, _BUCKETS, rows, rows["digest"] % np.uint64(shard.count))


def checked(
    raw: Article, options: CleanOptions, words: re.Pattern[str] | None
) -> tuple[Article, collections.Counter[str], tuple[Rejection, str] | None]:
    """The cleaned article, its dropped lines, and its rejection with the detail; ``None`` if it passes.

    Args:
      raw: as it was extracted.
      options: of the rules.
      words: of :func:`.rules.read_bad_words`.
    """
    article, dropped = cleaned(raw, options)
    if not article.body and article.title:
        return article, dropped, rejection_of_lines(dropped)
    broken = rejection_of(article, options)
    if broken is None and (word := bad_word(article, words)):
        broken = Rejection.BAD_WORDS, word
    return article, dropped, broken


def _find_edges(shard: Shard, received: Received, threshold: float) -> None:
    sketches = sketches_in(f"{shard.workspace}/_sketches")
    shard.write_array("_edges", find_edges(received.rows[_BUCKETS], sketches, threshold))


def _find_clusters(shard: Shard, _: None) -> None:
    decisions = find_clusters(shard.arrays("_edges"))
    send(shard, _DECISIONS, decisions, decisions["shard"])


def _drop_duplicates(shard: Shard, received: Received) -> None:
    clustered = {row: (reason, doc_id_of(cluster)) for _, row, reason, cluster in received.rows[_DECISIONS].tolist()}
    articles, clusters = shard.records("articles", Article), shard.records("clusters", Cluster)
    for row, article in enumerate(read_records(shard.path("_kept", "parquet"), Article)):
        shard.read()
        reason, cluster = clustered.get(row, (KEPT, ""))
        if cluster:
            clusters.write(Cluster(article.doc_id, cluster, reason == KEPT))
        if reason != KEPT:
            shard.reject(article.key, REASONS[reason], f"cluster {cluster}", f"{article.title}\n{article.body}")
        else:
            articles.write(article)
            shard.written()


JOB = Job(
    name="clean",
    example="newsembed clean --articles work/extract --output work/clean --min_words=80 --require_author=true",
    inputs=(
        InputSpec("articles", "folder that `newsembed extract` wrote"),
        optional("bad_words", "files with one word per line; articles that contain one are rejected", many=True),
    ),
    options=CleanOptions,
    run=run,
    switches=SWITCHES,
)
