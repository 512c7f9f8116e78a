"""The pipelines of ``crawl``: each site is crawled by one thread and written to its own WARC file."""

import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import quote

import apache_beam as beam

from ... import __version__
from ...formats import files, parquet
from ...formats.records import Rejection, make_doc_id
from ...formats.urls import canonical_url
from ..graph import Parts
from ..jobs import InputSpec, Job, JobRun
from ..shards import GroupByShard, ProcessShards, Shard, shard_of
from .frontier import Visit
from .options import CrawlOptions, Scope
from .rate_limits import shared_limiter
from .report import SiteReport, read_report, write_report
from .seeds import group_by_site, read_seeds, site_of
from .site import SiteCrawler, today
from .state import check_states, publish_states, read_state, write_state
from .warc import WarcWriter

Site = tuple[str, Sequence[Visit]]  # (registered domain, first visits)
_SEEDS, _ENTRIES, _IMAGES = "fetch", "entries", "images"


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """A URL that a site lists for a later phase: a thumbnail, or a feed entry on another domain."""

    url: str
    depth: int
    kind: str


def run(job: JobRun) -> None:
    """Crawls the sites of the seeds, then the URLs that they list on other domains.

    Each site gets one WARC file with its index.

    A record is a scheduled URL: a seed, a link within scope and depth, or a thumbnail. It counts as written if its
    response was stored. Thumbnails, and feed entries on other domains in the scope "feeds", are grouped by their own
    domain, so that no host receives requests from two workers.
    """
    options: CrawlOptions = job.options
    sites = group_by_site(read_seeds(job.input("seeds")))
    if options.state:
        check_states(options.state.rstrip("/"))
    groups = _groups([(name, [Visit(seed) for seed in seeds]) for name, seeds in sites], options.concurrent_sites)
    parts = Parts(f"{job.workspace}/_sites/{_SEEDS}/*.json", len(sites), growing=f"{job.workspace}/warc/*")
    job.map_shards(_SEEDS, partial(_crawl_sites, options=options, phase=_SEEDS), groups, parts=parts)
    phases = [_SEEDS]
    if options.scope is Scope.FEEDS:
        only_listed = dataclasses.replace(options, max_depth=0)
        _crawl_listed(job, _ENTRIES, phases, len(groups), only_listed)
        phases.append(_ENTRIES)
    if options.fetch_images:
        _crawl_listed(job, _IMAGES, phases, len(groups), options)
    if options.state:  # only after all WARC files are complete: an aborted crawl must not count as fetched
        publish_states(f"{job.workspace}/_state", options.state.rstrip("/"))


def _groups(sites: list[Site], concurrent: int) -> list[list[Site]]:
    """Returns the sites of each shard; few sites are split so that two workers share them."""
    if len(sites) < 2 * concurrent:
        half = max(1, len(sites) // 2)
        return [group for group in (sites[:half], sites[half:]) if group]
    return [sites[start : start + concurrent] for start in range(0, len(sites), concurrent)]


def _crawl_listed(job: JobRun, name: str, sources: Sequence[str], shard_count: int, options: CrawlOptions) -> None:
    """Crawls the URLs that earlier phases listed for this one, grouped by registered domain.

    Raises:
      RuntimeError: if the number of URLs read differs from the number listed.
    """
    phase = job.phase(name, shard_count, beside=True)
    with job.pipeline(phase) as pipeline:
        _ = (
            pipeline
            | beam.Create([path for source in sources for path in _listed_paths(job.workspace, source, shard_count)])
            | beam.FlatMap(_listed_for, name, shard_count)
            | GroupByShard(shard_count)
            | ProcessShards(partial(_crawl_urls, options=options, phase=name), phase)
        )
    listed = sum(job.counts_of(source).tallies.get(f"listed_{name}", 0) for source in sources)
    counts = job.counts_of(name)
    if counts.read + counts.tallies.get("listed_again", 0) != listed:
        raise RuntimeError(
            f"crawl: {listed} URLs were listed for {name}, {counts.read} of them were read: {counts.to_json()}"
        )


def _listed_paths(workspace: str, phase: str, shard_count: int) -> list[str]:
    return [
        f"{workspace}/_listed/{phase}/part-{index:05d}-of-{shard_count:05d}.parquet" for index in range(shard_count)
    ]


def _listed_for(path: str, phase: str, shard_count: int) -> Iterator[tuple[int, tuple[str, str, int]]]:
    for one in parquet.read_records(path, Listed):
        if _phase_of(one.kind) == phase:
            site = site_of(one.url)
            yield shard_of(make_doc_id(site), shard_count), (site, one.url, one.depth)


def _phase_of(kind: str) -> str:
    return _IMAGES if kind == "image" else _ENTRIES


def _crawl_urls(shard: Shard, rows: Sequence[tuple[str, str, int]], options: CrawlOptions, phase: str) -> None:
    sites: dict[str, list[Visit]] = {}
    for site, url, depth in rows:
        kind = "image" if phase == _IMAGES else "page"
        sites.setdefault(site, []).append(Visit(url, depth, kind))
    _crawl_sites(shard, sorted(sites.items()), options, phase)


def _crawl_sites(shard: Shard, sites: Sequence[Site], options: CrawlOptions, phase: str) -> None:
    listed = shard.records(f"_listed/{phase}", Listed)
    with ThreadPoolExecutor(max_workers=options.concurrent_sites) as pool:
        for report in pool.map(lambda site: _crawl_site(shard.workspace, site, options, phase), sites):
            _account(shard, report)
            for visit in report.listed:
                listed.write(Listed(visit.url, visit.depth, visit.kind))
                shard.tally(f"listed_{_phase_of(visit.kind)}")


def _account(shard: Shard, report: SiteReport) -> None:
    for outcome in report.outcomes:
        shard.read()
        if outcome.reason is None:
            shard.written()
            shard.tally(f"{outcome.kind}s")
        elif isinstance(outcome.reason, Rejection):
            shard.reject(outcome.url, outcome.reason, outcome.detail)
        else:
            shard.fail(outcome.url, outcome.reason, outcome.detail)
    for name, count in report.tallies.items():
        shard.tally(name, count)


def _crawl_site(workspace: str, site: Site, options: CrawlOptions, phase: str) -> SiteReport:
    """Crawls one site into one WARC file, which is moved to its final name when it is complete.

    The report is written last. A shard that is repeated, after a lost or killed worker, finds the report and sends no
    request to the site.
    """
    name, starts = site
    report_path = f"{workspace}/_sites/{phase}/{quote(name, safe='')}.json"
    done = read_report(report_path)
    if done is not None:
        return done
    known = read_state(_state_path(options, phase, name)) if options.state else {}
    crawler = SiteCrawler(
        list(starts),
        options,
        shared_limiter(options.max_concurrent_requests),
        known,
        _urls_done(workspace, phase, name),
    )
    path = f"{workspace}/warc/{_file_name(phase, name)}.warc.gz"
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"  # unique to this attempt
    outcomes = []
    with files.open_write(temporary) as sink:
        writer = WarcWriter(
            sink, f"newsembed/{__version__}", {"robots": "obey", "http-header-user-agent": options.user_agent}
        )
        for outcome, fetched in crawler.walk():
            outcomes.append(outcome)
            if fetched is not None:
                writer.write(fetched)
    files.write_whole(f"{workspace}/warc/{_file_name(phase, name)}.cdxj", writer.index(path.rpartition("/")[2]))
    files.move(temporary, path)
    if options.state:
        write_state(f"{workspace}/_state/{_file_name(phase, name)}.json.gz", crawler.known, today())
    tallies = {tally: count for tally, count in crawler.tallies.items() if count}
    report = SiteReport(tuple(outcomes), tuple(crawler.listed.values()), tallies)
    write_report(report_path, report)
    return report


def _urls_done(workspace: str, phase: str, name: str) -> frozenset[str]:
    """Returns the canonical URLs of a site that the first phase has crawled, if the site has a seed."""
    report = read_report(f"{workspace}/_sites/{_SEEDS}/{quote(name, safe='')}.json") if phase == _ENTRIES else None
    return frozenset(canonical_url(outcome.url) for outcome in report.outcomes) if report else frozenset()


def _file_name(phase: str, name: str) -> str:
    return quote(name, safe="") + ("" if phase == _SEEDS else f".{phase}")


def _state_path(options: CrawlOptions, phase: str, name: str) -> str:
    return f"{options.state.rstrip('/')}/{_file_name(phase, name)}.json.gz"


JOB = Job(
    name="crawl",
    summary="feeds, sitemaps, hubs and pages of sites to WARC, politely",
    example="newsembed crawl --seeds seeds.txt --output crawls/2024-03-01 --state crawl-state --sitemaps=auto "
    "--since=2024-01-01",
    inputs=(
        InputSpec(
            "seeds",
            "text file with one URL per line: feeds, sitemaps, section pages, articles",
            for_workers=lambda _: False,
        ),
    ),
    options=CrawlOptions,
    run=run,
    switches={Rejection.PRIVATE_ADDRESS: "allow_private_addresses=true"},
)
