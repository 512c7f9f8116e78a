"""``newsembed completion``: prints the script that completes commands, options and files in a shell.

Example::

    newsembed completion bash > ~/.local/share/bash-completion/completions/newsembed
    newsembed completion zsh > ~/.zfunc/_newsembed

The script is static: write it again after an update. Commands whose extra is not installed are completed without their
options.
"""

import argparse
from typing import Any, Final

import shtab

from ..errors import InputError
from . import cli

_FILES: Final = {"DIR": shtab.DIRECTORY, "FOLDER": shtab.DIRECTORY}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed completion``."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="for which shell")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    print(shtab.complete(all_commands(), args.shell))
    return 0


def all_commands() -> argparse.ArgumentParser:
    """Returns one parser with every command as a subcommand; options that take files or folders are marked."""
    parser = argparse.ArgumentParser("newsembed")
    commands = parser.add_subparsers()
    for name, command in cli.COMMANDS.items():
        summary = command.summary.replace("%", "%%")
        try:
            known = cli.parser_of(name)
        except (ModuleNotFoundError, InputError):  # of an extra that is not installed
            commands.add_parser(name, help=summary)
            continue
        added: Any = commands.add_parser(
            name, help=summary, parents=[known], add_help=False, conflict_handler="resolve"
        )
        for action in added._actions:  # noqa: SLF001 - argparse offers no public list
            if action.nargs != 0 and action.choices is None:
                action.complete = _FILES.get(str(action.metavar), shtab.FILE)
    return parser
