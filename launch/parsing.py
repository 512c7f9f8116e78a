"""Command lines: parsers made from dataclasses of options, words from files, and errors that name the nearest option.

A field of a dataclass is an option (see `formats.command_line`). A field whose type is a dataclass is a group of
options; their names have the name of the field in front, ``--clean.min_words``, or the field's ``prefix``. A field with
``rest`` in its metadata, a function that checks them, gets the words that are no option; :func:`beam_arguments` makes
one for Beam's own options.
"""

import argparse
import dataclasses
import datetime
import difflib
import enum
import functools
import re
import shlex
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from ..errors import InputError, reading
from ..formats.files import read_bytes

_INVALID_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")  # argparse's words
_METAVARS: Final = {int: "N", float: "X", bool: "true|false", str: "TEXT", datetime.date: "YYYY-MM-DD"}
_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_READERS: Final = {bool: lambda text: _BOOLEANS[text.lower()], datetime.date: datetime.date.fromisoformat}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the option that was probably meant.

    Args:
      name: of the command.
      description: the text before the options.
      epilog: the text after them.
    """

    _given: Sequence[str] = ()

    def __init__(self, name: str, description: str | None = None, epilog: str | None = None, **more: Any) -> None:
        more |= {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(prog=name, description=description, epilog=epilog, **more)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As in argparse; keeps the arguments for the error."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """The help, with a short usage and without the marks of docstrings."""
        needed = [action for action in self._actions if action.required or not action.option_strings]
        shown = [action.option_strings[-1] if action.option_strings else str(action.metavar) for action in needed]
        self.usage = " ".join(["%(prog)s", *shown, "[options]"])
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


def from_files(words: Sequence[str]) -> list[str]:
    """The words, with those of the file in the place of each ``@FILE``: read as a shell does, over any lines."""
    found: list[str] = []
    for word in words:
        if word.startswith("@"):
            with reading(word[1:], remedy := "Write options as on a command line."):
                found += shlex.split(read_bytes(word[1:], remedy).decode(), comments=True)
        else:
            found.append(word)
    return found


def value_of(name: str, arguments: Sequence[str]) -> str | None:
    """The value of one option, before all are parsed."""
    only = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only.add_argument(f"--{name}", nargs="?")  # without a value it is an error of the whole parser
    return getattr(only.parse_known_args(arguments)[0], name)


def beam_arguments() -> Any:
    """A field for Beam's own options."""
    return dataclasses.field(default=(), metadata={"unknown": check_beam_args})


def parse(parser: Parser, options: type, arguments: Sequence[str]) -> Any:
    """The options of a command line, as an instance of their dataclass, which checks the values.

    Args:
      parser: to which :func:`add_options` has added the options.
      options: the dataclass.
      arguments: of the command line.
    """
    fields = {kind: one for one in dataclasses.fields(options) for kind in ("unknown", "rest") if kind in one.metadata}
    rest: dict[str, Any] = {}
    if "rest" in fields and "--" in arguments:  # argparse would not keep them apart from other words without dashes
        place = arguments.index("--")
        arguments, rest = arguments[:place], {fields["rest"].name: tuple(arguments[place + 1 :])}
    arguments = getattr(options, "expanded", list)(arguments)
    if "unknown" not in fields:
        return options_from(options, vars(parser.parse_args(arguments)) | rest)
    found, others = parser.parse_known_args(arguments)
    fields["unknown"].metadata["unknown"](others, parser)
    return options_from(options, {**vars(found), fields["unknown"].name: tuple(others)})


def options_from(options: type, values: Mapping[str, Any], prefix: str = "") -> Any:
    """Builds a dataclass of options from parsed arguments by their names; its ``__post_init__`` checks the values."""
    found = {}
    for field, hint in _fields(options):
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            found[field.name] = options_from(hint, values, prefix + _prefix(field))
        elif (name := prefix + field.name) in values:
            found[field.name] = tuple(values[name]) if isinstance(values[name], list) else values[name]
    try:
        return options(**found)
    except InputError as error:
        if error.field and not error.field.startswith(f"--{prefix}"):
            error.field = error.field.replace("--", f"--{prefix}", 1)
        raise


def add_options(parser: argparse._ActionsContainer, options: type, prefix: str = "") -> None:
    """Adds ``--[prefix]name=value`` for each field of a dataclass of options, with the field's default and help."""
    has_positional = any("positional" in field.metadata for field in dataclasses.fields(options))
    for field, hint in _fields(options):
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            own = _prefix(field)
            group = parser.add_argument_group(f"{own[:-1]} options") if own else parser
            add_options(group, hint, prefix + own)
        elif not {"unknown", "rest"} & set(field.metadata):
            _add_option(parser, field, hint, prefix, has_positional=has_positional)


def _fields(options: type) -> Iterator[tuple["dataclasses.Field[Any]", Any]]:
    hints = typing.get_type_hints(options)
    for field in dataclasses.fields(options):
        yield field, hints[field.name]


def _prefix(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("prefix", f"{field.name}."))


def _add_option(
    parser: argparse._ActionsContainer, field: "dataclasses.Field[Any]", hint: Any, prefix: str, *, has_positional: bool
) -> None:
    default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    is_required, said = default is dataclasses.MISSING, field.metadata
    name, settings = str(said.get("name", field.name)), dict[str, Any]()
    name = name if said.get("positional") else f"--{prefix}{name}"
    settings["default"] = None if is_required else default
    text = (said.get("help", "") + ("" if is_required else _shown_default(default))).replace("%", "%%")
    if said.get("many"):
        hint = typing.get_args(hint)[0]
        settings["nargs"] = "+" if is_required or not said.get("positional") else "*"
    elif said.get("repeated"):  # one value each time, which the words after it do not belong to
        hint = typing.get_args(hint)[0]
        settings["nargs"] = 1
    elif (said.get("positional") and not is_required) or "const" in said:
        settings |= {"nargs": "?", "const": said.get("const")}
    # Several occurrences add up; of an absent one the dataclass has the default.
    if said.get("repeated") or (said.get("many") and not said.get("positional")):
        settings |= {"action": "extend", "default": argparse.SUPPRESS}
    if hint is bool and has_positional and not default:  # no value, which might be the next word
        parser.add_argument(name, dest=f"{prefix}{field.name}", action="store_true", help=said.get("help", ""))
        return
    if hint is bool:
        settings |= {"nargs": "?", "const": True}  # --name alone turns it on
    if not said.get("positional"):
        settings |= {"required": is_required, "dest": f"{prefix}{field.name}"}
    choices = "{" + ",".join(map(str, said["choices"])) + "}" if "choices" in said else None
    metavar = said.get("metavar") or choices or _metavar(hint)
    parser.add_argument(name, type=_converter(hint), metavar=metavar, help=text, **settings)


def _shown_default(value: Any) -> str:
    """The default as it is written on the command line; nothing where an option is empty."""
    if value in (None, "", ()):
        return ""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(getattr(value, "value", value))
    return f" (default: {text.lower() if isinstance(value, bool) else text})"


def _converter(hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _converter(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        item = _converter(arguments[0])
        return lambda text: tuple(item(part) for part in text.split(",") if part)
    return hint if hint in (int, float, str) else functools.partial(_converted, hint)


def _converted(hint: Any, text: str) -> Any:
    try:
        return _READERS.get(hint, hint)(text)
    except (KeyError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected {_metavar(hint)}") from error


def _metavar(hint: Any) -> str:
    arguments = [one for one in typing.get_args(hint) if one is not type(None) and one is not Ellipsis]
    if arguments:
        return _metavar(arguments[0]) + (",…" if typing.get_origin(hint) is tuple else "")
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "{" + ",".join(str(member.value) for member in hint) + "}"
    return _METAVARS.get(hint, "VALUE")


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """All options of a parser."""
    return [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001 - no public list


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that looks most like `name`, in a list; empty if none does. Dashes at the start do not count."""
    name, plain = name.lstrip("-"), {other.lstrip("-"): other for other in known}
    close = difflib.get_close_matches(name, plain)
    close.sort(key=lambda other: sorted(other) != sorted(name))  # two letters in the other order come first
    return [plain[found] for found in close[:1]]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The start of a remedy; "" if no known name looks like `name`."""
    return "".join(f"did you mean {close}? " for close in nearest(name, known))


def check_beam_args(beam_args: Sequence[str], own: Parser) -> None:
    """Checks that Beam knows these options: Beam itself drops unknown ones with a warning.

    Args:
      beam_args: what the command's own parser does not know.
      own: that parser; its options are named first.

    Raises:
      InputError: for an unknown option, with the closest known one.
    """
    if not beam_args:
        return
    from apache_beam.options.pipeline_options import PipelineOptions, TestOptions

    parser = Parser(own.prog, add_help=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        if options is not TestOptions:  # --dry_run: the local runner runs all the same
            options._add_argparse_args(parser)  # noqa: SLF001 - Beam offers no public list of its options
    _, unknown = parser.parse_known_args(beam_args)
    if unknown:
        name = unknown[0].partition("=")[0]
        hint = did_you_mean(name, option_names(own)) or did_you_mean(name, option_names(parser))
        raise InputError("no such option", field=name, remedy=f"{hint}see --help for the job's own options")
