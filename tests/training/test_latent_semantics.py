"""The table that a static model starts from, against NumPy's singular vectors, and what a run does with it."""

import dataclasses
import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.training.latent_semantics import start_table
from newsembed.training.run import run_training
from toy_corpus import LENGTH, saved_params, tiny_bindings, write_corpus, write_vocabulary

CONFIG = EncoderConfig(
    vocab_size=30,
    hidden_size=6,
    num_layers=0,
    num_heads=1,
    mlp_size=1,
    max_length=20,
    embedding_size=6,
    num_topics=2,
    dropout_rate=0.0,
    norm="pre",
    positions="rotary",
    pooling="weighted",
    embedding_init="t5",
    lead_length=4,
    sublinear=True,
)


def fresh(config=CONFIG):
    encoder = NewsEncoder(config)
    params = nn.unbox(encoder.init(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]
    return encoder, {**params, "pooling_logits": jax.random.normal(jax.random.key(1), (config.vocab_size,))}


def texts(count=40):
    rng = np.random.default_rng(0)
    rows = rng.integers(5, 28, (count, 16)).astype(np.int32)  # pieces 28 and 29 stand nowhere
    rows[:, 12:] *= rng.integers(0, 2, (count, 1)).astype(np.int32)
    return [{"tokens": part, "segment_ids": (part != 0).astype(np.int32)} for part in np.split(rows, count // 8)]


def pairwise(batches):
    """The same texts, two to a row."""
    return [
        {
            name: np.concatenate([rows[::2], 2 * rows[1::2] if name == "segment_ids" else rows[1::2]], axis=1)
            for name, rows in batch.items()
        }
        for batch in batches
    ]


@pytest.mark.parametrize("devices", [1, 4])
def test_piece_vectors_are_the_singular_ones(devices):
    encoder, params = fresh()
    partitioner = Partitioner()
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    started = jax.tree.map(np.asarray, start_table(encoder.config, params, iter(texts()), partitioner, mesh))

    rows = np.concatenate([batch["tokens"] for batch in texts()])
    weights = np.asarray(encoder.apply({"params": params}, rows, method="pooling_weights"), np.float64)
    matrix = np.zeros((len(rows), CONFIG.vocab_size))
    np.add.at(matrix, (np.arange(len(rows))[:, None], rows), weights)
    matrix[:, 0] = 0
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    _, strengths, right = np.linalg.svd(matrix)
    expected = right[:6].T * strengths[:6] ** -0.75
    known = np.arange(CONFIG.vocab_size)[5:28]
    # Singular vectors are free in sign and order: what counts are the products of the pieces' vectors.
    scaled = (
        started["token_embedding"] * np.exp(started["pooling_logits"] - np.asarray(params["pooling_logits"]))[:, None]
    )
    cosines, wanted = ((array[known] @ array[known].T) for array in (scaled, expected))
    np.testing.assert_allclose(cosines / np.abs(cosines).max(), wanted / np.abs(wanted).max(), atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(started["token_embedding"][known], axis=1), 6**0.5, rtol=1e-5)


def test_packed_texts_count_one_by_one():
    encoder, params = fresh(dataclasses.replace(CONFIG, num_layers=1, positions="learned", max_length=40))
    partitioner = Partitioner()
    mesh = partitioner.make_mesh(jax.devices()[:1])
    alone, packed = (
        start_table(encoder.config, params, iter(batches), partitioner, mesh)
        for batches in (texts(), pairwise(texts()))
    )
    for name in ("token_embedding", "pooling_logits"):
        np.testing.assert_allclose(
            np.abs(alone[name]), np.abs(packed[name]), atol=1e-4
        )  # singular vectors are free in sign


def test_pieces_of_no_text_keep_their_direction_and_weigh_least():
    encoder, params = fresh()
    partitioner = Partitioner()
    started = start_table(encoder.config, params, iter(texts()), partitioner, partitioner.make_mesh(jax.devices()[:1]))
    np.testing.assert_array_equal(started["token_embedding"][28:], params["token_embedding"][28:])
    assert float(started["pooling_logits"][29]) == float(jnp.min(started["pooling_logits"]))
    assert started["embedding_head"] is params["embedding_head"]


@pytest.mark.parametrize(
    ("changes", "count", "message"),
    [
        (
            {"embedding_init": "bert"},
            40,
            "a start from latent semantics needs latent_semantics, and this news architecture offers attention, ",
        ),
        ({"pooling": "mean"}, 40, "a start from latent semantics needs piece_weights, latent_semantics,"),
        (
            {"hidden_size": 8, "num_heads": 1},
            8,
            r"WHITENING_ROWS: got 8 texts of 30 word pieces, expected more of both",
        ),
    ],
)
def test_what_has_no_such_start_is_refused(changes, count, message):
    config = dataclasses.replace(CONFIG, **changes)
    encoder, params = fresh(config)
    partitioner = Partitioner()
    with pytest.raises(InputError, match=message):
        start_table(encoder.config, params, iter(texts(count)), partitioner, partitioner.make_mesh(jax.devices()[:1]))


def test_a_run_starts_there_once(tmp_path):
    data, vocabulary = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")

    def trained(name, *steps, **changes):
        for count in steps:
            static = {
                "EncoderConfig.num_layers": 0,
                "adam.multiply_by_parameter_scale": True,
                "WHITENING_ROWS": 96,
                "DECAY": "constant",
            }
            static |= {"TRAIN_STEPS": count, "CHECKPOINT_PERIOD": 1} | changes
            run_training(["runs/train_static.gin"], tiny_bindings(tmp_path / name, data, vocabulary, **static))
        return saved_params(tmp_path / name, steps[-1])

    unbroken, resumed = trained("unbroken", 2), trained("resumed", 1, 2)
    jax.tree.map(np.testing.assert_array_equal, resumed, unbroken)
    assert json.loads((tmp_path / "unbroken" / "model.json").read_text())["text_length"] == LENGTH
    without = trained("without", 2, LATENT_SEMANTICS=False, TEXT_LENGTH=9)
    assert json.loads((tmp_path / "without" / "model.json").read_text())["text_length"] == 9
    assert np.abs(without["token_embedding"] - unbroken["token_embedding"]).max() > 0.5
    with pytest.raises(InputError, match=r"TEXT_LENGTH: got 17, expected 1 to 16, the architecture's positions"):
        trained("longer", 2, TEXT_LENGTH=17)


@pytest.mark.parametrize(
    ("gin_file", "changes", "message"),
    [
        ("runs/pretrain_small.gin", {"WHITENING_ROWS": 96}, "LATENT_SEMANTICS: got True in a run of pretraining"),
        ("runs/train_static.gin", {"WHITENING_ROWS": 0}, "LATENT_SEMANTICS: got True without texts"),
    ],
)
def test_a_run_that_cannot_start_there_says_so(tmp_path, gin_file, changes, message):
    data, vocabulary = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(InputError, match=message):
        run_training([gin_file], tiny_bindings(tmp_path / "model", data, vocabulary, LATENT_SEMANTICS=True, **changes))
    assert not (tmp_path / "model").exists()
