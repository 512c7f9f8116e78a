"""Checks that the configurations of architectures share: ranges of their fields, and reading them from JSON."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from ..transformer import DTYPES

_T = TypeVar("_T")


def check_fields(config: Any) -> None:
    """Refuses a configuration with integer fields below 1, a dropout rate outside of [0, 1) or an unknown dtype.

    Raises:
      ValueError: naming class and field.
    """
    name = type(config).__name__
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type in (int, "int") and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{name}.{field.name}: got {value!r}, expected a positive integer")
    if not 0 <= config.dropout_rate < 1:
        raise ValueError(f"{name}.dropout_rate: got {config.dropout_rate!r}, expected at least 0 and less than 1")
    if config.dtype not in DTYPES:
        raise ValueError(f"{name}.dtype: got {config.dtype!r}, expected one of {', '.join(DTYPES)}")


def from_fields(config_class: type[_T], values: Mapping[str, Any]) -> _T:
    """The configuration with these values of its fields.

    Raises:
      ValueError: for a key that is no field, a missing `vocab_size`, or what the class refuses.
    """
    known = [field.name for field in dataclasses.fields(config_class)]  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(known))
    if unknown:
        found, expected = ", ".join(unknown), ", ".join(known)
        raise ValueError(f"{config_class.__name__}: got the unknown keys {found}, expected some of {expected}")
    if "vocab_size" not in values:
        raise ValueError(f"{config_class.__name__}: the key vocab_size is missing")
    return config_class(**values)
