"""One request: codings, connections, retries, and the limits for hostile servers."""

import contextlib
import datetime
import gzip
import socket
import time

import pytest
from crawling import HTML, cut_off, options, page
from newsembed.beam_pipelines.crawl.fetch import Fetcher, FetchError, is_public, retry_after
from newsembed.formats.records import Failure, Rejection

NOW = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
URL = "http://a.example/"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\ntwo \r\n6\r\npieces\r\n0\r\n\r\n"


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
    assert web.headers[0]["Accept-Encoding"] == "gzip, deflate, br, zstd"
    assert fetched.request.startswith(b"GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: newsembed/")


def test_a_decompression_bomb_is_too_large(web):
    web.add(URL, gzip.compress(b"\0" * 5_000_000), Content_Encoding="gzip")
    error = failing(web, changes={"max_bytes": 100_000})
    assert (error.reason, error.retry) == (Failure.TOO_LARGE, False)


@pytest.mark.parametrize("status", [400, 403, 404, 410, 429, 500, 501, 503, 504])
def test_only_requests_to_busy_and_broken_servers_are_retried(web, status):
    retry = status in {429, 500, 503, 504}
    web.add(URL, "no", status=status, Retry_After="7")
    error = failing(web)
    assert (error.reason, error.status, error.retry) == (Failure.HTTP_ERROR, status, retry)
    assert error.retry_after == (7.0 if retry else None)


def test_broken_connections_are_retried_and_unknown_hosts_are_not(web, monkeypatch):
    web.add(URL, cut_off)
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
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", number)) for number in (1, web.port)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: both)
    assert fetch(web).status == 200


def test_a_name_with_several_private_addresses_is_refused_as_one_with_one(web, monkeypatch):
    addresses = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 80, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: addresses)
    assert failing(web, changes={"allow_private_addresses": False}).reason is Rejection.PRIVATE_ADDRESS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Wed, 01 May 2024 12:01:00 GMT", 60.0),
        ("Wed, 01 May 2024 11:00:00 GMT", 0.0),
        ("Wed, 01 May 2024 12:01:00 -0000", 60.0),
        *((text, None) for text in ("soon", "-5", "", "1e9", "Wed, 99 May 2024")),
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


def test_hosts_and_paths_of_all_scripts_are_sent_as_ascii(web):
    web.add("http://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%A4", page(text="gefunden"))
    assert b"gefunden" in fetch(web, "http://bücher.example/straße?q=ä").body


def test_headers_cannot_break_out_of_their_lines(web):
    answer = OK + b"X-Fold: one\r\n two\r\nContent-Length: 2\r\n\r\nok"
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


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 3_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 700_000,
        OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"x" * 999, mtime=0)[:-9],
    ],
    ids=["nothing", "of SSH", "no status", "many headers", "a long header", "broken gzip"],
)
def test_answers_that_are_not_http_are_fetch_errors(web, raw):
    web.add(URL, lambda out: out.write(raw))
    assert failing(web).reason is Failure.FETCH_ERROR


def test_few_connections_are_kept(web):
    for number in range(12):
        web.add(f"http://h{number}.example/", page())
    with contextlib.closing(Fetcher(options(web))) as fetcher:
        for number in range(12):
            fetcher.fetch(f"http://h{number}.example/")
        assert len(fetcher._places) <= 8


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
        drip(OK + b"Content-Length: 9999\r\n\r\n", b"x"),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
    ids=["header", "body", "chunk size"],
)
def test_a_server_that_sends_single_bytes_cannot_exceed_the_timeout(web, body):
    web.add(URL, body)
    assert failing(web, changes={"timeout_seconds": 0.4}).reason is Failure.TIMEOUT


def test_a_connection_that_failed_is_not_used_again(web):
    web.add("http://a.example/huge", "x" * 500_000)
    web.add("http://a.example/fine", page(text="fine"))
    with contextlib.closing(Fetcher(options(web, max_bytes=1000))) as fetcher:
        with pytest.raises(FetchError, match="too_large"):
            fetcher.fetch("http://a.example/huge")
        assert b"fine" in fetcher.fetch("http://a.example/fine").body


def test_a_kept_connection_asks_for_each_page_once(web):
    for number in range(5):
        web.add(f"http://a.example/{number}", page(text=str(number)), ETag="x")
    web.add("http://a.example/chunked", lambda out: out.write(CHUNKED))
    with contextlib.closing(Fetcher(options(web))) as fetcher:
        bodies = [fetcher.fetch(f"http://a.example/{number}").body for number in range(5)]
        connections = web.connections
        assert fetcher.fetch("http://a.example/chunked").body == b"two pieces"
    assert [f"<title>{number}</title>".encode() in body for number, body in enumerate(bodies)] == [True] * 5
    assert web.requests == [f"http://a.example/{name}" for name in (*range(5), "chunked")]
    assert connections == 1


PRIVATE = """
    127.0.0.1 10.1.2.3 192.168.0.1 172.16.9.9 100.64.0.1 100.100.100.200 169.254.169.254 168.63.129.16 192.0.0.192
    192.88.99.1 198.18.0.1 0.0.0.0 224.0.0.1 232.1.2.3 64:ff9b::e801:203 ff0e::1 240.0.0.1 255.255.255.255 :: ::1
    ::7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1::
    2002:808:808:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1
    ff02::1
"""


def test_only_addresses_on_the_public_internet_are_public_also_inside_of_others():
    assert [peer for peer in str.split(PRIVATE) if is_public(peer)] == []
    public = "93.184.216.34 8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 64:ff9b::101:101"
    assert all(map(is_public, str.split(public)))


def test_options_resolve_names_to_addresses_of_either_kind(web):
    places = ("a.example=127.0.0.1:81", "*.b.example=[::1]:82")
    with contextlib.closing(Fetcher(options(web, resolve=places))) as fetcher:
        resolver = fetcher._runner.run(connected(fetcher))
        for host, place in (("a.example", ("127.0.0.1", 81)), ("www.b.example", ("::1", 82))):
            (found,) = fetcher._runner.run(resolver.resolve(host, 80))
            assert (found["hostname"], found["host"], found["port"]) == (host, *place)


async def connected(fetcher):
    return fetcher._connect().connector._resolver


def answering(*heads, body=b"<p>A page"):
    """Writes each head on a connection of its own, whatever is asked."""

    def write(out):
        out.write(b"".join(heads) + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    return write


@pytest.mark.parametrize(
    "heads",
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n", OK),
        (OK, b"".join(b"Set-Cookie: c%d=%d; Path=/\r\n" % (number, number) for number in range(120))),
        (OK, b"X-Long: " + b"y" * 100_000 + b"\r\n"),
    ],
)
def test_odd_heads_of_answers_are_read(web, heads):
    web.add(URL, answering(*heads))
    assert fetch(web).body == b"<p>A page"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/\u00fcber-uns".encode(), "/%C3%BCber-uns"),
        ("/\u00fcber-uns".encode("latin-1"), "/%FCber-uns"),
        (b"/two  words?q=a b", "/two%20%20words?q=a%20b"),
        (b"\\news\\1", "/news/1"),
        (b"http:/a.example/x", "/x"),
        (b"/%C3%BC%20#top", "/%C3%BC%20"),
    ],
)
def test_a_location_is_read_as_browsers_read_it(web, location, path):
    web.add(URL, answering(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\n", body=b""))
    web.add(f"http://a.example{path}", page())
    assert fetch(web).url == f"http://a.example{path}"


def test_cookies_of_a_redirect_are_sent_to_its_site_and_then_forgotten(web):
    web.add(URL, "", status=302, Location="/", Set_Cookie="seen=1; Path=/")
    web.then(URL, "", status=302, Location="http://b.example/")
    web.add("http://b.example/", page())
    with contextlib.closing(Fetcher(options(web))) as fetcher:
        fetcher.fetch(URL)
        fetcher.fetch(URL)
    assert [headers.get("Cookie") for headers in web.headers] == [None, "seen=1", None, None, None]


REFRESHES = {
    '<meta http-equiv="refresh" content="0; url=/new">': "/new",
    "<META content='3;URL=\"new?a=1&amp;b=2\"' HTTP-EQUIV=Refresh>": "/new?a=1&b=2",
    '<meta http-equiv="refresh" content="900; url=/new">': "/",  # it reloads
    '<meta http-equiv="refresh" content="0">': "/",
    '<noscript><meta http-equiv="refresh" content="0; url=/new"></noscript>': "/",
    '<!-- <meta http-equiv="refresh" content="0; url=/new"> -->': "/",
    '<meta http-equiv="refresh" content="0; url=javascript:x()">': "/",
}


@pytest.mark.parametrize(("markup", "path"), REFRESHES.items())
def test_a_page_may_lead_to_another_by_its_head(web, markup, path):
    web.add(URL, f"<html><head>{markup}</head><body>Moved</body></html>")
    web.add(f"http://a.example{path}", page()) if path != "/" else None
    hops = []
    assert fetch(web, hops=hops).url == f"http://a.example{path}"
    assert [hop.url for hop in hops] == [URL] * (path != "/")
    assert fetch(web).url == URL, "such as robots.txt"


def test_the_header_refresh_leads_on_within_the_limit_of_redirects(web):
    web.add(URL, "<p>Moved", Refresh="0;url=/new")
    web.add("http://a.example/new", page())
    assert fetch(web, hops=[]).url == "http://a.example/new"
    web.add("http://a.example/new", "<p>Back", Refresh="0;url=/")
    assert "more than 5 redirects" in failing(web, hops=[]).detail
