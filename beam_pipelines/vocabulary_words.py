"""A vocabulary of whole words: the most frequent ones that tell texts apart, by document frequency.

A tokenizer with such a vocabulary makes every other word [UNK], because no piece continues a word. Source: Okura,
Tagami and Tajima 2016, section 3, who take the 10,000 most frequent nouns without stop words. Where no tagger knows a
language, words that too many of its texts have are left out instead.
"""

import dataclasses
import functools
import heapq
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats.parquet import read_stream
from ..tasks.parts_of_speech import Tagger, load_tagger
from ..tasks.vocabulary import normalize_for_learning
from .shards import Shard

USES: Final = "_uses"
_TEXTS: Final = "_texts"
_LEAST_TEXTS: Final = 20  # of a language, for the shares of its words to mean something
_SHARE_OF_TAGS: Final = 0.5  # of the occurrences of a word that are tagged as asked
_STOP_WORD_LANGUAGES: Final = {
    "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ru": "russian",
    "sv": "swedish",
}  # fmt: skip
UNIVERSAL_TAGS: Final = frozenset(
    (
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
        *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
    )
)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class WordUse:
    """How the texts of a language use a word.

    Attributes:
      word: as the tokenizer reads it.
      language: first part of the BCP-47 tag.
      documents: sampled texts that have it.
      tagged: occurrences that a tagger has tagged.
      wanted: occurrences with one of the tags that are asked for.
    """

    word: str
    language: str
    documents: int
    tagged: int
    wanted: int


@dataclasses.dataclass(frozen=True, slots=True)
class TextCount:
    """The number of sampled texts of a language in one shard."""

    language: str
    documents: int


@dataclasses.dataclass(frozen=True)
class WordRules:
    """Which words are kept.

    Attributes:
      size: most words.
      min_frequency: least number of texts.
      max_share: of the texts of a language without tags.
      texts: sampled texts of each language.
    """

    size: int
    min_frequency: int
    max_share: float
    texts: Mapping[str, int]


class WordCounter:
    """Counts the words of sampled texts.

    Args:
      tags: part-of-speech tags that are asked for; none needs no tagger.

    Attributes:
      texts: the number of texts of each language.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags = frozenset(tags)
        self._tagger = tagger() if tags else None
        self.texts: Counter[str] = Counter()
        self._documents: Counter[tuple[str, str]] = Counter()
        self._tagged: Counter[tuple[str, str]] = Counter()
        self._wanted: Counter[tuple[str, str]] = Counter()

    def add(self, text: str, normalized: str, language: str, copies: int) -> None:
        """Counts one text.

        Args:
          text: as it was published.
          normalized: by `normalize_for_learning`.
          language: the first part of its tag.
          copies: how often it counts.
        """
        self.texts[language] += copies
        for word in set(normalized.split()):
            self._documents[word, language] += copies
        if self._tagger is None or not self._tagger.knows(language):
            return
        tagged = self._tagger.tag(text, language)
        for (_, tag), pieces in zip(tagged, normalize_for_learning([word for word, _ in tagged]), strict=True):
            for word in pieces.split():
                self._tagged[word, language] += copies
                self._wanted[word, language] += copies if tag in self._tags else 0

    def uses(self) -> Iterator[WordUse]:
        """Yields what was counted, sorted."""
        for key in sorted(self._documents):
            yield WordUse(*key, self._documents[key], self._tagged[key], self._wanted[key])


@functools.cache
def tagger() -> Tagger:
    """The tagger of ``--part_of_speech``, loaded once per process.

    Raises:
      InputError: if none is installed.
    """
    return load_tagger("hanta")


def merge_uses(streams: Iterable[Iterable[WordUse]]) -> Iterator[list[WordUse]]:
    """Yields, for each word in order, its use in each language, added up over the streams, which are sorted."""
    for _, of_word in itertools.groupby(heapq.merge(*streams), key=operator.attrgetter("word")):
        yield [_added(list(uses)) for _, uses in itertools.groupby(of_word, key=operator.attrgetter("language"))]


def _added(uses: list[WordUse]) -> WordUse:
    counts = (sum(getattr(use, name) for use in uses) for name in ("documents", "tagged", "wanted"))
    return WordUse(uses[0].word, uses[0].language, *counts)


def choose_words(words: Iterable[list[WordUse]], rules: WordRules, tally: Callable[[str], None]) -> list[str]:
    """Returns the words by falling number of texts, ties by code point.

    Args:
      words: the use of each word by language, from `merge_uses`.
      rules: what is kept.
      tally: called with the name of the rule for each word that it leaves out.
    """

    def kept() -> Iterator[tuple[int, str]]:
        """Yields the words that pass the rules, the most frequent ones with the smallest number."""
        for uses in words:
            reason = _why_not(uses, rules)
            if reason:
                tally(reason)
            else:
                yield -sum(use.documents for use in uses), uses[0].word

    return [word for _, word in heapq.nsmallest(rules.size, kept())]


def _why_not(uses: list[WordUse], rules: WordRules) -> str:
    """The rule that leaves a word out, "" for none."""
    word = uses[0].word
    if not any(letter.isalpha() for letter in word) or (len(word) == 1 and word.isascii()):
        return "words without a letter, or of one"
    if sum(use.documents for use in uses) < rules.min_frequency:
        return "words that are too rare"
    if any(is_stop_word(word, use.language) for use in uses):
        return "stop words"
    tagged = sum(use.tagged for use in uses)
    if tagged and sum(use.wanted for use in uses) < _SHARE_OF_TAGS * tagged:
        return "words of other parts of speech"
    if any(_is_everywhere(use, rules) for use in uses if not use.tagged):
        return "words that too many texts have"
    return ""


def _is_everywhere(use: WordUse, rules: WordRules) -> bool:
    texts = rules.texts.get(use.language, 0)
    return texts >= _LEAST_TEXTS and use.documents > rules.max_share * texts


def is_stop_word(word: str, language: str) -> bool:
    """Whether a word is a stop word of a language, by tantivy's lists, most of which are Snowball's.

    Its list of English is short: what it lacks is left out by the share of documents or by the parts of speech.

    Args:
      word: as the tokenizer reads it.
      language: first part of the BCP-47 tag.
    """
    analyzer = _stop_filter(language)
    return analyzer is not None and not analyzer.analyze(word)


@functools.cache
def _stop_filter(language: str) -> Any:
    """A chain that lets all words but stop words through; ``None`` for a language without a list."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    name = _STOP_WORD_LANGUAGES.get(language)
    return None if name is None else TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stopword(name)).build()


def write_uses(shard: Shard, counter: WordCounter) -> None:
    """Writes what was counted in one shard, to the streams ``_uses`` and ``_texts``."""
    uses, texts = shard.records(USES, WordUse), shard.records(_TEXTS, TextCount)
    for use in counter.uses():
        uses.write(use)
    for language, count in sorted(counter.texts.items()):
        texts.write(TextCount(language, count))


def read_texts(workspace: str) -> Counter[str]:
    """Returns the number of sampled texts of each language, over all shards."""
    counts: Counter[str] = Counter()
    for row in read_stream(f"{workspace}/{_TEXTS}", TextCount):
        counts[row.language] += row.documents
    return counts


def check_tagger(tags: Sequence[str]) -> None:
    """Refuses tags that no tagger gives, before anything runs.

    Raises:
      InputError: if no tagger is installed, or a tag is not one of Universal Dependencies.
    """
    unknown = sorted(set(tags) - UNIVERSAL_TAGS)
    if unknown:
        raise InputError(
            f"got {', '.join(unknown)}, expected some of {', '.join(sorted(UNIVERSAL_TAGS))}",
            field="--part_of_speech",
            remedy="Give tags of Universal Dependencies: NOUN,PROPN",
        )
    if tags:
        tagger()
