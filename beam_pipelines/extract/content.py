"""The running text of an article, by rules over one walk of its parsed markup; says how sure it is.

In the line of Readability and jusText: blocks of text are prose or not by length, links and punctuation; the element that
holds the page's prose is the article's body; what templates call navigation, comments or related stories is left out.
"""

# ruff: noqa: RUF001 - the marks that pages are written with

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from lxml import etree

from .hints import Name, is_unseen_name, judged, words
from .trimming import ends_article, is_boilerplate, is_portrait

_SKIPPED = words(
    """
    script style noscript template svg canvas iframe object embed applet audio video picture img map area input button select
    textarea option datalist nav aside footer figure figcaption head link meta math dialog menu progress meter title
    """
)
_INLINE = words(
    """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small span strike
    strong sub sup time tt u var wbr
    """
)
_HEADINGS = words("h1 h2 h3 h4 h5 h6")
_LISTS = words("ul ol dl table")
_PARAGRAPHS = frozenset(("p", "li", "dd", "dt", "blockquote", "pre", *_HEADINGS))
_BREAK = "\x1e"
_BREAKS = re.compile(f"{_BREAK}(?:[^\\S{_BREAK}]*{_BREAK})+")
_MAX_LABEL = 500
_MAX_MARKED = 1_000
_MIN_PROSE = 60
_MIN_RELEASED = 400
_MIN_REMAINING = 0.05
_MIN_STORY = 300
_MIN_POSTS = 0.7
_MAX_LABEL_TEXT = 100
_MAX_AFTER_END = 0.5
_MAX_RELEASES = 5
_MIN_RUNNING_PARAGRAPHS = 3
_MAX_LINK_SHARE = 0.4
_SENTENCE = re.compile(r"[.!?…;,][\s”\"'’»)]|[.!?…:”\"]$|[。！？։؟।၊。、，]")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|clip\s*:\s*rect\(0", re.IGNORECASE)


@dataclasses.dataclass(slots=True)
class Block:
    """A paragraph, heading or list item.

    Attributes:
      text: its text, white space collapsed.
      link_share: share of its characters that are in links.
      node: number of the block element that holds it, see :class:`Layout`.
      prose: weight as running text, in characters; 0 for anything else.
    """

    text: str
    link_share: float
    node: int
    prose: float


@dataclasses.dataclass(slots=True)
class Layout:
    """One walk over a page: its blocks in order, and its block elements by number, parents before children.

    Attributes:
      parents: number of the parent of each element; the first is its own.
      labels: its class and id.
      names: what these promise of it.
      bodies: whether it is marked as an article's body.
      tags: its tag.
    """

    blocks: list[Block]
    parents: list[int]
    labels: list[str]
    names: list[Name]
    bodies: list[bool]
    tags: list[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """The text of an article.

    Attributes:
      text: paragraphs, one a line.
      confidence: in [0, 1]: share of the page's prose that is in the text; low where the rules may have missed.
    """

    text: str
    confidence: float


def lay_out(tree: Any) -> Layout:  # noqa: C901, PLR0912, PLR0915 - every element of every page: calls would cost as much as the work
    """Walks a parsed page once."""
    root = tree if tree.tag == "body" else next(tree.iter("body"), tree)
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
            if tag in _SKIPPED:
                walk.skip_subtree()
                skipping = True
                continue
            if tag == "br":
                parts.append(_BREAK)
            elif tag in _INLINE:
                if tag == "a":
                    links_open += 1
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
            links_open -= 1
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
    """Class and id of a block element, what they promise, and whether it is marked as an article's body."""
    label = f"{element.get('class', '')} {element.get('id', '')}"[:_MAX_LABEL]
    name, body = judged(label) if label != " " else (Name.NEUTRAL, False)
    if tag in ("body", "html"):
        name = Name.NEUTRAL
    # Whole pages are hidden until a script shows them, and stand in a form, so these too yield where most of the prose is.
    if name is Name.NEUTRAL and (element.get("hidden") is not None or _HIDDEN.search(element.get("style", ""))):
        label, name = "hidden", Name.BOILERPLATE
    elif tag == "form":
        label, name = "form", Name.BOILERPLATE
    return label, name, body or "articlebody" in element.get("itemprop", "").lower()


def _is_unseen(element: Any) -> bool:
    """Whether an inline element is hidden from the eye."""
    style = element.get("style", "")
    return bool((style and _HIDDEN.search(style)) or is_unseen_name(element.get("class", "")[:_MAX_LABEL]))


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
    # Scripts without spaces say more in a character.
    if length < _MIN_PROSE and (length < _MIN_PROSE // 3 or not _SPACELESS.search(text)):
        return 0.0
    if link_share > _MAX_LINK_SHARE or not _SENTENCE.search(text):
        return 0.0
    return length * (1.0 - link_share)


def main_content(layout: Layout, title: str = "", *, live_blog: bool = False) -> Content:
    """The article's text on a page.

    Args:
      layout: of :func:`lay_out`.
      title: the article's title, which is no part of the body.
      live_blog: the page is a report in posts, all of which are its text.
    """
    aside = _set_aside(layout)
    weights = _weights(layout, aside)
    total = weights[0] if weights else 0.0
    if not total:
        return Content("", 0.0)
    root, total = _body_element(layout, weights, {block.node for block in layout.blocks if aside[block.node] < 0})
    if live_blog and weights[root] < _MIN_POSTS * weights[0]:
        root, total = _descend(layout, weights, 0, 0.85), weights[0]
    inside = _inside(layout, root)
    candidates = [block for block in layout.blocks if inside[block.node] and aside[block.node] < 0]
    kept = _trimmed(_without_lists(layout, root, candidates), layout, title)
    return Content("\n".join(block.text for block in kept), min(1.0, sum(block.prose for block in kept) / total))


def all_prose(layout: Layout) -> float:
    """Characters of prose on the page, set aside or not."""
    return _total(layout.blocks)


def running_text(layout: Layout) -> float:
    """Characters of prose in the element with most of it directly or in its paragraphs, if these are three or more."""
    characters: dict[int, float] = {}
    paragraphs: Counter[int] = Counter()
    for block in layout.blocks:
        if block.prose and layout.names[block.node] is not Name.NEVER:
            holder = layout.parents[block.node] if layout.tags[block.node] in _PARAGRAPHS else block.node
            characters[holder] = characters.get(holder, 0.0) + block.prose
            paragraphs[holder] += 1
    return max(
        (count for holder, count in characters.items() if paragraphs[holder] >= _MIN_RUNNING_PARAGRAPHS), default=0.0
    )


def _weights(layout: Layout, aside: list[int] | None = None) -> list[float]:
    """Prose in each element, set-aside blocks left out."""
    weights = [0.0] * len(layout.tags)
    for block in layout.blocks:
        if block.prose and (aside is None or aside[block.node] < 0):
            weights[block.node] += block.prose
    for node in range(len(weights) - 1, 0, -1):
        weights[layout.parents[node]] += weights[node]
    return weights


def _set_aside(layout: Layout) -> list[int]:
    """Number of the boilerplate element around each element, or -1.

    A name that would set most of the page's prose aside means something else there ("has-sidebar", "widget-content").
    """
    # "comments-open" may be the name of the whole page: what holds the first heading is no box of comments.
    headed = {above for node, tag in enumerate(layout.tags) if tag == "h1" for above in _ancestors(layout, node)}
    refused = {node for node, name in enumerate(layout.names) if name is Name.NEVER and node not in headed}
    never = _under(layout, refused)
    total = _total([block for block in layout.blocks if never[block.node] < 0])
    weights = _weights(layout, never)
    released: set[str] = set()
    for _ in range(_MAX_RELEASES):
        elements = {
            node
            for node, name in enumerate(layout.names)
            if node in refused or (name and layout.labels[node] not in released)
        }
        aside = _under(layout, elements)
        remaining = _total([block for block in layout.blocks if aside[block.node] < 0])
        if remaining >= max(_MIN_RELEASED, (0.1 if released else 0.2) * total):
            return aside
        of_label: dict[str, float] = {}
        for node in elements:
            if aside[node] == node and node not in refused:  # the outermost first: others within may be what they say
                of_label[layout.labels[node]] = of_label.get(layout.labels[node], 0.0) + weights[node]
        label, weight = max(of_label.items(), key=lambda item: item[1], default=("", 0.0))
        if weight < 0.4 * total or not weight:
            return aside if remaining >= _MIN_REMAINING * total else never
        released.add(label)
    return aside


def _under(layout: Layout, elements: set[int]) -> list[int]:
    """For each element, the outermost of ``elements`` around it, or -1."""
    above: list[int] = []
    for node, parent in enumerate(layout.parents):
        outer = above[parent] if node else -1
        above.append(node if outer < 0 and node in elements else outer)
    return above


def _total(blocks: list[Block]) -> float:
    return sum(block.prose for block in blocks)


def _body_element(layout: Layout, weights: list[float], holders: set[int]) -> tuple[int, float]:
    """(the element that holds the article, the prose of its page): one that is marked so, or the deepest with nearly all of the prose."""
    page, total = _first_story(layout, weights)
    inside = _inside(layout, page)
    marked = [node for node, body in enumerate(layout.bodies) if body and inside[node] and weights[node] >= 0.1 * total]
    articles = [
        node
        for node, tag in enumerate(layout.tags)
        if tag == "article" and inside[node] and weights[node] >= 0.25 * total
    ]
    for nodes in (marked, articles):
        if nodes:
            top = max(weights[node] for node in nodes)
            # The first of several of a size: pages append the next stories to the one that was asked for.
            first = next(node for node in nodes if weights[node] >= 0.5 * top)
            whole = _joined(layout, first, holders)
            if weights[whole] >= 0.4 * total or len(nodes) > 1:
                others = [node for node in nodes if nodes is marked and not _nested(layout, node, whole)]
                outermost = [
                    node
                    for node in others
                    if not any(node != other and other in _ancestors(layout, node) for other in others)
                ]
                return _descend(layout, weights, whole, 0.95), total - sum(weights[node] for node in outermost)
    return _descend(layout, weights, page, 0.85), total


def _first_story(layout: Layout, weights: list[float]) -> tuple[int, float]:
    """(element, prose) of the first of several whole stories on a page, each an ``article`` with a first heading; else of all of it."""
    stories: list[int] = []
    for node, tag in enumerate(layout.tags):
        if tag == "h1":
            story = next((above for above in _ancestors(layout, node) if layout.tags[above] == "article"), -1)
            if story >= 0 and story not in stories and weights[story] >= _MIN_STORY:
                stories.append(story)
                if len(stories) > 1:
                    break
    if len(stories) < 2 or stories[0] in _ancestors(layout, stories[1]) or stories[1] in _ancestors(layout, stories[0]):
        return 0, weights[0]
    return stories[0], weights[stories[0]]


def _joined(layout: Layout, first: int, holders: set[int]) -> int:
    """The element around all the marked parts of one article: some templates cut it where an advertisement goes."""
    above = list(_ancestors(layout, first))
    around = next((node for node in above if layout.tags[node] == "article"), -1)
    if around < 0:
        return first
    texts: set[int] = set()
    for node in holders:
        texts.add(node)
        for part in _ancestors(layout, node):
            if part in texts:
                break
            texts.add(part)
    marked = [part for part in texts if layout.bodies[part]][:_MAX_MARKED]
    lines = [{part, *_ancestors(layout, part)} for part in marked]
    lines = [line for line in lines if around in line]
    return next((node for node in (first, *above) if all(node in line for line in lines)), first)


def _nested(layout: Layout, node: int, other: int) -> bool:
    return node == other or node in _ancestors(layout, other) or other in _ancestors(layout, node)


def _ancestors(layout: Layout, node: int) -> Iterator[int]:
    while node:
        node = layout.parents[node]
        yield node


def _descend(layout: Layout, weights: list[float], node: int, share: float) -> int:
    heaviest: dict[int, int] = {}
    for child in range(1, len(weights)):
        parent = layout.parents[child]
        if weights[child] > 0 and weights[child] > weights[heaviest.get(parent, 0)] * (parent in heaviest):
            heaviest[parent] = child
    while (
        node in heaviest
        and weights[heaviest[node]] >= share * weights[node]
        and layout.tags[heaviest[node]] not in _PARAGRAPHS
    ):
        node = heaviest[node]
    return node


def _inside(layout: Layout, root: int) -> list[bool]:
    inside = [False] * len(layout.tags)
    inside[root] = True
    for node in range(root + 1, len(inside)):
        inside[node] = inside[layout.parents[node]]
    return inside


def _without_lists(layout: Layout, root: int, blocks: list[Block]) -> list[Block]:
    """Leaves out lists and boxes that are mostly links, and short lines that no paragraph holds."""
    characters = [0.0] * len(layout.tags)
    linked = [0.0] * len(layout.tags)
    for block in blocks:
        characters[block.node] += len(block.text)
        linked[block.node] += len(block.text) * block.link_share
    for node in range(len(characters) - 1, root, -1):
        characters[layout.parents[node]] += characters[node]
        linked[layout.parents[node]] += linked[node]
    boxed = [False] * len(layout.tags)
    for node in range(root + 1, len(boxed)):
        tag = layout.tags[node]
        bar = 0.5 if tag in _LISTS else 0.6 if tag not in _PARAGRAPHS else 2.0
        boxed[node] = boxed[layout.parents[node]] or linked[node] > bar * characters[node]
    usual = Counter(layout.tags[block.node] for block in blocks if block.prose).most_common(1)
    holders = _PARAGRAPHS | {tag for tag, _ in usual}
    return [
        block
        for block in blocks
        if not boxed[block.node] and (block.prose or _stands(block, layout.tags[block.node], holders))
    ]


def _stands(block: Block, tag: str, holders: frozenset[str]) -> bool:
    """Whether a block that is no prose may be part of an article."""
    if tag not in holders:
        return False
    if tag in _HEADINGS:
        return block.link_share < 0.7
    if block.link_share > 0.7:
        return False
    return tag in _PARAGRAPHS or bool(_SENTENCE.search(block.text))


def _trimmed(blocks: list[Block], layout: Layout, title: str) -> list[Block]:
    """Leaves out calls and labels, and what follows the article."""
    kept: list[Block] = []
    wanted = title.casefold().strip()
    before, after = 0.0, _total(blocks)
    for block in blocks:
        heading = layout.tags[block.node] in _HEADINGS
        if len(block.text) < _MAX_LABEL_TEXT and (heading or not block.prose) and ends_article(block.text):
            # Between paragraphs it is a box that the template put there.
            if after <= _MAX_AFTER_END * before:
                break
            continue
        before, after = before + block.prose, after - block.prose
        if is_boilerplate(block.text) or block.text.casefold() == wanted or layout.tags[block.node] == "h1":
            continue
        kept.append(block)
    while kept and (layout.tags[kept[-1].node] in _HEADINGS or is_portrait(kept[-1].text)):
        kept.pop()
    return kept
