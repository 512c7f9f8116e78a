"""The rules that tasks declare for their rows: how a record of any length becomes a row of fixed shape."""

import dataclasses
from collections.abc import Mapping
from typing import Final, Protocol, TypeGuard

import numpy as np

from ..errors import InputError
from ..formats.vocabulary import PAD_ID

_LENGTHS: Final = "TASK_FEATURE_LENGTHS"


@dataclasses.dataclass(frozen=True)
class Lengths:
    """`TASK_FEATURE_LENGTHS` as one task reads them.

    Attributes:
      task: name of the task, for errors.
      values: values per row, by feature.
    """

    task: str
    values: Mapping[str, int]

    def length(self, feature: str, like: str | None = None) -> int:
        """The number of values of a feature in each row.

        Args:
          feature: the name.
          like: another feature, whose length counts where `feature` has none.

        Raises:
          InputError: if there is none, or it is not a positive integer.
        """
        length = self.values.get(feature, self.values.get(like) if like else None)
        if not _is_positive(length):
            raise InputError(
                f"got {length!r} for the task {self.task}, expected a positive number of values",
                path=_LENGTHS,
                field=feature,
                remedy=f"Set {_LENGTHS} = {{'{feature}': <length>, …}}.",
            )
        return length

    def number(self, name: str) -> int:
        """A number that a task reads in addition to its lengths; 1 where absent.

        Raises:
          InputError: if it is not a positive integer.
        """
        number = self.values.get(name, 1)
        if not _is_positive(number):
            raise InputError(
                f"got {number!r}, expected 1 or more", path=_LENGTHS, field=name, remedy="Leave it out for 1."
            )
        return number


class RowRule(Protocol):
    """How one feature of varying length becomes an array of fixed shape."""

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:
        """The shape of the feature in each row; raises InputError for a length that is missing or not positive."""
        ...

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """int32 values of any number, cut or padded to `shape`; raises InputError for values that cannot be."""
        ...


@dataclasses.dataclass(frozen=True)
class CutOrPad:
    """Cuts the values of a feature to its length, or pads them.

    Attributes:
      like: the feature whose length counts where `TASK_FEATURE_LENGTHS` has none for this one.
      padding: the value that fills the row.
      keep_last: whether the last value stays when the values are cut, such as the closing [SEP] of a text.
    """

    like: str | None = None
    padding: int = PAD_ID
    keep_last: bool = False

    def shape(self, feature: str, lengths: Lengths) -> tuple[int, ...]:
        """``(length,)``.

        Raises:
          InputError: for a length that is missing or not positive.
        """
        return (lengths.length(feature, self.like),)

    def fit(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The values cut or padded to `shape`, int32 [length]."""
        (length,) = shape
        if values.size < length:
            return np.concatenate([values, np.full(length - values.size, self.padding, values.dtype)])
        row = values[:length].copy()
        if self.keep_last:
            row[-1] = values[-1]
        return row


TEXT: Final = CutOrPad(keep_last=True)
"""The rule for the word pieces of one text, [CLS] … [SEP]."""


def _is_positive(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
