"""Random parameters of any architecture, none of them at an initial value such as 0."""

import os

import flax.linen as nn
import jax
import numpy as np
from newsembed.formats.model_folder import ModelFolder
from newsembed.learning.model_files import architecture_gin, write_model_files
from newsembed.tasks.vocabulary import Vocabulary


def drawn(config, deviation=0.5):
    """By NumPy, without compilation; gains are around 1."""
    shapes = nn.unbox(jax.eval_shape(config.module().init, jax.random.key(0), np.ones((1, 4), np.int32)))["params"]
    rng = np.random.default_rng(1)
    return jax.tree_util.tree_map_with_path(
        lambda path, spec: rng.normal(float("scale" in path[-1].key), deviation, spec.shape).astype(spec.dtype), shapes
    )


def write_model(folder, config, pieces, text_length=None, params=None):
    """Writes a model as an import leaves it, its parameters as drawn unless they are given; returns its folder."""
    os.makedirs(folder, exist_ok=True)
    write_model_files(str(folder), config, Vocabulary(pieces).file(), text_length)
    params = drawn(config) if params is None else params
    ModelFolder(str(folder)).write_import(params, architecture_gin(config), {})
    return str(folder)
