"""Whole runs: what a model folder holds, exact continuation after a kill, SIGTERM, and where a run starts from."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from newsembed.models.encoder import EncoderConfig
from newsembed.tasks.errors import InputError
from newsembed.training import mixture
from newsembed.training.run import main, run_training
from toy_corpus import NUM_TOPICS, tiny_bindings, topics, triplet, write_corpus, write_sets, write_vocabulary

PRETRAIN, TRAIN = ["runs/pretrain_demo.gin"], ["runs/train_demo.gin"]

# Trains where TensorFlow cannot be imported and dies at step 5, as soon as the checkpoint of step 4 is complete.
KILLED_RUN = """
import os, signal, sys, time

for name in ("tensorflow", "tensorflow_text", "seqio", "apache_beam"):
    sys.modules[name] = None  # importing it raises ModuleNotFoundError
from newsembed.training import mixture, run

draw = mixture.MixtureBatches.draw

def draw_or_die(self, step):
    if step == 5:
        for _ in range(600):
            if os.path.isdir(sys.argv[1] + "/checkpoints/4"):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.1)
    return draw(self, step)

mixture.MixtureBatches.draw = draw_or_die
run.run_training(["runs/train_demo.gin"], sys.argv[2:])
"""


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
        TRAIN, tiny_bindings(folder, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=4, INITIAL_CHECKPOINT_PATH=str(pretrained))
    )
    assert (result.step, result.interrupted) == (8, False)
    return folder


def params(folder, step):
    return ocp.StandardCheckpointer().restore(folder / "checkpoints" / str(step) / "params")


def assert_same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_model_folder_holds_what_others_read(trained, corpus):
    description = json.loads((trained / "model.json").read_text())
    assert EncoderConfig.from_dict(description["encoder"]).num_topics == NUM_TOPICS
    assert (trained / "vocab.txt").read_bytes() == Path(corpus[1]).read_bytes()
    assert params(trained, 8)["token_embedding"].shape == (64, 16)
    assert list(trained.glob("events.out.tfevents*"))
    assert [record["step"] for record in records(trained)] == [2, 4, 6, 8]
    sets = {name for record in records(trained) for name in record if name.startswith("loss/")}
    assert sets <= {"loss/triplets/en", "loss/triplets/de", "loss/topics/en"}
    assert all(0 < record["padding"] < 1 and record["gradient_norm"] > 0 for record in records(trained))


def test_a_killed_run_without_tensorflow_ends_bit_identical(trained, corpus, pretrained, tmp_path):
    folder = tmp_path / "killed"
    bindings = tiny_bindings(folder, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=4, INITIAL_CHECKPOINT_PATH=str(pretrained))
    process = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, str(folder), *bindings], check=False, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert sorted(os.listdir(folder / "checkpoints")) == ["4"]
    result = run_training(TRAIN, bindings)
    assert result.origin.startswith("resumed from step 4")
    assert_same(params(folder, 8), params(trained, 8))
    timeless = [{k: v for k, v in record.items() if "second" not in k} for record in records(folder)]
    assert timeless == [{k: v for k, v in record.items() if "second" not in k} for record in records(trained)]


def test_sigterm_saves_and_the_same_command_continues(trained, corpus, pretrained, tmp_path, monkeypatch):
    folder = tmp_path / "stopped"
    bindings = tiny_bindings(folder, *corpus, TRAIN_STEPS=8, CHECKPOINT_PERIOD=4, INITIAL_CHECKPOINT_PATH=str(pretrained))
    draw = mixture.MixtureBatches.draw

    def draw_and_signal(self, step):
        if step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return draw(self, step)

    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        patch.setattr(mixture.MixtureBatches, "draw", draw_and_signal)
        result = run_training(TRAIN, bindings)
    assert (result.step, result.interrupted) == (3, True)
    assert signal.getsignal(signal.SIGTERM) == before
    assert run_training(TRAIN, bindings).step == 8
    assert_same(params(folder, 8), params(trained, 8))


def test_the_saved_config_continues_a_finished_run_without_a_step(trained):
    before = params(trained, 8)
    result = run_training([str(trained / "config.gin")])
    assert (result.step, result.origin.split(" of ")[0]) == (8, "resumed from step 8")
    assert_same(params(trained, 8), before)


def test_a_restored_start_takes_the_parameters_only(corpus, pretrained, tmp_path):
    folder = tmp_path / "restored"
    bindings = tiny_bindings(
        folder, *corpus, TRAIN_STEPS=1, INITIAL_CHECKPOINT_PATH=str(pretrained / "checkpoints" / "2"), LEARNING_RATE=0.0
    )
    assert run_training(TRAIN, bindings).origin.startswith("parameters restored from")
    assert_same(params(folder, 1), params(pretrained, 2))


def test_a_run_with_options_of_the_losses_logs_what_they_add(corpus, pretrained, tmp_path):
    options = {"MIXTURE_OR_TASK_NAME": "triplets/en", "Losses.mlm_weight": 0.1, "Losses.gradient_chunk": 12}
    options |= {"Losses.learn_temperature": True, "Losses.temperature": 0.1}
    bindings = tiny_bindings(tmp_path, *corpus, **options, TRAIN_STEPS=2, INITIAL_CHECKPOINT_PATH=str(pretrained))
    run_training(TRAIN, bindings)
    record = records(tmp_path)[-1]
    assert {name.partition("/")[0] for name in record} >= {"mlm_loss", "mlm_accuracy", "alignment", "uniformity"}
    assert record["temperature/triplets/en"] == pytest.approx(0.1, abs=0.01)
    assert 0 < abs(np.exp(params(tmp_path, 2)["log_temperature"]) - 0.1) < 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"EncoderConfig.mlp_size": 48},
            r"checkpoints/8/params: layers_0/mlp_in/bias: the checkpoint has shape \[32\].* model shape \[48\]",
        ),
        ({"EncoderConfig.num_layers": 3}, r"layers_2/\S+: the checkpoint has no such array"),
        ({"POOLING": "cls"}, r"model.json: pooling: the checkpoint's model has 'mean', this run 'cls'"),
        ({"MIXTURE_OR_TASK_NAME": "topics"}, "MIXTURE_OR_TASK_NAME: the checkpoint was trained on"),
    ],
    ids=["shape", "layers", "pooling", "mixture"],
)
def test_a_checkpoint_of_another_model_is_named(trained, corpus, changes, message):
    bindings = tiny_bindings(trained, *corpus, TRAIN_STEPS=9, INITIAL_CHECKPOINT_PATH=None, **changes)
    with pytest.raises(InputError, match=message):
        run_training(TRAIN, bindings)
    assert "mean" in (trained / "model.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"VOCAB_SIZE": 65}, "VOCAB_SIZE: the file has 64 pieces, the model's vocab_size is 65"),
        ({"VOCABULARY_PATH": "/nowhere/vocab.txt"}, "/nowhere/vocab.txt: cannot be read"),
        ({"INITIAL_CHECKPOINT_PATH": "/nowhere"}, "INITIAL_CHECKPOINT_PATH: got no checkpoint"),
        (
            {"TASK_FEATURE_LENGTHS": {"tokens": 17, "topic_ids": 2}, "MIXTURE_OR_TASK_NAME": "topics"},
            "tokens: got 17, the architecture has 16",
        ),
        ({"BATCH_SIZE": 0}, "BATCH_SIZE: got 0"),
        ({"EncoderConfig.num_heads": 3}, "EncoderConfig.hidden_size: got 16"),
    ],
    ids=["size", "vocabulary", "checkpoint", "lengths", "batch", "heads"],
)
def test_what_does_not_fit_is_named_before_training(corpus, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        run_training(TRAIN, tiny_bindings(tmp_path / "model", *corpus, **({"INITIAL_CHECKPOINT_PATH": None} | changes)))


def test_a_loss_that_is_no_number_stops_the_run_before_it_is_saved(corpus, tmp_path, capsys):
    folder = tmp_path / "exploded"
    bindings = tiny_bindings(folder, *corpus, LEARNING_RATE=1e38, CHECKPOINT_PERIOD=100, WARMUP_STEPS=0, INITIAL_CHECKPOINT_PATH=None)
    options = [f"--gin.{binding}" for binding in bindings]
    assert main(["--gin_file=runs/train_demo.gin", *options]) == 2
    error = capsys.readouterr().err
    assert "on a batch of" in error
    assert "remedy: Lower LEARNING_RATE" in error
    assert os.listdir(folder / "checkpoints") == []


def test_a_batch_larger_than_its_set_trains(tmp_path):
    rng = np.random.default_rng(0)
    data = write_sets(tmp_path / "data", {"triplets/en": [triplet(rng, 1)], "topics/en": [topics(rng, 1)]}, shards=1)
    bindings = tiny_bindings(
        tmp_path / "model", data, write_vocabulary(tmp_path / "vocab.txt"), TRAIN_STEPS=1, INITIAL_CHECKPOINT_PATH=None
    )
    assert run_training(TRAIN, bindings).step == 1
