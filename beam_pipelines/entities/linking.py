"""Entity linking: Aho-Corasick over the alias table, whole words, longest match, then one entity for each alias."""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .tables import Alias
from .tokens import words_of

# An alias that means its likeliest entity less often than this means nothing by itself.
LEAST_PRIOR: Final = 0.5


class Linker:
    """Finds entities in texts.

    Every word is matched with a space on each side, so a match covers whole words and neighboring names share none.

    Args:
      aliases: the alias table; rows whose entity has no row in ``rows`` are left out.
      rows: number of each entity in the embedding table.
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
        """Numbers of the aliases in a text, in order: of matches that overlap, the leftmost, of those the longest."""
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
        """Mentions by entity row over the texts of one document.

        An alias of several entities means the one that the document also names by an alias of its own; failing that,
        the likeliest, if its prior is at least a half; failing that, nothing.
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
    """Each word between spaces of its own.

    >>> _spaced(["New", "York"])
    ' New  York '
    """
    return " " + "  ".join(words) + " " if words else ""
