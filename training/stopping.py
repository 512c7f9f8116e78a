"""Early stopping: a run ends when the evaluations no longer improve."""

import json
from collections.abc import Mapping
from typing import Final

from .keeping import Keeping

_BATCHES: Final = "batches"
_PATIENCE: Final = "patience"  # no name of a set, so it tells the two forms of the state apart


class Patience:
    """Counts the evaluations in a row without a better figure.

    Its counts are saved with the iterators' state, so that a resumed run ends where an unbroken one does.

    Args:
      keeping: the figure and whether less or more of it is better.
      evaluations: number of evaluations without a better figure that ends the run; 0 never ends it.
    """

    def __init__(self, keeping: Keeping, evaluations: int) -> None:
        self._keeping, self._evaluations = keeping, evaluations
        self._best: float | None = None
        self._without_better = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the run ends now."""
        return 0 < self._evaluations <= self._without_better

    def note(self, results: Mapping[str, float]) -> None:
        """Takes in the results of one evaluation.

        Raises:
          InputError: if they lack the figure.
        """
        if not self._evaluations:
            return
        value = self._keeping.figure(results)
        sign = 1.0 if self._keeping.best_mode == "max" else -1.0
        if self._best is None or sign * value > sign * self._best:
            self._best, self._without_better = value, 0
        else:
            self._without_better += 1

    def add_to(self, batches: bytes) -> bytes:
        """Returns the iterators' state together with the counts; the former alone for a run without patience."""
        if not self._evaluations:
            return batches
        counts = {"best": self._best, "without_better": self._without_better}
        return json.dumps({_BATCHES: batches.decode(), _PATIENCE: counts}, sort_keys=True).encode()

    def take_from(self, state: bytes) -> bytes:
        """Continues at the counts in a saved state, if it has some, and returns the iterators' part."""
        values = json.loads(state)
        if _PATIENCE not in values:
            return state
        counts = values[_PATIENCE]
        self._best, self._without_better = counts["best"], counts["without_better"]
        return str(values[_BATCHES]).encode()
