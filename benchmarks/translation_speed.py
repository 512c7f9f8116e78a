"""Words a second of T-MDE and LASER: training steps with and without the distance, and encoding (Table 4.1).

Every system trains on the same random rows. A "word" is a target token, as in the thesis; its figures are of a GPU.
Most of the time is compilation: three functions for each system, which are named on stderr as they start.

  python benchmarks/translation_speed.py
  python benchmarks/translation_speed.py --size 1024 --layers 6 --vocab 50000 --batch 512 --systems T-MDE,LASER_6
"""

import argparse
import dataclasses
import sys
import time

import jax
import numpy as np
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.translation import Translation
from newsembed.learning.optimizers import adam
from newsembed.learning.partitioning import Partitioner, shard_batch
from newsembed.models.encoders import LaserConfig, TranslatorConfig
from newsembed.training.train_state import plan_state
from newsembed.training.train_step import make_train_step


def systems(size, layers, vocab_size):
    encoder = TranslatorConfig(vocab_size, hidden_size=size, num_layers=layers, num_heads=4, mlp_size=4 * size)
    laser = LaserConfig(vocab_size, token_size=size // 2, hidden_size=size // 2, decoder_size=2 * size)
    return {
        "T-MDE": encoder,
        "T-MDE_P": dataclasses.replace(encoder, bottleneck="pooled", num_layers=max(layers, 3)),
        "T-MDE_F": dataclasses.replace(encoder, bottleneck="none"),
        "LASER_1": dataclasses.replace(laser, num_layers=1),
        "LASER_6": dataclasses.replace(laser, num_layers=6),
    }


def step_seconds(config, weight, batch, steps):
    """Wall seconds of the fastest of some steps, without compilation."""
    partitioner = Partitioner()
    mesh = partitioner.make_mesh()
    optimizer = adam(1e-4)
    layout = plan_state(config.module(), optimizer, partitioner, mesh)
    objectives = Objectives(Model(config), {"translation": Translation(distance_weight=weight)})
    step = make_train_step("translation", objectives, optimizer, layout.abstract, partitioner, mesh)
    state, key, rows = layout.create(jax.random.key(0)), jax.random.key(1), shard_batch(batch, mesh)
    times = []
    for _ in range(steps + 1):
        started = time.perf_counter()
        state, metrics = step(state, rows, key)
        jax.block_until_ready(metrics)
        times.append(time.perf_counter() - started)
    return min(times[1:]), state.params


def embed_seconds(config, params, tokens, steps):
    call = jax.jit(lambda p, rows: config.module().apply({"params": p}, rows, method="embed"))
    call(params, tokens).block_until_ready()
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        call(params, tokens).block_until_ready()
        times.append(time.perf_counter() - started)
    return min(times)


def tell(started, name, what):
    print(f"{time.perf_counter() - started:6.1f} s  {name}: {what}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("size", 64), ("layers", 3), ("vocab", 4000), ("batch", 32), ("length", 32), ("steps", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--systems", default="T-MDE,T-MDE_F,LASER_1", help="also T-MDE_P (at least 3 layers), LASER_6")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    source, target = (rng.integers(5, args.vocab, (args.batch, args.length)).astype(np.int32) for _ in range(2))
    batch = {"source_tokens": source, "target_tokens": target, "target_language": np.zeros(args.batch, np.int32)}
    words = args.batch * (args.length - 1) / 1000
    known, started = systems(args.size, args.layers, args.vocab), time.perf_counter()
    print("| system | training, K words/s | with distance | encoding, K words/s |\n|---|---|---|---|", flush=True)
    for name in args.systems.split(","):
        config = known[name]
        tell(started, name, "training")
        plain, params = step_seconds(config, 0.0, batch, args.steps)
        tell(started, name, "with distance")
        distance, _ = step_seconds(config, 0.25, batch, args.steps)
        tell(started, name, "encoding")
        encoding = embed_seconds(config, params, source, args.steps)
        row = (words / plain, words / distance, args.batch * args.length / 1000 / encoding)
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in row)} |", flush=True)


if __name__ == "__main__":
    main()
