"""Where a learned temperature comes from when a run starts from a checkpoint: each of the four cases."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from newsembed.formats.vocabulary import VocabularyFile
from newsembed.learning.objectives.contrastive import LOG_TEMPERATURE, Contrastive
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig
from newsembed.training.checkpoints import Checkpoints, start_state
from newsembed.training.train_state import plan_state

CONFIG = EncoderConfig(
    vocab_size=8, hidden_size=4, num_layers=1, num_heads=1, mlp_size=4, max_length=4, embedding_size=4, num_topics=2
)
SAVED, FRESH = 0.2, 0.05


def layout_of(*, learns):
    partitioner = Partitioner()
    objective = Contrastive(learn_temperature=learns, temperature=FRESH)
    mesh = partitioner.make_mesh(jax.devices()[:1])
    return plan_state(CONFIG.module(), optax.sgd(0.1), partitioner, mesh, objective.initial_parameters())


@pytest.mark.parametrize("saved_has_one", [False, True])
@pytest.mark.parametrize("run_learns", [False, True])
def test_it_is_taken_if_it_is_there_and_left_out_where_none_is_learned(tmp_path, saved_has_one, run_learns):
    saved = layout_of(learns=saved_has_one).create(jax.random.key(0))
    if saved_has_one:
        saved = saved.replace(params=saved.params | {LOG_TEMPERATURE: jnp.log(jnp.float32(SAVED))})
    with Checkpoints(str(tmp_path / "old")) as checkpoints:
        checkpoints.save(3, saved, b"{}")
        checkpoints.wait()
    layout, vocabulary = layout_of(learns=run_learns), VocabularyFile("v", b"", 8)
    with Checkpoints(str(tmp_path / "new")) as checkpoints:
        start = start_state(checkpoints, str(tmp_path / "old"), layout, jax.random.key(1), CONFIG, vocabulary)
    found = dict(start.state.params)
    temperature = found.pop(LOG_TEMPERATURE, None)
    assert (temperature is not None) == run_learns
    if run_learns:
        assert float(jnp.exp(temperature)) == pytest.approx(SAVED if saved_has_one else FRESH)
    encoder = {name: values for name, values in saved.params.items() if name != LOG_TEMPERATURE}
    jax.tree.map(np.testing.assert_array_equal, found, encoder)
