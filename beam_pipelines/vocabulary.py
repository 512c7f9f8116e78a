"""``newsembed vocabulary``: learns the WordPieces of the corpus on a sample that is smoothed over the languages.

A language i with n_i documents and share p_i contributes m_i = n_1 (p_i / p_1)^alpha documents to the sample, where 1
is the largest language (section 2.1 of the paper). Every document of the language is therefore sampled m_i / n_i times.
The fractional part is a Bernoulli draw that depends on the document id.
"""

import dataclasses
import functools
import heapq
import itertools
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import InputError, require_option
from ..formats import files
from ..formats.command_line import option
from ..formats.parquet import read_batches, read_records, shard_paths
from ..formats.records import Failure, Rejection
from ..formats.vocabulary import SPECIAL_TOKENS, VOCABULARY_FILE, vocabulary_bytes
from ..tasks.parts_of_speech import primary
from ..tasks.vocabulary import Vocabulary, normalize_for_learning
from .jobs import InputSpec, Job, JobRun
from .shards import Shard
from .texts import UNDETERMINED, ArticleText, language_key, read_text_batches, uniform_draw
from .vocabulary_learning import WordCount, learn_pieces
from .vocabulary_words import (
    USES,
    WordCounter,
    WordRules,
    WordUse,
    check_tagger,
    choose_words,
    merge_uses,
    read_texts,
    write_uses,
)

_SMALLEST_SIZE = 100
_LANGUAGE_TALLY = "language/"
_WORDS_TOGETHER = 5_000


@dataclasses.dataclass(frozen=True)
class VocabularyOptions:
    """Options of ``vocabulary``; the vocabulary of the paper has 500 000 pieces for 101 languages."""

    size: int = option(32_000, "pieces to learn, including special tokens")
    alpha: float = option(0.7, "smoothing exponent over languages: 1 keeps their shares, 0 makes them equal")
    max_documents: int = option(1_000_000, "size of the sample, counting repeated documents; 0 for no limit")
    min_frequency: int = option(2, "do not learn letters and pairs that are less frequent")
    limit_alphabet: int = option(10_000, "most letters to keep, never more than half of the size")
    words: bool = option(False, "whole words instead of pieces, those in the most documents first; others become [UNK]")
    part_of_speech: tuple[str, ...] = option(
        (), "with --words: only words of these parts of speech, as in NOUN,PROPN, where HanTa knows them"
    )
    max_share: float = option(
        0.25, "with --words: leave out what more of the documents of a language have, unless it has tags"
    )

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="vocabulary")
        require(self.size >= _SMALLEST_SIZE, "size", self.size, f"at least {_SMALLEST_SIZE}")
        require(0 <= self.alpha <= 1, "alpha", self.alpha, "a number from 0 to 1")
        require(self.max_documents >= 0, "max_documents", self.max_documents, "0 or more")
        require(self.min_frequency >= 1, "min_frequency", self.min_frequency, "at least 1")
        require(self.limit_alphabet >= 1, "limit_alphabet", self.limit_alphabet, "at least 1")
        require(self.words or not self.part_of_speech, "part_of_speech", self.part_of_speech, "none without --words")
        require(0 < self.max_share <= 1, "max_share", self.max_share, "a share above 0, at most 1")


def smoothed_rates(documents: Mapping[str, int], alpha: float, max_documents: int = 0) -> dict[str, float]:
    """Returns the copies of each document by language, m_i / n_i with m_i = n_1 (p_i / p_1)^alpha.

    >>> smoothed_rates({"en": 100, "sw": 1}, alpha=0.5)
    {'en': 1.0, 'sw': 10.0}

    Args:
      documents: number of documents by language.
      alpha: smoothing exponent.
      max_documents: if the sample would be larger, all rates are scaled down equally; 0 for no limit.
    """
    present = {language: count for language, count in sorted(documents.items()) if count}
    largest = max(present.values(), default=0)
    rates = {language: (count / largest) ** (alpha - 1) for language, count in present.items()}
    total = sum(rates[language] * count for language, count in present.items())
    scale = min(1.0, max_documents / total) if max_documents and total else 1.0
    return {language: rate * scale for language, rate in rates.items()}


def copies_of(doc_id: str, rate: float) -> int:
    """Returns ``rate`` rounded down or up, up with the probability of its fraction; drawn by the document id."""
    whole = int(rate)
    return whole + (uniform_draw("vocabulary", doc_id) < rate - whole)


def count_languages(shard: Shard, path: str) -> None:
    """Counts the documents of each language in one shard of articles."""
    counts: Counter[str] = Counter()
    for batch in read_text_batches(path):
        shard.read(len(batch))
        shard.written(len(batch))
        counts.update(language_key(article.language) or "" for article in batch)
    for language, count in counts.items():
        shard.tally(f"{_LANGUAGE_TALLY}{language}", count)


def sample_words(shard: Shard, path: str, rates: Mapping[str, float]) -> None:
    """Samples documents of one shard and writes the counts of their words, sorted, to the stream ``_words``."""
    counts: Counter[str] = Counter()
    for _, text, copies in _sampled(shard, path, rates):
        for _ in range(copies):
            counts.update(text.split(" ") if text else ())
    writer = shard.records("_words", WordCount)
    words = sorted(counts)
    for start in range(0, len(words), _WORDS_TOGETHER):
        part = words[start : start + _WORDS_TOGETHER]
        writer.write_columns({"word": part, "count": [counts[word] for word in part]})


def sample_uses(shard: Shard, path: str, rates: Mapping[str, float], tags: Sequence[str]) -> None:
    """Samples documents of one shard and writes which words they have, sorted, to the stream of `WordUse`."""
    counter = WordCounter(tags)
    for article, text, copies in _sampled(shard, path, rates):
        language = primary(language_key(article.language) or UNDETERMINED)
        counter.add(f"{article.title}\n{article.body}", text, language, copies)
    write_uses(shard, counter)


def _sampled(shard: Shard, path: str, rates: Mapping[str, float]) -> Iterator[tuple[ArticleText, str, int]]:
    """Yields the sampled documents of one shard, their normalised texts, and how often each counts."""
    for batch in read_text_batches(path):
        shard.read(len(batch))
        drawn = [(article, copies) for article in batch if (copies := _draw(shard, article, rates))]
        texts = normalize_for_learning([f"{article.title}\n{article.body}" for article, _ in drawn])
        for (article, copies), text in zip(drawn, texts, strict=True):
            shard.written()
            shard.tally("documents_with_copies", copies)
            yield article, text, copies


def _draw(shard: Shard, article: ArticleText, rates: Mapping[str, float]) -> int:
    language = language_key(article.language)
    if language is None:
        shard.fail(
            article.doc_id, Failure.BROKEN_RECORD, f"language {article.language!r} is not a BCP-47 tag", article.title
        )
        return 0
    copies = copies_of(article.doc_id, rates[language])
    if not copies:
        shard.reject(
            article.doc_id, Rejection.NOT_SAMPLED, f"{language} is taken {rates[language]:.4f} times", article.title
        )
    return copies


def merge_words(paths: Sequence[str]) -> Iterator[WordCount]:
    """Yields the total counts of all words, sorted; holds one row group of each shard in memory."""
    for word, group in itertools.groupby(heapq.merge(*map(_read_words, paths)), key=operator.itemgetter(0)):
        yield WordCount(word, sum(count for _, count in group))


def _read_words(path: str) -> Iterator[tuple[str, int]]:
    for batch in read_batches(path, ["word", "count"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def learn(shard: Shard, folder: str, options: VocabularyOptions) -> None:
    """Learns the pieces from all words in a folder and writes ``vocab.txt``."""
    paths = shard_paths(folder)
    learned = learn_pieces(lambda: merge_words(paths), options.size, options.min_frequency, options.limit_alphabet)
    files.write_whole(f"{shard.workspace}/{VOCABULARY_FILE}", vocabulary_bytes(learned.pieces))
    for name in ("alphabet", "words", "words_outside"):
        shard.tally(name, getattr(learned, name))


def learn_words(shard: Shard, _: None, options: VocabularyOptions) -> None:
    """Chooses whole words and writes ``vocab.txt``."""
    paths = shard_paths(f"{shard.workspace}/{USES}")
    rules = WordRules(
        options.size - len(SPECIAL_TOKENS), options.min_frequency, options.max_share, read_texts(shard.workspace)
    )
    words = choose_words(merge_uses(read_records(path, WordUse) for path in paths), rules, shard.tally)
    files.write_whole(f"{shard.workspace}/{VOCABULARY_FILE}", vocabulary_bytes([*SPECIAL_TOKENS, *words]))
    shard.tally("words", len(words))


def run(run: JobRun) -> None:
    """Counts languages, draws the smoothed sample, then learns the pieces, or chooses whole words.

    Raises:
      InputError: if there are no articles, the sample has no words, or no tagger is installed for --part_of_speech.
    """
    options: VocabularyOptions = run.options
    check_tagger(options.part_of_speech)
    articles = shard_paths(f"{run.input('articles')}/articles")
    run.map_shards("languages", count_languages, articles, accounted=False)
    documents = _documents_by_language(run)
    if not documents:
        raise InputError(
            "there are no articles here",
            path=run.input("articles"),
            remedy="look at the rejections in its manifest.json",
        )
    rates = smoothed_rates(documents, options.alpha, options.max_documents)
    with run.graph("sample", len(articles)):
        if options.words:
            sample = functools.partial(sample_uses, rates=rates, tags=options.part_of_speech)
            run.map_shards("sample", sample, articles)
            run.map_shards("learn", functools.partial(learn_words, options=options), [None], accounted=False)
        else:
            run.map_shards("sample", functools.partial(sample_words, rates=rates), articles)
            words = f"{run.workspace}/_words"
            run.map_shards("learn", functools.partial(learn, options=options), [words], accounted=False)
    run.extra["vocabulary"] = _describe(run, options, documents, rates)


def _documents_by_language(run: JobRun) -> dict[str, int]:
    tallies = run.counts_of("languages").tallies
    named = {name.removeprefix(_LANGUAGE_TALLY): count for name, count in tallies.items()}
    return {language: count for language, count in named.items() if language}


def _describe(
    run: JobRun, options: VocabularyOptions, documents: Mapping[str, int], rates: Mapping[str, float]
) -> dict[str, Any]:
    """Returns the manifest's description of the vocabulary.

    Raises:
      InputError: if the sample has no words.
    """
    tallies = run.counts_of("learn").tallies
    if not tallies["words"]:
        raise InputError(
            "the sampled articles have no words",
            path=run.input("articles"),
            remedy="raise --max_documents, or lower --min_frequency",
        )
    vocabulary = Vocabulary.load(f"{run.workspace}/{VOCABULARY_FILE}")
    shortfall = (
        f"learned {vocabulary.size} of {options.size} pieces: "
        f"the sample holds no more that are seen {options.min_frequency} times"
    )
    return {
        "pieces": vocabulary.size,
        "asked": options.size,
        "special": len(SPECIAL_TOKENS),
        "alphabet": tallies.get("alphabet", 0),
        "sha256": vocabulary.digest,
        "warning": shortfall if vocabulary.size < options.size else "",
        "languages": {
            language: {"documents": count, "copies_each": round(rates[language], 4)}
            for language, count in sorted(documents.items())
        },
    }


JOB = Job(
    name="vocabulary",
    summary="learn a WordPiece vocabulary on a sample that is smoothed over the languages",
    example="newsembed vocabulary --articles work/clean --output work/vocabulary --size=32000",
    inputs=(InputSpec("articles", "folder that `newsembed clean` wrote"),),
    options=VocabularyOptions,
    run=run,
)
