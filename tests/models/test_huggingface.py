"""Encoders of Hugging Face equal their papers in plain NumPy, with padding, and are exported as they were imported."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.formats.tokenizer_files import token_order
from newsembed.models.encoders.news import NewsEncoder
from newsembed.models.huggingface import (
    UnsupportedModelError,
    encoder_config,
    huggingface_config,
    plain_heads,
    read_params,
    reorder_tokens,
    write_params,
)
from reference_encoders import CONFIGS, PAD, PREFIXES, SPECIALS, forward, random_arrays

KINDS = list(CONFIGS)


def padded_rows(kind, lengths=(14, 9, 1)):
    rng = np.random.default_rng(3)
    rows = np.full((len(lengths), max(lengths)), PAD[kind])
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = rng.choice(np.setdiff1d(np.arange(30), [PAD[kind]]), length)
    return rows


def imported(kind, **changes):
    values = CONFIGS[kind]
    config = encoder_config(values)
    params, ignored = read_params(values, config, random_arrays(values))
    assert ignored == []
    order = token_order(SPECIALS[kind], config.vocab_size)
    heads = plain_heads(config)
    return dataclasses.replace(config, **changes), {**heads, **reorder_tokens(params, order)}, order


@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_encoder_equals_the_reference(kind):
    config, params, order = imported(kind)
    rows = padded_rows(kind)
    hidden, logits = forward(CONFIGS[kind], random_arrays(CONFIGS[kind]), rows)
    tokens = jnp.asarray(np.argsort(order)[rows], jnp.int32)  # their ids as ours
    encoder = NewsEncoder(config)

    @jax.jit
    def run(params):
        found = encoder.apply({"params": params}, tokens, method="encode")
        return found, encoder.apply({"params": params}, found, method="mlm_logits")

    found, found_logits = run(params)
    real = rows != PAD[kind]
    np.testing.assert_allclose(found[real], hidden[real], atol=1e-4)
    np.testing.assert_allclose(found_logits[real], logits[real][:, order], atol=1e-4)


@pytest.mark.parametrize("kind", ["xlm-roberta", "modernbert"])
def test_packed_pieces_equal_rows_of_their_own(kind):
    config, params, order = imported(kind)
    pieces = [row[row != PAD[kind]] for row in padded_rows(kind, (9, 4))]
    packed = [np.concatenate([array, [0]]).astype(np.int32)[None] for array in (
        np.argsort(order)[np.concatenate(pieces)], np.repeat([1, 2], [9, 4]), np.r_[0:9, 0:4])]  # fmt: skip
    hidden = jax.jit(lambda params: NewsEncoder(config).apply({"params": params}, *packed, method="encode"))(params)[0]
    for start, piece in ((0, pieces[0]), (9, pieces[1])):
        expected, _ = forward(CONFIGS[kind], random_arrays(CONFIGS[kind]), piece[None])
        np.testing.assert_allclose(hidden[start : start + len(piece)], expected[0], atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_imported_parameters_are_those_that_flax_makes(kind):
    config, params, _ = imported(kind)
    made = jax.eval_shape(lambda: NewsEncoder(config).init(jax.random.key(0), jnp.ones((1, 4), jnp.int32)))["params"]
    shapes = jax.tree.map(
        lambda array: array.shape,
        jax.tree.map(lambda box: box.value, made, is_leaf=lambda leaf: hasattr(leaf, "names")),
    )
    assert jax.tree.map(np.shape, params) == shapes


@pytest.mark.parametrize("kind", ["bert", "megatron-bert", "modernbert"])
def test_what_is_written_reads_back(kind):
    values = CONFIGS[kind]
    config = encoder_config(values)
    params, _ = read_params(values, config, random_arrays(values))
    written = huggingface_config(config)
    assert encoder_config(written) == config
    arrays = write_params(written, config, params)
    again, _ = read_params(written, config, arrays)
    for name in again:
        jax.tree.map(np.testing.assert_array_equal, again[name], params[name])
    theirs = {name.removeprefix(PREFIXES[kind]): array.shape for name, array in random_arrays(values).items()}
    assert {name: array.shape for name, array in arrays.items()}.items() <= theirs.items()


def test_old_names_of_norms_and_a_checkpoint_without_head():
    values = CONFIGS["bert"]
    config = encoder_config(values)
    arrays = random_arrays(values)
    expected, _ = read_params(values, config, arrays)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in arrays.items()
    }
    found, _ = read_params(values, config, old)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    body = {name.removeprefix("bert."): array for name, array in arrays.items() if name.startswith("bert.")}
    body |= {"pooler.dense.weight": np.zeros((16, 16), np.float32), "embeddings.position_ids": np.arange(20)[None]}
    found, ignored = read_params(values, config, body)
    assert ignored == ["pooler.dense.weight"]
    assert set(expected) - set(found) == {"mlm_transform", "mlm_norm", "mlm_bias"}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("bert", {"model_type": "gpt2"}, "model_type: got 'gpt2', expected one of bert, roberta"),
        ("bert", {"hidden_act": "relu"}, "hidden_act: got 'relu', expected one of gelu"),
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type: got 'relative_key', expected 'absolute'",
        ),
        ("bert", {"is_decoder": True}, "is_decoder: got True"),
        ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings: got False"),
        ("bert", {"hidden_size": None}, "hidden_size: got None, expected an integer"),
        ("bert", {"num_attention_heads": 3}, "hidden_size: got 16, expected a multiple of num_heads = 3"),
        ("modernbert", {"attention_bias": True}, "attention_bias: got .* expected all of them true or all false"),
        ("modernbert", {"layer_types": ["full_attention"] * 4}, "layer_types"),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type 'yarn'"),
    ],
)
def test_what_the_encoder_cannot_compute_is_refused(kind, changes, message):
    with pytest.raises(UnsupportedModelError, match=message):
        encoder_config(CONFIGS[kind] | changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda arrays: arrays.pop("bert.encoder.layer.1.output.dense.bias"),
            "encoder.layer.1.output.dense.bias: the array is missing",
        ),
        (
            lambda arrays: arrays.update(
                {"bert.encoder.layer.0.intermediate.dense.weight": np.zeros((8, 16), np.float32)}
            ),
            r"intermediate.dense.weight: got shape \[8, 16\], expected \[24, 16\]",
        ),
        (
            lambda arrays: arrays.update({"bert.encoder.layer.4.output.dense.bias": np.zeros(16, np.float32)}),
            "encoder.layer.4.output.dense.bias: got 1 arrays that config.json does not account for",
        ),
        (
            lambda arrays: arrays.update({"cls.predictions.decoder.weight": np.zeros((30, 16), np.float32)}),
            "decoder.weight: it is not the token table",
        ),
        (
            lambda arrays: arrays.pop("cls.predictions.transform.dense.bias"),
            "transform.dense.bias: the array is missing",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message):
    values = CONFIGS["bert"]
    arrays = random_arrays(values)
    change(arrays)
    with pytest.raises(UnsupportedModelError, match=message):
        read_params(values, encoder_config(values), arrays)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("bert", {"mlp": "gated"}), ("megatron-bert", {"biases": False}), ("modernbert", {"positions": "learned"})],
)
def test_what_transformers_has_no_class_for_is_refused(kind, changes):
    config = dataclasses.replace(encoder_config(CONFIGS[kind]), **changes)
    with pytest.raises(UnsupportedModelError, match="no class that computes this encoder"):
        huggingface_config(config)
