"""crawl: limits, politeness and address checks, against misbehaving servers on loopback."""

import collections
import contextlib
import time

import pytest
from crawling import crawl, letters, options, page, stored
from newsembed.beam_pipelines.crawl import CrawlOptions, group_by_site, read_seeds
from newsembed.beam_pipelines.crawl.fetch import Fetcher, FetchError
from newsembed.errors import InputError
from newsembed.formats.records import Failure, Rejection

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntwo "
    b"\r\n6\r\npieces\r\n0\r\n\r\n"
)
ROBOTS = "User-agent: *\nDisallow: /private/\n"


def test_a_site_is_walked_to_its_depth_and_stored(tmp_path, web):
    feed = (
        "<rss><channel><title>T</title><item><title>One</title><link>http://www.a.example/1</link></item>"
        "</channel></rss>"
    )
    web.add("http://www.a.example/robots.txt", ROBOTS, "text/plain")
    web.add("http://www.a.example/feed", feed, "application/rss+xml")
    web.add(
        "http://www.a.example/1",
        page("/2", "http://other.example/x", "mailto:a@b.c", "/paper.pdf", image="http://img.example/i.png"),
    )
    web.add("http://www.a.example/2", page("/3", image="http://img.example/i.png"))
    web.add("http://www.a.example/3", page())
    web.add("http://img.example/i.png", b"image", "image/png")
    counts = crawl(tmp_path, web, "http://www.a.example/feed", max_depth=2, fetch_images=True)
    assert counts["tallies"] == {"pages": 3, "images": 1, "listed_images": 1}
    assert counts["rejected"] == {} == counts["failed"]
    assert stored(tmp_path) == {
        f"http://{name}": web.answers[tuple(name.replace("/", " /", 1).split())][0][2]
        for name in ("www.a.example/feed", "www.a.example/1", "www.a.example/2", "img.example/i.png")
    }
    assert web.count("http://img.example/i.png") == 1, "a thumbnail is fetched once"
    assert not any("other.example" in url or "/3" in url or "pdf" in url for url in web.requests)


def test_robots_are_obeyed_also_after_a_redirect(tmp_path, web):
    web.add("http://a.example/robots.txt", ROBOTS, "text/plain")
    web.add("http://a.example/", page("/private/1", "/detour", "/fine"))
    web.add("http://a.example/detour", "", status=302, Location="/private/2")
    web.add("http://a.example/fine", page())
    for number in (1, 2):
        web.add(f"http://a.example/private/{number}", page())
    counts = crawl(tmp_path, web, "http://a.example/")
    assert counts["rejected"] == {"robots_disallowed": 2}
    assert counts["out"] == 2
    assert not any("/private/" in url for url in web.requests)


def test_private_addresses_are_refused_before_anything_is_sent(tmp_path, web):
    web.add("http://a.example/", page())
    counts = crawl(tmp_path, web, "http://a.example/", f"http://127.0.0.1:{web.port}/", allow_private_addresses=False)
    assert counts["rejected"] == {"private_address": 2}
    assert web.requests == []


def test_every_hop_is_vetted(web, monkeypatch):
    """The first host counts as public; its redirect leads to one that does not."""
    web.add("http://public.example/", "", status=301, Location="http://inside.example/secret")
    web.add("http://inside.example/secret", page())
    fetcher = Fetcher(options(web, allow_private_addresses=False))
    vetted = []

    def vet(peer):
        vetted.append(peer)
        if len(vetted) > 1:
            raise FetchError(Rejection.PRIVATE_ADDRESS, peer)

    monkeypatch.setattr(fetcher, "_vet", vet)
    with contextlib.closing(fetcher), pytest.raises(FetchError) as raised:
        fetcher.fetch("http://public.example/")
    assert raised.value.reason is Rejection.PRIVATE_ADDRESS
    assert web.requests == ["http://public.example/"]


def test_every_url_that_is_not_stored_has_a_reason(tmp_path, web):
    links = ("/gone", "/broken", "/film", "/loop", "/away", "/huge", "/cut")
    web.add("http://a.example/", page(*links, image="/no-image"))
    web.add("http://a.example/broken", "x", status=500)
    web.add("http://a.example/film", b"x", "video/mp4")
    web.add("http://a.example/loop", "", status=302, Location="/loop")
    web.add("http://a.example/away", "", status=302, Location="http://elsewhere.example/")
    web.add("http://a.example/huge", "x" * 5000)
    web.add(
        "http://a.example/cut",
        lambda out: out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf"),
    )
    web.add("http://a.example/no-image", page())
    counts = crawl(tmp_path, web, "http://a.example/", max_bytes=4000, fetch_images=True)
    assert counts["out"] == 1
    assert letters(tmp_path) == {
        "http://a.example/gone": "http_error",
        "http://a.example/broken": "http_error",
        "http://a.example/film": "unsupported_content_type",
        "http://a.example/loop": "fetch_error",
        "http://a.example/away": "out_of_scope",
        "http://a.example/huge": "too_large",
        "http://a.example/cut": "fetch_error",
        "http://a.example/no-image": "unsupported_content_type",
    }
    assert not any("elsewhere" in url for url in web.requests)


def drip(start, drop):
    def write(out):
        out.write(start)
        for _ in range(200):
            out.write(drop)
            out.flush()
            time.sleep(0.02)

    return write


@pytest.mark.parametrize(
    "body",
    [
        drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n", b"x"),
        drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
    ids=["header", "body", "chunk size"],
)
def test_a_server_that_sends_single_bytes_cannot_exceed_the_timeout(web, body):
    web.add("http://a.example/", body)
    fetcher = Fetcher(options(web, timeout_seconds=0.4))
    with contextlib.closing(fetcher), pytest.raises(FetchError) as raised:
        fetcher.fetch("http://a.example/")
    assert raised.value.reason is Failure.TIMEOUT


def test_a_connection_that_failed_is_not_used_again(web):
    web.add("http://a.example/huge", "x" * 500_000)
    web.add("http://a.example/fine", page(text="fine"))
    fetcher = Fetcher(options(web, max_bytes=1000))
    with contextlib.closing(fetcher):
        with pytest.raises(FetchError, match="too_large"):
            fetcher.fetch("http://a.example/huge")
        assert b"fine" in fetcher.fetch("http://a.example/fine").body


def test_a_kept_connection_asks_for_each_page_once(web):
    for number in range(5):
        web.add(f"http://a.example/{number}", page(text=str(number)), ETag="x")
    web.add("http://a.example/chunked", lambda out: out.write(CHUNKED))
    fetcher = Fetcher(options(web))
    with contextlib.closing(fetcher):
        bodies = [fetcher.fetch(f"http://a.example/{number}").body for number in range(5)]
        connections = web.connections
        assert fetcher.fetch("http://a.example/chunked").body == b"two pieces"
    assert [f"<title>{number}</title>".encode() in body for number, body in enumerate(bodies)] == [True] * 5
    assert web.requests == [f"http://a.example/{name}" for name in (*range(5), "chunked")]
    assert connections == 1


def test_pages_are_limited_for_each_site(tmp_path, web):
    for host in ("a.example", "b.example"):
        web.add(f"http://{host}/", page(*(f"/{number}" for number in range(9))))
        for number in range(9):
            web.add(f"http://{host}/{number}", page())
    counts = crawl(tmp_path, web, "http://a.example/", "http://b.example/", max_pages_per_site=4)
    assert (counts["out"], counts["rejected"]) == (8, {"page_limit": 12})


def test_requests_to_a_host_keep_the_delay_of_its_robots(tmp_path, web):
    times = collections.defaultdict(list)
    web.add("http://a.example/robots.txt", "User-agent: *\nCrawl-delay: 0.2\n", "text/plain")
    for number in range(3):
        body = page(f"/{number + 1}").encode()
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + body
        web.add(
            f"http://a.example/{number}",
            lambda out, answer=answer: (times["a"].append(time.monotonic()), out.write(answer)),
        )
    crawl(tmp_path, web, "http://a.example/0")
    gaps = [later - earlier for earlier, later in zip(times["a"], times["a"][1:], strict=False)]
    assert len(gaps) == 2
    assert min(gaps) >= 0.15


def test_seeds_are_grouped_by_site_and_checked(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# comment\n\nhttp://www.b.example/1\nhttp://a.example/\nhttp://b.example/2\nhttp://a.example/\n")
    assert group_by_site(read_seeds(str(path))) == [
        ("a.example", ["http://a.example/"]),
        ("b.example", ["http://www.b.example/1", "http://b.example/2"]),
    ]
    path.write_text("http://a.example/\nftp://a.example/\n")
    with pytest.raises(InputError, match=r"seeds\.txt:2: got 'ftp://a\.example/', expected an absolute http"):
        read_seeds(str(path))
    path.write_text("x" * 1000)
    with pytest.raises(InputError, match=f"got '{'x' * 100}…', expected"):
        read_seeds(str(path))
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="contains no URL"):
        read_seeds(str(path))


@pytest.mark.parametrize(
    "changes", [{"timeout_seconds": 0.0}, {"max_depth": -1}, {"resolve": ("a.example",)}, {"max_pages_per_site": 0}]
)
def test_invalid_options_are_rejected(changes):
    with pytest.raises(InputError, match=f"--{next(iter(changes))}"):
        CrawlOptions(**changes)
