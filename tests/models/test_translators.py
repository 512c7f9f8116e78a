"""Encoders that learn by translation: sizes, causality, what the decoder reads, padding, and references in NumPy."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_methods import compiled
from drawn_parameters import drawn
from newsembed.models.architecture import Architecture
from newsembed.models.attention import largest_of_tokens
from newsembed.models.encoders import AttentiveConfig, Capability, LaserConfig, TranslatorConfig, config_from_dict
from newsembed.models.losses import contrastive_distance, draw_negatives
from newsembed.models.recurrence import Bidirectional, Lstm

SIZES = {"vocab_size": 40, "num_languages": 3, "language_size": 4, "dropout_rate": 0.0, "max_length": 32}
SMALL = SIZES | {"hidden_size": 8, "num_layers": 3, "num_heads": 2, "mlp_size": 12}
MODELS = {
    "T-MDE": TranslatorConfig(**SMALL),
    "T-MDE_P": TranslatorConfig(**SMALL, bottleneck="pooled"),
    "T-MDE_F": TranslatorConfig(**SMALL, bottleneck="none", decoder_layers=2),
    "LASER": LaserConfig(**SIZES, token_size=6, hidden_size=5, num_layers=2, decoder_size=7),
    "attentive": AttentiveConfig(40, max_length=32, token_size=6, hidden_size=5),
}
SOURCE = [2, 9, 17, 17, 30, 8, 3]
TARGET = [2, 12, 39, 5, 6, 21]


# With T-MDE_F's decoder and T-MDE_P's pooling the others have each part; `make attack` has all.
LONG = {"T-MDE_F": pytest.mark.long}


@pytest.fixture(scope="module", params=[pytest.param(name, marks=LONG.get(name, ())) for name in MODELS])
def model(request):
    config = MODELS[request.param]
    return config, drawn(config)


def run(model, method, *arguments):
    config, params = model
    return jax.tree.map(np.asarray, compiled(config, method)(params, *arguments))


def rows(*texts, length=None):
    width = length or max(map(len, texts))
    return jnp.array([text + [0] * (width - len(text)) for text in texts], jnp.int32)


@pytest.mark.parametrize(
    ("config", "millions"),
    [
        (TranslatorConfig(50_000), 246.0),
        (TranslatorConfig(50_000, bottleneck="pooled"), 258.7),
        (TranslatorConfig(50_000, bottleneck="none"), 246.0),
        (LaserConfig(50_000, num_layers=1), 208.5),
        (LaserConfig(50_000), 240.0),
        # Three tables of 85,000 x 500 and a bias, and 27.4 M in GRUs, attention and the layer before the output.
        (AttentiveConfig(85_000), 3 * 42.5 + 0.085 + 27.4),
    ],
    ids=["T-MDE", "T-MDE_P", "T-MDE_F", "LASER_1", "LASER_6", "attentive"],
)
def test_the_thesis_s_numbers_of_parameters(config, millions):
    shapes = jax.eval_shape(config.module().init, jax.random.key(0), jnp.ones((1, 3), jnp.int32))
    assert sum(array.size for array in jax.tree.leaves(shapes)) / 1e6 == pytest.approx(millions, abs=1.0)


def test_a_token_sees_none_that_follow_it(model):
    languages = jnp.zeros(2, jnp.int32)
    other = [*TARGET[:3], 33, 34, 35]
    _, states = run(model, "translation", rows(SOURCE, SOURCE), rows(TARGET, other), languages)
    np.testing.assert_allclose(states[0, :3], states[1, :3], atol=1e-6)
    assert np.abs(states[0, 3:] - states[1, 3:]).max(axis=-1).min() > 1e-3


def test_padding_changes_nothing(model):
    languages = jnp.ones(1, jnp.int32)
    vector, states = run(model, "translation", rows(SOURCE), rows(TARGET), languages)
    wide = run(model, "translation", rows(SOURCE, length=11), rows(TARGET, length=8), languages)
    np.testing.assert_allclose(wide[0], vector, atol=1e-5)
    np.testing.assert_allclose(wide[1][:, : len(TARGET)], states, atol=1e-5)
    embeddings = run(model, "embed", rows(SOURCE, [], length=9))
    np.testing.assert_allclose(embeddings[0], vector[0] / np.linalg.norm(vector[0]), atol=1e-5)
    np.testing.assert_array_equal(embeddings[1], 0.0)


def test_the_decoder_reads_the_vector_alone_where_there_is_a_bottleneck(model):
    config, _ = model
    reading = run(model, "read", rows(SOURCE))

    def states_of(**changes):
        return run(model, "write", reading._replace(**changes), rows(TARGET), jnp.zeros(1, jnp.int32))

    states = states_of()
    noise = jax.random.normal(jax.random.key(2), reading.states.shape)
    depends_on_tokens = np.abs(states_of(states=noise) - states).max() > 1e-3
    depends_on_vector = np.abs(states_of(sentence=noise[:, 0, :1] + reading.sentence) - states).max() > 1e-3
    is_free = config.kind == "attentive" or getattr(config, "bottleneck", "") == "none"
    assert (depends_on_tokens, depends_on_vector) == (is_free, not is_free)


def test_the_language_of_the_target_counts(model):
    states = [run(model, "translation", rows(SOURCE), rows(TARGET), jnp.full(1, number))[1] for number in (0, 2)]
    # A translator of one pair of languages knows which one it writes.
    assert (np.abs(states[0] - states[1]).max() > 1e-3) == (model[0].kind != "attentive")


def test_every_parameter_takes_part(model):
    config, params = model

    def total(p):
        states, (table, bias) = config.module().apply({"params": p}, rows(SOURCE, TARGET))
        return jnp.sum(jnp.sin((states @ table.T + bias) * 3))

    gradient = jax.tree_util.tree_leaves_with_path(jax.jit(jax.grad(total))(params))
    # Attention over one place has the weight 1 whatever query and key are.
    unused = [jax.tree_util.keystr(path) for path, array in gradient if not np.abs(array).max() > 0]
    assert all("source_attention']['query" in path or "source_norm" in path or "['key']" in path for path in unused)
    assert not unused or getattr(config, "bottleneck", "") in ("vector", "pooled")


def test_the_configuration_survives_json(model):
    config, _ = model
    assert isinstance(config, Architecture)
    assert config_from_dict(config.to_dict(), config.kind) == config
    assert config.capabilities == {Capability.TRANSLATION}
    with pytest.raises(ValueError, match="unknown keys depth"):
        config_from_dict({**config.to_dict(), "depth": 1}, config.kind)


@pytest.mark.parametrize(
    "options", [{"hidden_size": 9}, {"bottleneck": "wide"}, {"num_layers": 0}, {"dropout_rate": 1.0}, {"dtype": "int8"}]
)
def test_values_out_of_range_are_named(options):
    with pytest.raises(ValueError, match=f"TranslatorConfig.{next(iter(options))}"):
        TranslatorConfig(40, **options)
    with pytest.raises(ValueError, match="at least 3"):
        TranslatorConfig(40, num_layers=2, bottleneck="pooled")


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def direction_by_hand(params, inputs, order):
    """States by place of one row [L, I], read in this order."""
    kernel, bias, recurrent = (
        np.float64(array) for array in (params["inputs"]["kernel"], params["inputs"]["bias"], params["recurrent"])
    )
    output = cell = np.zeros(len(recurrent))
    found = {}
    for place in order:
        sums = np.split(inputs[place] @ kernel + bias + output @ recurrent, 4)
        cell = sigmoid(sums[1]) * cell + sigmoid(sums[0]) * np.tanh(sums[2])
        output = sigmoid(sums[3]) * np.tanh(cell)
        found[place] = output
    return np.stack([found[place] for place in sorted(found)])


def test_both_directions_and_their_maximum_equal_numpy():
    module = Bidirectional(Lstm, 4, jnp.float32)
    rng = np.random.default_rng(0)
    inputs, lengths = rng.normal(size=(3, 6, 5)), [6, 2, 4]
    is_token = np.arange(6)[None] < np.array(lengths)[:, None]
    params = nn.unbox(jax.jit(module.init)(jax.random.key(0), jnp.array(inputs), jnp.array(is_token))["params"])
    states = jax.jit(module.apply)({"params": params}, jnp.array(inputs, jnp.float32), jnp.array(is_token))
    pooled = largest_of_tokens(states, jnp.array(is_token))
    for row, length in enumerate(lengths):
        forward = direction_by_hand(params["forward"], inputs[row], range(length))
        backward = direction_by_hand(params["backward"], inputs[row], range(length - 1, -1, -1))
        expected = np.concatenate([forward, backward], axis=1)
        np.testing.assert_allclose(states[row, :length], expected, atol=1e-6)
        np.testing.assert_allclose(pooled[row], expected.max(axis=0), atol=1e-6)
    assert float(largest_of_tokens(-jnp.ones((1, 2, 1)), jnp.array([[True, False]]))[0, 0]) == -1.0


def distance_by_hand(left, right, negatives, scale, margin):
    norm = np.linalg.norm
    divisor = {
        "pairs": np.mean(norm(left - right, axis=1)),
        "batch_means": (norm(left.mean(axis=0)) + norm(right.mean(axis=0))) / 2,
    }[scale] + 1e-6
    own = norm(left - right, axis=1) / divisor
    terms = [
        np.mean([max(0.0, margin - (norm(left[row] - right[other]) / divisor - own[row])) for other in others])
        for row, others in enumerate(negatives)
    ]
    return own, np.array(terms)


@pytest.mark.parametrize("scale", ["batch_means", "pairs"])
def test_the_distance_equals_numpy_and_knows_no_scale(scale):
    rng = np.random.default_rng(1)
    left = rng.normal(size=(7, 5)) + 0.5
    right = left + rng.normal(size=(7, 5)) / 3
    negatives = np.asarray(draw_negatives(jax.random.key(0), 7, 4))
    found = contrastive_distance(jnp.float32(left), jnp.float32(right), jnp.array(negatives), scale=scale, margin=1.5)
    for ours, theirs in zip(found, distance_by_hand(left, right, negatives, scale, 1.5), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert (theirs > 0).any()
    wide = jnp.float32(9 * left), jnp.float32(9 * right)
    larger = contrastive_distance(*wide, jnp.array(negatives), scale=scale, margin=1.5)
    np.testing.assert_allclose(larger[0], found[0], rtol=1e-4)
    np.testing.assert_allclose(larger[1], found[1], rtol=1e-4)


def test_no_pair_is_its_own_negative():
    found = np.asarray(draw_negatives(jax.random.key(3), 6, 40))
    assert found.shape == (6, 5)
    assert [sorted(row) for row in found.tolist()] == [[j for j in range(6) if j != i] for i in range(6)]
    few = np.asarray(draw_negatives(jax.random.key(3), 50, 4))
    assert few.shape == (50, 4)
    assert all(len(set(row)) == 4 and number not in row for number, row in enumerate(few.tolist()))
    assert (np.bincount(few.ravel(), minlength=50) == 4).all()
