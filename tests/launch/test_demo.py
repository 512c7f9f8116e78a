"""The demo's bookkeeping: what counts as finished, and whose newsroom a folder holds. `make demo` runs the road itself."""

import os

import pytest
from newsembed.launch import cli
from newsembed.launch.demo import road


def test_a_step_is_finished_while_its_result_is_newer_than_its_source(tmp_path):
    result, source = tmp_path / "result", tmp_path / "source"
    step = road.Step("x", [], str(result), str(source))
    source.touch()
    assert not step.is_finished()
    result.touch()
    os.utime(source, (100, 100))
    assert step.is_finished()
    os.utime(result, (50, 50))
    assert not step.is_finished()
    assert not road.Step("skips by itself", []).is_finished()


def test_every_step_is_a_command_whose_arguments_parse(tmp_path):
    for step in road.steps(road.Places(str(tmp_path)), 7, 1.0):
        assert step.command[0] in cli.COMMANDS


def test_a_folder_of_another_newsroom_is_refused(tmp_path, capsys):
    (tmp_path / "demo.json").write_text('{"scale": 1.0, "seconds": {}, "seed": 7}', encoding="utf-8")
    assert cli.main(["demo", "--output", str(tmp_path), "--seed", "8"]) == 2
    message = capsys.readouterr().err
    assert "'seed': 7" in message
    assert "'seed': 8" in message
    assert "--output" in message


@pytest.mark.parametrize("name", ["train_demo.gin", "pretrain_demo.gin"])
def test_the_demo_trains_with_files_of_the_package(name, tmp_path):
    commands = [step.command for step in road.steps(road.Places(str(tmp_path)), 7, 1.0)]
    assert any(f"--gin_file=runs/{name}" in command for command in commands)
