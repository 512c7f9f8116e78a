"""Extracts the text of an article: by fast rules, checked against the page's JSON-LD; by trafilatura if in doubt."""

import dataclasses
import re
from collections import Counter

from .content import Layout, all_prose, main_content

MARKUP, JSON_LD, TEXT = "markup", "json-ld", "text"
_MAX_BODY_CHARACTERS = 50_000
_MIN_BODY_CHARACTERS = 250
_MIN_STATED_CHARACTERS = 250
_MIN_CONFIDENCE = 0.5
_MAX_SLOW_CHARACTERS, _MAX_SLOW_TAGS = 3_000_000, 30_000
_AGREE = 0.8
# Minimum share of all prose on the page. To the few lines of a page with a video or picture, the slow extractor would
# only add labels.
_MIN_PROSE_SHARE = 0.3
_WORD = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """The text of an article.

    Attributes:
      text: the text, one paragraph per line.
      source: "markup", "json-ld" or "text" (trafilatura).
    """

    text: str
    source: str


def read_body(html: str, layout: Layout, url: str, title: str, stated: str, *, live_blog: bool) -> Body:
    """Returns the text of a page's article, at most 50,000 characters.

    Args:
      html: the page.
      layout: layout of the same page.
      url: URL of the page.
      title: title of the article.
      stated: text of the article in the page's JSON-LD, or "".
      live_blog: see :func:`~.content.main_content`.
    """
    fast = main_content(layout, title, live_blog=live_blog)
    own = fast.text[:_MAX_BODY_CHARACTERS]
    if len(stated) >= _MIN_STATED_CHARACTERS:
        precision, recall = _overlap(own, stated)
        # Texts in JSON-LD are often truncated or contain captions: the markup is preferred while they agree.
        if recall >= _AGREE:
            return Body(own, MARKUP)
        if precision >= _AGREE and len(stated) > len(own):
            return Body(stated[:_MAX_BODY_CHARACTERS], JSON_LD)
    elif fast.confidence >= _MIN_CONFIDENCE and len(own) >= _least_characters(layout):
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
    agree = recall >= _AGREE or (fast.confidence >= _MIN_CONFIDENCE and recall >= 0.5)
    return Body(own, MARKUP) if agree else Body(slow, TEXT)


def _least_characters(layout: Layout) -> float:
    return min(_MIN_BODY_CHARACTERS, max(1.0, _MIN_PROSE_SHARE * all_prose(layout)))


def is_within_slow_limits(html: str) -> bool:
    """Returns whether a page is small enough for the slow extractors, which take minutes on very large pages."""
    return len(html) <= _MAX_SLOW_CHARACTERS and html.count("<") <= _MAX_SLOW_TAGS


def slow_text(html: str, url: str) -> str:
    """Returns trafilatura's text in precision mode, without comments and tables; "" for pages that are too large."""
    import trafilatura

    if not is_within_slow_limits(html):
        return ""
    document = trafilatura.bare_extraction(
        html, url=url, with_metadata=False, include_comments=False, include_tables=False, favor_precision=True
    )
    return ((document.text or "") if document is not None else "").strip()


def _overlap(text: str, reference: str) -> tuple[float, float]:
    """Returns (precision, recall) of the words of a text as a multiset."""
    ours, theirs = (Counter(_WORD.findall(one.casefold())) for one in (text, reference))
    shared = sum((ours & theirs).values())
    return shared / max(1, sum(ours.values())), shared / max(1, sum(theirs.values()))


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
