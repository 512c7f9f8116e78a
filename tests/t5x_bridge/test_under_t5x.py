"""Whole runs of `t5x.train`, `t5x.eval` and `t5x.infer` beside our trainer. They need T5X and skip without it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from newsembed.formats.model_folder import read_tree
from newsembed.t5x_bridge.checkpoints import from_t5x, to_t5x
from t5x_present import HAS_T5X

import toy_corpus as toy  # isort: skip

pytestmark = pytest.mark.skipif(not HAS_T5X, reason="T5X is not importable; docs/t5x.md says how to install it")
ROOT = Path(__file__).parents[2]
SIZES = ("num_layers=1", "hidden_size=16", "mlp_size=32", "embedding_size=16", f"max_length={toy.LENGTH}")
ARCHITECTURE = [f"--gin.EncoderConfig.{size}" for size in SIZES] + [f"--gin.NUM_TOPICS={toy.NUM_TOPICS}"]
STEPS = 12
# Adam divides each entry of the gradient by its own size. An entry that is 0 but for the rounding of its sum, which
# differs between two programs that compute the same, then moves its parameter by up to the learning rate. Adam's
# epsilon is far above this rounding here, and far below the other gradients.
OPTIMIZER = ["--gin.adam.moments=@Moments()", "--gin.Moments.epsilon=1e-5"]


def run(module, *arguments, devices=1):
    environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    command = [sys.executable, "-W", "ignore", "-m", *module, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def shared(corpus, model_dir, mixture):
    paths = {"MODEL_DIR": str(model_dir), "DATA_DIR": corpus[0], "VOCABULARY_PATH": corpus[1]}
    sizes = {"TASK_FEATURE_LENGTHS": dict(toy.LENGTHS), "TRAIN_STEPS": STEPS, "BATCH_SIZE": 8, "WARMUP_STEPS": 3}
    rates = {"LEARNING_RATE": 2e-3, "CHECKPOINT_PERIOD": 4, "DROPOUT_RATE": 0.1}
    values = paths | {"MIXTURE_OR_TASK_NAME": mixture} | sizes | rates
    return [f"--gin.{name}={value!r}" for name, value in values.items()] + ARCHITECTURE + OPTIMIZER


def theirs_command(corpus, model_dir, mixture="weak_supervision", *more):
    name = "pretrain" if mixture == "pretrain" else "train"
    files = [f"--gin_search_paths={ROOT / 'gin'}", f"--gin_file=t5x/{name}.gin", "--gin_file=architectures/tiny.gin"]
    return [*files, *shared(corpus, model_dir, mixture), "--gin.STATS_PERIOD=1", *more]


def train_theirs(corpus, model_dir, mixture="weak_supervision", *more, devices=1):
    run(["t5x.train"], *theirs_command(corpus, model_dir, mixture, *more), devices=devices)
    return their_losses(model_dir)


def train_ours(corpus, model_dir, mixture="weak_supervision", *more, devices=1):
    name = "pretrain" if mixture == "pretrain" else "weak_supervision"
    files = [f"--gin_file=models/{name}.gin", "--gin_file=architectures/tiny.gin", "--gin.LOG_PERIOD=1"]
    run(["newsembed", "train"], *files, *shared(corpus, model_dir, mixture), *more, devices=devices)
    lines = (Path(model_dir) / "metrics.jsonl").read_text().splitlines()
    return {
        record["step"]: next(value for name, value in record.items() if name.startswith("loss/"))
        for record in map(json.loads, lines)
        if any(name.startswith("loss/") for name in record)  # others hold an evaluation alone
    }


def their_losses(model_dir, name="train"):
    code = (
        "import glob, json, sys, tensorflow as tf\n"
        "found = {}\n"
        "for path in sorted(glob.glob(sys.argv[1] + '/events*')):\n"
        "    for record in tf.data.TFRecordDataset(path):\n"
        "        event = tf.compat.v1.Event.FromString(record.numpy())\n"
        "        for value in event.summary.value:\n"
        "            if value.tag == 'loss':\n"
        "                found[event.step] = float(tf.make_ndarray(value.tensor))\n"
        "print(json.dumps(found))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(Path(model_dir) / name)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {int(step): loss for step, loss in json.loads(done.stdout.splitlines()[-1]).items()}


def equal(left, right, steps=range(1, STEPS + 1)):
    assert {*steps} <= left.keys() & right.keys()
    for step in steps:
        assert left[step] == pytest.approx(right[step], abs=1e-5), f"step {step}"


@pytest.fixture(scope="module")
def ours(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours") / "model"
    return folder, train_ours(corpus, folder)


@pytest.fixture(scope="module")
def theirs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs") / "run"
    return folder, train_theirs(corpus, folder)


def test_losses_are_equal_at_each_step(ours, theirs):
    equal(ours[1], theirs[1])


def test_the_model_axis_is_sharded_as_in_our_trainer(ours, corpus, tmp_path):
    found = train_theirs(corpus, tmp_path / "run", "weak_supervision", "--gin.MODEL_PARALLEL=2", devices=8)
    equal(ours[1], found)


@pytest.mark.parametrize(
    ("mixture", "drawn", "options"),
    [
        ("pretrain", ("mlm/en", "tlm/de"), ()),
        ("triplets", ("triplets/en", "triplets/de"), ("--gin.GRADIENT_CHUNK=12", "--gin.MLM_WEIGHT=0.1")),
    ],
)
def test_other_objectives_and_options_have_equal_losses(corpus, tmp_path, mixture, drawn, options):
    expected = train_ours(corpus, tmp_path / "a", mixture, *options)
    equal(expected, train_theirs(corpus, tmp_path / "b", mixture, *options))
    metrics = (tmp_path / "a" / "metrics.jsonl").read_text()
    assert all(f'"loss/{data_set}"' in metrics for data_set in drawn)


def test_a_checkpoint_of_ours_goes_on_under_t5x(ours, corpus, tmp_path):
    to_t5x(str(ours[0]), str(tmp_path / "run"), 4)
    equal(ours[1], train_theirs(corpus, tmp_path / "run"), range(5, STEPS + 1))


def test_a_checkpoint_of_t5x_goes_on_under_our_trainer(theirs, corpus, tmp_path):
    from_t5x(str(theirs[0]), str(tmp_path / "model"), 4)
    equal(theirs[1], train_ours(corpus, tmp_path / "model"), range(5, STEPS + 1))


def test_a_run_that_was_killed_continues_as_if_it_had_not_been(theirs, corpus, tmp_path):
    model_dir = tmp_path / "run"
    environment = os.environ | {"XLA_FLAGS": ""}
    command = [sys.executable, "-W", "ignore", "-m", "t5x.train", *theirs_command(corpus, model_dir)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (model_dir / "checkpoint_4").exists():
        assert process.poll() is None, "it ended before its first checkpoint"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (model_dir / f"checkpoint_{STEPS}").exists()
    equal(theirs[1], train_theirs(corpus, model_dir), range(9, STEPS + 1))
    states = [read_tree(str(folder / f"checkpoint_{STEPS}" / "state")) for folder in (theirs[0], model_dir)]
    left, right = (toy.jax.tree.leaves(state) for state in states)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_held_out_losses_are_those_of_our_trainer_and_suites_run(corpus, articles, tmp_path):
    options = ["--gin.EVAL_PERIOD=4", "--gin.EVAL_STEPS=1", "--gin.TRAIN_EVAL=@train_eval/utils.DatasetConfig()"]
    suites = ["--gin.INFER_EVAL=@infer_eval/utils.DatasetConfig()", f"--gin.SUITES={{'events': '{articles}'}}"]
    train_theirs(corpus, tmp_path / "run", "topics", *options, *suites)
    found = their_losses(tmp_path / "run", "training_eval/topics_en")
    scores = (tmp_path / "run" / "inference_eval" / "events-metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in scores] == [4, 8, 12]
    held_out = f'--gin.EVAL_DATA_DIR="{corpus[0]}/held_out"'
    train_ours(corpus, tmp_path / "model", "topics", "--gin.EVAL_PERIOD=4", "--gin.EVAL_BATCHES=1", held_out)
    lines = map(json.loads, (tmp_path / "model" / "metrics.jsonl").read_text().splitlines())
    expected = {record["step"]: record["eval/loss/topics/en"] for record in lines if "eval/loss/topics/en" in record}
    equal(expected, found, (4, 8, 12))


def checkpoint_options(theirs):
    files = [f"--gin_search_paths={ROOT / 'gin'}", "--gin_file=architectures/tiny.gin", *ARCHITECTURE]
    paths = {"CHECKPOINT_PATH": theirs[0] / f"checkpoint_{STEPS}", "VOCABULARY_PATH": theirs[0] / "vocab.txt"}
    return [*files, f"--gin.TEXT_LENGTH={toy.LENGTH}", *(f'--gin.{name}="{path}"' for name, path in paths.items())]


def test_embeddings_and_scores_are_those_of_the_converted_model(theirs, articles, tmp_path):
    options = checkpoint_options(theirs)
    texts = [f'--gin.INFER_OUTPUT_DIR="{tmp_path / "inferred"}"', f'--gin.ARTICLES="{articles}"']
    run(["t5x.infer"], "--gin_file=t5x/infer.gin", *options, *texts)
    (file,) = [path for path in (tmp_path / "inferred").glob("*predict*") if path.is_file() and path.stat().st_size]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    from_t5x(str(theirs[0]), str(tmp_path / "model"))
    paths = ("--model", str(tmp_path / "model"), "--input", str(articles), "--output", str(tmp_path / "v"))
    run(["newsembed", "embed"], *paths)
    expected = np.load(tmp_path / "v" / "embeddings.npy")
    np.testing.assert_allclose([line["embedding"] for line in lines], expected, atol=1e-5)
    assert [line["doc_id"] for line in lines] == (tmp_path / "v" / "ids.txt").read_text().split()

    suites = [f'--gin.EVAL_OUTPUT_DIR="{tmp_path / "scores"}"', f"--gin.SUITES={{'events': '{articles}'}}"]
    run(["t5x.eval"], "--gin_file=t5x/eval.gin", *options, *suites)
    (scores,) = (tmp_path / "scores").rglob("events-metrics.jsonl")
    found = json.loads(scores.read_text())
    arguments = ["--encoder", f"m=model:{tmp_path / 'model'}", "--suite", "events", "--data", str(articles)]
    run(["newsembed", "evaluate"], *arguments, "--output", str(tmp_path / "results"))
    (result,) = json.loads((tmp_path / "results" / "results.json").read_text())["results"]
    assert found["step"] == STEPS
    for score in result["scores"]:
        name = score["metric"] if score["part"] == "all" else f"{score['metric']}/{score['part']}"
        assert found[name] == pytest.approx(score["value"], abs=1e-5)
