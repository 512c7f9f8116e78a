"""``newsembed extract``: WARC files and pre-extracted articles to articles and hubs."""

import dataclasses
from functools import partial

import apache_beam as beam

from ...tasks.errors import InputError
from ..jobs import InputSpec, Job, JobRun
from ..shards import GroupByShard, ProcessShards
from .join import JoinEvidence, MergeHubs, write_hubs, write_joined
from .read import read_slice
from .sources import slices_of

_HUB_SHARDS = 4


@dataclasses.dataclass(frozen=True)
class ExtractOptions:
    """No options yet: what counts as an article is decided by ``clean``, where each rule is one."""


def run(job: JobRun) -> None:
    """Reads slices, then joins what pages say of one another.

    A record is a captured response, a line or a row; it is written as an article, a hub or an image hash. Streams:
    ``articles`` (with anchor texts, hubs and image hashes joined) and ``hubs`` (captures of one hub united).
    """
    pieces = [*slices_of(job.inputs["warc"], "warc"), *slices_of(job.inputs["articles"], "articles")]
    if not pieces:
        raise InputError("no input", field="--warc, --articles", remedy="give WARC files, article files or both")
    job.map_shards("read", read_slice, pieces)
    places = [(index, len(pieces)) for index in range(len(pieces))]
    joined = job.phase("join", len(pieces))
    with job.pipeline(joined) as pipeline:
        evidence = pipeline | beam.Create(places) | beam.Reshuffle() | JoinEvidence(job.workspace)
        _ = evidence | GroupByShard(len(pieces)) | ProcessShards(partial(write_joined, shard_count=len(pieces)), joined)
    hubs = job.phase("hubs", _HUB_SHARDS, accounted=False)
    with job.pipeline(hubs) as pipeline:
        _ = (
            pipeline
            | beam.Create(places)
            | beam.Reshuffle()
            | MergeHubs(job.workspace, _HUB_SHARDS)
            | GroupByShard(_HUB_SHARDS)
            | ProcessShards(write_hubs, hubs)
        )


JOB = Job(
    name="extract",
    summary="WARC files and pre-extracted articles to articles and hubs",
    example="newsembed extract --warc 'crawl/warc/*.warc.gz' --articles archive.jsonl.zst --output work/extract",
    inputs=(
        InputSpec("warc", "WARC files or patterns", required=False, many=True),
        InputSpec("articles", "pre-extracted articles: .jsonl, .jsonl.zst, .jsonl.gz, .parquet", required=False, many=True),
    ),
    options=ExtractOptions,
    run=run,
)
