"""Where a response leads as browsers follow it: Location, the header Refresh, and the refresh of a page's head."""

import html
import re
from typing import Final
from urllib.parse import quote

from ...formats.urls import canonical_url, joined

STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_LONGEST_SECONDS: Final = 10  # later a page shows itself and only reloads
_HEAD_BYTES: Final = 1 << 14
_REFRESH: Final = re.compile(
    r"\s*+([0-9]++)[0-9.]*+(?:\s*+[;,]|\s)\s*+(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.DOTALL | re.I
)
_UNSEEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(noscript|script|style|template)\b.*?(?:</\1|\Z)", re.DOTALL | re.IGNORECASE
)
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
