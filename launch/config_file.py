"""Configuration files of commands: TOML whose keys are options; the options of a job are in a table of its name.

output = "work"
warc = ["crawl/*.warc.gz"]
beam = ["--direct_num_workers=2"]

[clean]
min_words = 80
"""

import argparse
import datetime
import enum
import json
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats.command_line import by_option
from .parsing import nearest, option_names

BEAM: Final = "beam"  # key of Beam's own options, a list of arguments
_LEFT_OUT: Final = ("help", "config", "print_config")
_COLUMNS: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--config`` and ``--print_config``."""
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file with options; those on the command line take precedence"
    )
    parser.add_argument(
        "--print_config",
        action="store_true",
        help="print the options of this command line as such a file, with all defaults, and run nothing",
    )


def with_config(parser: argparse.ArgumentParser, argv: Sequence[str]) -> list[str]:
    """Returns the arguments with those of the file that ``--config`` names in front of them.

    Raises:
      InputError: if the file is missing or not TOML, or for a key that is not an option or has a value of another kind.
    """
    only = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only.add_argument("--config")
    path = only.parse_known_args(list(argv))[0].config
    return [*read(parser, path), *argv] if path else list(argv)


def read(parser: argparse.ArgumentParser, path: str) -> list[str]:
    """Returns the arguments that a configuration file stands for.

    Args:
      parser: of the command; its options are the known keys.
      path: of the file.

    Raises:
      InputError: see :func:`with_config`.
    """
    try:
        with open(path, "rb") as source:
            found = tomllib.load(source)
    except FileNotFoundError as error:
        raise InputError("no such file", path=path, field="--config", remedy="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}", path=path, field="--config", remedy="correct the line") from error
    beam_args = found.pop(BEAM, [])
    if not isinstance(beam_args, list) or not all(isinstance(one, str) for one in beam_args):
        raise InputError("expected a list of strings", path=path, field=BEAM, remedy='write beam = ["--runner=…"]')
    actions = {option.removeprefix("--"): action for action in _actions(parser) for option in action.option_strings}
    arguments: list[str] = []
    for key, value in _flat(found):
        if key not in actions:
            close = nearest(f"--{key}", option_names(parser))
            hint = f"did you mean {close[0].removeprefix('--')}? " if close else ""
            raise InputError("no such option", path=path, field=key, remedy=f"{hint}--print_config prints all of them")
        arguments += _argument(actions[key], key, value, path)
    return arguments + beam_args


def text_of(parser: argparse.ArgumentParser, args: argparse.Namespace, beam_args: Sequence[str]) -> str:
    """Returns the configuration file of parsed arguments; options without a value are comments."""
    tables: dict[str, list[str]] = {"": []}
    for action in _actions(parser):
        table, _, name = action.dest.rpartition(".")
        tables.setdefault(table, []).extend(_lines(action, name, getattr(args, action.dest)))
    if beam_args:
        # No file should hold secrets, since files are copied and committed.
        options = list(by_option(beam_args))
        shown = [word for words, secret in options if not secret for word in words]
        secrets = [words[0].partition("=")[0] for words, secret in options if secret]
        tables[""] += [f"# {name}: left out, as it may be secret; give it on the command line" for name in secrets]
        tables[""].append(f"{BEAM} = {_toml(shown)}")
    head = f"# newsembed {parser.prog.partition(' ')[2]} --config FILE"
    return "\n\n".join(
        "\n".join([f"[{table}]" if table else head, *lines]) for table, lines in tables.items() if lines or not table
    )


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.dest not in _LEFT_OUT]  # noqa: SLF001 - no public list


def _flat(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _argument(action: argparse.Action, key: str, value: Any, path: str) -> list[str]:
    """The arguments of one key: several paths as words of their own, other lists joined by commas.

    Raises:
      InputError: for a value that no option has.
    """
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float | datetime.date) for one in values):
        raise InputError(f"got {value!r}", path=path, field=key, remedy="give a value or a list of values")
    words = [_word(one) for one in values]
    if action.nargs == "+":
        return [f"--{key}", *words] if words else []
    return [f"--{key}={','.join(words)}"]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _lines(action: argparse.Action, name: str, value: Any) -> list[str]:
    """The help of an option as a comment, and its value."""
    comment = textwrap.wrap(
        (action.help or "").replace("%%", "%"), _COLUMNS, initial_indent="# ", subsequent_indent="# "
    )
    return [*comment, f"# {name} =" if value is None else f"{name} = {_toml(value)}"]


def _toml(value: Any) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
