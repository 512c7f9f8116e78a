"""``newsembed vocabulary``: learns the WordPieces of the corpus on a sample that is smoothed over the languages.

A language i with n_i documents and share p_i contributes m_i = n_1 (p_i / p_1)^alpha documents to the sample, where 1
is the largest language (section 2.1 of the paper). Every document of the language is therefore sampled m_i / n_i times.
The fractional part is a Bernoulli draw that depends on the document id.
"""

import dataclasses
import heapq
import itertools
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..formats import files
from ..formats.command_line import Options, option
from ..formats.parquet import read_batches, read_records, shard_paths
from ..formats.records import Rejection
from ..formats.vocabulary import SPECIAL_TOKENS, VOCABULARY_FILE, vocabulary_bytes
from ..tasks.parts_of_speech import primary
from ..tasks.vocabulary import Vocabulary, normalize_for_learning
from .arrays import slices
from .jobs import InputSpec, Job, JobRun
from .shards import Shard
from .texts import ArticleText, language_key, read_text_batches, uniform_draw
from .vocabulary_learning import (
    UNIVERSAL_TAGS,
    WordCount,
    WordCounter,
    WordUse,
    choose_words,
    learn_pieces,
    merge_uses,
    tagger,
)

_LANGUAGE_TALLY = "language/"
_WORDS_TOGETHER = 5_000
_USES = "_uses"


@dataclasses.dataclass(frozen=True)
class VocabularyOptions(Options):
    """Options of ``vocabulary``; the vocabulary of the paper has 500 000 pieces for 101 languages."""

    size: int = option(32_000, "pieces to learn, including special tokens", ge=100)
    alpha: float = option(0.7, "smoothing over languages: 1 keeps their shares, 0 makes them equal", ge=0, le=1)
    max_documents: int = option(1_000_000, "size of the sample, counting repeated documents; 0 for no limit", ge=0)
    min_frequency: int = option(2, "do not learn letters and pairs that are less frequent", ge=1)
    words: bool = option(False, "whole words instead of pieces, those in the most documents first; others become [UNK]")
    part_of_speech: tuple[str, ...] = option((), "with --words: of these words only", choices=UNIVERSAL_TAGS)
    max_share: float = option(0.25, "with --words: most texts that may have a word, without tags", gt=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part_of_speech and not self.words:
            raise InputError("is of --words", field="--part_of_speech", remedy="give --words too, or neither")


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
        counts.update(language_key(article.language) for article in batch)
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
    for part in (words[one] for one in slices(len(words), _WORDS_TOGETHER)):
        writer.write_columns({"word": part, "count": [counts[word] for word in part]})


def sample_uses(shard: Shard, path: str, rates: Mapping[str, float], tags: Sequence[str]) -> None:
    """Samples documents of one shard and writes which words they have, sorted, to the stream ``_uses``."""
    counter = WordCounter(tags)
    for article, text, copies in _sampled(shard, path, rates):
        language = primary(language_key(article.language))
        counter.add(f"{article.title}\n{article.body}", text, language, copies)
    writer = shard.records(_USES, WordUse)
    for use in counter.uses():
        writer.write(use)


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
    copies = copies_of(article.doc_id, rates[language])
    if not copies:
        problem = f"{language} is taken {rates[language]:.4f} times"
        shard.reject(article.doc_id, Rejection.NOT_SAMPLED, problem, article.title)
    return copies


def merge_words(paths: Sequence[str]) -> Iterator[WordCount]:
    """Yields the total counts of all words, sorted; holds one row group of each shard in memory."""
    for word, group in itertools.groupby(heapq.merge(*map(_read_words, paths)), key=operator.itemgetter(0)):
        yield WordCount(word, sum(count for _, count in group))


def _read_words(path: str) -> Iterator[tuple[str, int]]:
    for batch in read_batches(path, ["word", "count"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def learn(shard: Shard, _: None, options: VocabularyOptions) -> None:
    """Learns the pieces from all sampled words and writes ``vocab.txt``."""
    paths = shard_paths(f"{shard.workspace}/_words")
    learned = learn_pieces(lambda: merge_words(paths), options.size, options.min_frequency)
    files.write_whole(f"{shard.workspace}/{VOCABULARY_FILE}", vocabulary_bytes(learned.pieces))
    for name in ("alphabet", "words", "words_outside"):
        shard.tally(name, getattr(learned, name))


def learn_words(shard: Shard, _: None, options: VocabularyOptions) -> None:
    """Chooses whole words and writes ``vocab.txt``."""
    uses = merge_uses(read_records(path, WordUse) for path in shard_paths(f"{shard.workspace}/{_USES}"))
    size = options.size - len(SPECIAL_TOKENS)
    words = choose_words(uses, size, options.min_frequency, options.max_share, shard.tally)
    files.write_whole(f"{shard.workspace}/{VOCABULARY_FILE}", vocabulary_bytes([*SPECIAL_TOKENS, *words]))
    shard.tally("words", len(words))


def run(run: JobRun) -> None:
    """Counts languages, draws the smoothed sample, then learns the pieces, or chooses whole words."""
    options: VocabularyOptions = run.options
    if options.part_of_speech:
        tagger()  # if none is installed, that is said before anything runs
    articles = run.shards("articles")
    run.map_shards("languages", count_languages, articles, accounted=False)
    documents = run.counts_of("languages").tallies_under(_LANGUAGE_TALLY)
    if not documents:
        path = run.input("articles")
        raise InputError("there are no articles here", path=path, remedy=f"see `newsembed rejected {path}`")
    rates = smoothed_rates(documents, options.alpha, options.max_documents)
    with run.graph(len(articles)):
        if options.words:
            run.map_shards("sample", sample_uses, articles, rates=rates, tags=options.part_of_speech)
        else:
            run.map_shards("sample", sample_words, articles, rates=rates)
        run.map_shards("learn", learn_words if options.words else learn, [None], options=options, accounted=False)
    run.extra["vocabulary"] = _describe(run, options, documents, rates)


def _describe(
    run: JobRun, options: VocabularyOptions, documents: Mapping[str, int], rates: Mapping[str, float]
) -> dict[str, Any]:
    """Returns the manifest's description of the vocabulary."""
    tallies = run.counts_of("learn").tallies
    if not tallies["words"]:
        remedy = "raise --max_documents, or lower --min_frequency"
        raise InputError("the sampled articles have no words", path=run.input("articles"), remedy=remedy)
    vocabulary = Vocabulary.load(f"{run.workspace}/{VOCABULARY_FILE}")
    shortfall = f"learned {vocabulary.size} of {options.size} pieces: the sample holds no more that are seen "
    return {
        "pieces": vocabulary.size,
        "asked": options.size,
        "special": len(SPECIAL_TOKENS),
        "alphabet": tallies.get("alphabet", 0),
        "sha256": vocabulary.digest,
        "warning": f"{shortfall}{options.min_frequency} times" if vocabulary.size < options.size else "",
        "languages": {
            language: {"documents": count, "copies_each": round(rates[language], 4)}
            for language, count in sorted(documents.items())
        },
    }


JOB = Job(
    name="vocabulary",
    example="newsembed vocabulary --articles work/clean --output work/vocabulary --size=32000",
    inputs=(InputSpec("articles", "folder that `newsembed clean` wrote"),),
    options=VocabularyOptions,
    run=run,
)
