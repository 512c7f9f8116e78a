"""The walk over one site, with a fetcher that answers from a dictionary: no server, no waiting."""

import contextlib

import pytest
from newsembed.beam_pipelines.crawl import site
from newsembed.beam_pipelines.crawl.fetch import Fetched, FetchError
from newsembed.beam_pipelines.crawl.frontier import Visit
from newsembed.beam_pipelines.crawl.options import CrawlOptions, Scope, Sitemaps
from newsembed.beam_pipelines.crawl.rate_limits import RateLimiter
from newsembed.beam_pipelines.crawl.site import SiteCrawler
from newsembed.formats.records import Failure, Rejection

HOME = "http://a.example"


def page(*links):
    return "".join(f'<a href="{link}">A link</a>' for link in links)


def feed(*links):
    items = "".join(f"<item><title>T</title><link>{link}</link></item>" for link in links)
    return f"<rss><channel><title>F</title>{items}</channel></rss>"


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


def test_the_longer_of_two_delays_is_kept(crawl):
    robots = {f"{HOME}/robots.txt": "User-agent: *\nCrawl-delay: 5\n", f"{HOME}/0": "x"}
    for delay, expected in ((2.0, 5.0), (7.0, 7.0)):
        limiter = Pauses()
        crawl(robots, f"{HOME}/0", delay_seconds=delay, limiter=limiter)
        assert limiter.requests == [("a.example", delay), ("a.example", expected)]  # robots.txt, then the page


def test_a_busy_server_pauses_its_host_and_a_broken_page_does_not(crawl):
    for status, pauses in ((503, 1), (429, 1), (500, 0)):
        limiter = Pauses()
        busy = FetchError(Failure.HTTP_ERROR, "no", retry=True, status=status)
        outcomes, requests, crawler = crawl({f"{HOME}/0": [busy, "x"]}, f"{HOME}/0", limiter=limiter)
        assert requests == [f"{HOME}/0"] * 2
        assert (outcomes[f"{HOME}/0"].reason, crawler.tallies["retries"], len(limiter.pauses)) == (None, 1, pauses)


def test_entries_of_seed_feeds_on_other_domains_are_listed_one_step_only(crawl):
    pages = {
        f"{HOME}/rss": feed("http://b.example/1", f"{HOME}/rss2"),
        f"{HOME}/rss2": feed("http://c.example/2"),
    }
    _, _, crawler = crawl(pages, f"{HOME}/rss", scope=Scope.FEEDS)
    assert [visit.url for visit in crawler.listed.values()] == ["http://b.example/1"]
    _, _, crawler = crawl(pages, f"{HOME}/rss")
    assert (crawler.listed, crawler.tallies["entries_elsewhere"]) == ({}, 1)


def test_sitemaps_of_robots_txt_are_read_after_the_pages(crawl):
    pages = {
        f"{HOME}/robots.txt": f"User-agent: *\nSitemap: {HOME}/map.xml\n",
        f"{HOME}/": page("/1"),
        f"{HOME}/1": "x",
        f"{HOME}/map.xml": f"<urlset><url><loc>{HOME}/2</loc></url></urlset>",
        f"{HOME}/2": "x",
    }
    _, requests, _ = crawl(pages, f"{HOME}/", sitemaps=Sitemaps.AUTO)
    assert requests == [f"{HOME}/", f"{HOME}/1", f"{HOME}/map.xml", f"{HOME}/2"]


def test_links_to_files_and_long_urls_are_not_followed(crawl):
    long = "/" + "x" * 2_000
    _, requests, _ = crawl({f"{HOME}/": page("/a.pdf", long, "/b#part", "/b")}, f"{HOME}/")
    assert requests == [f"{HOME}/", f"{HOME}/b"]
