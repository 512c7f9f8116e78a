"""Texts that follow from the commands: a page of the documentation for each, and an overview."""

import argparse
import functools
import re
from typing import Final

from .cli import overview, parser_of

_COLUMNS: Final = 110


def overview_page() -> str:
    """Returns the page that lists all commands by group, with links to their pages in the same folder."""
    text = re.sub(r"^  (\S+)( +.*)$", r"- [`\1`](\1.md): \2", overview(is_all=True), flags=re.MULTILINE)
    text = re.sub(r"^usage: (.*)$", r"usage: `\1`", re.sub(": +", ": ", text), flags=re.MULTILINE)
    return f"# Commands\n\n{text}\n"


def command_page(name: str) -> str:
    """Returns the page of a command: what ``--help`` prints."""
    parser = parser_of(name)
    parser.formatter_class = functools.partial(argparse.RawDescriptionHelpFormatter, width=_COLUMNS)
    return f"# newsembed {name}\n\n```text\n{parser.format_help()}```\n"
