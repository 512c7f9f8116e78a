"""`newsembed t5x`: the folder of gin files, and the conversions by their options."""

import pytest
from newsembed.launch import cli
from newsembed.t5x_bridge import command


def test_gin_prints_the_folder_of_the_files(printed):
    folder = printed("t5x", "gin").strip()
    assert command.os.path.isfile(f"{folder}/t5x/train.gin")


@pytest.mark.parametrize("action", ["to", "from"])
def test_conversions_get_folder_step_and_output(monkeypatch, printed, action):
    calls = []
    monkeypatch.setattr(command, f"{action}_t5x", lambda *values: calls.append(values) or "there")
    source = {"to": "--model", "from": "--run"}[action]
    for model in ("a@40", "a"):
        assert printed("t5x", action, source, model, "--output", "b") == "there\n"
    assert calls == [("a", "b", 40), ("a", "b", None)]


def test_export_converts_and_exports_with_the_options_of_export(monkeypatch):
    calls = []
    monkeypatch.setattr(command, "from_t5x", lambda run, output, step: calls.append((run, step, output)))
    monkeypatch.setattr(command, "run_export", lambda options: calls.append(options) or 0)
    assert cli.main(["t5x", "export", "--run", "a@4", "--output", "b", "--format", "safetensors"]) == 0
    (run, step, folder), options = calls
    assert (run, step) == ("a", 4)
    assert (options.model, options.output, options.format) == (folder, "b", "safetensors")
    assert not command.os.path.exists(folder)
