"""``newsembed pairs``: writes pairs of texts that belong together, without mined negatives, as TFRecords.

A kind of pairs is a function that says how two texts follow from an article, see `MakePairs`, and a line in `KINDS`.
"""

import collections
import dataclasses
import datetime
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import apache_beam as beam
import numpy as np

from ..errors import InputError
from ..formats.command_line import Options, option
from ..formats.manifest import HELD_OUT
from ..formats.parquet import read_batches, read_records
from ..formats.records import Post, Rejection, doc_id_to_words
from ..formats.vocabulary import CLS_ID, SEP_ID
from ..tasks.kinds import PAIRS
from ..tasks.sentences import split_text
from ..tasks.vocabulary import Vocabulary, join_document
from .graph import Graph
from .jobs import ARTICLES, Job, JobRun, optional
from .shards import HELD_OUT_EXAMPLES, TRAINING_EXAMPLES, Shard, group_by_shard, process_shards, shard_of
from .texts import (
    VOCABULARY_INPUT,
    ArticleText,
    checked_vocabulary,
    language_key,
    load_vocabulary,
    read_text_batches,
    shuffle_key,
    uniform_draw,
)
from .token_store import day_number, is_held_out

START, END = "start", "end"
_SENTENCE, _WORD, _NO_UNIT = "sentence", "word", "none"
_DROP, _BOTH = "drop", "both"
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS: Final = re.compile(f"[{_HAN}]|[^\\s{_HAN}]+")

Unit = tuple[str, str]  # what separates it from the unit before it, and its text


class Text(NamedTuple):
    """A text as the encoder reads it, ``[CLS] title [SEP] body [SEP]``; either part may be empty."""

    title: str = ""
    body: str = ""


class TextPair(NamedTuple):
    """Two texts that belong together."""

    anchor: Text
    positive: Text


class Refusal(NamedTuple):
    """Why a candidate is not a pair."""

    reason: Rejection
    detail: str = ""


# An article, the texts of the posts that link to it, and the options -> a pair or a refusal for every candidate. The
# job counts each as one record that it has read.
MakePairs = Callable[[ArticleText, Sequence[str], Any], Iterator[TextPair | Refusal]]


def _post_pairs(article: ArticleText, posts: Sequence[str], _options: object) -> Iterator[TextPair | Refusal]:
    """Yields a pair of the article and each post, which `extract --posts` has read; a refusal for a repeat."""
    whole, seen = Text(article.title, article.body), set()
    for text in posts:
        plain = " ".join(text.casefold().split())
        yield Refusal(Rejection.DUPLICATE_PAIR, text) if plain in seen else TextPair(whole, Text(title=text))
        seen.add(plain)


def _anchor_pairs(article: ArticleText, _posts: Sequence[str], options: object) -> Iterator[TextPair | Refusal]:
    """Yields a pair of the article and each of its link texts; a refusal where there is none."""
    if not article.anchor_texts:
        yield Refusal(Rejection.NO_OTHER_TEXT, "no link text")
    yield from _post_pairs(article, article.anchor_texts, options)


def _title_pairs(article: ArticleText, _posts: Sequence[str], _options: object) -> Iterator[TextPair | Refusal]:
    """Yields the pair of body and title (row 0 of Table 1 without a triplet); a refusal where one of them is empty."""
    if article.title.strip() and article.body.strip():
        yield TextPair(Text(body=article.body), Text(title=article.title))
    else:
        yield Refusal(Rejection.NO_OTHER_TEXT, "an empty title or body")


def halves_pairs(article: ArticleText, _posts: Sequence[str], options: "PairsOptions") -> Iterator[TextPair | Refusal]:
    """Yields a pair for every draw; a refusal for an article of one sentence, and for a draw that came before.

    Each sentence (or word) goes to one of two texts with probability 1/2 and keeps its order; none is in both (SimLTE,
    section 2). All units need two sentences, so that they give pairs of the same articles.
    """
    sentences = split_text(article.body)
    if len(sentences) < 2:
        yield Refusal(Rejection.TOO_FEW_SENTENCES, f"{len(sentences)} sentences")
        return
    title = article.title if options.title == _BOTH else ""
    if options.unit == _NO_UNIT:
        whole = Text(title, article.body)
        yield TextPair(whole, whole)
        return
    units, seen = words_of(sentences) if options.unit == _WORD else sentences, set()
    for number in range(options.draws):
        sides = deal(len(units), options.seed, article.doc_id, number)
        if sides in seen:
            yield Refusal(Rejection.DUPLICATE_PAIR, f"draw {number}")
            continue
        others = tuple(not side for side in sides)
        seen |= {sides, others}
        yield TextPair(*(Text(title, join_units(units, kept)) for kept in (others, sides)))


def deal(count: int, seed: int, doc_id: str, number: int) -> tuple[bool, ...]:
    """Returns the side of each of ``count`` units, each with probability 1/2; a draw with an empty side is repeated.

    Args:
      count: of units, 2 or more.
      seed: of the job.
      doc_id: of the article.
      number: of the draw.
    """
    sides: tuple[bool, ...] = ()
    attempt = 0
    while len(set(sides)) < 2:
        sides = tuple(uniform_draw("halves", seed, doc_id, number, attempt, unit) < 0.5 for unit in range(count))
        attempt += 1
    return sides


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
    found = ((separator, _WORDS.findall(sentence)) for separator, sentence in sentences)
    return [(" " if place else separator, word) for separator, words in found for place, word in enumerate(words)]


# The values of ``--of``.
POSTS: Final = "posts"  # needs --posts; only articles with posts are read
_HALVES: Final = "halves"
KINDS: Final[dict[str, MakePairs]] = {
    POSTS: _post_pairs,
    "anchors": _anchor_pairs,
    "titles": _title_pairs,
    _HALVES: halves_pairs,
}


@dataclasses.dataclass(frozen=True)
class PairsOptions(Options):
    """Options of ``pairs``."""

    of: str = option(
        "titles",
        "the two texts of a pair: an article and a post that links to it (posts), an article and a link "
        "text to it (anchors), a body and its title (titles), two texts that share the sentences of a body (halves)",
        choices=tuple(KINDS),
    )
    max_length: int = option(512, "tokens of a text, including special tokens", ge=8)
    keep: str = option(START, "the part that stays of a text that is too long", choices=(START, END))
    min_tokens: int = option(3, "fewest tokens of each text, without special tokens", ge=1)
    draws: int = option(1, "halves: pairs of each article, each a draw of its own", ge=1)
    unit: str = option(
        _SENTENCE,
        "halves: what is dealt to the two texts; none: both are the whole body, and dropout alone tells them apart",
        choices=(_SENTENCE, _WORD, _NO_UNIT),
    )
    title: str = option(_DROP, "halves: drop the title, or give it to both texts", choices=(_DROP, _BOTH))
    seed: int = option(0, "of all draws: the same seed gives the same pairs")
    held_out_share: float = option(0.0, "share of the articles to hold out, for EVAL_DATA_DIR", ge=0, lt=1)
    held_out_from: datetime.date | None = option(None, "hold out the articles of this day and later, too")

    def __post_init__(self) -> None:
        super().__post_init__()
        given = {"draws": self.draws != 1, "unit": self.unit != _SENTENCE, "title": self.title != _DROP}
        if self.unit == _NO_UNIT and self.draws > 1:
            raise InputError(f"got {self.draws}, expected 1 with --unit=none", field="--draws", remedy="see --help")
        if self.of != _HALVES and any(given.values()):
            name = next(name for name, is_given in given.items() if is_given)
            problem = f"got {getattr(self, name)}, expected none with --of={self.of}: it is for --of={_HALVES}"
            raise InputError(problem, field=f"--{name}", remedy="see --help")


# The job


def run(run: JobRun) -> None:
    """Writes the pairs of every shard of articles; posts are sent to the shard of their article first.

    Raises:
      InputError: if there is no pair to train on, none to hold out where some are asked for, or ``--posts`` is missing.
    """
    options: PairsOptions = run.options
    articles = run.shards("articles")
    vocabulary = checked_vocabulary(run)
    facts: dict[str, Any] = {"articles": articles, "vocabulary": vocabulary, "options": options}
    if options.of != POSTS:
        run.map_shards("pairs", write_pairs, [()] * len(articles), **facts)
    elif not run.inputs["posts"]:
        remedy = "give the folder that `newsembed extract --posts` wrote"
        raise InputError(f"--of={options.of} needs posts", field="--posts", remedy=remedy)
    else:
        phase = run.phase("pairs", len(articles))
        write = process_shards(functools.partial(write_pairs, **facts), phase)
        with run.graph(len(articles)) as graph:
            graph.add(phase, lambda: _posts_of_shards(graph, run.shards("posts"), articles) | write)
    _describe(run)


def _posts_of_shards(graph: Graph, posts: Sequence[str], articles: Sequence[str]) -> beam.PCollection:
    """Returns (shard of articles, (doc_id, text) of its posts)."""
    read = graph.start("Posts", posts) | beam.FlatMap(_read_posts)
    places = graph.start("Articles", enumerate(articles)) | beam.FlatMapTuple(_read_places)
    joined = {"posts": read, "places": places} | beam.CoGroupByKey() | beam.FlatMap(_place_posts, len(articles))
    return joined | group_by_shard(len(articles))


def _read_posts(path: str) -> Iterator[tuple[str, str]]:
    """Yields (doc_id of the article, text) of every post of one Parquet shard."""
    return ((post.doc_id, post.text) for post in read_records(path, Post))


def _read_places(index: int, path: str) -> Iterator[tuple[str, int]]:
    """Yields (doc_id, shard) of every article of one shard."""
    for batch in read_batches(path, ["doc_id"]):
        for doc_id in batch.column("doc_id").to_pylist():
            yield doc_id, index


def _place_posts(
    grouped: tuple[str, Mapping[str, Iterable[Any]]], shard_count: int
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields (shard of the article, (doc_id, text)) of the posts of one article; a missing article gets some shard."""
    doc_id, groups = grouped
    shard = min(groups["places"], default=shard_of(doc_id, shard_count))
    for text in groups["posts"]:
        yield shard, (doc_id, text)


def _describe(run: JobRun) -> None:
    """Adds the counts of each set to the manifests.

    Raises:
      InputError: if there is no pair to train on, or none to hold out where some are asked for.
    """
    options: PairsOptions = run.options
    counts = run.counts_of("pairs")
    training, held_out = map(counts.tallies_under, (TRAINING_EXAMPLES, HELD_OUT_EXAMPLES))
    source = run.input("articles")
    if not training:
        raise InputError("there are no pairs", path=source, remedy="see `newsembed rejected` on the output")
    run.extra["examples"] = training
    if options.held_out_share or options.held_out_from:
        if not held_out:
            remedy = "raise --held_out_share, or name a day that the articles reach"
            raise InputError("no pair is held out", path=source, field="--held_out_share", remedy=remedy)
        run.extra["held_out"] = {"examples": held_out}
        run.folders[HELD_OUT] = sum(held_out.values()), run.extra["held_out"]


# A key that orders the records of a shard, whether the record is held out, and its features.
_Example = tuple[bytes, bool, dict[str, Any]]


def write_pairs(
    shard: Shard, posts: Sequence[tuple[str, str]], articles: Sequence[str], vocabulary: str, options: PairsOptions
) -> None:
    """Writes the pairs of one shard in shuffled order.

    Args:
      shard: the outputs.
      posts: (doc_id, text) of the posts of this shard's articles, and of some that have no article; sorted.
      articles: paths of all shards of articles.
      vocabulary: path of the vocabulary.
      options: of the job.
    """
    texts: dict[str, list[str]] = collections.defaultdict(list)
    for doc_id, text in posts:
        texts[doc_id].append(text)
    examples: list[_Example] = []
    pieces = load_vocabulary(vocabulary)
    for batch in read_text_batches(articles[shard.index]):
        examples += _examples_of(shard, batch, texts, pieces, options)
    for doc_id, left in sorted(texts.items()):
        shard.read(len(left))
        for text in left:
            shard.reject(doc_id, Rejection.NO_ARTICLE, "no such article among --articles", text)
    for _, held_out, features in sorted(examples, key=lambda one: one[0]):
        shard.write_example(PAIRS, features["language"], features, held_out=held_out)


def _examples_of(
    shard: Shard, batch: Sequence[ArticleText], posts: dict[str, list[str]], pieces: Vocabulary, options: PairsOptions
) -> Iterator[_Example]:
    """Yields the examples of some articles, and takes their posts out of ``posts``."""
    found: list[tuple[ArticleText, TextPair]] = []
    for article in batch:
        own = posts.pop(article.doc_id, [])
        if options.of == POSTS and not own:
            shard.tally("articles without posts")
            continue
        pairs = shard.limited(article.doc_id, _pairs_of, article, own, options)
        if pairs is None:
            shard.read()  # the article, in place of pairs that are not known
            continue
        for one in pairs:
            shard.read()
            if isinstance(one, Refusal):
                shard.reject(article.doc_id, one.reason, one.detail, article.title)
            else:
                found.append((article, one))
    rows = iter(_rows([text for _, pair in found for text in pair], pieces, options))
    for article, group in itertools.groupby((article for article, _ in found), key=lambda one: one):
        yield from _of_article(shard, article, [(next(rows), next(rows)) for _ in group], options)


def _pairs_of(article: ArticleText, own: list[str], options: PairsOptions) -> list[TextPair | Refusal]:
    return list(KINDS[options.of](article, own, options))


def _rows(texts: Sequence[Text], pieces: Vocabulary, options: PairsOptions) -> list[np.ndarray]:
    """``[CLS] title [SEP] body [SEP]`` of each text, int32, cut to the longest length; each part is tokenized once."""
    parts = sorted({part for text in texts for part in text})
    ids = dict(zip(parts, pieces.encode_texts(parts), strict=True))
    longest, rows = options.max_length, []
    for title, body in ((ids[text.title], ids[text.body]) for text in texts):
        whole = join_document(title, body, title.size + body.size + 3 if options.keep == END else longest)
        rows.append(np.concatenate([whole[:1], whole[1:][-(longest - 1) :]]))
    return rows


def _of_article(
    shard: Shard, article: ArticleText, pairs: Sequence[tuple[np.ndarray, np.ndarray]], options: PairsOptions
) -> Iterator[_Example]:
    language, day = language_key(article.language), day_number(article.byline_date)
    draw, words = uniform_draw("held out", options.seed, article.doc_id), doc_id_to_words(article.doc_id)
    held_out = draw < options.held_out_share or is_held_out(day, options.held_out_from)
    facts = {"language": language, "anchor_doc_id": words, "positive_doc_id": words, "day": day}
    for number, (anchor, positive) in enumerate(pairs):
        sizes = [int(np.sum((row != CLS_ID) & (row != SEP_ID))) for row in (anchor, positive)]
        if min(sizes) < options.min_tokens:
            shard.reject(article.doc_id, Rejection.TOO_FEW_TOKENS, f"{sizes[0]} and {sizes[1]} tokens")
        else:
            shard.written()
            order = shuffle_key(options.seed, article.doc_id, number)
            texts = {"anchor_tokens": anchor.tolist(), "positive_tokens": positive.tolist()}
            yield order, held_out, texts | facts


JOB = Job(
    name="pairs",
    example=(
        "newsembed pairs --of=titles --articles work/clean --vocabulary work/vocabulary --held_out_share=0.1 \\\n"
        "      --output work/pairs"
    ),
    inputs=(
        ARTICLES,
        VOCABULARY_INPUT,
        optional("posts", "folder that `newsembed extract --posts` wrote, for --of=posts"),
    ),
    options=PairsOptions,
    run=run,
)
