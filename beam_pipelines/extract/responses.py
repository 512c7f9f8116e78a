"""What a response is, by WHATWG's standards Fetch and MIME Sniffing, and where it leads, as browsers follow it."""

import html
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from ...formats.codings import is_text
from ...formats.urls import canonical_url, joined
from .xml_text import head_of, root_of

_TYPE: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+", re.ASCII)
_COMMA: Final = re.compile(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*\Z)")  # not between quotation marks
_CHARSET: Final = re.compile(r"(?i);\s*charset\s*=\s*(?:\"([^\"]*)\"?|([^;\s]*))")
_UNKNOWN: Final = ("", "unknown/unknown", "application/unknown", "*/*")
_HTML: Final = re.compile(
    r"(?i)[\s\ufeff]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta"
    r"|link|base|main|article|section|header|nav)(?=[\s/>]))",
)
_FEEDS: Final = ("rss", "feed", "rdf")
# The first bytes of what is no text (MIME Sniffing, 6 and 7.1).
_SIGNATURES: Final = (
    (re.compile(rb"GIF8[79]a|\x89PNG\r\n\x1a\n|\xff\xd8\xff|BM|RIFF....WEBPVP", re.DOTALL), "image/unknown"),
    (re.compile(rb"%PDF-"), "application/pdf"),
    (re.compile(rb"\x1f\x8b\x08"), "application/gzip"),
)


def media_type(values: Iterable[str]) -> tuple[str, str]:
    """The type of Content-Type headers, of which the last valid one counts, and its charset; "" for none.

    >>> media_type(["text/html; charset=gbk", "TEXT/HTML", "html"])
    ('text/html', 'gbk')
    """
    kind = charset = ""
    for value in _COMMA.split(",".join(values)[:1_000]):
        found = value.partition(";")[0].strip().lower()
        if _TYPE.fullmatch(found) and found != "*/*":
            named = _CHARSET.search(value)
            own = (named[1] or named[2] or "") if named else ""
            kind, charset = found, own or (charset if found == kind else "")
    return kind, charset


def kind_of(content_type: str, payload: bytes) -> str | None:
    """How a response is read: as a "page", "xhtml", a "feed" or an "image"; ``None`` for other types.

    XML is XHTML if its root is that of a page, else a feed, if anything. A type that is stated is believed, but feeds
    are read as what they are. Plain text is no page, whatever it begins with.

    Args:
      content_type: of the header, without parameters; "" if there is none, and the bytes decide.
      payload: the body.
    """
    if content_type in _UNKNOWN:
        content_type = _sniffed(payload)
    if content_type.startswith("image/") and not content_type.endswith("+xml"):
        return "image"
    if content_type == "text/html":
        return "page"
    root = root_of(head_of(payload))
    if content_type == "application/xhtml+xml" or (root == "html" and content_type.endswith("xml")):
        return "xhtml"
    if content_type.endswith(("xml", "json", "rss", "atom")):
        return "feed"
    return "feed" if root in _FEEDS else None


def _sniffed(payload: bytes) -> str:
    if payload.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<?xml"):
        return "text/xml"
    if _HTML.match(head_of(payload)):
        return "text/html"
    if payload.lstrip()[:1] == b"{":
        return "application/json"
    found = next((kind for sign, kind in _SIGNATURES if sign.match(payload)), "")
    return found or ("text/plain" if is_text(payload) else "application/octet-stream")


STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_LONGEST_SECONDS: Final = 10  # later a page shows itself and only reloads
_HEAD_BYTES: Final = 1 << 14
_REFRESH: Final = re.compile(
    r"(?is)\s*+([0-9]++)[0-9.]*+(?:\s*+[;,]|\s)\s*+(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))"
)
_UNSEEN: Final = re.compile(r"(?is)<!--.*?(?:-->|\Z)|<(noscript|script|style|template)\b.*?(?:</\1|\Z)")
_META: Final = re.compile(
    r"<meta\s(?=[^>]*http-equiv\s*=\s*[\"']?refresh\b)[^>]*?\bcontent\s*=\s*(\"[^\"]*|'[^']*|[^\s>]+)", re.I
)
_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))


def target_of(url: str, status: int, location: str, refresh: str, body: bytes) -> str:
    """The absolute URL to which a response leads; "" if it is what it is.

    A refresh counts if it comes within ten seconds and leads to another page.

    Args:
      url: of the response.
      status: of HTTP.
      location: the header Location, each byte as a character, or "".
      refresh: the header Refresh in the same way.
      body: without codings; "" if it is no page.
    """
    if status in STATUSES:
        return joined(url, _text_of(location)) if location.strip() else ""
    if status != 200:
        return ""
    head = body[:_HEAD_BYTES] if re.search(rb"refresh", body[:_HEAD_BYTES], re.IGNORECASE) else b""
    meta = _META.search(_UNSEEN.sub("", head.decode("utf-8", "replace")))
    stated = (_text_of(refresh), html.unescape(meta[1].lstrip("\"'")) if meta else "")
    for found in filter(None, map(_REFRESH.match, stated)):
        target = joined(url, (found[2] or found[3] or found[4] or "").strip())
        if int(found[1][:9]) <= _LONGEST_SECONDS and canonical_url(target) not in ("", canonical_url(url)):
            return target
    return ""


def _text_of(value: str) -> str:
    """A header as text: UTF-8, or else with its other bytes escaped."""
    raw = value.encode("latin-1", "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return quote(raw, safe=_ASCII + " ")
