"""HTTP requests with limits on time, bytes and redirects; the peer's address is checked after connecting."""

import dataclasses
import datetime
import email.utils
import fnmatch
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from ...formats.records import Failure, Rejection
from .addresses import is_public
from .coding import ACCEPTED, BrokenCodingError, TooLargeError, decode
from .options import CrawlOptions
from .sockets import connect

_CHUNK_BYTES = 1 << 16
_MAX_CONNECTIONS = 8  # kept alive at the same time: enough for the hosts of one site
_SAFE = "/:@!$&'()*+,;=~-._%"
_REDIRECTS = {301, 302, 303, 307, 308}
_NO_RETRY = {501, 505, 511}
PAGE_TYPES = ("text/html", "application/xhtml", "xml", "rss", "atom", "json", "text/plain")
IMAGE_TYPES = ("image/",)
SITEMAP_TYPES = (*PAGE_TYPES, "text/", "gzip", "octet-stream")


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A response.

    Attributes:
      url: final URL, after redirects.
      status: HTTP status code.
      reason: reason phrase of the status line.
      headers: (name, value) pairs as received.
      body: body without transfer and content coding.
      request: request line and headers as sent; empty if unknown.
      peer: IP address that answered.
      date: UTC time at which the response was complete.
    """

    url: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    request: bytes = b""
    peer: str = ""
    date: datetime.datetime = dataclasses.field(default_factory=lambda: datetime.datetime.now(datetime.UTC))

    def header(self, name: str) -> str:
        """Returns the first value of a header, or "".

        Args:
          name: header name in lower case.
        """
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def content_type(self) -> str:
        """Value of the Content-Type header in lower case, or ""."""
        return self.header("content-type").lower()


class FetchError(Exception):
    """A request without a response to store.

    Attributes:
      reason: rejection or failure under which the URL is counted.
      detail: description for the dead letter.
      retry: whether another attempt may succeed.
      status: HTTP status code; 0 without a response.
      retry_after: seconds that the server asks the client to wait; ``None`` if it does not.
    """

    def __init__(
        self,
        reason: Rejection | Failure,
        detail: str,
        *,
        retry: bool = False,
        status: int = 0,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retry = retry
        self.status = status
        self.retry_after = retry_after


class Fetcher:
    """Sends requests to the hosts of one site, one at a time, over persistent connections.

    Args:
      options: limits, user agent, ``resolve`` and whether private addresses are allowed.
    """

    def __init__(self, options: CrawlOptions) -> None:
        self._options = options
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def fetch(
        self,
        url: str,
        around: Callable[[str], AbstractContextManager[Any]] = nullcontext,
        *,
        types: tuple[str, ...] = (*PAGE_TYPES, *IMAGE_TYPES),
        conditions: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> Fetched:
        """Fetches a URL and follows redirects; the timeout applies to each hop.

        Args:
          url: the URL to fetch.
          around: called with the URL of each hop, including the first; returns a context that is active during the
            request. It may wait, and may raise ``FetchError`` to stop.
          types: substrings of the content types that are accepted; ``()`` accepts all.
          conditions: headers of a conditional request; the response may then be a 304.
          max_bytes: maximum size of the body; ``None`` uses the limit in the options.

        Raises:
          FetchError: unless the response is a 200 with an accepted content type within the limits, or a requested 304.
        """
        bound = max_bytes or self._options.max_bytes
        for _ in range(self._options.max_redirects + 1):
            with around(url):
                fetched = self._request(url, conditions or {}, bound)
            target = fetched.header("location")
            if fetched.status not in _REDIRECTS or not target:
                return _checked(fetched, types, conditional=bool(conditions))
            url = _joined(url, target)
        raise FetchError(Failure.FETCH_ERROR, f"more than {self._options.max_redirects} redirects")

    def _request(self, url: str, conditions: Mapping[str, str], max_bytes: int) -> Fetched:
        deadline = time.monotonic() + self._options.timeout_seconds
        parts = _split(url)
        # The server may have closed a persistent connection in the meantime: retry once on a new one.
        for attempt in (1, 2):
            try:
                return self._exchange(parts, conditions, deadline, max_bytes)
            except FetchError:
                self._drop(parts)
                raise
            except TimeoutError as error:
                self._drop(parts)
                raise FetchError(
                    Failure.TIMEOUT, f"no whole answer within {self._options.timeout_seconds} s", retry=True
                ) from error
            except TooLargeError as error:
                self._drop(parts)
                raise FetchError(Failure.TOO_LARGE, f"more than {max_bytes} bytes") from error
            except (OSError, http.client.HTTPException, BrokenCodingError, ValueError) as error:
                reused = self._drop(parts)
                if attempt == 2 or not reused:
                    raise FetchError(
                        Failure.FETCH_ERROR, f"{type(error).__name__}: {error}", retry=_is_transient(error)
                    ) from error
        raise AssertionError("unreachable")

    def _drop(self, parts: SplitResult) -> bool:
        connection = self._connections.pop((parts.scheme, parts.netloc), None)
        if connection is not None:
            connection.close()
        return connection is not None

    def _exchange(self, parts: SplitResult, conditions: Mapping[str, str], deadline: float, max_bytes: int) -> Fetched:
        connection = self._connections.get((parts.scheme, parts.netloc)) or self._connect(parts, deadline)
        bounded: Any = connection.sock
        bounded.deadline = deadline
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "Host": _host_header(parts),
            "User-Agent": self._options.user_agent,
            "Accept": "*/*",
            "Accept-Encoding": ACCEPTED,
            **conditions,
        }
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        body = _read(response, max_bytes)
        if response.will_close:
            self._drop(parts)
        sent = "\r\n".join([f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""])
        # Folded header lines are joined: a line break would corrupt the WARC record.
        received = tuple((name, " ".join(value.split())) for name, value in response.getheaders())
        fetched = Fetched(
            parts.geturl(),
            response.status,
            response.reason,
            received,
            body,
            sent.encode("ascii", "replace"),
            bounded.peer,
        )
        return dataclasses.replace(fetched, body=decode(body, fetched.header("content-encoding"), max_bytes))

    def _connect(self, parts: SplitResult, deadline: float) -> http.client.HTTPConnection:
        host, port = _ascii_host(parts), parts.port or (443 if parts.scheme == "https" else 80)
        sock = connect(self._resolved(host, port), host if parts.scheme == "https" else None, deadline, self._vet)
        while len(self._connections) >= _MAX_CONNECTIONS:
            self._connections.pop(next(iter(self._connections))).close()
        connection = http.client.HTTPConnection(host, port)
        connection.sock = sock
        self._connections[parts.scheme, parts.netloc] = connection
        return connection

    def _resolved(self, host: str, port: int) -> tuple[str, int]:
        for entry in self._options.resolve:
            pattern, _, address = entry.partition("=")
            if fnmatch.fnmatch(host, pattern):
                name, _, number = address.rpartition(":")
                return name.strip("[]"), int(number)
        return host, port

    def _vet(self, peer: str) -> None:
        """Rejects private addresses; it sees the connected address, so no DNS answer or redirect can bypass it.

        Raises:
          FetchError: ``private_address``.
        """
        if not self._options.allow_private_addresses and not is_public(peer):
            raise FetchError(Rejection.PRIVATE_ADDRESS, f"{peer}; allow with --allow_private_addresses=true")


def retry_after(value: str, now: datetime.datetime) -> float | None:
    """Returns the seconds that a Retry-After header requests, given as a number or a date (RFC 9110, 10.2.3).

    >>> retry_after("120", datetime.datetime.now(datetime.UTC))
    120.0

    Args:
      value: value of the header.
      now: time of the response, with a time zone.

    Returns:
      Seconds, at least 0; ``None`` for an invalid value.
    """
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - now).total_seconds())


def _checked(fetched: Fetched, types: tuple[str, ...], *, conditional: bool) -> Fetched:
    if fetched.status == 304 and conditional:
        return fetched
    if fetched.status != 200:
        retry = fetched.status == 429 or (fetched.status >= 500 and fetched.status not in _NO_RETRY)
        wait = retry_after(fetched.header("retry-after"), fetched.date) if retry else None
        raise FetchError(
            Failure.HTTP_ERROR,
            f"{fetched.status} {fetched.reason}",
            retry=retry,
            status=fetched.status,
            retry_after=wait,
        )
    if types and fetched.content_type and not any(kind in fetched.content_type for kind in types):
        raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, fetched.content_type)
    return fetched


def _is_transient(error: Exception) -> bool:
    """Returns whether a retry may succeed: not after an unknown host name, an invalid certificate or an invalid URL."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, (OSError, http.client.HTTPException, BrokenCodingError)) and not isinstance(
        error, (ssl.SSLCertVerificationError, http.client.InvalidURL)
    )


def _read(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    chunks, size = [], 0
    while chunk := response.read1(_CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError
    if response.length:  # read1 does not report a connection that closed before the end of the body
        raise http.client.IncompleteRead(b"", response.length)
    # read1 does not close a complete response, and an open response blocks the next request on the connection.
    response.close()
    return b"".join(chunks)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(_ascii_host(parts)) and parts.port != 0
    except ValueError as error:
        raise FetchError(Failure.FETCH_ERROR, f"{url!r} is not a URL: {error}") from error
    if not known:
        raise FetchError(Rejection.OUT_OF_SCOPE, f"got the URL {url!r}, expected http or https")
    return parts._replace(path=quote(parts.path, safe=_SAFE), query=quote(parts.query, safe=f"{_SAFE}?"), fragment="")


def _ascii_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _host_header(parts: SplitResult) -> str:
    host = _ascii_host(parts)
    return f"{f'[{host}]' if ':' in host else host}{f':{parts.port}' if parts.port else ''}"


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError as error:
        raise FetchError(Failure.FETCH_ERROR, f"redirected to {target!r}, which is not a URL") from error
