"""The job of an update that needs no other article: the rules of ``clean``, and what the search for duplicates needs.

It is the first phase of ``newsembed clean``. What it finds is compared with the archive in :mod:`.duplicates`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from ..beam_pipelines.arrays import write_array
from ..beam_pipelines.clean import broken_rule, with_latest_date
from ..beam_pipelines.clean.duplicates import sign
from ..beam_pipelines.clean.options import CleanOptions
from ..beam_pipelines.clean.rules import cleaned, read_bad_words
from ..beam_pipelines.jobs import InputSpec, Job, JobRun
from ..beam_pipelines.shards import Shard
from ..formats.arrays import Array
from ..formats.parquet import read_records, shard_paths
from ..formats.records import Article
from .signatures import SKETCH_TYPE, signature, signature_type

ARTICLES: Final = "articles"
SIGNATURES: Final = "signatures"
SKETCHES: Final = "sketches"


def run(job: JobRun) -> None:
    """Applies the rules to each shard. Streams: ``articles``, and ``signatures`` and ``sketches`` in the same order."""
    paths = shard_paths(f"{job.input('articles')}/articles")
    options = with_latest_date(job.options)
    job.map_shards("rules", partial(_apply_rules, options=options, bad_words=job.inputs["bad_words"]), paths)


def _apply_rules(shard: Shard, path: str, options: CleanOptions, bad_words: Sequence[str]) -> None:
    words, kept = read_bad_words(bad_words), shard.records(ARTICLES, Article)
    rows: list[Array] = [np.zeros(0, signature_type(options))]
    sketches: list[Array] = [np.zeros(0, SKETCH_TYPE)]
    for raw in read_records(path, Article):
        shard.read()
        article, dropped = cleaned(raw, options)
        broken = broken_rule(article, dropped, options, words)
        if broken is not None:
            shard.reject(raw.url, *broken, f"{raw.title}\n{raw.body}")
            continue
        entries, sketch = sign(article, 0, 0, options)
        kept.write(article)
        rows.append(signature(article, entries, sketch, options))
        sketches.append(sketch)
        shard.written()
    write_array(shard.path(SIGNATURES, "npy"), np.concatenate(rows))
    write_array(shard.path(SKETCHES, "npy"), np.concatenate(sketches))


JOB = Job(
    name="rules",
    summary="the rules of clean, and signatures for the search for duplicates in the archive",
    example="newsembed update --archive archive --encoder savedmodel:saved_model --articles today.jsonl",
    inputs=(
        InputSpec("articles", "folder that `newsembed extract` wrote"),
        InputSpec("bad_words", "files with one word per line", required=False, many=True),
    ),
    options=CleanOptions,
    run=run,
)
