"""Rows of tokens: how documents that are longer than a row become rows, and rows become batches of few shapes.

Long documents are read in one of two ways. A document that fits one row has the same embedding in both; a
prompt comes first in the document.

- ``head``: the first tokens, as in training.
- ``windows``: the document is cut in as many rows as hold 500 tokens, at most 8; each is embedded, and the embedding is
  the weighted mean of theirs scaled to length 1. Window k, counted from 0, has the weight 1 / (1 + k), times the share
  of the window that the document fills: news articles begin with what matters most. Later tokens took most of the time
  and found no more same events (docs/results.md).

Padding costs time with every text, and each new shape of a batch costs a compilation. `plan` weighs both as positions
(cells of a batch), where a shape that was compiled before costs nothing. `by_bucket` groups by fixed lengths, so that a
run compiles the same shapes every time. Both yield the numbers of the rows and the shape of each batch; `batches` makes
token arrays of them.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.vocabulary import CLS_ID, PAD_ID, SEP_ID

HEAD, WINDOWS = "head", "windows"
LONG_DOCUMENTS: Final = (HEAD, WINDOWS)
_MOST_WINDOWS: Final = 8
_WINDOWED: Final = 500  # tokens that windows hold: two of 256 tokens, one of 512

SHORTEST: Final = 16
SHORTEST_BUCKET: Final = 32
HEIGHT_STEP: Final = 8  # batch sizes are powers of eight up to the full one: a lone query does not pay for a full batch


@dataclasses.dataclass(frozen=True)
class BatchCosts:
    """The sizes that batches may have, and what they cost in positions. The defaults are those of accelerators.

    Attributes:
      tokens_per_batch: cells of a batch, unless one row is longer. BERT-base at 512 tokens peaks near 1 GB by default.
      shape_cost: of a compilation: what passes through the same model meanwhile.
      height_step: batch sizes are powers of it up to the full one.
      least: of any batch: however few its positions, all parameters are read.
    """

    tokens_per_batch: int = 16_384
    shape_cost: int = 1_048_576
    height_step: int = HEIGHT_STEP
    least: int = 128


ON_ACCELERATORS: Final = BatchCosts()
# On a CPU each position costs time: 5.5 ms for 1 query of 16 tokens, 19 for 8 (MiniLM-L6 on two cores). A single query
# must not pay for others, nor a few documents for a full batch. More heights mean more compilations at the start.
# Small batches fit the caches better: 12 to 17 % less CPU time with 2,048 tokens than with 16,384, 2 layers x 128.
QUERIES_ON_CPU: Final = BatchCosts(2_048, 16_384, 4, SHORTEST)
DOCUMENTS_ON_CPU: Final = BatchCosts(2_048, 16_384, 4, 4 * SHORTEST)

Shape = tuple[int, int]  # (rows, length)
Planned = tuple[npt.NDArray[np.int64], Shape]  # numbers of the rows [n], (B, L) with B >= n
Row = npt.NDArray[np.int32]


def checked(how: str | None, max_length: int) -> str:
    """Checks how long documents are read; returns ``head`` for None.

    Raises:
      InputError: for another word, or rows without room for two tokens between [CLS] and [SEP].
    """
    how = how or HEAD
    if how not in LONG_DOCUMENTS:
        raise InputError(f"got {how!r}", field="--long_documents", remedy=f"choose {', '.join(LONG_DOCUMENTS)}")
    if how != HEAD and max_length < 4:
        problem = f"rows of {max_length} tokens have no room for {how}"
        raise InputError(problem, field="--max_length", remedy="give at least 4")
    return how


def tokens_read(how: str, max_length: int) -> int:
    """Tokens to which a document is cut before `rows_of` divides it.

    >>> tokens_read(WINDOWS, 256), tokens_read(WINDOWS, 512)
    (510, 512)
    """
    room = max(1, max_length - 2)
    return max_length if how == HEAD else 2 + min(_MOST_WINDOWS, -(-_WINDOWED // room)) * room


def rows_of(document: Row, how: str, max_length: int) -> list[Row]:
    """The rows that a model reads of one document.

    Args:
      document: ``[CLS] … [SEP]``, int32, cut to `tokens_read`.
      how: one of `LONG_DOCUMENTS`.
      max_length: of a row.

    Returns:
      One row or more, each ``[CLS] … [SEP]``.
    """
    if len(document) <= max_length:
        return [document]
    inner, room = document[1:-1], max_length - 2
    read = min(len(inner), tokens_read(how, max_length) - 2)
    parts = [inner[start : start + room] for start in range(0, read, room)]
    return [np.concatenate([[CLS_ID], part, [SEP_ID]]).astype(np.int32) for part in parts]


def row_weights(rows: Sequence[Row], max_length: int) -> npt.NDArray[np.float32]:
    """The weight of each row of one document, float32 [n]."""
    if len(rows) == 1:
        return np.ones(1, np.float32)
    filled = np.array([len(row) - 2 for row in rows]) / (max_length - 2)
    return (filled / np.arange(1, len(rows) + 1)).astype(np.float32)


def embed_rows(
    embed: Callable[[list[Row]], npt.NDArray[np.float32]], documents: Sequence[Row], how: str, max_length: int
) -> npt.NDArray[np.float32]:
    """Embeddings of documents by the embeddings of their rows, float32 [N, D] of length 1.

    Args:
      embed: rows to float32 [n, D].
      documents: see `rows_of`.
      how: one of `LONG_DOCUMENTS`.
      max_length: of a row.
    """
    divided = [rows_of(document, how, max_length) for document in documents]
    embeddings = embed([row for rows in divided for row in rows])
    firsts = np.cumsum([0, *map(len, divided)])[:-1]
    if len(embeddings) == len(documents):
        return embeddings
    weights = np.concatenate([row_weights(rows, max_length) for rows in divided])
    sums = np.add.reduceat(embeddings * weights[:, None], firsts, axis=0)
    means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    several = np.array([len(rows) > 1 for rows in divided])
    # What fits one row stays as the model gives it.
    return np.where(several[:, None], means, embeddings[firsts]).astype(np.float32)


def tf_rows(documents: Any, max_length: int) -> tuple[Any, Any, Any]:
    """`rows_of` with windows and `row_weights` as TensorFlow operations, for a SavedModel.

    Args:
      documents: tf.RaggedTensor int32 [b, (length)], ``[CLS] … [SEP]``, cut to `tokens_read`.
      max_length: of a row.

    Returns:
      The rows, tf.RaggedTensor int32 [n, (length)]; the number of its document for each of them, ascending, int64 [n];
      and its weight, float32 [n].
    """
    import tensorflow as tf

    room = max_length - 2
    inner = documents[:, 1:-1]
    lengths = inner.row_lengths()
    counts = tf.maximum((lengths + room - 1) // room, 1)
    owners = tf.repeat(tf.range(documents.nrows()), counts)
    number = tf.ragged.range(counts).values
    own_lengths = tf.minimum(tf.gather(lengths, owners) - number * room, room)
    weights = tf.cast(own_lengths, tf.float32) / room / tf.cast(number + 1, tf.float32)
    weights = tf.where(tf.gather(counts, owners) > 1, weights, tf.ones_like(weights))
    rows = tf.RaggedTensor.from_row_lengths(inner.values, own_lengths)
    ends = [tf.fill([rows.nrows(), 1], tf.constant(token, tf.int32)) for token in (CLS_ID, SEP_ID)]
    return tf.concat([ends[0], rows, ends[1]], axis=1), owners, weights


def row_lengths(max_length: int) -> tuple[int, ...]:
    """Lengths that `plan` may pad rows to: 16, 24, 32, 48, 64, 96, … below ``max_length``, then ``max_length``.

    >>> row_lengths(100)
    (16, 24, 32, 48, 64, 96, 100)
    """
    steps = (step << power for power in range(max_length.bit_length()) for step in (SHORTEST, SHORTEST * 3 // 2))
    return (*(length for length in steps if length < max_length), max_length)


def length_buckets(max_length: int) -> tuple[int, ...]:
    """Lengths for `by_bucket`: doublings of 32 below ``max_length``, then ``max_length``.

    >>> length_buckets(200)
    (32, 64, 128, 200)
    """
    doublings = (SHORTEST_BUCKET << power for power in range(max_length.bit_length()))
    return (*(length for length in doublings if length < max_length), max_length)


def by_bucket(
    lengths: Sequence[int], buckets: Sequence[int], tokens_per_batch: int, *, multiple: int = 1
) -> Iterator[Planned]:
    """Batches of all rows, each padded to its bucket; the longest first, so that memory runs out at the start or never.

    Args:
      lengths: tokens of every row, none longer than the last bucket.
      buckets: ascending row lengths.
      tokens_per_batch: upper bound on cells of a batch, unless one row is longer or `multiple` asks for more.
      multiple: of the rows of a batch, such as the number of devices.

    Yields:
      The numbers of the rows ``[n]``, and the shape ``(B, L)`` with L in ``buckets`` and B >= n.
    """
    bucket_of = np.searchsorted(buckets, lengths)
    for bucket in reversed(range(len(buckets))):
        length = buckets[bucket]
        members = np.flatnonzero(bucket_of == bucket)
        full = max(1, tokens_per_batch // length)
        for start in range(0, len(members), full):
            numbers = members[start : start + full]
            height = next(height for height in heights(full) if height >= len(numbers))
            yield numbers, (-(-height // multiple) * multiple, length)


def heights(full: int, step: int = HEIGHT_STEP) -> list[int]:
    """Rows that a batch may have, ascending: powers of ``step``, and those of a full batch.

    >>> heights(100), heights(12, 2)
    ([1, 8, 64, 100], [1, 2, 4, 8, 12])
    """
    return [height for height in (step**power for power in range(full.bit_length())) if height < full] + [full]


def batches(rows: Sequence[Row], planned: Iterable[Planned]) -> Iterator[tuple[npt.NDArray[np.int64], Row]]:
    """Yields the numbers of the rows ``[n]`` and the tokens ``[B, L]`` of every batch; rows from n on are padding."""
    for numbers, shape in planned:
        tokens = np.full(shape, PAD_ID, np.int32)
        for line, number in enumerate(numbers):
            tokens[line, : len(rows[number])] = rows[number]
        yield numbers, tokens


def plan(
    lengths: Sequence[int], max_length: int, costs: BatchCosts, compiled: Collection[Shape] = ()
) -> Iterator[Planned]:
    """Batches of all rows, the longest first (so that memory runs out at the start or never), at the least cost.

    Rows are grouped by length, and each group is padded to its longest allowed length; the cheapest of all groupings is
    taken, compilations included.

    Args:
      lengths: tokens of every row, ``max_length`` at most.
      max_length: the longest row.
      costs: of batches and compilations.
      compiled: shapes that cost no compilation.

    Yields:
      The numbers of the rows ``[n]``, and the shape ``(B, L)`` with B >= n and L at least their length.
    """
    allowed = row_lengths(max_length)
    bucket_of = np.searchsorted(allowed, lengths)
    counts = np.bincount(bucket_of, minlength=len(allowed))
    # Groups of different lengths share no shape, so their costs add up, and the cheapest way to hold the first k
    # buckets is built from shorter ones.
    best: list[tuple[int, int, list[tuple[int, int, list[int]]]]] = [(0, 0, [])]  # cost, positions, groups
    for end, length in enumerate(allowed, 1):
        options = []
        for start in range(end):
            chosen, cost = cheapest_heights(int(counts[start:end].sum()), length, costs, compiled)
            group = [(start, end, chosen)] if chosen else []
            before, positions, groups = best[start]
            options.append((before + cost, positions + sum(chosen) * length, [*groups, *group]))
        best.append(min(options, key=lambda option: option[:2]))
    for start, end, chosen in reversed(best[-1][2]):
        members = np.flatnonzero((bucket_of >= start) & (bucket_of < end))
        firsts = np.cumsum([0, *chosen])
        yield from (
            (members[first : first + height], (height, allowed[end - 1]))
            for first, height in zip(firsts, chosen, strict=False)
        )


def cheapest_heights(
    rows: int, length: int, costs: BatchCosts, compiled: Collection[Shape] = ()
) -> tuple[list[int], int]:
    """The heights of the batches that hold ``rows`` rows of one length, and their cost in positions.

    Full batches come first; the remaining rows go into one batch of the next height that holds them, or into smaller
    ones, whichever is cheaper.

    >>> cheapest_heights(300, 16, BatchCosts(8_192, shape_cost=0))
    ([64, 64, 64, 64, 8, 8, 8, 8, 8, 8], 4864)
    >>> cheapest_heights(300, 16, BatchCosts(8_192, shape_cost=4_096))
    ([64, 64, 64, 64, 64], 9216)
    """
    full = max(1, costs.tokens_per_batch // length)
    taken, rest = [full] * (rows // full), rows % full
    # Descend through the heights; at each one, the remaining rows may also go into one more batch of it.
    choices = []
    for step in reversed(heights(full, costs.height_step)):
        choices.append([*taken, *[step] * -(-rest // step)])
        taken += [step] * (rest // step)
        rest %= step

    def cost(chosen: Sequence[int]) -> int:
        shapes = {height for height in chosen if (height, length) not in compiled}
        return sum(max(height * length, costs.least) for height in chosen) + costs.shape_cost * len(shapes)

    best = min(choices, key=lambda chosen: (cost(chosen), len(chosen)))
    return best, cost(best)
