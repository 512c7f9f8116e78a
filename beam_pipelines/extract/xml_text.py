"""XML as feeds, sitemaps and XHTML are sent: decoded, and repaired where it is not well-formed."""

import functools
import html.entities
import re
from typing import Any, Final
from xml.sax.saxutils import escape

from lxml import etree

from .charsets import decode, readable

_PROLOG: Final = r"(?>[\s\ufeff]+|<\?.*?\?>|<!--.*?-->)*+"  # never tried in two ways
_TYPE: Final = r"<!DOCTYPE[^>\[]*(?:\[(.*?)\]\s*)?>"
_DOCTYPE: Final = re.compile(f"(?is){_PROLOG}({_TYPE})")
_ROOT: Final = re.compile(rf"(?is){_PROLOG}(?:{_TYPE})?{_PROLOG}<(?:[\w.-]+:)?([A-Za-z][\w.-]*)")
_START: Final = re.compile(r"(?i)<\?xml\b|<(?:[\w.-]+:)?(?:rss|feed|rdf|urlset|sitemapindex)\b")
_OF_PAGES: Final = re.compile(r"(?i)<(?:!doctype html|html|head|body)\b")
_JUNK_CHARACTERS: Final = 20_000  # before the document, such as warnings of PHP
_DECLARATION: Final = re.compile(r"[\s\ufeff]*<\?xml\b[^>]*\?>")
_ENTITY: Final = re.compile(r"<!ENTITY\s+(\w+)\s+(?:\"([^\"<&%]*)\"|'([^'<&%]*)')\s*>")
_REFERENCE: Final = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?:(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{1,31});)?|<(?![A-Za-z_/!?])",
    re.DOTALL,
)
_PREDEFINED: Final = ("amp", "lt", "gt", "quot", "apos")
_NO_CHARACTERS: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_WIDE: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_HEAD_BYTES: Final = 1 << 16
# Of parsers: nothing is fetched, and entities are not expanded.
SAFE: Final[dict[str, Any]] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def head_of(payload: bytes) -> str:
    """The beginning of a document for a look at its markup: UTF-16 as such, all else byte by byte."""
    head = payload[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    return head.decode(_WIDE.get(head[:2], "latin-1"), "replace")


def root_of(text: str) -> str:
    """The name of the first element in lower case, without prefix, after comments, declarations and white space.

    Warnings of a program before the document are passed over.

    >>> root_of("<?xml version='1.0'?><!-- <html> --><rdf:RDF>"), root_of("no markup")
    ('rdf', '')
    """
    found = _ROOT.match(text, _start_of(text))
    return found[2].lower() if found else ""


def _start_of(text: str) -> int:
    """Where a document begins: at its start, or after lines of another program."""
    start = _START.search(text, 0, _JUNK_CHARACTERS)
    junk = text[: start.start()].strip("\ufeff \t\r\n") if start else ""
    is_document = _ROOT.match(text) is not None and not junk.startswith("<br")
    is_text = start is not None and not junk.startswith("<") and not start[0].startswith("<?")
    return 0 if start is None or is_document or is_text or _OF_PAGES.search(junk) else start.start()


def xml_source(payload: bytes, charset: str) -> bytes | None:
    """A document in UTF-8 that a parser reads without loss; ``None`` for binary data.

    The declaration and the document type are left out, whose plain entities are replaced. So are the named characters
    of HTML and those that XML does not have; an ampersand or ``<`` that begins nothing stands for itself.

    Args:
      payload: the bytes as they were sent.
      charset: charset in the HTTP header, or "".
    """
    wide = _WIDE.get(payload[:2])
    text = payload.decode(wide, "replace").removeprefix("\ufeff") if wide else decode(payload, charset)
    if text is None:
        return None
    text = text[_start_of(text) :]
    declaration = _DECLARATION.match(text)
    text = text[declaration.end() :] if declaration else text
    document_type, own = _DOCTYPE.match(text, 0, _HEAD_BYTES), dict[str, str]()
    if document_type:
        own = {name: first or second for name, first, second in _ENTITY.findall(document_type[2] or "")}
        text = text[document_type.end() :]
    return _REFERENCE.sub(functools.partial(_repaired, own), _NO_CHARACTERS.sub("", text)).encode("utf-8")


def _repaired(own: dict[str, str], found: re.Match[str]) -> str:
    name = found[1]
    if found[0].startswith("<!") or name in _PREDEFINED:
        return found[0]
    if name in own:
        return escape(own[name])
    if not name or (name[0] != "#" and f"{name};" not in html.entities.html5):
        return escape(found[0])
    return escape(_NO_CHARACTERS.sub("", html.unescape(found[0])))


def parse_xml(source: bytes, *, recover: bool = True) -> Any:
    """The root of a document from `xml_source`; ``None`` if nothing is left of it. Nothing is fetched.

    Raises:
      etree.XMLSyntaxError: without `recover`, for a document that is not well-formed.
    """
    return etree.fromstring(source, etree.XMLParser(recover=recover, **SAFE))


def page_text(kind: str, payload: bytes, charset: str) -> str | None:
    """The text of a "page" or of "xhtml"; ``None`` for binary data."""
    return (html_of(payload, charset) if kind == "xhtml" else None) or decode(payload, charset)


def html_of(payload: bytes, charset: str) -> str | None:
    """XHTML as HTML, which writes empty elements and CDATA in another way; ``None`` if it is not well-formed."""
    source = xml_source(payload, charset)
    try:
        root = parse_xml(source, recover=False) if source else None
    except etree.XMLSyntaxError:
        return None
    if root is None:
        return None
    for node in root.iter(etree.Element):
        node.tag = local_name(node)
    return str(etree.tostring(root, method="html", encoding="unicode"))


def local_name(node: Any) -> str:
    """The tag of an XML element in lower case, without its namespace or prefix; "" for comments and the like."""
    return re.split("[}:]", node.tag)[-1].lower() if isinstance(node.tag, str) else ""


def child_text(node: Any, *path: str) -> str:
    """The text of the first descendant at a path of local names, white space collapsed; "" if there is none.

    An element of the parent's own namespace comes first: ``media:title`` is the title of a photo.
    """
    for name in path:
        found = [child for child in node if local_name(child) == name]
        if not found:
            return ""
        node = next((child for child in found if _space(child) == _space(node)), found[0])
    return whole_text(node)


def _space(node: Any) -> str:
    return str(node.tag[: -len(re.split("[}:]", node.tag)[-1])])


def whole_text(node: Any) -> str:
    """The text of an element and its descendants, white space collapsed."""
    return readable("".join(node.itertext()))
