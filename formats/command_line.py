"""Options of command lines: how dataclasses declare and check them, and how files keep them, without what is secret.

A command is a module with ``OPTIONS``, a frozen dataclass that inherits from `Options`, and ``run(options)``, which
returns the exit code. The docstring of the module is the text of ``--help``.

Beam's options hold keys of object stores, and an environment of workers or a URL may hold a password.
"""

import dataclasses
import itertools
import operator
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from ..errors import InputError

LEFT_OUT: Final = "…"
IMPORTS: Final = "NEWSEMBED_IMPORT"  # the variable of the environment that names modules of `newsembed --import`
# What the name of an option says about its value; one that ends in _file names the place of a secret.
_NAME: Final = re.compile(
    r"(?i)-.*(secret|passw|credential|connection_string|(access|api|private)_key|(^|[-_.])token$)(?!.*_(file|path)$)",
)
# A variable, property or option inside a value: PASSWORD=…, "api_key": …, -Dstore.password=…
_INSIDE: Final = re.compile(
    r"(?i)(secret|passw|credential|(access|api|private)_?key|(access|auth|session)_?token)\w{0,40}[\"']?\s*[=:]"
    r"|://[^/@\s]*:[^/@\s]+@",
)

_T = TypeVar("_T")


# The words of an error for each bound of an option; the key is the comparison of the value with it, of `operator`.
_BOUNDS: Final = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def option(default: _T, help_text: str = "", **metadata: Any) -> _T:
    """Declares a field of a dataclass of options by its default and its help.

    The type is that of the default, as `dataclasses.field` has it, so that a line reads
    ``seed: int = option(0, "of the draws")``.

    Args:
      default: immutable.
      help_text: what ``--help`` says of the option.
      metadata: ``ge``, ``gt``, ``le``, ``lt``: bounds of a number. ``choices``: the values of a text. ``many=True``: a
        tuple is given as several words instead of one with commas, by several occurrences of the option, or both;
        ``repeated=True``: by several occurrences of one word each. ``local=True``: a path on this machine, not in an
        object store. ``positional=True``: the value has no ``--name``. ``const``: the value where the name stands
        alone. ``rest=True``: the words after ``--``. ``metavar``: what stands for the value in the help. Other entries
        are read by those who declare them.
    """
    return dataclasses.field(default=default, metadata={"help": help_text, **metadata})


def several(help_text: str, metavar: str, **metadata: Any) -> tuple[str, ...]:
    """Declares an option of any number of texts, given as several words, by several occurrences, or both."""
    return option((), help_text, metavar=metavar, many=True, **metadata)


def required(help_text: str = "", **metadata: Any) -> Any:
    """Declares an option without a default, see :func:`option`; its dataclass has ``kw_only=True``."""
    return dataclasses.field(metadata={"help": help_text, **metadata})


class Options:
    """Base of dataclasses of options: the declared bounds and choices are checked when one is made."""

    remedy: ClassVar[str] = "see --help"

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
          InputError: naming the first option whose value is outside its bounds or none of its choices.
        """
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            check_value(self.shown_name(field), getattr(self, field.name), field.metadata, self.remedy)

    def shown_name(self, field: "dataclasses.Field[Any]") -> str:
        """Returns what an error calls an option."""
        return f"--{field.name}"


class GinOptions(Options):
    """Base of dataclasses that gin configures: errors name the macro of an option (``macro=``) or ``Class.name``."""

    remedy: ClassVar[str] = "Correct the gin file or the --gin option that sets it."

    def shown_name(self, field: "dataclasses.Field[Any]") -> str:
        """Returns what an error calls an option."""
        return str(field.metadata.get("macro") or f"{type(self).__name__}.{field.name}")

    def refuse(self, name: str, expected: str) -> InputError:
        """Returns the error of an option whose value does not fit other options or the model."""
        field = next(field for field in dataclasses.fields(self) if field.name == name)  # type: ignore[arg-type]
        problem = f"got {getattr(self, name)!r}, expected {expected}"
        return InputError(problem, field=self.shown_name(field), remedy=self.remedy)


def check_value(name: str, value: Any, declared: Mapping[str, Any], remedy: str = Options.remedy) -> None:
    """Checks one value, or each of a tuple, against its bounds and choices; None is always allowed.

    Args:
      name: of the option, as the error names it.
      value: the value.
      declared: metadata of the option, see :func:`option`.
      remedy: what the user can do about it.

    Raises:
      InputError: if the value is outside.
    """
    values = [one for one in (value if isinstance(value, tuple) else [value]) if one is not None]
    bounds = {key: declared[key] for key in _BOUNDS if key in declared}
    if not all(getattr(operator, key)(one, limit) for one in values for key, limit in bounds.items()):
        expected = " and ".join(f"{_BOUNDS[key]} {limit:g}" for key, limit in bounds.items())
        raise InputError(f"got {value}, expected {expected}", field=name, remedy=remedy)
    if declared.get("local") and any("://" in one for one in values):
        remedy = "name a local path, then copy the result: gcloud storage cp -r, or aws s3 cp --recursive"
        raise InputError(f"got {value}, and this command writes to this machine only", field=name, remedy=remedy)
    if wrong := [one for one in values if one not in declared.get("choices", values)]:
        problem = f"got {wrong[0]}, expected one of {', '.join(map(str, declared['choices']))}"
        raise InputError(problem, field=name, remedy=remedy)


def named_imports() -> list[str]:
    """The modules that ``newsembed --import`` has imported, in this process or in the one that started it."""
    return [name for name in os.environ.get(IMPORTS, "").split(",") if name]


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with "…" in the place of the values that may be secret.

    Args:
      arguments: of a command line, without the name of the program.
    """
    shown: list[str] = []
    starts = [number for number, word in enumerate(arguments) if number == 0 or word.startswith("--")]
    for start, end in itertools.pairwise([*starts, len(arguments)]):
        first, *others = arguments[start:end]
        name, equals, value = first.partition("=")
        is_secret = bool(_NAME.match(name)) or any(map(_INSIDE.search, [value, *others]))
        hidden = [f"{name}={LEFT_OUT}" if equals else name, *([LEFT_OUT] * len(others))]
        shown += hidden if is_secret and name.startswith("--") else [first, *others]
    return shown
