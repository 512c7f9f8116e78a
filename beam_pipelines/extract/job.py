"""The ``extract`` job: options, phases and streams."""

import dataclasses
from collections.abc import Sequence
from functools import partial

import apache_beam as beam

from ...errors import InputError
from ...formats.command_line import option
from ..graph import Graph
from ..jobs import InputSpec, Job, JobRun, input_digest
from ..shards import GroupByShard, Phase, ProcessShards
from .cdx import indexes_beside
from .isolation import Limits
from .join import JoinEvidence, MergeHubs, write_hubs, write_joined
from .links import MAX_LINKS
from .path_lists import is_path_list, list_path
from .read import read_slice
from .sources import groups_of, row_slices, warc_slices

_LEAST_HUB_SHARDS = 4
_ARTICLE_SHARDS_PER_HUB_SHARD = 8  # a worker holds the hubs of a shard, with the ids of the articles that they list


@dataclasses.dataclass(frozen=True)
class ExtractOptions:
    """Limits for one page. The rules for articles are options of ``clean``."""

    page_seconds: float = option(
        20.0, "time limit for reading one page, in seconds; beyond it the page fails as timeout"
    )
    page_megabytes: int = option(
        1_024, "memory limit for reading one page, in megabytes; beyond it the page fails as too_large"
    )
    max_links_per_page: int = option(
        MAX_LINKS, "different links taken from one page, from its start; the rest is counted as links_beyond_limit"
    )
    warc_base: str = option(
        "",
        "prefix of relative paths in lists of WARC files, such as s3://commoncrawl/; default: the folder of the list",
    )

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
          InputError: naming the option with an invalid value.
        """
        for field, least in (("page_seconds", 0.1), ("page_megabytes", 64), ("max_links_per_page", 1)):
            if not getattr(self, field) >= least:
                raise InputError(
                    f"got {getattr(self, field)}, expected at least {least}",
                    field=f"--{field}",
                    remedy="omit it to use the default",
                )


def run(job: JobRun) -> None:
    """Reads slices of the inputs, then joins the evidence that pages give for one another.

    A record is a captured response, a line or a row; it is written as an article, a hub, an image hash or a post.
    Streams: ``articles`` (with anchor texts, hubs and image hashes), ``hubs`` (captures of the same hub are merged)
    and, where ``--posts`` is given, ``posts`` (those whose article is there).

    Raises:
      InputError: if there is no input.
    """
    pieces = [
        *warc_slices(job.inputs["warc"], job.options.warc_base, job.inputs["cdx"]),
        *row_slices(job.inputs["articles"], "articles"),
        *row_slices(job.inputs["posts"], "posts"),
    ]
    if not job.inputs["warc"] and not job.inputs["articles"]:
        raise InputError("no input", field="--warc, --articles", remedy="give WARC files, article files or both")
    options: ExtractOptions = job.options
    limits = Limits(options.page_seconds, options.page_megabytes)
    with job.graph("extract", len(pieces)) as graph:
        job.map_shards("read", partial(read_slice, limits=limits, max_links=options.max_links_per_page), pieces)
        groups = groups_of(pieces)
        joined, hubs = job.phase("join", len(groups)), job.phase("hubs", hub_shards(len(groups)), accounted=False)
        given = {"with_posts": bool(job.inputs["posts"]), "with_images": bool(job.inputs["warc"])}
        graph.add(joined, partial(_join, graph, joined, groups, **given))
        graph.add(hubs, partial(_merge, graph, hubs, len(pieces)))


def hub_shards(article_shards: int) -> int:
    """Returns the number of shards of hubs.

    >>> hub_shards(32), hub_shards(33), hub_shards(800)
    (4, 5, 100)
    """
    return max(_LEAST_HUB_SHARDS, -(-article_shards // _ARTICLE_SHARDS_PER_HUB_SHARD))


def _join(
    graph: Graph, phase: Phase, groups: Sequence[range], *, with_posts: bool, with_images: bool
) -> beam.PCollection:
    places = graph.start("join", _places(groups[-1].stop))
    evidence = places | JoinEvidence(phase.workspace, groups, with_images)
    write = partial(write_joined, groups=groups, with_posts=with_posts)
    grouped = evidence | "GroupEvidence" >> GroupByShard(len(groups))
    return grouped | ProcessShards(write, phase)


def _merge(graph: Graph, phase: Phase, read_shards: int) -> beam.PCollection:
    merged = graph.start("hubs", _places(read_shards)) | MergeHubs(phase.workspace, phase.shard_count)
    return merged | "GroupHubs" >> GroupByShard(phase.shard_count) | ProcessShards(write_hubs, phase)


def _places(count: int) -> list[tuple[int, int]]:
    return [(index, count) for index in range(count)]


def warc_digest(path: str) -> str:
    """Returns the digest of a WARC file with the indexes next to it, or of a list of WARC files.

    For a list only its text counts: the files of a published list do not change, and checking each takes minutes.
    """
    if is_path_list(path):
        return input_digest(list_path(path))
    return " ".join(input_digest(one) for one in (path, *indexes_beside(path)))


JOB = Job(
    name="extract",
    summary="WARC files and pre-extracted articles to articles and hubs",
    example="newsembed extract --warc 'crawl/warc/*.warc.gz' --articles archive.jsonl.zst --output work/extract",
    inputs=(
        InputSpec(
            "warc",
            "WARC files or patterns; or lists with one path per line, given as @LIST or with a name ending in .txt, "
            ".paths, .txt.gz or .paths.gz (CC-NEWS's warc.paths.gz), with one shard per file",
            required=False,
            many=True,
            digest=warc_digest,
            for_workers=lambda path: not is_path_list(path),
        ),
        InputSpec(
            "cdx",
            "CDX or CDXJ indexes of the WARC files: records that they list and that were not read are dead letters "
            "(missing_record). An index next to a WARC file (a.cdxj, a.warc.gz.cdx) is found without this",
            required=False,
            many=True,
        ),
        InputSpec(
            "articles", "pre-extracted articles: .jsonl, .jsonl.zst, .jsonl.gz, .parquet", required=False, many=True
        ),
        InputSpec(
            "posts",
            "posts that link to articles, as rows with `text` and `url` in files like those of --articles",
            required=False,
            many=True,
        ),
    ),
    options=ExtractOptions,
    run=run,
)
