"""NTDV over its translators: against float64 NumPy, sizes, sums of heads, languages, padding and export."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_methods import compiled
from drawn_parameters import drawn
from newsembed.models.architecture import Architecture
from newsembed.models.encoders import AttentiveConfig, BilingualConfig, Capability, config_from_dict
from newsembed.models.recurrence import Gru
from scipy.special import expit as sigmoid
from scipy.special import softmax

CONFIG = BilingualConfig(40, max_length=32, token_size=6, hidden_size=5, vector_size=4, num_heads=3)
SOURCE = [2, 9, 17, 17, 30, 8, 3]
TARGET = [2, 12, 39, 5, 6, 21]


@pytest.fixture(scope="module")
def params():
    return drawn(CONFIG)


def run(params, method, *arrays, translator=(), config=CONFIG):
    return jax.tree.map(np.asarray, compiled(config, method, *translator)(params, *arrays))


def rows(*texts, length=None):
    width = length or max(map(len, texts))
    return jnp.array([text + [0] * (width - len(text)) for text in texts], jnp.int32)


def dense(params, values):
    return values @ np.float64(params["kernel"]) + np.float64(params["bias"])


def gru_step_by_hand(params, state, inputs):
    reset, update, candidate = np.split(inputs, 3)
    of_reset, of_update, of_candidate = np.split(state @ np.float64(params["recurrent"]), 3)
    update = sigmoid(update + of_update)
    inner = sigmoid(reset + of_reset) * (of_candidate + np.float64(params["candidate_bias"]))
    return update * state + (1 - update) * np.tanh(candidate + inner)


def gru_by_hand(params, inputs, order):
    """States by place of one row [L, I], read in this order."""
    state, found = np.zeros(len(params["candidate_bias"])), {}
    for place in order:
        state = gru_step_by_hand(params, state, dense(params["inputs"], inputs[place]))
        found[place] = state
    return np.stack([found[place] for place in sorted(found)])


def encoded_by_hand(params, tokens):
    words = np.float64(params["token_embedding"])[tokens]
    both = [
        gru_by_hand(params["encoder"][name], words, order)
        for name, order in (("forward", range(len(tokens))), ("backward", range(len(tokens) - 1, -1, -1)))
    ]
    return np.concatenate(both, axis=1)


def written_by_hand(params, states, inputs):
    decoder = params["decoder"]
    keys = dense(decoder["keys"], states)
    state = np.tanh(dense(decoder["first_state"], states.mean(axis=0)))
    found = []
    for token in inputs:
        word = np.float64(decoder["token_embedding"])[token]
        weights = softmax(np.tanh(keys + state @ np.float64(decoder["query"])) @ np.float64(decoder["scores"]))
        context = weights @ states
        given = dense(decoder["tokens"], word) + context @ np.float64(decoder["context"])
        state = gru_step_by_hand(decoder, state, given)
        found.append(np.tanh(dense(decoder["readout"], np.concatenate([state, word, context]))))
    return np.stack(found)


def read_by_hand(params, tokens, number):
    """P [R, D] and the states for the decoder [L, 2 H] of one text."""
    encoded = encoded_by_hand(params[f"translators_{number}"], tokens)
    states = gru_by_hand(params["shared_recurrence"], encoded, range(len(tokens)))
    query, key, value = np.split(dense(params["shared_heads"], states), 3, axis=1)
    size, means = CONFIG.vector_size, []
    for head in range(CONFIG.num_heads):
        q, k, v = (part[:, head * size : (head + 1) * size] for part in (query, key, value))
        means.append((softmax(q @ k.T / np.sqrt(size), axis=-1) @ v).mean(axis=0))
    matrix = np.stack(means)
    wide = np.concatenate([states, np.broadcast_to(matrix.sum(axis=0), (len(tokens), size))], axis=1)
    return matrix, dense(params["shared_states"], wide)


@pytest.mark.parametrize("number", [0, 1])
def test_reading_and_writing_equal_numpy(params, number):
    reading = jax.tree.map(jnp.asarray, run(params, "read", rows(SOURCE, TARGET, length=9), translator=[number]))
    written = run(params, "write", reading, rows(TARGET, SOURCE), translator=[number])
    for row, (text, target) in enumerate([(SOURCE, TARGET), (TARGET, SOURCE)]):
        matrix, states = read_by_hand(params, text, number)
        np.testing.assert_allclose(reading.sentence[row], matrix.ravel(), atol=1e-5)
        np.testing.assert_allclose(reading.states[row, : len(text)], states, atol=1e-5)
        expected = written_by_hand(params[f"translators_{number}"], states, target)
        np.testing.assert_allclose(written[row, : len(target)], expected, atol=1e-5)
    np.testing.assert_array_equal(reading.states[1, len(TARGET) :], 0.0)


def test_the_sum_is_that_of_the_parts_side_by_side(params):
    assert (BilingualConfig(9).embedding_size, BilingualConfig(9, vector="sum").embedding_size) == (4096, 1024)
    beside = run(params, "sentence", rows(SOURCE, TARGET))
    total = beside.reshape(2, CONFIG.num_heads, CONFIG.vector_size).sum(axis=1)
    as_sum = run(params, "embed", rows(SOURCE, TARGET), config=dataclasses.replace(CONFIG, vector="sum"))
    np.testing.assert_allclose(as_sum, total / np.linalg.norm(total, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(
        run(params, "embed", rows(SOURCE, TARGET)), beside / np.linalg.norm(beside, axis=1, keepdims=True), atol=1e-6
    )


def test_the_translator_that_does_not_write_a_language_reads_it(params):
    scores = np.zeros(40, np.float32)
    scores[[9, 12]] = -1.0, 1.0  # SOURCE is in language 0 and TARGET in language 1
    params = {**params, "language_scores": jnp.array(scores)}
    np.testing.assert_array_equal(run(params, "language_logits", rows(SOURCE, TARGET)), [-1.0, 1.0])
    found = run(params, "sentence", rows(SOURCE, TARGET))
    for row, (text, reader) in enumerate([(SOURCE, 1), (TARGET, 0)]):
        np.testing.assert_allclose(found[row], read_by_hand(params, text, reader)[0].ravel(), atol=1e-5)


def test_padding_changes_nothing_and_an_empty_text_is_zero(params):
    narrow = run(params, "embed", rows(SOURCE))
    wide = run(params, "embed", rows(SOURCE, [], length=12))
    np.testing.assert_allclose(wide[0], narrow[0], atol=1e-5)
    np.testing.assert_array_equal(wide[1], 0.0)
    reading = jax.tree.map(jnp.asarray, run(params, "read", rows([], length=4), translator=[0]))
    assert np.isfinite(run(params, "write", reading, rows(TARGET), translator=[0])).all()


def test_the_number_of_parameters_follows_from_the_thesis_s_sizes():
    config = BilingualConfig(85_000)
    shapes = jax.eval_shape(config.module().init, jax.random.key(0), jnp.ones((1, 3), jnp.int32))["params"]
    count = {name: sum(array.size for array in jax.tree.leaves(part)) for name, part in nn.unbox(shapes).items()}
    translator = AttentiveConfig(85_000)
    alone = jax.eval_shape(translator.module().init, jax.random.key(0), jnp.ones((1, 3), jnp.int32))
    assert count["translators_0"] == count["translators_1"] == sum(array.size for array in jax.tree.leaves(alone))
    size = 1024
    assert count["shared_recurrence"] == 3 * size * (2 * size + size + 1) + size
    assert count["shared_heads"] == 3 * 4 * size * (size + 1)
    assert count["shared_states"] == 2 * size * (2 * size + 1)
    assert count["language_scores"] == 85_000


def test_the_configuration_survives_json():
    assert isinstance(CONFIG, Architecture)
    assert config_from_dict(CONFIG.to_dict(), CONFIG.kind) == CONFIG
    assert CONFIG.capabilities == {Capability.BILINGUAL, Capability.PARTS}
    with pytest.raises(ValueError, match="BilingualConfig.vector: got 'mean'"):
        BilingualConfig(40, vector="mean")
    with pytest.raises(ValueError, match="BilingualConfig.num_heads"):
        BilingualConfig(40, num_heads=0)


def test_a_gru_is_flax_s_and_padding_changes_no_state():
    size, rng = 4, np.random.default_rng(0)
    inputs, lengths = jnp.array(rng.normal(size=(3, 6, 5)), jnp.float32), [6, 2, 4]
    is_token = jnp.arange(6)[None] < jnp.array(lengths)[:, None]
    module = Gru(size, jnp.float32)
    params = nn.unbox(jax.jit(module.init)(jax.random.key(0), inputs, is_token)["params"])
    params["candidate_bias"] = jnp.arange(4.0)
    kernels, biases = (np.split(params["inputs"][name], 3, axis=-1) for name in ("kernel", "bias"))
    recurrent = np.split(params["recurrent"], 3, axis=1)
    theirs = {f"i{gate}": {"kernel": kernels[n], "bias": biases[n]} for n, gate in enumerate("rzn")}
    theirs |= {f"h{gate}": {"kernel": recurrent[n]} for n, gate in enumerate("rzn")}
    theirs["hn"]["bias"] = params["candidate_bias"]
    states = jax.jit(module.apply)({"params": params}, inputs, is_token)
    cell = jax.jit(nn.GRUCell(size).apply)
    for row, length in enumerate(lengths):
        state = jnp.zeros((1, size))
        for place in range(length):
            state, _ = cell({"params": theirs}, state, inputs[row, place][None])
            np.testing.assert_allclose(states[row, place], state[0], atol=1e-6)
        np.testing.assert_array_equal(states[row, length:], np.broadcast_to(states[row, length - 1], (6 - length, 4)))
