"""The completion script: what bash offers, and that missing extras leave out options only."""

import contextlib
import io
import shutil
import subprocess

import pytest
from newsembed.launch import cli, completion


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
    assert offered(script, "newsembed", "search", "--pub") == ["--publisher"]
    assert offered(script, "newsembed", "clean", "--min_words_") == ["--min_words_per_line"]
    assert offered(script, "newsembed", "search", "--mode", "hy") == ["hybrid"]


def test_every_command_is_there(script):
    assert set(cli.COMMANDS) <= set(offered(script, "newsembed", ""))


def test_a_command_without_its_extra_keeps_its_name(monkeypatch):
    known = cli.parser_of

    def parser_of(name):
        if name != "search":
            raise ModuleNotFoundError(name=name)
        return known(name)

    monkeypatch.setattr(cli, "parser_of", parser_of)
    parser = completion.all_commands()
    choices = parser._subparsers._group_actions[0].choices
    assert set(choices) == set(cli.COMMANDS)
    assert "--publisher" in choices["search"]._option_string_actions
    assert set(choices["train"]._option_string_actions) == {"-h", "--help"}
