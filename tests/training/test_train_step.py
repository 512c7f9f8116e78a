"""One training step by hand: the gradient, the update, and the key."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from newsembed.learning.partitioning import Partitioner, replicated
from newsembed.training.train_state import COUNTS, StateLayout, TrainState, make_train_step, make_train_steps

RATE = 0.25


class Toy:
    """Objectives whose loss is the product of a parameter and the batch, by a factor that a table of the task has."""

    def __init__(self):
        self.of_task = dict.fromkeys(("a", "b"), self) | {"c": object()}
        self.mixed = {}

    def tables(self, task):
        return {"factor": np.float32({"a": 1.0, "c": 3.0}[task])}

    def loss(self, task, params, batch, key):
        assert set(batch) == {"rows", "factor"}
        assert isinstance(batch["factor"], jax.core.Tracer)  # an argument of the program, not a constant
        return batch["factor"] * jnp.sum(params["w"] * batch["rows"]), {"drawn": jax.random.uniform(key)}


@pytest.fixture(scope="module")
def mesh():
    return Partitioner().make_mesh(jax.devices()[:1])


def state_of(mesh, optimizer):
    params = {"w": jnp.array([1.0, 2.0]), "other": jnp.array(5.0)}
    state = TrainState(jnp.int32(7), params, optimizer.init(params))
    return jax.device_put(state, replicated(mesh))


def step(mesh, task="a", **batch):
    optimizer = optax.sgd(RATE)
    state = state_of(mesh, optimizer)
    made = make_train_step(task, Toy(), optimizer, StateLayout(state, None, Partitioner(), mesh))
    return made(state, {"rows": jnp.array([4.0, -3.0]), **batch}, jax.random.key(1))


def test_a_step_goes_down_the_gradient(mesh):
    state, metrics = step(mesh)
    assert np.asarray(state.params["w"]).tolist() == [0.0, 2.75]
    assert (float(state.params["other"]), int(state.step)) == (5.0, 8)
    assert float(metrics["loss"]) == 4.0 - 6.0
    assert float(metrics["gradient_norm"]) == 5.0
    assert metrics["drawn"] == jax.random.uniform(jax.random.fold_in(jax.random.key(1), 7))
    assert set(metrics) == {"loss", "gradient_norm", "drawn"}
    _, metrics = step(mesh, "c")
    assert (float(metrics["loss"]), float(metrics["gradient_norm"])) == (-6.0, 15.0)


def test_messages_of_processes_are_summed_and_no_feature_of_the_batch(mesh):
    _, metrics = step(mesh, **{COUNTS: jnp.array([[1, 2], [3, 4], [5, 6]], jnp.int32)})
    assert np.asarray(metrics[COUNTS]).tolist() == [9, 12]


def test_tasks_of_one_objective_share_a_step(mesh):
    optimizer = optax.sgd(RATE)
    steps = make_train_steps(Toy(), optimizer, StateLayout(state_of(mesh, optimizer), None, Partitioner(), mesh))
    assert list(steps) == ["a", "b", "c"]
    assert steps["a"] is steps["b"]
    assert steps["a"] is not steps["c"]


def test_a_step_can_be_compiled_without_being_run(mesh):
    optimizer = optax.sgd(RATE)
    state = state_of(mesh, optimizer)
    made = make_train_step("a", Toy(), optimizer, StateLayout(state, None, Partitioner(), mesh))
    batch = {"rows": jnp.array([4.0, -3.0]), "factor": jnp.float32(1)}
    lowered = Partitioner().wrap(made.__wrapped__.lower, mesh)(state, batch, jax.random.key(1))
    assert lowered.compile().memory_analysis().argument_size_in_bytes > 0
    assert float(state.params["other"]) == 5.0  # not donated
