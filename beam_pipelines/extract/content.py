"""Extracts the running text of an article from the layout of its page by rules, with a confidence.

The rules follow Readability and jusText. The element that contains most of the prose is the article's body. Elements
whose names say navigation, comments or related stories are left out.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator

from .hints import Name, words
from .layout import HEADINGS, PARAGRAPHS, SENTENCE, Block, Layout, total_of
from .trimming import ends_article, is_appeal, is_boilerplate, is_portrait

_LISTS = words("ul ol dl table")
_CELLS = words("td th")
_MAX_MARKED = 1_000
_MIN_RELEASED, _MIN_REMAINING = 400, 0.05
_MIN_STORY = 300
_MIN_MARKED = 0.25
_MIN_LEAD, _MAX_LEAD = 200, 0.3  # a shorter text is a summary for readers of headlines
_MIN_POSTS = 0.7
_MAX_LABEL_TEXT = 100
_MAX_AFTER_END, _MAX_AFTER_LABEL = 0.3, 0.1
_MAX_RELEASES = 5
_MIN_ROWS, _MAX_CELL = 3, 400
_WHOLE_LINK, _MIN_LINKED, _FULL_STOPS = 0.97, 60, (".", ".”", '."')
_MIN_RUNNING_PARAGRAPHS = 3
_MAX_LINKED = 0.7
_MIN_TEASERS, _MIN_TITLE_WORDS, _MAX_TO_TITLE = 2, 3, 3
_MIN_BEFORE_APPEAL = 4  # where less is left, the notice may be the text


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """The text of an article.

    Attributes:
      text: one paragraph per line.
      confidence: share of the page's prose in the text, in [0, 1]; low where the rules may be wrong.
      share: the same with the prose that was left out by the names of its elements, but without readers' comments.
    """

    text: str
    confidence: float
    share: float = 1.0


def main_content(layout: Layout, title: str = "", *, live_blog: bool = False, by_names: bool = True) -> Content:
    """Returns the text of a page's article.

    Args:
      layout: layout of the page, see :func:`lay_out`.
      title: title of the article, which is not part of the body.
      live_blog: whether the page is a live blog; the text then consists of all posts.
      by_names: whether names of elements count, except those of readers' comments. Without them the result is a second
        opinion, which depends on the prose alone.
    """
    never = _comments(layout)
    aside = _set_aside(layout, never) if by_names else never
    if not by_names:
        layout = dataclasses.replace(layout, bodies=[False] * len(layout.bodies))
    weights = _weights(layout, aside)
    total = weights[0] if weights else 0.0
    if not total:
        return Content("", 0.0, 0.0)
    everything = _weights(layout, never)[0]
    root, total = _body_element(layout, weights, {block.node for block in layout.blocks if aside[block.node] < 0})
    if live_blog and weights[root] < _MIN_POSTS * weights[0]:
        root, total = _descend(layout, weights, 0, 0.85), weights[0]
    inside = _inside(layout, root)
    candidates = [block for block in layout.blocks if inside[block.node] and aside[block.node] < 0]
    candidates[:0] = _lead(layout, inside, aside, candidates)
    candidates = _without_teasers(layout, candidates)
    rows = _data_rows(layout, candidates) if "table" in layout.tags else {}
    kept = _trimmed(_without_lists(layout, root, candidates, rows), layout, title, rows)
    prose = total_of(kept)
    return Content("\n".join(_lines(kept, rows)), min(1.0, prose / total), prose / everything)


def _lead(layout: Layout, inside: list[bool], aside: list[int], blocks: list[Block]) -> list[Block]:
    """Returns the paragraphs between the main heading and the body that look like the body's paragraphs.

    Some templates have an element of its own for the first paragraphs, or for all that follows them.
    """

    def style(block: Block) -> tuple[str, str]:
        names = layout.labels[block.node].split()
        return ("", names[0]) if names else (layout.tags[block.node], "")

    usual = Counter(style(block) for block in blocks if block.prose).most_common(1)
    if not usual:
        return []
    lead, texts = list[Block](), {block.text for block in blocks}
    for block in reversed(list(itertools.takewhile(lambda block: not inside[block.node], layout.blocks))):
        if layout.tags[block.node] == "h1":
            return lead[::-1] if _MIN_LEAD <= total_of(lead) <= _MAX_LEAD * total_of(blocks) else []
        if block.prose and aside[block.node] < 0 and style(block) == usual[0][0] and block.text not in texts:
            lead.append(block)
    return []


def _without_teasers(layout: Layout, blocks: list[Block]) -> list[Block]:
    """Removes the teasers of other stories at the end.

    A teaser is a linked title and one paragraph in an element of their own; a list of products or of books that is the
    text itself has more of the prose.
    """
    paragraphs = [0] * len(layout.tags)
    for block in blocks:
        paragraphs[block.node] += block.prose > 0
    for node in range(len(paragraphs) - 1, 0, -1):
        paragraphs[layout.parents[node]] += paragraphs[node]
    teasers, questions, end = 0, 0, len(blocks)
    for place in range(len(blocks) - 1, 0, -1):
        block = blocks[place]
        if not block.prose:
            continue
        titles = [before for before in range(max(0, place - _MAX_TO_TITLE), place) if _is_linked_title(blocks[before])]
        around = (block.node, *_ancestors(layout, block.node))
        if not any(
            node in around and paragraphs[node] == 1
            for title in titles
            for node in (blocks[title].node, *_ancestors(layout, blocks[title].node))
        ):
            break
        teasers, end = teasers + 1, titles[0]
        questions += blocks[titles[-1]].text.endswith("?")
    after = total_of(blocks[end:])
    few = after <= _MAX_AFTER_END * total_of(blocks)
    return blocks[:end] if few and teasers >= _MIN_TEASERS and questions < teasers else blocks


def _is_linked_title(block: Block) -> bool:
    return block.link_share > _MAX_LINKED and len(block.text.split()) >= _MIN_TITLE_WORDS


def _data_rows(layout: Layout, blocks: list[Block]) -> dict[int, int]:
    """Returns the row of each element in a table of data, both by number.

    A table of data has rows of several short cells and no table inside; others arrange the page.
    """
    tables, rows, cells = ([-1] * len(layout.tags) for _ in range(3))
    outer = set[int]()
    for node, tag in enumerate(layout.tags):
        parent = layout.parents[node]
        if node:
            tables[node], rows[node], cells[node] = tables[parent], rows[parent], cells[parent]
        if tag == "table":
            outer.add(tables[node])
            tables[node], rows[node], cells[node] = node, -1, -1
        elif tag == "tr":
            rows[node], cells[node] = node, -1
        elif tag in _CELLS:
            cells[node] = node
    lengths: dict[int, dict[int, Counter[int]]] = {}
    for block in blocks:
        if rows[block.node] >= 0 and cells[block.node] >= 0 and tables[block.node] not in outer:
            table = lengths.setdefault(tables[block.node], {})
            table.setdefault(rows[block.node], Counter())[cells[block.node]] += len(block.text)
    data = {
        table
        for table, of_rows in lengths.items()
        if sum(len(row) > 1 for row in of_rows.values()) >= _MIN_ROWS
        and max(max(row.values()) for row in of_rows.values()) <= _MAX_CELL
    }
    prose = sum(block.prose for block in blocks if tables[block.node] not in data)
    if sum(sum(row.values()) for table in data for row in lengths[table].values()) > prose:
        return {}  # a list of members or results, to which the text is an introduction
    return {node: rows[node] for node, table in enumerate(tables) if table in data and rows[node] >= 0}


def _lines(blocks: list[Block], rows: dict[int, int]) -> Iterator[str]:
    """Yields the texts of blocks; the cells of a row are one line."""

    def row_of(numbered: tuple[int, Block]) -> int:
        return rows.get(numbered[1].node, -1 - numbered[0])  # blocks outside tables have a number of their own

    for row, parts in itertools.groupby(enumerate(blocks), row_of):
        yield (" | " if row >= 0 else "").join(block.text for _, block in parts)


def running_text(layout: Layout) -> float:
    """Returns the characters of prose in the element with the most prose in itself and its paragraphs.

    Only elements with three or more paragraphs count, and no readers' comments.
    """
    comments = _comments(layout)
    characters: dict[int, float] = {}
    paragraphs: Counter[int] = Counter()
    for block in layout.blocks:
        if block.prose and comments[block.node] < 0:
            holder = layout.parents[block.node] if layout.tags[block.node] in PARAGRAPHS else block.node
            characters[holder] = characters.get(holder, 0.0) + block.prose
            paragraphs[holder] += 1
    return max(
        (count for holder, count in characters.items() if paragraphs[holder] >= _MIN_RUNNING_PARAGRAPHS), default=0.0
    )


def _weights(layout: Layout, aside: list[int] | None = None) -> list[float]:
    """Returns the characters of prose in each element, without boilerplate."""
    weights = [0.0] * len(layout.tags)
    for block in layout.blocks:
        if block.prose and (aside is None or aside[block.node] < 0):
            weights[block.node] += block.prose
    for node in range(len(weights) - 1, 0, -1):
        weights[layout.parents[node]] += weights[node]
    return weights


def _comments(layout: Layout) -> list[int]:
    """Returns for each element the number of the outermost comment section around it, or -1."""
    named = {node for node, name in enumerate(layout.names) if name is Name.NEVER}
    if not named:
        return [-1] * len(layout.tags)
    # "comments-open" may be a class of the whole page: an element with the main heading is not a comment section.
    headed = {above for node, tag in enumerate(layout.tags) if tag == "h1" for above in _ancestors(layout, node)}
    return _under(layout, named - headed)


def _set_aside(layout: Layout, never: list[int]) -> list[int]:
    """Returns for each element the number of the outermost boilerplate element around it, or -1.

    A name that would remove most of the page's prose has another meaning on that page ("has-sidebar", "widget-content")
    and is released.
    """
    refused = {node for node in never if node >= 0}
    total = total_of([block for block in layout.blocks if never[block.node] < 0])
    weights = _weights(layout, never)
    released: set[str] = set()
    holding = _holders_of_bodies(layout, weights)
    for _ in range(_MAX_RELEASES):
        elements = {
            node
            for node, name in enumerate(layout.names)
            if (name and layout.labels[node] not in released and node not in holding) or node in refused
        }
        aside = _under(layout, elements)
        remaining = total_of([block for block in layout.blocks if aside[block.node] < 0])
        if remaining >= max(_MIN_RELEASED, (0.1 if released else 0.2) * total):
            return aside
        of_label: dict[str, float] = {}
        for node in elements:
            if aside[node] == node and node not in refused:  # only the outermost: names inside it may be correct
                of_label[layout.labels[node]] = of_label.get(layout.labels[node], 0.0) + weights[node]
        label, weight = max(of_label.items(), key=lambda item: item[1], default=("", 0.0))
        if weight < 0.4 * total or not weight:
            return aside if remaining >= _MIN_REMAINING * total else never
        released.add(label)
    return aside


def _holders_of_bodies(layout: Layout, weights: list[float]) -> set[int]:
    """Returns the elements around the marked body of the article: "content-with-sidebar" is not a sidebar.

    The body is each marked element with a good part of the prose; elements of the same name before the largest are its
    beginning, for example the part that is shown to readers without a subscription.
    """
    marked = [node for node, body in enumerate(layout.bodies) if body and weights[node] and not layout.names[node]]
    if not marked:
        return set()
    top = max(marked, key=weights.__getitem__)
    parts = [
        node
        for node in marked
        if weights[node] >= _MIN_MARKED * weights[0] or (node < top and layout.labels[node] == layout.labels[top])
    ]
    return {above for node in parts for above in _ancestors(layout, node)}


def _under(layout: Layout, elements: set[int]) -> list[int]:
    """Returns for each element the outermost of ``elements`` around it, or -1."""
    above: list[int] = []
    for node, parent in enumerate(layout.parents):
        outer = above[parent] if node else -1
        above.append(outer if outer >= 0 or node not in elements else node)
    return above


def _body_element(layout: Layout, weights: list[float], holders: set[int]) -> tuple[int, float]:
    """Returns the element that contains the article, and the characters of prose on its page.

    The element is one that is marked as a body, or the deepest element with nearly all of the prose.
    """
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
            # Of several with a similar size the first: pages append further stories to the requested one.
            first = next(node for node in nodes if weights[node] >= 0.5 * top)
            whole = _joined(layout, first, holders, weights)
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
    """Returns (element, prose) of the first of several complete stories on a page; of the whole page if there is one.

    A story is an ``article`` element with an ``h1``.
    """
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


def _joined(layout: Layout, first: int, holders: set[int], weights: list[float]) -> int:
    """Returns the element around all marked parts of an article: some templates split it for advertisements."""
    above = list(_ancestors(layout, first))
    around = next((node for node in above if layout.tags[node] == "article"), -1)
    if around < 0:
        return _joined_alike(layout, first, holders, weights)
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


def _joined_alike(layout: Layout, first: int, holders: set[int], weights: list[float]) -> int:
    """Returns the element around a body and the short parts of the same name: a template may split the beginning off.

    Where another part is as long, or has a main heading, the parts are several stories.
    """
    texts = {above for node in holders for above in (node, *_ancestors(layout, node))}
    alike = [node for node in texts if layout.bodies[node] and layout.labels[node] == layout.labels[first]][
        :_MAX_MARKED
    ]
    if len(alike) < 2 or any(weights[node] >= 0.5 * weights[first] for node in alike if node != first):
        return first
    lines = [{node, *_ancestors(layout, node)} for node in alike]
    common = next((node for node in (first, *_ancestors(layout, first)) if all(node in line for line in lines)), first)
    inside = _inside(layout, common)
    stories = sum(inside[node] and tag in ("h1", "article") for node, tag in enumerate(layout.tags))
    return common if stories < 2 else first


def _nested(layout: Layout, node: int, other: int) -> bool:
    return node == other or node in _ancestors(layout, other) or other in _ancestors(layout, node)


def _ancestors(layout: Layout, node: int) -> Iterator[int]:
    while node:
        node = layout.parents[node]
        yield node


def _descend(layout: Layout, weights: list[float], node: int, share: float) -> int:
    heaviest: dict[int, int] = {}
    labelled: Counter[tuple[int, str]] = Counter()
    for child in range(1, len(weights)):
        parent = layout.parents[child]
        if weights[child] > 0 and layout.labels[child].strip():
            labelled[parent, layout.labels[child]] += 1
        if weights[child] > 0 and weights[child] > weights[heaviest.get(parent, 0)] * (parent in heaviest):
            heaviest[parent] = child
    while (
        node in heaviest
        and weights[heaviest[node]] >= share * weights[node]
        and layout.tags[heaviest[node]] not in PARAGRAPHS
        and labelled[node, layout.labels[heaviest[node]]] < 2  # parts of one article that a template splits
    ):
        node = heaviest[node]
    return node


def _inside(layout: Layout, root: int) -> list[bool]:
    inside = [False] * len(layout.tags)
    inside[root] = True
    for node in range(root + 1, len(inside)):
        inside[node] = inside[layout.parents[node]]
    return inside


def _without_lists(layout: Layout, root: int, blocks: list[Block], rows: dict[int, int]) -> list[Block]:
    """Removes lists and boxes that are mostly links, and short lines outside paragraphs and rows of data."""
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
        bar = 0.5 if tag in _LISTS else 0.6 if tag not in PARAGRAPHS else 2.0
        boxed[node] = boxed[layout.parents[node]] or linked[node] > bar * characters[node]
    usual = Counter(layout.tags[block.node] for block in blocks if block.prose).most_common(1)
    holders = PARAGRAPHS | {tag for tag, _ in usual}
    titles = _linked_titles(layout, blocks)
    return [
        block
        for block in blocks
        if not boxed[block.node]
        and (
            block.prose
            or block.node in rows
            or block.node in titles
            or _may_be_content(block, layout.tags[block.node], holders)
        )
    ]


def _linked_titles(layout: Layout, blocks: list[Block]) -> set[int]:
    """Returns the headings that are links, as of a list of products, between the paragraphs of a text.

    Such a heading has the parent of most paragraphs, and a paragraph follows; teasers have an element of their own.
    """
    pairs = [
        (block.node, after.node)
        for block, after in itertools.pairwise(blocks)
        if block.link_share >= 0.7 and after.prose and layout.tags[block.node] in HEADINGS
    ]
    if not pairs:
        return set()
    parents = Counter(layout.parents[block.node] for block in blocks if block.prose)
    ((holder, count),) = parents.most_common(1)
    if count < _MIN_RUNNING_PARAGRAPHS:
        return set()
    return {node for node, after in pairs if layout.parents[node] == layout.parents[after] == holder}


def _may_be_content(block: Block, tag: str, holders: frozenset[str]) -> bool:
    """Returns whether a block that is not prose may be part of an article."""
    if tag not in holders:
        return False
    if tag in HEADINGS:
        return block.link_share < 0.7
    if block.link_share > _MAX_LINKED:
        # Sentences may be linked; titles of other stories are linked as a whole and end without a full stop.
        return block.link_share < _WHOLE_LINK and len(block.text) >= _MIN_LINKED and block.text.endswith(_FULL_STOPS)
    return tag in PARAGRAPHS or bool(SENTENCE.search(block.text))


def _trimmed(blocks: list[Block], layout: Layout, title: str, rows: dict[int, int]) -> list[Block]:
    """Removes calls to action and labels, and everything after the end of the article."""
    kept: list[Block] = []
    wanted = title.casefold().strip()
    before, after = 0.0, total_of(blocks)
    for block in blocks:
        if block.node in rows:
            before, after = before + block.prose, after - block.prose
            kept.append(block)
            continue
        heading = layout.tags[block.node] in HEADINGS
        item = layout.tags[block.node] == "li"
        label = heading or not (block.prose or item)
        if len(block.text) < _MAX_LABEL_TEXT and label and ends_article(block.text):
            # In the middle of the article such a heading belongs to a box of the template.
            share = _MAX_AFTER_END if heading else 0.0 if block.text.endswith(".") else _MAX_AFTER_LABEL
            if after <= share * before:
                break
            continue
        before, after = before + block.prose, after - block.prose
        if (
            is_boilerplate(block.text, item=item or heading)
            or block.text.casefold() == wanted
            or layout.tags[block.node] == "h1"
        ):
            continue
        kept.append(block)
    while kept and (
        layout.tags[kept[-1].node] in HEADINGS
        or is_portrait(kept[-1].text)
        or (len(kept) > _MIN_BEFORE_APPEAL and is_appeal(kept[-1].text))
    ):
        kept.pop()
    return kept
