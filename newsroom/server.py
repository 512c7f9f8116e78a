"""Serves a generated newsroom on loopback; the Host header selects the site."""

import datetime
import email.utils
import http.server
import os
import sys
import threading
from types import TracebackType
from typing import Any, Self

from .store import SiteReader, Stored


class NewsroomServer:
    """A context manager that serves ``<newsroom>/site`` in threads.

    Args:
      newsroom: the ``output`` of ``generate_newsroom``.
      port: 0 takes any free port; see :attr:`port`.

    >>> with NewsroomServer("newsroom") as server:  # doctest: +SKIP
    ...     print(f"http://127.0.0.1:{server.port}/ with Host: www.harbourtimes.example")

    Raises:
      InputError: if there is no site in the folder.
    """

    def __init__(self, newsroom: str, port: int = 0) -> None:
        reader = SiteReader(os.path.join(newsroom, "site"))
        self._server = _Server(port, reader)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def requested(self) -> set[str]:
        """URLs that were requested so far, without query and port."""
        return self._server.requested

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client's kept-alive connection must not hold up the end
    request_queue_size = 128

    def __init__(self, port: int, reader: SiteReader) -> None:
        self.reader = reader
        self.requested: set[str] = set()
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

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Logs nothing."""

    def _answer(self, *, with_body: bool) -> None:
        host = self.headers.get("Host", "").partition(":")[0].lower()
        path = self.path.partition("?")[0].partition("#")[0]
        self.server.requested.add(f"http://{host}{path}")
        stored = self.server.reader.find(host, path)
        if stored is None:
            self._send(404, "text/plain; charset=utf-8", b"not found\n", with_body=with_body)
        elif stored.status == 200 and _unchanged(
            stored, self.headers.get("If-None-Match"), self.headers.get("If-Modified-Since")
        ):
            self.send_response(304)
            self._validators(stored)
            self.end_headers()
        else:
            self._send(
                stored.status, stored.content_type, self.server.reader.body(stored), with_body=with_body, stored=stored
            )

    def _send(
        self, status: int, content_type: str, body: bytes, *, with_body: bool, stored: Stored | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if stored and stored.location:
            self.send_header("Location", stored.location)
        if stored and stored.status == 200:
            self._validators(stored)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _validators(self, stored: Stored) -> None:
        self.send_header("ETag", f'"{stored.etag}"')
        self.send_header("Last-Modified", email.utils.format_datetime(_modified(stored), usegmt=True))


def _modified(stored: Stored) -> datetime.datetime:
    return datetime.datetime.fromisoformat(stored.modified).replace(microsecond=0)


def _unchanged(stored: Stored, if_none_match: str | None, if_modified_since: str | None) -> bool:
    """Whether the client's copy is current. RFC 9110: If-None-Match has precedence; an invalid date is ignored."""
    if if_none_match is not None:
        tags = [tag.strip().removeprefix("W/").strip('"') for tag in if_none_match.split(",")]
        return stored.etag in tags or "*" in tags
    if if_modified_since is None:
        return False
    try:
        since = email.utils.parsedate_to_datetime(if_modified_since)
    except ValueError:
        return False
    if since.tzinfo is None:
        since = since.replace(tzinfo=datetime.UTC)
    return _modified(stored) <= since
