"""An order of records in which a process reads large blocks of neighbours, each whole, and only those of its share."""

import bisect
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_LANES: Final = 32
_WINDOW: Final = 4  # blocks of a lane whose records are shuffled together
BLOCKS_AT_ONCE: Final = 2 * _WINDOW * _LANES  # that all processes together need: the next window is fetched early


class BlockOrder:
    """An endless order of the records of a set that is too large to be copied, for any number of processes.

    The rows of a global batch are divided among up to 32 lanes of neighbouring rows, so that a process reads a few
    lanes only. In each epoch the blocks are shuffled and dealt to the lanes. A lane takes the records of four blocks at
    a time, shuffled. The order depends on the arguments only.

    Args:
      sizes: the number of records of each block, int ``[B]``; records are numbered through the blocks.
      batch_size: rows of a global batch.
      seed: of the shuffles.
      soon: called with the numbers of blocks whose records come next.
    """

    def __init__(
        self, sizes: npt.ArrayLike, batch_size: int, seed: int, soon: Callable[[Numbers], None] = lambda _: None
    ) -> None:
        self._sizes = np.asarray(sizes, np.int64)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        self._batch_size, self._seed, self._soon = batch_size, seed, soon
        self.lanes = math.gcd(batch_size, _LANES)
        while self.lanes > len(self._sizes):
            self.lanes //= 2
        self._ends: list[list[int]] = [[] for _ in range(self.lanes)]  # of the epochs of each lane, in its own count
        self._shuffled = functools.lru_cache(maxsize=4)(self._shuffle)
        self._records = functools.lru_cache(maxsize=4 * self.lanes)(self._window)
        self._of_lane = functools.lru_cache(maxsize=4 * self.lanes)(self._deal)

    def __len__(self) -> int:
        """Records of the set."""
        return int(self._sizes.sum())

    def __getitem__(self, number: int) -> int:
        """The record at this place of the endless order."""
        step, row = divmod(number, self._batch_size)
        of_lane = self._batch_size // self.lanes
        lane, place = divmod(row, of_lane)
        return self._record(lane, step * of_lane + place)

    def _record(self, lane: int, place: int) -> int:
        ends = self._ends[lane]
        while not ends or ends[-1] <= place:
            ends.append((ends[-1] if ends else 0) + int(self._of_lane(len(ends), lane)[1][-1]))
        epoch = bisect.bisect_right(ends, place)
        place -= ends[epoch - 1] if epoch else 0
        window_ends = self._of_lane(epoch, lane)[1]
        window = int(np.searchsorted(window_ends, place, side="right"))
        return int(self._records(epoch, lane, window)[place - (int(window_ends[window - 1]) if window else 0)])

    def _shuffle(self, epoch: int) -> Numbers:
        return np.random.default_rng([self._seed, epoch]).permutation(len(self._sizes))

    def _deal(self, epoch: int, lane: int) -> tuple[Numbers, Numbers]:
        """The blocks of a lane in an epoch, and the ends of its windows in records."""
        blocks = self._shuffled(epoch)[lane :: self.lanes]
        ends = np.cumsum(self._sizes[blocks])
        return blocks, np.append(ends[_WINDOW - 1 : -1 : _WINDOW], ends[-1])

    def _window(self, epoch: int, lane: int, window: int) -> Numbers:
        blocks = self._of_lane(epoch, lane)[0][_WINDOW * window :]
        self._soon(blocks[: 2 * _WINDOW])
        ranges: list[Any] = [self._firsts[block] + np.arange(self._sizes[block]) for block in blocks[:_WINDOW].tolist()]
        records = np.concatenate(ranges)
        return np.random.default_rng([self._seed, epoch, lane, window]).permutation(records)
