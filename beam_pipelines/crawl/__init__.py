"""``newsembed crawl``: fetches feeds, sitemaps, hubs and pages of sites, politely, and stores them as WARC."""

from .job import JOB
from .options import CrawlOptions, Scope, Sitemaps
from .seeds import group_by_site, read_seeds

__all__ = ["JOB", "CrawlOptions", "Scope", "Sitemaps", "group_by_site", "read_seeds"]
