"""Helpers for the tests of the crawl: a web of hosts served on loopback, a crawl of it, and its results."""

import contextlib
import http.server
import threading

from fastwarc.warc import ArchiveIterator, WarcRecordType
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.crawl import JOB, CrawlOptions
from newsembed.tests.example_inputs import dead_letters

ONE = ["--direct_num_workers=1"]
HTML = "text/html; charset=utf-8"


def page(*links, image="", text="A page."):
    meta = f'<meta property="og:image" content="{image}">' if image else ""
    anchors = "".join(f'<a href="{link}">A link to {link}</a> ' for link in links)
    return f"<html><head><title>{text}</title>{meta}</head><body><p>{text}</p>{anchors}</body></html>"


def feed(*links):
    items = "".join(f"<item><title>T</title><link>{link}</link></item>" for link in links)
    return f"<rss><channel><title>Feed</title>{items}</channel></rss>"


def cut_off(out):
    """An answer that ends before its body is complete."""
    out.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf")


class Web:
    """Answers by (host, path): status, content type, body, further headers.

    A callable body writes to the socket itself. A list of answers is used in order; the last one stays. An ETag or
    Last-Modified header is compared with the conditions of the request.
    """

    def __init__(self):
        self.answers = {}
        self.requests = []
        self.headers = []
        self.connections = 0
        self.under_way = 0
        self.most_under_way = 0
        self.lock = threading.Lock()

    def add(self, url, body="", kind=HTML, status=200, **headers):
        host, _, path = url.removeprefix("http://").partition("/")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = (status, kind, body.encode() if isinstance(body, str) else body, named)
        self.answers[host, f"/{path}"] = [answer]

    def then(self, url, body="", kind=HTML, status=200, **headers):
        """What the next request for the URL gets, and those after it."""
        host, _, path = url.removeprefix("http://").partition("/")
        earlier = self.answers.get((host, f"/{path}"), [])
        self.add(url, body, kind, status, **headers)
        self.answers[host, f"/{path}"] = earlier + self.answers[host, f"/{path}"]

    def count(self, url):
        return self.requests.count(url)

    def answer(self, host, path):
        answers = self.answers.get((host, path), [(404, "text/plain", b"no", {})])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Clock:
    """Stands for the module ``time``: sleeping moves the clock and takes no time."""

    def __init__(self):
        self.now = 1000.0
        self.lock = threading.Lock()

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        with self.lock:
            self.now += seconds


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.web.connections += 1

    def handle(self):
        with contextlib.suppress(OSError):  # the crawler hangs up on what it refuses
            super().handle()

    def log_message(self, *_):
        pass

    def do_GET(self):
        web, host = self.server.web, self.headers["Host"]
        with web.lock:
            web.requests.append(f"http://{host}{self.path}")
            web.headers.append(dict(self.headers))
            web.under_way += 1
            web.most_under_way = max(web.most_under_way, web.under_way)
            answer = web.answer(host, self.path)
        try:
            self.send(*answer)
        finally:
            with web.lock:
                web.under_way -= 1

    def send(self, status, kind, body, headers):
        if callable(body):
            self.close_connection = True
            with contextlib.suppress(OSError):
                body(self.wfile)
            return
        tests = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        if status == 200 and any(self.headers[tests[name]] == headers[name] for name in tests.keys() & headers):
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving():
    web = Web()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.web = web
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    web.port = server.server_address[1]
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def options(web, **changes):
    quick = {"delay_seconds": 0.0, "timeout_seconds": 5.0, "backoff_seconds": 0.01, "max_attempts": 1}
    local = {"fetch_images": False, "allow_private_addresses": True, "resolve": (f"*.example=127.0.0.1:{web.port}",)}
    return CrawlOptions(**quick | local | changes)


def crawl(tmp_path, web, *seeds, out="out", beam_args=ONE, **changes):
    """Counts of a crawl of these seeds, each URL accounted for."""
    (tmp_path / "seeds.txt").write_text("\n".join(seeds) + "\n")
    inputs = {"seeds": [str(tmp_path / "seeds.txt")]}
    counts = jobs.execute(JOB, inputs, str(tmp_path / out), options(web, **changes), beam_args).manifest["counts"]
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
    assert len(dead_letters(tmp_path / out)) == counts["in"] - counts["out"]
    return counts


def stored(tmp_path, out="out"):
    """{URL: payload} of every response, by FastWARC, in one dictionary for all files; no URL is in two records."""
    found = {}
    for path in sorted((tmp_path / out / "warc").glob("*.warc.gz")):
        with path.open("rb") as source:
            for record in ArchiveIterator(source, record_types=WarcRecordType.response, parse_http=False):
                assert record.verify_block_digest()
                record.parse_http()
                assert record.verify_payload_digest()
                assert record.headers["WARC-Target-URI"] not in found
                found[record.headers["WARC-Target-URI"]] = record.reader.read()
    return found


def letters(tmp_path, out="out"):
    """{URL: reason} of what was not stored."""
    return {letter.key: letter.reason for letter in dead_letters(tmp_path / out)}
