"""The context encoder: untrained it is its table, trained it follows its formula; packed rows, padding, sizes."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_methods import compiled
from newsembed.models.attention import visible
from newsembed.models.blocks import make_block, make_context
from newsembed.models.encoders import Capability, ContextConfig, config_from_dict, named_kind
from small_encoders import static

SIZES = {"hidden_size": 12, "max_length": 24, "num_topics": 5, "dropout_rate": 0.0}
TABLE = static(40, **SIZES, lead_length=5, sublinear=True, embedding_init="t5")
LAYERS = {f"context_{name}": size for name, size in (("size", 8), ("heads", 2), ("mlp_size", 8), ("window", 4))}
CONTEXT = ContextConfig(**{field.name: getattr(TABLE, field.name) for field in dataclasses.fields(TABLE)} | LAYERS)
CONTEXT = dataclasses.replace(CONTEXT, context_layers=1)
TEXT = [2, 9, 17, 17, 30, 8, 22, 17, 11, 3]
PADDED = np.array([TEXT + [0, 0], TEXT[:3] + [0] * 9], np.int32)


def fresh(config=CONTEXT):
    module = config.module()
    params = jax.jit(lambda key: nn.unbox(module.init(key, jnp.ones((1, 4), jnp.int32))["params"]))(jax.random.key(0))
    return params | {"pooling_logits": jax.random.normal(jax.random.key(1), (config.vocab_size,))}


@pytest.fixture(scope="module")
def trained():
    """Every array differs from its start, the output kernels too."""
    params = fresh()
    keys = iter(jax.random.split(jax.random.key(2), 100))
    return jax.tree.map(lambda array: array + jax.random.normal(next(keys), array.shape) / 4, params)


def run(config, params, rows, method="embed"):
    return np.asarray(compiled(config, method)(params, jnp.asarray(rows, jnp.int32)))


def as_table(params):
    return {name: array for name, array in params.items() if not name.startswith("context_")}


@pytest.mark.parametrize("length", [0, 6])
def test_untrained_it_equals_the_static_model_of_its_table(length):
    config, params = dataclasses.replace(CONTEXT, context_length=length), fresh()
    for method in ("embed", "topic_logits"):
        expected = run(TABLE, as_table(params), PADDED, method)
        np.testing.assert_allclose(run(config, params, PADDED, method), expected, atol=1e-5)


def reference(params, text, length=None):
    """The embedding of one text by NumPy float64; the layers of each window are Flax's, as rows of their own."""
    text = np.array(text)
    real = {name: np.asarray(array, np.float64) for name, array in params.items() if not isinstance(array, dict)}
    modules = {name: arrays for name, arrays in params.items() if isinstance(arrays, dict)}
    kernels = {name: np.asarray(arrays["kernel"]) for name, arrays in modules.items() if "kernel" in arrays}
    table = run(TABLE, as_table(params), [text], "encode")[0].astype(np.float64)
    places = 1 / (1 + np.arange(len(text)) / 5)
    copies = np.array([places[text == piece].sum() for piece in text])
    weights = np.exp(real["pooling_logits"][text]) * places * np.log1p(copies) / copies
    document = weights @ table / weights.sum() @ kernels["context_document"] + params["context_document"]["bias"]
    token = table @ kernels["context_token"]
    states = token + document + token * document + np.log(weights)[:, None] * kernels["context_place"]
    read = length or len(text)
    inner = np.concatenate([layers(params, states[at : min(at + 4, read)]) for at in range(0, read, 4)])
    norm = params["context_norm"]
    inner = (inner - inner.mean(1, keepdims=True)) / inner.std(1, keepdims=True) * norm["scale"] + norm["bias"]
    gains, vectors = np.ones(len(text)), np.zeros_like(table)
    gains[:read] = np.exp(inner @ kernels["context_gain"])[:, 0]
    vectors[:read] = inner @ kernels["context_vector"]
    pooled = (weights * gains) @ (table + vectors) / (weights @ gains)
    embedding = pooled @ kernels["embedding_head"] + params["embedding_head"]["bias"]
    return embedding / np.linalg.norm(embedding)


def layers(params, states):
    """One window [R, C] through the one layer."""
    shape = CONTEXT.layers
    context = make_context(shape, visible(jnp.ones((1, len(states)), jnp.int32), None), None, None)
    block = make_block(shape, 0, parent=None)
    states = jnp.asarray(states, jnp.float32)[None]
    return np.asarray(block.apply({"params": params["context_layers_0"]}, states, context, deterministic=True))[0]


@pytest.mark.parametrize("length", [0, 6])
def test_it_equals_its_formula_by_numpy(trained, length):
    config = dataclasses.replace(CONTEXT, context_length=length)
    found = run(config, trained, PADDED)
    np.testing.assert_allclose(found[0], reference(trained, TEXT, length), atol=1e-5)
    np.testing.assert_allclose(found[1], reference(trained, TEXT[:3]), atol=1e-5)


def test_packed_texts_are_pooled_as_alone(trained):
    config = dataclasses.replace(CONTEXT, context_window=24)
    first, second = TEXT[:4], TEXT[4:]
    tokens = jnp.array([first + second + [0, 0]])
    segments = jnp.array([[1] * 4 + [2] * 6 + [0, 0]])
    positions = jnp.array([[*range(4), *range(6), 0, 0]])
    module = config.module()

    def pooled(params):
        hidden = module.apply({"params": params}, tokens, segments, positions, method="encode")
        return module.apply({"params": params}, hidden, tokens, segments, method="pool_pieces")

    found = np.asarray(jax.jit(pooled)(trained))[0]
    for text, place in ((first, 0), (second, 4)):

        def alone(params, text=text):
            hidden = module.apply({"params": params}, jnp.array([text]), method="encode")
            return module.apply({"params": params}, hidden, jnp.array([text]), method="pool")

        np.testing.assert_allclose(found[place], np.asarray(jax.jit(alone)(trained))[0], atol=1e-4)


def test_the_gradient_reaches_the_layers_through_gains_and_vectors(trained):
    module, rows = CONTEXT.module(), jnp.asarray(PADDED)

    def first_unit(params):
        return jnp.sum(module.apply({"params": params}, rows, method="embed")[:, 0])

    for params, moved in ((fresh(), ["context_gain", "context_vector"]), (trained, ["context_layers_0"])):
        gradient = jax.jit(jax.grad(first_unit))(params)
        for name in moved:
            assert max(float(jnp.abs(array).max()) for array in jax.tree.leaves(gradient[name])) > 1e-5


def test_its_description_is_read_as_written_and_says_what_it_cannot_do():
    assert named_kind(CONTEXT) == "context"
    assert config_from_dict(CONTEXT.to_dict(), "context") == CONTEXT
    lacking = {Capability.HUGGING_FACE, Capability.ATTENTION, Capability.STATIC}
    assert TABLE.capabilities - CONTEXT.capabilities == lacking
    assert CONTEXT.summary() == "a table of 12, 1 layers x 8 for its context"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 1}, "num_layers: got 1, expected 0"),
        ({"pooling": "mean"}, "pooling: got 'mean', expected 'weighted'"),
        ({"context_layers": 0}, "context_layers: got 0, expected an integer of at least 1"),
        ({"context_size": 9}, "its layers of context: .*hidden_size: got 9, expected a multiple of num_heads = 2"),
    ],
)
def test_sizes_out_of_range_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONTEXT, **changes)
