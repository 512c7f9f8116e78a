"""``pairs --of=halves``: the sentences of an article, dealt at random to two texts (SimLTE, section 2).

Each sentence goes to one of two sides with probability 1/2 and keeps its order; no sentence is on both. A draw that
leaves a side empty is repeated. The draws follow from the seed and the article's id alone.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from ...formats.records import Rejection
from ...tasks.sentences import split_text
from ..texts import ArticleText, uniform_draw
from .interface import PairKind, Refusal, Text, TextPair

SENTENCE, WORD, NO_UNIT = "sentence", "word", "none"
DROP, BOTH = "drop", "both"
_LEAST_SENTENCES: Final = 2
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(f"[{_HAN}]|[^\\s{_HAN}]+")

Unit = tuple[str, str]  # what separates it from the unit before it, and its text


class HalvesOptions(Protocol):
    """The options of ``pairs`` that halves read."""

    @property
    def draws(self) -> int:
        """Pairs of each article."""

    @property
    def unit(self) -> str:
        """What is dealt: SENTENCE or WORD; with NO_UNIT both texts are the whole body."""

    @property
    def title(self) -> str:
        """DROP, or BOTH: both texts have it."""

    @property
    def seed(self) -> int:
        """Of the draws."""


def halves_pairs(article: ArticleText, _posts: Sequence[str], options: HalvesOptions) -> Iterator[TextPair | Refusal]:
    """Yields a pair for every draw; a refusal for an article of one sentence, and for a draw that came before.

    All units need two sentences, so that they give pairs of the same articles.
    """
    sentences = split_text(article.body)
    if len(sentences) < _LEAST_SENTENCES:
        yield Refusal(Rejection.TOO_FEW_SENTENCES, f"{len(sentences)} sentences")
        return
    title = article.title if options.title == BOTH else ""
    if options.unit == NO_UNIT:
        whole = Text(title, article.body)
        yield TextPair(whole, whole)
        return
    units, seen = _UNITS[options.unit](sentences), set()
    for number in range(options.draws):
        sides = deal(len(units), options.seed, article.doc_id, number)
        if sides in seen:
            yield Refusal(Rejection.DUPLICATE_PAIR, f"draw {number}")
            continue
        seen |= {sides, tuple(not side for side in sides)}
        left, right = (join_units(units, [side is wanted for side in sides]) for wanted in (False, True))
        yield TextPair(Text(title, left), Text(title, right))


def deal(count: int, seed: int, doc_id: str, number: int) -> tuple[bool, ...]:
    """Returns the side of each of ``count`` units, each with probability 1/2; both sides get a unit.

    Args:
      count: of units, 2 or more.
      seed: of the job.
      doc_id: of the article.
      number: of the draw.
    """
    attempt = 0
    while True:
        sides = tuple(uniform_draw("halves", seed, doc_id, number, attempt, unit) < 0.5 for unit in range(count))
        if len(set(sides)) == 2:
            return sides
        attempt += 1


def join_units(units: Sequence[Unit], kept: Sequence[bool]) -> str:
    r"""Returns the text of the kept units; a line break stays where one was between two of them.

    >>> join_units([("", "A."), (" ", "B."), ("\n", "C."), (" ", "D.")], [True, False, False, True])
    'A.\nD.'
    """
    parts: list[str] = []
    breaks = False
    for (separator, text), keep in zip(units, kept, strict=True):
        breaks = breaks or separator == "\n"
        if keep:
            parts += [("\n" if breaks else " ") if parts else "", text]
            breaks = False
    return "".join(parts)


def words_of(sentences: Sequence[Unit]) -> list[Unit]:
    r"""Returns the words of sentences: what is between spaces, and every Chinese character.

    >>> words_of([("", "Two words."), ("\n", "One")])
    [('', 'Two'), (' ', 'words.'), ('\n', 'One')]
    """
    return [
        (separator if place == 0 else " ", word)
        for separator, sentence in sentences
        for place, word in enumerate(_WORD.findall(sentence))
    ]


_UNITS: Final[Mapping[str, Callable[[Sequence[Unit]], list[Unit]]]] = {SENTENCE: list, WORD: words_of}
HALVES = PairKind(halves_pairs, options=("draws", "unit", "title"))
