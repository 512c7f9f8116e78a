"""Our side of `train_speed.py`: the trainer's step, run as often as the parent says. Imports no TensorFlow."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import flax
import jax
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder
from newsembed.training.optimizers import adam
from newsembed.training.partitioning import Partitioner, shard_batch
from newsembed.training.steps import Losses, TaskLosses, make_train_step
from newsembed.training.train_state import plan_state
from train_speed import BATCHES, LEARNING_RATE, MASKING_RATE, TEMPERATURE, Case, make_batch, serve


def assigned(texts: Sequence[str]) -> dict[str, Any]:
    """NAME=JSON as keyword arguments."""
    return {name: json.loads(value) for name, _, value in (text.partition("=") for text in texts)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", type=lambda text: Case(**json.loads(text)), required=True)
    parser.add_argument("--encoder", nargs="*", default=[])
    parser.add_argument("--losses", nargs="*", default=[])
    args = parser.parse_args()
    case: Case = args.case
    config = EncoderConfig(
        **{
            "vocab_size": case.vocabulary,
            "hidden_size": case.hidden,
            "num_layers": case.layers,
            "num_heads": case.heads,
            "mlp_size": case.mlp,
            "embedding_size": case.hidden,
            "dropout_rate": case.dropout,
            "dtype": case.dtype,
        }
        | assigned(args.encoder)
    )
    options = {"temperature": TEMPERATURE, "masking_rate": MASKING_RATE} | assigned(args.losses)
    if case.chunk:
        if "gradient_chunk" not in {field.name for field in dataclasses.fields(Losses)}:
            sys.exit(
                "Losses has no gradient_chunk: this version of newsembed cannot cut a batch of triplets into chunks"
            )
        options.setdefault("gradient_chunk", case.chunk)
    model, optimizer, partitioner = NewsEncoder(config), adam(learning_rate=LEARNING_RATE), Partitioner()
    mesh = partitioner.make_mesh()
    layout = plan_state(model, optimizer, partitioner, mesh)
    task = case.task
    step = make_train_step(task, TaskLosses(model, Losses(**options)), optimizer, layout.abstract, partitioner, mesh)
    state, key = layout.create(jax.random.key(0)), jax.random.key(1)
    batches = [shard_batch(make_batch(case, seed), mesh) for seed in range(BATCHES)]
    done = 0

    def run(steps: int) -> float:
        nonlocal state, done
        metrics: Any = {}
        for _ in range(steps):
            state, metrics = step(state, batches[done % BATCHES], key)
            done += 1
        jax.block_until_ready(state)
        return float(metrics["loss"])

    serve(
        {
            "versions": f"jax {jax.__version__}, flax {flax.__version__}",
            "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
            "parameters": sum(array.size for array in jax.tree.leaves(layout.abstract.params)),
        },
        run,
    )


if __name__ == "__main__":
    main()
