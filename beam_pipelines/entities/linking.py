"""Entity linking: finds aliases (whole words, longest match) and chooses one entity for each."""

import collections
import dataclasses
import datetime
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...formats.records import Article
from ...tasks.sentences import UNSPACED
from .spellings import Spellings, normal_letters
from .tables import Alias

# Marks of Indic scripts and combining accents are parts of words, although \w does not match them.
_LETTERS = rf"(?:[^\W_{UNSPACED[1:-1]}]+|[\u0300-\u036f\u0900-\u0dff]+)+"
# Every character of a script without spaces is a token, so that a word boundary never splits a name.
_TOKEN: Final = re.compile(rf"{UNSPACED}|{_LETTERS}(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*")
# The same for texts without other characters, in half of the time.
_ASCII_TOKEN: Final = re.compile(r"[A-Za-z0-9]+(?:(?:'(?!s\b)|[.&\-])[A-Za-z0-9]+)*")
_SENTENCE_BREAKS: Final = frozenset(".!?:;\u2026\n\t\"\u201c\u201d\u201e«»()[]|•\u2013\u2014'\u2018\u2019*")
_CONNECTORS: Final = frozenset(
    str.split("of the for de del la las los el der des dem den von van zu da do dos di du bin al y e")
)
_UPPER: Final = "".join(character for character in map(chr, range(0x10000)) if character.isupper())
_REST: Final = rf"(?:{_LETTERS})?(?:(?:['\u2019](?!s\b)|[.&\-\u2010]){_LETTERS})*"
_BETWEEN: Final = rf"(?: (?:(?:{'|'.join(sorted(_CONNECTORS))}) ){{0,2}}|(?<=\b[{_UPPER}])\. )"
# A lookbehind after the first letter checks what precedes it: a pattern that starts with a character set is fast.
_RUN: Final = re.compile(
    rf"[{_UPPER}](?<![\w\-\u2010&][\s\S])(?<!\w['\u2019.][\s\S]){_REST}(?:{_BETWEEN}[{_UPPER}]{_REST})*"
)
_CONTRACTION: Final = re.compile(r"['\u2019][a-z]{1,2}$")  # I've, He'll
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_INSIDE: Final = re.compile(rf"[{_UPPER}](?<=[\w,] [\s\S])[^\W\d_]*")
_LONGEST_NAME: Final = 6
# An alias whose most likely entity has a lower prior is not linked by itself.
LEAST_PRIOR: Final = 0.5
_SHORT: Final = 2  # letters of a name that is a word of some language
_END: Final = "\n"  # between texts; in no word
_Meaning = tuple[float, int, str, str]  # prior, row, languages joined by commas, spelling


# Words


def words_of(text: str) -> list[str]:
    """Returns all tokens of a text in order, as written.

    >>> words_of("Trump's aides met Anne-Marie O'Neill.")
    ['Trump', 's', 'aides', 'met', 'Anne-Marie', "O'Neill"]
    """
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)


class WordUse(NamedTuple):
    """How the documents of one language write a word.

    Attributes:
      lower: number of documents with the word in lower case.
      capital: number of documents with the word capitalised inside a sentence.
    """

    lower: int = 0
    capital: int = 0

    @property
    def common(self) -> bool:
        """Whether the word is in lower case often enough not to be a name by itself."""
        return self.lower * 2 > self.capital


def is_capitalised(word: str) -> bool:
    """Returns whether a word starts with a capital."""
    return word[0].isupper()


def is_title_case(text: str) -> bool:
    """Returns whether a headline capitalises most of its longer words, so that capitals do not mark names."""
    longer = [word for word in words_of(text) if len(word) > 3]
    return len(longer) > 2 and sum(map(is_capitalised, longer)) > 0.6 * len(longer)


def word_uses(text: str) -> tuple[set[str], set[str]]:
    """Returns the words that a text writes in lower case, and in lower case those with a capital inside a sentence.

    A capital counts only after another word or a comma; at the start of a sentence every word has one.
    """
    lower = {word for word in set(_PLAIN.findall(text)) if not word[0].isupper()}
    return lower, {word.lower() for word in set(_INSIDE.findall(text))}


def name_spans(text: str, uses: Mapping[str, WordUse]) -> Iterator[tuple[str, ...]]:
    """Yields candidate names: runs of capitalised tokens, with connectors such as "of" inside.

    Args:
      text: running text, not a headline in title case.
      uses: uses of lower-cased words; a common word at the start of a sentence, or alone, is not a name.

    Yields:
      Tokens of each candidate. A single token at the start of a sentence is never a candidate.
    """
    for match in _RUN.finditer(text):
        before = text[max(0, match.start() - 2) : match.start()].rstrip(" ")
        words = _trimmed(words_of(match.group()), not before or before[-1] in _SENTENCE_BREAKS, uses)
        if words:
            yield words


def _trimmed(words: list[str], starts_sentence: bool, uses: Mapping[str, WordUse]) -> tuple[str, ...]:
    """Returns the words of a name, none if it is doubtful: the linker finds the name in clearer contexts."""
    doubtful = uses.get(words[0].lower(), WordUse()).common or words[0].lower() in _CONNECTORS
    if (starts_sentence and doubtful) or len(words) > _LONGEST_NAME:
        return ()
    if len(words) == 1 and (starts_sentence or doubtful or len(words[0]) < 2 or _CONTRACTION.search(words[0])):
        return ()
    return tuple(words)


# Entities


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
        for alias in aliases:
            if alias.entity in rows:
                # Not the words of other names: some tables list any spelling that somebody has used.
                spelled.add(alias.name or alias.alias)
                key = " ".join(words_of(normal_letters(alias.alias)))
                meanings.setdefault(key, []).append((alias.prior, rows[alias.entity], alias.languages, alias.alias))
        meanings.pop("", None)
        self._lengths: dict[str, tuple[int, ...]] = {}  # of the names that begin with a word, the largest first
        for key in meanings:
            word, width = key.partition(" ")[0], key.count(" ") + 1
            if width not in self._lengths.get(word, ()):
                self._lengths[word] = tuple(sorted((*self._lengths.get(word, ()), width), reverse=True))
        self._spellings = _spellings_of(meanings, spelled)
        self._meanings = meanings
        self._in_language = functools.cache(self._meanings_in)

    def _known_words(self, text: str, words: Sequence[str], language: str) -> Sequence[str]:
        """Returns the words of a text, given as they are written, with known words instead of their forms."""
        normal = normal_letters(text)
        return self._spellings.apply(words if normal == text else words_of(normal), language)

    def _find(self, words: Sequence[str], language: str) -> list[str]:
        """Returns the aliases in a text, in order; of overlapping matches the leftmost, then longest."""
        lengths, meanings, base = self._lengths, self._meanings, language.partition("-")[0]
        found: list[str] = []
        free_from = 0
        for place in itertools.compress(itertools.count(), map(lengths.__contains__, words)):
            if place < free_from:
                continue
            for length in lengths[words[place]]:
                key = " ".join(words[place : place + length])
                if key in meanings and self._in_language(key, base):
                    found.append(key)
                    free_from = place + length
                    break
        return found

    def meaning(self, name: str, language: str = "") -> int | None:
        """Returns the row of the entity that a name most likely means, None if no alias covers all of it.

        Args:
          name: the name, without other words.
          language: its BCP-47 tag.
        """
        found = self._find(self._known_words(name, words_of(name), language), language)
        if len(found) != 1 or found[0].count(" ") + 1 != len(words_of(normal_letters(name))):
            return None
        return _choose(self._meanings_of(found[0], language), set())

    def _meanings_of(self, key: str, language: str) -> Sequence[tuple[float, int]]:
        """Returns (prior, row) of the meanings of an alias in a language, the most likely first."""
        return self._in_language(key, language.partition("-")[0]) if key in self._meanings else ()

    def _meanings_in(self, key: str, base: str) -> Sequence[tuple[float, int]]:
        by_spelling: dict[str, list[_Meaning]] = {}  # the priors of each add up to 1
        for meaning in self._meanings[key]:
            by_spelling.setdefault(meaning[-1], []).append(meaning)
        found = []
        for same in by_spelling.values():
            here = {place for place, (_, _, tags, _) in enumerate(same) if not tags or base in tags.split(",")}
            priors = priors_without([prior for prior, *_ in same], here)
            found += [(prior, same[place][1]) for place, prior in priors.items()]
        return sorted(found, key=lambda item: (-item[0], item[1]))

    def link(
        self, texts: Sequence[str], language: str = "", words: Sequence[Sequence[str]] | None = None
    ) -> collections.Counter[int]:
        """Counts mentions by entity row over the texts of one document.

        An alias of several entities means the one that the document also names by an unambiguous alias. Otherwise it
        means the most likely one if its prior is at least 0.5, and nothing if not.

        Args:
          texts: texts of one document.
          language: its BCP-47 tag.
          words: the words of each text, if they are known, see :func:`words_of`.
        """
        joined: list[str] = []
        for text, written in zip(texts, words or map(words_of, texts), strict=True):
            joined += [*self._known_words(text, written, language), _END]
        aliases = collections.Counter(self._find(joined, language))
        meanings = {key: self._meanings_of(key, language) for key in aliases if _is_sure(key, texts)}
        certain = {found[0][1] for found in meanings.values() if len(found) == 1}
        mentions: collections.Counter[int] = collections.Counter()
        for key, found in sorted(meanings.items()):
            row = _choose(found, certain)
            if row is not None:
                mentions[row] += aliases[key]
        return mentions


def _is_sure(key: str, texts: Iterable[str]) -> bool:
    """Whether texts have a short name inside of a sentence: at its start, "Si" is a word of several languages."""
    if not (len(key) <= _SHORT and key.isalpha() and key.istitle() and key.isascii()):
        return True
    inside = re.compile(rf"[\w,] {key}\b")
    return any(inside.search(text) for text in texts)


def _choose(meanings: Sequence[tuple[float, int]], certain: Collection[int]) -> int | None:
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


def _spellings_of(meanings: Mapping[str, Sequence[_Meaning]], spelled: Iterable[str]) -> Spellings:
    """Returns the spellings of the words of aliases; words of frequent entities, which have low rows, come first."""
    first: dict[str, int] = {}
    limits: dict[str, set[str]] = {}
    everywhere = set()
    for key, found in meanings.items():
        row = min(row for _, row, *_ in found)
        tags = {tag for _, _, languages, _ in found for tag in languages.split(",")}
        for word in key.split(" "):
            first[word] = min(row, first.get(word, row))
            limits.setdefault(word, set()).update(tags)
            if "" in tags:
                everywhere.add(word)
    names = [words for words in map(str.split, meanings) if len(words) > 1]
    heard = {word for name in spelled for word in words_of(name)} & first.keys()
    return Spellings(first, {word: limits[word] for word in first.keys() - everywhere}, heard, names)


@dataclasses.dataclass(frozen=True, slots=True)
class Mentions:
    """Row numbers of the entities and words of one article, from which embeddings and vectors are computed.

    Attributes:
      doc_id: 16 hex digits.
      byline_date: date of the article, if known.
      publisher: publisher of the article.
      language: BCP-47 tag.
      entities: rows of the entity table without repeats, by falling count, then row.
      entity_counts: number of mentions of each.
      words: rows of the word table for title, keywords and lead, in order and with repeats.
      image_hash: wavelet hash of the thumbnail, 8 bytes, if there is one.
    """

    doc_id: str
    byline_date: datetime.date | None
    publisher: str
    language: str
    entities: tuple[int, ...]
    entity_counts: tuple[int, ...]
    words: tuple[int, ...]
    image_hash: bytes | None


def find_mentions(article: Article, linker: Linker, words: Mapping[str, int], lead_words: int) -> Mentions:
    """Links the entities of title, keywords and body, and looks up the words of the article's head.

    Args:
      article: the article.
      linker: finds entities in texts.
      words: row by word, in lower case.
      lead_words: number of words of the body that belong to the head.
    """
    texts = [article.title, *article.keywords, article.body]
    tokens = [words_of(text) for text in texts]
    entities = linker.link(texts, article.language, tokens)
    head = map(str.lower, itertools.chain(*tokens[:-1], tokens[-1][:lead_words]))
    ranked = sorted(entities, key=lambda row: (-entities[row], row))
    return Mentions(
        article.doc_id,
        article.byline_date,
        article.publisher,
        article.language,
        tuple(ranked),
        tuple(entities[row] for row in ranked),
        tuple(row for row in map(words.get, head) if row is not None),
        article.image_hash,
    )
