"""Lays a page out: its blocks of text with their weights as prose, and its block elements, in one pass over the markup.

A block of text is prose or not by its length, links and punctuation, as in Readability and jusText. Elements are
classified by their class and id: tokens that templates use for boilerplate and for the article's body, which
``layout.txt`` lists.
"""

# ruff: noqa: RUF001 - the marks that pages are written with

import dataclasses
import enum
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from lxml import etree

from ...tasks.sentences import UNSPACED
from .. import read_lists
from .charsets import readable


def words(text: str) -> frozenset[str]:
    """Returns the words of a text; keeps long constants readable."""
    return frozenset(text.split())


def any_of(patterns: str) -> str:
    """Returns a regular expression for any of those in the lines of a text."""
    return f"(?:{'|'.join(patterns.splitlines())})"


_LISTS = read_lists(__package__, "layout.txt")
_SKIPPED = words(_LISTS["skipped"])
_INLINE = words(_LISTS["inline"])
_READINGS = ("rt", "rp", "rtc")
_APART = (*_READINGS, "br", "p", "div", "li")  # what other elements hold is one line
HEADINGS = words("h1 h2 h3 h4 h5 h6")
PARAGRAPHS = frozenset(("p", "li", "dd", "dt", "blockquote", "pre", "summary", *HEADINGS))
# Skipped elements that broken markup leaves open, so that they contain the rest of the page.
_LEFT_OPEN = words("nav aside footer button dialog menu figure")
_BREAK = "\x1e"
_BREAKS = re.compile(f"{_BREAK}(?:[^\\S{_BREAK}]*{_BREAK})+")
_MAX_LABEL = 500
_MIN_PROSE = 60
_MIN_PAGE, _MIN_LEFT_OPEN, _MIN_ONLY = 200, 1_000, 3
_MIN_SLUG = 3
_WORD = re.compile(r"\w+")
_MAX_LINK_SHARE = 0.4
SENTENCE = re.compile(r"[.!?…;,][\s”\"'’»)]|[.!?…:”\"]$|[。！？։؟।၊。、，]")
_ENDED = re.compile(r"[.!?…。！？।۔][”\"'’»)」』]?\s*$")
_SPACELESS = re.compile(UNSPACED)
_SPACELESS_LETTERS = 3  # of Latin script for one of theirs; they have about as many letters a word
_HIDDEN = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden|clip\s*:\s*rect\(0")

# Tokens of class and id, which are split at camelCase and at all characters but letters. A block element with one of
# them, or with two in a row, is boilerplate with everything inside it, unless it contains most of the page's prose (see
# ``content``).
_BOILERPLATE = words(_LISTS["boilerplate"])
# Of them, those that templates also use for a part of the article: what follows a button, an advertisement, a list.
_WEAK = words("ad ads advert adslot readmore read-more topics post-list article-list story-list news-list")
_NEVER = words(_LISTS["comments"])
_BODY = words(_LISTS["body"])
_BODY_HEADS = words("article story post entry news content body main")
_BODY_TAILS = words("body content text copy contents paragraphs")
_FIRST = words("widget widgets")  # as the first token only: "lb-widget-text" is a post of a live blog
_HIDDEN_NAMES = words(_LISTS["hidden"])
_HIDING = words("hidden d-none is-hidden u-hidden")
# Classes of Tailwind and Bootstrap that show an element on screens of one size.
_SHOWN = re.compile(r"\w+:|d-(?:sm|md|lg|xl|xxl|print)-|visible")
HIDDEN = "hidden"  # the label of block elements that are hidden until a script shows them
_PICTURE = words("caption figcaption credit credits cutline")
# First tokens of names that describe a state or a category instead of the element: "has-sidebar", "category-video".
_STATE = words("has with no is js without hide show not category cat tag term tax format type status postid")
_SWITCHES = words("enabled disabled")  # "sidebar-enabled--false"
# The element and the column of the page builders of HubSpot and SiteOrigin: whole pages consist of such widgets.
_BUILDERS = words("span type container")
_BUILDER_PANEL = "so-panel"
# Generated names, such as "b5343ad4", in which "ad" is not a word.
_HASH = re.compile(r"(?<![a-z])(?=[a-f]*\d)[\da-f]{6,}(?![a-z])")
_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Name(enum.IntEnum):
    """Classification of an element by its class and id."""

    NEUTRAL = 0
    BOILERPLATE = 1  # probably not part of the article's text
    NEVER = 2  # readers' comments: never part of the article, however much text there is


@dataclasses.dataclass(slots=True, eq=False)
class Element:
    """A block element of a page.

    Attributes:
      tag: its tag.
      label: its class and id.
      name: classification by class and id.
      is_body: whether it is marked as an article's body.
      parent: the block element around it; the first element is its own parent.
      node: the element of the parsed page.
    """

    tag: str
    label: str
    name: Name
    is_body: bool
    parent: "Element"
    node: Any = None

    def ancestors(self) -> "Iterator[Element]":
        """Yields the elements around it, from the inside."""
        element = self
        while element.parent is not element:
            element = element.parent
            yield element


@dataclasses.dataclass(slots=True)
class Block:
    """A paragraph, heading or list item.

    Attributes:
      text: text with white space collapsed.
      link_share: share of characters in links, in [0, 1].
      element: block element that contains it.
      prose: weight as running text, in characters; 0 if it is not prose.
    """

    text: str
    link_share: float
    element: Element
    prose: float


@dataclasses.dataclass
class Layout:
    """The blocks and the block elements of a page, in document order."""

    blocks: list[Block]
    elements: list[Element]

    @cached_property
    def density(self) -> float:
        """How many characters of Latin script a character of the page stands for, on average: 1 to 3."""
        text = "".join(block.text for block in self.blocks)
        return 1.0 if text.isascii() else 1.0 + (_SPACELESS_LETTERS - 1) * len(_SPACELESS.findall(text)) / len(text)


def lay_out(tree: Any) -> Layout:
    """Returns the layout of a parsed page, in one pass; in two if most of the page is in elements left open."""
    root = tree if tree.tag == "body" else next(tree.iter("body"), tree)
    layout = _lay_out(root, {above for main in root.iter("main") for above in main.iterancestors()}, _SKIPPED)
    if total_of(layout.blocks) < _MIN_PAGE:
        other = _lay_out(root, set(), _SKIPPED - _LEFT_OPEN)
        only = not total_of(layout.blocks) and sum(block.prose > 0 for block in other.blocks) >= _MIN_ONLY
        if only or total_of(other.blocks) >= _MIN_LEFT_OPEN:
            return other
    return layout


def _lay_out(  # noqa: C901, PLR0912 - runs on every element: calls would double the time
    root: Any, around_main: set[Any], skipped: frozenset[str]
) -> Layout:
    layout = Layout([], [])
    parts: list[str] = []
    linked = links_open = 0
    current: Any = None  # the Element around the node
    skipping = False
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, node in walk:
        tag = node.tag
        if event == "start":
            if tag in skipped and node not in around_main and not _is_table(node):
                walk.skip_subtree()
                skipping = True
                continue
            if tag == "br":
                parts.append(_BREAK)
            elif tag in _INLINE:
                if tag == "a":
                    links_open += current.tag not in HEADINGS or _leads_elsewhere(node)
                elif node.attrib and _is_unseen(node):
                    walk.skip_subtree()
                    skipping = True
                    continue
            else:
                if parts:
                    _flush(layout.blocks, parts, linked, current)
                    linked = 0
                current = _element(node, tag, current)
                current.parent = current.parent or current
                if current.name is Name.BOILERPLATE and node in around_main:
                    current.name = Name.NEUTRAL
                layout.elements.append(current)
            text = node.text
        else:
            if skipping:
                skipping = False
            elif tag == "a":
                links_open -= current.tag not in HEADINGS or _leads_elsewhere(node)
            elif tag != "br" and tag not in _INLINE:
                if parts:
                    _flush(layout.blocks, parts, linked, current)
                    linked = 0
                current = current.parent
            text = node.tail if node is not root else None
        if text:
            parts.append(text)
            if links_open:
                linked += len(text)
    return layout


def _element(node: Any, tag: str, parent: Any) -> Element:
    if not node.attrib:
        label, name = ("form", Name.BOILERPLATE) if tag == "form" else ("", Name.NEUTRAL)
        return Element(tag, label, name, False, parent, node)
    # The id of a heading is made of its words.
    of_class, of_id = node.get("class", ""), node.get("id", "") if tag not in HEADINGS else ""
    label = known = f"{of_class} {of_id}"[:_MAX_LABEL]
    name = judge_name(label)
    if name is Name.BOILERPLATE and of_id.count("-") >= _MIN_SLUG - 1 and _is_of_heading(node):
        known = of_class[:_MAX_LABEL]
        name = judge_name(known)
    is_body = tag not in PARAGRAPHS and (is_body_name(known) or "articlebody" in node.get("itemprop", "").lower())
    if tag in ("body", "html") or (tag in ("ul", "ol") and name is Name.BOILERPLATE and may_be_text(known)):
        name = Name.NEUTRAL  # lists of links are left out as such
    # Some sites hide whole pages until a script shows them, or put them in a form. Such elements are therefore only
    # boilerplate, which is released where it contains most of the prose.
    if name is Name.NEUTRAL and (
        node.get("hidden") is not None
        or is_hidden_everywhere(of_class[:_MAX_LABEL])
        or _HIDDEN.search(node.get("style", ""))
    ):
        label, name = HIDDEN, Name.BOILERPLATE
    elif tag == "form":
        label, name = "form", Name.BOILERPLATE
    return Element(tag, label, name, is_body, parent, node)


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


def _is_table(node: Any) -> bool:
    """Returns whether a skipped element is a table of the text: editors such as WordPress wrap tables in figures."""
    return node.tag == "figure" and next(node.iter("table"), None) is not None


def _leads_elsewhere(link: Any) -> bool:
    """Returns whether a link in a heading leads elsewhere; headings are often links to themselves."""
    target = link.get("href")
    return target is not None and not target.startswith("#")


def _flush(blocks: list[Block], parts: list[str], linked: int, element: Element) -> None:
    whole = "".join(parts)
    parts.clear()
    if whole.isspace():
        return
    share = min(1.0, linked / len(whole))
    pieces = itertools.chain.from_iterable(map(_lines, _BREAKS.split(whole))) if _BREAK in whole else (whole,)
    texts = map(readable, pieces)
    blocks.extend(Block(text, share, element, _prose_weight(text, share)) for text in texts if text)


def _lines(piece: str) -> Sequence[str]:
    """Returns the lines of a piece if each is a paragraph: some sites part those by one break."""
    lines = [line for line in piece.split(_BREAK) if not line.isspace()] if _BREAK in piece else ()
    return lines if lines and all(_ENDED.search(line) and _prose_weight(line, 0.0) for line in lines) else (piece,)


def _prose_weight(text: str, link_share: float) -> float:
    length = len(text)
    # Scripts without spaces need fewer characters.
    if length < _MIN_PROSE and (length < _MIN_PROSE // 3 or not _SPACELESS.search(text)):
        return 0.0
    if link_share > _MAX_LINK_SHARE or not SENTENCE.search(text):
        return 0.0
    return length * (1.0 - link_share)


def has_words(text: str, least: int) -> bool:
    """Returns whether a text has that many words; in scripts without spaces three letters count as one.

    >>> has_words("Two words", 3), has_words("\u6b66\u6c49\u7684\u58f0\u97f3\uff1a\u82f1\u52c7\u7684\u4f60", 3)
    (False, True)
    """
    if len(text.split()) >= least:
        return True
    return not text.isascii() and len(_SPACELESS.findall(text)) >= _SPACELESS_LETTERS * least


def total_of(blocks: Iterable[Block]) -> float:
    """Returns the characters of prose in some blocks."""
    return sum(block.prose for block in blocks)


@lru_cache(maxsize=20_000)  # templates repeat names
def judge_name(names: str) -> Name:
    """Returns the classification of an element by its class and id.

    >>> judge_name("c-article-comments js-open"), judge_name("article-body")
    (<Name.NEVER: 2>, <Name.NEUTRAL: 0>)
    """
    parts = names[:1000].split()
    if _BUILDER_PANEL in parts:
        parts = [part for part in parts if not part.startswith("widget")]
    return max((_judge(part) for part in parts), default=Name.NEUTRAL)


@lru_cache(maxsize=20_000)
def may_be_text(label: str) -> bool:
    """Returns whether the boilerplate names of an element also name parts of articles.

    >>> may_be_text("story__read-more"), may_be_text("related ads")
    (True, False)
    """
    return all(_judge(part, _BOILERPLATE - _WEAK) is Name.NEUTRAL for part in label[:1000].split())


def _judge(name: str, boilerplate: frozenset[str] = _BOILERPLATE) -> Name:
    tokens = [token.lower() for token in _TOKEN.findall(_HASH.sub(" ", name))]
    if not tokens or tokens[0] in _STATE or not _SWITCHES.isdisjoint(tokens[1:]):
        return Name.NEUTRAL
    if not _NEVER.isdisjoint(tokens):
        return Name.NEVER
    if tokens[0] in _FIRST:
        return Name.NEUTRAL if tokens[1:2] and tokens[1] in _BUILDERS else Name.BOILERPLATE
    pairs = (f"{first}-{second}" for first, second in itertools.pairwise(tokens))
    return Name.NEUTRAL if boilerplate.isdisjoint((*tokens, *pairs)) else Name.BOILERPLATE


@lru_cache(maxsize=20_000)
def is_body_name(names: str) -> bool:
    """Returns whether class and id mark an article's body: "story-body", "entry-content", "articleText".

    >>> is_body_name("story-body__inner"), is_body_name("main-menu")
    (True, False)
    """
    for name in names[:1000].split():
        tokens = [token.lower() for token in _TOKEN.findall(name)]
        pairs = itertools.pairwise(tokens)
        if not _BODY.isdisjoint(tokens) or any(one in _BODY_HEADS and two in _BODY_TAILS for one, two in pairs):
            return True
    return False


@lru_cache(maxsize=20_000)
def is_hidden_everywhere(names: str) -> bool:
    """Returns whether a class hides a block element, on screens of all sizes.

    >>> is_hidden_everywhere("offer hidden"), is_hidden_everywhere("hidden md:block")
    (True, False)
    """
    parts = names.lower().split()
    return not _HIDING.isdisjoint(parts) and not any(_SHOWN.match(part) for part in parts)


@lru_cache(maxsize=20_000)
def is_hidden_name(names: str) -> bool:
    """Returns whether the classes of an inline element mark text for screen readers or the caption of a picture."""
    return any(
        name.lower() in _HIDDEN_NAMES or any(token.lower() in _PICTURE for token in _TOKEN.findall(name))
        for name in names[:1000].split()
    )


def text_of(node: Any, limit: int) -> str:
    """Returns the first ``limit`` characters of an element's text, with white space collapsed.

    The limit bounds the work too: an element may contain the whole page.
    """
    pieces = node.itertext() if next(node.iter(*_APART), None) is None else _pieces(node)
    found: list[str] = []
    characters = 0
    for piece in pieces:
        found.append(piece[: 4 * limit])
        characters += len(found[-1])
        if characters >= 4 * limit:
            break
    return readable("".join(found))[:limit]


def _pieces(node: Any) -> Iterator[str]:
    """Yields the text of an element with spaces where lines end, and without the readings of ruby."""
    walk = etree.iterwalk(node, events=("start", "end"))
    for event, part in walk:
        if event == "start" and part.tag in _READINGS:
            walk.skip_subtree()
            continue
        if part.tag not in _INLINE and part.tag not in _READINGS:
            yield " "
        yield (part.text if event == "start" else part.tail if part is not node else "") or ""


def letters_of(text: str) -> str:
    """Returns the letters and digits of a text in folded case, for comparing names."""
    return "".join(filter(str.isalnum, text.casefold()))
