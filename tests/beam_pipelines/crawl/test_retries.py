"""Servers that are busy, broken or gone: retried within limits, then reported; every URL is accounted for."""

import socket
import time

from crawling import all_letters, crawl, letters, page, stored

HOME = "http://www.a.example"
BUSY = {"body": "busy", "status": 503}


def test_transient_failures_are_retried(tmp_path, web):
    web.add(f"{HOME}/", page("/busy", "/cut", "/gone"))
    web.add(f"{HOME}/busy", **BUSY)
    web.then(f"{HOME}/busy", "many", status=429)
    web.then(f"{HOME}/busy", page(text="at last"))
    web.add(
        f"{HOME}/cut",
        lambda out: out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf"),
    )
    web.then(f"{HOME}/cut", page(text="whole"))
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=3)
    assert set(stored(tmp_path)) == {f"{HOME}/", f"{HOME}/busy", f"{HOME}/cut"}
    assert counts["tallies"] == {"pages": 3, "retries": 2}, (
        "the cut answer came over a kept connection, which is tried afresh at once"
    )
    assert letters(tmp_path) == {f"{HOME}/gone": "http_error"}
    assert [web.count(f"{HOME}/{name}") for name in ("busy", "cut", "gone")] == [3, 2, 1], "a 404 is asked for once"


def test_attempts_are_bounded_and_the_url_is_named(tmp_path, web):
    web.add(f"{HOME}/", page("/busy"))
    web.add(f"{HOME}/busy", **BUSY)
    crawl(tmp_path, web, f"{HOME}/", max_attempts=3)
    (letter,) = all_letters(tmp_path)
    assert (letter.key, letter.reason, letter.detail) == (
        f"{HOME}/busy",
        "http_error",
        "503 Service Unavailable (3 attempts)",
    )
    assert web.count(f"{HOME}/busy") == 3


def test_retry_after_is_obeyed(tmp_path, web, clock):
    web.add(f"{HOME}/", page("/busy", "/next"))
    web.add(f"{HOME}/busy", **BUSY, Retry_After="50")
    web.then(f"{HOME}/busy", page())
    web.add(f"{HOME}/next", page())
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=2)
    assert 1050.0 <= clock.now < 1051.0
    assert counts["out"] == 3
    busy = web.requests.index(f"{HOME}/busy")
    assert web.requests[busy + 1 :].count(f"{HOME}/next") == 1, "the whole host is left alone meanwhile, then goes on"


def test_a_host_that_asks_for_a_longer_pause_than_the_limit_is_given_up(tmp_path, web):
    web.add(f"{HOME}/", page("/busy", *(f"/{number}" for number in range(5))))
    web.add(f"{HOME}/busy", **BUSY, Retry_After="3600")
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=5, max_wait_seconds=60.0)
    assert counts["failed"] == {"http_error": 1, "host_down": 5}
    assert web.requests[-1] == f"{HOME}/busy"
    (down, *_) = [letter for letter in all_letters(tmp_path) if letter.reason == "host_down"]
    assert down.detail == "asks with 503 to wait 3600 s, more than --max_wait_seconds=60"


def test_a_host_with_many_consecutive_failures_is_given_up(tmp_path, web):
    web.add(f"{HOME}/", page(*(f"/{number}" for number in range(30))))
    for number in range(30):
        web.add(f"{HOME}/{number}", "broken", status=500)
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=2)
    assert counts["in"] == 31
    assert counts["out"] == 1
    assert sum(counts["failed"].values()) == 30
    assert counts["failed"]["host_down"] >= 20
    assert len(web.requests) <= 2 + 10


def test_a_host_without_robots_allows_everything_and_one_without_an_answer_nothing(tmp_path, web):
    statuses = (404, 403, 410, 500, 503, 429)
    for status in statuses:
        web.add(f"http://h{status}.example/robots.txt", "x", "text/plain", status=status)
        web.add(f"http://h{status}.example/", page())
    counts = crawl(tmp_path, web, *(f"http://h{status}.example/" for status in statuses), max_attempts=3)
    assert {url[8:11] for url in stored(tmp_path)} == {"404", "403", "410"}
    assert counts["failed"] == {"robots_unavailable": 3}
    assert [web.count(f"http://h{status}.example/robots.txt") for status in statuses] == [1, 1, 1, 3, 3, 3]
    for letter in all_letters(tmp_path):
        assert letter.key[8:11] in letter.detail
        assert web.count(letter.key) == 0


def test_robots_fetched_at_the_second_attempt_are_obeyed(tmp_path, web):
    web.add(f"{HOME}/robots.txt", **BUSY)
    web.then(f"{HOME}/robots.txt", "User-agent: *\nDisallow: /1\n", "text/plain")
    web.add(f"{HOME}/", page("/1"))
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=2)
    assert (counts["out"], counts["rejected"]) == (1, {"robots_disallowed": 1})


def test_robots_are_read_whatever_their_type_and_by_our_name(tmp_path, web):
    web.add(
        f"{HOME}/robots.txt",
        "\ufeffUser-agent: newsembed\nDisallow: /1\n\nUser-agent: *\nDisallow: /\n",
        "application/octet-stream",
    )
    web.add(f"{HOME}/", page("/1"))
    counts = crawl(tmp_path, web, f"{HOME}/")
    assert (counts["out"], counts["rejected"]) == (1, {"robots_disallowed": 1})


def test_unreachable_hosts_are_reported(tmp_path, web, monkeypatch):
    counts = crawl(tmp_path, web, "http://a.example/", resolve=("a.example=127.0.0.1:1",), max_attempts=2)
    assert counts["failed"] == {"robots_unavailable": 1}

    def unknown(*_args, **_kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    counts = crawl(tmp_path, web, "http://no-such-host.invalid/", out="unknown")
    assert counts["failed"] == {"robots_unavailable": 1}
    assert "gaierror" in all_letters(tmp_path, "unknown")[0].detail


def test_the_cap_holds_over_all_sites(tmp_path, web):
    slow = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    hosts = [f"http://h{number}.example/" for number in range(6)]
    for host in hosts:
        web.add(host, lambda out: (time.sleep(0.05), out.write(slow)))
    counts = crawl(tmp_path, web, *hosts, max_concurrent_requests=2, concurrent_sites=3)
    assert counts["out"] == 6
    assert web.most_under_way <= 2


def test_a_redirect_to_a_stored_page_makes_no_second_record(tmp_path, web):
    web.add(f"{HOME}/", page("/1", "/alias", "/2"))
    web.add(f"{HOME}/1", page())
    web.add(f"{HOME}/alias", "", status=301, Location="/1")
    web.add(f"{HOME}/2", page())
    counts = crawl(tmp_path, web, f"{HOME}/")
    assert (counts["out"], counts["rejected"]) == (3, {"duplicate_url": 1})
    assert len(stored(tmp_path)) == 3


def test_a_host_with_a_crawl_delay_beyond_the_limit_is_not_crawled(tmp_path, web):
    delays = {"long": "86400", "infinite": "inf", "none": "nan", "negative": "-1"}
    for name, delay in delays.items():
        web.add(f"http://{name}.example/robots.txt", f"User-agent: *\nCrawl-delay: {delay}\n", "text/plain")
        web.add(f"http://{name}.example/", page())
    crawl(tmp_path, web, *(f"http://{name}.example/" for name in delays))
    assert letters(tmp_path) == {"http://long.example/": "host_down"}
