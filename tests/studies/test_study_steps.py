"""Steps of a study that are folders."""

import json
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.formats.folders import locked
from newsembed.formats.model_folder import ModelFolder
from newsembed.studies.shared.steps import claim, once, train_model, write_examples
from refusals import refuses


def test_a_step_is_made_once_completely_or_not_at_all(tmp_path):
    folder, targets = tmp_path / "step", []

    def write(target):
        targets.append(target)
        Path(target, "file").write_text("x")

    def fail(target):
        write(target)
        raise KeyError(target)

    with pytest.raises(KeyError):
        once(str(folder), fail)
    assert list(tmp_path.iterdir()) == []
    assert once(str(folder), write) == 0
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert once(str(folder), fail) == 0
    assert len(set(targets)) == 2  # two runs never write to one folder
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_belongs_to_one_study(tmp_path, monkeypatch):
    output, paths = tmp_path / "out", ("a",)
    monkeypatch.chdir(tmp_path)
    claim(str(output), "s.json", {"a": "minilm", "b": (1,)}, paths, study="lift")
    claim(str(output), "s.json", {"a": "out", "b": None}, paths, study="lift")  # nothing was begun
    assert json.loads((output / "s.json").read_text()) == {"a": str(output), "b": None}  # what exists is absolute
    (output / "step").mkdir()
    claim(str(output), "s.json", {"a": "out"}, paths, study="lift")
    assert json.loads((output / "s.json").read_text()) == {"a": str(output), "b": None}
    for mine, field, problem in (
        ({"a": "x"}, "a", "the folder holds a lift with '.*out', this one has 'x'"),
        ({"a": "out", "c": (1,)}, "c", r"the folder holds a lift with None, this one has \[1\]"),
    ):
        raised = refuses(problem, claim, str(output), "s.json", mine, paths, study="lift")
        assert (raised.field, raised.path) == (field, f"{output}/s.json")
    (output / "s.json").unlink()
    with pytest.raises(InputError, match="the folder holds files that are of no lift"):
        claim(str(output), "s.json", {"a": "out"}, paths, study="lift")


def test_the_commands_of_steps(tmp_path):
    commands = []

    def command(words):
        commands.append(list(words))
        return 7

    assert write_examples(command, "/w", "/v/vocab.txt", "/out") == 7
    assert commands.pop() == [
        "examples", "--articles", "/w/clean", "--triplets", "/w/triplets", "--vocabulary", "/v/vocab.txt", "--output",
        "/out", "--augmentations_per_triplet=2", "--weights=1,0.5,2,2", "--max_length=256",
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


def test_one_run_at_a_time_writes_the_steps_of_a_study_and_a_model(tmp_path, monkeypatch):
    from newsembed.studies import distil, lift
    from newsembed.training import train

    monkeypatch.setattr(distil.Distillation, "run", lambda _: pytest.fail("it is locked"))
    monkeypatch.setattr(lift.Lift, "__init__", lambda self, options: setattr(self, "output", options.output))
    monkeypatch.setattr(lift.Lift, "run", lambda _: pytest.fail("it is locked"))
    output = str(tmp_path / "out")
    distillation = distil.DistilOptions(model="m", output=output)
    with locked(output):
        for start in (lambda: distil.run(distillation), lambda: lift.run(distillation)):
            refuses("out: --output: another run is writing to this folder: process ", start)
        with pytest.raises(InputError, match="out: MODEL_DIR: another run is writing"), train._alone(output):
            pass


@pytest.mark.parametrize("name", ["news [2024]", "arch*", "a?b"])
def test_no_checkpoint_is_written_where_orbax_could_not_read_it(tmp_path, name):
    from newsembed.training import train

    refuses(r"MODEL_DIR: checkpoints are written below folders without", train._alone, str(tmp_path / name))
    with pytest.raises(InputError, match=r"--output: checkpoints are written below folders without"):
        ModelFolder(str(tmp_path / name / "model")).write_import({}, "", {})
    train._alone("gs://bucket/arch*")


def test_no_model_is_written_into_the_result_of_a_job(tmp_path):
    from newsembed.training import train

    (tmp_path / "manifest.json").write_text("{}")
    refuses("MODEL_DIR: a job wrote this folder", train._alone, str(tmp_path))
