"""Runs of NTDV: two trained translators become parts of one model and keep their parameters."""

from pathlib import Path

import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.training.gin_config import run_training
from toy_corpus import LENGTH, VOCAB_SIZE, bindings_of, saved_params, write_sets, write_vocabulary

TRAINED = {"shared_recurrence", "shared_heads", "shared_states", "language_scores"}
SIZES = {"token_size": 6, "hidden_size": 5}


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains a run file to a step; returns the folder."""
    folder, rng = tmp_path_factory.mktemp("bilingual"), np.random.default_rng(0)
    half = (VOCAB_SIZE - 5) // 2  # each language has words of its own

    def text(side):
        return [2, *map(int, rng.integers(5 + half * side, 5 + half * (side + 1), 6)), 3]

    pairs = [(text(0), text(1)) for _ in range(24)]
    sets = {
        f"translation/{name}": [
            {"source_tokens": pair[1 - target], "target_tokens": pair[target], "target_language": target}
            for pair in pairs
        ]
        for name, target in (("de-en", 0), ("en-de", 1))
    }
    data, vocabulary = write_sets(folder / "data", sets), write_vocabulary(folder / "vocab.txt")

    def run(run_file, name, steps, sizes=SIZES, **changes):
        lengths = dict.fromkeys(["source_tokens", "target_tokens"], LENGTH)
        values = {"TRAIN_STEPS": steps, "WARMUP_STEPS": 1, "TASK_FEATURE_LENGTHS": lengths} | changes
        kind = "AttentiveConfig" if "translator" in run_file else "BilingualConfig"
        if kind == "BilingualConfig":
            values |= {"BilingualConfig.vector_size": 4, "TEXT_LENGTH": LENGTH}
        values |= {f"{kind}.{field}": size for field, size in sizes.items()}
        run_training([f"runs/{run_file}.gin"], bindings_of(folder / name, data, vocabulary, **values))
        return folder / name

    return run


@pytest.fixture(scope="module")
def parts(train):
    """The models of both translators."""
    names = {"translators_0": "de-en", "translators_1": "en-de"}
    return {
        part: str(
            train("ntdv_translator_small", name, 2, MIXTURE_OR_TASK_NAME=f"translation/{name}", SEED=int(part[-1]))
        )
        for part, name in names.items()
    }


@pytest.fixture(scope="module")
def trained(train, parts):
    return train("ntdv_small", "whole", 4, INITIAL_CHECKPOINT_PATH=parts)


def test_both_translators_are_taken_over_and_keep_their_parameters(trained, parts):
    after = saved_params(trained, 4)
    for name, folder in parts.items():
        jax.tree.map(np.testing.assert_array_equal, after[name], saved_params(Path(folder), 2))
    before = saved_params(trained, 2)
    for name in TRAINED:
        moved = jax.tree.map(lambda old, new: float(np.abs(old - new).max()), before[name], after[name])
        assert all(value > 0 for value in jax.tree.leaves(moved)), name
    assert set(after) == TRAINED | set(parts)


def test_every_part_needs_a_model_of_its_own_shape(train, parts, trained):
    one = {"translators_0": parts["translators_0"]}
    cases = [
        (one, SIZES, "got checkpoints for translators_0, expected one for each of translators_0, translators_1"),
        (one | {"translators_1": str(trained)}, SIZES, "another architecture"),
        (one | {"translators_1": "/nowhere"}, SIZES, "got no checkpoint"),
    ]
    for paths, sizes, message in cases:
        with pytest.raises(InputError, match=message):
            train("ntdv_small", "refused", 1, sizes, INITIAL_CHECKPOINT_PATH=paths)


@pytest.mark.long  # `make attack`
def test_the_sum_starts_from_a_model_side_by_side(train, trained):
    folder = train("ntdv_small", "sum", 1, INITIAL_CHECKPOINT_PATH=str(trained), VECTOR="sum", LEARNING_RATE=0.0)
    jax.tree.map(np.testing.assert_array_equal, saved_params(folder, 1), saved_params(trained, 4))
