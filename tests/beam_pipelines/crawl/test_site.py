"""crawl: robots, scope, limits, redirects, private addresses, readable WARC; served on loopback."""

import contextlib
import http.server
import threading

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl import JOB, CrawlOptions, group_by_site, read_seeds
from newsembed.beam_pipelines.crawl.fetch import Fetcher, FetchError
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import DeadLetter, Failure, Rejection

ONE = ["--direct_num_workers=1"]
PAGES = {
    "/robots.txt": (200, "text/plain", "User-agent: *\n\nDisallow: /secret\n"),
    "/": (
        200,
        "text/html",
        (
            '<a href="/a">a</a> <a href="/secret/x">s</a> <a href="http://other.example/">o</a> '
            '<a href="/gone">g</a> <a href="/moved">m</a> <a href="/film">f</a>'
        ),
    ),
    "/a": (200, "text/html", '<meta property="og:image" content="/i.png"><a href="/b">b</a>'),
    "/b": (200, "text/html", '<meta property="og:image" content="/i.png"><a href="/deep">d</a>'),
    "/deep": (200, "text/html", "deep"),
    "/i.png": (200, "image/png", "png"),
    "/moved": (302, "/b2", ""),
    "/b2": (200, "text/html", "moved here"),
    "/loop": (302, "/loop", ""),
    "/away": (302, "http://169.254.169.254/latest", ""),
    "/film": (200, "video/mp4", "film"),
    "/big": (200, "text/html", "x" * 5000),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requested.append(self.path)
        status, kind, body = PAGES.get(self.path, (404, "text/plain", "no"))
        self.send_response(status)
        self.send_header(*(("Location", kind) if status == 302 else ("Content-Type", kind)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.requested = []
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


def options(server, **changes):
    port = server.server_address[1]
    return CrawlOptions(
        **{
            "delay_seconds": 0.0,
            "max_attempts": 1,
            "resolve": (f"*.example=127.0.0.1:{port}",),
            "allow_private_addresses": True,
            **changes,
        }
    )


def crawl(tmp_path, server, seeds="http://www.site.example/\n", **changes):
    (tmp_path / "seeds.txt").write_text(seeds)
    counts = jobs.execute(
        JOB, {"seeds": [str(tmp_path / "seeds.txt")]}, str(tmp_path / "out"), options(server, **changes), ONE
    ).manifest["counts"]
    stored = {}
    for path in sorted((tmp_path / "out/warc").glob("*.warc.gz")):
        with path.open("rb") as source:
            for record in ArchiveIterator(source, record_types=WarcRecordType.response):
                stored[record.headers["WARC-Target-URI"].rpartition(".example")[2]] = record.reader.read().decode()
    return counts, stored


def test_a_site_is_walked_within_its_rules(tmp_path, server):
    counts, stored = crawl(tmp_path, server)
    assert set(stored) == {"/", "/a", "/b", "/i.png", "/b2"}
    assert stored["/b2"] == "moved here"
    assert counts["tallies"] == {"images": 1, "pages": 4, "listed_images": 1}
    assert counts["rejected"] == {"robots_disallowed": 1, "unsupported_content_type": 1}
    assert counts["failed"] == {"http_error": 1}
    assert counts["in"] == counts["out"] + 3
    assert not [path for path in server.requested if path.startswith("/secret")]
    assert server.requested.count("/i.png") == 1
    (letter,) = [
        one
        for path in (tmp_path / "out/dead_letters").rglob("*.parquet")
        for one in parquet.read_records(str(path), DeadLetter)
        if one.outcome == "failed"
    ]
    assert (letter.key, letter.detail) == ("http://www.site.example/gone", "404 Not Found")


def test_limits_are_counted(tmp_path, server):
    counts, stored = crawl(tmp_path, server, max_pages_per_site=2, fetch_images=False)
    assert set(stored) == {"/", "/a"}
    assert counts["rejected"]["page_limit"] == counts["in"] - 2


def test_depth_zero_fetches_the_seeds_only(tmp_path, server):
    _, stored = crawl(tmp_path, server, max_depth=0)
    assert set(stored) == {"/"}


def test_loopback_is_refused_unless_allowed(tmp_path, server):
    counts, stored = crawl(tmp_path, server, allow_private_addresses=False)
    assert stored == {}
    assert counts["rejected"] == {"private_address": 1}
    assert server.requested == []


@pytest.mark.parametrize(
    ("path", "changes", "reason"),
    [
        ("/loop", {}, Failure.FETCH_ERROR),
        ("/gone", {}, Failure.HTTP_ERROR),
        ("/big", {"max_bytes": 1000}, Failure.TOO_LARGE),
        ("/film", {}, Rejection.UNSUPPORTED_CONTENT_TYPE),
    ],
)
def test_every_failed_request_has_a_reason(server, path, changes, reason):
    with contextlib.closing(Fetcher(options(server, **changes))) as fetcher, pytest.raises(FetchError) as caught:
        fetcher.fetch(f"http://www.site.example{path}")
    assert caught.value.reason is reason


def test_nobody_listening_is_a_fetch_error():
    with pytest.raises(FetchError) as caught:
        Fetcher(CrawlOptions(resolve=("a.example=127.0.0.1:1",), allow_private_addresses=True)).fetch(
            "http://a.example/"
        )
    assert caught.value.reason is Failure.FETCH_ERROR


@pytest.mark.parametrize(
    "peer",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:192.168.0.1", "0.0.0.0", "224.0.0.1"],
)
def test_private_addresses_are_rejected_by_the_connected_address(peer):
    with pytest.raises(FetchError, match="private_address"):
        Fetcher(CrawlOptions())._vet(peer)
    Fetcher(CrawlOptions())._vet("93.184.216.34")


def test_seeds_and_options_are_checked(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_text("# seeds\nhttp://a.example/\nhttp://www.a.example/feed\n\nhttps://b.example/\n")
    assert group_by_site(read_seeds(str(file))) == [
        ("a.example", ["http://a.example/", "http://www.a.example/feed"]),
        ("b.example", ["https://b.example/"]),
    ]
    file.write_text("http://a.example/\nnot a url\n")
    with pytest.raises(InputError, match=r"seeds\.txt:2: got 'not a url'"):
        read_seeds(str(file))
    file.write_text("\n")
    with pytest.raises(InputError, match="contains no URL"):
        read_seeds(str(file))
    with pytest.raises(InputError, match="--resolve"):
        CrawlOptions(resolve=("a",))
    with pytest.raises(InputError, match="--max_bytes"):
        CrawlOptions(max_bytes=0)
