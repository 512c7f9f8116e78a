"""The order of records where each batch holds rows of the same days: other reports of its week are hard negatives."""

import functools

import numpy as np


class DayOrder:
    """An endless order of the records of a set, in batches of the same period.

    In each epoch the calendar is cut into periods of `batch_days` days at another place, the records of a period are
    shuffled and cut into batches, and the batches are shuffled. What is left over in the periods forms batches of
    neighbouring periods. An epoch is the largest number of whole batches; each draws the records that it leaves out.
    The order depends on the arguments only.

    Args:
      days: the day of each record, int32 [N].
      batch_days: days of a period.
      batch_size: rows of a global batch, at most N.
      seed: of the shuffles.
    """

    def __init__(self, days: np.ndarray, batch_days: int, batch_size: int, seed: int) -> None:
        self._days, self._batch_days, self._batch_size, self._seed = days, batch_days, batch_size, seed
        self._epoch = functools.lru_cache(maxsize=2)(self.epoch)  # readers are at most one epoch apart

    def __len__(self) -> int:
        """Records of an epoch."""
        return len(self._days) // self._batch_size * self._batch_size

    def __getitem__(self, number: int) -> int:
        """The record at this place of the endless order."""
        epoch, place = divmod(number, len(self))
        return int(self._epoch(epoch)[place])

    def epoch(self, number: int) -> np.ndarray:
        """The records of one epoch in order, int64 [len(self)]."""
        rng = np.random.default_rng([self._seed, number])
        records = rng.permutation(len(self._days))[: len(self)]
        periods = (self._days[records] + rng.integers(self._batch_days)) // self._batch_days
        records = records[np.argsort(periods, kind="stable")]
        periods = np.sort(periods)
        starts = np.searchsorted(periods, periods)
        ends = np.searchsorted(periods, periods, side="right")
        whole = (ends - starts) // self._batch_size * self._batch_size
        is_whole = np.arange(len(records)) - starts < whole
        batches = np.concatenate([records[is_whole], records[~is_whole]]).reshape(-1, self._batch_size)
        return batches[rng.permutation(len(batches))].ravel()
