"""Entity linking: finds aliases by Aho-Corasick (whole words, longest match) and chooses one entity for each."""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .tables import Alias
from .tokens import words_of

# An alias whose most likely entity has a lower prior is not linked by itself.
LEAST_PRIOR: Final = 0.5


class Linker:
    """Finds entities in texts.

    Every word is matched with a space on each side, so a match covers whole words and adjacent names share no space.

    Args:
      aliases: the alias table; aliases whose entity is not in ``rows`` are left out.
      rows: row of each entity in the embedding table.
    """

    def __init__(self, aliases: Iterable[Alias], rows: Mapping[str, int]) -> None:
        import ahocorasick

        meanings: dict[str, list[tuple[float, int]]] = {}
        for alias in aliases:
            if alias.entity in rows:
                meanings.setdefault(_spaced(words_of(alias.alias)), []).append((alias.prior, rows[alias.entity]))
        meanings.pop("", None)
        self._meanings = [sorted(items, key=lambda item: (-item[0], item[1])) for _, items in sorted(meanings.items())]
        self._automaton = ahocorasick.Automaton()
        for number, key in enumerate(sorted(meanings)):
            self._automaton.add_word(key, (number, len(key)))
        if self._meanings:
            self._automaton.make_automaton()

    def find(self, text: str) -> list[int]:
        """Returns the numbers of the aliases in a text, in order; of overlapping matches the leftmost, then longest."""
        if not self._meanings:
            return []
        found = [
            (end + 1 - length, -length, number)
            for end, (number, length) in self._automaton.iter(_spaced(words_of(text)))
        ]
        chosen: list[int] = []
        free_from = 0
        for start, negative_length, number in sorted(found):
            if start >= free_from:
                chosen.append(number)
                free_from = start - negative_length
        return chosen

    def link(self, texts: Sequence[str]) -> collections.Counter[int]:
        """Counts mentions by entity row over the texts of one document.

        An alias of several entities means the one that the document also names by an unambiguous alias. Otherwise it
        means the most likely one if its prior is at least 0.5, and nothing if not.
        """
        aliases = collections.Counter(itertools.chain.from_iterable(map(self.find, texts)))
        certain = {self._meanings[number][0][1] for number in aliases if len(self._meanings[number]) == 1}
        mentions: collections.Counter[int] = collections.Counter()
        for number, count in sorted(aliases.items()):
            row = self._choose(self._meanings[number], certain)
            if row is not None:
                mentions[row] += count
        return mentions

    @staticmethod
    def _choose(meanings: Sequence[tuple[float, int]], certain: set[int]) -> int | None:
        if len(meanings) > 1:
            for _, row in meanings:
                if row in certain:
                    return row
        prior, row = meanings[0]
        return row if prior >= LEAST_PRIOR else None


def _spaced(words: Sequence[str]) -> str:
    """Returns the words joined, each with a space on both sides.

    >>> _spaced(["New", "York"])
    ' New  York '
    """
    return " " + "  ".join(words) + " " if words else ""
