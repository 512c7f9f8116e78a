"""Options of command lines: how dataclasses declare them, and how files keep them, without what is secret.

Beam's options hold keys of object stores, and an environment of workers or a URL may hold a password.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

LEFT_OUT: Final = "…"
# What the name of an option says about its value; one that ends in _file names the place of a secret.
_NAME: Final = re.compile(
    r"-.*(secret|passw|credential|connection_string|(access|api|private)_key|(^|[-_.])token$)(?!.*_(file|path)$)",
    re.IGNORECASE,
)
# A variable, property or option inside a value: PASSWORD=…, "api_key": …, -Dstore.password=…
_INSIDE: Final = re.compile(
    r"(secret|passw|credential|(access|api|private)_?key|(access|auth|session)_?token)\w*[\"']?\s*[=:]"
    r"|://[^/@\s]*:[^/@\s]+@",
    re.IGNORECASE,
)

_T = TypeVar("_T")


def option(default: _T, help_text: str, **metadata: Any) -> _T:
    """Declares a field of a dataclass of options by its default and its help.

    The type is that of the default, as `dataclasses.field` has it, so that a line reads
    ``seed: int = option(0, "of the draws")``.

    Args:
      default: immutable.
      help_text: what ``--help`` says of the option.
      metadata: further entries of the field's metadata.
    """
    return dataclasses.field(default=default, metadata={"help": help_text, **metadata})


def by_option(arguments: Sequence[str]) -> Iterator[tuple[list[str], bool]]:
    """Yields the words of each option with its values, and whether a value may be secret.

    The words before the first option come first.

    Args:
      arguments: of a command line, without the name of the program.
    """
    starts = [number for number, word in enumerate(arguments) if number == 0 or word.startswith("--")]
    for start, end in itertools.pairwise([*starts, len(arguments)]):
        words = list(arguments[start:end])
        name, _, value = words[0].partition("=")
        yield words, bool(_NAME.match(name)) or any(map(_INSIDE.search, [value, *words[1:]]))


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with "…" in the place of the values that may be secret.

    Args:
      arguments: of a command line, without the name of the program.
    """
    shown: list[str] = []
    for words, secret in by_option(arguments):
        name, equals, _ = words[0].partition("=")
        hidden = [f"{name}={LEFT_OUT}" if equals else name, *([LEFT_OUT] * (len(words) - 1))]
        shown += hidden if secret and name.startswith("--") else words
    return shown
