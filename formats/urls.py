"""Canonical URLs, so that each page has one id, and registered domains, which identify publishers."""

import ipaddress
import re
from functools import cache, lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, unquote_to_bytes, urljoin, urlsplit, urlunsplit

from .files import packaged

# Query parameters that say where a reader came from, or who he is, on any site; facts of ClearURLs and Brave.
_TRACKING: Final = (
    r"utm_.*|mtm_.*|pk_(?:campaign|kwd|source|medium|content|cid)|hsa_.*|ga_(?:source|medium|term|content|campaign|place)"
    r"|itm_(?:source|medium|campaign|content|channel|audience)|ns_(?:mchannel|campaign|source|linkname|fee)"
    r"|at_(?:medium|campaign|campaign_type|custom\d|link_\w+|bbc_team|ptr_name|format|variant|content|emailtype|recipient\w*)"
    r"|wt_z?mc|wt\.(?:mc_id|nav|z_\w+|tsrc|srch|ac)|sc_(?:campaign|channel|content|medium|cid|country)|fb_(?:action_\w+|source|ref)"
    r"|fbclid|gclid|gclsrc|gbraid|wbraid|dclid|msclkid|yclid|ysclid|ymclid|twclid|ttclid|li_fat_id|igsh(?:id)?|epik"
    r"|irclickid|dicbo|tblci|obclid|srsltid|rb_clickid|wickedid|_openstat|mc_[ce]id|mc_tc|mkt_tok|_hsenc|_hsmi|__hssc"
    r"|__hstc|__hsfp|hsctatracking|vero_(?:id|conv)|oly_(?:anon|enc)_id|s_cid|s_kwcid|ml_subscriber(?:_hash)?|_bta_\w+"
    r"|trk_(?:contact|msg|module|sid)|_ke|_kx|__s|zanpid|xtor|cmpid|ncid|_ga|_gl|gws_rd|ref_src|ref_url|soc_(?:src|trk)"
    r"|__twitter_impression|guccounter|guce_referrer(?:_sig)?|ga_cid|spm|feedtype|feedname|sr_share|mbid"
)
# Sessions: by their names, or by a value that is a long token, where the name may also be that of a story.
_SESSIONS: Final = (
    r"(?:\w*sess(?:ion)?_?id|aspsessionid\w*|cfid|cftoken|zenid|oscsid|xtcsid)=.*|s=[0-9a-f]{32}"
    r"|s(?:id|ess(?:ion)?)=(?=[^=]*\d)(?=[^=]*[a-z])[0-9a-z,-]{16,}"
)
_PATH_SESSION: Final = re.compile(r"(?i);(?:jsessionid|phpsessid|sessionid|sid)=[^/;?]*|/\([A-Z]\([0-9a-z]{16,}\)\)")
# The same of sites, with all hosts below them: elsewhere these names may be those of pages.
_OF_SITES: Final = {
    site: names
    for sites, names in map(str.split, packaged(__package__, "tracking_of_sites.txt").splitlines())
    for site in sites.split(",")
}
_SCHEMES = ("http", "https")
_DEFAULT_PORTS = (None, 80, 443)
_SAFE = "/:@!$&'()*+,;=~-._%"
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = re.compile(r"[\w.~!$'()*,:@-]", re.ASCII)  # and what programs escape or not as they like
_ONE_SLASH: Final = re.compile(r"(?i)^(https?):/(?!/)")
# Most URLs of news pages need no parsing: a host in lower case and a path of characters that are never quoted.
_HOST = r"https?://(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*)"
_PLAIN = re.compile(rf"(?:{_HOST})?((?:/[A-Za-z0-9_.~!$&'*+,:=@-]+)*)(/?)(?:\?([!\"$-~]*))?", re.ASCII)
_PLAIN_HOST = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?:[/?#]|\Z)")
_PLAIN_QUERY = re.compile(r"[\w.~-]*(?:=[\w.~-]*)?(?:&[\w.~-]*(?:=[\w.~-]*)?)*", re.ASCII)


def joined(base: str, link: str) -> str:
    """A link of a page as browsers join it with the page's URL; "" if it is no URL.

    White space around it and line ends in it are left out, and a backslash in its path is a slash.

    >>> joined("http://news.example/a/b", " c d?e=1 ")
    'http://news.example/a/c d?e=1'
    """
    path, mark, rest = re.sub(r"[\t\r\n]", "", link).strip().partition("?")
    if ":" not in path.partition("/")[0] or path[:4].lower() == "http":
        path = path.replace("\\", "/")
    try:
        return urljoin(base, _ONE_SLASH.sub(r"\1://", path + mark + rest))
    except ValueError:
        return ""


def canonical_url(url: str, base: str = "") -> str:
    """Returns the canonical form of a URL.

    The host is in lower case without "www."; default port, fragment, trailing slash, sessions, and parameters that
    track readers (on any site, or on this one) are removed; escapes have one form (RFC 3986, 6.2.2); the query is
    sorted; https becomes http, because feeds and pages use both for the same article.

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
    asked = _query(query, host or root[7:]) if query else ""
    return f"{root}{path or '/'}?{asked}" if asked else f"{root}{path or '/'}"


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
        parts = urlsplit(urljoin(base, _ONE_SLASH.sub(r"\1://", url.strip())))
        port = parts.port
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme.lower() not in _SCHEMES or not host:
        return ""
    host = _ascii_host(host.removeprefix("www.") or host)
    if ":" in host:
        host = f"[{host}]"
    asked = _query(parts.query, host) if parts.query else ""
    if port not in _DEFAULT_PORTS:
        host = f"{host}:{port}"
    path = quote(_PATH_SESSION.sub("", parts.path), safe=_SAFE, errors="replace")
    path = urljoin("/", re.sub(r"/{2,}", "/", _ESCAPE.sub(_plain_escape, path))).rstrip("/")
    return urlunsplit(("http", host, path or "/", asked, ""))


def _plain_escape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if _UNRESERVED.match(character) else found[0].upper()


def _ascii_host(host: str) -> str:
    import idna

    try:
        return host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except UnicodeError:
        return host


def _query(query: str, host: str) -> str:
    """Returns a query without sessions and tracking parameters, sorted, in one spelling."""
    pieces = [piece.partition("=") for piece in query.split("&") if piece]
    if not _PLAIN_QUERY.fullmatch(query):
        pieces = [(_one_spelling(name), mark, _one_spelling(value)) for name, mark, value in pieces]
    is_no_page = _no_pages(host).fullmatch
    named = sorted((name, value) for name, _, value in pieces)
    return "&".join(text for name, value in named if not is_no_page(text := f"{name}={value}"))


def _one_spelling(text: str) -> str:
    return quote_plus(unquote_to_bytes(text.replace("+", " ")))


@lru_cache(maxsize=10_000)
def _no_pages(host: str) -> re.Pattern[str]:
    """Parameters of a host, each as ``name=value``, that do not say which page is meant."""
    labels = host.split(".")
    own = [_OF_SITES.get(".".join(labels[-count:])) for count in (2, 3)]
    return _compiled("|".join(filter(None, (_TRACKING, *own))))


@cache
def _compiled(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:{names})=.*|{_SESSIONS}")


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
