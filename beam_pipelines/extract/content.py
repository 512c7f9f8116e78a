"""Extracts the running text of an article from the layout of its page by rules, with a confidence.

The rules follow Readability and jusText. The element that contains most of the prose is the article's body. Elements
whose names say navigation, comments or related stories are left out.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .bylines import is_byline
from .layout import HEADINGS, HIDDEN, PARAGRAPHS, Block, Element, Layout, Name, may_be_text, total_of
from .lists import data_rows, lines_of, without_lists, without_teasers
from .trimming import ends_article, is_appeal, is_boilerplate, is_portrait

_MAX_MARKED = 1_000
_MIN_RELEASED, _MIN_REMAINING = 400, 0.05
_MIN_STORY = 300
_MIN_PART, _MIN_HIDDEN = 0.3, 0.6  # of the prose of the body
_MIN_MARKED = 0.25
_MIN_LEAD, _MAX_LEAD = 200, 0.3  # a shorter text is a summary for readers of headlines
_MIN_POSTS = 0.7
_MAX_LABEL_TEXT = 100
_MAX_AFTER_END, _MAX_AFTER_LABEL = 0.3, 0.1
_MAX_RELEASES = 5
_MIN_RUNNING_PARAGRAPHS = 3
_MIN_BEFORE_APPEAL = 4  # where less is left, the notice may be the text

_Around = Mapping[Element, Element]  # by element, the outermost of some elements around it


class Content(NamedTuple):
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
      layout: layout of the page, see :func:`~.layout.lay_out`.
      title: title of the article, which is not part of the body.
      live_blog: whether the page is a live blog; the text then consists of all posts.
      by_names: whether names of elements count, except those of readers' comments. Without them the result is a second
        opinion, which depends on the prose alone.
    """
    comments = _comments(layout)
    bodies = [element for element in layout.elements if element.is_body] if by_names else []
    released: set[str] = set()
    for _ in range(_MAX_RELEASES):
        aside = _set_aside(layout, comments, bodies, released) if by_names else comments
        page = _Page(layout, _weights(layout, aside), bodies)
        if not page.prose:
            return Content("", 0.0, 0.0)
        blocks = [block for block in layout.blocks if block.element not in aside]
        root, total = page.body({block.element for block in blocks})
        if not by_names or not (parts := _parts_of(layout, page.inside(root), aside, comments)):
            break
        released |= parts  # and again: parts inside may have such names, too
    if live_blog and page.weights[root] < _MIN_POSTS * page.prose:
        root, total = page.descend(layout.elements[0], 0.85), page.prose
    inside = page.inside(root)
    candidates = [block for block in blocks if block.element in inside]
    candidates[:0] = _lead(layout, inside, aside, candidates)
    candidates = without_teasers(layout, candidates)
    rows = data_rows(layout, candidates)
    kept = _trimmed(without_lists(layout, root, candidates, rows), title, rows)
    prose = total_of(kept)
    share = prose / total_of(block for block in layout.blocks if block.element not in comments)
    return Content("\n".join(lines_of(kept, rows)), min(1.0, prose / total), share)


def running_text(layout: Layout) -> float:
    """Returns the characters of prose in the element with the most prose in itself and its paragraphs.

    Only elements with three or more paragraphs count, and no readers' comments.
    """
    comments = _comments(layout)
    characters: defaultdict[Element, float] = defaultdict(float)
    paragraphs = Counter[Element]()
    for block in layout.blocks:
        if block.prose and block.element not in comments:
            holder = block.element.parent if block.element.tag in PARAGRAPHS else block.element
            characters[holder] += block.prose
            paragraphs[holder] += 1
    running = (count for holder, count in characters.items() if paragraphs[holder] >= _MIN_RUNNING_PARAGRAPHS)
    return max(running, default=0.0)


def _comments(layout: Layout) -> _Around:
    """Returns the outermost comment section around each element in one."""
    named = {element for element in layout.elements if element.name is Name.NEVER}
    if not named:
        return {}
    # "comments-open" may be a class of the whole page: an element with the main heading is not a comment section.
    headed = {above for element in layout.elements if element.tag == "h1" for above in element.ancestors()}
    return _around(layout, named - headed)


def _around(layout: Layout, elements: AbstractSet[Element]) -> _Around:
    outermost: dict[Element, Element] = {}
    for element in layout.elements:
        if outer := outermost.get(element.parent) or (element if element in elements else None):
            outermost[element] = outer
    return outermost


def _weights(layout: Layout, aside: _Around) -> dict[Element, float]:
    """Returns the characters of prose in each element, without boilerplate."""
    weights: dict[Element, float] = dict.fromkeys(layout.elements, 0.0)
    for block in layout.blocks:
        if block.prose and block.element not in aside:
            weights[block.element] += block.prose
    for element in reversed(layout.elements[1:]):
        weights[element.parent] += weights[element]
    return weights


def _parts_of(layout: Layout, inside: Mapping[Element, None], aside: _Around, comments: _Around) -> set[str]:
    """Returns the labels that were set aside in the body, have much of its prose and are used for parts of articles."""
    own, held = 0.0, Counter[str]()
    for block in layout.blocks if len(aside) > len(comments) else ():
        outer = aside.get(block.element)
        if outer is None:
            own += block.prose * (block.element in inside)
        elif outer in inside and block.element not in comments:
            held[outer.label] += int(block.prose)
    return {
        label
        for label, prose in held.items()
        if (prose >= _MIN_HIDDEN * (prose + own) if label == HIDDEN else prose >= _MIN_PART * (prose + own))
        and may_be_text(label)
    }


def _set_aside(
    layout: Layout, comments: _Around, bodies: list[Element], released: AbstractSet[str] = frozenset()
) -> _Around:
    """Returns the outermost boilerplate element around each element in one.

    A name that would remove most of the page's prose has another meaning on that page ("has-sidebar", "widget-content")
    and is released.
    """
    refused = set(comments.values())
    total = total_of(block for block in layout.blocks if block.element not in comments)
    weights = _weights(layout, comments)
    holding = _holders_of_bodies(layout, bodies, weights)
    released, asked = set(released), len(released)
    aside = comments
    for _ in range(_MAX_RELEASES):
        named = {element for element in layout.elements if element.name and element.label not in released}
        aside = _around(layout, (named - holding) | refused)
        remaining = total_of(block for block in layout.blocks if block.element not in aside)
        if remaining >= max(_MIN_RELEASED, (0.1 if len(released) > asked else 0.2) * total):
            return aside
        of_label: defaultdict[str, float] = defaultdict(float)
        for element in layout.elements:  # only the outermost: names inside it may be correct
            if aside.get(element) is element and element not in refused:
                of_label[element.label] += weights[element]
        label = max(of_label, key=of_label.__getitem__, default="")
        if of_label[label] < 0.4 * total or not of_label[label]:
            return aside if remaining >= _MIN_REMAINING * total else comments
        released.add(label)
    return aside


def _holders_of_bodies(layout: Layout, bodies: list[Element], weights: Mapping[Element, float]) -> set[Element]:
    """Returns the elements around the marked body of the article: "content-with-sidebar" is not a sidebar.

    The body is each marked element with a good part of the prose; elements of the same name before the largest are its
    beginning, for example the part that is shown to readers without a subscription.
    """
    marked = [element for element in bodies if weights[element] and not element.name]
    if not marked:
        return set()
    top = max(marked, key=weights.__getitem__)
    least = _MIN_MARKED * weights[layout.elements[0]]
    before = marked[: marked.index(top)]
    parts = [one for one in marked if weights[one] >= least or (one in before and one.label == top.label)]
    return {above for part in parts for above in part.ancestors()}


class _Page:
    """The elements of a page with their prose.

    Args:
      layout: the layout.
      weights: characters of prose in each element, without boilerplate.
      bodies: elements that are marked as an article's body.
    """

    def __init__(self, layout: Layout, weights: Mapping[Element, float], bodies: list[Element]) -> None:
        self.layout, self.weights, self.bodies = layout, weights, bodies
        self.prose = weights[layout.elements[0]] if layout.elements else 0.0

    def body(self, holders: AbstractSet[Element]) -> tuple[Element, float]:
        """Returns the element that contains the article, and the characters of prose on its page.

        The element is one that is marked as a body, or the deepest element with nearly all of the prose.

        Args:
          holders: the elements of the blocks that are not boilerplate.
        """
        page = self._first_story()
        total, inside = self.weights[page], self.inside(page)
        marked = [one for one in self.bodies if one in inside and self.weights[one] >= 0.1 * total]
        articles = [one for one in inside if one.tag == "article" and self.weights[one] >= 0.25 * total]
        for elements in (marked, articles):
            if elements:
                top = max(self.weights[one] for one in elements)
                # Of several with a similar size the first: pages append further stories to the requested one.
                first = next(one for one in elements if self.weights[one] >= 0.5 * top)
                whole = self._joined(first, holders)
                if self.weights[whole] >= 0.4 * total or len(elements) > 1:
                    others = [one for one in elements if elements is marked and not _nested(one, whole)]
                    outermost = [one for one in others if not any(above in others for above in one.ancestors())]
                    return self.descend(whole, 0.95), total - sum(self.weights[one] for one in outermost)
        return self.descend(page, 0.85), total

    def _first_story(self) -> Element:
        """Returns the first of several complete stories on a page; the whole page if there is one.

        A story is an ``article`` element with an ``h1``.
        """
        stories: list[Element] = []
        for element in self.layout.elements:
            if element.tag == "h1":
                story = next((above for above in element.ancestors() if above.tag == "article"), None)
                if story is not None and story not in stories and self.weights[story] >= _MIN_STORY:
                    stories.append(story)
                    if len(stories) == 2:
                        return self.layout.elements[0] if _nested(*stories) else stories[0]
        return self.layout.elements[0]

    def _joined(self, first: Element, holders: Iterable[Element]) -> Element:
        """Returns the element around all parts of an article: some templates split it for advertisements.

        In an ``article`` the parts are all marked ones. Elsewhere they are those of the same name, unless another main
        heading or article, or between long parts a heading that is a link, says that they are several stories.
        """
        holding = _with_ancestors(holders)
        around = next((above for above in first.ancestors() if above.tag == "article"), None)
        if around is not None:
            parts = [one for one in self.bodies if one in holding][:_MAX_MARKED]
            return _common([first, *(one for one in parts if around in (one, *one.ancestors()))])
        alike = [one for one in self.bodies if one in holding and one.label == first.label][:_MAX_MARKED]
        is_long = any(self.weights[one] >= 0.5 * self.weights[first] for one in alike if one is not first)
        elements = self.layout.elements
        among = elements[elements.index(alike[0]) : elements.index(alike[-1])] if len(alike) > 1 else []
        for one in among:
            is_story = one.tag == "h1" or (one.tag == "article" and self.weights[one] > 0)
            if is_story or (is_long and one.tag in HEADINGS and one.node.find(".//a") is not None):
                return first
        return _common([first, *alike])

    def descend(self, element: Element, share: float) -> Element:
        """Returns the deepest element inside this one with nearly all of its prose."""
        heaviest: dict[Element, Element] = {}
        labelled: Counter[tuple[Element, str]] = Counter()
        for child in self.layout.elements[1:]:
            if weight := self.weights[child]:
                labelled[child.parent, child.label] += bool(child.label.strip())
                if child.parent not in heaviest or weight > self.weights[heaviest[child.parent]]:
                    heaviest[child.parent] = child
        while (
            (child := heaviest.get(element, element)) is not element
            and self.weights[child] >= share * self.weights[element]
            and child.tag not in PARAGRAPHS
            and labelled[element, child.label] < 2  # parts of one article that a template splits
        ):
            element = child
        return element

    def inside(self, root: Element) -> dict[Element, None]:
        """Returns an element and all in it, in document order."""
        found: dict[Element, None] = {root: None}
        for element in self.layout.elements:
            if element.parent in found:
                found[element] = None
        return found


def _with_ancestors(elements: Iterable[Element]) -> set[Element]:
    found: set[Element] = set()
    for element in elements:
        while element not in found:
            found.add(element)
            element = element.parent  # noqa: PLW2901 - the same line of elements
    return found


def _common(parts: list[Element]) -> Element:
    """Returns the innermost element with all parts in it."""
    lines = [{part, *part.ancestors()} for part in parts[1:]]
    around = (parts[0], *parts[0].ancestors())
    return next((element for element in around if all(element in line for line in lines)), parts[0])


def _nested(one: Element, other: Element) -> bool:
    return one is other or one in other.ancestors() or other in one.ancestors()


def _lead(layout: Layout, inside: Mapping[Element, None], aside: _Around, blocks: list[Block]) -> list[Block]:
    """Returns the paragraphs between the main heading and the body that look like the body's paragraphs.

    Some templates have an element of its own for the first paragraphs, or for all that follows them.
    """

    def style(block: Block) -> tuple[str, str]:
        names = block.element.label.split()
        return ("", names[0]) if names else (block.element.tag, "")

    usual = Counter(style(block) for block in blocks if block.prose).most_common(1)
    if not usual:
        return []
    lead, texts = list[Block](), {block.text for block in blocks}
    for block in reversed(list(itertools.takewhile(lambda block: block.element not in inside, layout.blocks))):
        if block.element.tag == "h1":
            return lead[::-1] if _MIN_LEAD <= total_of(lead) <= _MAX_LEAD * total_of(blocks) else []
        if block.prose and block.element not in aside and style(block) == usual[0][0] and block.text not in texts:
            lead.append(block)
    return []


def _trimmed(blocks: list[Block], title: str, rows: Mapping[Element, Element]) -> list[Block]:
    """Removes calls to action and labels, and everything after the end of the article."""
    kept: list[Block] = []
    wanted = title.casefold().strip()
    before, after = 0.0, total_of(blocks)
    for block in blocks:
        tag, text = block.element.tag, block.text
        heading, item, in_row = tag in HEADINGS, tag == "li", block.element in rows
        label = not in_row and len(text) < _MAX_LABEL_TEXT and (heading or not (block.prose or item))
        if label and ends_article(text):
            # In the middle of the article such a heading belongs to a box of the template.
            share = _MAX_AFTER_END if heading else 0.0 if text.endswith(".") else _MAX_AFTER_LABEL
            if after <= share * before:
                break
            continue
        before, after = before + block.prose, after - block.prose
        if in_row or not (is_boilerplate(text, item=item or heading) or text.casefold() == wanted or tag == "h1"):
            kept.append(block)
    while kept and not kept[0].prose and kept[0].element.tag not in HEADINGS and is_byline(kept[0].text):
        kept.pop(0)
    while kept and (
        kept[-1].element.tag in HEADINGS
        or is_portrait(kept[-1].text)
        or (len(kept) > _MIN_BEFORE_APPEAL and is_appeal(kept[-1].text))
    ):
        kept.pop()
    return kept
