"""The registry of objectives: who serves which task, and what a table of objectives does for all of them."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.learning import objectives
from newsembed.learning.objectives import Model, Objective, Objectives, objectives_of
from newsembed.learning.objectives.contrastive import Contrastive
from newsembed.learning.objectives.topics import Topics
from newsembed.models.encoders import Capability
from newsembed.tasks.registry import MIXED
from objective_runs import CONFIG


@dataclasses.dataclass(frozen=True)
class Halving(Objective):
    """Half of a bias."""

    tasks: ClassVar[tuple[str, ...]] = ("halving",)

    @property
    def needs(self):
        return (Capability.TOPICS,)

    def loss(self, model, params, batch, key):
        return params["bias"] / 2, {"accuracy": jnp.zeros(())}


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(objectives, "OBJECTIVES", dict(objectives.OBJECTIVES))
    return objectives.OBJECTIVES


def test_tasks_of_one_class_share_one_objective():
    chosen = objectives_of(["tlm", "mlm", "topics"])
    assert list(chosen) == ["mlm", "tlm", "topics"]
    assert chosen["mlm"] is chosen["tlm"]
    assert isinstance(chosen["topics"], Topics)


def test_a_given_objective_takes_the_place_of_the_registered_one():
    mine = Contrastive(temperature=0.3)
    chosen = objectives_of(["triplets", "topics"], [mine])
    assert chosen["triplets"] is mine
    assert chosen["topics"] == Topics()


def test_a_task_without_an_objective_is_named():
    with pytest.raises(InputError, match="the task 'poems' has no objective; there are those of mlm, .*triplets"):
        objectives_of(["mlm", "poems"])


def test_two_objectives_for_one_task_are_named():
    with pytest.raises(InputError, match="two objectives for the task 'triplets': Contrastive and Contrastive"):
        objectives_of(["triplets"], [Contrastive(), Contrastive()])


def test_a_task_is_registered_once(registry):
    class Other(Halving):
        tasks = ("topics",)

    with pytest.raises(ValueError, match="the task 'topics' has two objectives"):
        objectives.register(Other)
    assert registry["topics"] is Topics


def test_an_objective_of_another_module_serves_its_own_task(registry):
    assert objectives.register(Halving) is Halving
    assert objectives_of(["halving"]) == {"halving": Halving()}


def test_an_architecture_that_lacks_what_an_objective_needs_is_named(monkeypatch):
    monkeypatch.setattr(type(CONFIG), "capabilities", frozenset({Capability.SEQUENCE}))
    for task, capability in (("mlm", "masked_lm"), ("topics", "topics")):
        with pytest.raises(InputError, match=f"the objective .* needs {capability}, and"):
            Objectives(Model(CONFIG), objectives_of([task]))
    assert Objectives(Model(CONFIG), objectives_of(["triplets"])).pretrains is False


@pytest.mark.parametrize(
    ("tasks", "pretrains"), [(["mlm", "tlm"], True), (["mlm", "topics"], False), (["topics"], False)]
)
def test_a_run_pretrains_if_no_objective_trains_the_embedding(tasks, pretrains):
    assert Objectives(Model(CONFIG), objectives_of(tasks)).pretrains is pretrains


def test_held_out_losses_are_without_dropout_and_without_the_masked_language_model():
    contrastive = Contrastive(mlm_weight=0.1, temperature=0.3)
    table = Objectives(Model(CONFIG, jnp.zeros(1, bool)), {"triplets": contrastive}).evaluated()
    assert table.model.config.dropout_rate == 0.0
    assert table.of_task == {"triplets": Contrastive(temperature=0.3)}


@dataclasses.dataclass(frozen=True)
class Scaled(Objective):
    """The sum of the rows, by a factor of its table."""

    tasks: ClassVar[tuple[str, ...]] = ("scaled",)
    factor: float = 1.0

    def tables(self):
        return {"factor": np.float32(self.factor)}

    def loss(self, model, params, batch, key):
        assert set(batch) == {"rows", "factor"}
        return batch["factor"] * jnp.sum(batch["rows"]), {"drawn": jax.random.uniform(key)}


def test_the_loss_of_a_mixed_batch_is_the_mean_over_its_rows():
    table = Objectives(Model(CONFIG), {"a": Scaled(2.0), "b": Scaled(3.0)}, {"a": 0.25, "b": 0.75})
    assert table.tables(MIXED) == {"a/factor": 2.0, "b/factor": 3.0}
    given = {"a/rows": jnp.array([1.0, 2.0]), "b/rows": jnp.array([4.0])}
    for batch in (given, given | {"a/factor": 2.0, "b/factor": 3.0}):
        loss, metrics = table.loss(MIXED, {}, batch, jax.random.key(0))
        assert float(loss) == 0.25 * 2.0 * 3.0 + 0.75 * 3.0 * 4.0
        assert (float(metrics["loss_a"]), float(metrics["loss_b"])) == (6.0, 12.0)
        assert metrics["drawn_a"] != metrics["drawn_b"]
