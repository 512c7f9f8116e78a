"""Recognises tables of data, lists of links and other stories, among the blocks of an article and around it."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ...formats.dates import stated_days
from .layout import (
    HEADINGS,
    PARAGRAPHS,
    SENTENCE,
    Block,
    Element,
    Layout,
    has_words,
    letters_of,
    text_of,
    total_of,
    words,
)

_LISTS = words("ul ol dl table")
_STORIES = words("article main header section")
_CELLS = words("td th")
_MAX_AFTER_END = 0.3
_MIN_ROWS, _MAX_CELL, _MAX_LINKED_DATA = 3, 400, 0.1
_WHOLE_LINK, _MIN_LINKED, _FULL_STOPS = 0.97, 60, (".", ".”", '."')
_MIN_RUNNING_PARAGRAPHS = 3
_COLONS = (":", "\uff1a")
_MAX_LINKED = 0.7
_MIN_TEASERS, _MIN_LISTED, _MIN_TITLE_WORDS, _MAX_TO_TITLE = 2, 6, 3, 3
_MANY_HEADLINES, _MAX_BOX, _MAX_FOOT, _MAX_HEADLINE, _MAX_ABOVE = 2, 300, 2, 200, 3
OUTSIDE, BYLINE, BESIDE = 0, 1, 2  # a node is in another story, between heading and text, elsewhere in the article
_WORDS, _MAX_DAY_WORDS = re.compile(r"[^\W\d_]+"), 3
# A link with more words, or in a script without spaces more letters, than an author or a section has.
_HEADLINE = re.compile(r"(?<!\S)(?:\S++ ){3}\S|^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff]\S{10,}$")
# Links to parts of the page, that share it, and to all stories of an author or on a topic.
_NO_STORY = re.compile(
    r"(?i)^(?:#|javascript:|mailto:|whatsapp:)|[/.]share(?:r|Article)?\b|[?&]share=|intent/tweet|#(?:comment|respond)"
    r"|/(?:authors?|aut[eo]r(?:es)?|auteurs?|categor(?:y|ies|ia)|kategorie|tags?|topics?|labels?)/[^/]*/?$"
)


class Region:
    """The part of a page where a day or a name belongs to its article; all of it where the text is not known.

    Between the heading and the text stands the byline. Elsewhere they count in the innermost element that has both, in
    boxes without headlines and text of their own.

    Args:
      layout: layout of the page.
      title: title of the article.
      body: its text; without it, all of the page is the article's.
    """

    def __init__(self, layout: Layout, title: str = "", body: str = "") -> None:
        lines, self.title = set(body.split("\n")), letters_of(title)
        own = [number for number, block in enumerate(layout.blocks) if block.prose and block.text in lines]
        before = list(enumerate(layout.blocks[: own[0]] if own else ()))
        heads = [number for number, block in before if letters_of(block.text) == self.title]
        first = [number for number, block in before if block.element.tag == "h1"]
        heads = [number for number in heads if number in first][:1] or (heads or first)[-1:]
        nodes = [layout.blocks[number].element.node for number in (*heads, *own)]
        self.above = _above(layout, heads[0]) if heads else None
        above = [dict.fromkeys((node, *node.iterancestors())) for node in nodes]
        self.held = set[Any]().union(*above)  # the elements with the heading or a part of the text
        around = [one for one in above[0] if all(one in line for line in above)] if heads else []
        self.outside = set(around[1:])  # of the innermost element with the heading and the text
        self.start = _place(nodes[0]) if heads else ()
        self.end = _place(nodes[len(heads)]) if own else ()
        self.blocks = layout.blocks[max(0, heads[0] - _MAX_ABOVE) if heads else 0 : own[-1] + 1 if own else None]
        self.prose = set(nodes[len(heads) :])
        self.foot = layout.blocks[own[-1] + 1 :][:_MAX_FOOT] if own else []
        self.headlines = functools.cache(_headlines)
        self.rank = functools.cache(self._rank)

    def _rank(self, node: Any) -> int:
        """Returns where a node is: `BYLINE`, `BESIDE` or `OUTSIDE`."""
        line = [node, *itertools.takewhile(lambda one: one not in self.held, node.iterancestors())]
        is_apart = not self.start or line[-1].getparent() in self.outside
        # The foot of an article is its own, of a list of articles is not.
        is_foot = not is_apart and not any(one.tag == "article" for one in line)
        beside = any(one.tag == "nav" or (one.tag in ("aside", "footer") and not is_foot) for one in line[1:])
        if not self.held:
            return OUTSIDE if beside else BYLINE
        others = self.headlines(line[-1])
        if self.above is not None and self.above in line and not others and not beside:
            return BESIDE
        if self.start <= _place(node) < self.end and others + beside < _MANY_HEADLINES:
            return BYLINE
        if not others and not beside and line[-1].getparent() not in self.outside:
            return BESIDE
        near = itertools.islice(node.getparent().iter("a"), _MANY_HEADLINES)
        # Its own entry in a list of stories.
        is_own = any(letters_of(text_of(link, _MAX_HEADLINE)) == self.title for link in near)
        return BESIDE if is_own else OUTSIDE

    def lines(self, paragraphs: int) -> list[Block]:
        """Returns the blocks from the heading to the first paragraphs of prose, and those below the text."""
        prose = self.prose
        counts = itertools.accumulate(
            block.prose > 0 and (not prose or block.element.node in prose) for block in self.blocks
        )
        first = [block for block, count in zip(self.blocks, counts, strict=True) if count <= paragraphs]
        nodes = ((block, block.element.node) for block in first + self.foot)
        return [block for block, node in nodes if node in self.held or self.rank(node) != OUTSIDE]


def _above(layout: Layout, heading: int) -> Any:
    """Returns the element right above a heading, if it begins a box with it; None above that, where today's date is."""
    nodes = [block.element.node for block in layout.blocks[max(0, heading - _MAX_ABOVE) : heading + 1]]
    if len(nodes) < 2:
        return None
    first, above, own = ([node, *node.iterancestors()] for node in (nodes[0], *nodes[-2:]))
    box = next(one for one in own if one in above)
    is_own = above[0].tag in HEADINGS or any(one.tag in _STORIES for one in [box, *box.iterancestors()])
    return above[0] if is_own and (len(nodes) <= _MAX_ABOVE or box not in first) else None


def _headlines(box: Any) -> int:
    """Returns the headlines that a box links, up to a few; without any, whether it has much text."""
    links = (link for link in box.iter("a") if not _NO_STORY.search(link.get("href", "#")[:_MAX_HEADLINE]))
    titles = filter(_HEADLINE.search, (text_of(link, _MAX_HEADLINE) for link in links))
    found = set(itertools.islice((title for title in titles if not is_day(title)), _MANY_HEADLINES))
    return len(found) or len(text_of(box, _MAX_BOX + 1)) > _MAX_BOX


def is_day(text: str) -> bool:
    """Returns whether the text of a link is a day, with a few words at most, and not a headline."""
    if not any(map(str.isdecimal, text)):
        return False
    words = _WORDS.findall(text)
    # "21 de abril de 2022 a las 22:04"
    return len(words) <= _MAX_DAY_WORDS or bool(
        sum(len(word) > 3 for word in words) < _MAX_DAY_WORDS and stated_days(text)
    )


def _place(node: Any) -> tuple[int, ...]:
    """Returns a key of the order of elements in their page."""
    line = [node, *node.iterancestors()]
    return tuple(above.index(one) for one, above in itertools.pairwise(line))[::-1]


def without_teasers(layout: Layout, blocks: list[Block]) -> list[Block]:
    """Removes the teasers of other stories at the end.

    A list of products or of books that is the text itself has more of the prose.
    """
    paragraphs = _paragraphs(layout, blocks)
    teasers, questions, end = 0, 0, len(blocks)
    for place in range(len(blocks) - 1, 0, -1):
        if not blocks[place].prose:
            continue
        titles = _titles(blocks, place, paragraphs)
        if not titles:
            break
        teasers, end = teasers + 1, titles[0]
        questions += blocks[titles[-1]].text.endswith("?")
    few = total_of(blocks[end:]) <= _MAX_AFTER_END * total_of(blocks)
    return blocks[:end] if few and teasers >= _MIN_TEASERS and questions < teasers else blocks


def is_of_teasers(layout: Layout, share: float) -> bool:
    """Returns whether such a share of the prose of a page is teasers of other stories."""
    blocks, paragraphs = layout.blocks, _paragraphs(layout, layout.blocks)
    teasers = [one for place, one in enumerate(blocks) if one.prose and _titles(blocks, place, paragraphs)]
    return len(teasers) >= _MIN_LISTED and total_of(teasers) >= share * total_of(blocks)


def _paragraphs(layout: Layout, blocks: list[Block]) -> Counter[Element]:
    """Returns the number of paragraphs in each element."""
    paragraphs = Counter(block.element for block in blocks if block.prose)
    for element in reversed(layout.elements[1:]):
        paragraphs[element.parent] += paragraphs[element]
    return paragraphs


def _titles(blocks: list[Block], place: int, paragraphs: Counter[Element]) -> list[int]:
    """Returns the places of the linked titles of a paragraph that is a teaser: both are in an element of their own."""
    own = blocks[place].element
    around = (own, *own.ancestors())
    titles = [
        before
        for before in range(max(0, place - _MAX_TO_TITLE), place)
        if blocks[before].link_share > _MAX_LINKED and has_words(blocks[before].text, _MIN_TITLE_WORDS)
    ]
    holders = (blocks[before].element for before in titles)
    alone = (one in around and paragraphs[one] == 1 for holder in holders for one in (holder, *holder.ancestors()))
    return titles if any(alone) else []


def data_rows(layout: Layout, blocks: list[Block]) -> dict[Element, Element]:
    """Returns the row around each element in a table of data.

    A table of data has rows of several short cells and no table inside; others arrange the page.
    """
    places: dict[Element, tuple[Any, Any, Any]] = {}  # by element, its table, row and cell
    outer = set[Any]()
    for element in layout.elements:
        table, row, cell = places.get(element.parent, (None, None, None))
        if element.tag == "table":
            outer.add(table)
            table, row, cell = element, None, None
        elif element.tag == "tr":
            row, cell = element, None
        elif element.tag in _CELLS:
            cell = element
        places[element] = table, row, cell
    lengths: dict[Any, dict[Any, Counter[Any]]] = {}
    linked = Counter[Any]()
    for block in blocks if outer else ():
        table, row, cell = places[block.element]
        if row and cell and table not in outer:
            lengths.setdefault(table, {}).setdefault(row, Counter())[cell] += len(block.text)
            linked[table] += int(len(block.text) * block.link_share)
    data = {
        table: sum(sum(row.values()) for row in rows.values())
        for table, rows in lengths.items()
        if sum(len(row) > 1 for row in rows.values()) >= _MIN_ROWS
        and max(max(row.values()) for row in rows.values()) <= _MAX_CELL
    }
    prose = sum(block.prose for block in blocks if places[block.element][0] not in data)
    if sum(data.values()) > prose and sum(linked[table] for table in data) > _MAX_LINKED_DATA * sum(data.values()):
        return {}  # a list of members or results, to which the text is an introduction
    return {element: row for element, (table, row, _) in places.items() if row and table in data}


def lines_of(blocks: list[Block], rows: Mapping[Element, Any]) -> Iterator[str]:
    """Yields the texts of blocks; the cells of a row are one line."""
    for _, parts in itertools.groupby(enumerate(blocks), lambda part: rows.get(part[1].element, part[0])):
        yield " | ".join(block.text for _, block in parts)


def without_lists(layout: Layout, root: Element, blocks: list[Block], rows: Mapping[Element, Element]) -> list[Block]:
    """Removes lists and boxes that are mostly links, and short lines outside paragraphs and rows of data."""
    characters: dict[Element, float] = dict.fromkeys(layout.elements, 0.0)
    linked = dict(characters)
    for block in blocks:
        characters[block.element] += len(block.text)
        linked[block.element] += len(block.text) * block.link_share
    later = layout.elements[layout.elements.index(root) + 1 :]
    for element in reversed(later):
        characters[element.parent] += characters[element]
        linked[element.parent] += linked[element]
    boxed = set[Element]()
    introduced = _introduced(blocks)
    for element in later:
        bar = 0.5 if element.tag in _LISTS else 0.6 if element.tag not in PARAGRAPHS else 2.0
        if element.parent in introduced:
            introduced.add(element)
        elif element.parent in boxed or (element not in introduced and linked[element] > bar * characters[element]):
            boxed.add(element)
    usual = Counter(block.element.tag for block in blocks if block.prose).most_common(1)
    holders = PARAGRAPHS | {tag for tag, _ in usual}
    wanted = _linked_titles(blocks) | rows.keys() | introduced
    kept = (block for block in blocks if block.element not in boxed)
    return [block for block in kept if block.prose or block.element in wanted or _may_be_content(block, holders)]


def _introduced(blocks: list[Block]) -> set[Element]:
    """Returns the lists that a sentence of the text introduces: it ends with a colon, and has the list's parent."""
    lists = set[Element]()
    for before, after in itertools.pairwise(blocks):
        if after.element.tag in ("li", "dt") and before.prose and before.text.endswith(_COLONS):
            holder = after.element.parent
            if before.element.parent is holder.parent:
                lists.add(holder)
    return lists


def _linked_titles(blocks: list[Block]) -> set[Element]:
    """Returns the headings that are links, as of a list of products, between the paragraphs of a text.

    Such a heading has the parent of most paragraphs, and a paragraph follows; teasers have an element of their own.
    """
    pairs = [
        (block.element, after.element)
        for block, after in itertools.pairwise(blocks)
        if block.link_share >= 0.7 and after.prose and block.element.tag in HEADINGS
    ]
    if not pairs:
        return set()
    ((holder, count),) = Counter(block.element.parent for block in blocks if block.prose).most_common(1)
    if count < _MIN_RUNNING_PARAGRAPHS:
        return set()
    return {element for element, after in pairs if element.parent is after.parent is holder}


def _may_be_content(block: Block, holders: AbstractSet[str]) -> bool:
    """Returns whether a block that is not prose may be part of an article."""
    tag = block.element.tag
    if tag not in holders:
        return False
    if tag in HEADINGS:
        return block.link_share < 0.7
    if block.link_share > _MAX_LINKED:
        # Sentences may be linked; titles of other stories are linked as a whole and end without a full stop.
        return block.link_share < _WHOLE_LINK and len(block.text) >= _MIN_LINKED and block.text.endswith(_FULL_STOPS)
    return tag in PARAGRAPHS or bool(SENTENCE.search(block.text))
