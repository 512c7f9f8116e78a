"""``newsembed pack``: packs documents and translation pairs into rows for MLM and TLM pretraining (section 3.1)."""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from ..errors import InputError
from ..formats.command_line import Options, option
from ..formats.manifest import DataSet
from ..formats.records import Rejection
from ..formats.vocabulary import CLS_ID, PAD_ID, SEP_ID
from ..tasks.kinds import MLM, TLM
from ..tasks.registry import Task
from ..tasks.vocabulary import Vocabulary
from .bitext.readers import HELP, BitextPart, digest, plan_parts, read_pairs
from .jobs import ARTICLES, Job, JobRun, optional
from .shards import TRAINING_EXAMPLES, Shard
from .texts import (
    VOCABULARY_INPUT,
    checked_vocabulary,
    language_key,
    load_vocabulary,
    read_text_batches,
    shuffle_key,
)

P = TypeVar("P")
_FRAME = 2  # [CLS] and [SEP] around every piece
_LARGEST = np.iinfo(np.int32).max
_PAIRS_AT_ONCE = 1_024
_MOST_TOKENS = 16 << 20  # held at once, about 16 bytes each: a file of translation pairs may be large


# Algorithm 1, and the layout of a packed row


def pack(
    pieces: Iterable[P], max_length: int, capacity: int, min_fill: float, length: Callable[[P], int]
) -> Iterator[list[P]]:
    """Packs pieces into rows of at most ``max_length`` tokens; every piece is in exactly one row.

    A cache holds up to ``capacity`` unfinished rows. Each piece goes to the cached row in which it leaves the least
    room. A row is emitted when it is filled to ``min_fill``. If a piece fits into no row of a full cache, the fullest
    row is emitted to make space. At the end the remaining rows are emitted, the fullest first. The time per piece is
    constant, and no more than the cache is held in memory.

    >>> list(pack([5, 4, 3, 6, 2], max_length=10, capacity=2, min_fill=0.9, length=lambda piece: piece))
    [[5, 4], [3, 6], [2]]

    Args:
      pieces: pieces in the order in which they are packed.
      max_length: L, the length of a row in tokens.
      capacity: C, the number of rows in the cache, at least 1.
      min_fill: rho, the share of ``max_length`` from which a row is finished, in (0, 1].
      length: returns the number of tokens of a piece, 1 to ``max_length``.

    Yields:
      The pieces of one row, in the order in which they came.
    """
    cache = _Cache[P](max_length)
    slack = int(max_length * (1 - min_fill) + 1e-9)  # unfilled tokens that a finished row may have
    for piece in pieces:
        tokens = length(piece)
        row, room = cache.take(tokens)
        if not row and cache.rows == capacity:
            yield cache.take(0)[0]
        row.append(piece)
        if room - tokens <= slack:
            yield row
        else:
            cache.put(row, room - tokens)
    while cache.rows:
        yield cache.take(0)[0]


def longest_first(pieces: Iterable[P], window_tokens: int, length: Callable[[P], int]) -> Iterator[P]:
    """Reorders a stream for :func:`pack`: cuts it into windows and yields each window with the longest piece first.

    Short pieces then fill the gaps that long ones leave, so rows are nearly as full as with best-fit decreasing over
    all pieces at once. Pieces still meet at random, because windows follow the order of the stream. A window should
    open fewer rows than the cache of :func:`pack` holds.

    >>> list(longest_first([1, 5, 3, 2, 4], window_tokens=8, length=lambda piece: piece))
    [5, 3, 1, 4, 2]

    Args:
      pieces: the stream.
      window_tokens: a window ends with the piece that brings it to this many tokens.
      length: returns the number of tokens of a piece.
    """
    window: list[P] = []
    tokens = 0
    for piece in pieces:
        window.append(piece)
        tokens += length(piece)
        if tokens >= window_tokens:
            yield from sorted(window, key=length, reverse=True)
            window, tokens = [], 0
    yield from sorted(window, key=length, reverse=True)


class _Cache(Generic[P]):
    """Unfinished rows by the room they have left.

    Bit r of ``_present`` is set if there is a row with room r, so the best row is found by one bit operation.
    """

    def __init__(self, max_length: int) -> None:
        self.rows = 0
        self._max_length = max_length
        self._by_room: list[list[list[P]]] = [[] for _ in range(max_length)]  # no row is empty
        self._present = 0

    def put(self, row: list[P], room: int) -> None:
        self._by_room[room].append(row)
        self._present |= 1 << room
        self.rows += 1

    def take(self, tokens: int) -> tuple[list[P], int]:
        """Removes the row with the least room for ``tokens``; returns it and its room, or a new row."""
        fitting = self._present >> tokens
        if not fitting:
            return [], self._max_length
        room = tokens + (fitting & -fitting).bit_length() - 1
        row = self._by_room[room].pop()
        if not self._by_room[room]:
            self._present ^= 1 << room
        self.rows -= 1
        return row, room


@dataclasses.dataclass(frozen=True)
class Piece:
    """One unit of packing: a document, a part of one, or a translation pair, framed by [CLS] and [SEP].

    Attributes:
      tokens: int32 ``[n]``, token ids.
      word_ids: int32 ``[n]``, 1-based number of the whole word within the piece, 0 on special tokens.
    """

    tokens: np.ndarray
    word_ids: np.ndarray

    def __len__(self) -> int:
        return self.tokens.size


def frame(tokens: np.ndarray, word_ids: np.ndarray) -> Piece:
    """Returns the piece ``[CLS] tokens [SEP]``, its words numbered from 1."""
    first = word_ids[word_ids > 0].min(initial=_LARGEST)
    words = np.where(word_ids > 0, word_ids - first + 1, 0)
    framed = np.concatenate([[CLS_ID], tokens, [SEP_ID]]), np.concatenate([[0], words, [0]])
    return Piece(*(part.astype(np.int32) for part in framed))


def join_parts(parts: Sequence[np.ndarray], word_ids: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Joins parts (title and body, source and target) by [SEP].

    Args:
      parts: int32 token ids of each part; empty parts are left out.
      word_ids: 1-based word numbers of each part.

    Returns:
      Token ids and word ids, int32 ``[n]`` each; words are numbered across the parts, [SEP] has word id 0.
    """
    tokens, words, last_word = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0
    for part, numbers in zip(parts, word_ids, strict=True):
        if part.size:
            is_first = len(tokens) == 1
            tokens += [part] if is_first else [np.array([SEP_ID], np.int32), part]
            words += [numbers] if is_first else [np.zeros(1, np.int32), numbers + last_word]
            last_word += int(numbers[-1])
    return np.concatenate(tokens), np.concatenate(words)


def split_document(tokens: np.ndarray, word_ids: np.ndarray, max_length: int) -> list[Piece]:
    """Cuts ``title [SEP] body`` into pieces of at most ``max_length`` tokens, including [CLS] and [SEP].

    Cuts fall between words, except inside a word that is longer than a piece. A [SEP] at a cut is dropped.
    """
    room = max_length - _FRAME
    pieces = []
    start = 0
    while start < tokens.size:
        end = min(start + room, tokens.size)
        if end < tokens.size:
            end = _word_start(word_ids, start, end)
        begin, stop = start + (tokens[start] == SEP_ID), end - (tokens[end - 1] == SEP_ID)
        if begin < stop:
            pieces.append(frame(tokens[begin:stop], word_ids[begin:stop]))
        start = end
    return pieces


def cut_pair(source: int, target: int, room: int) -> tuple[int, int]:
    """Returns the lengths to which the two sides of a translation pair are cut.

    The longer side is cut first, until both fit into ``room`` together. Sides that fit keep their lengths.

    >>> cut_pair(10, 3, 8)
    (5, 3)
    >>> cut_pair(10, 9, 8)
    (4, 4)
    """
    shorter = min(source, target, room // 2)
    return (shorter, min(target, room - shorter)) if source <= target else (min(source, room - shorter), shorter)


def make_row(pieces: Sequence[Piece], max_length: int) -> dict[str, list[int]]:
    """Returns the features of one packed row (`tasks.kinds`), each padded to ``max_length``."""
    tokens = np.full(max_length, PAD_ID, np.int32)
    segment_ids, positions, word_ids = (np.zeros(max_length, np.int32) for _ in range(3))
    start = words = 0
    for number, piece in enumerate(pieces, start=1):
        here = slice(start, start + len(piece))
        tokens[here] = piece.tokens
        segment_ids[here] = number
        positions[here] = np.arange(len(piece))
        word_ids[here] = np.where(piece.word_ids, piece.word_ids + words, 0)
        start, words = here.stop, words + int(piece.word_ids.max(initial=0))
    row = {"tokens": tokens, "segment_ids": segment_ids, "positions": positions, "word_ids": word_ids}
    return {name: values.tolist() for name, values in row.items()}


def _word_start(word_ids: np.ndarray, start: int, end: int) -> int:
    """Returns the last position in (start, end] at which a word or a [SEP] begins; ``end`` if there is none."""
    cut = end
    while cut > start and word_ids[cut] != 0 and word_ids[cut] == word_ids[cut - 1]:
        cut -= 1
    return cut if cut > start else end


# The job

_Keyed = tuple[str, bytes, Piece]  # language, a key by which sorting shuffles, and the piece


@dataclasses.dataclass(frozen=True)
class PackOptions(Options):
    """Options of ``pack``; max_length, capacity and min_fill are L, C and rho of Algorithm 1."""

    max_length: int = option(512, "tokens in a row", ge=16)
    capacity: int = option(1_000, "unfinished rows that are kept open to choose from", ge=1)
    min_fill: float = option(0.99, "a row that is filled to this share is finished", gt=0, le=1)
    min_tokens: int = option(8, "shorter documents and pairs are left out; [CLS] and [SEP] do not count", ge=1)


def pack_shard(shard: Shard, source: str | BitextPart, vocabulary: str, options: PackOptions) -> None:
    """Tokenizes, shuffles and packs a shard of articles (its path) or a part of the bitext, language by language."""
    pieces_of: Callable[..., Iterator[_Keyed]] = _article_pieces if isinstance(source, str) else _pair_pieces
    rows = _Rows(shard, MLM if isinstance(source, str) else TLM, options)
    for one in pieces_of(shard, source, load_vocabulary(vocabulary), options):
        rows.add(*one)
    rows.finish()


class _Rows:
    """Packs the pieces of one shard by language.

    Pieces are held until the end of the shard. If more than ``most_tokens`` tokens are held, the language with the most
    tokens is packed and written early.
    """

    def __init__(self, shard: Shard, task: Task, options: PackOptions, most_tokens: int = _MOST_TOKENS) -> None:
        self._shard, self._task, self._options, self._most_tokens = shard, task, options, most_tokens
        self._held: dict[str, list[tuple[bytes, Piece]]] = collections.defaultdict(list)
        self._tokens: collections.Counter[str] = collections.Counter()

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
        keyed = sorted(self._held.pop(language), key=lambda pair: pair[0])
        del self._tokens[language]
        window = options.capacity * options.max_length // 2  # leaves half of the cache to rows of earlier windows
        pieces = longest_first((piece for _, piece in keyed), window, len)
        for row in pack(pieces, options.max_length, options.capacity, options.min_fill, len):
            self._shard.write_example(self._task, language, make_row(row, options.max_length))
            self._shard.tally(f"pieces/{data_set}", len(row))
            self._shard.tally(f"tokens/{data_set}", sum(len(piece) for piece in row))


def _article_pieces(shard: Shard, path: str, vocabulary: Vocabulary, options: PackOptions) -> Iterator[_Keyed]:
    for batch in read_text_batches(path):
        shard.read(len(batch))
        titles = vocabulary.encode_with_words([article.title for article in batch])
        bodies = vocabulary.encode_with_words([article.body for article in batch])
        for article, title, title_words, body, body_words in zip(batch, *titles, *bodies, strict=True):
            language = language_key(article.language)
            if (size := title.size + body.size) < options.min_tokens:
                shard.reject(article.doc_id, Rejection.TOO_SHORT_TO_PACK, f"{size} tokens", article.title)
            else:
                shard.written()
                shard.tally(f"documents/{MLM.name}/{language}")
                parts = join_parts((title, body), (title_words, body_words))
                pieces = split_document(*parts, options.max_length)
                if len(pieces) > 1:
                    shard.tally("documents_split")
                for number, piece in enumerate(pieces):
                    yield language, shuffle_key(article.doc_id, number), piece


def _pair_pieces(shard: Shard, part: BitextPart, vocabulary: Vocabulary, options: PackOptions) -> Iterator[_Keyed]:
    """Yields ``[CLS] source [SEP] target [SEP]`` of each pair that is long enough."""
    pairs = read_pairs(shard, part)
    while batch := list(itertools.islice(pairs, _PAIRS_AT_ONCE)):
        sources = vocabulary.encode_with_words([pair.source for pair in batch])
        targets = vocabulary.encode_with_words([pair.target for pair in batch])
        for pair, source, words, target, target_words in zip(batch, *sources, *targets, strict=True):
            if not source.size or not target.size or source.size + target.size < options.min_tokens:
                detail = f"{source.size} and {target.size} tokens"
                shard.reject(pair.key, Rejection.TOO_SHORT_TO_PACK, detail, pair.source)
                continue
            left, right = cut_pair(source.size, target.size, options.max_length - 3)
            if left + right < source.size + target.size:
                shard.tally("pairs_cut")
            shard.written()
            shard.tally(f"documents/{TLM.name}/{pair.languages}")
            piece = frame(*join_parts((source[:left], target[:right]), (words[:left], target_words[:right])))
            yield pair.languages, shuffle_key(pair.key), piece


def run(run: JobRun) -> None:
    """Packs every shard of articles and every part of the bitext, then counts the rows by task and language."""
    vocabulary = checked_vocabulary(run)
    bitext = (part for given in run.inputs["bitext"] for part in plan_parts(given))
    sources: list[str | BitextPart] = [*run.shards("articles"), *bitext]
    run.map_shards("pack", pack_shard, sources, vocabulary=vocabulary, options=run.options)
    counts = run.counts_of("pack")
    examples = counts.tallies_under(TRAINING_EXAMPLES)
    if not examples:
        remedy = "lower --min_tokens, or look at the dead letters"
        raise InputError("no article is long enough to pack", path=run.input("articles"), remedy=remedy)
    run.extra["examples"] = examples
    found, length = counts.tallies, run.options.max_length
    run.extra["packing"] = {
        name: {
            "fill": round(found[f"tokens/{name}"] / (rows * length), 4),
            "pieces_per_row": round(found[f"pieces/{name}"] / rows, 3),
            "documents_per_row": round(found[f"documents/{name}"] / rows, 3),
        }
        for name, rows in examples.items()
    }


JOB = Job(
    name="pack",
    example=(
        "newsembed pack --articles work/clean --vocabulary work/vocabulary --output work/pack \\\n"
        "      --bitext 'parallel/*.tsv' memory.tmx.gz europarl.de,europarl.en"
    ),
    inputs=(
        ARTICLES,
        VOCABULARY_INPUT,
        optional("bitext", HELP, many=True, digest=digest),
    ),
    options=PackOptions,
    run=run,
)
