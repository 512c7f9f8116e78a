"""``newsembed crawl``: feeds, sitemaps, hubs and pages of sites to WARC, politely."""

from .job import JOB
from .options import CrawlOptions, Scope, Sitemaps
from .seeds import group_by_site, read_seeds

__all__ = ["JOB", "CrawlOptions", "Scope", "Sitemaps", "group_by_site", "read_seeds"]
