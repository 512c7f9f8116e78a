"""The weights that weighted pooling starts from, against NumPy, and when a run computes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.learning.partitioning import Partitioner
from newsembed.training.piece_weights import weigh_pieces
from newsembed.training.run import run_training
from toy_corpus import VOCAB_SIZE, saved_params, tiny_bindings, write_corpus, write_vocabulary


@pytest.mark.parametrize("devices", [1, 4])
def test_rare_pieces_count_most(devices):
    rng = np.random.default_rng(0)
    rows = [{"tokens": rng.integers(0, 9, (8, 12)).astype(np.int32)} for _ in range(3)]
    partitioner = Partitioner()
    mesh = partitioner.make_mesh(jax.devices()[:devices])
    params = {"pooling_logits": jnp.zeros(12), "other": jnp.ones(3)}
    weighed = weigh_pieces(params, iter(rows), partitioner, mesh)
    tokens = np.concatenate([row["tokens"] for row in rows]).ravel()
    counts = np.bincount(tokens[tokens > 0], minlength=12)
    np.testing.assert_allclose(np.exp(weighed["pooling_logits"]), 1e-3 / (1e-3 + counts / counts.sum()), rtol=1e-5)
    assert weighed["pooling_logits"][0] == weighed["pooling_logits"][11] == 0  # padding, and a piece that no row has
    assert weighed["other"] is params["other"]


def test_weak_supervision_from_nothing_starts_with_weights_and_a_white_head(tmp_path):
    data, vocabulary = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")

    def trained(name, *steps, rows=96):
        for count in steps:
            changes = {"TRAIN_STEPS": count, "WHITENING_ROWS": rows, "DECAY": "constant", "CHECKPOINT_PERIOD": 1}
            static = {
                "EncoderConfig.num_layers": 0,
                "adam.multiply_by_parameter_scale": True,
                "LATENT_SEMANTICS": False,
            }
            run_training(
                ["runs/train_static.gin"], tiny_bindings(tmp_path / name, data, vocabulary, **changes, **static)
            )
        return saved_params(tmp_path / name, steps[-1])

    unbroken, resumed = trained("unbroken", 3), trained("resumed", 2, 3)
    jax.tree.map(np.testing.assert_array_equal, resumed, unbroken)
    assert unbroken["pooling_logits"].shape == (VOCAB_SIZE,)
    assert unbroken["pooling_logits"].min() < -1  # frequent pieces of a small vocabulary
    plain = trained("plain", 3, rows=0)
    assert np.abs(plain["pooling_logits"]).max() < 0.1
