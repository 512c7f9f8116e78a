"""Where the words of a query are in an article: places in its title, and the part of its body with most of them."""

import bisect
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

from .analysis import Term, clean, terms

LENGTH: Final = 240  # characters of a body that are shown

Places = tuple[tuple[int, int], ...]  # from, to: characters


@dataclasses.dataclass(frozen=True, slots=True)
class Extract:
    """Words of a query in an article.

    Attributes:
      title: places in the title.
      body: a part of the body, with "…" where it was cut.
      marks: places in `body`.
      terms: the words that are in title and whole body, as the index knows them.
    """

    title: Places
    body: str
    marks: Places
    terms: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "title_marks": [*map(list, self.title)],
            "extract": self.body,
            "extract_marks": [*map(list, self.marks)],
        }


def extract(title: str, body: str, weights: dict[str, float], stemmer: str) -> Extract:
    """The places of words in a title, and the part of a body with the most different and rarest of them.

    Args:
      title: of the article.
      body: of the article.
      weights: by term as the index knows it, what each is worth.
      stemmer: of the article's language.
    """
    text = clean(body)
    found = terms(text, stemmer, weights)
    start, end = _window(text, found, weights)
    shown = " ".join(text[start:end].split("\n"))
    cut = ("… " if start else "", " …" if end < len(text) else "")
    shift = len(cut[0]) - start
    marks = _joined((term.start + shift, term.end + shift) for term in found if start <= term.start and term.end <= end)
    # A title that is not in composed form has other places than its clean text.
    in_title = terms(title, stemmer, weights) if clean(title) == title else []
    known = frozenset(term.text for term in (*found, *in_title))
    return Extract(_joined((term.start, term.end) for term in in_title), cut[0] + shown + cut[1], marks, known)


def _window(text: str, found: Sequence[Term], weights: dict[str, float]) -> tuple[int, int]:
    """The beginning and end of the best part, at spaces where there are some; the beginning of the text for none."""
    starts, best, first = [term.start for term in found], 0.0, 0
    for number, term in enumerate(found):
        inside = {other.text for other in found[number : bisect.bisect(starts, term.start + LENGTH * 3 // 4)]}
        worth = sum(weights[name] for name in inside)
        if worth > best:
            best, first = worth, term.start
    start = max(0, first - LENGTH // 8) if first > LENGTH // 2 else 0
    end = min(len(text), start + LENGTH)
    if start:
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", start + LENGTH // 2, end)
        end = space if space >= 0 else end
    return start, end


def _joined(places: Iterable[tuple[int, int]]) -> Places:
    """Places in order; those that touch or overlap are one, such as pairs of characters."""
    result = list[tuple[int, int]]()
    for start, end in sorted(places):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)
