"""One request: codings, connections, retries, and the limits for hostile servers."""

import contextlib
import datetime
import gzip
import re
import socket

import pytest
from crawling import HTML, options, page
from newsembed.beam_pipelines.crawl.fetch import Fetcher, FetchError, retry_after
from newsembed.formats.records import Failure, Rejection

NOW = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
URL = "http://a.example/"


def fetch(web, url=URL, *, changes=None, **arguments):
    with contextlib.closing(Fetcher(options(web, **changes or {}))) as fetcher:
        return fetcher.fetch(url, **arguments)


def failing(web, url=URL, **arguments):
    with pytest.raises(FetchError) as raised:
        fetch(web, url, **arguments)
    return raised.value


def test_compression_is_asked_for_and_undone(web):
    web.add(URL, gzip.compress(page().encode()), Content_Encoding="gzip")
    fetched = fetch(web)
    assert fetched.body == page().encode()
    assert web.headers[0]["Accept-Encoding"] == "gzip, deflate"
    assert fetched.request.startswith(b"GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: newsembed/")
    assert fetched.peer == "127.0.0.1"


def test_a_decompression_bomb_is_too_large(web):
    web.add(URL, gzip.compress(b"\0" * 5_000_000), Content_Encoding="gzip")
    error = failing(web, changes={"max_bytes": 100_000})
    assert (error.reason, error.retry) == (Failure.TOO_LARGE, False)


@pytest.mark.parametrize(("body", "coding"), [(gzip.compress(b"x" * 999, mtime=0)[:-9], "gzip"), (b"x", "br")])
def test_broken_coding_is_a_fetch_error(web, body, coding):
    web.add(URL, body, Content_Encoding=coding)
    assert failing(web).reason is Failure.FETCH_ERROR


@pytest.mark.parametrize(
    ("status", "retry"),
    [
        (400, False),
        (403, False),
        (404, False),
        (410, False),
        (429, True),
        (500, True),
        (501, False),
        (503, True),
        (504, True),
    ],
)
def test_only_requests_to_busy_and_broken_servers_are_retried(web, status, retry):
    web.add(URL, "no", status=status, Retry_After="7")
    error = failing(web)
    assert (error.reason, error.status, error.retry) == (Failure.HTTP_ERROR, status, retry)
    assert error.retry_after == (7.0 if retry else None)


def test_broken_connections_are_retried_and_unknown_hosts_are_not(web, monkeypatch):
    web.add(URL, lambda out: out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf"))
    assert failing(web).retry
    assert failing(web, changes={"resolve": ("a.example=127.0.0.1:1",)}).retry, "nobody listens"

    def unknown(*_args, **_kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = failing(web, changes={"resolve": ()})
    assert (error.reason, error.retry) == (Failure.FETCH_ERROR, False)
    assert "Name or service not known" in error.detail


def test_each_address_of_a_name_is_tried(web, monkeypatch):
    web.add(URL, page())
    port = web.port

    def both(_host, _port, **_kwargs):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", number)) for number in (1, port)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    assert fetch(web).status == 200


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Wed, 01 May 2024 12:01:00 GMT", 60.0),
        ("Wed, 01 May 2024 11:00:00 GMT", 0.0),
        ("Wed, 01 May 2024 12:01:00 -0000", 60.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("1e9", None),
        ("Wed, 99 May 2024", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after(value, NOW) == seconds


def test_a_304_is_an_answer_only_to_a_condition(web):
    web.add(URL, page(), ETag='"1"')
    assert fetch(web, conditions={"If-None-Match": '"1"'}).status == 304
    web.add(URL, "", status=304)
    assert failing(web).detail.startswith("304")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_of_every_kind_are_followed(web, status):
    web.add(URL, "", status=status, Location="/b")
    web.add("http://a.example/b", page())
    assert fetch(web).url == "http://a.example/b"


def test_public_addresses_are_answered_without_an_option_and_private_ones_are_not(web):
    with contextlib.closing(Fetcher(options(web, allow_private_addresses=False))) as fetcher:
        fetcher._vet("93.184.215.14")
        fetcher._vet("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
        for peer in ("127.0.0.1", "10.0.0.8", "::1"):
            with pytest.raises(FetchError, match="private_address"):
                fetcher._vet(peer)


def test_a_name_can_be_resolved_to_an_address_of_either_kind(web):
    given = ("a.example=127.0.0.1:81", "*.b.example=[::1]:82")
    with contextlib.closing(Fetcher(options(web, resolve=given))) as fetcher:
        assert fetcher._resolved("a.example", 80) == ("127.0.0.1", 81)
        assert fetcher._resolved("www.b.example", 80) == ("::1", 82)
        assert fetcher._resolved("c.example", 443) == ("c.example", 443)


def test_endless_redirects_are_stopped(web):
    web.add("http://a.example/", "", status=302, Location="/b")
    web.add("http://a.example/b", "", status=307, Location="http://a.example/")
    error = failing(web, changes={"max_redirects": 3})
    assert error.detail == "more than 3 redirects"
    assert len(web.requests) == 4


@pytest.mark.parametrize(
    "target",
    ["http://[::1", "ftp://a.example/", "file:///etc/passwd", "http://a.example:99999/", "javascript:alert(1)"],
)
def test_redirects_lead_to_web_addresses_only(web, target):
    web.add(URL, "", status=302, Location=target)
    assert failing(web).reason in (Failure.FETCH_ERROR, Rejection.OUT_OF_SCOPE)
    assert web.requests == [URL]


def test_each_hop_can_be_stopped(web):
    web.add(URL, "", status=302, Location="/there")
    web.add("http://a.example/there", page())
    hops = []

    @contextlib.contextmanager
    def around(url):
        hops.append(url)
        if "there" in url:
            raise FetchError(Rejection.OUT_OF_SCOPE, url)
        yield

    assert failing(web, around=around).reason is Rejection.OUT_OF_SCOPE
    assert hops == [URL, "http://a.example/there"]
    assert web.requests == [URL]


def test_hosts_and_paths_of_all_scripts_are_sent_as_ascii(web):
    web.add("http://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%A4", page(text="gefunden"))
    assert b"gefunden" in fetch(web, "http://bücher.example/straße?q=ä").body


def test_headers_cannot_break_out_of_their_lines(web):
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Fold: one\r\n two\r\nContent-Length: 2\r\n\r\nok"
    web.add(URL, lambda out: out.write(answer))
    assert fetch(web).header("x-fold") == "one two"
    web.add("http://a.example/x%20yX-Evil:%201", page())
    fetched = fetch(web, "http://a.example/x y\r\nX-Evil: 1")
    assert "X-Evil" not in web.headers[-1]
    assert b"\nX-Evil" not in fetched.request


def test_content_types_are_those_asked_for(web):
    web.add(URL, b"x", "application/gzip")
    assert failing(web).reason is Rejection.UNSUPPORTED_CONTENT_TYPE
    assert fetch(web, types=()).body == b"x"
    web.add(URL, page(), HTML)
    assert failing(web, types=("image/",)).reason is Rejection.UNSUPPORTED_CONTENT_TYPE


def test_answers_that_are_not_http_are_fetch_errors(web):
    for raw in (
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    ):
        web.add(URL, lambda out, raw=raw: out.write(raw))
        assert failing(web).reason is Failure.FETCH_ERROR


def test_few_connections_are_kept(web):
    for number in range(12):
        web.add(f"http://h{number}.example/", page())
    with contextlib.closing(Fetcher(options(web))) as fetcher:
        for number in range(12):
            fetcher.fetch(f"http://h{number}.example/")
        assert len(fetcher._connections) == 8


def test_the_agent_is_named(web):
    web.add(URL, page())
    fetch(web, changes={"user_agent": "newsbot/2 (+https://a.example/bot)"})
    assert re.fullmatch(r"newsbot/2 \(\+https://a\.example/bot\)", web.headers[0]["User-Agent"])
