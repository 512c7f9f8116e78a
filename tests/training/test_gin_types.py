"""Types of gin's values: each plain type takes its own, and annotations that are not types take everything."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pytest
from newsembed.training.gin_types import expected_type


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (1, int, ""),
        (1.0, int, ""),
        (1.5, int, "an integer"),
        (True, int, "an integer"),
        (1, float, ""),
        (False, float, "a number"),
        ("1", float, "a number"),
        (True, bool, ""),
        (1, bool, "True or False"),
        ("a", str, ""),
        (1, str, "a string in quotes"),
        (None, str | None, ""),
        (None, str, "a string in quotes"),
        (2, str | None, "a string in quotes or None"),
        ({}, Mapping[str, int], ""),
        ([], dict[str, int], "a dictionary"),
        ([1], tuple[int, ...], ""),
        ((), Sequence[str], ""),
        ("ab", Sequence[str], "a tuple or list"),
        (3, tuple[int, ...] | int, ""),
        ("ab", tuple[int, ...] | int, "a tuple or list or an integer"),
        ("ab", Literal["x"], ""),
        (3, Callable[[], int] | str, ""),
    ],
)
def test_what_is_expected_instead(value, annotation, expected):
    assert expected_type(value, annotation) == expected
