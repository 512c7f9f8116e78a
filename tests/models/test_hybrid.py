"""Windows and the lexical part: equal to a reference in NumPy, and the dense part is the news encoder's."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_methods import compiled
from drawn_parameters import drawn
from newsembed.models.encoders import Capability, HybridConfig, config_from_dict, named_kind
from small_encoders import small

NEWS = small(num_topics=5, dropout_rate=0.0, pooling="weighted", lead_length=5)
WORDS = {"embedding_size": 14, "lexical_size": 6, "lexical_lead_length": 4}
HYBRID = HybridConfig(**{field.name: getattr(NEWS, field.name) for field in dataclasses.fields(NEWS)} | WORDS)
TEXT = [2, 9, 17, 17, 30, 8, 22, 17, 11, 3]


def run(config, params, rows, method="embed"):
    return np.asarray(compiled(config, method)(params, jnp.array(rows)))


@pytest.mark.parametrize("pooling", ["weighted", "mean"])
def test_each_window_is_encoded_as_a_row_of_its_own(pooling):
    config = dataclasses.replace(NEWS, window_length=4, pooling=pooling)
    params = drawn(config)
    assert params["position_embedding"].shape == (4, 16)
    encoded = run(config, params, [TEXT], "encode")
    assert encoded.shape == (1, 10, 16)
    for start in (0, 4, 8):
        alone = run(config, params, [TEXT[start : start + 4]], "encode")
        np.testing.assert_allclose(encoded[:, start : start + 4], alone, atol=1e-5)


def test_the_heads_pool_all_windows_and_padding_does_not_count():
    config = dataclasses.replace(NEWS, window_length=4)
    params = drawn(config)
    embedded = run(config, params, [TEXT + [0, 0], TEXT[:3] + [0] * 9])
    hidden = run(config, params, [TEXT], "encode")[0]
    logits = np.asarray(params["pooling_logits"])[TEXT]
    weights = np.exp(logits) / (1 + np.arange(10) / 5)
    head = params["embedding_head"]
    expected = (weights @ hidden / weights.sum()) @ np.asarray(head["kernel"]) + np.asarray(head["bias"])
    np.testing.assert_allclose(embedded[0], expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_allclose(embedded[1], run(config, params, [TEXT[:3]])[0], atol=1e-5)


def test_the_embedding_holds_the_news_encoders_and_the_weighted_words():
    params = drawn(HYBRID)
    embedded = run(HYBRID, params, [TEXT])[0]
    share = 1 / (1 + np.exp(-float(params["lexical_gate"]))) * 10 / (10 + 64)
    dense = run(NEWS, {name: value for name, value in params.items() if "lexical" not in name}, [TEXT])[0]
    words = np.zeros(6)
    positions = 1 / (1 + np.arange(10) / 4)
    for piece in set(TEXT):
        mass = sum(position for position, token in zip(positions, TEXT, strict=True) if token == piece)
        weight = np.exp(float(params["lexical_logits"][piece]))
        words += weight * np.log1p(mass) * np.asarray(params["lexical_table"][piece])
    words /= np.linalg.norm(words)
    np.testing.assert_allclose(embedded[:8], np.sqrt(1 - share) * dense, atol=1e-5)
    np.testing.assert_allclose(embedded[8:], np.sqrt(share) * words, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(embedded), 1, atol=1e-6)


def test_short_texts_are_compared_by_their_meaning():
    params = drawn(HYBRID)
    rows = np.zeros((3, 12), np.int32)
    for row, count in enumerate((1, 5, 12)):
        rows[row, :count] = 9
    share = 1 / (1 + np.exp(-float(params["lexical_gate"])))
    parts = np.square(run(HYBRID, params, rows)[:, 8:]).sum(axis=1)
    np.testing.assert_allclose(parts, share * np.array([1 / 65, 5 / 69, 12 / 76]), atol=1e-5)


def test_a_text_without_words_has_no_lexical_part_and_a_finite_gradient():
    params, module = drawn(HYBRID), HYBRID.module()
    params["lexical_logits"][:5] = -200.0  # special tokens are not words
    row = jnp.array([[2, 1, 3, 0]])
    embedded = run(HYBRID, params, row)[0]
    assert np.all(embedded[8:] == 0)
    assert np.any(embedded[:8] != 0)
    gradient = jax.jit(jax.grad(lambda p: module.apply({"params": p}, row, method="embed").sum()))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_the_layers_read_the_context_and_the_lexical_part_reads_all():
    config = dataclasses.replace(HYBRID, context_length=6)
    params = drawn(config)
    whole, head = run(config, params, [TEXT])[0], run(config, params, [TEXT[:6]])[0]
    np.testing.assert_allclose(whole[:8] / np.linalg.norm(whole[:8]), head[:8] / np.linalg.norm(head[:8]), atol=1e-6)
    assert np.abs(whole[8:] - head[8:]).max() > 1e-3


def test_descriptions_are_read_as_written_and_folders_name_the_kind():
    config = dataclasses.replace(HYBRID, window_length=4, context_length=8)
    assert named_kind(config) == "hybrid"
    assert config_from_dict(json.loads(json.dumps(config.to_dict())), "hybrid") == config
    assert "window_length" not in NEWS.to_dict()


def test_what_transformers_cannot_hold_is_not_offered():
    assert Capability.HUGGING_FACE in NEWS.capabilities
    assert Capability.HUGGING_FACE not in HYBRID.capabilities
    windowed = dataclasses.replace(NEWS, window_length=4).capabilities
    assert NEWS.capabilities - windowed == {Capability.HUGGING_FACE, Capability.ATTENTION}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lexical_size": 14}, "lexical_size: got 14, expected less than embedding_size = 14"),
        ({"context_length": -1}, "context_length: got -1, expected an integer of at least 0"),
    ],
)
def test_shapes_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(HYBRID, **changes)
