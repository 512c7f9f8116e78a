"""The pipelines of ``crawl``: each site is crawled by one thread and written to its own WARC file."""

import dataclasses
import datetime
import glob
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import quote

import apache_beam as beam

from ... import __version__
from ...errors import InputError, reading
from ...formats import files, parquet
from ...formats.records import Rejection, make_doc_id
from ...formats.urls import canonical_url, registered_domain
from ..graph import Parts
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard, group_by_shard, process_shards, shard_of
from .options import CrawlOptions, Scope
from .politeness import shared_limiter
from .site import SiteCrawler
from .state import SiteReport, Visit, WarcWriter, check_states, read_report, read_state, write_state

Site = tuple[str, Sequence[Visit]]  # (registered domain, first visits)
_SEEDS, _ENTRIES, _IMAGES = "fetch", "entries", "images"
_SHOWN = 100  # characters of a line that is not a URL


def run(job: JobRun) -> None:
    """Crawls the sites of the seeds, then the URLs that they list on other domains.

    Each site gets one WARC file with its index.

    A record is a scheduled URL: a seed, a link within scope and depth, or a thumbnail. It counts as written if its
    response was stored. Thumbnails, and feed entries on other domains in the scope "feeds", are grouped by their own
    domain, so that no host receives requests from two workers.
    """
    options: CrawlOptions = job.options
    sites = group_by_site(map(Visit, read_seeds(job.input("seeds"))))
    state = options.state.rstrip("/")
    if state:
        check_states(state)
    size = min(options.concurrent_sites, -(-len(sites) // 2))  # two workers share a few sites
    groups = [sites[start : start + size] for start in range(0, len(sites), size)]
    place = glob.escape(job.workspace)
    parts = Parts(f"{place}/_sites/{_SEEDS}/*.json", len(sites), growing=f"{place}/warc/*")
    job.map_shards(_SEEDS, partial(_crawl_sites, options=options, phase=_SEEDS), groups, parts=parts)
    phases = [_SEEDS]
    if options.scope is Scope.FEEDS:
        _crawl_listed(job, _ENTRIES, phases, len(groups), dataclasses.replace(options, max_depth=0))
        phases.append(_ENTRIES)
    if options.fetch_images:
        _crawl_listed(job, _IMAGES, phases, len(groups), options)
    if state:  # only after all WARC files are complete: an aborted crawl must not count as fetched
        files.copy(files.list_files("*.json.gz", f"{job.workspace}/_state"), state)


def read_seeds(path: str) -> list[str]:
    """Returns the different seed URLs of a text file, one per line; blank lines and comments (#) are skipped.

    Raises:
      InputError: if a line is not an absolute http(s) URL, the file is not UTF-8 text, or it has no URL.
    """
    remedy = "write feeds, sitemaps, section pages or articles, one URL per line; start comments with #"
    with files.open_read(path) as source, reading(path, remedy):
        lines = source.read().decode("utf-8-sig").splitlines()
    seeds = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            if not canonical_url(text):
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
                problem = f"got {shown!r}, expected an absolute http(s) URL"
                raise InputError(problem, path=f"{path}:{number}", remedy=remedy)
            seeds.append(text)
    if not seeds:
        raise InputError("contains no URL", path=path, field="--seeds", remedy=remedy)
    return list(dict.fromkeys(seeds))


def group_by_site(visits: Iterable[Visit]) -> list[Site]:
    """Returns (registered domain, its visits in order) for each site, sorted by domain."""
    sites: dict[str, list[Visit]] = {}
    for visit in visits:
        sites.setdefault(registered_domain(visit.url), []).append(visit)
    return sorted(sites.items())


def _crawl_listed(job: JobRun, name: str, sources: Sequence[str], shard_count: int, options: CrawlOptions) -> None:
    """Crawls the URLs that earlier phases listed for this one, grouped by registered domain.

    Raises:
      RuntimeError: if the number of URLs read differs from the number listed.
    """
    phase = job.phase(name, shard_count, beside=True)
    parts = [f"part-{index:05d}-of-{shard_count:05d}.parquet" for index in range(shard_count)]
    paths = [f"{job.workspace}/_listed/{source}/{part}" for source in sources for part in parts]
    crawl = process_shards(partial(_crawl_urls, options=options, phase=name), phase)
    with job.graph(shard_count) as graph:
        listed_for = beam.FlatMap(_listed_for, name, shard_count)
        graph.add(phase, lambda: graph.start(name, paths) | listed_for | group_by_shard(shard_count) | crawl)
    listed = sum(job.counts_of(source).tallies.get(f"listed_{name}", 0) for source in sources)
    counts = job.counts_of(name)
    if counts.read + counts.tallies.get("listed_again", 0) != listed:
        what = f"{listed} URLs were listed for {name}, {counts.read} of them were read: {counts.to_json()}"
        raise RuntimeError(f"crawl: {what}")


def _listed_for(path: str, phase: str, shard_count: int) -> Iterator[tuple[int, tuple[str, int, str]]]:
    for visit in parquet.read_records(path, Visit):
        if _phase_of(visit.kind) == phase:
            site = registered_domain(visit.url)
            yield shard_of(make_doc_id(site), shard_count), (visit.url, visit.depth, visit.kind)


def _phase_of(kind: str) -> str:
    return _IMAGES if kind == "image" else _ENTRIES


def _crawl_urls(shard: Shard, rows: Sequence[tuple[str, int, str]], options: CrawlOptions, phase: str) -> None:
    _crawl_sites(shard, group_by_site(Visit(*row) for row in rows), options, phase)


def _crawl_sites(shard: Shard, sites: Sequence[Site], options: CrawlOptions, phase: str) -> None:
    listed = shard.records(f"_listed/{phase}", Visit)
    with ThreadPoolExecutor(max_workers=options.concurrent_sites) as pool:
        for report in pool.map(lambda site: _crawl_site(shard.workspace, site, options, phase), sites):
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
            for visit in report.listed:
                listed.write(visit)
                shard.tally(f"listed_{_phase_of(visit.kind)}")


def _crawl_site(workspace: str, site: Site, options: CrawlOptions, phase: str) -> SiteReport:
    """Crawls one site into one WARC file, which is moved to its final name when it is complete.

    The report is written last. A shard that is repeated, after a lost or killed worker, finds the report and sends no
    request to the site.
    """
    name, starts = site
    report_path = _report_path(workspace, phase, name)
    done = read_report(report_path)
    if done is not None:
        return done
    file_name = quote(name, safe="") + ("" if phase == _SEEDS else f".{phase}")
    state_name = f"{file_name}.json.gz"
    known = read_state(f"{options.state.rstrip('/')}/{state_name}") if options.state else {}
    # A site with a seed may have been crawled by the first phase.
    earlier = read_report(_report_path(workspace, _SEEDS, name)) if phase == _ENTRIES else None
    already = frozenset(canonical_url(outcome.url) for outcome in (earlier.outcomes if earlier else ()))
    crawler = SiteCrawler(list(starts), options, shared_limiter(options.max_concurrent_requests), known, already)
    path = f"{workspace}/warc/{file_name}.warc.gz"
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"  # unique to this attempt
    info = {"robots": "obey", "http-header-user-agent": options.user_agent}
    outcomes = []
    with files.open_write(temporary) as sink:
        writer = WarcWriter(sink, f"newsembed/{__version__}", info)
        for outcome, fetched in crawler.walk():
            outcomes.append(outcome)
            for hop in crawler.redirects:
                writer.write(hop)
            crawler.redirects.clear()
            if fetched is not None:
                writer.write(fetched)
    files.write_whole(f"{workspace}/warc/{file_name}.cdxj", writer.index(f"{file_name}.warc.gz"))
    files.move(temporary, path)
    if options.state:
        today = datetime.datetime.now(datetime.UTC).date()
        write_state(f"{workspace}/_state/{state_name}", crawler.known, today)
    tallies = {tally: count for tally, count in crawler.tallies.items() if count}
    report = SiteReport(tuple(outcomes), tuple(crawler.listed.values()), tallies)
    files.write_json(report_path, dataclasses.asdict(report))  # the site's WARC is complete: a repeated shard skips it
    return report


def _report_path(workspace: str, phase: str, name: str) -> str:
    return f"{workspace}/_sites/{phase}/{quote(name, safe='')}.json"


JOB = Job(
    name="crawl",
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
