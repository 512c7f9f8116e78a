"""Compares the values of gin files with the types of the options: a wrong one is named before anything is built."""

import collections.abc
import types
import typing
from collections.abc import Mapping
from typing import Any, Final

_NAMES: Final = {
    int: "an integer",
    float: "a number",
    str: "a string in quotes",
    bool: "True or False",
    type(None): "None",
    dict: "a dictionary",
    tuple: "a tuple or list",
}
_LISTS: Final = (tuple, list, collections.abc.Sequence, collections.abc.Collection)


def expected_type(value: Any, annotation: Any) -> str:
    """Returns what a value should be instead; "" if it fits, or if the annotation is not one of gin's plain types.

    >>> expected_type("x", float | None), expected_type(1.5, int), expected_type(1e5, int)
    ('a number or None', 'an integer', '')

    Args:
      value: a literal of gin. What is inside of a container is not compared.
      annotation: of the parameter that gets it.
    """
    kinds = [_plain(one) for one in _members(annotation)]
    if None in kinds or any(_fits(value, kind) for kind in kinds):
        return ""
    return " or ".join(_NAMES[kind] for kind in dict.fromkeys(kinds))


def _members(annotation: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)


def _plain(annotation: Any) -> Any:
    """Returns the type in `_NAMES` that an annotation means, or None."""
    origin = typing.get_origin(annotation) or annotation
    if origin in (dict, collections.abc.Mapping):
        return dict
    if origin in _LISTS:
        return tuple
    return origin if isinstance(origin, type) and origin in _NAMES else None


def _fits(value: Any, kind: type) -> bool:
    if kind is dict:
        return isinstance(value, Mapping)
    if kind is tuple:
        return isinstance(value, (tuple, list))
    if isinstance(value, bool) or kind is bool:
        return kind is bool and isinstance(value, bool)
    if kind is int:  # 1e5 is how people write large numbers of steps
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, (int, float) if kind is float else kind)
