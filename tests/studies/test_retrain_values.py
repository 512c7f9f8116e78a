"""What a training on an archive starts from, and the values that it gives to `newsembed train`."""

import dataclasses
import os

import pytest
from newsembed.formats import trust
from newsembed.studies.retrain import Retraining, RetrainOptions, check_trainable
from refusals import refuses

OPTIONS = RetrainOptions(steps=8)


@pytest.fixture
def folder(tmp_path):
    """A model with checkpoints of two steps and a configuration."""
    model = tmp_path / "model"
    for step in (5, 9):
        (model / "checkpoints" / str(step) / "params").mkdir(parents=True)
    (model / "model.json").write_text("{}")
    (model / "vocab.txt").write_text("")
    return model


def configure(folder, **macros):
    lines = ["import newsembed", *(f"{name} = {value}" for name, value in macros.items())]
    (folder / "config.gin").write_text("\n".join(lines) + "\n")
    trust.allow(str(folder / "config.gin"))


def values(folder, model=None, **changes):
    training = Retraining("archive", str(model or folder), {}, dataclasses.replace(OPTIONS, **changes))
    return training.training_values(str(folder))


def test_a_training_takes_a_tenth_of_its_steps_to_warm_up_and_keeps_the_last_checkpoint(folder):
    configure(folder)
    steps = {"TRAIN_STEPS": 40, "WARMUP_STEPS": 4, "DECAY": "linear", "CHECKPOINT_PERIOD": 10, "KEEP_CHECKPOINTS": 1}
    off = dict.fromkeys("EVAL_DATA_DIR EVALUATOR KEEP_BEST KEEP_PERIOD WORD_VECTORS".split())
    off |= {"EVAL_PERIOD": 0, "PATIENCE": 0, "EVAL_START": False}
    assert values(folder, steps=40) == {
        "DATA_DIR": os.path.abspath("archive/.training/mined/examples"),
        "VOCABULARY_PATH": f"{folder}/vocab.txt",
        "INITIAL_CHECKPOINT_PATH": str(folder),
        "MIXTURE_OR_TASK_NAME": "triplets",
        **steps,
        **off,
    }
    assert values(folder, steps=3)["CHECKPOINT_PERIOD"] == 1
    assert values(folder, steps=19)["WARMUP_STEPS"] == 1


def test_a_training_starts_from_the_step_that_serves(folder):
    configure(folder)
    assert values(folder, f"{folder}@5")["INITIAL_CHECKPOINT_PATH"] == f"{folder}/checkpoints/5"


def test_the_learning_rate_is_a_tenth_of_the_models_own_unless_it_is_given(folder):
    configure(folder, LEARNING_RATE=0.02, BATCH_SIZE=48)
    found = values(folder)
    assert found["LEARNING_RATE"] == pytest.approx(0.002)
    assert found["BATCH_SIZE"] == 48
    found = values(folder, learning_rate=0.5, batch_size=7)
    assert (found["LEARNING_RATE"], found["BATCH_SIZE"]) == (0.5, 7)


def test_macros_that_are_references_or_go_over_lines_are_read_as_gin_does(folder):
    configure(
        folder, LEARNING_RATE="%OTHER", BATCH_SIZE="\\\n    12", TASK_FEATURE_LENGTHS="{'anchor_tokens': 8,\n  'b': 64}"
    )
    found = values(folder)
    assert "LEARNING_RATE" not in found
    assert found["BATCH_SIZE"] == 12
    assert check_trainable(str(folder)) == (str(folder), 64)


def test_a_model_without_lengths_is_trained_on_256_tokens(folder):
    configure(folder)
    assert check_trainable(f"{folder}@9") == (str(folder), 256)


def test_an_imported_model_has_its_architecture_in_place_of_a_configuration(folder):
    (folder / "architecture.gin").write_text("")
    trust.allow(str(folder / "architecture.gin"))
    assert check_trainable(str(folder)) == (str(folder), 256)
    assert "BATCH_SIZE" not in values(folder)


@pytest.mark.parametrize(
    ("change", "spec", "problem"),
    [
        (lambda model: (model / "model.safetensors").touch(), "", "no checkpoint to train from"),
        (lambda model: (model / "model.json").unlink(), "", "no checkpoint to train from"),
        (lambda model: (model / "checkpoints").rename(model / "other"), "", "no checkpoint to train from"),
        (lambda model: None, "@7", "no checkpoint of step 7"),
        (lambda model: (model / "config.gin").unlink(), "", "no configuration to train with"),
        (lambda model: configure(model, TASK_FEATURE_LENGTHS={"tokens": 8}), "", "was not trained on triplets"),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused(folder, change, spec, problem):
    configure(folder)
    change(folder)
    refuses(problem, check_trainable, f"{folder}{spec}")
