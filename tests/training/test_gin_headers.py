"""The sizes in the heads of the architectures' gin files are those of the models."""

import re
from pathlib import Path

import gin
import jax
import jax.numpy as jnp
import pytest
from newsembed.training.gin_config import GIN_FOLDER, load_gin

FILES = sorted(Path(GIN_FOLDER, "architectures").glob("*.gin"))
REQUIRED = ["MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH"]
OTHERS = ["TASK_FEATURE_LENGTHS = {}", "TRAIN_STEPS = 1", "BATCH_SIZE = 1", "LEARNING_RATE = 1.0"]


def parameters(name, vocab_size):
    module = gin.get_configurable(name)(vocab_size=vocab_size).module()
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    return sum(array.size for array in jax.tree.leaves(shapes))


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_a_head_names_the_number_of_parameters(path):
    head = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    millions, per_piece = re.search(
        r"([\d.]+) M parameters.*?, and (\d+) for each piece of the vocabulary", head
    ).groups()
    load_gin(
        ["models/weak_supervision.gin", f"architectures/{path.name}"],
        [*(f'{name} = "x"' for name in REQUIRED), *OTHERS],
    )
    name = re.search(r"^(\w+Config)\.", path.read_text(), re.MULTILINE)[1]
    small, large = parameters(name, 1000), parameters(name, 3000)
    assert (large - small) / 2000 == int(per_piece)
    digits = len(millions.partition(".")[2])
    assert f"{(small - 1000 * int(per_piece)) / 1e6:.{digits}f}" == millions
