"""Steps of a study that are folders, and the text of its run files."""

import json

import pytest
from newsembed.errors import InputError
from newsembed.studies.shared.gin_text import base_path, compose, own_lines
from newsembed.studies.shared.steps import absolute, claim, once, train_model, write_examples
from newsembed.training import gin_config


@pytest.fixture
def gin_folder(tmp_path, monkeypatch):
    folder = tmp_path / "gin"
    folder.mkdir()
    (folder / "row.gin").write_text('# why\n\ninclude "base.gin"\n  include "b"\nincluded = 1\nA.b = 2  # x\n')
    monkeypatch.setattr(gin_config, "GIN_FOLDER", str(folder))
    return folder


def test_later_lines_of_a_run_file_win(gin_folder):
    text = compose("base.gin", {"STEPS": 3, "PATH": None, "NAME": "x"}, ("A = 1", "B = 2"), "row.gin", ("data: d", "e"))
    assert text.splitlines() == [
        "# data: d", "# e", 'include "base.gin"', "STEPS = 3", "PATH = None", "NAME = 'x'", "A = 1", "B = 2",
        "# row.gin", "included = 1", "A.b = 2  # x",
    ]  # fmt: skip
    assert text.endswith("\n")
    assert compose("b", {}, ()) == 'include "b"\n'
    assert own_lines("row.gin") == ["included = 1", "A.b = 2  # x"]


def test_a_base_is_a_file_of_the_package_or_an_absolute_path(gin_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.gin").write_text("")
    assert base_path("row.gin") == base_path("gin/row.gin") == "row.gin"
    assert base_path("mine.gin") == str(tmp_path / "mine.gin")
    for path in ("absent.gin", "."):
        with pytest.raises(InputError, match="no such file") as raised:
            base_path(path)
        assert (raised.value.path, raised.value.field) == (path, "--base")


def test_a_step_is_made_once_completely_or_not_at_all(tmp_path):
    folder, written = str(tmp_path / "step"), []

    def write(target):
        written.append(target)
        (tmp_path / "step.tmp" / "file").write_text("x")

    def fail(target):
        write(target)
        raise KeyError(target)

    with pytest.raises(KeyError):
        once(folder, fail)
    assert not (tmp_path / "step").exists()
    (tmp_path / "step.tmp" / "left over").write_text("x")
    assert once(folder, write) == 0
    assert [path.name for path in (tmp_path / "step").iterdir()] == ["file"]
    assert not (tmp_path / "step.tmp").exists()
    assert once(folder, fail) == 0
    assert written == [f"{folder}.tmp"] * 2


def test_a_folder_belongs_to_one_study(tmp_path):
    output = tmp_path / "out"
    claim(str(output), "s.json", {"a": 1}, study="lift")
    claim(str(output), "s.json", {"a": 2, "b": None}, study="lift")  # nothing was begun
    assert json.loads((output / "s.json").read_text()) == {"a": 2, "b": None}
    (output / "step").mkdir()
    claim(str(output), "s.json", {"a": 2}, study="lift")
    assert json.loads((output / "s.json").read_text()) == {"a": 2, "b": None}
    for mine, field, problem in (
        ({"a": 3}, "a", "the folder holds a lift with 2, this one has 3"),
        ({"a": 2, "c": [1]}, "c", r"the folder holds a lift with None, this one has \[1\]"),
        ({}, "a", "the folder holds a lift with 2, this one has None"),
    ):
        with pytest.raises(InputError, match=problem) as raised:
            claim(str(output), "s.json", mine, study="lift")
        assert (raised.value.field, raised.value.path) == (field, f"{output}/s.json")
    (output / "s.json").unlink()
    with pytest.raises(InputError, match="the folder holds files that are of no lift"):
        claim(str(output), "s.json", {"a": 2}, study="lift")


def test_the_commands_of_steps(tmp_path):
    commands = []

    def command(words):
        commands.append(list(words))
        return 7

    assert write_examples(command, "/w", "/v/vocab.txt", "/out", row_length=96) == 7
    assert commands.pop() == [
        "examples", "--articles", "/w/clean", "--triplets", "/w/triplets", "--vocabulary", "/v/vocab.txt", "--output",
        "/out", "--augmentations_per_triplet=2", "--weights=1,0.5,2,2", "--max_length=96",
    ]  # fmt: skip
    values = {"TRAIN_STEPS": 4, "PATH": "p", "RATE": 0.5, "LENGTHS": {"a": 1}, "START": None}
    assert train_model(command, str(tmp_path), ["one.gin", "two.gin"], values, ["B=1", "A=2"]) == 7
    assert commands.pop() == [
        "train", "--gin_file=one.gin", "--gin_file=two.gin", f'--gin.MODEL_DIR="{tmp_path}"', "--gin.TRAIN_STEPS=4",
        '--gin.PATH="p"', "--gin.RATE=0.5", "--gin.LENGTHS={'a': 1}", "--gin.START=None", "--gin.B=1", "--gin.A=2",
    ]  # fmt: skip
    (tmp_path / "checkpoints" / "3").mkdir(parents=True)
    assert train_model(command, str(tmp_path), [], {"TRAIN_STEPS": 4}, []) == 7
    (tmp_path / "checkpoints" / "4").mkdir()
    commands.clear()
    assert (train_model(command, str(tmp_path), [], {"TRAIN_STEPS": 4}, []), commands) == (0, [])


def test_what_exists_has_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert (absolute("here"), absolute("minilm")) == (str(tmp_path / "here"), "minilm")
