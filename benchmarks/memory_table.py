"""Bytes a training step needs on each device, by task, batch, length and vocabulary, from the compiler's own account.

Nothing is allocated or run: the step is compiled for simulated devices and `memory_analysis()` says what it would take.
`state` is parameters and Adam's moments, `step` what comes on top at the worst moment: activations, gradients, logits.
A CPU compiler fuses other things than that of a TPU or GPU, so read the figures as the growth with batch, length and
vocabulary, and as an upper bound for bfloat16 machines.

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python benchmarks/memory_table.py --model_parallel 1 4
"""

import argparse
import dataclasses
import time

import jax
import jax.numpy as jnp
import optax
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig
from newsembed.training.train_state import bytes_per_device, plan_state
from newsembed.training.train_step import make_train_step

MIB = 2**20


def batch_shapes(task, batch, length):
    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    if task == "mlm":
        return dict.fromkeys(("tokens", "segment_ids", "positions", "word_ids"), tokens)
    names = ("anchor", "positive", "negative")
    ids, one = jax.ShapeDtypeStruct((batch, 2), jnp.int32), jax.ShapeDtypeStruct((batch,), jnp.int32)
    return (
        {f"{name}_tokens": tokens for name in names}
        | {f"{name}_doc_id": ids for name in names}
        | {"augmentation": one, "translated": one}
    )


def measure(task, config, batch, length, model_parallel):
    """(state, step) in bytes on each device, and the seconds of the compilation."""
    partitioner, optimizer, model = Partitioner(model_parallel=model_parallel), optax.adam(1e-4), config.module()
    mesh = partitioner.make_mesh()
    layout = plan_state(model, optimizer, partitioner, mesh)
    objectives = Objectives(Model(config), objectives_of([task]))
    step = make_train_step(task, objectives, optimizer, layout.abstract, partitioner, mesh)
    started = time.monotonic()
    compiled = partitioner.wrap(step.__wrapped__.lower, mesh)(
        layout.abstract, batch_shapes(task, batch, length), jax.random.key(0)
    ).compile()
    memory = compiled.memory_analysis()
    return bytes_per_device(layout.abstract), memory.temp_size_in_bytes, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden_size", type=int, default=768)
    parser.add_argument("--tasks", nargs="+", default=["mlm", "triplets"])
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 16], help="over all devices")
    parser.add_argument("--length", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[32_000, 500_000])
    parser.add_argument("--model_parallel", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    base = EncoderConfig(
        1,
        args.hidden_size,
        args.layers,
        args.hidden_size // 64,
        4 * args.hidden_size,
        max(args.length),
        dtype="bfloat16",
    )
    print("| task | vocabulary | batch x length | data x model | state MiB | step MiB | compiled in s |")
    print("|---|---|---|---|---|---|---|")
    for task in args.tasks:
        for vocabulary in args.vocabulary:
            config = dataclasses.replace(base, vocab_size=vocabulary)
            for batch in args.batch:
                for length in args.length:
                    for parallel in args.model_parallel:
                        state, step, seconds = measure(task, config, batch, length, parallel)
                        mesh = f"{jax.device_count() // parallel} x {parallel}"
                        cells = (
                            task,
                            f"{vocabulary:,}",
                            f"{batch} x {length}",
                            mesh,
                            f"{state / MIB:,.0f}",
                            f"{step / MIB:,.0f}",
                            f"{seconds:.0f}",
                        )
                        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
