"""Which kernel is chosen where, and that lengths, masks and the TPU kernel say the same as plain NumPy."""

import dataclasses
import logging
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu
from newsembed.models import attention
from newsembed.models.attention import (
    attend,
    attention_probabilities,
    bucket_starts,
    choose_attention,
    current_platform,
    relative_bias,
    rotary_tables,
    rotate,
    visible,
)
from newsembed.models.encoders.news import EncoderConfig

CONFIG = EncoderConfig(
    vocab_size=40, hidden_size=128, num_layers=2, num_heads=2, mlp_size=32, max_length=256, dtype="bfloat16"
)
LOCAL = {"local_distance": 4, "global_every": 2}
RELATIVE = {"relative_buckets": 8}


@pytest.mark.parametrize(
    ("changes", "length", "platform", "expected"),
    [
        ({}, 128, "cpu", "xla"),
        ({}, 128, "cuda", "cudnn"),
        ({"dtype": "float32"}, 128, "cuda", "xla"),
        ({}, 127, "cuda", "xla"),
        ({"num_heads": 32}, 128, "cuda", "xla"),
        ({"hidden_size": 512}, 128, "cuda", "xla"),
        ({"hidden_size": 256}, 128, "cuda", "cudnn"),  # heads of 128 units
        ({"hidden_size": 272}, 128, "cuda", "xla"),  # of 136
        ({"hidden_size": 232}, 128, "cuda", "xla"),  # of 116
        (RELATIVE, 128, "cuda", "xla"),
        ({}, 256, "tpu", "flash"),
        ({}, 96, "tpu", "xla"),
        (LOCAL, 128, "tpu", "xla"),
        (RELATIVE, 128, "tpu", "xla"),
    ],
)
def test_auto_takes_what_the_platform_has_and_says_so(changes, length, platform, expected, caplog):
    caplog.set_level(logging.INFO, logger=attention.__name__)
    assert choose_attention(dataclasses.replace(CONFIG, **changes), length, platform) == expected
    assert caplog.messages == [f"attention: {expected} for rows of {length} tokens on {platform}"]


def states(length, seed=0, dtype=jnp.float32):
    return jax.random.normal(jax.random.key(seed), (3, 2, length, 2, 16), dtype)


TOKENS = jnp.array([[2, 7, 8, 9, 3, 0, 0, 0], [2, 5, 6, 7, 8, 9, 10, 3]])
SEGMENTS = jnp.array([[1, 1, 1, 2, 2, 0, 0, 0], [1, 1, 1, 1, 2, 2, 3, 3]])


@pytest.mark.parametrize("distance", [None, 1])
def test_probabilities_are_those_of_a_softmax_with_its_bias(distance):
    query, key, value = states(8)
    bias = jax.random.normal(jax.random.key(5), (1, 2, 8, 8))
    seen = visible(TOKENS, SEGMENTS)
    scores = np.einsum("bqnd,bknd->bnqk", *(np.asarray(one, np.float64) for one in (query, key))) / 4 + bias
    scores = np.where(np.asarray(seen.mask(distance)), scores, -np.inf)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    found = attention_probabilities(query, key, seen, distance=distance, bias=bias)
    assert (found.dtype, found.shape) == (jnp.float32, (2, 2, 8, 8))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    attended = attend(query, key, value, seen, kernel="xla", distance=distance, bias=bias)
    np.testing.assert_allclose(attended, np.einsum("bnqk,bknd->bqnd", expected, value), atol=1e-5)
    plain_found = attention_probabilities(query, key, seen, distance=distance, global_tokens=8)
    everything = attention_probabilities(query, key, seen)
    np.testing.assert_allclose(plain_found, everything, atol=1e-6)


@pytest.mark.parametrize("buckets", [8, 16, 32, 64])
def test_buckets_of_relative_positions_are_those_of_t5(buckets):
    starts, exact = bucket_starts(buckets), buckets // 4
    assert len(starts) == buckets // 2
    for distance in range(300):
        number = distance
        if distance >= exact:  # in floating point, with room for its rounding
            share = math.log(distance / exact) / math.log(128 / exact)
            number = min(exact + math.floor(share * exact + 1e-9), buckets // 2 - 1)
        assert sum(distance >= start for start in starts) - 1 == number, distance


def test_the_bias_of_relative_positions_is_looked_up_by_side_and_distance():
    table = jnp.arange(24.0).reshape(8, 3)
    found = np.asarray(relative_bias(table, 6, "float32"))
    assert found.shape == (1, 3, 6, 6)
    starts = [0, 1, 2, 16]  # of eight buckets: two exact ones, then a geometric step to 128
    assert bucket_starts(8) == starts
    for query, key in np.ndindex(6, 6):
        bucket = sum(abs(key - query) >= start for start in starts) - 1 + (4 if key > query else 0)
        np.testing.assert_array_equal(found[0, :, query, key], table[bucket])
    assert relative_bias(table, 2, "bfloat16").dtype == jnp.bfloat16


@pytest.mark.parametrize(
    ("backend", "version", "expected"),
    [("cpu", "", "cpu"), ("gpu", "PJRT C API\nCUDA 12030", "cuda"), ("gpu", "PJRT C API\nrocm 60200", "rocm")],
)
def test_the_platform_is_named_by_its_maker(monkeypatch, backend, version, expected):
    device = types.SimpleNamespace(client=types.SimpleNamespace(platform_version=version))
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "devices", lambda: [device])
    assert current_platform() == expected


@pytest.mark.parametrize(("capability", "expected"), [("7.5", "xla"), ("10.0", "cudnn")])
def test_the_capability_of_the_first_gpu_counts(monkeypatch, capability, expected):
    monkeypatch.setattr(jax, "devices", lambda: [types.SimpleNamespace(compute_capability=capability)])
    assert choose_attention(CONFIG, 128, "cuda") == expected


def test_lengths_say_what_the_mask_says():
    """cuDNN is given lengths; JAX's own implementation shows on a CPU that they mean the same."""
    seen = visible(TOKENS, None)
    np.testing.assert_array_equal(seen.lengths, [5, 8])
    by_mask = jax.nn.dot_product_attention(*states(8), mask=seen.mask())
    by_length = jax.nn.dot_product_attention(*states(8), key_value_seq_lengths=seen.lengths)
    np.testing.assert_allclose(by_length, by_mask, atol=1e-6)
    assert visible(jnp.zeros((1, 4), jnp.int32), None).lengths.tolist() == [1]


@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["rows", "packed"])
@pytest.mark.parametrize("distance", [None, 2])
def test_the_cudnn_call_and_its_gradient_lower_for_cuda(monkeypatch, segments, distance):
    from jax._src.cudnn import fused_attention_stablehlo

    # All that JAX asks of this machine.
    monkeypatch.setattr(fused_attention_stablehlo, "check_cudnn_version", lambda: 91100)

    @jax.jit
    @jax.grad
    def loss(arrays):
        out = attend(*arrays, visible(TOKENS, segments), kernel="cudnn", distance=distance)
        return jnp.sum(out.astype(jnp.float32))

    text = loss.trace(states(8, dtype=jnp.bfloat16)[:, :2]).lower(lowering_platforms=("cuda",)).as_text()
    name = "__cudnn$fmhaSoftmax" if segments is None and distance is None else "__cudnn$fmhaScaleBiasSoftmax"
    assert f"{name}(" in text or f'"{name}"' in text or f"@{name}" in text
    assert f"{name}Backward" in text


def long_rows():
    tokens = jnp.ones((2, 128), jnp.int32).at[0, 90:].set(0)
    segments = jnp.where(jnp.arange(128) < 50, 1, 2)[None].repeat(2, 0) * tokens
    return tokens, segments


def test_the_tpu_kernel_equals_xla_when_interpreted():
    tokens, segments = long_rows()
    seen = visible(tokens, segments)
    real = np.asarray(tokens) != 0

    def loss(kernel):
        def total(arrays):
            out = attend(*arrays, seen, kernel=kernel)
            return jnp.sum(jnp.where(real[..., None, None], out, 0) ** 2), out

        return jax.grad(total, has_aux=True)

    with pltpu.force_tpu_interpret_mode():
        gradient, found = loss("flash")(states(128))
    expected_gradient, expected = loss("xla")(states(128))
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-4)


def test_the_tpu_kernel_lowers_for_a_tpu():
    tokens, _ = long_rows()

    @jax.jit
    @jax.grad
    def loss(arrays):
        return jnp.sum(attend(*arrays, visible(tokens, None), kernel="flash").astype(jnp.float32))

    text = loss.trace(states(128, dtype=jnp.bfloat16)).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") >= 3  # forward, and the gradients of the queries and of keys and values


def test_rotation_is_a_complex_product_with_the_angles_of_the_formula():
    query = np.asarray(states(8)[0], np.float64)
    positions = np.array([[0, 3, 1, 7, 2, 5, 4, 6]])
    angles = positions[..., None] / 100.0 ** (np.arange(0, 16, 2) / 16)
    turned = (query[..., :8] + 1j * query[..., 8:]) * np.exp(1j * angles)[:, :, None, :]
    found = rotate(states(8)[0], rotary_tables(jnp.asarray(positions), 16, 100.0, "float32"))
    np.testing.assert_allclose(found, np.concatenate([turned.real, turned.imag], axis=-1), atol=1e-5)
    assert [table.dtype for table in rotary_tables(jnp.asarray(positions), 16, 100.0, "float16")] == [jnp.float16] * 2
