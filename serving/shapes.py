"""Batches for texts of many lengths: padding costs time with every text, and each new shape costs a compilation.

`plan` weighs both as positions (cells of a batch), where a shape that was compiled before costs nothing. `by_bucket`
groups by fixed lengths, so that a run compiles the same shapes every time. Both yield the numbers of the rows and the
shape of each batch; `filled` and `batches` make token arrays of them.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.vocabulary import PAD_ID

SHORTEST: Final = 16
SHORTEST_BUCKET: Final = 32
HEIGHT_STEP: Final = 8  # batch sizes are powers of eight up to the full one: a lone query does not pay for a full batch
# The cost of a compilation in positions: two CPU cores pass that many through the same model meanwhile. Accelerators
# compute faster and compile no faster.
SHAPE_COST: Final = {"cpu": 16_384}
SHAPE_COST_ON_ACCELERATORS: Final = 1_048_576
LEAST_COST: Final = 128  # of any batch: however few its positions, all parameters are read


@dataclasses.dataclass(frozen=True)
class BatchCosts:
    """The rows that batches may have, and what the smallest cost.

    Attributes:
      height_step: batch sizes are powers of it up to the full one.
      least: the cost of any batch in positions.
    """

    height_step: int = HEIGHT_STEP
    least: int = LEAST_COST


DEFAULT_COSTS: Final = BatchCosts()
# On a CPU each position costs time: 5.5 ms for 1 query of 16 tokens, 19 for 8 (MiniLM-L6 on two cores). A single query
# must not pay for others, nor a few documents for a full batch. More heights mean more compilations at the start.
QUERY_COSTS_ON_CPU: Final = BatchCosts(4, SHORTEST)
DOCUMENT_COSTS_ON_CPU: Final = BatchCosts(4, 4 * SHORTEST)

Shape = tuple[int, int]  # (rows, length)
Planned = tuple[npt.NDArray[np.int64], Shape]  # numbers of the rows [n], (B, L) with B >= n


def row_lengths(max_length: int) -> tuple[int, ...]:
    """Lengths that `plan` may pad rows to: 16, 24, 32, 48, 64, 96, … below ``max_length``, then ``max_length``.

    >>> row_lengths(100)
    (16, 24, 32, 48, 64, 96, 100)
    """
    doublings = (SHORTEST << power for power in itertools.count())
    steps = itertools.chain.from_iterable((length, length + length // 2) for length in doublings)
    return (*itertools.takewhile(lambda length: length < max_length, steps), max_length)


def length_buckets(max_length: int) -> tuple[int, ...]:
    """Lengths for `by_bucket`: doublings of 32 below ``max_length``, then ``max_length``.

    >>> length_buckets(200)
    (32, 64, 128, 200)
    """
    doublings = (SHORTEST_BUCKET << power for power in itertools.count())
    return (*itertools.takewhile(lambda length: length < max_length, doublings), max_length)


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


def filled(
    rows: Sequence[npt.NDArray[np.int32]], numbers: npt.NDArray[np.int64], shape: Shape
) -> npt.NDArray[np.int32]:
    """The numbered rows as one batch, int32 ``[B, L]``; the rest is padding."""
    tokens = np.full(shape, PAD_ID, np.int32)
    for line, number in enumerate(numbers):
        tokens[line, : len(rows[number])] = rows[number]
    return tokens


def batches(
    rows: Sequence[npt.NDArray[np.int32]], planned: Iterable[Planned]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]]:
    """Yields the numbers of the rows ``[n]`` and the tokens ``[B, L]`` of every batch; rows from n on are padding."""
    for numbers, shape in planned:
        yield numbers, filled(rows, numbers, shape)


def plan(
    lengths: Sequence[int],
    max_length: int,
    *,
    tokens_per_batch: int,
    compiled: Collection[Shape] = (),
    shape_cost: int,
    batch_costs: BatchCosts = DEFAULT_COSTS,
) -> Iterator[Planned]:
    """Batches of all rows, the longest first (so that memory runs out at the start or never), at the least cost.

    Rows are grouped by length, and each group is padded to its longest allowed length; the cheapest of all groupings is
    taken, compilations included.

    Args:
      lengths: tokens of every row, ``max_length`` at most.
      max_length: the longest row.
      tokens_per_batch: cells of a batch, unless one row is longer.
      compiled: shapes that cost no compilation.
      shape_cost: the cost of a compilation in positions.
      batch_costs: the rows that batches may have, and what they cost.

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
        full = max(1, tokens_per_batch // length)
        options = []
        for start in range(end):
            chosen, cost = cheapest_heights(
                int(counts[start:end].sum()), length, full, compiled, shape_cost, batch_costs
            )
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
    rows: int,
    length: int,
    full: int,
    compiled: Collection[Shape],
    shape_cost: int,
    batch_costs: BatchCosts = DEFAULT_COSTS,
) -> tuple[list[int], int]:
    """The heights of the batches that hold ``rows`` rows of one length, and their cost in positions.

    Full batches come first; the remaining rows go into one batch of the next height that holds them, or into smaller
    ones, whichever is cheaper.

    >>> cheapest_heights(300, 16, 512, (), 0)
    ([64, 64, 64, 64, 8, 8, 8, 8, 8, 8], 4864)
    >>> cheapest_heights(300, 16, 512, (), 4_096)
    ([64, 64, 64, 64, 64], 9216)
    """
    whole, rest = [full] * (rows // full), rows % full
    # Descend through the heights; at each one, the remaining rows may also go into one more batch of it.
    options, taken = [], list[int]()
    for step in reversed(heights(full, batch_costs.height_step)):
        if not rest:
            break
        options.append([*taken, *[step] * -(-rest // step)])
        taken += [step] * (rest // step)
        rest %= step
    if not rest:
        options.append(taken)
    choices = [[*whole, *option] for option in options]

    def cost(chosen: Sequence[int]) -> int:
        return sum(max(height * length, batch_costs.least) for height in chosen) + shape_cost * len(
            {height for height in chosen if (height, length) not in compiled}
        )

    best = min(choices, key=lambda chosen: (cost(chosen), len(chosen)))
    return best, cost(best)
