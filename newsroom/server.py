"""The site on disk, and a server of it on loopback, where the Host header selects the site.

``index.jsonl`` has one resource on each line, and ``content.bin`` their bodies in order.
"""

import dataclasses
import datetime
import email.utils
import hashlib
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any, Self

from ..errors import InputError, refusing

_INDEX, _CONTENT = "index.jsonl", "content.bin"


@dataclasses.dataclass(frozen=True)
class Resource:
    """The server's answer for one host and path.

    Attributes:
      modified: for Last-Modified, UTC.
      location: target of a redirect.
    """

    host: str
    path: str
    body: bytes
    content_type: str
    modified: datetime.datetime
    status: int = 200
    location: str = ""

    @property
    def etag(self) -> str:
        """Identifies the body."""
        return hashlib.sha256(self.body).hexdigest()[:16]


def write_site(folder: str, resources: Iterable[Resource]) -> None:
    """Writes resources in the given order; the index is written last, so a folder without one is not a site."""
    os.makedirs(folder, exist_ok=True)
    index, rows = os.path.join(folder, _INDEX), list[str]()
    if os.path.exists(index):
        os.remove(index)
    with open(os.path.join(folder, _CONTENT), "wb") as content:
        for resource in resources:
            row = dataclasses.asdict(resource) | {"modified": resource.modified.isoformat()}
            body = row.pop("body")
            place = {"offset": content.tell(), "length": len(body)}
            rows.append(json.dumps(row | place, ensure_ascii=False))
            content.write(body)
    write_lines(index, rows)


class SiteReader:
    """Finds a resource by host and path.

    Raises:
      InputError: if the folder holds no site.
    """

    def __init__(self, folder: str) -> None:
        index = os.path.join(folder, _INDEX)
        if not os.path.exists(index):
            remedy = "generate one with newsembed newsroom --output DIR"
            raise InputError("no newsroom site here", path=index, remedy=remedy)
        with open(index, encoding="utf-8") as file:
            self._rows = {(row["host"], row["path"]): row for row in map(json.loads, file)}
        self._content = os.path.join(folder, _CONTENT)

    def find(self, host: str, path: str) -> Resource | None:
        """The resource of a host and path; None if there is none."""
        if (row := self._rows.get((host, path))) is None:
            return None
        with open(self._content, "rb") as file:
            file.seek(row["offset"])
            body = file.read(row["length"])
        modified = datetime.datetime.fromisoformat(row["modified"])
        return Resource(host, path, body, row["content_type"], modified, row["status"], row["location"])


def write_lines(path: str, lines: Iterable[str]) -> int:
    """Writes lines, each with a line feed, and returns their number."""
    written = [f"{line}\n" for line in lines]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(written)
    return len(written)


class NewsroomServer:
    """A context manager that serves ``<newsroom>/site`` in threads.

    Args:
      newsroom: the ``output`` of ``generate_newsroom``.
      port: 0 takes any free port; see :attr:`port`.

    >>> with NewsroomServer("newsroom") as server:  # doctest: +SKIP
    ...     print(f"http://127.0.0.1:{server.port}/ with Host: www.harbourtimes.example")

    Raises:
      InputError: if there is no site in the folder, or the port is in use.
    """

    def __init__(self, newsroom: str, port: int = 0) -> None:
        self._server = _Server(port, SiteReader(os.path.join(newsroom, "site")))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client's kept-alive connection must not hold up the end
    request_queue_size = 128

    def __init__(self, port: int, reader: SiteReader) -> None:
        self.reader = reader
        remedy = "choose another port, or 0 for any free one"
        with refusing(f"got {port}:", OSError, field="--port", remedy=remedy):
            super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores closed connections: a crawler stops at its deadline or its size limit."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # Headers and body are sent in one packet each; otherwise delayed acknowledgements cost 40 ms for each page.
    disable_nagle_algorithm = True
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Logs nothing."""

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0].lower()
        path = self.path.partition("?")[0].partition("#")[0]
        now = datetime.datetime.now(datetime.UTC)
        missing = Resource(host, path, b"not found\n", "text/plain; charset=utf-8", now, 404)
        found = self.server.reader.find(host, path) or missing
        headers, is_known = {"Content-Type": found.content_type, "Content-Length": str(len(found.body))}, False
        if found.location:
            headers["Location"] = found.location
        if found.status == 200:
            date = email.utils.format_datetime(found.modified, usegmt=True)
            validators = {"ETag": f'"{found.etag}"', "Last-Modified": date}
            headers |= validators
            given = self.headers.get("If-None-Match") or self.headers.get("If-Modified-Since")
            is_known = given in validators.values()
        self.send_response(304 if is_known else found.status)
        for name, value in (validators if is_known else headers).items():
            self.send_header(name, value)
        self.end_headers()
        if not is_known:
            self.wfile.write(found.body)
