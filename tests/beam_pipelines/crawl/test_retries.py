"""Servers that are busy or broken: retried within limits, then reported; every URL is accounted for."""

from crawling import crawl, cut_off, letters, page, stored
from newsembed.tests.example_inputs import dead_letters

HOME = "http://www.a.example"
BUSY = {"body": "busy", "status": 503}


def test_transient_failures_are_retried(tmp_path, web):
    web.add(f"{HOME}/", page("/busy", "/cut", "/gone"))
    web.add(f"{HOME}/busy", **BUSY)
    web.then(f"{HOME}/busy", "many", status=429)
    web.then(f"{HOME}/busy", page(text="at last"))
    web.add(f"{HOME}/cut", cut_off)
    web.then(f"{HOME}/cut", page(text="whole"))
    counts = crawl(tmp_path, web, f"{HOME}/", max_attempts=3)
    assert set(stored(tmp_path)) == {f"{HOME}/", f"{HOME}/busy", f"{HOME}/cut"}
    assert counts["tallies"] == {"pages": 3, "retries": 3}
    assert letters(tmp_path) == {f"{HOME}/gone": "http_error"}
    assert [web.count(f"{HOME}/{name}") for name in ("busy", "cut", "gone")] == [3, 2, 1], "a 404 is asked for once"


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


def test_a_host_without_an_answer_is_reported(tmp_path, web):
    counts = crawl(tmp_path, web, "http://a.example/", resolve=("a.example=127.0.0.1:1",), max_attempts=2)
    assert (counts["failed"], counts["tallies"]) == ({"robots_unavailable": 1}, {"retries": 1})
    (letter,) = dead_letters(tmp_path / "out")
    assert letter.detail.startswith("http://a.example/robots.txt: fetch_error: ClientConnectorError: ")


def test_the_rules_of_a_busy_host_are_asked_for_again(tmp_path, web):
    web.add(f"{HOME}/robots.txt", **BUSY)
    web.then(f"{HOME}/robots.txt", "", "text/plain")
    web.add(f"{HOME}/", page())
    assert crawl(tmp_path, web, f"{HOME}/", max_attempts=2)["out"] == 1
    assert web.count(f"{HOME}/robots.txt") == 2
