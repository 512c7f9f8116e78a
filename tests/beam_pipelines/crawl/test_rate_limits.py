"""Pauses between requests to a host, concurrent requests of a process, and pauses between attempts."""

import random
import threading
import time

import pytest
from newsembed.beam_pipelines.crawl import rate_limits
from newsembed.beam_pipelines.crawl.rate_limits import RateLimiter, backoff, host_of, shared_limiter


def test_requests_to_a_host_are_a_pause_apart(clock):
    limiter, starts = RateLimiter(9), []
    for host in ("a.example", "a.example", "b.example", "a.example"):
        with limiter.request(host, 2.0):
            starts.append(clock.now - 1000.0)
    assert starts == [0, 2, 2, 4], "the other host does not wait"


def test_a_pause_is_measured_from_the_request_and_not_from_the_wait_for_a_slot(clock):
    limiter = RateLimiter(1)
    held, waited = threading.Event(), threading.Event()
    wait_turn = limiter._wait_turn
    limiter._wait_turn = lambda host: (wait_turn(host), held.is_set() and waited.set())

    def hold():
        with limiter.request("slow.example", 0.0):
            held.set()
            waited.wait()  # until the other request is due and waits for the slot
            clock.sleep(5.0)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with limiter.request("a.example", 2.0):
        assert clock.now == 1005.0
    thread.join()
    with limiter.request("a.example", 2.0):
        assert clock.now == 1007.0


def test_requests_that_waited_for_a_slot_together_are_a_pause_apart():
    limiter, starts = RateLimiter(1), []

    def ask():
        with limiter.request("a.example", 0.3):
            starts.append(time.monotonic())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    with limiter.request("slow.example", 0.0):
        for thread in threads:
            thread.start()
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    assert min(later - earlier for earlier, later in zip(starts, starts[1:], strict=False)) >= 0.3


def test_a_pause_that_is_set_while_a_request_waits_for_a_slot_counts(clock):
    limiter = RateLimiter(1)
    wait_turn, calls = limiter._wait_turn, []

    def waiting(host):
        wait_turn(host)
        if not calls:
            limiter.pause(host, 60.0)
        calls.append(host)

    limiter._wait_turn = waiting
    with limiter.request("a.example", 1.0):
        assert clock.now == 1060.0
    assert len(calls) == 2


def test_requests_from_several_threads_take_turns(clock):
    limiter = RateLimiter(9)

    def ask():
        with limiter.request("a.example", 1.0):
            pass

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now >= 1003.0


def test_no_more_than_the_cap_are_under_way():
    limiter, lock, now, most = RateLimiter(2), threading.Lock(), 0, 0

    def ask(host):
        nonlocal now, most
        with limiter.request(host, 0.0):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1

    threads = [threading.Thread(target=ask, args=(f"h{number}.example",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


def test_a_paused_host_waits(clock):
    limiter = RateLimiter(1)
    limiter.pause("busy.example", 60.0)
    with limiter.request("idle.example", 0.0):
        assert clock.now == 1000.0
    with limiter.request("busy.example", 0.0):
        assert clock.now == 1060.0


def test_a_slot_is_released_after_an_error():
    limiter = RateLimiter(1)
    for _ in range(2):
        with pytest.raises(KeyError), limiter.request("a.example", 0.0):
            raise KeyError


def test_all_sites_of_a_process_share_a_gate():
    assert isinstance(shared_limiter(3), RateLimiter)
    assert shared_limiter(3) is shared_limiter(3) is not shared_limiter(4)


def test_pauses_double_with_jitter_up_to_a_bound():
    random.seed(1)
    for attempt, whole in [(1, 2.0), (2, 4.0), (3, 8.0), (9, 30.0)]:
        drawn = {backoff(attempt, 2.0, 30.0) for _ in range(20)}
        assert len(drawn) > 1
        assert whole / 2 <= min(drawn) <= max(drawn) <= whole
    assert backoff(1, 2.0, 30.0, 25.0) == 25.0, "the server's wish"
    assert backoff(1, 2.0, 30.0, 0.5) >= 1.0, "a shorter wish does not shorten the pause"


def test_the_first_pause_is_between_half_and_all_of_the_base(monkeypatch):
    for share in (0.5, 1.0):
        monkeypatch.setattr(rate_limits.random, "uniform", lambda _low, _high, share=share: share)
        assert [backoff(attempt, 2.0, 30.0) for attempt in (1, 2, 3, 5)] == [
            2.0 * share,
            4.0 * share,
            8.0 * share,
            30.0 * share,
        ]
        assert backoff(1, 2.0, 30.0, 1.5) == max(2.0 * share, 1.5)


def test_a_shorter_pause_does_not_end_a_longer_one(monkeypatch):
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: 100.0)
    limiter = RateLimiter(1)
    limiter.pause("a.example", 60.0)
    limiter.pause("a.example", 1.0)
    assert limiter._next == {"a.example": 160.0}


def test_hosts_are_in_lower_case_with_their_port_and_without_a_user():
    assert host_of("http://me:secret@A.Example:81/x") == "a.example:81"
    assert host_of("mailto:a@b.example") == ""
    assert host_of("http://[x") == ""
