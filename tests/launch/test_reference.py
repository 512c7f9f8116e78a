"""Texts that follow from the code: a page for each command, the overview, and what bash completes."""

import argparse
import contextlib
import io
import re
import shutil
import subprocess

import pytest
from newsembed.launch import cli, reference
from newsembed.launch.cli import COMMANDS, parser_of


def parsers(parser):
    """The parser with those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_each_of_its_options_and_what_it_does(name):
    page = reference.command_page(name)
    assert page.startswith(f"# newsembed {name}\n\n```text\nusage: newsembed {name}")
    assert page.count("```") % 2 == 0
    assert "example" in page.lower()
    assert "``" not in page.replace("```", "")
    for parser in parsers(parser_of(name)):
        for action in parser._actions:
            assert all(option in page for option in action.option_strings)
            if not isinstance(action, argparse._SubParsersAction):
                assert re.sub(r"\(default: .*\)$", "", action.help or "").strip(), action


def test_the_overview_lists_each_command_once():
    page = reference.overview_page()
    for name, command in COMMANDS.items():
        assert page.count(f"- [`{name}`]({name}.md): {command.summary}\n") == 1


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path, out = tmp_path_factory.mktemp("completion") / "newsembed.bash", io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(["completion", "bash"]) == 0
    path.write_text(out.getvalue())
    return path


def offered(script, *words):
    """What bash completes the last word to."""
    code = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_newsembed newsembed "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = [shutil.which("bash") or "bash", "-c", code, "bash", str(script), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_commands_and_options_are_completed(script):
    assert offered(script, "newsembed", "cl") == ["clean", "cluster"]
    assert offered(script, "newsembed", "clean", "--min_words_") == ["--min_words_per_line"]
    assert set(COMMANDS) <= set(offered(script, "newsembed", ""))


def test_a_command_without_its_extra_keeps_its_name(monkeypatch):
    def only_clean(name):
        if name != "clean":
            raise ModuleNotFoundError(name=name)
        return parser_of(name)

    monkeypatch.setattr(reference, "parser_of", only_clean)
    choices = reference.all_commands()._subparsers._group_actions[0].choices
    assert set(choices) == set(COMMANDS)
    assert "--min_words" in choices["clean"]._option_string_actions
    assert set(choices["train"]._option_string_actions) == {"-h", "--help"}
