"""Texts that follow from the commands: a page of the documentation for each, an overview, and completion in a shell.

``newsembed completion SHELL`` prints the script that completes commands, options and files.

Example::

    newsembed completion bash > ~/.local/share/bash-completion/completions/newsembed
    newsembed completion zsh > ~/.zfunc/_newsembed

The script is static: write it again after an update. Commands whose extra is not installed are completed without their
options.
"""

import argparse
import dataclasses
import functools
import re
from typing import Any, Final

import shtab

from ..errors import InputError
from ..formats.command_line import Options, required
from .cli import COMMANDS, overview, parser_of

_COLUMNS: Final = 110
_FILES: Final = {"DIR": shtab.DIRECTORY, "FOLDER": shtab.DIRECTORY}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompletionOptions(Options):
    """Options of ``newsembed completion``."""

    shell: str = required("for which shell", positional=True, choices=shtab.SUPPORTED_SHELLS, metavar="SHELL")


OPTIONS = CompletionOptions


def run(options: CompletionOptions) -> int:
    """Runs ``newsembed completion``."""
    print(shtab.complete(all_commands(), options.shell))
    return 0


def all_commands() -> argparse.ArgumentParser:
    """Returns one parser with every command as a subcommand; options that take files or folders are marked."""
    parser = argparse.ArgumentParser("newsembed")
    commands = parser.add_subparsers(parser_class=argparse.ArgumentParser)
    for name, command in COMMANDS.items():
        summary = command.summary.replace("%", "%%")
        try:
            known = [parser_of(name)]
        except (ModuleNotFoundError, InputError):  # of an extra that is not installed
            known = []
        added: Any = commands.add_parser(
            name, help=summary, parents=known, add_help=not known, conflict_handler="resolve"
        )
        for action in added._actions:  # noqa: SLF001 - argparse offers no public list
            if action.nargs != 0 and action.choices is None:
                action.complete = _FILES.get(str(action.metavar), shtab.FILE)
    return parser


def overview_page() -> str:
    """Returns the page that lists all commands by group, with links to their pages in the same folder."""
    text = re.sub(r"^  (\S+)( +.*)$", r"- [`\1`](\1.md): \2", overview(is_all=True), flags=re.MULTILINE)
    text = re.sub(r"^usage: (.*)$", r"usage: `\1`", re.sub(": +", ": ", text), flags=re.MULTILINE)
    return f"# Commands\n\n{text}\n"


def command_page(name: str) -> str:
    """Returns the page of a command: what ``--help`` prints, also of its subcommands."""
    return f"# newsembed {name}\n\n" + "\n".join(f"```text\n{text}```\n" for text in _helps(parser_of(name)))


def _helps(parser: argparse.ArgumentParser) -> list[str]:
    parser.formatter_class = functools.partial(argparse.RawDescriptionHelpFormatter, width=_COLUMNS)
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    return [parser.format_help(), *(text for found in choices for one in found.values() for text in _helps(one))]
