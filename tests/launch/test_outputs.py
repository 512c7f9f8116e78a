"""An output that cannot be written is noticed before the work, whatever the command."""

import pytest
from newsembed.launch import cli

COMMANDS = {
    "evaluate": ["--encoder", "tfidf=tfidf", "--suite", "events", "--data", "absent.jsonl"],
    "diagnose": ["--encoder", "tfidf=tfidf", "--articles", "absent.jsonl"],
    "export": ["--model", "absent"],
    "import-hf": ["--from", "absent"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written_is_named_first(command, capsys):
    assert cli.main([command, *COMMANDS[command], "--output", "/proc/new"]) == 2
    printed = capsys.readouterr().err
    assert f"newsembed {command}: error: /proc/new: --output: cannot be written: /proc: No such file" in printed
    assert "remedy: name another path" in printed
