"""Extracts the text of an article: by fast rules, checked against the page's JSON-LD; by trafilatura if in doubt."""

import operator
import re
from collections import Counter
from typing import NamedTuple

from ...tasks.sentences import words_of
from .content import main_content
from .layout import SENTENCE, Layout, letters_of, total_of
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
# Chosen on gold pages.
CLEAR_SHARE = 0.67
MIN_SUPPORT = 0.5
OWN_BONUS = 0.3
_MIN_SHARE, _MIN_OF_SMALL_SHARE = 0.35, 600  # a short text that is only a part of the page's prose may be a box
# Minimum share of all prose on the page. To the few lines of a page with a video or picture, the slow extractor would
# only add labels.
_MIN_PROSE_SHARE = 0.3
_LAST_LINES, _MIN_LATER = 3, 1.1
_MAX_ENTRY = 60  # longest entry of a menu, in characters
_READINGS = re.compile(r"(?i)<(r[tp])\b[^>]*>[^<]*(?:</\1>)?")  # of ruby


class Body(NamedTuple):
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
    own, from_json_ld = Body(fast.text[:MAX_BODY_CHARACTERS], MARKUP), Body(stated[:MAX_BODY_CHARACTERS], JSON_LD)

    def slow() -> Body:
        return Body(slow_text(html, url)[:MAX_BODY_CHARACTERS], TEXT)

    # A much shorter text is a summary or the beginning.
    if len(stated) >= max(_MIN_STATED_CHARACTERS, _MIN_STATED_SHARE * len(own.text)):
        precision, recall = overlap(own.text, stated)
        # Texts in JSON-LD are often truncated or contain captions: the markup is preferred while they agree.
        if recall >= _AGREE:
            chosen = own
        elif precision >= _AGREE and len(stated) > len(own.text):
            chosen = own if _has_inserts(stated, own.text) else from_json_ld
        else:
            scored = [(f1_of(*overlap(one.text, stated)), one) for one in (own, slow())]
            score, chosen = max(scored, key=operator.itemgetter(0))
            chosen = chosen if score >= 0.5 else from_json_ld
    else:
        least = min(MIN_BODY_CHARACTERS, max(1.0, _MIN_PROSE_SHARE * total_of(layout.blocks)))
        sure = fast.confidence >= MIN_CONFIDENCE and len(own.text) >= least
        sure = sure and (fast.share >= _MIN_SHARE or len(own.text) >= _MIN_OF_SMALL_SHARE)
        chosen = own
        if not sure or fast.share < CLEAR_SHARE:
            by_prose = main_content(layout, title, live_blog=live_blog, by_names=False)
            second = Body(by_prose.text[:MAX_BODY_CHARACTERS], MARKUP)
            if not sure or overlap(own.text, second.text)[0] < MIN_SUPPORT:
                chosen = _most_agreed([own, slow(), second])
                # What only trafilatura finds may be the menus and headlines of a list of stories.
                if not (own.text or second.text) and _is_mostly_entries(chosen.text):
                    chosen = own
    # Only now: a passage that is there often, as in a carousel, speaks against a text.
    return Body("\n".join(without_repeats(chosen.text.split("\n"))), chosen.source)


def _has_inserts(stated: str, text: str) -> bool:
    """Returns whether a longer text has the end of another one later than that is long.

    Then it is not the whole of a text that the page cuts, but has captions, players or other stories in between.
    """
    whole = letters_of(stated)
    ends = (letters_of(line)[-_MAX_ENTRY:] for line in text.split("\n")[-_LAST_LINES:])
    place = max((whole.rfind(end) for end in ends if len(end) >= _MAX_ENTRY // 2), default=0)
    return place > _MIN_LATER * len(letters_of(text))


def _most_agreed(options: list[Body]) -> Body:
    """Returns the text that the other two are most like; the first, the rules', has a bonus if it is not empty."""
    given = [option for option in options if option.text] or options[:1]

    def score(one: Body) -> float:
        likeness = sum(f1_of(*overlap(one.text, other.text)) for other in given if other is not one)
        return likeness + OWN_BONUS * (one is options[0])

    return max(given, key=score)


def is_within_slow_limits(html: str) -> bool:
    """Returns whether a page is small enough for the slow extractors, which take minutes on very large pages."""
    return len(html) <= _MAX_SLOW_CHARACTERS and html.count("<") <= _MAX_SLOW_TAGS


def slow_text(html: str, url: str) -> str:
    """Returns trafilatura's text without comments; "" for pages that are too large."""
    import trafilatura

    if not is_within_slow_limits(html):
        return ""
    html = _READINGS.sub("", html) if "<ruby" in html else html
    document = trafilatura.bare_extraction(html, url=url, with_metadata=False, include_comments=False)
    text = ((document.text or "") if document is not None else "").strip()
    return "" if _is_menu(text.split("\n")) else text


def _is_mostly_entries(text: str) -> bool:
    """Returns whether most of a text is in lines that may be entries of a menu or headlines."""
    entries = (len(line) for line in text.split("\n") if len(line) <= 2 * _MAX_ENTRY and not SENTENCE.search(line))
    return 2 * sum(entries) > len(text)


def _is_menu(lines: list[str]) -> bool:
    """Returns whether a text is the menu of a page: no line has a sentence, all are short, titles or rows of titles."""
    if any(map(SENTENCE.search, lines)):
        return False
    words = (line.split() for line in lines if len(line) > _MAX_ENTRY and "|" not in line)
    return all(sum(word[0].isupper() for word in line) * 2 > len(line) for line in words)


def overlap(text: str, reference: str) -> tuple[float, float]:
    """Returns (precision, recall) of the words of a text as a multiset."""
    ours, theirs = (Counter(words_of(one.casefold())) for one in (text, reference))
    shared = sum((ours & theirs).values())
    return shared / max(1, sum(ours.values())), shared / max(1, sum(theirs.values()))


def f1_of(precision: float, recall: float) -> float:
    """Returns the harmonic mean of precision and recall."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
