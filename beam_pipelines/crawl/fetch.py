"""HTTP requests with limits on time, bytes and redirects; only addresses on the public internet are connected to."""

import asyncio
import dataclasses
import datetime
import email.utils
import fnmatch
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import aiohttp
import aiohttp.abc
import idna
import yarl

from ...formats.codings import ACCEPTED, BrokenCodingError, TooLargeError, undo_codings
from ...formats.records import Failure, Rejection
from ..extract.responses import STATUSES, kind_of, media_type, target_of
from .options import CrawlOptions

_CHUNK_BYTES = 1 << 16
_MAX_HOSTS = 8  # with connections that are kept: enough for one site
_SAFE = "/:@!$&'()*+,;=~-._%"
_MAX_HEADER_BYTES = 1 << 18  # of one line, as browsers allow for all
_MAX_HEADERS = 1_000
_NO_RETRY = {501, 505, 511}
PAGE_TYPES = ("text/html", "application/xhtml", "xml", "rss", "atom", "json", "text/plain")
IMAGE_TYPES = ("image/",)

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python reports these as global, or did in some releases; none of them is a news site. Inside Azure's virtual machines
# 168.63.129.16 is the address of the host.
_REFUSED_NETWORKS = "168.63.129.16/32 192.0.0.0/24 192.88.99.0/24 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
_REFUSED = tuple(map(ipaddress.ip_network, _REFUSED_NETWORKS.split()))


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
      date: UTC time at which the response was complete.
    """

    url: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    request: bytes = b""
    date: datetime.datetime = dataclasses.field(default_factory=lambda: datetime.datetime.now(datetime.UTC))

    def header(self, name: str) -> str:
        """Returns the first value of a header, given in lower case, or ""."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def content_type(self) -> str:
        """Media type in lower case, without parameters, or ""."""
        return self._media_type[0]

    @property
    def charset(self) -> str:
        """Charset of the header Content-Type, or ""."""
        return self._media_type[1]

    @property
    def kind(self) -> str | None:
        """How the response is read, see `kind_of`."""
        return kind_of(self.content_type, self.body)

    @property
    def _media_type(self) -> tuple[str, str]:
        return media_type(value for key, value in self.headers if key.lower() == "content-type")


@dataclasses.dataclass(eq=False)
class FetchError(Exception):
    """A request without a response to store.

    Attributes:
      reason: rejection or failure under which the URL is counted.
      detail: description for the dead letter.
      retry: whether another attempt may succeed.
      status: HTTP status code; 0 without a response.
      retry_after: seconds that the server asks the client to wait; ``None`` if it does not.
    """

    reason: Rejection | Failure
    detail: str
    retry: bool = False
    status: int = 0
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}"


class _Resolver(aiohttp.abc.AbstractResolver):
    """Looks names up in the option ``resolve``, then in DNS."""

    def __init__(self, overrides: tuple[str, ...]) -> None:
        self._overrides = [entry.partition("=")[::2] for entry in overrides]

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[aiohttp.abc.ResolveResult]:
        place = next((place for pattern, place in self._overrides if fnmatch.fnmatch(host, pattern)), "")
        address, _, number = place.rpartition(":")
        name, loop = address.strip("[]") or host, asyncio.get_running_loop()
        found = await loop.getaddrinfo(name, number or port, family=family, type=socket.SOCK_STREAM)
        return [
            aiohttp.abc.ResolveResult(
                hostname=host,
                host=str(target[0]),
                port=int(target[1]),
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for kind, _, protocol, _, target in found
        ]

    async def close(self) -> None:
        pass


class Fetcher:
    """Sends requests to the hosts of one site, one at a time, over persistent connections.

    Args:
      options: limits, user agent, ``resolve`` and whether private addresses are allowed.
    """

    def __init__(self, options: CrawlOptions) -> None:
        self._options = options
        self._runner = asyncio.Runner()
        self._session: aiohttp.ClientSession | None = None
        self._places: set[str] = set()  # hosts of the kept connections
        self._cookies: aiohttp.CookieJar | None = None  # of the redirects of one URL

    def close(self) -> None:
        """Closes all connections."""
        self._runner.run(self._disconnect())
        self._runner.close()

    def fetch(
        self,
        url: str,
        around: Callable[[str], AbstractContextManager[Any]] = nullcontext,
        *,
        types: tuple[str, ...] = (*PAGE_TYPES, *IMAGE_TYPES),
        conditions: Mapping[str, str] | None = None,
        max_bytes: int = 0,
        hops: list[Fetched] | None = None,
    ) -> Fetched:
        """Fetches a URL and follows redirects and refreshes; the timeout applies to each hop.

        Cookies that a hop sets are sent to the next ones, and then forgotten.

        Args:
          url: the URL to fetch.
          around: called with the URL of each hop, including the first; returns a context that is active during the
            request. It may wait, and may raise ``FetchError`` to stop.
          types: substrings of the content types that are accepted; ``()`` accepts all.
          conditions: headers of a conditional request; the response may then be a 304.
          max_bytes: maximum size of the body, if the limit in the options is too small.
          hops: gets the redirects on the way; the refreshes of pages are followed only where it is given.

        Raises:
          FetchError: unless the response is a 200 with an accepted content type within the limits, or a requested 304.
        """
        fetched, self._cookies = None, None
        for _ in range(self._options.max_redirects + 1):
            with around(url):
                fetched = self._request(url, conditions or {}, max(max_bytes, self._options.max_bytes))
            is_page = hops is not None and fetched.status == 200 and fetched.kind in ("page", "xhtml")
            refresh = fetched.header("refresh") if hops is not None else ""
            location, body = fetched.header("location"), fetched.body if is_page else b""
            target = target_of(fetched.url, fetched.status, location, refresh, body)
            if not target:
                if fetched.status in STATUSES and location:
                    raise FetchError(Failure.FETCH_ERROR, f"redirected to {location!r}, which is not a URL")
                return _checked(fetched, types, conditional=bool(conditions))
            if hops is not None:
                hops.append(fetched)
            url = target
        detail = f"more than {self._options.max_redirects} redirects"
        raise FetchError(Failure.FETCH_ERROR, detail, status=fetched.status if fetched else 0)

    def _request(self, url: str, conditions: Mapping[str, str], max_bytes: int) -> Fetched:
        parts = _split(url)
        try:
            return self._runner.run(self._exchange(parts, conditions, max_bytes))
        except TimeoutError as error:
            detail = f"no whole answer within {self._options.timeout_seconds} s"
            raise FetchError(Failure.TIMEOUT, detail, retry=True) from error
        except TooLargeError as error:
            raise FetchError(Failure.TOO_LARGE, f"more than {max_bytes} bytes") from error
        except (OSError, aiohttp.ClientError, BrokenCodingError, ValueError) as error:
            detail = f"{type(error).__name__}: {error}"
            raise FetchError(Failure.FETCH_ERROR, detail, retry=_is_transient(error)) from error

    async def _exchange(self, parts: SplitResult, conditions: Mapping[str, str], max_bytes: int) -> Fetched:
        host = _ascii_host(parts)
        place = f"{f'[{host}]' if ':' in host else host}{f':{parts.port}' if parts.port else ''}"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"User-Agent": self._options.user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPTED, **conditions}
        if place not in self._places and len(self._places) >= _MAX_HOSTS:
            await self._disconnect()
        session = self._session or self._connect()
        self._places.add(place)
        self._cookies = self._cookies or aiohttp.CookieJar(unsafe=True)
        address = yarl.URL(f"{parts.scheme}://{place}{target}", encoded=True)
        if cookies := self._cookies.filter_cookies(address):
            headers["Cookie"] = "; ".join(f"{name}={morsel.coded_value}" for name, morsel in cookies.items())
        body = bytearray()
        async with session.get(address, headers=headers, allow_redirects=False) as response:
            self._cookies.update_cookies(response.cookies, address)
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > max_bytes:
                    raise TooLargeError
        sent = [f"{name}: {value}" for name, value in response.request_info.headers.items()]
        # Folded header lines are joined: a line break would corrupt the WARC record.
        received = tuple(
            (name.decode("latin-1"), re.sub(r"(?:(?<!\s)\s+)?[\r\n]\s*", " ", value.decode("latin-1")).strip())
            for name, value in response.raw_headers
        )
        names = ("content-encoding", "transfer-encoding")
        codings = [value for wanted in names for name, value in received if name.lower() == wanted]
        codings = [name.strip() for value in codings for name in value.split(",")]
        if codings and codings[-1].lower() == "chunked":  # undone by aiohttp
            del codings[-1]
        content, problem = undo_codings(bytes(body), ",".join(codings), max_bytes)
        if problem:
            raise BrokenCodingError(problem)
        return Fetched(
            parts.geturl(),
            response.status,
            response.reason or "",
            received,
            content,
            "\r\n".join([f"GET {target} HTTP/1.1", *sent, "", ""]).encode("ascii", "replace"),
        )

    def _connect(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_Resolver(self._options.resolve),
                use_dns_cache=False,
                socket_factory=self._open_socket,
                happy_eyeballs_delay=None,  # addresses that race lose the reason why one was refused
            ),
            timeout=aiohttp.ClientTimeout(total=self._options.timeout_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # without a limit
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            max_headers=_MAX_HEADERS,
        )
        return self._session

    async def _disconnect(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._session = None
        self._places.clear()

    def _open_socket(self, address: Any) -> socket.socket:
        """Returns a socket for an address, which is checked here: after every lookup, for every hop."""
        family, kind, protocol, _, target = address
        self._vet(str(target[0]))
        return socket.socket(family, kind, protocol)

    def _vet(self, peer: str) -> None:
        if not self._options.allow_private_addresses and not is_public(peer):
            raise FetchError(Rejection.PRIVATE_ADDRESS, f"{peer}; allow_private_addresses=true allows it")


def is_public(peer: str) -> bool:
    """Returns whether an IP address is on the public internet; an interface after "%" is ignored.

    Loopback, private, link-local (the metadata servers of clouds), shared, multicast and reserved addresses are not
    public, also when an IPv6 address embeds them (IPv4-mapped, NAT64). Teredo and 6to4 addresses, which reach an IPv4
    address through a relay, are never public.

    >>> is_public("93.184.216.34"), is_public("64:ff9b::a00:1"), is_public("fe80::1%eth0")
    (True, False, False)
    """
    address = ipaddress.ip_address(peer.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _REFUSED)


def retry_after(value: str, now: datetime.datetime) -> float | None:
    """Returns the seconds, at least 0, that a Retry-After header requests as a number or a date (RFC 9110, 10.2.3).

    An invalid value gives ``None``.

    >>> retry_after("120", datetime.datetime.now(datetime.UTC))
    120.0
    """
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or datetime.UTC) - now).total_seconds())


def _checked(fetched: Fetched, types: tuple[str, ...], *, conditional: bool) -> Fetched:
    status, kind = fetched.status, fetched.content_type
    if status == 304 and conditional:
        return fetched
    if status != 200:
        retry = status == 429 or (status >= 500 and status not in _NO_RETRY)
        wait = retry_after(fetched.header("retry-after"), fetched.date) if retry else None
        raise FetchError(Failure.HTTP_ERROR, f"{status} {fetched.reason}", retry=retry, status=status, retry_after=wait)
    if types and kind and not any(accepted in kind for accepted in types):
        raise FetchError(Rejection.UNSUPPORTED_CONTENT_TYPE, kind)
    return fetched


def _is_transient(error: Exception) -> bool:
    """Returns whether a retry may succeed: not after an unknown host name, an invalid certificate or an invalid URL."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return error.errno == socket.EAI_AGAIN
    return not isinstance(error, aiohttp.ClientConnectorCertificateError | ValueError)


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
    return host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
