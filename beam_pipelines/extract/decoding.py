"""Bytes of a page to text, by what they are rather than by what is said of them."""

import codecs
import re

_DECLARED = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{1,100}?encoding\s*=\s*["']([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_HEAD_BYTES = 4096
_NO_CHARSET = re.compile(r"escape|idna|punycode|mbcs|oem|undefined|utf-7")
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
_HIGH = bytes(range(128, 256))


def decode(payload: bytes, charset: str) -> str | None:
    """Text of a page; ``None`` for bytes that are no text.

    Valid UTF-8 is UTF-8 whatever a header says: no text in another charset passes for it by chance. Else the byte order mark,
    the header, the page's own declaration and the detected charset are tried, in this order.

    Args:
      payload: as it was sent.
      charset: of the HTTP header, or "".
    """
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    head = payload[:_HEAD_BYTES]
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if head.startswith(mark):
            return payload[len(mark) :].decode(name, "replace")
    if len(head) - len(head.translate(None, _CONTROL)) > len(head) // 20:
        return None
    try:
        if b"\x1b" not in head:  # ISO-2022-JP is ASCII too
            return payload.decode("utf-8")
    except UnicodeDecodeError:
        pass
    declared = _XML.search(head) or _DECLARED.search(head)
    named = next(filter(_is_charset, (charset, declared.group(1).decode("ascii") if declared else "")), "")
    # What is nearly UTF-8 is UTF-8 with a cut or foreign character in it.
    if not named or named.lower().replace("-", "").replace("_", "") in (
        "utf8",
        "iso88591",
        "latin1",
        "windows1252",
        "usascii",
    ):
        text = payload.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        if broken * 20 < len(payload) - len(payload.translate(None, _HIGH)):
            return text
    return str(
        bytes_to_str(
            payload,
            named or detect_encoding(payload) or "utf-8",
            errors="replace",
            fallback_encodings=("utf-8", "windows-1252"),
        )
    )


def _is_charset(name: str) -> bool:
    """Whether a name is that of a charset that pages are written in; templates and strangers name others."""
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return known._is_text_encoding and not _NO_CHARSET.search(known.name)  # noqa: SLF001 - the only way to tell it from "zip" and "hex"
