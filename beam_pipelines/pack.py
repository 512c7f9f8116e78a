"""``newsembed pack``: packs documents and translation pairs into rows for MLM and TLM pretraining (section 3.1)."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError, require_option
from ..formats.command_line import option
from ..formats.manifest import DataSet
from ..formats.parquet import shard_paths
from ..formats.records import Failure, Rejection
from ..formats.tfrecords.writer import TFRecordShardWriter
from ..tasks.packed import MLM, TLM
from ..tasks.registry import Task
from ..tasks.vocabulary import Vocabulary
from . import bitext
from .bitext import BitextPart, TranslationPair, read_pairs
from .jobs import InputSpec, Job, JobRun
from .packing import Piece, cut_pair, frame, join_parts, longest_first, make_row, pack, split_document
from .shards import Shard
from .texts import (
    language_key,
    load_vocabulary,
    read_text_batches,
    shuffle_key,
    vocabulary_input_digest,
    vocabulary_path,
)

_SHORTEST_ROW = 16
_PAIRS_AT_ONCE = 1_024
_MOST_TOKENS = 16 << 20  # held at once, about 16 bytes each: a file of translation pairs may be large
_EXAMPLES = "examples/"
_Keyed = tuple[bytes, Piece]  # sorting by the key shuffles


@dataclasses.dataclass(frozen=True)
class PackOptions:
    """Options of ``pack``; max_length, capacity and min_fill are L, C and rho of Algorithm 1."""

    max_length: int = option(512, "tokens in a row")
    capacity: int = option(1_000, "unfinished rows that are kept open to choose from")
    min_fill: float = option(0.99, "a row that is filled to this share is finished")
    min_tokens: int = option(8, "shorter documents and pairs are left out; [CLS] and [SEP] do not count")
    long_documents: str = option("split", "split: cut into several pieces; truncate: keep the first piece")

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="pack")
        require(self.max_length >= _SHORTEST_ROW, "max_length", self.max_length, f"at least {_SHORTEST_ROW}")
        require(self.capacity >= 1, "capacity", self.capacity, "at least 1")
        require(0 < self.min_fill <= 1, "min_fill", self.min_fill, "a share above 0 and up to 1")
        require(self.min_tokens >= 1, "min_tokens", self.min_tokens, "at least 1")
        require(
            self.long_documents in ("split", "truncate"), "long_documents", self.long_documents, "split or truncate"
        )


def pack_shard(shard: Shard, source: str | BitextPart, vocabulary: str, options: PackOptions) -> None:
    """Tokenizes, shuffles and packs a shard of articles (its path) or a part of the bitext, language by language."""
    pieces_of_vocabulary = load_vocabulary(vocabulary)
    if isinstance(source, str):
        rows, keyed = _Rows(shard, MLM, options), _article_pieces(shard, source, pieces_of_vocabulary, options)
    else:
        rows, keyed = _Rows(shard, TLM, options), _pair_pieces(shard, source, pieces_of_vocabulary, options)
    for language, key, piece in keyed:
        rows.add(language, key, piece)
    rows.finish()


class _Rows:
    """Packs the pieces of one shard by language.

    Pieces are held until the end of the shard. If more than ``most_tokens`` tokens are held, the language with the most
    tokens is packed and written early.
    """

    def __init__(self, shard: Shard, task: Task, options: PackOptions, most_tokens: int = _MOST_TOKENS) -> None:
        self._shard = shard
        self._task = task
        self._options = options
        self._most_tokens = most_tokens
        self._held: dict[str, list[_Keyed]] = collections.defaultdict(list)
        self._tokens: collections.Counter[str] = collections.Counter()
        self._writers: dict[str, TFRecordShardWriter] = {}

    def add(self, language: str, key: bytes, piece: Piece) -> None:
        self._held[language].append((key, piece))
        self._tokens[language] += len(piece)
        if self._tokens.total() > self._most_tokens:
            self._write(max(self._tokens, key=lambda name: (self._tokens[name], name)))

    def finish(self) -> None:
        for language in sorted(self._held):
            self._write(language)

    def _write(self, language: str) -> None:
        data_set, options = DataSet(self._task.name, language), self._options
        if language not in self._writers:
            self._writers[language] = self._shard.examples(data_set.stream)
        keyed = sorted(self._held.pop(language), key=lambda pair: pair[0])
        del self._tokens[language]
        window_tokens = (
            options.capacity * options.max_length // 2
        )  # leaves half of the cache to rows of earlier windows
        pieces = longest_first((piece for _, piece in keyed), window_tokens, len)
        for row in pack(pieces, options.max_length, options.capacity, options.min_fill, len):
            self._writers[language].write(make_row(row, options.max_length), self._task.features)
            self._shard.tally(f"{_EXAMPLES}{data_set}")
            self._shard.tally(f"pieces/{data_set}", len(row))
            self._shard.tally(f"tokens/{data_set}", sum(len(piece) for piece in row))


def _article_pieces(
    shard: Shard, path: str, vocabulary: Vocabulary, options: PackOptions
) -> Iterator[tuple[str, bytes, Piece]]:
    for batch in read_text_batches(path):
        shard.read(len(batch))
        titles = vocabulary.encode_with_words([article.title for article in batch])
        bodies = vocabulary.encode_with_words([article.body for article in batch])
        for article, title, title_words, body, body_words in zip(batch, *titles, *bodies, strict=True):
            language = language_key(article.language)
            if language is None:
                shard.fail(
                    article.doc_id,
                    Failure.BROKEN_RECORD,
                    f"language {article.language!r} is not a BCP-47 tag",
                    article.title,
                )
            elif title.size + body.size < options.min_tokens:
                shard.reject(
                    article.doc_id, Rejection.TOO_SHORT_TO_PACK, f"{title.size + body.size} tokens", article.title
                )
            else:
                shard.written()
                shard.tally(f"documents/{MLM.name}/{language}")
                pieces = _document_pieces(shard, *join_parts((title, body), (title_words, body_words)), options)
                yield from (
                    (language, shuffle_key(article.doc_id, number), piece) for number, piece in enumerate(pieces)
                )


def _document_pieces(shard: Shard, tokens: np.ndarray, word_ids: np.ndarray, options: PackOptions) -> list[Piece]:
    pieces = split_document(tokens, word_ids, options.max_length)
    if len(pieces) == 1:
        return pieces
    if options.long_documents == "truncate":
        shard.tally("documents_truncated")
        shard.tally("tokens_truncated", sum(len(piece) for piece in pieces[1:]))
        return pieces[:1]
    shard.tally("documents_split")
    return pieces


def _pair_pieces(
    shard: Shard, part: BitextPart, vocabulary: Vocabulary, options: PackOptions
) -> Iterator[tuple[str, bytes, Piece]]:
    pairs = read_pairs(shard, part)
    while batch := list(itertools.islice(pairs, _PAIRS_AT_ONCE)):
        sources = vocabulary.encode_with_words([pair.source for pair in batch])
        targets = vocabulary.encode_with_words([pair.target for pair in batch])
        for pair, *sides in zip(batch, *sources, *targets, strict=True):
            piece = _pair_piece(shard, pair, sides, options)
            if piece is not None:
                shard.written()
                shard.tally(f"documents/{TLM.name}/{pair.languages}")
                yield pair.languages, shuffle_key(pair.key), piece


def _pair_piece(shard: Shard, pair: TranslationPair, sides: list[np.ndarray], options: PackOptions) -> Piece | None:
    """Returns ``[CLS] source [SEP] target [SEP]``, or ``None`` after rejecting a pair that is too short.

    Args:
      shard: counts the rejection.
      pair: the texts.
      sides: token ids and word ids of the source, then of the target.
      options: lengths.
    """
    source, source_words, target, target_words = sides
    if not source.size or not target.size or source.size + target.size < options.min_tokens:
        shard.reject(pair.key, Rejection.TOO_SHORT_TO_PACK, f"{source.size} and {target.size} tokens", pair.source)
        return None
    left, right = cut_pair(source.size, target.size, options.max_length - 3)
    if left + right < source.size + target.size:
        shard.tally("pairs_cut")
    return frame(*join_parts((source[:left], target[:right]), (source_words[:left], target_words[:right])))


def run(run: JobRun) -> None:
    """Packs every shard of articles and every part of the bitext, then counts the rows by task and language.

    Raises:
      InputError: if nothing is long enough to pack, or the vocabulary or a file of translation pairs is broken.
    """
    vocabulary = vocabulary_path(run.input("vocabulary"))
    sources: list[str | BitextPart] = [*shard_paths(f"{run.input('articles')}/articles")]
    for given in run.inputs["bitext"]:
        sources += bitext.plan_parts(given)
    Vocabulary.load(vocabulary)  # reports a broken file here, not from inside a worker
    run.map_shards("pack", functools.partial(pack_shard, vocabulary=vocabulary, options=run.options), sources)
    tallies = run.counts_of("pack").tallies
    examples = {
        name.removeprefix(_EXAMPLES): rows for name, rows in sorted(tallies.items()) if name.startswith(_EXAMPLES)
    }
    if not examples:
        raise InputError(
            "no article is long enough to pack",
            path=run.input("articles"),
            remedy="lower --min_tokens, or look at the dead letters",
        )
    run.extra["examples"] = examples
    run.extra["packing"] = {name: _describe(name, tallies, run.options.max_length) for name in examples}


def _describe(name: str, tallies: Any, max_length: int) -> dict[str, float]:
    rows = tallies[f"{_EXAMPLES}{name}"]
    return {
        "fill": round(tallies[f"tokens/{name}"] / (rows * max_length), 4),
        "pieces_per_row": round(tallies[f"pieces/{name}"] / rows, 3),
        "documents_per_row": round(tallies[f"documents/{name}"] / rows, 3),
    }


JOB = Job(
    name="pack",
    summary="pack documents and translation pairs into pretraining TFRecords",
    example=(
        "newsembed pack --articles work/clean --vocabulary work/vocabulary --output work/pack \\\n"
        "      --bitext 'parallel/*.tsv' memory.tmx.gz europarl.de,europarl.en"
    ),
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec(
            "vocabulary",
            "folder that `newsembed vocabulary` or `newsembed import-hf` wrote, or its vocab.txt",
            digest=vocabulary_input_digest,
        ),
        InputSpec("bitext", bitext.HELP, required=False, many=True, digest=bitext.digest),
    ),
    options=PackOptions,
    run=run,
)
