"""The documents: every command in them has options that exist, and the README stays short."""

import argparse
import itertools
import re
import shlex
from pathlib import Path

import pytest
from newsembed.launch import extensions
from newsembed.launch.cli import COMMANDS, parser_of
from newsembed.launch.job_command import check_beam_args

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands_in(path):
    """The arguments of every `newsembed` in a document's blocks of shell."""
    for block in re.findall(r"^```(?:bash|sh)$(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(re.sub(r"\$\(.*?\)", "X", line).replace("…", ""), comments=True)
            if "newsembed" in words[:2] and "=" in words[0] + "newsembed=":  # also after NAME=value
                yield line.strip(), words[words.index("newsembed") + 1 :]


CASES = [(line, words) for path in FILES for line, words in commands_in(path)]


def optional(parser):
    """The parser with nothing required: documents leave out what was said before."""
    for action in parser._actions:
        action.required = False
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                optional(sub)
    for group in parser._mutually_exclusive_groups:
        group.required = False
    return parser


def test_there_are_commands():
    assert len(CASES) > 30


@pytest.mark.parametrize("words", [words for _, words in CASES], ids=[line[:80] for line, _ in CASES])
def test_commands_in_documents_have_options_that_exist(words):
    _, words = extensions.split_imports(words)
    if not words or words[0] in ("--help", "COMMAND"):
        return
    assert words[0] in COMMANDS
    parser = optional(parser_of(words[0]))
    given = itertools.takewhile(lambda word: word not in ("|", ">", "&", "&&", ";"), words[1:])
    _, others = parser.parse_known_args(list(given))
    others = [other for other in others if not other.startswith("--gin.")]
    if COMMANDS[words[0]].module.startswith("beam_pipelines") or words[0] == "build":
        check_beam_args(others, parser)
    else:
        assert others == []


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1500
