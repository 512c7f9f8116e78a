"""``newsembed clean``: rules, language, exact and near duplicates; every rejection named and counted."""

from functools import partial

import numpy as np
import numpy.typing as npt

from .. import files
from ..arrays import Array, doc_id_of, read_array, write_array
from ..exchange import receive, send
from ..jobs import InputSpec, Job, JobRun
from ..parquet import read_records, shard_paths
from ..records import Article, Cluster, Rejection
from ..shards import Shard
from .duplicates import ENTRY, KEPT, REASONS, find_clusters, find_edges, sign
from .options import CleanOptions
from .rules import bad_word, cleaned, rejection_of


def run(job: JobRun) -> None:
    """Applies the rules shard by shard, then finds duplicates across shards and keeps the earliest of each cluster.

    Streams: ``articles`` and ``clusters`` (every member of a duplicate cluster, and whether it was kept).
    """
    options: CleanOptions = job.options
    paths = shard_paths(f"{job.input('articles')}/articles")
    count = len(paths)
    job.map_shards("rules", partial(_apply_rules, options=options, shard_count=count), paths)
    job.map_shards("buckets", partial(_find_edges, threshold=options.near_duplicate_threshold), range(count), accounted=False)
    # Edges are few and small: duplicates only. One worker unites them.
    job.map_shards("clusters", _unite, [count], accounted=False)
    job.map_shards("duplicates", _drop_duplicates, range(count))


def _apply_rules(shard: Shard, path: str, options: CleanOptions, shard_count: int) -> None:
    kept = shard.records("_kept", Article)
    entries: list[Array] = [np.zeros(0, ENTRY)]
    sketches: list[npt.NDArray[np.uint32]] = []
    for raw in read_records(path, Article):
        shard.read()
        article = cleaned(raw, options)
        broken = rejection_of(article, options)
        if broken is None and options.require_language and not article.language:
            broken = (Rejection.UNKNOWN_LANGUAGE, raw.language)
        if broken is None and options.bad_words and (word := bad_word(article, options.bad_words)):
            broken = (Rejection.BAD_WORDS, word)
        if broken is not None:
            shard.reject(raw.url, *broken, f"{raw.title}\n{raw.body}")
            continue
        found, sketch = sign(article, shard.index, len(sketches), options)
        kept.write(article)
        entries.append(found)
        sketches.append(sketch)
        shard.written()
    with files.open_write(shard.path("_minhash", "npy")) as sink:
        np.save(sink, np.array(sketches, dtype=np.uint32).reshape(len(sketches), options.permutations))
    rows = np.concatenate(entries)
    send(shard, "_buckets", rows, rows["digest"] % np.uint64(shard_count), shard_count)


def _find_edges(shard: Shard, bucket: int, threshold: float) -> None:
    entries = receive(shard.workspace, "_buckets", bucket)
    write_array(shard.path("_edges", "npy"), find_edges(entries, files.list_files(f"{shard.workspace}/_minhash/*.npy"), threshold))


def _unite(shard: Shard, shard_count: int) -> None:
    decisions = find_clusters(read_array(path) for path in files.list_files(f"{shard.workspace}/_edges/*.npy"))
    send(shard, "_decisions", decisions, decisions["shard"], shard_count)


def _drop_duplicates(shard: Shard, number: int) -> None:
    decisions = receive(shard.workspace, "_decisions", number)
    clustered = {row: (reason, doc_id_of(cluster)) for _, row, reason, cluster in decisions.tolist()}
    (kept_path,) = files.list_files(f"{shard.workspace}/_kept/part-{number:05d}-of-*.parquet")
    articles, clusters = shard.records("articles", Article), shard.records("clusters", Cluster)
    for row, article in enumerate(read_records(kept_path, Article)):
        shard.read()
        reason, cluster = clustered.get(row, (KEPT, ""))
        if cluster:
            clusters.write(Cluster(article.doc_id, cluster, reason == KEPT))
        if reason != KEPT:
            shard.reject(article.url, REASONS[reason], f"cluster {cluster}", f"{article.title}\n{article.body}")
        else:
            articles.write(article)
            shard.written()


JOB = Job(
    name="clean",
    summary="rules, language, exact and near duplicates; every rejection named and counted",
    example="newsembed clean --articles work/extract --output work/clean --min_words=100 --require_author=false",
    inputs=(InputSpec("articles", "folder that `newsembed extract` wrote"),),
    options=CleanOptions,
    run=run,
)
