"""One HTTP request with every bound that a crawler needs: the peer's address vetted after connecting, time, bytes, redirects."""

import dataclasses
import fnmatch
import http.client
import io
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from ..records import Failure, Rejection
from .options import CrawlOptions

_CHUNK_BYTES = 1 << 16
_SAFE = "/:@!$&'()*+,;=~-._%"
_REDIRECTS = {301, 302, 303, 307, 308}
_KEPT_TYPES = ("text/html", "application/xhtml", "xml", "rss", "atom", "json", "image/", "text/plain")


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A response as it came: final URL, status line and headers, and the body."""

    url: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def content_type(self) -> str:
        return next((value for name, value in self.headers if name.lower() == "content-type"), "").lower()


class FetchError(Exception):
    """A request that brought nothing to keep, and why."""

    def __init__(self, reason: Rejection | Failure, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail


class Fetcher:
    """Requests to the hosts of one site, one at a time, over kept-alive connections.

    Args:
      options: bounds, user agent, ``resolve`` and whether private addresses are allowed.
    """

    def __init__(self, options: CrawlOptions) -> None:
        self._options = options
        self._connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def fetch(self, url: str, vet_redirect: Callable[[str], None] = lambda _url: None) -> Fetched:
        """Fetches a URL, following redirects.

        Args:
          url: what to fetch.
          vet_redirect: called with the target of each redirect before it is requested; raises to stop there.

        Raises:
          FetchError: on anything that is not a 200 of a kind that is kept, within the bounds.
        """
        deadline = time.monotonic() + self._options.timeout_seconds
        for _ in range(self._options.max_redirects + 1):
            fetched = self._request(url, deadline)
            target = next((value for name, value in fetched.headers if name.lower() == "location"), "")
            if fetched.status not in _REDIRECTS or not target:
                return self._kept(fetched)
            url = _joined(url, target)
            vet_redirect(url)
        raise FetchError(Failure.FETCH_ERROR, f"more than {self._options.max_redirects} redirects")

    def _kept(self, fetched: Fetched) -> Fetched:
        if fetched.status != 200:
            raise FetchError(Failure.HTTP_ERROR, f"{fetched.status} {fetched.reason}")
        if fetched.content_type and not any(kind in fetched.content_type for kind in _KEPT_TYPES):
            raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, fetched.content_type)
        return fetched

    def _request(self, url: str, deadline: float) -> Fetched:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FetchError(Rejection.OUT_OF_SCOPE, f"got the URL {url!r}, expected http or https")
        # A kept-alive connection may have been closed by the server meanwhile: one more try on a fresh one.
        for attempt in (1, 2):
            try:
                return self._exchange(url, deadline)
            except FetchError:
                self._drop(parts.scheme, parts.netloc)
                raise
            except TimeoutError as error:
                self._drop(parts.scheme, parts.netloc)
                raise FetchError(Failure.TIMEOUT, f"no answer within {self._options.timeout_seconds} s") from error
            except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
                reused = self._drop(parts.scheme, parts.netloc)
                if attempt == 2 or not reused:
                    raise FetchError(Failure.FETCH_ERROR, f"{type(error).__name__}: {error}") from error
        raise AssertionError("unreachable")

    def _drop(self, scheme: str, netloc: str) -> bool:
        connection = self._connections.pop((scheme, netloc), None)
        if connection is not None:
            connection.close()
        return connection is not None

    def _exchange(self, url: str, deadline: float) -> Fetched:
        parts = urlsplit(url)
        connection = self._connections.get((parts.scheme, parts.netloc)) or self._connect(parts.scheme, parts.netloc, deadline)
        bounded: Any = connection.sock
        bounded.deadline = deadline
        target = quote(parts.path or "/", safe=_SAFE)
        if parts.query:
            target += "?" + quote(parts.query, safe=f"{_SAFE}?")
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        for name, value in (
            ("Host", parts.netloc.rpartition("@")[2]),
            ("User-Agent", self._options.user_agent),
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
        ):
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        body = self._read(response)
        if response.will_close:
            self._drop(parts.scheme, parts.netloc)
        return Fetched(url, response.status, response.reason, tuple(response.getheaders()), body)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        chunks, size = [], 0
        while chunk := response.read1(_CHUNK_BYTES):
            chunks.append(chunk)
            size += len(chunk)
            if size > self._options.max_bytes:
                raise FetchError(Failure.TOO_LARGE, f"more than {self._options.max_bytes} bytes")
        if response.length:  # read1 takes the end of the connection for the end of the body
            raise http.client.IncompleteRead(b"", response.length)
        # read1 leaves a whole response open, and the connection then answers no further request.
        response.close()
        return b"".join(chunks)

    def _connect(self, scheme: str, netloc: str, deadline: float) -> http.client.HTTPConnection:
        parts = urlsplit(f"{scheme}://{netloc}")
        host, port = parts.hostname or "", parts.port or (443 if scheme == "https" else 80)
        address = self._resolved(host, port)
        raw = socket.create_connection(address, timeout=max(0.01, deadline - time.monotonic()))
        try:
            self._vet(raw.getpeername()[0])
            if scheme == "https":
                raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
        connection = http.client.HTTPConnection(host, port)
        connection.sock = _BoundedSocket(raw, deadline)
        self._connections[scheme, netloc] = connection
        return connection

    def _resolved(self, host: str, port: int) -> tuple[str, int]:
        for entry in self._options.resolve:
            pattern, _, address = entry.partition("=")
            if fnmatch.fnmatch(host, pattern):
                name, _, number = address.rpartition(":")
                return name.strip("[]"), int(number)
        return host, port

    def _vet(self, peer: str) -> None:
        """Refuses addresses inside our own network, by the address that was really connected to, so that no DNS answer or redirect gets by."""
        address = ipaddress.ip_address(peer.partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None) or address
        if not self._options.allow_private_addresses and (not mapped.is_global or mapped.is_multicast):
            raise FetchError(Rejection.PRIVATE_ADDRESS, f"{peer}; allow with --allow_private_addresses=true")


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError as error:
        raise FetchError(Failure.FETCH_ERROR, f"redirected to {target!r}, which is no URL") from error


class _BoundedSocket:
    """What ``http.client`` uses of a socket, with one deadline for all of its waits.

    A timeout of the socket itself starts anew with every packet: a server that drips bytes would never hit it.
    """

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self.deadline = deadline

    def bound(self) -> None:
        """Gives the next wait what is left of the request's time."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)

    def sendall(self, data: Any) -> None:
        self.bound()
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_BoundedReader(self, self._sock.makefile("rb", buffering=0)))

    def close(self) -> None:
        self._sock.close()


class _BoundedReader(io.RawIOBase):
    def __init__(self, bounded: _BoundedSocket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._bounded = bounded
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._bounded.bound()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
