"""What a server reports about itself: metrics for Prometheus, and a line of JSON for each request."""

import datetime
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__

ROUTES: Final = ("/", "/embed", "/search", "/healthz", "/metrics", "/docs", "/openapi.json")
_OTHER: Final = "other"  # a scan of made-up paths must not create one series for each
_METHODS: Final = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_NO_ANSWER: Final = 499  # the client went away before the answer began


class Metrics:
    """The numbers of one server, in the format of Prometheus.

    Args:
      documents: returns how many documents the index has now.
      inside: returns the number of requests in progress, by kind.
    """

    def __init__(self, documents: Callable[[], int], inside: Callable[[], dict[str, int]]) -> None:
        self._registry = CollectorRegistry()
        self._inside = inside
        labels = ("route", "method")
        self._requests = Counter(
            "newsembed_requests", "Requests that were answered.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "newsembed_request_seconds",
            "From the headers of a request to the end of its answer.",
            labels,
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._waiting = Gauge(
            "newsembed_requests_inside",
            "Requests that are being received, wait or are being computed.",
            ("kind",),
            registry=self._registry,
        )
        index = Gauge("newsembed_index_documents", "Documents in the index.", registry=self._registry)
        index.set_function(documents)
        version = Gauge("newsembed_info", "1, with the version of the program.", ("version",), registry=self._registry)
        version.labels(__version__).set(1)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts an answer."""
        method = method if method in _METHODS else _OTHER
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def response(self) -> Response:
        """The answer of ``GET /metrics``."""
        for kind, count in self._inside().items():
            self._waiting.labels(kind).set(count)
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class Monitor:
    """ASGI middleware, the outermost: counts every answer, and writes a line for it if asked to.

    A line has neither the query nor the body nor the key of a request, which are private.

    Args:
      app: what answers.
      metrics: where answers are counted.
      log: receives the lines; None: nothing is written.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, log: TextIO | None = None) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = time.perf_counter(), _NO_ANSWER, 0

        async def noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            status = 500
            raise
        finally:
            seconds = time.perf_counter() - started
            path = scope["path"]
            self._metrics.answered(path if path in ROUTES else _OTHER, scope["method"], status, seconds)
            if self._log is not None:
                self._write(scope, {"status": status, "seconds": round(seconds, 6), "bytes": sent})

    def _write(self, scope: Scope, outcome: dict[str, Any]) -> None:
        client = scope.get("client")
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "client": client[0] if client else None,
            "method": scope["method"],
            "path": scope["path"],
            **outcome,
        }
        print(json.dumps(line), file=self._log, flush=True)


def log_stream(kind: str) -> TextIO | None:
    """Where the lines of ``--access_log`` go: standard error for "json", nowhere for "none"."""
    return sys.stderr if kind == "json" else None
