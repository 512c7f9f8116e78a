"""Early stopping by a held-out figure: where a run ends, also after an interruption, and what the figures are."""

import json
import os

import gin
import jax
import numpy as np
import pytest
from json_lines import read_rows
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, RecordSource
from newsembed.models.encoders.news import EncoderConfig
from newsembed.training.gin_config import run_training
from newsembed.training.loop import Patience
from newsembed.training.options import CheckpointOptions
from toy_corpus import BOUNDS, LENGTHS, saved_params, tiny_bindings, write_corpus, write_vocabulary

TRAIN = ["runs/train_demo.gin"]
SCORES = {2: 0.1, 4: 0.5, 6: 0.4, 8: 0.3}  # after step 4 nothing is better


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    held_out = write_corpus(folder / "held_out", seed=1)
    with gin.unlock_config():
        gin.external_configurable(
            lambda: lambda snapshot: {"score": SCORES[snapshot.step]}, name="ScriptedEvaluator", module="tests"
        )
    return write_corpus(folder / "data"), write_vocabulary(folder / "vocab.txt"), held_out


def train(folder, corpus, steps=20, **changes):
    options = {
        "TRAIN_STEPS": steps,
        "MIXTURE_OR_TASK_NAME": "triplets",
        "DECAY": "constant",
        "INITIAL_CHECKPOINT_PATH": None,
        "EVAL_PERIOD": 2,
        "EVAL_DATA_DIR": corpus[2],
        "EVAL_RETRIEVAL_ROWS": 100,
        "KEEP_CHECKPOINTS": 1,
        "KEEP_BEST": "eval/score",
        "KEEP_BEST_MODE": "max",
        "PATIENCE": 2,
    } | changes
    return run_training(TRAIN, [*tiny_bindings(folder, *corpus[:2], **options), "EVALUATOR = @ScriptedEvaluator()"])


def evaluations(folder):
    return {record["step"]: record for record in read_rows(folder / "metrics.jsonl") if "eval/score" in record}


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    return folder, train(folder, corpus)


def test_a_run_ends_when_evaluations_bring_nothing_better(stopped):
    folder, result = stopped
    assert (result.step, result.interrupted, result.best_step) == (8, "", 4)
    assert list(evaluations(folder)) == [2, 4, 6, 8]
    assert sorted(os.listdir(folder / "checkpoints")) == ["4", "8"]


def test_a_resumed_run_ends_where_an_unbroken_one_does(stopped, corpus, tmp_path):
    assert train(tmp_path, corpus, 6).step == 6
    assert train(tmp_path, corpus).step == 8
    jax.tree.map(np.testing.assert_array_equal, saved_params(tmp_path, 8), saved_params(stopped[0], 8))


def test_evaluations_change_nothing_of_the_training(stopped, corpus, tmp_path):
    unseen = {"EVAL_PERIOD": 0, "EVAL_DATA_DIR": None, "EVAL_RETRIEVAL_ROWS": 0, "KEEP_BEST": None, "PATIENCE": 0}
    train(tmp_path, corpus, 8, **unseen)
    jax.tree.map(np.testing.assert_array_equal, saved_params(tmp_path, 8), saved_params(stopped[0], 8))


def test_retrieval_figures_equal_a_plain_search_over_all_held_out_rows(stopped, corpus):
    folder, _ = stopped
    record, reciprocals = evaluations(folder)[8], {}
    config = EncoderConfig(**json.loads((folder / "model.json").read_text())["encoder"])
    module, params = config.module(), {"params": saved_params(folder, 8)}
    for language in ("en", "de"):
        source = RecordSource(DataSet("triplets", language), BatchOptions(corpus[2], LENGTHS, 1, BOUNDS), 0)
        rows = [source[number] for number in range(len(source))]
        anchors, positives = (
            np.asarray(module.apply(params, np.stack([row[f"{role}_tokens"] for row in rows]), method="embed"))
            for role in ("anchor", "positive")
        )
        scores = anchors @ positives.T  # no document is in two rows
        ranks = 1 + np.sum(scores > np.diag(scores)[:, None], axis=1)
        reciprocals[language] = np.mean(1 / ranks)
        assert record[f"eval/retrieval_mrr/triplets/{language}"] == pytest.approx(np.mean(1 / ranks), abs=1e-6)
        assert record[f"eval/retrieval_recall_at_1/triplets/{language}"] == pytest.approx(np.mean(ranks == 1))
    assert record["eval/retrieval_mrr"] == pytest.approx(np.mean(list(reciprocals.values())), abs=1e-6)


@pytest.mark.parametrize(
    ("mode", "values", "ends"),
    [
        ("max", [1, 2, 2, 2], [False, False, False, True]),
        ("min", [3, 2, 4, 1, 1, 2], [False, False, False, False, False, True]),
    ],
)
def test_patience_counts_evaluations_without_a_better_figure(mode, values, ends):
    options = CheckpointOptions(keep_best="eval/loss", keep_best_mode=mode, patience=2)
    patience, found = Patience(options), []
    for value in values:
        patience.note({"eval/loss": float(value)})
        found.append(patience.is_exhausted)
        state = patience.add_to(b'{"triplets/en": "x"}')
        patience = Patience(options)  # every evaluation is in a run of its own
        assert patience.take_from(state) == b'{"triplets/en": "x"}'
    assert found == ends


def test_runs_without_patience_leave_the_state_as_it_was_and_read_the_other_form():
    one, other = (Patience(CheckpointOptions(keep_best="eval/loss", patience=count)) for count in (0, 3))
    other.note({"eval/loss": 1.0})
    assert one.add_to(b"{}") == one.take_from(b"{}") == other.take_from(b"{}") == b"{}"
    assert one.take_from(other.add_to(b"{}")) == b"{}"
    one.note({})
    assert not one.is_exhausted
