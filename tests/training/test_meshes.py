"""The paper's run files on an abstract mesh of 256."""

import gin
import jax
import pytest
from jax.sharding import AbstractMesh, AxisType
from newsembed.learning.partitioning import DATA_AXIS, MODEL_AXIS, Partitioner
from newsembed.models.encoders.news import NewsEncoder
from newsembed.training.gin_config import load_gin
from newsembed.training.train_state import bytes_per_device, plan_state

REQUIRED = ['MODEL_DIR = "m"', 'DATA_DIR = "d"', 'VOCABULARY_PATH = "v"']


@pytest.mark.parametrize(("run", "model_parallel"), [("pretrain_paper", 4), ("weak_supervision_paper", 1)])
def test_the_paper_s_state_on_256_chips(run, model_parallel):
    bindings = [*REQUIRED, f"MODEL_PARALLEL = {model_parallel}"]
    load_gin([f"runs/{run}.gin"], [*bindings, 'INITIAL_CHECKPOINT_PATH = "c"'])
    config = gin.get_configurable("EncoderConfig")(vocab_size=500_000)
    optimizer = gin.get_configurable("adam")()
    partitioner = Partitioner(model_parallel=model_parallel)
    mesh = AbstractMesh(
        (256 // model_parallel, model_parallel), (DATA_AXIS, MODEL_AXIS), axis_types=(AxisType.Auto,) * 2
    )
    state = plan_state(NewsEncoder(config), optimizer, partitioner, mesh).abstract
    table = config.vocab_size * config.hidden_size
    parameters = sum(array.size for array in jax.tree.leaves(state.params))
    # BERT-base and its vocabulary, with the three heads.
    assert parameters - table - config.vocab_size == pytest.approx(87e6, rel=0.02)
    params, moments = bytes_per_device(state.params), bytes_per_device(state.opt_state)
    assert moments == pytest.approx(2 * params, rel=1e-3)
    # The vocabulary, the MLP and the heads are divided, positions and norms are not.
    assert params == pytest.approx(4 * parameters / model_parallel, rel={1: 0, 4: 0.02}[model_parallel])
    assert bytes_per_device(state) < 8 * 2**30
