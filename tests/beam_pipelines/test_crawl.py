"""crawl: polite, bounded, vetted; against servers on loopback that misbehave on purpose."""

import collections
import contextlib
import gzip
import http.server
import threading
import time

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from newsembed.beam_pipelines import jobs, parquet
from newsembed.beam_pipelines.crawl import JOB, CrawlOptions, group_by_site, read_seeds
from newsembed.beam_pipelines.crawl.fetch import Fetcher, FetchError
from newsembed.beam_pipelines.extract import JOB as EXTRACT
from newsembed.beam_pipelines.records import DeadLetter, Failure, Rejection
from newsembed.tasks.errors import InputError

ONE = ["--direct_num_workers=1"]
HTML = "text/html; charset=utf-8"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntwo \r\n6\r\npieces\r\n0\r\n\r\n"
ROBOTS = "User-agent: *\nDisallow: /private/\n"


def page(*links, image="", text="A page."):
    meta = f'<meta property="og:image" content="{image}">' if image else ""
    anchors = "".join(f'<a href="{link}">A link to {link}</a> ' for link in links)
    return f"<html><head><title>{text}</title>{meta}</head><body><p>{text}</p>{anchors}</body></html>"


class Web:
    """Answers by (host, path): (status, content type, body or callable that writes to the socket, further headers)."""

    def __init__(self):
        self.answers = {}
        self.requests = []
        self.connections = 0

    def add(self, url, body, kind=HTML, status=200, **headers):
        host, _, path = url.removeprefix("http://").partition("/")
        self.answers[host, f"/{path}"] = (status, kind, body.encode() if isinstance(body, str) else body, headers)

    def count(self, url):
        return self.requests.count(url)


@pytest.fixture
def web():
    found = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            found.connections += 1

        def handle(self):
            with contextlib.suppress(OSError):  # the crawler hangs up on what it refuses
                super().handle()

        def log_message(self, *_):
            pass

        def do_GET(self):
            host = self.headers["Host"]
            found.requests.append(f"http://{host}{self.path}")
            status, kind, body, headers = found.answers.get((host, self.path), (404, "text/plain", b"no", {}))
            if callable(body):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    body(self.wfile)
                return
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    found.port = server.server_address[1]
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def options(web, **changes):
    return CrawlOptions(
        **{"delay_seconds": 0.0, "timeout_seconds": 5.0, "allow_private_addresses": True, "resolve": (f"*.example=127.0.0.1:{web.port}",)}
        | changes
    )


def crawl(tmp_path, web, *seeds, **changes):
    (tmp_path / "seeds.txt").write_text("\n".join(seeds) + "\n")
    out = tmp_path / "out"
    counts = jobs.execute(JOB, {"seeds": [str(tmp_path / "seeds.txt")]}, str(out), options(web, **changes), ONE).manifest["counts"]
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    return counts


def stored(tmp_path):
    """{URL: payload} of every response, by FastWARC, in one dictionary for all files."""
    found = {}
    for path in sorted((tmp_path / "out/warc").glob("*.warc.gz")):
        with path.open("rb") as source:
            for record in ArchiveIterator(source, record_types=WarcRecordType.response, parse_http=False):
                assert record.verify_block_digest()
                record.parse_http()
                found[record.headers["WARC-Target-URI"]] = record.reader.read()
    return found


def letters(tmp_path):
    paths = sorted((tmp_path / "out/dead_letters").rglob("*.parquet"))
    return {letter.key: letter.reason for path in paths for letter in parquet.read_records(str(path), DeadLetter)}


def test_a_site_is_walked_to_its_depth_and_stored(tmp_path, web):
    feed = "<rss><channel><title>T</title><item><title>One</title><link>http://www.a.example/1</link></item></channel></rss>"
    web.add("http://www.a.example/robots.txt", ROBOTS, "text/plain")
    web.add("http://www.a.example/feed", feed, "application/rss+xml")
    web.add("http://www.a.example/1", page("/2", "http://other.example/x", "mailto:a@b.c", "/paper.pdf", image="http://img.example/i.png"))
    web.add("http://www.a.example/2", page("/3", image="http://img.example/i.png"))
    web.add("http://www.a.example/3", page())
    web.add("http://img.example/i.png", b"image", "image/png")
    counts = crawl(tmp_path, web, "http://www.a.example/feed", max_depth=2)
    assert counts["tallies"] == {"pages": 3, "images": 1}
    assert counts["rejected"] == {} == counts["failed"]
    assert stored(tmp_path) == {
        f"http://{name}": web.answers[tuple(name.replace("/", " /", 1).split())][2]
        for name in ("www.a.example/feed", "www.a.example/1", "www.a.example/2", "img.example/i.png")
    }
    assert web.count("http://img.example/i.png") == 1, "a thumbnail is fetched once"
    assert not any("other.example" in url or "/3" in url or "pdf" in url for url in web.requests)


def test_the_files_are_warc_1_1_that_extract_reads(tmp_path, web):
    web.add("http://a.example/1", page(text="Ein Gruß."), "text/html; charset=utf-8")
    crawl(tmp_path, web, "http://a.example/1")
    (path,) = (tmp_path / "out/warc").glob("*.warc.gz")
    raw = gzip.decompress(path.read_bytes())
    assert raw.startswith(b"WARC/1.1\r\n")
    assert raw.count(b"WARC/1.1\r\n") == 2
    with path.open("rb") as source:
        offsets = [record.stream_pos for record in ArchiveIterator(source)]
        source.seek(offsets[1])
        record = next(iter(ArchiveIterator(source)))
        assert record.headers["WARC-Target-URI"] == "http://a.example/1"
        assert record.record_date is not None
    counts = jobs.execute(EXTRACT, {"warc": [str(path)]}, str(tmp_path / "extracted"), beam_args=ONE).manifest["counts"]
    assert counts["in"] == 1


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


@pytest.mark.parametrize(("status", "allowed"), [(404, True), (410, True), (500, False), (503, False)])
def test_a_host_that_cannot_answer_for_its_robots_is_left_alone(tmp_path, web, status, allowed):
    web.add("http://a.example/robots.txt", "x", "text/plain", status=status)
    web.add("http://a.example/", page())
    counts = crawl(tmp_path, web, "http://a.example/")
    assert (counts["out"], counts["rejected"]) == ((1, {}) if allowed else (0, {"robots_disallowed": 1}))


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


@pytest.mark.parametrize(
    "peer",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.9.9",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "224.0.0.1",
    ],
)
def test_no_address_inside_passes(peer):
    with pytest.raises(FetchError, match="private_address"):
        Fetcher(CrawlOptions())._vet(peer)


@pytest.mark.parametrize("peer", ["93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_pass(peer):
    Fetcher(CrawlOptions())._vet(peer)


def test_what_cannot_be_kept_has_a_reason(tmp_path, web):
    links = ("/gone", "/broken", "/film", "/loop", "/away", "/huge", "/cut")
    web.add("http://a.example/", page(*links, image="/no-image"))
    web.add("http://a.example/broken", "x", status=500)
    web.add("http://a.example/film", b"x", "video/mp4")
    web.add("http://a.example/loop", "", status=302, Location="/loop")
    web.add("http://a.example/away", "", status=302, Location="http://elsewhere.example/")
    web.add("http://a.example/huge", "x" * 5000)
    web.add("http://a.example/cut", lambda out: out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf"))
    web.add("http://a.example/no-image", page())
    counts = crawl(tmp_path, web, "http://a.example/", max_bytes=4000)
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
def test_a_server_that_drips_cannot_stretch_a_request(web, body):
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
        web.add(f"http://a.example/{number}", lambda out, answer=answer: (times["a"].append(time.monotonic()), out.write(answer)))
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
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="holds no URL"):
        read_seeds(str(path))


@pytest.mark.parametrize("changes", [{"timeout_seconds": 0.0}, {"max_depth": -1}, {"resolve": ("a.example",)}, {"max_pages_per_site": 0}])
def test_options_that_make_no_sense_are_refused(changes):
    with pytest.raises(InputError, match=f"--{next(iter(changes))}"):
        CrawlOptions(**changes)
