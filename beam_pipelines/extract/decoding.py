"""Decodes the bytes of a page: the bytes themselves count more than the declared charset."""

import codecs
import contextlib
import re

_DECLARED = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{1,100}?encoding\s*=\s*["']([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_HEAD_BYTES = 4096
_NO_CHARSET = re.compile(r"escape|idna|punycode|mbcs|oem|undefined|utf-7")
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
_HIGH = bytes(range(128, 256))


# Windows-1252 has characters where Latin-1 has control codes; both are used to read UTF-8 wrongly.
_WINDOWS = {
    ord(bytes([code]).decode("cp1252")): code
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


def decode(payload: bytes, charset: str) -> str | None:
    """Returns the text of a page; ``None`` for binary data.

    Valid UTF-8 is decoded as UTF-8 whatever the header declares: text in another charset is not valid UTF-8 by chance.
    Text that was encoded twice, by a program that read UTF-8 as Latin-1 or Windows-1252 and saved it as UTF-8, is
    decoded twice.
    Otherwise the byte order mark, the header, the page's declaration and the detected charset are used, in this order.

    Args:
      payload: bytes as they were sent.
      charset: charset in the HTTP header, or "".
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
        if b"\x1b" not in head:  # ISO-2022-JP consists of ASCII bytes
            return _once_encoded(payload.decode("utf-8"))
    except UnicodeDecodeError:
        pass  # not UTF-8, or not all of it: what the page declares and its bytes decide below
    declared = _XML.search(head) or _DECLARED.search(head)
    named = next(filter(_is_charset, (charset, declared.group(1).decode("ascii") if declared else "")), "")
    # Bytes that are nearly valid UTF-8 are UTF-8 with a truncated or foreign character.
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


def _once_encoded(text: str) -> str:
    """Returns the text behind one that was encoded twice as a whole; other texts are returned as they are."""
    for sign, table in (("", None), ("â€", _WINDOWS)):  # the sign begins all quotes and dashes
        if sign in text and not text.isascii():
            # A character beyond Latin-1, or bytes that are not UTF-8: correct text is never both by chance.
            with contextlib.suppress(UnicodeError):
                return (text.translate(table) if table else text).encode("latin-1").decode("utf-8")
    return text


def _is_charset(name: str) -> bool:
    """Returns whether a declared name is a charset that is used for pages; some pages declare other names."""
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    # Only the private attribute distinguishes charsets from codecs such as "zip" and "hex".
    return known._is_text_encoding and not _NO_CHARSET.search(known.name)  # noqa: SLF001
