"""Our side of `train_speed.py`: the trainer's step, run as often as the parent says. Imports no TensorFlow."""

import argparse
import dataclasses
import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import flax
import jax
from newsembed.learning.objectives import OBJECTIVES, Model, Objectives
from newsembed.learning.optimizers import adam
from newsembed.learning.partitioning import Partitioner, shard_batch
from newsembed.models.encoders.news import EncoderConfig
from newsembed.training.train_state import StateLayout, TrainStep, make_train_step, plan_state
from train_speed import BATCHES, LEARNING_RATE, MASKING_RATE, TEMPERATURE, Case, make_batch, serve


class Prepared(NamedTuple):
    """A step that is ready to be compiled, its state's layout, and the batches that it takes in turn."""

    step: TrainStep
    layout: StateLayout
    batches: list[Any]


def encoder_config(case: Case) -> EncoderConfig:
    """The encoder of a case."""
    return EncoderConfig(
        vocab_size=case.vocabulary,
        hidden_size=case.hidden,
        num_layers=case.layers,
        num_heads=case.heads,
        mlp_size=case.mlp,
        embedding_size=case.hidden,
        dropout_rate=case.dropout,
        dtype=case.dtype,
    )


def prepare(case: Case, batches: int = BATCHES) -> Prepared:
    """The step of a case, as a run would make it, with so many batches on the devices."""
    objective_class = OBJECTIVES[case.task]
    names = {field.name for field in dataclasses.fields(objective_class)}
    options = {"temperature": TEMPERATURE, "masking_rate": MASKING_RATE, "gradient_chunk": case.chunk}
    chosen = {name: value for name, value in options.items() if name in names}
    config = encoder_config(case)
    objectives = Objectives(Model(config), {case.task: objective_class(**chosen)})
    model, optimizer, partitioner = config.module(), adam(learning_rate=LEARNING_RATE), Partitioner()
    mesh = partitioner.make_mesh()
    layout = plan_state(model, optimizer, partitioner, mesh)
    step = make_train_step(case.task, objectives, optimizer, layout)
    return Prepared(step, layout, [shard_batch(make_batch(case, seed), mesh) for seed in range(batches)])


def stepper(prepared: Prepared) -> Callable[[int], float]:
    """What takes as many steps as it is told, over the batches in turn, and returns the loss of the last one."""
    state, key, turns = prepared.layout.create(jax.random.key(0)), jax.random.key(1), itertools.cycle(prepared.batches)

    def run(steps: int) -> float:
        nonlocal state
        metrics: Any = {}
        for _ in range(steps):
            state, metrics = prepared.step(state, next(turns), key)
        jax.block_until_ready(state)
        return float(metrics["loss"])

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", type=lambda text: Case(**json.loads(text)), required=True)
    prepared = prepare(parser.parse_args().case)
    about = {
        "versions": f"jax {jax.__version__}, flax {flax.__version__}",
        "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        "parameters": sum(array.size for array in jax.tree.leaves(prepared.layout.abstract.params)),
    }
    serve(about, stepper(prepared))


if __name__ == "__main__":
    main()
