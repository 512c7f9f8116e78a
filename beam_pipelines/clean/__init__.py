"""``newsembed clean``: rules, language, exact and near duplicates; every rejection named and counted."""

from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from .. import files
from ..jobs import InputSpec, Job, JobRun
from ..parquet import read_records, shard_paths
from ..records import Article, Cluster, Rejection
from ..shards import GroupByShard, ProcessShards, Shard
from .duplicates import FindDuplicates, Signature, sign
from .options import CleanOptions
from .rules import bad_word, cleaned, rejection_of


def run(job: JobRun) -> None:
    """Applies the rules shard by shard, then finds duplicates across shards and keeps the earliest of each cluster.

    Streams: ``articles`` and ``clusters`` (every member of a duplicate cluster, and whether it was kept).
    """
    options: CleanOptions = job.options
    paths = shard_paths(f"{job.input('articles')}/articles")
    job.map_shards("rules", partial(_apply_rules, options=options), paths)
    phase = job.phase("duplicates", len(paths))
    places = [(index, len(paths)) for index in range(len(paths))]
    with job.pipeline(phase) as pipeline:
        found = pipeline | beam.Create(places) | beam.Reshuffle() | FindDuplicates(job.workspace, options.near_duplicate_threshold)
        _ = found | GroupByShard(len(paths)) | ProcessShards(partial(_drop_duplicates, shard_count=len(paths)), phase)


def _apply_rules(shard: Shard, path: str, options: CleanOptions) -> None:
    kept, signatures = shard.records("_kept", Article), shard.records("_signatures", Signature)
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
        signature, sketch = sign(article, len(sketches), options)
        kept.write(article)
        signatures.write(signature)
        sketches.append(sketch)
        shard.written()
    with files.open_write(shard.path("_minhash", "npy")) as sink:
        np.save(sink, np.array(sketches, dtype=np.uint32).reshape(len(sketches), options.permutations))


def _drop_duplicates(shard: Shard, decisions: list[tuple[int, str, str]], shard_count: int) -> None:
    clustered: dict[int, tuple[str, str]] = {row: (reason, cluster) for row, reason, cluster in decisions}
    articles, clusters = shard.records("articles", Article), shard.records("clusters", Cluster)
    kept: Any = read_records(f"{shard.workspace}/_kept/part-{shard.index:05d}-of-{shard_count:05d}.parquet", Article)
    for row, article in enumerate(kept):
        shard.read()
        reason, cluster = clustered.get(row, ("", ""))
        if cluster:
            clusters.write(Cluster(article.doc_id, cluster, not reason))
        if reason:
            shard.reject(article.url, Rejection(reason), f"cluster {cluster}", f"{article.title}\n{article.body}")
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
