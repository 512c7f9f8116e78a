"""``newsembed crawl``: fetches feeds, sitemaps, hubs and pages of sites, politely, and stores them as WARC."""

from .job import JOB
from .options import CrawlOptions

__all__ = ["JOB", "CrawlOptions"]
