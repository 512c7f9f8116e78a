"""What the configurations of architectures share that depend on nothing but their fields."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ..transformer import DTYPES


class FieldsConfig:
    """The part of an `Architecture` that its fields determine; a base of frozen dataclasses with these fields.

    Integer fields must be 1 or more, the dropout rate at least 0 and below 1, and the dtype a known one. Only XLA's
    kernels are used, so rows of any length can be computed anywhere.
    """

    execution_options: ClassVar[tuple[str, ...]] = ()
    num_topics: ClassVar[int] = 0

    vocab_size: int
    max_length: int
    dropout_rate: float
    dtype: str

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
          ValueError: naming class and field.
        """
        name = type(self).__name__
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.type in (int, "int") and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"{name}.{field.name}: got {value!r}, expected a positive integer")
        if not 0 <= self.dropout_rate < 1:
            raise ValueError(f"{name}.dropout_rate: got {self.dropout_rate!r}, expected at least 0 and less than 1")
        if self.dtype not in DTYPES:
            raise ValueError(f"{name}.dtype: got {self.dtype!r}, expected one of {', '.join(DTYPES)}")

    def portable(self) -> Self:
        """The same: only XLA's kernels are used."""
        return self

    def check(self, length: int) -> None:
        """Raises nothing: rows of any length can be computed anywhere."""

    def to_dict(self) -> dict[str, Any]:
        """The model as JSON values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`.

        Raises:
          ValueError: for a key that is not a field, a missing `vocab_size`, or values out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        unknown = sorted(set(values) - set(known))
        if unknown:
            found, expected = ", ".join(unknown), ", ".join(known)
            raise ValueError(f"{cls.__name__}: got the unknown keys {found}, expected some of {expected}")
        if "vocab_size" not in values:
            raise ValueError(f"{cls.__name__}: the key vocab_size is missing")
        return cls(**values)
