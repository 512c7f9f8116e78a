"""The walk over one site, with a fetcher that answers from a dictionary: no server, no waiting."""

import contextlib
import datetime

import pytest
from crawling import feed
from newsembed.beam_pipelines.crawl import site
from newsembed.beam_pipelines.crawl.fetch import Fetched, FetchError
from newsembed.beam_pipelines.crawl.options import CrawlOptions, Scope
from newsembed.beam_pipelines.crawl.politeness import RateLimiter
from newsembed.beam_pipelines.crawl.site import Frontier, SiteCrawler
from newsembed.beam_pipelines.crawl.state import UrlRecord, Visit
from newsembed.formats.records import Failure, Rejection

HOME = "http://a.example"


def page(*links):
    return "".join(f'<a href="{link}">A link</a>' for link in links)


class Pauses(RateLimiter):
    """A rate limiter that notes pauses instead of waiting."""

    def __init__(self):
        super().__init__(1)
        self.requests = []
        self.pauses = []

    @contextlib.contextmanager
    def request(self, host, pause_seconds):
        self.requests.append((host, pause_seconds))
        yield

    def pause(self, host, seconds):
        self.pauses.append((host, seconds))


@pytest.fixture
def crawl(monkeypatch):
    """Crawls pages, given as {URL: body or error}, from seeds; returns outcomes, requests and the crawler."""

    def run(pages, *seeds, limiter=None, **changes):
        requests = []

        class Fetcher:
            def __init__(self, _options):
                pass

            def close(self):
                pass

            def fetch(self, url, around=contextlib.nullcontext, **_arguments):
                with around(url):
                    answer = pages.get(url, FetchError(Failure.HTTP_ERROR, "404 Not Found", status=404))
                    if isinstance(answer, list):
                        answer = answer.pop(0)
                    if not url.endswith("robots.txt"):
                        requests.append(url)
                    if isinstance(answer, FetchError):
                        raise answer
                    return Fetched(url, 200, "OK", (("Content-Type", "text/html"),), answer.encode())

        monkeypatch.setattr(site, "Fetcher", Fetcher)
        monkeypatch.setattr(site.time, "sleep", lambda _: None)
        options = CrawlOptions(**{"fetch_images": False, "delay_seconds": 0.0, "backoff_seconds": 0.0, **changes})
        crawler = SiteCrawler([Visit(seed) for seed in seeds], options, limiter or Pauses())
        outcomes = {outcome.url: outcome for outcome, _ in crawler.walk()}
        return outcomes, requests, crawler

    return run


CHAIN = {f"{HOME}/{number}": page(f"/{number + 1}") for number in range(9)}


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_links_are_followed_to_the_maximum_depth(crawl, depth):
    _, requests, _ = crawl(CHAIN, f"{HOME}/0", max_depth=depth)
    assert requests == [f"{HOME}/{number}" for number in range(depth + 1)]


def test_pages_are_fetched_up_to_the_limit(crawl):
    outcomes, requests, _ = crawl(CHAIN, f"{HOME}/0", max_depth=9, max_pages_per_site=3)
    assert len(requests) == 3
    assert [outcome.reason for outcome in outcomes.values()] == [None, None, None, Rejection.PAGE_LIMIT]


def test_links_of_a_page_are_followed_up_to_the_limit_and_the_rest_is_counted(crawl):
    pages = {f"{HOME}/": page("/0", *(f"/{number}" for number in range(5)))}
    _, requests, crawler = crawl(pages, f"{HOME}/", max_links_per_page=2)
    assert requests == [f"{HOME}/", f"{HOME}/0", f"{HOME}/1"]
    assert crawler.tallies["links_beyond_limit"] == 3
    _, requests, crawler = crawl(pages, f"{HOME}/")
    assert len(requests) == 6
    assert crawler.tallies["links_beyond_limit"] == 0


def test_a_busy_server_pauses_its_host_and_a_broken_page_does_not(crawl):
    for status, pauses in ((503, 1), (429, 1), (500, 0)):
        limiter = Pauses()
        busy = FetchError(Failure.HTTP_ERROR, "no", retry=True, status=status)
        outcomes, requests, crawler = crawl({f"{HOME}/0": [busy, "x"]}, f"{HOME}/0", limiter=limiter)
        assert requests == [f"{HOME}/0"] * 2
        assert (outcomes[f"{HOME}/0"].reason, crawler.tallies["retries"], len(limiter.pauses)) == (None, 1, pauses)


def test_entries_of_seed_feeds_on_other_domains_are_listed_one_step_only(crawl):
    pages = {f"{HOME}/rss": feed("http://b.example/1", f"{HOME}/rss2"), f"{HOME}/rss2": feed("http://c.example/2")}
    _, _, crawler = crawl(pages, f"{HOME}/rss", scope=Scope.FEEDS)
    assert [visit.url for visit in crawler.listed.values()] == ["http://b.example/1"]
    _, _, crawler = crawl(pages, f"{HOME}/rss")
    assert (crawler.listed, crawler.tallies["entries_elsewhere"]) == ({}, 2)


def test_links_to_files_and_long_urls_are_not_followed(crawl):
    long = "/" + "x" * 2_000
    _, requests, _ = crawl({f"{HOME}/": page("/a.pdf", long, "/b#part", "/b")}, f"{HOME}/")
    assert requests == [f"{HOME}/", f"{HOME}/b"]


def test_the_scope_may_be_the_host(crawl):
    links = ("http://blog.a.example/1", "http://www.a.example/2", "/3", "http://b.example/4")
    for scope, count in ((Scope.HOST, 3), (Scope.SITE, 4)):
        _, requests, _ = crawl({f"{HOME}/": page(*links)}, f"{HOME}/", scope=scope)
        assert len(requests) == count


def test_a_text_sitemap_may_be_a_seed(crawl):
    _, requests, _ = crawl({f"{HOME}/Sitemap.txt": f"{HOME}/1\n{HOME}/2\n"}, f"{HOME}/Sitemap.txt")
    assert requests == [f"{HOME}/Sitemap.txt", f"{HOME}/1", f"{HOME}/2"]


def known(day=1, kind="page"):
    return UrlRecord("", "", "", datetime.date(2024, 5, day), kind)


def test_pages_come_before_sitemaps_and_known_articles_last():
    """Breadth first; at each depth new pages and feeds first; known articles by the day of their last request."""
    added = [
        (Visit("map", 0, "sitemap"), None, False),
        (Visit("yesterday", 1), known(day=2), True),
        (Visit("deep", 2), None, True),
        (Visit("section", 1), known(), False),
        (Visit("long ago", 1), known(day=1), True),
        (Visit("new", 1), None, False),
        (Visit("feed", 1), known(kind="feed"), True),
        (Visit("seed"), None, False),
        (Visit("other map", 0, "sitemap"), None, False),
        (Visit("yesterday, too", 1), known(day=2), True),
    ]
    frontier = Frontier()
    for visit, record, last in added:
        frontier.add(visit, record, last=last)
    found = []
    while frontier:
        found.append(frontier.pop().url)
    assert found == [
        *("seed", "new", "feed", "section", "deep", "map", "other map"),
        *("long ago", "yesterday", "yesterday, too"),
    ]


def test_every_entry_of_a_feed_is_fetched_or_counted(crawl):
    queries = ("view.php?action=101", "view.php?action=102", "story?ref=201", "story?ref=202", "news?region=north")
    sessions = ("s;jsessionid=AB12", "s;jsessionid=CD34?PHPSESSID=0123456789abcdef", "s?utm_source=feed", "s?sid=1")
    wanted = [f"{HOME}/{name}" for name in (*queries, *sessions)]
    refused = [f"{HOME}/a.pdf", f"{HOME}/{'x' * 2_000}", "mailto:a@b.example", "http://b.example/1"]
    pages = {f"{HOME}/rss": feed(*wanted, *refused), **dict.fromkeys(wanted, "x")}
    _, requests, crawler = crawl(pages, f"{HOME}/rss")
    assert requests == [f"{HOME}/rss", *wanted[:6], f"{HOME}/s?sid=1"]
    assert (crawler.tallies["entries_no_page"], crawler.tallies["entries_elsewhere"]) == (3, 1)
