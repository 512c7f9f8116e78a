"""Writes the pairs of one shard of articles as TFRecords of the task `PAIRS`."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...formats.manifest import HELD_OUT, DataSet
from ...formats.records import Rejection, doc_id_to_words
from ...formats.vocabulary import CLS_ID, SEP_ID
from ...tasks.pairs import PAIRS
from ...tasks.vocabulary import Vocabulary, join_document
from ..examples.held_out import is_held_out
from ..shards import Shard
from ..texts import (
    UNDETERMINED,
    ArticleText,
    language_key,
    load_vocabulary,
    read_text_batches,
    shuffle_key,
    uniform_draw,
)
from ..token_store import day_number
from .interface import Refusal, Text, TextPair
from .kinds import KINDS
from .options import END, PairsOptions

# Prefixes of tallies: the examples of each set.
TRAINING_EXAMPLES: Final = "examples/"
HELD_OUT_EXAMPLES: Final = "held_out examples/"


class _Example(NamedTuple):
    """One record: the key that orders the records of a shard, its set, whether it is held out, and its features."""

    order: bytes
    data_set: DataSet
    is_held_out: bool
    features: dict[str, Any]

    @property
    def stream(self) -> str:
        return f"{HELD_OUT}/{self.data_set.stream}" if self.is_held_out else self.data_set.stream


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
    texts: dict[str, list[str]] = defaultdict(list)
    for doc_id, text in posts:
        texts[doc_id].append(text)
    pieces = load_vocabulary(vocabulary)
    examples: list[_Example] = []
    for batch in read_text_batches(articles[shard.index]):
        examples += _examples_of(shard, batch, texts, pieces, options)
    for doc_id, left in sorted(texts.items()):
        shard.read(len(left))
        for text in left:
            shard.reject(doc_id, Rejection.NO_ARTICLE, "no such article among --articles", text)
    files: dict[str, Any] = {}
    for example in sorted(examples, key=lambda one: one.order):
        if example.stream not in files:
            files[example.stream] = shard.examples(example.stream)
        files[example.stream].write(example.features, PAIRS.features)
        shard.tally(f"{HELD_OUT_EXAMPLES if example.is_held_out else TRAINING_EXAMPLES}{example.data_set}")


def _examples_of(
    shard: Shard, batch: Sequence[ArticleText], posts: dict[str, list[str]], pieces: Vocabulary, options: PairsOptions
) -> Iterator[_Example]:
    """Yields the examples of some articles, and takes their posts out of ``posts``."""
    kind = KINDS[options.of]
    found: list[tuple[ArticleText, TextPair]] = []
    for article in batch:
        own = posts.pop(article.doc_id, [])
        if kind.reads_posts and not own:
            shard.tally("articles without posts")
            continue
        for one in kind.make(article, own, options):
            shard.read()
            if isinstance(one, Refusal):
                shard.reject(article.doc_id, one.reason, one.detail, article.title)
            else:
                found.append((article, one))
    tokens = _Tokens(pieces, options)
    rows = tokens.rows([text for _, pair in found for text in pair])
    pairs = zip([article for article, _ in found], rows[::2], rows[1::2], strict=True)
    for article, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        yield from _of_article(shard, article, [(anchor, positive) for _, anchor, positive in group], options)


class _Tokens:
    """Token ids of texts, each text tokenized once."""

    def __init__(self, pieces: Vocabulary, options: PairsOptions) -> None:
        self._pieces = pieces
        self._options = options

    def rows(self, texts: Sequence[Text]) -> list[np.ndarray]:
        """Returns ``[CLS] title [SEP] body [SEP]`` of each text, int32, cut to the longest length."""
        parts = sorted({part for text in texts for part in text})
        ids = dict(zip(parts, self._pieces.encode_texts(parts), strict=True))
        return [self._row(ids[text.title], ids[text.body]) for text in texts]

    def _row(self, title: np.ndarray, body: np.ndarray) -> np.ndarray:
        longest = self._options.max_length
        if self._options.keep == END:
            whole = join_document(title, body, title.size + body.size + 3)
            return np.concatenate([whole[:1], whole[1:][-(longest - 1) :]])
        return join_document(title, body, longest)


def _of_article(
    shard: Shard, article: ArticleText, pairs: Sequence[tuple[np.ndarray, np.ndarray]], options: PairsOptions
) -> Iterator[_Example]:
    language = language_key(article.language) or UNDETERMINED
    day = day_number(article.byline_date)
    draw = uniform_draw("held out", options.seed, article.doc_id)
    held_out = draw < options.held_out_share or is_held_out(day, options.held_out_from)
    data_set = DataSet(PAIRS.name, language)
    numbered = [(shuffle_key(options.seed, article.doc_id, number), two) for number, two in enumerate(pairs)]
    kept = 0
    for order, (anchor, positive) in sorted(numbered, key=lambda pair: pair[0]):
        if min(_words(anchor), _words(positive)) < options.min_tokens:
            shard.reject(article.doc_id, Rejection.TOO_FEW_TOKENS, f"{_words(anchor)} and {_words(positive)} tokens")
        elif options.per_article and kept == options.per_article:
            shard.reject(article.doc_id, Rejection.PAIR_LIMIT)
        else:
            kept += 1
            shard.written()
            yield _Example(order, data_set, held_out, pair_features(anchor, positive, article.doc_id, language, day))


def _words(row: np.ndarray) -> int:
    return int(np.sum((row != CLS_ID) & (row != SEP_ID)))


def pair_features(anchor: np.ndarray, positive: np.ndarray, doc_id: str, language: str, day: int) -> dict[str, Any]:
    """Returns the features of a pair of two texts that belong to one article.

    Args:
      anchor: token ids, int32 [tokens].
      positive: likewise.
      doc_id: of the article.
      language: its BCP-47 tag.
      day: its byline day, see `token_store.day_number`.
    """
    words = doc_id_to_words(doc_id)
    return {
        "anchor_tokens": anchor.tolist(),
        "positive_tokens": positive.tolist(),
        "language": language,
        "anchor_doc_id": words,
        "positive_doc_id": words,
        "day": day,
    }
