"""Files of a T5X run: positions in the data, names of checkpoints, bad input."""

import pytest
from newsembed.errors import InputError
from newsembed.formats import t5x
from newsembed.formats.t5x import DataPosition


def test_a_position_is_read_as_it_was_written(tmp_path):
    path = str(tmp_path / "train_ds-000-of-001")
    DataPosition(40, '{"triplets/en": "x"}').write(path)
    assert DataPosition.read(path) == DataPosition(40, '{"triplets/en": "x"}')


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format_version": 2, "batches": 1, "iterators": ""}', '{"format_version": 1}']
)
def test_anything_else_is_refused_by_its_path(tmp_path, content):
    path = tmp_path / "train_ds-000-of-001"
    path.write_text(content)
    with pytest.raises(InputError, match="got no position in the training data") as error:
        DataPosition.read(str(path))
    assert error.value.path == str(path)


def test_a_missing_position_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        DataPosition.read(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("/runs/checkpoint_20/dataset/train_ds-000-of-001", 20),
        ("/runs/checkpoint_7/copies/checkpoint_20.orbax-checkpoint-tmp/dataset/x", 20),
        ("/runs/other/x", None),
        ("/runs/my_checkpoint_20/x", None),
    ],
)
def test_the_step_of_a_path(path, step):
    assert t5x.step_of(path) == step


def test_steps_are_those_with_a_state(tmp_path):
    for name in (
        "checkpoint_20/state",
        "checkpoint_3/state",
        "checkpoint_40.orbax-checkpoint-tmp/state",
        "checkpoint_9/x",
    ):
        (tmp_path / name).mkdir(parents=True)
    assert t5x.steps(str(tmp_path)) == [3, 20]
    assert t5x.steps(str(tmp_path / "none")) == []


def test_the_files_of_a_run_have_the_names_of_t5x():
    assert t5x.checkpoint("/runs/a", 20) == "/runs/a/checkpoint_20"
    assert t5x.position_file("/runs/a", 20) == "/runs/a/checkpoint_20/dataset/train_ds-000-of-001"
    assert t5x.skeleton_file("/runs/a") == "/runs/a/optimizer_state.json"
    assert DataPosition(3, "x").to_dict() == {"format_version": 1, "batches": 3, "iterators": "x"}


@pytest.mark.parametrize(
    "content",
    [
        '{"format_version": 1, "batches": "1", "iterators": ""}',
        '{"format_version": 1, "batches": 1, "iterators": 1}',
        '{"batches": 1, "iterators": ""}',
    ],
)
def test_a_position_of_other_types_is_refused(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError, match="got no position in the training data"):
        DataPosition.read(str(tmp_path / "x"))


def test_how_a_state_is_nested_is_read_as_written(tmp_path):
    assert t5x.read_skeleton(str(tmp_path)) is None
    for skeleton in ([{"mu": "array"}, None, []], None):
        t5x.write_skeleton(str(tmp_path), skeleton)
        assert t5x.read_skeleton(str(tmp_path)) == skeleton


@pytest.mark.parametrize("content", ["", "[]", '{"format_version": 2, "opt_state": []}', '{"format_version": 1}'])
def test_a_broken_description_of_a_state_is_refused(tmp_path, content):
    (tmp_path / "optimizer_state.json").write_text(content)
    with pytest.raises(InputError, match="got no description of an optimizer's state") as error:
        t5x.read_skeleton(str(tmp_path))
    assert error.value.path == str(tmp_path / "optimizer_state.json")
