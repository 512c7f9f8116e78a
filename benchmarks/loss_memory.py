"""Memory that the losses need in addition to arguments and results, in chunks and whole.

The figures are from XLA's memory analysis of the compiled programs; nothing runs.

    python benchmarks/loss_memory.py

Figures are of one device's program for CPU; other backends fuse more, but neither can spare what the whole batch or all
logits must hold.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.contrastive import Contrastive
from newsembed.learning.partitioning import Partitioner
from newsembed.models.encoders.news import EncoderConfig
from newsembed.models.losses import masked_language_model, mean_cross_entropy
from newsembed.models.softmax import chunk_of_device, softmax_terms
from newsembed.training.train_state import plan_state

PIECES, WIDTH = 500_000, 768
SMALL = EncoderConfig(
    vocab_size=16_000,
    hidden_size=256,
    num_layers=4,
    num_heads=4,
    mlp_size=1024,
    embedding_size=256,
    norm="pre",
    pooling="mean",
    dropout_rate=0.1,
)


def gib(compiled: jax.stages.Compiled) -> float:
    return compiled.memory_analysis().temp_size_in_bytes / 2**30


def softmax(partitioner: Partitioner, mesh: Mesh, positions: int, *, whole: bool) -> float:
    def loss(states, table, bias, targets, weights):
        if whole:
            logits = jnp.einsum("nh,vh->nv", states, table, preferred_element_type=jnp.float32) + bias
            return masked_language_model(logits, targets, weights).loss
        return mean_cross_entropy(
            softmax_terms(states, table, bias, targets, chunk=chunk_of_device(positions, PIECES, 0)), weights
        ).loss

    def array(shape, axis, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(axis)))

    rows, pieces = functools.partial(array, axis="data"), functools.partial(array, axis="model")
    arguments = (
        rows((positions, WIDTH)),
        pieces((PIECES, WIDTH)),
        pieces((PIECES,)),
        rows((positions,), dtype=jnp.int32),
        rows((positions,)),
    )
    return gib(partitioner.wrap(jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower, mesh)(*arguments).compile())


def triplets(partitioner: Partitioner, mesh: Mesh, config: EncoderConfig, length: int, rows: int, chunk: int) -> float:
    objectives = Objectives(Model(config), {"triplets": Contrastive(gradient_chunk=chunk)})
    params = plan_state(config.module(), optax.sgd(0.1), partitioner, mesh).abstract.params
    shapes = {f"{name}_tokens": (rows, length) for name in ("anchor", "positive", "negative")}
    shapes |= {f"{name}_doc_id": (rows, 2) for name in ("anchor", "positive", "negative")} | {
        "translated": (rows,),
        "augmentation": (rows,),
    }
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    batch = {name: jax.ShapeDtypeStruct(shape, jnp.int32, sharding=sharding) for name, shape in shapes.items()}
    gradient = jax.jit(jax.grad(lambda params, batch: objectives.loss("triplets", params, batch, jax.random.key(0))[0]))
    return gib(partitioner.wrap(gradient.lower, mesh)(nn.unbox(params), batch).compile())


def main() -> None:
    print(f"jax {jax.__version__}")
    for devices, model_parallel in ((1, 1), (8, 1), (8, 2)):
        partitioner = Partitioner(model_parallel=model_parallel)
        mesh = partitioner.make_mesh(jax.devices()[:devices])
        place = f"{devices // model_parallel} x {model_parallel} devices"
        for positions in (4096, 22_528):
            whole, chunked = (softmax(partitioner, mesh, positions, whole=whole) for whole in (True, False))
            case = f"{place}, masked language model, {positions} positions, {PIECES} pieces"
            print(f"{case}: whole {whole:.2f} GiB, in chunks {chunked:.2f} GiB")
        if (devices, model_parallel) == (8, 1):
            continue
        for length, chunk in ((128, 0), (128, 3072), (128, 768)):
            taken = triplets(partitioner, mesh, SMALL, length, 8192, chunk)
            print(
                f"{place}, 8192 triplets of {length} tokens, 4 x 256, gradient_chunk={chunk}: {taken:.2f} GiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
