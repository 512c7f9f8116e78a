"""Extracts the text of an article: by fast rules, checked against the page's JSON-LD; by trafilatura if in doubt."""

import dataclasses
import re
from collections import Counter

from .content import main_content
from .layout import Layout, all_prose
from .trimming import without_repeats

MARKUP, JSON_LD, TEXT = "markup", "json-ld", "text"
MAX_BODY_CHARACTERS = 50_000
MIN_BODY_CHARACTERS = 250
_MIN_STATED_CHARACTERS = 250
_MIN_STATED_SHARE = 0.25
MIN_CONFIDENCE = 0.5
_MAX_SLOW_CHARACTERS, _MAX_SLOW_TAGS = 3_000_000, 30_000
_AGREE = 0.8
# The rules are sure where they keep this share of the prose, or where a reader that knows no names has this share of
# their words too. A longer text of that reader is no objection: it contains what names exclude.
# Chosen by benchmarks/fit_body_choice.py.
CLEAR_SHARE = 0.67
MIN_SUPPORT = 0.5
OWN_BONUS = 0.3
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
    chosen = _chosen(html, layout, url, title, stated, live_blog=live_blog)
    # Only now: a passage that is there often, as in a carousel, speaks against a text.
    return Body("\n".join(without_repeats(chosen.text.split("\n"))), chosen.source)


def _chosen(html: str, layout: Layout, url: str, title: str, stated: str, *, live_blog: bool) -> Body:
    fast = main_content(layout, title, live_blog=live_blog)
    own = fast.text[:MAX_BODY_CHARACTERS]
    # A much shorter text is a summary or the beginning.
    if len(stated) >= max(_MIN_STATED_CHARACTERS, _MIN_STATED_SHARE * len(own)):
        precision, recall = overlap(own, stated)
        # Texts in JSON-LD are often truncated or contain captions: the markup is preferred while they agree.
        if recall >= _AGREE:
            return Body(own, MARKUP)
        if precision >= _AGREE and len(stated) > len(own):
            return Body(stated[:MAX_BODY_CHARACTERS], JSON_LD)
    else:
        sure = fast.confidence >= MIN_CONFIDENCE and len(own) >= least_characters(layout)
        if sure and fast.share >= CLEAR_SHARE:
            return Body(own, MARKUP)
        second = main_content(layout, title, live_blog=live_blog, by_names=False).text[:MAX_BODY_CHARACTERS]
        if sure and overlap(own, second)[0] >= MIN_SUPPORT:
            return Body(own, MARKUP)
        slow = slow_text(html, url)[:MAX_BODY_CHARACTERS]
        return _most_agreed([Body(own, MARKUP), Body(slow, TEXT), Body(second, MARKUP)])
    slow = slow_text(html, url)[:MAX_BODY_CHARACTERS]
    options = [Body(own, MARKUP), Body(slow, TEXT), Body(stated[:MAX_BODY_CHARACTERS], JSON_LD)]
    scores = [f1_of(*overlap(option.text, stated)) for option in options[:2]]
    best = max(range(2), key=lambda index: scores[index])
    return options[best] if scores[best] >= 0.5 else options[2]


def _most_agreed(options: list[Body]) -> Body:
    """Returns the text that the other two are most like; the first, the rules', has a bonus if it is not empty."""
    given = [option for option in options if option.text] or options[:1]
    scores = [
        sum(f1_of(*overlap(one.text, other.text)) for other in given if other is not one)
        + OWN_BONUS * (one is options[0])
        for one in given
    ]
    return given[scores.index(max(scores))]


def least_characters(layout: Layout) -> float:
    """Returns the length from which the rules' text may be the whole article, in characters."""
    return min(MIN_BODY_CHARACTERS, max(1.0, _MIN_PROSE_SHARE * all_prose(layout)))


def is_within_slow_limits(html: str) -> bool:
    """Returns whether a page is small enough for the slow extractors, which take minutes on very large pages."""
    return len(html) <= _MAX_SLOW_CHARACTERS and html.count("<") <= _MAX_SLOW_TAGS


def slow_text(html: str, url: str) -> str:
    """Returns trafilatura's text without comments; "" for pages that are too large."""
    import trafilatura

    if not is_within_slow_limits(html):
        return ""
    document = trafilatura.bare_extraction(html, url=url, with_metadata=False, include_comments=False)
    return ((document.text or "") if document is not None else "").strip()


def overlap(text: str, reference: str) -> tuple[float, float]:
    """Returns (precision, recall) of the words of a text as a multiset."""
    ours, theirs = (Counter(_WORD.findall(one.casefold())) for one in (text, reference))
    shared = sum((ours & theirs).values())
    return shared / max(1, sum(ours.values())), shared / max(1, sum(theirs.values()))


def f1_of(precision: float, recall: float) -> float:
    """Returns the harmonic mean of precision and recall."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
