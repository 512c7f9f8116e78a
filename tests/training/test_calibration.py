"""What a run computes instead of training, against NumPy: piece weights, decoder bias, whitened head, token table."""

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
from newsembed.training.calibration import Calibration, check_calibration
from newsembed.training.gin_config import run_training
from newsembed.training.options import CalibrationOptions
from small_encoders import static
from toy_architecture import MeanConfig
from toy_corpus import LENGTH, saved_params, tiny_bindings, write_corpus, write_sets, write_vocabulary


def calibration(rows, config=None, devices=1):
    partitioner = Partitioner()
    return Calibration(config, partitioner, partitioner.make_mesh(jax.devices()[:devices]), lambda: iter(rows))


@pytest.mark.parametrize("devices", [1, 4])
def test_rare_pieces_count_most(devices):
    rng = np.random.default_rng(0)
    rows = [{"tokens": rng.integers(0, 9, (8, 12)).astype(np.int32)} for _ in range(3)]
    params = {"pooling_logits": jnp.zeros(12), "other": jnp.ones(3)}
    weighed = calibration(rows, devices=devices).with_piece_weights(params)
    tokens = np.concatenate([row["tokens"] for row in rows]).ravel()
    counts = np.bincount(tokens[tokens > 0], minlength=12)
    np.testing.assert_allclose(np.exp(weighed["pooling_logits"]), 1e-3 / (1e-3 + counts / counts.sum()), rtol=1e-5)
    assert weighed["pooling_logits"][0] == weighed["pooling_logits"][11] == 0  # padding, and a piece that no row has
    assert weighed["other"] is params["other"]


@pytest.mark.parametrize("devices", [1, 4])
def test_the_bias_of_a_decoder_is_the_log_odds_that_a_text_has_a_word(devices):
    rng = np.random.default_rng(0)
    rows = [{"tokens": rng.integers(1, 9, (8, 12)).astype(np.int32)} for _ in range(3)]
    rows[0]["tokens"][1:4] = 0  # texts that are not there
    params = {"decoder_bias": jnp.zeros(12), "other": jnp.ones(3)}
    started = calibration(rows, devices=devices).with_decoder_bias(params)
    texts = [set(row.tolist()) - {0} for part in rows for row in part["tokens"] if row.any()]
    assert len(texts) == 21
    for word in range(1, 12):
        share = (sum(word in text for text in texts) + 0.5) / 22
        assert started["decoder_bias"][word] == pytest.approx(np.log(share / (1 - share)), rel=1e-5, abs=1e-6)
    assert started["other"] is params["other"]


ROWS, PIECE = 8, 20


def model(**changes):
    sizes = {"hidden_size": 8, "num_heads": 2, "num_layers": 1, "mlp_size": 16, "max_length": 48, "embedding_size": 8}
    ways = {"embedding_init": "t5", "pooling": "mean", "dropout_rate": 0.0}
    encoder = NewsEncoder(EncoderConfig(vocab_size=64, **(sizes | ways | changes)))
    return encoder, nn.unbox(jax.jit(encoder.init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]


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
    return calibration(rows, encoder.config).with_whitened_head(params)


def test_pooled_vectors_come_out_white():
    encoder, params = model()
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


def test_too_few_pieces_are_an_error():
    encoder, params = model(hidden_size=128, embedding_size=8)
    with pytest.raises(InputError, match="expected more than the model's width, 128"):
        whiten(encoder, params, batches(1))


def test_a_pretraining_run_ends_with_it_and_resumes_to_the_same(tmp_path, capsys):
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
        from newsembed.serving.encoder import load_model

        return np.asarray(load_model(str(tmp_path / folder)).params["embedding_head"]["kernel"])

    unbroken, resumed = head("one", 4), head("two", 2, 4)
    np.testing.assert_array_equal(unbroken, resumed)
    said = capsys.readouterr().err
    assert "computing the start" not in said
    assert said.count("computing the embedding head from 40 rows") == 3
    assert np.abs(unbroken).max() > 0.1  # at random it would be 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whitening_rows": 8}, r"whitening \(WHITENING_ROWS\) needs sequence, pooled_pieces.*\n.*WHITENING_ROWS to 0"),
        ({"latent_semantics": True}, "LATENT_SEMANTICS: got True without texts"),
    ],
)
def test_what_the_architecture_or_the_options_cannot_follow_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        check_calibration(MeanConfig(9), CalibrationOptions(**options), is_pretraining=False)
    check_calibration(MeanConfig(9), CalibrationOptions(), is_pretraining=True)
    with pytest.raises(InputError, match="WORD_VECTORS: got a file and LATENT_SEMANTICS"):
        CalibrationOptions(word_vectors="f", latent_semantics=True)


SIZES = {"hidden_size": 6, "max_length": 20, "num_topics": 2, "dropout_rate": 0.0}
CONFIG = static(30, **SIZES, embedding_init="t5", lead_length=4, sublinear=True)


def fresh(config=CONFIG):
    encoder = NewsEncoder(config)
    params = nn.unbox(jax.jit(encoder.init)(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]
    return encoder, {**params, "pooling_logits": jax.random.normal(jax.random.key(1), (config.vocab_size,))}


def texts(count=40):
    rng = np.random.default_rng(0)
    rows = rng.integers(5, 28, (count, 16)).astype(np.int32)  # pieces 28 and 29 stand nowhere
    rows[:, 12:] *= rng.integers(0, 2, (count, 1)).astype(np.int32)
    return [{"tokens": part, "segment_ids": (part != 0).astype(np.int32)} for part in np.split(rows, count // 8)]


@pytest.mark.parametrize("devices", [1, 4])
def test_piece_vectors_are_the_singular_ones(devices):
    encoder, params = fresh()
    started = jax.tree.map(np.asarray, calibration(texts(), encoder.config, devices).with_token_table(params))

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
    np.testing.assert_array_equal(started["token_embedding"][28:], params["token_embedding"][28:])  # of no text
    assert started["pooling_logits"][29] == started["pooling_logits"].min()


@pytest.mark.parametrize(
    ("changes", "count", "message"),
    [
        ({"pooling": "mean"}, 40, "a start from latent semantics needs piece_weights, latent_semantics,"),
        ({"hidden_size": 8, "num_heads": 1}, 8, "WHITENING_ROWS: got 8 texts of 30 word pieces, expected more of both"),
    ],
)
def test_what_has_no_such_start_is_refused(changes, count, message):
    config = dataclasses.replace(CONFIG, **changes)
    encoder, params = fresh(config)
    with pytest.raises(InputError, match=message):
        calibration(texts(count), encoder.config).with_token_table(params)


def test_a_run_starts_there_once_and_says_what_it_does_before_its_steps(tmp_path, capsys):
    data, vocabulary = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")

    def trained(name, *steps, **changes):
        for count in steps:
            static = {"EncoderConfig.num_layers": 0, "adam.multiply_by_parameter_scale": True, "WHITENING_ROWS": 96}
            static |= {"DECAY": "constant", "TRAIN_STEPS": count, "CHECKPOINT_PERIOD": 1} | changes
            run_training(["runs/train_static.gin"], tiny_bindings(tmp_path / name, data, vocabulary, **static))
        return saved_params(tmp_path / name, steps[-1])

    unbroken, resumed = trained("unbroken", 2), trained("resumed", 1, 2)
    said = [" ".join(line.split()[:3]) for line in capsys.readouterr().err.splitlines()]
    begun = [line for line in said if line in ("computing the start", "compiling the step")]
    assert begun == ["computing the start", "compiling the step"] * 2 + ["compiling the step"]
    jax.tree.map(np.testing.assert_array_equal, resumed, unbroken)
    assert json.loads((tmp_path / "unbroken" / "model.json").read_text())["text_length"] == LENGTH
    with pytest.raises(InputError, match=r"TEXT_LENGTH: got 17, expected 1 to 16, the architecture's positions"):
        trained("longer", 2, TEXT_LENGTH=17)
    assert unbroken["pooling_logits"].min() < -1  # frequent pieces of a small vocabulary
