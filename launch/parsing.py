"""The parser of the commands: errors name the nearest option and are short, however narrow the terminal is."""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

_INVALID_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")  # argparse's words


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the option that was probably meant."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As in argparse; keeps the arguments for the error."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """The help, without the marks of docstrings."""
        return super().format_help().replace("Example::\n", "example:\n").replace("``", "`")

    def error(self, message: str) -> NoReturn:
        """Prints the error and exits with 2."""
        known = option_names(self)
        unknown = dict.fromkeys(
            given.partition("=")[0] for given in self._given if given.startswith("--") and len(given) > 2
        )
        meant = [(name, close[0]) for name in unknown if name not in known and (close := nearest(name, known))]
        if chosen := _INVALID_CHOICE.search(message):
            meant += [(chosen[1], close) for close in nearest(chosen[1], re.findall(r"'([^']*)'", chosen[2]))]
        hints = "".join(f"{name}: did you mean {close}? " for name, close in meant)
        self.exit(2, f"{self.prog}: error: {message}\n  remedy: {hints}see `{self.prog} --help`\n")


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """All options of a parser."""
    actions = parser._actions  # noqa: SLF001 - argparse offers no public list
    return [option for action in actions for option in action.option_strings]


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that looks most like `name`, in a list; empty if none does. Dashes at the start do not count."""
    plain = {other.lstrip("-"): other for other in known}
    return [plain[found] for found in difflib.get_close_matches(name.lstrip("-"), plain, n=1)]
