"""Random parameters of any architecture, none of them at an initial value such as 0."""

import flax.linen as nn
import jax
import numpy as np


def drawn(config):
    variables = config.module().init(jax.random.key(0), np.ones((1, 4), np.int32))
    keys = iter(jax.random.split(jax.random.key(1), 500))
    return jax.tree.map(
        lambda array: np.asarray(array + jax.random.normal(next(keys), array.shape) / 2), nn.unbox(variables)["params"]
    )
