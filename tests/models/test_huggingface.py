"""Checkpoints and values of config.json: old names, and what is refused by name."""

import dataclasses
import re

import jax
import numpy as np
import pytest
from newsembed.models.huggingface import UnsupportedModelError, encoder_config, huggingface_config, read_params
from reference_encoders import CONFIGS, random_arrays

LAYER = "bert.encoder.layer"


def test_old_names_of_norms_and_a_checkpoint_without_head():
    values = CONFIGS["bert"]
    config = encoder_config(values)
    arrays = random_arrays(values)
    expected, _ = read_params(values, config, arrays)
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    old = {re.sub("|".join(older), lambda found: older[found[0]], name): array for name, array in arrays.items()}
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
        ("bert", {"is_decoder": True}, "is_decoder: got True"),
        ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings: got False"),
        ("bert", {"hidden_size": None}, "hidden_size: got None, expected an integer"),
        ("modernbert", {"attention_bias": True}, "attention_bias: got .* expected all of them true or all false"),
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
            lambda arrays: arrays.pop(f"{LAYER}.1.output.dense.bias"),
            "encoder.layer.1.output.dense.bias: the array is missing",
        ),
        (
            lambda arrays: arrays.update({f"{LAYER}.0.intermediate.dense.weight": np.zeros((8, 16), np.float32)}),
            r"intermediate.dense.weight: got shape \[8, 16\], expected \[24, 16\]",
        ),
        (
            lambda arrays: arrays.update({f"{LAYER}.4.output.dense.bias": np.zeros(16, np.float32)}),
            "encoder.layer.4.output.dense.bias: got 1 arrays that config.json does not account for",
        ),
        (
            lambda arrays: arrays.update({"cls.predictions.decoder.weight": np.zeros((30, 16), np.float32)}),
            "decoder.weight: it is not the token table",
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


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gelu", "gelu"), ("gelu_python", "gelu"), ("gelu_new", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh")],
)
def test_activations_have_one_meaning(theirs, ours):
    config = encoder_config(CONFIGS["bert"] | {"hidden_act": theirs})
    assert config.activation == ours
    assert encoder_config(huggingface_config(config)) == config
