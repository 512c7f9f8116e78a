"""Canonical URLs, so that each page has one id, and registered domains, which identify publishers."""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

# Query parameters that track where a reader came from and do not identify the page.
_TRACKING = re.compile(
    r"^(utm_.*|hp|gws_rd|action|pgtype|clicksource|module|region|wt\..*|fbclid|gclid|dclid|msclkid|mc_[ce]id|igshid"
    r"|cmpid|cmp|ito|ftag|ncid|ref|ref_src|ref_url|smid|smtyp|partner|rss|emc|_r|sr_share|xtor|via|share|feedtype"
    r"|feedname|_ga|hsid|ocid|spm)$",
    re.IGNORECASE,
)
_SCHEMES = ("http", "https")
_DEFAULT_PORTS = (None, 80, 443)
_SAFE = "/:@!$&'()*+,;=~-._%"
# Most URLs of news pages need no parsing: a host in lower case and a path of characters that are never quoted.
_HOST = r"https?://(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*)"
_PLAIN = re.compile(rf"(?:{_HOST})?((?:/[A-Za-z0-9_.~%!$&'()*+,:=@-]+)*)(/?)(?:\?([!\"$-~]*))?", re.ASCII)
_PLAIN_HOST = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?:[/?#]|\Z)")
_PLAIN_QUERY = re.compile(r"[\w.~-]*(?:=[\w.~-]*)?(?:&[\w.~-]*(?:=[\w.~-]*)?)*", re.ASCII)


def canonical_url(url: str, base: str = "") -> str:
    """Returns the canonical form of a URL.

    The host is in lower case without "www."; default port, fragment, tracking parameters and trailing slash are
    removed; the query is sorted; https becomes http, because feeds and pages use both for the same article.

    >>> canonical_url("HTTPS://www.Example.com:443/a/?utm_source=x&b=2&a=1#top")
    'http://example.com/a?a=1&b=2'

    Args:
      url: absolute URL, or relative to ``base``.
      base: URL of the page that contains ``url``.

    Returns:
      "" if the result is not an absolute http(s) URL.
    """
    plain = _PLAIN.fullmatch(url)
    if plain is None or not url or "/." in url:
        return parsed_url(url, base)
    host, path, slash, query = plain.groups()
    if host is None and not (path or slash):
        return parsed_url(url, base)  # a query of the page itself
    own = _root(base)
    if own is None or (host is None and not own):
        return parsed_url(url, base)
    root = own if host is None else f"http://{host}"
    return f"{root}{path or '/'}?{asked}" if query and (asked := _query(query)) else f"{root}{path or '/'}"


@lru_cache(maxsize=1_000)
def _root(base: str) -> str | None:
    """Returns scheme and host of canonical URLs below a base; "" if it has none, ``None`` if it cannot be parsed."""
    try:
        urljoin(base, "/")
    except ValueError:
        return None
    return parsed_url("/", base).removesuffix("/")


def parsed_url(url: str, base: str) -> str:
    """Returns what :func:`canonical_url` returns, by parsing the URL in full; slower by a factor of five to ten."""
    try:
        # A single slash after the scheme is a common mistake of templates and archives.
        parts = urlsplit(urljoin(base, re.sub(r"^(https?):/(?!/)", r"\1://", url.strip(), flags=re.IGNORECASE)))
        port = parts.port
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme.lower() not in _SCHEMES or not host:
        return ""
    host = host.removeprefix("www.") or host
    if ":" in host:
        host = f"[{host}]"
    if port not in _DEFAULT_PORTS:
        host = f"{host}:{port}"
    path = re.sub(r"/{2,}", "/", quote(parts.path, safe=_SAFE)).rstrip("/")
    return urlunsplit(("http", host, path or "/", _query(parts.query), ""))


def _query(query: str) -> str:
    """Returns a query without tracking parameters, sorted, in one spelling."""
    if not query:
        return ""
    if not _PLAIN_QUERY.fullmatch(query):
        pairs = parse_qsl(query, keep_blank_values=True)
        return urlencode(sorted((name, value) for name, value in pairs if not _TRACKING.match(name)))
    pieces = (piece.partition("=") for piece in query.split("&") if piece)
    return "&".join(f"{name}={value}" for name, _, value in sorted(pieces) if not _TRACKING.match(name))


@lru_cache(maxsize=100_000)
def _domain_of_host(host: str) -> str:
    from tld import get_fld

    try:
        ipaddress.ip_address(host)
    except ValueError:
        known = get_fld(f"http://{host}", fail_silently=True)
        return str(known) if known else ".".join(host.split(".")[-2:])
    return host


def registered_domain(url: str) -> str:
    """Returns the registered domain of a URL ("bbc.co.uk").

    An unknown suffix gives the last two labels, an IP address is returned unchanged, and a URL without a host gives "".
    """
    plain = _PLAIN_HOST.match(url)
    try:
        host = plain[1] if plain else (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    return _domain_of_host(host) if host else ""
