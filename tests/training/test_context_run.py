"""A run of the context encoder: step 0 is the static model, evaluated and saved; groups have their own rates."""

import os

import gin
import jax
import numpy as np
import pytest
from json_lines import read_rows
from newsembed.training.gin_config import run_training
from toy_corpus import bindings_of, saved_params, write_corpus, write_vocabulary

SCORES = {0: 0.5, 2: 0.4, 4: 0.3}  # no step is better than the table


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zero")
    with gin.unlock_config():
        gin.external_configurable(
            lambda: lambda snapshot: {"score": SCORES[snapshot.step]}, name="TableIsBest", module="tests"
        )
    write_corpus(folder / "data", count=60)
    write_vocabulary(folder / "vocab.txt")
    return folder, run(folder, folder / "model")


def run(folder, model):
    sizes = {"hidden_size": 8, "embedding_size": 8, "max_length": 64}
    sizes |= {f"context_{name}": 8 for name in ("size", "mlp_size", "window")} | {
        "context_layers": 1,
        "context_heads": 2,
    }
    values = {f"ContextConfig.{name}": size for name, size in sizes.items()} | {
        "EVAL_DATA_DIR": None,
        "EVAL_RETRIEVAL_ROWS": 0,
        "TASK_FEATURE_LENGTHS": dict.fromkeys(("anchor_tokens", "positive_tokens", "negative_tokens"), 16),
        "TRAIN_STEPS": 4,
        "BATCH_DAYS": 0,
        "EVAL_PERIOD": 2,
        "KEEP_CHECKPOINTS": 1,
        "KEEP_BEST": "eval/score",
        "TEXT_LENGTH": 32,
        "WHITENING_ROWS": 64,
        "NUM_TOPICS": 3,
        "adam.trainable": {"context_": 1.0, "pooling_logits": 0.5},
    }
    bindings = bindings_of(model, str(folder / "data"), str(folder / "vocab.txt"), **values)
    return run_training(["runs/train_context.gin"], [*bindings, "EVALUATOR = @TableIsBest()"])


def test_the_start_is_evaluated_saved_and_kept_where_nothing_beats_it(trained):
    folder, result = trained
    assert (result.step, result.best_step) == (4, 0)
    assert sorted(os.listdir(folder / "model" / "checkpoints")) == ["0", "4"]
    records = read_rows(folder / "model" / "metrics.jsonl")
    assert {record["step"]: record["eval/score"] for record in records if "eval/score" in record} == SCORES


def test_the_saved_start_has_the_table_of_latent_semantics(trained):
    lengths = np.linalg.norm(saved_params(trained[0] / "model", 0)["token_embedding"][5:], axis=1)
    np.testing.assert_allclose(lengths[lengths < 2.9], 8**0.5, rtol=1e-4)  # from latent semantics, not at random


def test_only_the_groups_with_a_rate_move(trained):
    before, after = (saved_params(trained[0] / "model", step) for step in (0, 4))
    moved = {name for name in before if not jax.tree.all(jax.tree.map(np.array_equal, before[name], after[name]))}
    assert {"context_gain", "context_vector", "context_layers_0", "pooling_logits"} <= moved
    assert not moved & {"token_embedding", "embedding_head", "output_norm"}
