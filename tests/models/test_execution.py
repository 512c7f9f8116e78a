"""How the stack is run changes no number: recomputing, looping over layers, and the parameters they share."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.models.transformer import EXECUTION_OPTIONS

SIZES = {"hidden_size": 16, "num_heads": 2, "mlp_size": 24, "max_length": 12, "embedding_size": 8, "num_topics": 5}
SIZES |= {"vocab_size": 40}
CONFIGS = {
    "post": EncoderConfig(num_layers=2, norm="post", dropout_rate=0.3, **SIZES),
    "pre": EncoderConfig(num_layers=2, norm="pre", pooling="mean", dropout_rate=0.5, **SIZES),
    # Layer 0, twice (local, global), and one left over.
    "modern": EncoderConfig(
        num_layers=6,
        norm="modern",
        positions="rotary",
        mlp="gated",
        biases=False,
        local_distance=2,
        global_every=2,
        rotary_theta=1e5,
        dropout_rate=0.3,
        **SIZES,
    ),  # fmt: skip
}
TOKENS = jnp.array([[2, 9, 17, 30, 3, 8, 11, 0], [2, 5, 6, 7, 8, 9, 10, 3]])


def shapes_of(config):
    return nn.unbox(jax.eval_shape(NewsEncoder(config).init, jax.random.key(0), TOKENS)["params"])


def params_of(config):
    """Wider than at initialisation, so that attention differs between tokens; drawn by NumPy, without compilation."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda spec: rng.normal(0, 0.3, spec.shape).astype(np.float32), shapes_of(config))


def loss_and_gradient(config, params):
    target = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)

    @jax.jit
    @jax.value_and_grad
    def loss(params):
        rngs = {"dropout": jax.random.key(2)}
        embedding = NewsEncoder(config).apply(
            {"params": params}, TOKENS, deterministic=False, rngs=rngs, method="embed"
        )
        return jnp.sum((embedding - target) ** 2)

    return loss(params)


@pytest.mark.parametrize(
    ("name", "ways"),
    [("post", [("full", True), ("dots", False)]), ("modern", [("none", True)])],
    ids=["post", "modern"],
)
def test_loss_and_gradient_do_not_depend_on_how_the_stack_is_run(name, ways):
    """With dropout: each layer draws the same mask however it is run."""
    config = CONFIGS[name]
    params = params_of(config)
    expected = loss_and_gradient(config, params)
    for remat, scan_layers in ways:
        found = loss_and_gradient(dataclasses.replace(config, remat=remat, scan_layers=scan_layers), params)
        jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5), found, expected)


def test_each_layer_drops_other_units():
    """Layers that return a constant: with equal masks, the sums of two layers' drops would be 0 or 2 everywhere."""
    config = dataclasses.replace(CONFIGS["pre"], scan_layers=True)
    params = jax.tree.map(np.zeros_like, params_of(config))
    params["output_norm"]["scale"] += 1
    for layer in ("layers_0", "layers_1"):
        params[layer]["attention"]["output_bias"] += 1
    apply = jax.jit(
        lambda key: NewsEncoder(config).apply(
            {"params": params}, TOKENS, deterministic=False, rngs={"dropout": key}, method="encode"
        )
    )
    values = [len(np.unique(np.round(row, 4))) for row in np.asarray(apply(jax.random.key(0))).reshape(-1, 16)]
    assert max(values) == 3  # dropped by both, by one, by none


def test_scanning_compiles_one_block_and_recomputing_keeps_less():
    config = CONFIGS["post"]
    params = shapes_of(config)

    def program(**changes):
        encoder = NewsEncoder(dataclasses.replace(config, **changes))
        return jax.make_jaxpr(lambda params: encoder.apply({"params": params}, TOKENS, method="encode"))(params)

    assert len(program(scan_layers=True).eqns) < len(program().eqns)
    assert str(program(scan_layers=True)).count("scan[") == 1

    def kept(**changes):
        encoder = NewsEncoder(dataclasses.replace(config, **changes))

        def pullback(params):
            return jax.vjp(lambda params: encoder.apply({"params": params}, TOKENS, method="encode"), params)[1]

        return sum(array.size for array in jax.tree.leaves(jax.eval_shape(pullback, params)))

    assert kept(remat="full") < kept(remat="dots") < kept()


def test_a_description_leaves_out_how_a_model_is_run():
    config = CONFIGS["post"]
    changed = dataclasses.replace(config, remat="full", scan_layers=True, attention="xla")
    assert changed.to_dict() == config.to_dict()
    assert not set(EXECUTION_OPTIONS) & set(config.to_dict())
    assert EncoderConfig.from_dict(changed.to_dict()) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"remat": "some"}, "remat: got 'some', expected one of none, full, dots"),
        ({"attention": "flush"}, "attention: got 'flush', expected one of auto, xla"),
        ({"global_every": 3}, "global_every: got 3 with local_distance = 0"),
        ({"positions": "rotary", "num_heads": 16}, "positions: got 'rotary' with head_size = 1"),
    ],
)
def test_options_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIGS["post"], **changes)
