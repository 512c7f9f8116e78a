"""When a request is retried and when a host is given up, without a server."""

import collections

import pytest
from newsembed.beam_pipelines.crawl.fetch import Fetched, FetchError
from newsembed.beam_pipelines.crawl.options import CrawlOptions
from newsembed.beam_pipelines.crawl.retries import RetryPolicy
from newsembed.beam_pipelines.crawl.robots import Robots, parse_rules
from newsembed.formats.records import Failure, Rejection

HOST = "a.example"


def policy(**changes):
    tallies = collections.Counter()
    return RetryPolicy(CrawlOptions(**{"max_attempts": 3, "max_wait_seconds": 60.0, **changes}), tallies), tallies


def error(*, retry=True, status=503, retry_after=None):
    return FetchError(Failure.HTTP_ERROR, "busy", retry=retry, status=status, retry_after=retry_after)


def is_down(retries):
    try:
        retries.check(HOST)
    except FetchError as raised:
        return raised.reason is Failure.HOST_DOWN
    return False


def test_a_host_is_given_up_at_the_tenth_failure_in_a_row():
    retries, _ = policy()
    for _ in range(9):
        retries.record_failure(error(), HOST)
    assert not is_down(retries)
    retries.record_failure(error(), HOST)
    assert is_down(retries)
    retries.check("other.example")


@pytest.mark.parametrize("end", ["success", "permanent failure"])
def test_other_outcomes_end_a_row_of_failures(end):
    retries, _ = policy()
    for _ in range(9):
        retries.record_failure(error(), HOST)
    if end == "success":
        retries.record_success(HOST)
    else:
        retries.record_failure(error(retry=False, status=404), HOST)
    for _ in range(9):
        retries.record_failure(error(), HOST)
    assert not is_down(retries)
    retries.record_failure(error(), HOST)
    assert is_down(retries)


def test_the_pause_doubles_with_each_attempt(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    retries, _ = policy(max_attempts=9, backoff_seconds=3.0, max_wait_seconds=20.0)
    pauses = [retries.delay_before_retry(error(), HOST, attempt) for attempt in (1, 2, 3, 4)]
    assert pauses == [3.0, 6.0, 12.0, 20.0]


def test_a_url_has_as_many_attempts_as_the_options_say():
    retries, tallies = policy(max_attempts=3)
    delays = [retries.delay_before_retry(error(), HOST, attempt) for attempt in (1, 2, 3)]
    assert [delay is None for delay in delays] == [False, False, True]
    assert retries.delay_before_retry(error(retry=False), HOST, 1) is None
    assert tallies == {"retries": 2}


def test_a_host_that_asks_for_a_longer_pause_than_the_limit_is_given_up():
    retries, tallies = policy(max_wait_seconds=60.0, backoff_seconds=1.0)
    assert retries.delay_before_retry(error(retry_after=60.0), HOST, 1) == 60.0
    assert not is_down(retries)
    assert retries.delay_before_retry(error(retry_after=60.1), HOST, 1) is None
    assert is_down(retries)
    assert tallies == {"retries": 1}


def test_a_crawl_delay_equal_to_the_limit_is_accepted():
    retries, _ = policy(max_wait_seconds=60.0)
    retries.check_delay(60.0)
    with pytest.raises(FetchError, match="host_down"):
        retries.check_delay(60.1)


RULES = (
    b"User-agent: *\nCrawl-delay: 9\nDisallow: /\n\nUser-agent: newsembed\nCrawl-delay: "
    b"2.5\nDisallow: /no\nSitemap: /s.xml\n"
)


def test_rules_are_those_of_the_named_agent():
    rules = parse_rules(RULES, "newsembed/0.1")
    assert (rules.crawl_delay, rules.sitemaps) == (2.5, ("/s.xml",))
    assert rules.allow("http://a.example/yes")
    assert not rules.allow("http://a.example/no/1")
    other = parse_rules(RULES, "otherbot")
    assert other.crawl_delay == 9
    assert not other.allow("http://a.example/yes")


@pytest.mark.parametrize(("delay", "seconds"), [("0", 0.0), ("-1", 0.0), ("nan", 0.0), ("soon", 0.0), ("0.5", 0.5)])
def test_only_positive_crawl_delays_count(delay, seconds):
    assert parse_rules(f"User-agent: *\nCrawl-delay: {delay}\n".encode(), "newsembed").crawl_delay == seconds


def test_rules_after_512_kib_are_ignored():
    padding = b"# padding\n" * 60_000  # 600 kB
    assert not parse_rules(b"User-agent: *\nDisallow: /no\n" + padding, "newsembed").allow("http://a.example/no")
    assert parse_rules(padding + b"User-agent: *\nDisallow: /no\n", "newsembed").allow("http://a.example/no")
    within = b"# padding\n" * 51_000  # 498 KiB
    assert not parse_rules(within + b"User-agent: *\nDisallow: /no\n", "newsembed").allow("http://a.example/no")


def test_the_last_of_512_kib_counts_and_what_follows_does_not():
    rules = b"User-agent: *\nDisallow: /noo"
    for size in (512 * 1024, 512 * 1024 + 1):  # of the second one "/noo" is cut to "/no"
        body = b"#" * (size - len(rules) - 1) + b"\n" + rules
        assert len(body) == size
        found = parse_rules(body, "newsembed")
        assert found.allow("http://a.example/noa") is (size == 512 * 1024)
        assert not found.allow("http://a.example/noo")
        assert found.allow("http://a.example/yes")


def test_a_byte_order_mark_and_bytes_that_are_no_utf_8_hide_no_rule():
    rules = parse_rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /no\n# \xff\nDisallow: /nor", "newsembed")
    assert [rules.allow(f"http://a.example/{path}") for path in ("no", "nor", "yes")] == [False, False, True]
    assert not parse_rules(b"User-agent: *\nDisallow: /\xef\xbb\xbf", "newsembed").allow("http://a.example/\ufeff")


@pytest.mark.parametrize(
    ("status", "allowed"), [(400, True), (404, True), (499, True), (429, False), (500, False), (503, False), (0, False)]
)
def test_a_host_without_rules_allows_everything_and_one_without_an_answer_nothing(status, allowed):
    def fetch(_url):
        raise error(status=status)

    robots = Robots(fetch, "newsembed")
    if allowed:
        assert robots.of("http://a.example/1").allow("http://a.example/1")
    else:
        with pytest.raises(FetchError, match="robots_unavailable"):
            robots.of("http://a.example/1")


def test_robots_of_a_host_are_fetched_once_for_each_scheme_and_port():
    fetched = []

    def fetch(url):
        fetched.append(url)
        return Fetched(url, 200, "OK", (), b"")

    robots = Robots(fetch, "newsembed")
    for url in ("http://a.example/1", "http://a.example/2", "https://a.example/1", "http://a.example:81/1"):
        robots.of(url)
    assert fetched == [
        "http://a.example/robots.txt",
        "https://a.example/robots.txt",
        "http://a.example:81/robots.txt",
    ]


def test_a_private_address_keeps_its_own_rejection():
    def fetch(_url):
        raise FetchError(Rejection.PRIVATE_ADDRESS, "10.0.0.1")

    with pytest.raises(FetchError, match="private_address"):
        Robots(fetch, "newsembed").of("http://a.example/1")
