"""Whole runs: what a model folder holds, exact continuation after a kill, SIGTERM, and where a run starts from."""

import json
import os
import signal
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from json_lines import read_rows
from newsembed.errors import InputError
from newsembed.launch import cli
from newsembed.learning import mixture
from newsembed.models.encoders.news import EncoderConfig
from newsembed.training import loop
from newsembed.training import train as train_module
from newsembed.training.gin_config import run_training
from toy_corpus import LENGTH, NUM_TOPICS, tiny_bindings, write_corpus, write_vocabulary

PRETRAIN, TRAIN = ["runs/pretrain_demo.gin"], ["runs/train_demo.gin"]


def train_bindings(*given, **changes):
    """Of runs on triplets in two languages: one program to compile."""
    return tiny_bindings(*given, **({"MIXTURE_OR_TASK_NAME": "triplets"} | changes))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop")
    return write_corpus(folder / "data"), write_vocabulary(folder / "vocab.txt")


@pytest.fixture(scope="module")
def pretrained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "pretrained"
    run_training(PRETRAIN, tiny_bindings(folder, *corpus, TRAIN_STEPS=2))
    return folder


@pytest.fixture(scope="module")
def trained(corpus, pretrained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "trained"
    result = run_training(
        TRAIN,
        train_bindings(folder, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=4, INITIAL_CHECKPOINT_PATH=str(pretrained)),
    )
    assert (result.step, result.interrupted) == (8, "")
    return folder


def params(folder, step):
    return ocp.StandardCheckpointer().restore(folder / "checkpoints" / str(step) / "params")


def assert_same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def records(folder):
    return read_rows(folder / "metrics.jsonl")


def test_a_model_folder_holds_what_others_read(trained, pretrained, corpus):
    description = json.loads((trained / "model.json").read_text())
    assert EncoderConfig.from_dict(description["encoder"]).num_topics == NUM_TOPICS
    assert description["text_length"] == LENGTH
    assert "text_length" not in json.loads((pretrained / "model.json").read_text())  # it has embedded no text yet
    assert (trained / "vocab.txt").read_bytes() == Path(corpus[1]).read_bytes()
    assert params(trained, 8)["token_embedding"].shape == (64, 16)
    assert list(trained.glob("events.out.tfevents*"))
    assert [record["step"] for record in records(trained)] == [2, 4, 6, 8]
    sets = {name for record in records(trained) for name in record if name.startswith("loss/")}
    assert sets == {"loss/triplets/en", "loss/triplets/de"}
    assert all(0 < record["padding"] < 1 and record["gradient_norm"] > 0 for record in records(trained))
    assert all(0 <= record["input_wait"] < 1 for record in records(trained) if "seconds_per_step" in record)
    # Two steps of warm-up to 1e-3, then linearly to 0 at the last step.
    assert [record["learning_rate"] for record in records(trained)] == pytest.approx(
        [1e-3, 5e-3 / 6, 3e-3 / 6, 1e-3 / 6]
    )


@pytest.fixture(autouse=True)
def control_c_interrupts():
    """As in a terminal; a process that a script starts with ``&`` ignores Ctrl-C, and so would the run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_saves_and_the_same_command_continues(trained, corpus, pretrained, tmp_path, monkeypatch, capfd):
    number, name = signal.SIGTERM, "SIGTERM"
    folder = tmp_path / "stopped"
    bindings = train_bindings(
        folder, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=4, INITIAL_CHECKPOINT_PATH=str(pretrained)
    )
    draw = mixture.MixtureBatches.draw

    def draw_and_signal(self, step):
        if step == 2:
            os.kill(os.getpid(), number)
        return draw(self, step)

    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        patch.setattr(mixture.MixtureBatches, "draw", draw_and_signal)
        result = run_training(TRAIN, bindings)
    assert (result.step, result.interrupted) == (3, name)
    assert signal.getsignal(number) == before
    assert f"{name}: saved step 3; the same command continues" in capfd.readouterr().err
    assert cli.main(["train", "--gin_file", TRAIN[0], *(f"--gin.{binding}" for binding in bindings)]) == 0
    assert_same(params(folder, 8), params(trained, 8))


def test_a_second_control_c_stops_at_once_and_names_the_step_that_is_saved(corpus, tmp_path, monkeypatch, capfd):
    bindings = train_bindings(tmp_path, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=2, INITIAL_CHECKPOINT_PATH=None)
    draw = mixture.MixtureBatches.draw

    def draw_and_signal(self, step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return draw(self, step)

    monkeypatch.setattr(mixture.MixtureBatches, "draw", draw_and_signal)
    assert cli.main(["train", "--gin_file", TRAIN[0], *(f"--gin.{binding}" for binding in bindings)]) == 130
    assert "newsembed train: stopped, step 2 is saved; the same command continues" in capfd.readouterr().err
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]


def test_parameters_that_the_last_step_breaks_are_not_saved(corpus, tmp_path, monkeypatch):
    """The loss and the gradient of that step are finite; only its update is not."""
    bindings = train_bindings(tmp_path, *corpus, TRAIN_STEPS=3, CHECKPOINT_PERIOD=2, INITIAL_CHECKPOINT_PATH=None)
    step_of = loop.Loop._step

    def step(self, state, draw, is_asked_to_stop):
        state, metrics = step_of(self, state, draw, is_asked_to_stop)
        if int(state.step) == 3:
            state = state.replace(params=jax.tree.map(lambda array: array.at[..., 0].set(np.nan), state.params))
        return state, metrics

    monkeypatch.setattr(loop.Loop, "_step", step)
    with pytest.raises(InputError, match="parameters are not finite after step 3, which is not saved"):
        run_training(TRAIN, bindings)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]


def test_the_saved_config_continues_a_finished_run_without_a_step(trained):
    before = params(trained, 8)
    result = run_training([str(trained / "config.gin")])
    assert (result.step, result.origin.split(" of ")[0]) == (8, "resumed from step 8")
    assert_same(params(trained, 8), before)


def test_a_run_of_no_step_saves_what_it_starts_from_once(corpus, pretrained, tmp_path):
    start, folder = str(pretrained / "checkpoints" / "2"), tmp_path / "started"
    held_out = write_corpus(tmp_path / "held_out", seed=1)
    options = {"TRAIN_STEPS": 0, "EVAL_PERIOD": 5, "EVAL_DATA_DIR": held_out, "EVAL_BATCHES": 1, "EVAL_START": True}
    bindings = train_bindings(folder, *corpus, INITIAL_CHECKPOINT_PATH=start, **options)
    assert run_training(TRAIN, bindings).step == 0
    assert_same(params(folder, 0), params(pretrained, 2))
    assert [record["step"] for record in records(folder) if "eval/loss" in record] == [0]
    assert run_training(TRAIN, bindings).origin.startswith("resumed from step 0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"EncoderConfig.mlp_size": 48},
            r"checkpoints/8/params: layers_0/mlp_in/bias: the checkpoint has shape \[32\].* model shape \[48\]",
        ),
        ({"EncoderConfig.num_layers": 2}, r"layers_1/\S+: the checkpoint has no such array, this run's model shape \["),
        ({"POOLING": "cls"}, r"pooling_logits: the checkpoint has shape \[64\], this run's model no such array"),
        ({"MIXTURE_OR_TASK_NAME": "topics"}, "MIXTURE_OR_TASK_NAME: the checkpoint was trained on"),
    ],
    ids=["shape", "layer", "pooling", "mixture"],
)
def test_a_checkpoint_of_another_model_is_named(trained, corpus, changes, message):
    bindings = train_bindings(trained, *corpus, TRAIN_STEPS=9, INITIAL_CHECKPOINT_PATH=None, **changes)
    with pytest.raises(InputError, match=message):
        run_training(TRAIN, bindings)
    assert "weighted" in (trained / "model.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"VOCAB_SIZE": 65}, "VOCAB_SIZE: the file has 64 pieces, the model's vocab_size is 65"),
        ({"INITIAL_CHECKPOINT_PATH": "/nowhere"}, "INITIAL_CHECKPOINT_PATH: got no checkpoint"),
        (
            {"TASK_FEATURE_LENGTHS": {"tokens": 17, "topic_ids": 2}, "MIXTURE_OR_TASK_NAME": "topics"},
            "tokens: got 17, the architecture has 16",
        ),
    ],
    ids=["size", "checkpoint", "lengths"],
)
def test_what_does_not_fit_is_named_before_training(corpus, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        run_training(
            TRAIN, train_bindings(tmp_path / "model", *corpus, **({"INITIAL_CHECKPOINT_PATH": None} | changes))
        )


def test_a_loss_that_is_no_number_stops_the_run_before_it_is_saved(corpus, tmp_path, refused):
    folder = tmp_path / "exploded"
    bindings = train_bindings(
        folder, *corpus, LEARNING_RATE=1e38, CHECKPOINT_PERIOD=100, WARMUP_STEPS=0, INITIAL_CHECKPOINT_PATH=None
    )
    options = [f"--gin.{binding}" for binding in bindings]
    error = refused("train", "--gin_file=runs/train_demo.gin", *options)
    assert "on a batch of" in error
    assert "remedy: Lower LEARNING_RATE" in error
    assert os.listdir(folder / "checkpoints") == []


def test_the_next_batch_is_read_and_queued_while_a_step_runs(corpus, tmp_path, monkeypatch):
    events = []

    def note(owner, name, label):
        original = getattr(owner, name)

        def noted(*arguments, **options):
            events.append(label(*arguments))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    note(mixture.MixtureBatches, "draw", lambda _, step: f"read {step + 1}")
    note(loop, "shard_batch", lambda *_: "copy and queue")
    note(
        loop.Loop, "_finish", lambda _, pending, **__: f"wait for {pending.step}" if pending else "nothing to wait for"
    )
    bindings = train_bindings(
        tmp_path / "model", *corpus, TRAIN_STEPS=3, CHECKPOINT_PERIOD=9, MIXTURE_OR_TASK_NAME="mlm"
    )
    run_training(PRETRAIN, bindings)
    assert events == [
        *("read 1", "copy and queue", "nothing to wait for"),
        *("read 2", "copy and queue", "wait for 1"),
        *("read 3", "copy and queue", "wait for 2", "wait for 3"),
    ]


def test_steps_without_a_finite_gradient_are_left_out(corpus, tmp_path, monkeypatch):
    real = train_module.make_train_steps

    def breaking(*arguments):
        steps = real(*arguments)
        return {task: broken_step(step) for task, step in steps.items()}

    def broken_step(step):
        def broken(state, batch, key):
            count = int(state.step)
            state, metrics = step(state, batch, key)
            return state, metrics | ({"loss": jax.numpy.float32("nan")} if count == 2 else {})

        return broken

    monkeypatch.setattr(train_module, "make_train_steps", breaking)
    bindings = train_bindings(
        tmp_path / "model", *corpus, TRAIN_STEPS=4, LOG_PERIOD=4, SKIP_NONFINITE=True, INITIAL_CHECKPOINT_PATH=None
    )
    assert run_training(TRAIN, bindings).step == 4
    (record,) = records(tmp_path / "model")
    assert record["skipped_steps"] == 1
    assert all(np.isfinite(value) for value in record.values())


def test_a_run_of_mixed_batches_learns_from_all_tasks_and_resumes(corpus, pretrained, tmp_path):
    changes = {
        "INITIAL_CHECKPOINT_PATH": str(pretrained),
        "MIXTURE_OR_TASK_NAME": "weak_supervision",
        "CHECKPOINT_PERIOD": 2,
        "DataOptions.mixed_batches": True,
    }
    for folder, ends in (("whole", (4,)), ("resumed", (2, 4))):
        for steps in ends:
            bindings = train_bindings(tmp_path / folder, *corpus, TRAIN_STEPS=4, LOG_PERIOD=1, **changes)
            with pytest.MonkeyPatch.context() as patch:
                if steps < 4:
                    draw = mixture.MixedBatches.draw

                    def stop(self, step, draw=draw):
                        if step == 2:
                            os.kill(os.getpid(), signal.SIGTERM)
                        return draw(self, step)

                    patch.setattr(mixture.MixedBatches, "draw", stop)
                run_training(TRAIN, bindings)
    whole, resumed = (params(tmp_path / folder, 4) for folder in ("whole", "resumed"))
    assert_same(whole, resumed)
    for record in records(tmp_path / "whole"):
        parts = record["loss_topics/mixed/mixed"], record["loss_triplets/mixed/mixed"]
        rows = record["loss/mixed/mixed"]
        assert min(parts) < rows < max(parts)


def test_mixed_batches_are_refused_where_batches_are_grouped_by_date(corpus, pretrained, tmp_path):
    changes = {"INITIAL_CHECKPOINT_PATH": str(pretrained), "DataOptions.mixed_batches": True, "BATCH_DAYS": 7}
    with pytest.raises(InputError, match="mixed_batches: got True, expected False where BATCH_DAYS"):
        run_training(TRAIN, train_bindings(tmp_path / "model", *corpus, **changes))
