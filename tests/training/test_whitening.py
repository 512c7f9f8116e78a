"""The whitened embedding head against NumPy."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from newsembed.errors import InputError
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.training.calibration import check_calibration
from newsembed.training.run import run_training
from newsembed.training.whitening import whiten_embedding_head
from toy_corpus import LENGTH, tiny_bindings, write_sets, write_vocabulary

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from toy_architecture import MeanConfig

ROWS, PIECE = 8, 20


def model(**changes):
    sizes = {
        "vocab_size": 64,
        "hidden_size": 8,
        "num_heads": 2,
        "num_layers": 1,
        "mlp_size": 16,
        "max_length": 48,
        "embedding_size": 8,
    }
    encoder = NewsEncoder(
        EncoderConfig(**(sizes | {"embedding_init": "t5", "pooling": "mean", "dropout_rate": 0.0} | changes))
    )
    return encoder, nn.unbox(encoder.init(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]


def batches(count=6):
    """Rows of two pieces of 20 tokens, a piece too short to count, and padding."""
    rng = np.random.default_rng(0)
    segments = np.repeat([1, 2, 3, 0], [PIECE, PIECE, 3, 5])
    positions = np.concatenate([np.arange(PIECE), np.arange(PIECE), np.arange(3), np.zeros(5)])
    for _ in range(count):
        tokens = rng.integers(5, 64, (ROWS, len(segments))) * (segments > 0)
        rows = {
            "tokens": tokens,
            "segment_ids": np.tile(segments, (ROWS, 1)),
            "positions": np.tile(positions, (ROWS, 1)),
        }
        yield {name: values.astype(np.int32) for name, values in rows.items()}


def whiten(encoder, params, rows):
    partitioner = Partitioner()
    mesh = partitioner.make_mesh(jax.devices()[:1])
    placed = jax.device_put(params, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))
    return whiten_embedding_head(encoder.config, placed, rows, partitioner, mesh)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_pooled_vectors_come_out_white(pooling):
    encoder, params = model(pooling=pooling)
    whitened = whiten(encoder, params, batches())
    pieces = np.concatenate([rows["tokens"][:, start : start + PIECE] for rows in batches() for start in (0, PIECE)])
    hidden = encoder.apply({"params": params}, pieces, method="encode")
    pooled = np.asarray(encoder.apply({"params": params}, hidden, pieces, method="pool"), np.float64)
    head = whitened["embedding_head"]
    covariance = np.cov(pooled.T, bias=True)
    variances, directions = np.linalg.eigh(covariance)
    kept = variances / (variances + 1e-3 * variances.mean())
    made = (pooled @ np.asarray(head["kernel"]) + np.asarray(head["bias"])) * np.sqrt(8)
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(made.T, bias=True), np.diag(kept[::-1]), atol=2e-3)
    others = [name for name in params if name != "embedding_head"]
    assert all(
        jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), params[name], whitened[name])) for name in others
    )


@pytest.mark.parametrize("size", [4, 12])
def test_heads_of_other_widths(size):
    encoder, params = model(embedding_size=size)
    embeddings = encoder.apply(
        {"params": whiten(encoder, params, batches())}, next(batches())["tokens"], method="embed"
    )
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    assert (np.asarray(embeddings)[:, min(size, 8) :] == 0).all()


def test_too_few_pieces_are_an_error():
    encoder, params = model(hidden_size=128, embedding_size=8)
    with pytest.raises(InputError, match="expected more than the model's width, 128"):
        whiten(encoder, params, batches(1))


def test_a_pretraining_run_ends_with_it_and_resumes_to_the_same(tmp_path):
    rng = np.random.default_rng(0)
    row = lambda: {  # noqa: E731
        "tokens": [2, *map(int, rng.integers(5, 64, LENGTH - 1))],
        "segment_ids": [1] * LENGTH,
        "positions": list(range(LENGTH)),
        "word_ids": [0, *range(1, LENGTH)],
    }
    data = write_sets(tmp_path / "data", {"mlm/en": [row() for _ in range(40)]})
    vocabulary = write_vocabulary(tmp_path / "vocab.txt")

    def head(folder, *steps):
        for count in steps:
            bindings = tiny_bindings(
                tmp_path / folder, data, vocabulary, TRAIN_STEPS=count, WHITENING_ROWS=40, DECAY="constant"
            )
            run_training(["runs/pretrain_demo.gin"], bindings)
        from newsembed.serving.checkpoint import load_model

        return np.asarray(load_model(str(tmp_path / folder)).params["embedding_head"]["kernel"])

    unbroken, resumed = head("one", 4), head("two", 2, 4)
    np.testing.assert_array_equal(unbroken, resumed)
    assert np.abs(unbroken).max() > 0.1  # at random it would be 0.02


def test_an_architecture_without_pooled_vectors_is_refused():
    with pytest.raises(
        InputError, match=r"whitening \(WHITENING_ROWS\) needs sequence, pooled_pieces.*\n.*Set WHITENING_ROWS to 0"
    ):
        check_calibration(MeanConfig(9), whitening_rows=8, latent_semantics=False, is_pretraining=False)
    check_calibration(MeanConfig(9), whitening_rows=0, latent_semantics=False, is_pretraining=True)
