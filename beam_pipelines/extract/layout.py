"""Lays a page out: its blocks of text with their weights as prose, and its block elements, in one pass over the markup.

A block of text is prose or not by its length, links and punctuation, as in Readability and jusText.
"""

# ruff: noqa: RUF001 - the marks that pages are written with

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from lxml import etree

from .hints import Name, classify_names, is_hidden_everywhere, is_hidden_name, words

_SKIPPED = words(
    """
    script style noscript template svg canvas iframe object embed applet audio video picture img map area input button
    select textarea option datalist nav aside footer figure figcaption head link meta math dialog menu progress meter
    title
    """
)
_INLINE = words(
    """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rb rp rt rtc ruby s samp
    small span strike strong sub sup time tt u var wbr
    """
)
HEADINGS = words("h1 h2 h3 h4 h5 h6")
PARAGRAPHS = frozenset(("p", "li", "dd", "dt", "blockquote", "pre", "summary", *HEADINGS))
# Skipped elements that broken markup leaves open, so that they contain the rest of the page.
_LEFT_OPEN = words("nav aside footer button dialog menu figure")
_BREAK = "\x1e"
_BREAKS = re.compile(f"{_BREAK}(?:[^\\S{_BREAK}]*{_BREAK})+")
_MAX_LABEL = 500
_MIN_PROSE = 60
_MIN_PAGE, _MIN_LEFT_OPEN = 200, 1_000
_MIN_SLUG = 3
_WORD = re.compile(r"\w+")
_MAX_LINK_SHARE = 0.4
SENTENCE = re.compile(r"[.!?…;,][\s”\"'’»)]|[.!?…:”\"]$|[。！？։؟।၊。、，]")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|clip\s*:\s*rect\(0", re.IGNORECASE)


@dataclasses.dataclass(slots=True)
class Block:
    """A paragraph, heading or list item.

    Attributes:
      text: text with white space collapsed.
      link_share: share of characters in links, in [0, 1].
      node: number of the block element that contains it, see :class:`Layout`.
      prose: weight as running text, in characters; 0 if it is not prose.
    """

    text: str
    link_share: float
    node: int
    prose: float


@dataclasses.dataclass(slots=True)
class Layout:
    """The blocks of a page, and its block elements by number, parents before children.

    Attributes:
      blocks: blocks in document order.
      parents: number of the parent of each element; the first element is its own parent.
      labels: class and id of each element.
      names: classification of each element by its class and id.
      bodies: whether each element is marked as an article's body.
      tags: tag of each element.
    """

    blocks: list[Block]
    parents: list[int]
    labels: list[str]
    names: list[Name]
    bodies: list[bool]
    tags: list[str]


def lay_out(tree: Any) -> Layout:
    """Returns the layout of a parsed page, in one pass; in two if most of the page is in elements left open."""
    root = tree if tree.tag == "body" else next(tree.iter("body"), tree)
    layout = _lay_out(root, {above for main in root.iter("main") for above in main.iterancestors()}, _SKIPPED)
    if all_prose(layout) < _MIN_PAGE:
        other = _lay_out(root, set(), _SKIPPED - _LEFT_OPEN)
        if all_prose(other) >= _MIN_LEFT_OPEN:
            return other
    return layout


def _lay_out(  # noqa: C901, PLR0912, PLR0915 - runs on every element: calls would double the time
    root: Any, around_main: set[Any], skipped: frozenset[str]
) -> Layout:
    layout = Layout([], [], [], [], [], [])
    blocks, parents, labels, names = layout.blocks, layout.parents, layout.labels, layout.names
    bodies, tags = layout.bodies, layout.tags
    parts: list[str] = []
    linked = links_open = 0
    current = 0
    skipping = False
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        if event == "start":
            if tag in skipped and element not in around_main and not (tag == "figure" and _holds_table(element)):
                walk.skip_subtree()
                skipping = True
                continue
            if tag == "br":
                parts.append(_BREAK)
            elif tag in _INLINE:
                if tag == "a":
                    links_open += tags[current] not in HEADINGS or _leads_elsewhere(element)
                elif element.attrib and _is_unseen(element):
                    walk.skip_subtree()
                    skipping = True
                    continue
            else:
                if parts:
                    _flush(blocks, parts, linked, current)
                    linked = 0
                parents.append(current)
                current = len(tags)
                tags.append(tag)
                label, name, body = _judge(element, tag) if element.attrib else _FORM if tag == "form" else _UNNAMED
                if name is Name.BOILERPLATE and element in around_main:
                    name = Name.NEUTRAL
                labels.append(label)
                names.append(name)
                bodies.append(body)
            if text := element.text:
                parts.append(text)
                if links_open:
                    linked += len(text)
            continue
        if skipping:
            skipping = False
        elif tag == "a":
            links_open -= tags[current] not in HEADINGS or _leads_elsewhere(element)
        elif tag != "br" and tag not in _INLINE:
            if parts:
                _flush(blocks, parts, linked, current)
                linked = 0
            current = parents[current]
        if element is not root and (text := element.tail):
            parts.append(text)
            if links_open:
                linked += len(text)
    return layout


_UNNAMED = ("", Name.NEUTRAL, False)
_FORM = ("form", Name.BOILERPLATE, False)


def _judge(element: Any, tag: str) -> tuple[str, Name, bool]:
    """Returns class and id of a block element, their classification, and whether it is marked as an article's body."""
    # The id of a heading is made of its words.
    of_class, of_id = element.get("class", ""), element.get("id", "") if tag not in HEADINGS else ""
    label = f"{of_class} {of_id}"[:_MAX_LABEL]
    name, body = classify_names(label) if label != " " else (Name.NEUTRAL, False)
    if name is Name.BOILERPLATE and of_id.count("-") >= _MIN_SLUG - 1 and _is_of_heading(element):
        name, body = classify_names(of_class[:_MAX_LABEL])
    if tag in ("body", "html"):
        name = Name.NEUTRAL
    # Some sites hide whole pages until a script shows them, or put them in a form. Such elements are therefore only
    # boilerplate, which is released where it contains most of the prose.
    if name is Name.NEUTRAL and (
        element.get("hidden") is not None
        or is_hidden_everywhere(of_class[:_MAX_LABEL])
        or _HIDDEN.search(element.get("style", ""))
    ):
        label, name = "hidden", Name.BOILERPLATE
    elif tag == "form":
        label, name = "form", Name.BOILERPLATE
    return label, name, body or "articlebody" in element.get("itemprop", "").lower()


def _is_of_heading(element: Any) -> bool:
    """Returns whether the id of an element is made of the words of the heading in it, as generators of pages do."""
    parts = [part for part in element.get("id", "").lower().split("-") if part]
    if len(parts) < _MIN_SLUG:
        return False
    heading = next(element.iter(*HEADINGS), None)
    return heading is not None and set(parts) <= set(_WORD.findall("".join(heading.itertext()).lower()))


def _is_unseen(element: Any) -> bool:
    """Returns whether an inline element is not visible."""
    style = element.get("style", "")
    return bool((style and _HIDDEN.search(style)) or is_hidden_name(element.get("class", "")[:_MAX_LABEL]))


def _holds_table(figure: Any) -> bool:
    """Returns whether a figure is a table of the text: editors such as WordPress wrap tables in figures."""
    return next(figure.iter("table"), None) is not None


def _leads_elsewhere(link: Any) -> bool:
    """Returns whether a link in a heading leads elsewhere; headings are often links to themselves."""
    target = link.get("href")
    return target is not None and not target.startswith("#")


def _flush(blocks: list[Block], parts: list[str], linked: int, node: int) -> None:
    whole = "".join(parts)
    parts.clear()
    if whole.isspace():
        return
    share = min(1.0, linked / len(whole))
    pieces = _BREAKS.split(whole) if _BREAK in whole else (whole,)
    texts = (" ".join(piece.split()) for piece in pieces)
    blocks.extend(Block(text, share, node, _prose_weight(text, share)) for text in texts if text)


def _prose_weight(text: str, link_share: float) -> float:
    length = len(text)
    # Scripts without spaces need fewer characters.
    if length < _MIN_PROSE and (length < _MIN_PROSE // 3 or not _SPACELESS.search(text)):
        return 0.0
    if link_share > _MAX_LINK_SHARE or not SENTENCE.search(text):
        return 0.0
    return length * (1.0 - link_share)


def all_prose(layout: Layout) -> float:
    """Returns the number of characters of prose on the page, including boilerplate."""
    return total_of(layout.blocks)


def total_of(blocks: Iterable[Block]) -> float:
    """Returns the characters of prose in some blocks."""
    return sum(block.prose for block in blocks)
