"""``newsembed crawl``: feeds, hubs and pages of sites to WARC, politely."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

from ... import __version__
from ...tasks.errors import InputError
from .. import files
from ..extract.urls import canonical_url, registered_domain
from ..jobs import InputSpec, Job, JobRun
from ..records import Rejection
from ..shards import Shard
from .options import CrawlOptions
from .site import Outcome, SiteCrawler
from .warc import WarcWriter


def run(job: JobRun) -> None:
    """Groups seeds by site, gives each worker some sites, and each site a WARC file of its own.

    A record is a URL that was scheduled: a seed, or a link on a fetched page of the same registered domain within the
    depth, or a thumbnail. It is written if its response was stored.
    """
    options: CrawlOptions = job.options
    sites = group_by_site(read_seeds(job.input("seeds")))
    groups = [sites[start : start + options.concurrent_sites] for start in range(0, len(sites), options.concurrent_sites)]
    if len(sites) < 2 * options.concurrent_sites:  # few sites: still let every core have some
        half = max(1, len(sites) // 2)
        groups = [group for group in (sites[:half], sites[half:]) if group]
    job.map_shards("fetch", partial(_crawl_sites, options=options), groups)


def read_seeds(path: str) -> list[str]:
    """Seed URLs of a text file, one a line; blank lines and lines that start with # are skipped.

    Raises:
      InputError: on a line that is no absolute http(s) URL, or a file without any.
    """
    with files.open_read(path) as source:
        lines = source.read().decode("utf-8").splitlines()
    seeds = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            if not canonical_url(text):
                raise InputError(
                    f"got {text!r}, expected an absolute http(s) URL",
                    path=f"{path}:{number}",
                    remedy="write one URL a line, # before comments",
                )
            seeds.append(text)
    if not seeds:
        raise InputError("holds no URL", path=path, field="--seeds", remedy="write feeds, section pages or articles, one URL a line")
    return seeds


def group_by_site(seeds: Iterable[str]) -> list[tuple[str, list[str]]]:
    """(registered domain, its seeds in order), sorted by domain."""
    sites: dict[str, list[str]] = {}
    for seed in dict.fromkeys(seeds):
        sites.setdefault(registered_domain(seed) or (urlsplit(seed).hostname or ""), []).append(seed)
    return sorted(sites.items())


def _crawl_sites(shard: Shard, sites: list[tuple[str, list[str]]], options: CrawlOptions) -> None:
    with ThreadPoolExecutor(max_workers=len(sites)) as pool:
        crawled = list(pool.map(lambda site: _crawl_site(f"{shard.workspace}/warc/{site[0]}.warc.gz", site[1], options), sites))
    for outcomes in crawled:
        for outcome in outcomes:
            shard.read()
            if outcome.reason is None:
                shard.written()
                shard.tally(f"{outcome.kind}s")
            elif isinstance(outcome.reason, Rejection):
                shard.reject(outcome.url, outcome.reason, outcome.detail)
            else:
                shard.fail(outcome.url, outcome.reason, outcome.detail)


def _crawl_site(path: str, seeds: list[str], options: CrawlOptions) -> list[Outcome]:
    """Crawls one site into one WARC file, moved in when it is complete: a site is fetched again whole or not at all."""
    outcomes = []
    with files.open_write(f"{path}.tmp") as sink:
        writer = WarcWriter(sink, f"newsembed/{__version__}")
        for outcome, fetched in SiteCrawler(seeds, options).walk():
            outcomes.append(outcome)
            if fetched is not None:
                writer.write(fetched)
    files.move(f"{path}.tmp", path)
    return outcomes


JOB = Job(
    name="crawl",
    summary="feeds, hubs and pages of sites to WARC, politely",
    example="newsembed crawl --seeds seeds.txt --output crawl --max_depth=2 --delay_seconds=1",
    inputs=(InputSpec("seeds", "text file of URLs, one a line: feeds, section pages, articles"),),
    options=CrawlOptions,
    run=run,
)
