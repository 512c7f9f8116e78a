"""``newsembed clean``: applies rules, detects languages, removes duplicates; every rejection is named and counted."""

import collections
import dataclasses
import datetime
import itertools
import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from ...errors import InputError, counted
from ...formats import files
from ...formats.parquet import read_records, shard_paths
from ...formats.records import Article, Cluster, Rejection
from ..arrays import Array, doc_id_of, read_array, write_array
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard
from ..shuffle import Received, Rows, send
from .duplicates import DECISION, ENTRY, KEPT, REASONS, SKETCH_BOUNDS, SKETCH_VALUES, find_clusters, find_edges, sign
from .lines import rejection_of_lines
from .options import SWITCHES, CleanOptions
from .rules import bad_word, cleaned, read_bad_words, rejection_of
from .yields import TABLE, YieldCounter, alarm_to_json, find_alarms, merge_counts, pool, read_yields, write_yields

# Rows that are sent to the shards of a later phase.
_BUCKETS, _DECISIONS = "_buckets", "_decisions"


def run(job: JobRun) -> None:
    """Applies the rules to each shard, finds duplicates across shards and keeps the earliest article of each cluster.

    Streams: ``articles`` and ``clusters`` (every member of a cluster of duplicates, and whether it was kept).
    ``yields.tsv`` lists the outcome of each publisher's articles. ``yield_alarms`` in the manifest are the publishers
    with a lower yield than in the runs given as ``--history``.

    Raises:
      InputError: if a yield dropped and ``--fail_on_yield_alarm`` is set.
    """
    options: CleanOptions = job.options
    history = [read_yields(folder) for folder in job.inputs["history"]]
    paths = shard_paths(f"{job.input('articles')}/articles")
    count = len(paths)
    rules = partial(
        _apply_rules, options=with_latest_date(options), bad_words=job.inputs["bad_words"], shard_count=count
    )
    find_edges_of_shard = partial(_find_edges, threshold=options.near_duplicate_threshold)
    with job.graph("clean", count):
        job.map_shards("rules", rules, paths)
        job.map_rows("buckets", find_edges_of_shard, range(count), [("rules", Rows(_BUCKETS, ENTRY))], accounted=False)
        # There are few edges, only between duplicates: one worker finds the clusters.
        job.map_shards("clusters", _find_clusters, [None], accounted=False)
        job.map_rows("duplicates", _drop_duplicates, range(count), [("clusters", Rows(_DECISIONS, DECISION))])
    table = merge_counts(files.read_json(path) for path in files.list_files(f"{job.workspace}/_yields_*/*.json"))
    write_yields(f"{job.workspace}/{TABLE}", table)
    alarms = (
        find_alarms(table, pool(history), options.min_yield_drop, options.yield_false_discovery_rate) if history else []
    )
    job.extra["yield_alarms"] = [alarm_to_json(alarm) for alarm in alarms]
    if alarms and options.fail_on_yield_alarm:
        raise InputError(
            f"the yield of {counted(len(alarms), 'publisher')} dropped: "
            f"{', '.join(alarm.publisher for alarm in alarms[:10])}",
            field="--fail_on_yield_alarm",
            remedy=f"see {job.workspace}/{TABLE}; fix the extraction of their pages, or run without this option",
        )


def with_latest_date(options: CleanOptions) -> CleanOptions:
    """Returns the options with the default latest date, tomorrow: articles that were not fetched can be dated later."""
    tomorrow = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=1)
    return options if options.latest_date is not None else dataclasses.replace(options, latest_date=tomorrow)


def _apply_rules(shard: Shard, path: str, options: CleanOptions, bad_words: Sequence[str], shard_count: int) -> None:
    words = read_bad_words(bad_words)
    kept, yields = shard.records("_kept", Article), YieldCounter()
    entries: list[Array] = [np.zeros(0, ENTRY)]
    sketches: list[npt.NDArray[np.uint32]] = []
    for raw in read_records(path, Article):
        shard.read()
        article, dropped = cleaned(raw, options)
        for rule, lines in dropped.items():
            shard.tally(rule, lines)
        broken = broken_rule(article, dropped, options, words)
        if broken is not None:
            shard.reject(raw.url, *broken, f"{raw.title}\n{raw.body}")
            yields.reject(raw.publisher, broken[0])
            continue
        found, sketch = sign(article, shard.index, len(sketches), options)
        kept.write(article)
        entries.append(found)
        sketches.append(sketch)
        shard.written()
    _write_sketches(shard, sketches)
    files.write_json(shard.path("_yields_rules", "json"), yields.to_json())
    rows = np.concatenate(entries)
    send(shard, _BUCKETS, rows, rows["digest"] % np.uint64(shard_count))


def broken_rule(
    article: Article, dropped: collections.Counter[str], options: CleanOptions, words: re.Pattern[str] | None
) -> tuple[Rejection, str] | None:
    """Returns the rejection of a cleaned article and its detail; ``None`` if the article passes.

    Args:
      article: of :func:`.rules.cleaned`.
      dropped: of :func:`.rules.cleaned`.
      options: of the rules.
      words: of :func:`.rules.read_bad_words`.
    """
    if not article.body and article.title:
        return rejection_of_lines(dropped)
    if (broken := rejection_of(article, options)) is not None:
        return broken
    return (Rejection.BAD_WORDS, word) if (word := bad_word(article, words)) else None


def _write_sketches(shard: Shard, sketches: Sequence[npt.NDArray[np.uint32]]) -> None:
    with files.open_write(shard.path("_sketches", SKETCH_VALUES)) as sink:
        for sketch in sketches:
            sink.write(sketch.astype("<u4").tobytes())
    bounds = np.array([0, *itertools.accumulate(map(len, sketches))], np.int64)
    write_array(shard.path("_sketches", SKETCH_BOUNDS), bounds)


def _find_edges(shard: Shard, received: Received, threshold: float) -> None:
    sketches = [
        path.removesuffix(SKETCH_BOUNDS) for path in files.list_files(f"{shard.workspace}/_sketches/*.{SKETCH_BOUNDS}")
    ]
    write_array(shard.path("_edges", "npy"), find_edges(received.rows[_BUCKETS], sketches, threshold))


def _find_clusters(shard: Shard, _: None) -> None:
    decisions = find_clusters(read_array(path) for path in files.list_files(f"{shard.workspace}/_edges/*.npy"))
    send(shard, _DECISIONS, decisions, decisions["shard"])


def _drop_duplicates(shard: Shard, received: Received) -> None:
    decisions = received.rows[_DECISIONS]
    clustered = {row: (reason, doc_id_of(cluster)) for _, row, reason, cluster in decisions.tolist()}
    (kept_path,) = files.list_files(f"{shard.workspace}/_kept/part-{shard.index:05d}-of-*.parquet")
    articles, clusters, yields = shard.records("articles", Article), shard.records("clusters", Cluster), YieldCounter()
    for row, article in enumerate(read_records(kept_path, Article)):
        shard.read()
        reason, cluster = clustered.get(row, (KEPT, ""))
        if cluster:
            clusters.write(Cluster(article.doc_id, cluster, reason == KEPT))
        if reason != KEPT:
            shard.reject(article.url, REASONS[reason], f"cluster {cluster}", f"{article.title}\n{article.body}")
            yields.reject(article.publisher, REASONS[reason])
        else:
            articles.write(article)
            yields.keep(article.publisher)
            shard.written()
    files.write_json(shard.path("_yields_duplicates", "json"), yields.to_json())


JOB = Job(
    name="clean",
    summary="rules, language, exact and near duplicates; every rejection named and counted",
    example="newsembed clean --articles work/extract --output work/clean --min_words=100 --require_author=false",
    inputs=(
        InputSpec("articles", "folder that `newsembed extract` wrote"),
        InputSpec(
            "bad_words",
            "files with one word per line; an article that contains one of the words is rejected",
            required=False,
            many=True,
        ),
        InputSpec(
            "history",
            "folders of earlier runs, for warnings about publishers whose yield has dropped",
            required=False,
            many=True,
            for_workers=lambda _: False,
        ),
    ),
    options=CleanOptions,
    run=run,
    switches=SWITCHES,
)
