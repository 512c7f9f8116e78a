"""Entity linking: finds aliases (whole words, longest match) and chooses one entity for each."""

import collections
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from .forms import BETWEEN, OTHER_SCRIPTS, Forms, normal_letters, written_out
from .sounds import ALSO_WORDS, TRANSCRIBING
from .tables import Alias
from .tokens import words_of

# An alias whose most likely entity has a lower prior is not linked by itself.
LEAST_PRIOR: Final = 0.5
_LONGEST_TRANSCRIPTION: Final = 7  # characters of a Chinese text
_SHORTEST_TRANSCRIPTION: Final = 3
_SHORT_CHINESE: Final = 2  # characters of a name that longer names may have in them
_BY_SOUND: Final = re.compile(f"[{''.join(sorted(TRANSCRIBING))}]")
_SHORT: Final = 2  # letters of a name that is a word of some language
_END: Final = "\n"  # between texts; in no word
_Meaning = tuple[float, int, frozenset[str] | None, str]  # prior, row, languages, spelling


class Linker:
    """Finds entities in texts.

    A match covers whole words. In scripts without spaces every character counts as a word.

    Args:
      aliases: the alias table; aliases whose entity is not in ``rows`` are left out.
      rows: row of each entity in the embedding table.
    """

    def __init__(self, aliases: Iterable[Alias], rows: Mapping[str, int]) -> None:
        meanings: dict[str, list[_Meaning]] = {}
        spelled: set[str] = set()
        declined: set[str] = set()
        limited: set[str] = set()
        languages_of = functools.cache(lambda tags: frozenset(tags.split(",")))
        for alias in aliases:
            if alias.entity in rows:
                # Not the words of other names: some tables list any spelling that somebody has used.
                spelled.add(alias.name or alias.alias)
                key = " ".join(words_of(normal_letters(alias.alias)))
                if not _is_of_corpus(alias):
                    declined.add(key)
                if alias.languages:
                    limited.add(key)
                languages = languages_of(alias.languages) if alias.languages else None
                meanings.setdefault(key, []).append((alias.prior, rows[alias.entity], languages, alias.alias))
        meanings.pop("", None)
        keys = sorted(meanings)
        self._meanings = [_ranked([(prior, row) for prior, row, *_ in meanings[key]]) for key in keys]
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._widths = [key.count(" ") + 1 for key in keys]
        self._lengths = _lengths_by_first_word(keys, self._widths)
        self._short = {
            number: re.compile(rf"[\w,] {re.escape(key)}\b")
            for number, key in enumerate(keys)
            if len(key) <= _SHORT and key.isalpha() and key.istitle() and key.isascii()
        }
        self._limited = {number: _by_spelling(meanings[key]) for number, key in enumerate(keys) if key in limited}
        self._in_language: dict[tuple[int, str], list[tuple[float, int]]] = {}
        self._forms = _forms_of({key: meanings[key] for key in keys}, spelled, declined)

    def find(self, text: str, language: str = "") -> list[int]:
        """Returns the numbers of the aliases in a text, in order; of overlapping matches the leftmost, then longest.

        Args:
          text: the text.
          language: its BCP-47 tag. Some aliases are names in some languages only.
        """
        return self._find(self._known_words(text, words_of(text), language), language)

    def _known_words(self, text: str, words: Sequence[str], language: str, is_name: bool = False) -> Sequence[str]:
        """Returns the words of a text, given as they are written, with known words instead of their forms."""
        if text.isascii() or not OTHER_SCRIPTS.search(text):
            return _undivided(self._forms.in_latin(words, language))
        is_chinese = language.startswith("zh")
        normal = written_out(normal_letters(text)) if is_chinese else normal_letters(text)
        if normal != text:
            words = words_of(normal)
        words = _undivided(self._forms.apply(words, language, "" if is_name else normal))
        return self._transcribed(words, normal, language) if is_chinese else words

    def _transcribed(self, words: Sequence[str], text: str, language: str) -> Sequence[str]:
        """Returns the words of a Chinese text, with Latin names instead of characters that write them by sound.

        Characters of a known name are not read by sound. A name takes the place of its first character, and nothing
        that of the others. It is not a part of a longer foreign name, and neither is a short known one, which nothing
        takes the place of if it is.
        """
        found, runs = list(words), _runs(words, text)
        spans = [(start, start + self._widths[number]) for start, number in self._spans(words, language)]
        short = [span for span in spans if span[1] - span[0] == _SHORT_CHINESE and all(runs[slice(*span)])]
        sure = {place for span in spans if span not in short for place in range(*span)}
        parts = [span for span in short if _is_part(found, runs, sure, *span)]
        for start, end in parts:
            found[start:end] = [""] * (end - start)
        known = sure.union(*(range(*span) for span in short if span not in parts))
        start = 0
        for run, places in itertools.groupby(0 if place in known else run for place, run in enumerate(runs)):
            end = start + len(list(places))
            if run:
                for left, right, name in self._foreign_names("".join(words[start:end])):
                    found[start + left : start + right] = [name, *[""] * (right - left - 1)]
            start = end
        return found

    def _foreign_names(self, characters: str) -> Iterator[tuple[int, int, str]]:
        """Yields start, end and Latin spelling of the names that a run of characters writes by sound.

        A name begins and ends with the run, beside another name, or beside a character that is a word of its own.
        """
        place = 0
        while place < len(characters):
            names: list[tuple[int, int, str]] = []
            if not place or characters[place - 1] in ALSO_WORDS:
                names = self._names_from(characters, place)
                yield from names
            place = names[-1][1] if names else place + 1

    def _names_from(self, characters: str, start: int) -> list[tuple[int, int, str]]:
        """Returns the names that follow one another from a place on, none if the last one is a part of a longer one."""
        longest = min(_LONGEST_TRANSCRIPTION, len(characters) - start)
        for end in range(start + longest, start + _SHORTEST_TRANSCRIPTION - 1, -1):
            name = self._forms.transcribed(characters[start:end])
            if name and (end == len(characters) or characters[end] in ALSO_WORDS):
                return [(start, end, name)]
            if name and (others := self._names_from(characters, end)):
                return [(start, end, name), *others]
        return []

    def _find(self, words: Sequence[str], language: str) -> list[int]:
        return [number for _, number in self._spans(words, language)]

    def _spans(self, words: Sequence[str], language: str) -> list[tuple[int, int]]:
        """Returns the place of the first word of each alias in a text, and the number of the alias."""
        lengths = self._lengths
        chosen: list[tuple[int, int]] = []
        free_from = 0
        for place in itertools.compress(itertools.count(), map(lengths.__contains__, words)):
            if place < free_from:
                continue
            for length in lengths[words[place]]:
                number = self._numbers.get(" ".join(words[place : place + length]))
                if number is None or (number in self._limited and not self._meanings_in(number, language)):
                    continue
                chosen.append((place, number))
                free_from = place + length
                break
        return chosen

    def meaning(self, name: str, language: str = "") -> int | None:
        """Returns the row of the entity that a name most likely means, None if no alias covers all of it.

        Args:
          name: the name, without other words.
          language: its BCP-47 tag.
        """
        found = self._find(self._known_words(name, words_of(name), language, is_name=True), language)
        if len(found) != 1 or self._widths[found[0]] != len(words_of(normal_letters(name))):
            return None
        return self._choose(self._meanings_in(found[0], language), set())

    def _meanings_in(self, number: int, language: str) -> list[tuple[float, int]]:
        """Returns (prior, row) of the meanings of an alias in a language, the most likely first."""
        limited = self._limited.get(number)
        if limited is None:
            return self._meanings[number]
        base = language.partition("-")[0]
        found = self._in_language.get((number, base))
        if found is None:
            found = []
            for same in limited:
                here = {place for place, (_, _, tags, _) in enumerate(same) if tags is None or base in tags}
                priors = priors_without([prior for prior, *_ in same], here)
                found += [(prior, same[place][1]) for place, prior in priors.items()]
            self._in_language[number, base] = _ranked(found)
        return found

    def link(
        self, texts: Sequence[str], language: str = "", words: Sequence[Sequence[str]] | None = None
    ) -> collections.Counter[int]:
        """Counts mentions by entity row over the texts of one document.

        An alias of several entities means the one that the document also names by an unambiguous alias. Otherwise it
        means the most likely one if its prior is at least 0.5, and nothing if not.

        Args:
          texts: texts of one document.
          language: its BCP-47 tag.
          words: the words of each text, if they are known, see :func:`~.tokens.words_of`.
        """
        joined: list[str] = []
        for text, written in zip(texts, words or map(words_of, texts), strict=True):
            joined += self._known_words(text, written, language)
            joined.append(_END)
        aliases = collections.Counter(
            number
            for number in self._find(joined, language)
            if number not in self._short or self._is_sure(number, texts)
        )
        meanings = {number: self._meanings_in(number, language) for number in aliases}
        certain = {found[0][1] for found in meanings.values() if len(found) == 1}
        mentions: collections.Counter[int] = collections.Counter()
        for number, count in sorted(aliases.items()):
            row = self._choose(meanings[number], certain)
            if row is not None:
                mentions[row] += count
        return mentions

    def _is_sure(self, number: int, texts: Iterable[str]) -> bool:
        """Whether texts have a short name inside of a sentence: at its start, "Si" is a word of several languages."""
        inside = self._short[number]
        return any(inside.search(text) for text in texts)

    @staticmethod
    def _choose(meanings: Sequence[tuple[float, int]], certain: set[int]) -> int | None:
        if len(meanings) > 1:
            for _, row in meanings:
                if row in certain:
                    return row
        prior, row = meanings[0]
        return row if prior >= LEAST_PRIOR else None


def priors_without(priors: Sequence[float], kept: Collection[int]) -> dict[int, float]:
    """Returns the priors of some meanings of one alias where its other meanings are known to be wrong, by number.

    Args:
      priors: of all meanings; what they lack of 1 is that of meanings which no table has.
      kept: the numbers of the meanings that may be right, ascending in the result.
    """
    here = {number: prior for number, prior in enumerate(priors) if number in kept}
    total = sum(here.values())
    left = max(min(1.0, total), 1 - (sum(priors) - total))  # priors of a table may add up to more than 1
    return {number: prior / left for number, prior in here.items()}


def _by_spelling(meanings: Iterable[_Meaning]) -> list[list[_Meaning]]:
    """Divides the meanings of a key by the spelling: priors of each add up to 1."""
    found: dict[str, list[_Meaning]] = {}
    for meaning in meanings:
        found.setdefault(meaning[-1], []).append(meaning)
    return list(found.values())


def _is_of_corpus(alias: Alias) -> bool:
    """Whether an entity was found in the corpus by its capitals: such a name is no adjective and no nationality."""
    return alias.entity.removeprefix(f"{alias.languages}:") == alias.name.replace(" ", "_")


def _forms_of(meanings: Mapping[str, Sequence[_Meaning]], spelled: Collection[str], declined: Collection[str]) -> Forms:
    """Returns the forms of the words of aliases; words of frequent entities, which have low rows, come first."""
    first: dict[str, int] = {}
    limits: dict[str, frozenset[str]] = {}
    everywhere = set()
    for key, found in meanings.items():
        row = min(row for _, row, *_ in found)
        tags = [languages for _, _, languages, _ in found if languages is not None]
        for word in key.split(" "):
            first[word] = min(row, first.get(word, row))
            if len(tags) < len(found):
                everywhere.add(word)
            elif word not in everywhere:
                limits[word] = limits.get(word, frozenset()).union(*tags)
    limits = {word: tags for word, tags in limits.items() if word not in everywhere}
    names = [words for words in map(str.split, meanings) if len(words) > 1]
    plain = first.keys() - {word for key in declined for word in key.split(" ")}
    heard = {word for name in spelled for word in words_of(name)} & first.keys()
    return Forms(first, limits, sorted(heard), names, plain)


def _lengths_by_first_word(keys: Iterable[str], widths: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Returns the numbers of words of the names that begin with a word, the largest first, by word."""
    found: dict[str, tuple[int, ...]] = {}
    for key, width in zip(keys, widths, strict=True):
        word = key if width == 1 else key.partition(" ")[0]
        lengths = found.get(word, ())
        if width not in lengths:
            found[word] = tuple(sorted((*lengths, width), reverse=True)) if lengths else (width,)
    return found


def _runs(words: Sequence[str], text: str) -> list[int]:
    """Returns a number for each run of characters that write by sound, by word; 0 for other words."""
    places = (found.start() for found in _BY_SOUND.finditer(text))
    numbers: list[int] = []
    last, number = -1, 0
    for word in words:
        if word not in TRANSCRIBING:
            numbers.append(0)
            continue
        place = next(places)
        number += place != last + 1 or not numbers or not numbers[-1]
        numbers.append(number)
        last = place
    return numbers


def _is_part(words: Sequence[str], runs: Sequence[int], sure: Collection[int], start: int, end: int) -> bool:
    """Whether a short name is a part of a longer one that Chinese writes by sound: "Delhi" is one of "Frederick"."""
    around = ((start - 1, start), (end, end - 1))
    return any(
        0 <= place < len(words) and runs[place] == runs[own] and place not in sure and words[place] not in ALSO_WORDS
        for place, own in around
    )


def _undivided(words: Sequence[str]) -> Sequence[str]:
    """Returns the words, and the parts of a divided word as words of their own."""
    if BETWEEN in "".join(words):
        return [part for word in words for part in word.split(BETWEEN)]
    return words


def _ranked(meanings: list[tuple[float, int]]) -> list[tuple[float, int]]:
    if len(meanings) > 1:
        meanings.sort(key=lambda item: (-item[0], item[1]))
    return meanings
