"""A checkpoint continues on another mesh; run by `test_sharding.py` in a process with eight devices."""

import jax
import numpy as np
import optax
import pytest
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.learning.partitioning import Partitioner, shard_batch
from newsembed.models.encoders.news import NewsEncoder
from newsembed.training.checkpoints import Checkpoints
from newsembed.training.train_state import make_train_step, plan_state
from toy_corpus import BOUNDS, LENGTHS, toy_config, toy_objectives, write_corpus

MODEL = NewsEncoder(toy_config())
OPTIMIZER = optax.sgd(0.1, momentum=0.9)  # Adam would divide rounding errors by their own size
MESHES = {"8 x 1": (8, 1), "4 x 2": (8, 2), "1": (1, 1)}


class Machine:
    """One mesh with its compiled step."""

    def __init__(self, devices, model_parallel):
        partitioner = Partitioner(model_parallel=model_parallel)
        self.mesh = partitioner.make_mesh(jax.devices()[:devices])
        self.layout = plan_state(MODEL, OPTIMIZER, partitioner, self.mesh)
        objectives = toy_objectives(MODEL.config, "triplets")
        self._step = make_train_step("triplets", objectives, OPTIMIZER, self.layout)

    def train(self, state, batches, steps):
        for _ in range(steps):
            state, metrics = self._step(state, shard_batch(next(batches), self.mesh), jax.random.key(1))
        return state, float(metrics["loss"])


def test_a_run_moves_from_8_x_1_to_4_x_2_to_one_device(tmp_path):
    corpus = write_corpus(tmp_path / "data")
    options = BatchOptions(corpus, LENGTHS, 8, BOUNDS)
    machines = {name: Machine(*shape) for name, shape in MESHES.items()}

    def open_batches():
        return GrainBatches(DataSet("triplets", "en"), options)

    batches = open_batches()
    expected, loss = machines["8 x 1"].train(machines["8 x 1"].layout.create(jax.random.key(0)), batches, 3)

    batches = open_batches()
    state = machines["8 x 1"].layout.create(jax.random.key(0))
    with Checkpoints(str(tmp_path / "model")) as checkpoints:
        for step, name in ((1, "8 x 1"), (2, "4 x 2"), (3, "1")):
            machine = machines[name]
            if step > 1:
                before = jax.tree.map(np.asarray, state)
                state, position = checkpoints.restore(step - 1, machine.layout.abstract)
                jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, state))
                placed, planned = (
                    jax.tree.map(lambda array: array.sharding, tree) for tree in (state, machine.layout.abstract)
                )
                assert placed == planned
                batches = open_batches()
                batches.set_state(position)
            state, moved_loss = machine.train(state, batches, 1)
            checkpoints.save(step, state, batches.get_state())
            checkpoints.wait()
    assert moved_loss == pytest.approx(loss, rel=1e-4)
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5), expected, state)
