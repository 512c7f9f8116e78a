"""Two vocabularies of a sample of texts: WordPieces learned from word counts, and whole words.

Learning of pieces repeats exactly. Hugging Face's WordPiece trainer is a byte-pair learner that numbers its ``##``
letters in the order of a hash table, so ties between counts are broken differently in every run. Here each letter, at
the start of a word and inside a word, is renamed to its own code point, by frequency. The plain byte-pair learner then
needs no ``##`` and sorts its letters.

A tokenizer with a vocabulary of whole words makes every other word [UNK], because no piece continues a word. The most
frequent words that tell texts apart are chosen by document frequency. Source: Okura, Tagami and Tajima 2016, section 3,
who take the 10,000 most frequent nouns without stop words. Where no tagger knows a language, words that too many of its
texts have are left out instead.
"""

import dataclasses
import functools
import heapq
import itertools
import operator
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..formats.vocabulary import CONTINUATION, SPECIAL_TOKENS
from ..tasks.parts_of_speech import Tagger, load_tagger
from ..tasks.vocabulary import normalize_for_learning

Letter = tuple[bool, str]  # (inside a word, the letter)
_COPIES_AT_ONCE: Final = 4_096
_MOST_LETTERS: Final = 10_000  # of an alphabet, and never more than half of the pieces
_SURROGATES: Final = range(0xD800, 0xE000)
_BASIC: Final = tuple((inside, letter) for inside in (False, True) for letter in string.ascii_lowercase + string.digits)
_TEXTS: Final = ""  # the "word" that every text has; it sorts first
_LEAST_TEXTS: Final = 20  # of a language, for the shares of its words to mean something
_SHARE_OF_TAGS: Final = 0.5  # of the occurrences of a word that are tagged as asked
_STOP_WORD_LANGUAGES: Final = dict(
    pair.split(":")
    for pair in str.split(
        "da:danish de:german en:english es:spanish fi:finnish fr:french hu:hungarian it:italian nl:dutch no:norwegian"
        " pt:portuguese ru:russian sv:swedish"
    )
)
UNIVERSAL_TAGS: Final = tuple(
    str.split("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X")
)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class WordCount:
    """A word and its count in the sample."""

    word: str
    count: int


class LearnedPieces(NamedTuple):
    """A learned vocabulary.

    Attributes:
      pieces: special tokens, alphabet by frequency, then merges in the order in which they were made.
      alphabet: number of single letters; a letter at the start of a word and inside a word are two letters.
      words: total count of the words that were used.
      words_outside: total count of the words that were left out because of a letter outside the alphabet.
    """

    pieces: tuple[str, ...]
    alphabet: int
    words: int
    words_outside: int


def learn_pieces(read_words: Callable[[], Iterable[WordCount]], size: int, min_frequency: int) -> LearnedPieces:
    """Learns a vocabulary by byte-pair merges inside words.

    Args:
      read_words: returns the words, normalised by `tasks.vocabulary.normalize_for_learning`; called twice.
      size: number of pieces to learn, including special tokens; fewer if the words have no more.
      min_frequency: letters and pairs with lower counts are not learned.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    most = min(_MOST_LETTERS, (size - len(SPECIAL_TOKENS)) // 2)
    alphabet = choose_alphabet(_count_letters(read_words()), min_frequency, most)
    names = dict(zip(alphabet, _code_points(), strict=False))
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIAL_TOKENS),
        min_frequency=min_frequency,
        initial_alphabet=list(names.values()),
        show_progress=False,
    )
    seen = {"words": 0, "outside": 0}
    learner.train_from_iterator(_renamed(read_words(), names, seen), trainer)
    ids = learner.get_vocab()
    letters = {name: letter for letter, name in names.items()}
    learned = (_as_piece([letters[name] for name in piece]) for piece in sorted(ids, key=lambda piece: ids[piece]))
    return LearnedPieces((*SPECIAL_TOKENS, *learned), len(alphabet), seen["words"], seen["outside"])


def choose_alphabet(counts: Mapping[Letter, int], min_frequency: int, limit: int) -> list[Letter]:
    """Returns the most frequent letters, and every basic Latin letter and digit at the start of and inside words.

    Args:
      counts: count of each letter.
      min_frequency: letters with lower counts are left out.
      limit: largest number of letters; Latin letters and digits precede all others, ties are broken by code point.

    Returns:
      Letters by falling count.
    """
    basic = set(_BASIC)
    candidates = basic | {letter for letter, count in counts.items() if count >= min_frequency}
    chosen = sorted(candidates, key=lambda letter: (letter not in basic, -counts.get(letter, 0), letter))[:limit]
    return sorted(chosen, key=lambda letter: (-counts.get(letter, 0), letter))


def _count_letters(words: Iterable[WordCount]) -> Counter[Letter]:
    counts: Counter[Letter] = Counter()
    for word in words:
        for position, letter in enumerate(word.word):
            counts[position > 0, letter] += word.count
    return counts


def _code_points() -> Iterator[str]:
    """Yields printable code points, the shortest in UTF-8 first, because the time of the learner depends on bytes."""
    for code in itertools.chain(range(ord("!"), _SURROGATES.start), range(_SURROGATES.stop, 0x110000)):
        if not chr(code).isspace():
            yield chr(code)


def _renamed(words: Iterable[WordCount], names: Mapping[Letter, str], seen: dict[str, int]) -> Iterator[str]:
    """Yields texts that repeat each renamed word as often as its count, because the learner takes no counts."""
    for word in words:
        try:
            name = "".join([names[position > 0, letter] for position, letter in enumerate(word.word)])
        except KeyError:
            seen["outside"] += word.count
            continue
        seen["words"] += word.count
        if len(name) == 1:
            continue  # nothing to merge: its letter is in the alphabet
        for start in range(0, word.count, _COPIES_AT_ONCE):
            yield f"{name} " * min(_COPIES_AT_ONCE, word.count - start)


def _as_piece(letters: list[Letter]) -> str:
    text = "".join(letter for _, letter in letters)
    return CONTINUATION + text if letters[0][0] else text


# Whole words


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class WordUse:
    """How the texts of a language use a word.

    Attributes:
      word: as the tokenizer reads it; "" in the row with the number of all texts.
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


class WordCounter:
    """Counts the words of sampled texts.

    Args:
      tags: part-of-speech tags that are asked for; none needs no tagger.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags = frozenset(tags)
        self._tagger = tagger() if tags else None
        # Texts with a word, and its occurrences that are tagged and that are wanted, by word and language.
        self._counts: tuple[Counter[tuple[str, str]], ...] = (Counter(), Counter(), Counter())

    def add(self, text: str, normalized: str, language: str, copies: int) -> None:
        """Counts one text.

        Args:
          text: as it was published.
          normalized: by `normalize_for_learning`.
          language: the first part of its tag.
          copies: how often it counts.
        """
        documents, tagged_words, wanted = self._counts
        for word in {_TEXTS, *normalized.split()}:
            documents[word, language] += copies
        if self._tagger is None or not self._tagger.knows(language):
            return
        tagged = self._tagger.tag(text, language)
        for (_, tag), pieces in zip(tagged, normalize_for_learning([word for word, _ in tagged]), strict=True):
            for word in pieces.split():
                tagged_words[word, language] += copies
                wanted[word, language] += copies if tag in self._tags else 0

    def uses(self) -> Iterator[WordUse]:
        """Yields what was counted, sorted."""
        for key in sorted(self._counts[0]):
            yield WordUse(*key, *(counts[key] for counts in self._counts))


@functools.cache
def tagger() -> Tagger:
    """The tagger of ``--part_of_speech``, loaded once per process; raises `InputError` if it is not installed."""
    return load_tagger("hanta")


def merge_uses(streams: Iterable[Iterable[WordUse]]) -> Iterator[list[WordUse]]:
    """Yields, for each word in order, its use in each language, added up over the streams, which are sorted."""
    for _, of_word in itertools.groupby(heapq.merge(*streams), key=operator.attrgetter("word")):
        yield [_sum(list(uses)) for _, uses in itertools.groupby(of_word, key=operator.attrgetter("language"))]


def _sum(uses: list[WordUse]) -> WordUse:
    counts = (sum(getattr(use, name) for use in uses) for name in ("documents", "tagged", "wanted"))
    return WordUse(uses[0].word, uses[0].language, *counts)


def choose_words(
    words: Iterable[list[WordUse]], size: int, min_frequency: int, max_share: float, tally: Callable[[str], None]
) -> list[str]:
    """Returns the words by falling number of texts, ties by code point.

    Args:
      words: the use of each word by language, from `merge_uses`.
      size: most words.
      min_frequency: least number of texts.
      max_share: of the texts of a language without tags.
      tally: called with the name of the rule for each word that it leaves out.
    """
    texts: dict[str, int] = {}

    def remaining() -> Iterator[tuple[int, str]]:
        """Yields the words that pass the rules, the most frequent ones with the smallest number."""
        for uses in words:
            if uses[0].word == _TEXTS:
                texts.update({use.language: use.documents for use in uses})
            elif reason := _why_not(uses, texts, min_frequency, max_share):
                tally(reason)
            else:
                yield -sum(use.documents for use in uses), uses[0].word

    return [word for _, word in heapq.nsmallest(size, remaining())]


def _why_not(uses: list[WordUse], texts: Mapping[str, int], min_frequency: int, max_share: float) -> str:
    """The rule that leaves a word out, "" for none."""
    word = uses[0].word
    if not any(letter.isalpha() for letter in word) or (len(word) == 1 and word.isascii()):
        return "words without a letter, or of one"
    if sum(use.documents for use in uses) < min_frequency:
        return "words that are too rare"
    if any(is_stop_word(word, use.language) for use in uses):
        return "stop words"
    tagged = sum(use.tagged for use in uses)
    if tagged and sum(use.wanted for use in uses) < _SHARE_OF_TAGS * tagged:
        return "words of other parts of speech"
    for use in uses:
        known = texts.get(use.language, 0)
        if not use.tagged and known >= _LEAST_TEXTS and use.documents > max_share * known:
            return "words that too many texts have"
    return ""


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
