"""Pauses between requests to a host, concurrent requests, retries, hosts that are given up, and robots.txt."""

import collections
import random
import threading
import time

import pytest
from newsembed.beam_pipelines.crawl.fetch import Fetched, FetchError
from newsembed.beam_pipelines.crawl.options import CrawlOptions
from newsembed.beam_pipelines.crawl.politeness import RateLimiter, RetryPolicy, Robots, host_of, shared_limiter
from newsembed.formats.records import Failure, Rejection

HOST = "a.example"
URL = "http://a.example/"


def test_requests_to_a_host_are_a_pause_apart(clock):
    limiter, starts = RateLimiter(9), []
    for host in (HOST, HOST, "b.example", HOST):
        with limiter.request(host, 2.0):
            starts.append(clock.now - 1000.0)
    assert starts == [0, 2, 2, 4], "the other host does not wait"


class Slots:
    """Stands for the semaphore: something happens while the first request waits for its slot."""

    def __init__(self, event):
        self.events = [event]

    def __enter__(self):
        if self.events:
            self.events.pop()()

    def __exit__(self, *_):
        pass


def test_a_pause_is_measured_from_the_request_and_not_from_the_wait_for_a_slot(clock):
    limiter = RateLimiter(1)
    limiter._slots = Slots(lambda: clock.sleep(5.0))
    for now in (1005.0, 1007.0):
        with limiter.request(HOST, 2.0):
            assert clock.now == now


def test_a_pause_that_is_set_while_a_request_waits_for_a_slot_counts(clock):
    limiter = RateLimiter(1)
    limiter._slots = Slots(lambda: limiter.pause(HOST, 60.0))
    with limiter.request(HOST, 1.0):
        assert clock.now == 1060.0


def in_threads(ask, *arguments):
    threads = [threading.Thread(target=ask, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_requests_from_several_threads_take_turns(clock):
    limiter = RateLimiter(9)

    def ask(host):
        with limiter.request(host, 1.0):
            pass

    in_threads(ask, *[HOST] * 4)
    assert clock.now >= 1003.0


def test_no_more_than_the_cap_are_under_way_also_after_an_error():
    limiter, lock, now, most = RateLimiter(2), threading.Lock(), 0, 0
    for _ in range(3):
        with pytest.raises(KeyError), limiter.request(HOST, 0.0):
            raise KeyError

    def ask(host):
        nonlocal now, most
        with limiter.request(host, 0.0):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1

    in_threads(ask, *(f"h{number}.example" for number in range(8)))
    assert most == 2


def test_a_paused_host_waits_for_the_longest_pause(clock):
    limiter = RateLimiter(1)
    limiter.pause(HOST, 60.0)
    limiter.pause(HOST, 1.0)
    for host, now in (("idle.example", 1000.0), (HOST, 1060.0)):
        with limiter.request(host, 0.0):
            assert clock.now == now


def test_all_sites_of_a_process_share_a_limiter():
    assert isinstance(shared_limiter(3), RateLimiter)
    assert shared_limiter(3) is shared_limiter(3) is not shared_limiter(4)


def test_hosts_are_in_lower_case_with_their_port_and_without_a_user():
    assert host_of("http://me:secret@A.Example:81/x") == "a.example:81"
    assert host_of("mailto:a@b.example") == host_of("http://[x") == ""


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


@pytest.mark.parametrize("end", [None, "success", "permanent failure"])
def test_a_host_is_given_up_at_the_tenth_failure_in_a_row(end):
    retries, _ = policy()
    for _ in range(9):
        retries.record_failure(error(), HOST)
    if end == "success":
        retries.record_success(HOST)
    elif end:
        retries.record_failure(error(retry=False, status=404), HOST)
    for _ in range(9 if end else 0):
        retries.record_failure(error(), HOST)
    assert not is_down(retries)
    retries.record_failure(error(), HOST)
    assert is_down(retries)
    retries.check("other.example")


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_pause_doubles_with_each_attempt_and_half_of_it_is_random(monkeypatch, share):
    def draw(low, high):
        assert (low, high) == (0.5, 1.0)
        return share

    monkeypatch.setattr(random, "uniform", draw)
    retries, _ = policy(max_attempts=9, backoff_seconds=3.0, max_wait_seconds=20.0)
    pauses = [retries.delay_before_retry(error(retry_after=2.0), HOST, attempt) for attempt in (1, 2, 3, 4)]
    assert pauses == [max(2.0, 3.0 * share), 6.0 * share, 12.0 * share, 20.0 * share], "at least the server's wish"


def test_a_url_has_as_many_attempts_as_the_options_say():
    retries, tallies = policy(max_attempts=3)
    delays = [retries.delay_before_retry(error(), HOST, attempt) for attempt in (1, 2, 3)]
    assert [delay is None for delay in delays] == [False, False, True]
    assert retries.delay_before_retry(error(retry=False), HOST, 1) is None
    assert tallies == {"retries": 2}


def test_a_host_that_asks_for_a_longer_pause_than_the_limit_is_given_up():
    retries, tallies = policy(backoff_seconds=1.0)
    assert retries.delay_before_retry(error(retry_after=60.0), HOST, 1) == 60.0
    assert not is_down(retries)
    assert retries.delay_before_retry(error(retry_after=60.1), HOST, 1) is None
    with pytest.raises(FetchError, match="asks with 503 to wait 60 s, more than --max_wait_seconds=60"):
        retries.check(HOST)
    assert tallies == {"retries": 1}


OWN = "User-agent: newsembed"
RULES = (
    f"User-agent: *\nCrawl-delay: 9\nDisallow: /\n\n{OWN}\nCrawl-delay: 2.5\nDisallow: /no\nSitemap: /s.xml\n".encode()
)


def robots(body, **changes):
    """The rules of hosts whose robots.txt are these bytes, or that answer with this error."""

    def fetch(url):
        if isinstance(body, FetchError):
            raise body
        return Fetched(url, 200, "OK", (), body)

    return Robots(fetch, CrawlOptions(**{"delay_seconds": 0.0, **changes}))


def allowed(rules, *paths):
    agent = rules._options.user_agent
    return [rules.of(URL).can_fetch(f"{URL}{path}", agent) for path in paths]


def test_rules_are_those_of_the_named_agent():
    rules = robots(RULES)
    assert (rules.delay_for(f"{URL}yes"), list(rules.of(URL).sitemaps)) == (2.5, ["/s.xml"])
    with pytest.raises(FetchError, match=f"robots_disallowed: robots.txt disallows {URL}no/1"):
        rules.delay_for(f"{URL}no/1")
    assert allowed(robots(RULES, user_agent="otherbot"), "yes") == [False]


@pytest.mark.parametrize(
    ("body", "is_allowed"),
    [
        (b"User-agent: NewsEmbed/2.0 (all)\nDisallow: /no", False),
        (b"User-agent: news\nDisallow: /no", True),
        (b"User-agent: newsembed-images\nDisallow: /no", True),
        (b"User-agent: x\rUser-agent: newsembed\r\rDisallow: /no", False),
        (f"{OWN}\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n{OWN}\nDisallow: /no".encode(), False),
        (f"User-agent: *\nDisallow: /no\n{OWN}\nDisallow:".encode(), True),
    ],
)
def test_a_group_is_that_of_the_product_whatever_its_version(body, is_allowed):
    """RFC 9309, 2.2.1."""
    assert allowed(robots(body), "no") == [is_allowed]


@pytest.mark.parametrize(("delay", "seconds"), [("0", 0.0), ("-1", 0.0), ("nan", 0.0), ("soon", 0.0), ("0.5", 0.5)])
def test_only_positive_crawl_delays_count(delay, seconds):
    assert robots(f"User-agent: *\nCrawl-delay: {delay}\n".encode()).delay_for(URL) == seconds


@pytest.mark.parametrize(("delay", "expected"), [(2.0, 60.0), (70.0, 70.0)])
def test_the_longer_of_two_delays_is_kept_up_to_the_limit_for_robots(delay, expected):
    options = {"delay_seconds": delay, "max_wait_seconds": 60.0}
    assert robots(b"User-agent: *\nCrawl-delay: 60\n", **options).delay_for(URL) == expected
    with pytest.raises(FetchError, match="host_down: robots.txt asks for 60.1 s"):
        robots(b"User-agent: *\nCrawl-delay: 60.1\n", **options).delay_for(URL)


def test_the_last_of_512_kib_counts_and_what_follows_does_not():
    rules = b"User-agent: *\nDisallow: /noo"
    for size in (512 * 1024, 512 * 1024 + 1):  # of the second one "/noo" is cut to "/no"
        found = robots(b"#" * (size - len(rules) - 1) + b"\n" + rules)
        assert allowed(found, "noa", "noo") == [size == 512 * 1024, False]


def test_a_byte_order_mark_and_bytes_that_are_no_utf_8_hide_no_rule():
    rules = robots(b"\xef\xbb\xbfUser-agent: *\nDisallow: /no\n# \xff\nDisallow: /nor")
    assert allowed(rules, "no", "nor", "yes") == [False, False, True]


@pytest.mark.parametrize(
    ("status", "is_allowed"),
    [(400, True), (404, True), (499, True), (302, True), (429, False), (500, False), (503, False), (0, False)],
)
def test_a_host_without_rules_allows_everything_and_one_without_an_answer_nothing(status, is_allowed):
    rules = robots(error(status=status))
    if is_allowed:
        assert rules.delay_for(URL) == 0.0
    else:
        with pytest.raises(FetchError, match="robots_unavailable"):
            rules.of(URL)


def test_robots_of_a_host_are_fetched_once_for_each_scheme_and_port():
    fetched = []
    known = Robots(lambda url: fetched.append(url) or Fetched(url, 200, "OK", (), b""), CrawlOptions())
    for url in ("http://a.example/1", "http://a.example/2", "https://a.example/1", "http://a.example:81/1"):
        known.of(url)
    places = ("http://a.example", "https://a.example", "http://a.example:81")
    assert fetched == [f"{place}/robots.txt" for place in places]


def test_a_private_address_keeps_its_own_rejection():
    with pytest.raises(FetchError, match="private_address"):
        robots(FetchError(Rejection.PRIVATE_ADDRESS, "10.0.0.1")).of(URL)
