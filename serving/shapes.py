"""Into which batches texts of many lengths are sorted: padding costs time with every text, and each new shape costs a compilation.

Both are weighed as positions (cells of a batch). A shape that was compiled before costs nothing.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

SHORTEST: Final = 16
HEIGHT_STEP: Final = 8  # batch sizes are powers of eight up to the full one: a lone query does not pay for a full batch
# What a compilation costs in positions: on two CPU cores that many pass through the same model meanwhile. Accelerators compute faster and compile no faster.
SHAPE_COST: Final = {"cpu": 16_384}
SHAPE_COST_ON_ACCELERATORS: Final = 1_048_576
LEAST_COST: Final = 128  # of any batch: however few its positions, all parameters are read

Shape = tuple[int, int]  # (rows, length)


def row_lengths(max_length: int) -> tuple[int, ...]:
    """Lengths that rows may be padded to: 16, 24, 32, 48, 64, 96, … below ``max_length``, then ``max_length``.

    >>> row_lengths(100)
    (16, 24, 32, 48, 64, 96, 100)
    """
    doublings = (SHORTEST << power for power in itertools.count())
    steps = itertools.chain.from_iterable((length, length + length // 2) for length in doublings)
    return (*itertools.takewhile(lambda length: length < max_length, steps), max_length)


def plan(
    lengths: Sequence[int], max_length: int, *, tokens_per_batch: int, compiled: Collection[Shape] = (), shape_cost: int
) -> Iterator[tuple[npt.NDArray[np.int64], Shape]]:
    """Batches of all rows, the longest first (so that memory runs out at the start or never), at the least cost in positions.

    Rows are grouped by length, each group padded to its longest allowed length; of all groupings the cheapest is taken, compilations counted in.

    Args:
      lengths: tokens of every row, ``max_length`` at most.
      max_length: the longest row.
      tokens_per_batch: cells of a batch, unless one row is longer.
      compiled: shapes that cost no compilation.
      shape_cost: positions that a compilation is worth.

    Yields:
      (numbers of the rows ``[n]``, shape ``(B, L)`` with B >= n and L at least as long as they are).
    """
    allowed = row_lengths(max_length)
    bucket_of = np.searchsorted(allowed, lengths)
    counts = np.bincount(bucket_of, minlength=len(allowed))
    # Groups of different lengths share no shape, so their costs add up, and the cheapest way to hold the first k buckets is built from shorter ones.
    best: list[tuple[int, int, list[tuple[int, int, list[int]]]]] = [(0, 0, [])]  # cost, positions, groups
    for end, length in enumerate(allowed, 1):
        full = max(1, tokens_per_batch // length)
        options = []
        for start in range(end):
            heights, cost = cheapest_heights(int(counts[start:end].sum()), length, full, compiled, shape_cost)
            group = [(start, end, heights)] if heights else []
            before, positions, groups = best[start]
            options.append((before + cost, positions + sum(heights) * length, [*groups, *group]))
        best.append(min(options, key=lambda option: option[:2]))
    for start, end, heights in reversed(best[-1][2]):
        members = np.flatnonzero((bucket_of >= start) & (bucket_of < end))
        firsts = np.cumsum([0, *heights])
        yield from (
            (members[first : first + height], (height, allowed[end - 1]))
            for first, height in zip(firsts, heights, strict=False)
        )


def cheapest_heights(
    rows: int, length: int, full: int, compiled: Collection[Shape], shape_cost: int
) -> tuple[list[int], int]:
    """The heights of the batches that hold ``rows`` rows of one length, and their cost in positions.

    Full batches first; what is left goes into one batch of the next height that holds it, or into smaller ones: the cheaper way.

    >>> cheapest_heights(300, 16, 512, (), 0)
    ([64, 64, 64, 64, 8, 8, 8, 8, 8, 8], 4864)
    >>> cheapest_heights(300, 16, 512, (), 4_096)
    ([64, 64, 64, 64, 64], 9216)
    """
    steps = [height for height in (HEIGHT_STEP**power for power in range(full.bit_length())) if height < full] + [full]
    whole, rest = [full] * (rows // full), rows % full
    # Descend through the heights; at each one, what is left may also go into one more batch of it.
    options, taken = [], list[int]()
    for step in reversed(steps):
        if not rest:
            break
        options.append([*taken, *[step] * -(-rest // step)])
        taken += [step] * (rest // step)
        rest %= step
    if not rest:
        options.append(taken)
    choices = [[*whole, *option] for option in options]

    def cost(heights: Sequence[int]) -> int:
        return sum(max(height * length, LEAST_COST) for height in heights) + shape_cost * len(
            {height for height in heights if (height, length) not in compiled}
        )

    best = min(choices, key=lambda heights: (cost(heights), len(heights)))
    return best, cost(best)
