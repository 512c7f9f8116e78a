"""The recipe of a study: which steps are evaluated, and what each run file says."""

import dataclasses

import pytest
from newsembed.studies.shared import recipe as module
from newsembed.studies.shared.recipe import Recipe

RECIPE = Recipe("train.gin", "pretrain.gin", ("A = 1",), ("B = 2",), 100, 40, 8, 4, 2)


@pytest.mark.parametrize(
    ("steps", "evaluations", "evaluated"),
    [(100, 4, (25, 50, 75, 100)), (100, 1, (100,)), (10, 3, (3, 6, 10)), (3, 3, (1, 2, 3)), (7, 4, (1, 2, 3, 7))],
)
def test_evaluated_steps_are_evenly_spaced_and_end_with_the_last(steps, evaluations, evaluated):
    assert dataclasses.replace(RECIPE, steps=steps, evaluations=evaluations).evaluated == evaluated


@pytest.mark.parametrize(
    ("period", "most", "found"), [(25, 8, 5), (25, 25, 25), (25, 100, 25), (24, 8, 8), (7, 6, 1), (1, 1, 1)]
)
def test_checkpoints_fall_on_the_evaluated_steps(period, most, found):
    assert module._divisor(period, most) == found


@pytest.fixture
def composed(monkeypatch):
    """The arguments of every run file."""
    calls = []
    monkeypatch.setattr(module, "compose", lambda *given: calls.append(given) or "gin")
    monkeypatch.setattr(module, "manifest_of", lambda work, job: {"digest": f"digest of {work} {job}"})
    return calls


JOBS = {"examples": "/w/examples", "pack": "/w/pack", "vocabulary": "/w/vocabulary", "other": "/w/other"}


def test_a_training_has_the_data_the_start_and_the_periods(composed):
    run = RECIPE.training("/out", JOBS, 7, "/start", "row.gin")
    places = {"MODEL_DIR": "/out/model", "DATA_DIR": "/w/examples", "VOCABULARY_PATH": "/w/vocabulary/vocab.txt"}
    values = places | {
        "INITIAL_CHECKPOINT_PATH": "/start", "TRAIN_STEPS": 100, "CHECKPOINT_PERIOD": 5, "KEEP_PERIOD": 25, "SEED": 7,
    }  # fmt: skip
    assert composed == [("train.gin", values, ("A = 1",), "row.gin", ["data: examples digest of /w examples"])]
    assert (run.folder, run.gin, run.steps) == ("/out", "gin", (25, 50, 75, 100))
    RECIPE.training("/out", JOBS, 0, None, data="other")
    assert composed[1][1] == values | {"INITIAL_CHECKPOINT_PATH": None, "SEED": 0, "DATA_DIR": "/w/other"}
    assert composed[1][3:] == (None, ["data: other digest of /w other"])


def test_a_pretraining_has_its_own_steps_and_bindings(composed):
    run = RECIPE.pretraining("/out", JOBS, 3, "row.gin", bindings=("C = 3",))
    values = {
        "MODEL_DIR": "/out/model", "DATA_DIR": "/w/pack", "VOCABULARY_PATH": "/w/vocabulary/vocab.txt",
        "TRAIN_STEPS": 40, "SEED": 3,
    }  # fmt: skip
    assert composed == [("pretrain.gin", values, ("B = 2", "C = 3"), "row.gin", ["data: pack digest of /w pack"])]
    assert (run.folder, run.steps) == ("/out", (40,))


def test_the_facts_of_a_recipe_are_json_values():
    assert RECIPE.facts() == {
        "base": "train.gin", "pretrain_base": "pretrain.gin", "gin": ["A = 1"], "pretrain_gin": ["B = 2"],
        "steps": 100, "pretrain_steps": 40, "checkpoint_period": 8, "evaluations": 4, "seeds": [0, 1],
        "evaluated_steps": [25, 50, 75, 100],
    }  # fmt: skip


def test_the_defaults_of_studies():
    paper = {"base": "runs/weak_supervision_paper.gin", "pretrain_base": "runs/pretrain_paper.gin"}
    assert dict(module.DEFAULTS) == paper | {"seeds": 3, "parallel": 1}
    narrow = ("EncoderConfig.hidden_size = 64", "EncoderConfig.embedding_size = 64", "EncoderConfig.mlp_size = 256")
    lengths = '{"anchor_tokens": 48, "positive_tokens": 48, "negative_tokens": 48, "tokens": 48}'
    assert dict(module.NEWSROOM_DEFAULTS) == {
        "base": "runs/train_demo.gin", "pretrain_base": "runs/pretrain_demo.gin",
        "gin": (*narrow, "BATCH_SIZE = 32", "LEARNING_RATE = 5e-4", f"TASK_FEATURE_LENGTHS = {lengths}"),
        "pretrain_gin": (*narrow, "BATCH_SIZE = 16"), "steps": 60, "pretrain_steps": 60, "seeds": 3, "parallel": 2,
        "beam": ("--direct_num_workers=1",),
    }  # fmt: skip
