"""Files of a T5X run: positions in the data, names of checkpoints, bad input."""

import pytest
from newsembed.errors import InputError
from newsembed.formats import t5x
from newsembed.formats.t5x import DataPosition


def test_a_position_is_read_as_it_was_written(tmp_path):
    path = str(tmp_path / "train_ds-000-of-001")
    DataPosition(40, '{"triplets/en": "x"}').write(path)
    assert DataPosition.read(path) == DataPosition(40, '{"triplets/en": "x"}')


def test_steps_are_those_of_complete_checkpoints_and_the_files_have_the_names_of_t5x(tmp_path):
    for name in (
        "checkpoint_20/state",
        "checkpoint_3/state",
        "checkpoint_40.orbax-checkpoint-tmp/state",
        "checkpoint_9/x",
    ):
        (tmp_path / name).mkdir(parents=True)
    assert t5x.steps(str(tmp_path)) == [3, 20]
    assert t5x.steps(str(tmp_path / "none")) == []
    position = t5x.position_file("/runs/a", 20)
    assert position == "/runs/a/checkpoint_20/dataset/train_ds-000-of-001"
    assert t5x.step_of(position) == 20
    assert t5x.step_of("/runs/checkpoint_7/copies/checkpoint_20.orbax-checkpoint-tmp/dataset/x") == 20
    assert t5x.step_of("/runs/other/x") is t5x.step_of("/runs/my_checkpoint_20/x") is None


@pytest.mark.parametrize("content", ['{"batches": "1", "iterators": ""}', '{"batches": 1, "iterators": 1}'])
def test_what_is_no_position_is_refused_by_its_path(tmp_path, content):
    path = tmp_path / "train_ds-000-of-001"
    path.write_text(content)
    with pytest.raises(InputError, match="got no position in the training data") as error:
        DataPosition.read(str(path))
    assert error.value.path == str(path)


def test_how_a_state_is_nested_is_read_as_written(tmp_path):
    assert t5x.read_skeleton(str(tmp_path)) is None
    for skeleton in ([{"mu": "array"}, None, []], None):
        t5x.write_skeleton(str(tmp_path), skeleton)
        assert t5x.read_skeleton(str(tmp_path)) == skeleton
    (tmp_path / "optimizer_state.json").write_text("{}")
    with pytest.raises(InputError, match="got no description of an optimizer's state"):
        t5x.read_skeleton(str(tmp_path))
