"""`newsembed t5x`: the folder of gin files, and the conversions by their options."""

import pytest
from newsembed.launch import cli
from newsembed.t5x_bridge import command


def test_gin_prints_the_folder_of_the_files(capsys):
    assert cli.main(["t5x", "gin"]) == 0
    folder = capsys.readouterr().out.strip()
    assert command.os.path.isfile(f"{folder}/t5x/train.gin")


@pytest.mark.parametrize("action", ["to", "from"])
def test_conversions_get_folder_step_and_output(monkeypatch, capsys, action):
    calls = []
    monkeypatch.setattr(command, f"{action}_t5x", lambda *values: calls.append(values) or "there")
    source = {"to": "--model", "from": "--run"}[action]
    assert cli.main(["t5x", action, source, "a@40", "--output", "b"]) == 0
    assert cli.main(["t5x", action, source, "a", "--output", "b"]) == 0
    assert calls == [("a", "b", 40), ("a", "b", None)]
    assert capsys.readouterr().out == "there\nthere\n"


def test_export_converts_and_exports_with_the_options_of_export(monkeypatch):
    calls = []
    monkeypatch.setattr(command, "from_t5x", lambda run, output, step: calls.append((run, step, output)))
    monkeypatch.setattr(command, "run_export", lambda options: calls.append(options) or 0)
    assert cli.main(["t5x", "export", "--run", "a@4", "--output", "b", "--format", "safetensors"]) == 0
    (run, step, folder), options = calls
    assert (run, step) == ("a", 4)
    assert (options.model, options.output, options.format) == (folder, "b", "safetensors")
    assert not command.os.path.exists(folder)
