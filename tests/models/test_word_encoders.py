"""Star, convolution and GRU over word vectors: dense references, padding, empty rows, and the cost of the ring."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.models.encoders import Capability, ConvolutionConfig, RecurrentConfig, StarConfig, config_from_dict
from newsembed.models.encoders.star import entmax

V, L = 40, 12
CONFIGS = [
    StarConfig(V, hidden_size=12, num_heads=3),
    StarConfig(V, hidden_size=12, num_heads=3, alpha=1.0, iterations=2, norm=True),
    ConvolutionConfig(V, hidden_size=12, filters=5),
    RecurrentConfig(V, hidden_size=12),
    RecurrentConfig(V, hidden_size=12, bidirectional=True),
]
NAMES = ["star", "softmax_star", "convolution", "gru", "bigru"]


def tokens():
    rows = np.random.default_rng(0).integers(5, V, (4, L)).astype(np.int32)
    rows[1, 7:] = 0
    rows[2, 1:] = 0
    rows[3] = 0
    return rows


@functools.cache
def parameters(config):
    return drawn(config, deviation=0.3)


@functools.partial(jax.jit, static_argnums=0)
def embed(config, params, rows):
    return config.module().apply({"params": params}, rows, method="embed")


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_padding_changes_nothing_and_rows_have_length_one(config):
    params, rows = parameters(config), tokens()
    whole = embed(config, params, rows)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), [1, 1, 1, 0], atol=1e-6)
    np.testing.assert_allclose(embed(config, params, np.pad(rows, [(0, 0), (0, 5)])), whole, atol=2e-6)
    np.testing.assert_allclose(embed(config, params, rows[1:2, :7]), whole[1:2], atol=2e-6)
    changed = dict(
        params,
        token_embedding=np.vstack([np.full_like(params["token_embedding"][:1], 9), params["token_embedding"][1:]]),
    )
    np.testing.assert_allclose(embed(config, changed, rows), whole, atol=2e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_gradients_are_finite_and_reach_every_parameter(config):
    params, rows = parameters(config), tokens()
    weights = np.random.default_rng(3).normal(size=12)

    def value(params):
        return jnp.sum(config.module().apply({"params": params}, rows, method="embed") @ weights)

    # Without optimisation, XLA's newer emitters give NaN for the gradient of the maximum of a plain layer norm.
    gradients = jax.jit(jax.grad(value), compiler_options={"xla_cpu_use_fusion_emitters": False})(params)
    for path, gradient in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.isfinite(gradient).all(), path
        # Keys of a softmax do not feel a constant that is added to all of them.
        assert np.any(gradient != 0) or "key_bias" in jax.tree_util.keystr(path), path


def plain_star(config, params, row):
    """The equations on one text without padding, in float64: every query with its own list of keys."""
    params = jax.tree.map(np.float64, params)
    embedded = params["token_embedding"][row]
    hidden, star = embedded, embedded.mean(0)

    def attend(part, query, keys):
        heads = {
            name: np.einsum("...h,hnd->...nd", inputs, part[f"{name}_kernel"]) + part[f"{name}_bias"]
            for name, inputs in (("query", query), ("key", keys), ("value", keys))
        }
        scores = np.einsum("nd,knd->nk", heads["query"], heads["key"]) / np.sqrt(heads["query"].shape[-1])
        alphas = np.maximum(1 + 1 / (1 + np.exp(-part["alpha_logits"])), 1.01)
        shares = np.asarray(entmax(jnp.asarray(scores), jnp.asarray(alphas), 12))
        mixed = np.einsum("nk,knd->nd", shares, heads["value"])
        return np.einsum("nd,ndh->h", mixed, part["output_kernel"]) + part["output_bias"]

    for number in range(config.iterations):
        ring, c = params[f"rings_{number}"], config.window
        keys = [np.stack([*hidden[max(0, i - c) : i + c + 1], embedded[i], star]) for i in range(len(row))]
        hidden = np.stack([attend(ring, hidden[i], keys[i]) for i in range(len(row))])
        star = attend(params[f"stars_{number}"], star, np.concatenate([star[None], hidden]))
    vector = 0.5 * (hidden.max(0) + star)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(("iterations", "window"), [(1, 2), (2, 1)])
def test_the_star_encoder_computes_its_equations(iterations, window):
    config = StarConfig(V, hidden_size=12, num_heads=3, iterations=iterations, window=window)
    params, rows = parameters(config), tokens()
    found = embed(config, params, rows)
    with jax.enable_x64(True):
        for number, length in ((0, L), (1, 7), (2, 1)):
            expected = plain_star(config, params, rows[number, :length])
            np.testing.assert_allclose(found[number], expected, atol=5e-6)


def test_a_filter_reads_the_words_of_its_width():
    """One filter of width 2 that adds the first units of two neighbours; behind the last word there are zeros."""
    config = ConvolutionConfig(V, hidden_size=2, filters=1, widths=(2,))
    table = np.zeros((V, 2), np.float32)
    table[[5, 6, 7], 0] = [1.0, 2.0, 4.0]
    kernel = np.zeros((2, 2, 1), np.float32)
    kernel[:, 0] = [[1.0], [10.0]]
    params = {
        "token_embedding": table,
        "filter_2_kernel": kernel,
        "filter_2_bias": np.zeros(1, np.float32),
        "head": {"kernel": np.ones((1, 2), np.float32), "bias": np.zeros(2, np.float32)},
    }
    module = config.module()
    rows = np.array([[6, 5, 7, 0], [7, 0, 0, 0]], np.int32)
    given = (table[rows], rows != 0)
    vectors = module.apply({"params": params}, *given, method="encode_vectors")
    np.testing.assert_allclose(vectors[:, 0], [1 + 40, 4])


def test_a_gru_in_both_directions_begins_at_the_last_token():
    config = CONFIGS[4]
    params, rows = parameters(config), tokens()
    swapped = dict(params, forward=params["backward"], backward=params["forward"])
    reverse = rows[1:2, :7][:, ::-1]
    one = embed(config, params, rows[1:2])
    np.testing.assert_allclose(embed(config, swapped, reverse), np.roll(one, 6, axis=1), atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_model_json_brings_the_configuration_back(config):
    assert config_from_dict(config.to_dict(), config.kind) == config
    assert config.capabilities == {Capability.WORD_VECTORS}
    with pytest.raises(Exception, match="unknown keys depth"):
        config_from_dict({**config.to_dict(), "depth": 1}, config.kind)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StarConfig(V, hidden_size=10, num_heads=3), "a divisor of hidden_size"),
        (lambda: StarConfig(V, alpha=1.001), "from 1.01 to 2"),
        (lambda: ConvolutionConfig(V, widths=(2, 1)), "ascending"),
        (lambda: RecurrentConfig(V, hidden_size=9, bidirectional=True), "an even number"),
    ],
)
def test_shapes_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
