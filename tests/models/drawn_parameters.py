"""Random parameters of any architecture, none of them at an initial value such as 0."""

import flax.linen as nn
import jax
import numpy as np


def drawn(config):
    variables = jax.jit(config.module().init)(jax.random.key(0), np.ones((1, 4), np.int32))
    rng = np.random.default_rng(1)
    return jax.tree.map(
        lambda array: np.asarray(array) + rng.normal(scale=0.5, size=array.shape).astype(array.dtype),
        nn.unbox(variables)["params"],
    )
