"""The text of an article: by the fast rules where they are sure, checked against what the page states, else by trafilatura."""

import dataclasses
import re
from collections import Counter

from .content import Layout, all_prose, main_content

MARKUP, JSON_LD, TEXT = "markup", "json-ld", "text"
_MAX_BODY_CHARACTERS = 50_000
_MIN_BODY_CHARACTERS = 250
_MIN_STATED_CHARACTERS = 250
_SURE = 0.5
_MAX_SLOW_CHARACTERS, _MAX_SLOW_TAGS = 3_000_000, 30_000
_AGREE = 0.8
_ALL = 0.3  # of the prose on the page, wherever it is: to the few lines of a film or a picture the slow extractor adds labels only
_WORD = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """An article's text, paragraphs one a line, and where it was read: "markup", "json-ld" or "text" (trafilatura)."""

    text: str
    source: str


def read_body(html: str, layout: Layout, url: str, title: str, stated: str, *, live_blog: bool) -> Body:
    """The text of a page's article, at most 50 000 characters.

    Args:
      html: the page.
      layout: of the same page.
      url: where it was fetched.
      title: the article's.
      live_blog: see :func:`~.content.main_content`.
      stated: the text that the page's JSON-LD carries, or "".
    """
    fast = main_content(layout, title, live_blog=live_blog)
    own = fast.text[:_MAX_BODY_CHARACTERS]
    if len(stated) >= _MIN_STATED_CHARACTERS:
        precision, recall = _overlap(own, stated)
        # Stated texts are often cut short, and carry captions: the page's own markup goes first while they agree.
        if recall >= _AGREE:
            return Body(own, MARKUP)
        if precision >= _AGREE and len(stated) > len(own):
            return Body(stated[:_MAX_BODY_CHARACTERS], JSON_LD)
    elif fast.confidence >= _SURE and len(own) >= min(_MIN_BODY_CHARACTERS, max(1.0, _ALL * all_prose(layout))):
        return Body(own, MARKUP)
    slow = slow_text(html, url)[:_MAX_BODY_CHARACTERS]
    if len(stated) >= _MIN_STATED_CHARACTERS:
        options = [Body(own, MARKUP), Body(slow, TEXT), Body(stated[:_MAX_BODY_CHARACTERS], JSON_LD)]
        scores = [_f1(*_overlap(option.text, stated)) for option in options[:2]]
        best = max(range(2), key=lambda index: scores[index])
        return options[best] if scores[best] >= 0.5 else options[2]
    if not own or not slow:
        return Body(own or slow, MARKUP if own else TEXT)
    precision, recall = _overlap(own, slow)
    return Body(own, MARKUP) if recall >= _AGREE or (fast.confidence >= _SURE and recall >= 0.5) else Body(slow, TEXT)


def suits_slow(html: str) -> bool:
    """Whether a page is small enough for the slow extractors, which take minutes over what is larger than any article's page."""
    return len(html) <= _MAX_SLOW_CHARACTERS and html.count("<") <= _MAX_SLOW_TAGS


def slow_text(html: str, url: str) -> str:
    """Trafilatura's text, set to precision, without comments and tables; "" for a page beyond its means."""
    import trafilatura

    if not suits_slow(html):
        return ""
    document = trafilatura.bare_extraction(
        html, url=url, with_metadata=False, include_comments=False, include_tables=False, favor_precision=True
    )
    return ((document.text or "") if document is not None else "").strip()


def _overlap(text: str, reference: str) -> tuple[float, float]:
    """(precision, recall) of a text's words as a multiset."""
    ours, theirs = (Counter(_WORD.findall(one.casefold())) for one in (text, reference))
    shared = sum((ours & theirs).values())
    return shared / max(1, sum(ours.values())), shared / max(1, sum(theirs.values()))


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
