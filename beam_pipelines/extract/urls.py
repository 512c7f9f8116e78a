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
    query = urlencode(
        sorted(
            (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.match(name)
        )
    )
    path = re.sub(r"/{2,}", "/", quote(parts.path, safe=_SAFE)).rstrip("/")
    return urlunsplit(("http", host, path or "/", query, ""))


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
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    return _domain_of_host(host) if host else ""
