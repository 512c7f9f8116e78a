"""What the paper's two runs would take: FLOPs, hours, bytes that hosts read, checkpoints, memory of a device, a price.

    python benchmarks/paper_cost.py                                       # seconds
    python benchmarks/paper_cost.py --compile --write docs/scale.md       # and memory, some minutes for each row

Nothing is trained. Parameters, their layout and the FLOPs of a step come from the shapes of `runs/pretrain_paper.gin`
and `runs/weak_supervision_paper.gin`; bytes from records that our writer makes, with all rows full and pieces drawn
evenly, which real rows stay below. A process reads its own share, a block of records with each request. `--compile`
compiles a step for a mesh of simulated devices and asks the compiler for the memory of one. A CPU's compiler fuses
less than that of a TPU and computes attention densely, so that is an upper bound.

    seconds of a step = FLOPs / (devices * peak * mfu)
    price             = devices * hours * dollars of a device and hour
    checkpoint        = bytes of parameters and optimizer / (bytes a second that one host writes)

One host writes a checkpoint, as `training.checkpoints` does in an object store.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GIB = 2**30
VOCABULARY = 500_000
RUNS = {  # run file: the task whose rows are counted
    "pretrain_paper": "mlm",
    "weak_supervision_paper": "triplets",
}
LENGTHS = {"documents": 3, "topic_ids": 20}
# Of weak supervision: devices that share a copy of the model, EncoderConfig.remat, texts at once (0: all).
COMPILED = ((1, "none", 0), (1, "full", 0), (2, "full", 0), (4, "full", 0), (1, "none", 6_144))


class Run(NamedTuple):
    """A run of the paper, by its shapes.

    Attributes:
      name: of the run file.
      rows: of a batch.
      steps: of the run.
      flops: of a step, by task.
      parameters: how many.
      state: bytes of parameters and optimizer.
      record: bytes of a full record.
    """

    name: str
    rows: int
    steps: int
    flops: dict[str, float]
    parameters: int
    state: int
    record: int


def parse() -> argparse.Namespace:
    """The arguments of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=256, help="chips")
    parser.add_argument("--hosts", type=int, default=64, help="machines that hold them")
    parser.add_argument("--peak_tflops", type=float, default=275.0, help="of a chip in bfloat16; TPU v4 by default")
    parser.add_argument("--mfu", type=float, default=0.4, help="share of the peak that the model's arithmetic takes")
    parser.add_argument("--dollars", type=float, default=3.22, help="for an hour of a chip; look yours up")
    parser.add_argument("--write_gigabytes", type=float, default=0.5, help="a second, of one host to the bucket")
    parser.add_argument("--compile", action="store_true", help="compile steps for their memory")
    parser.add_argument("--write", help="Markdown file that gets the tables, between its marks; without --compile, one")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a row of COMPILED, in a process of its own
    return parser.parse_args()


def loaded(run: str, *bindings: str) -> dict[str, Any]:
    """The groups of options of a run file."""
    import gin
    from newsembed.training.gin_config import load_gin

    paths = [f'{name} = "x"' for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH")]
    paths += ['INITIAL_CHECKPOINT_PATH = "x"'] if run.startswith("weak") else []
    load_gin([f"runs/{run}.gin"], [*paths, *bindings])
    return gin.get_bindings("train")


def objectives_for(groups: dict[str, Any]) -> Any:
    """The objectives of a run whose data do not exist."""
    import numpy as np
    from newsembed.learning.objectives import Model, Objectives, objectives_of
    from newsembed.tasks import registry

    config = groups["model"].architecture(vocab_size=VOCABULARY)
    tasks = registry.mixtures()[groups["data"].mixture]
    return Objectives(Model(config, np.zeros(VOCABULARY, bool)), objectives_of(tasks, groups.get("objectives", ())))


def describe(name: str, devices: int) -> Run:
    """A run by its shapes."""
    import jax
    from newsembed.training.metrics import step_flops
    from newsembed.training.train_state import plan_state

    groups = loaded(name)
    data, table, partitioner = groups["data"], objectives_for(groups), groups["model"].partitioner
    mesh = partitioner.abstract_mesh(devices)
    state = plan_state(table.model.module, groups["optimizer"].optimizer, partitioner, mesh).abstract
    lengths = {**LENGTHS, **data.feature_lengths}
    flops = {task: step_flops(table, task, state.params, lengths, data.batch_size) for task in table.of_task}
    parameters = sum(array.size for array in jax.tree.leaves(state.params))
    size = sum(array.size * array.dtype.itemsize for array in jax.tree.leaves((state.params, state.opt_state)))
    record = record_bytes(RUNS[name], lengths)
    return Run(name, data.batch_size, groups["run"].train_steps, flops, parameters, size, record)


def record_bytes(task: str, lengths: dict[str, int]) -> int:
    """Bytes of a TFRecord whose rows are full."""
    import numpy as np
    from newsembed.formats.tfrecords import encode_example, frame
    from newsembed.tasks import registry

    rng, declared = np.random.default_rng(0), registry.get(task)
    shapes, example = declared.shapes(lengths), {}
    for spec in declared.features:
        shape = shapes.get(spec.name, (1,))
        highest = VOCABULARY if spec.name.endswith("tokens") else 512
        values = rng.integers(1, highest, shape).ravel().tolist() if spec.kind == "int" else "en"
        example[spec.name] = values if shape else int(rng.integers(2))
    return len(frame(encode_example(example, declared.features)))


def tables(args: argparse.Namespace, runs: list[Run]) -> Iterator[str]:
    """The tables in Markdown."""
    from newsembed.formats.tfrecords import BLOCK_RECORDS

    yield f"{args.devices} chips of {args.peak_tflops:g} TFLOP/s on {args.hosts} hosts, an MFU of {args.mfu:g}:"
    head = "run | parameters, M | FLOPs a step | seconds a step | hours | dollars | TB read | MB a host and s"
    lines = [f"| {head} | requests a host and s | checkpoint GB | seconds |", f"|---|{'--:|' * 10}"]
    for run in runs:
        flops = max(run.flops.values())
        seconds = flops / (args.devices * args.peak_tflops * 1e12 * args.mfu)
        hours, rate = seconds * run.steps / 3600, run.rows / args.hosts / seconds
        price = args.devices * hours * args.dollars
        values = (
            *(f"{run.parameters / 1e6:,.1f}", f"{flops:.2e}", f"{seconds:.3f}", f"{hours:,.1f}", f"{price:,.0f}"),
            *(f"{run.record * run.rows * run.steps / 1e12:,.1f}", f"{rate * run.record / 1e6:,.2f}"),
            *(f"{rate / BLOCK_RECORDS:.3f}", f"{run.state / 1e9:.2f}", f"{run.state / args.write_gigabytes / 1e9:.0f}"),
        )
        lines.append(f"| `{run.name}` | {' | '.join(values)} |")
    yield "\n".join(lines)
    if args.compile:
        head = [
            "| data x model | remat | texts at once | state GiB | compiler's GiB | compiled in s |",
            f"|{'---|' * 6}",
        ]
        rows = [in_a_process(args.devices, row) for row in range(len(COMPILED))]
        yield "\n".join([*head, *rows])


def in_a_process(devices: int, row: int) -> str:
    """A row of the table of memory."""
    memory = "--xla_cpu_enable_concurrency_optimized_scheduler=false"  # the order of least memory
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} {memory}", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, "--one", str(row), "--devices", str(devices)]
    done = subprocess.run(command, env=os.environ | flags, stdout=subprocess.PIPE, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("| "))
    print(line, file=sys.stderr, flush=True)
    return line


def compile_one(row: int) -> str:
    """Compiles a step of weak supervision for the devices of this process."""
    import time

    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec
    from newsembed.learning.partitioning import DATA_AXIS
    from newsembed.tasks import registry
    from newsembed.training.train_state import bytes_per_device, make_train_step, plan_state

    model, remat, chunk = COMPILED[row]
    options = (f"MODEL_PARALLEL = {model}", f'EncoderConfig.remat = "{remat}"', f"GRADIENT_CHUNK = {chunk}")
    groups = loaded("weak_supervision_paper", *options)
    table, partitioner, data = objectives_for(groups), groups["model"].partitioner, groups["data"]
    mesh = partitioner.make_mesh()
    layout = plan_state(table.model.module, groups["optimizer"].optimizer, partitioner, mesh)
    split = NamedSharding(mesh, PartitionSpec(DATA_AXIS))
    batch = {
        name: jax.ShapeDtypeStruct((data.batch_size, *shape), jnp.int32, sharding=split)
        for name, shape in registry.get("triplets").shapes(data.feature_lengths).items()
    }
    started = time.monotonic()
    step = make_train_step("triplets", table, groups["optimizer"].optimizer, layout)
    lower = partitioner.wrap(step.__wrapped__.lower, mesh)
    memory = lower(layout.abstract, batch, jax.random.key(0)).compile().memory_analysis()
    state, seconds = bytes_per_device(layout.abstract), time.monotonic() - started
    shape = " x ".join(map(str, mesh.devices.shape))
    sizes = f"{state / GIB:.1f} | {memory.temp_size_in_bytes / GIB:.1f}"
    return f"| {shape} | {remat} | {f'{chunk:,}' if chunk else 'all'} | {sizes} | {seconds:.0f} |"


def write_between(path: str, mark: str, text: str) -> None:
    """Replaces what is between the two lines of a Markdown file that have a mark.

    Raises:
      SystemExit: if the file lacks one of them.
    """
    page, begin, end = Path(path), f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{path} has no lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Prints or writes the tables."""
    args = parse()
    if args.one is not None:
        print(compile_one(int(args.one)))
        return
    if args.write and not Path(args.write).is_file():  # before the minutes of --compile
        raise SystemExit(f"--write: no such file: {args.write}")
    text = "\n\n".join(tables(args, [describe(name, args.devices) for name in RUNS]))
    print(text)
    if args.write:
        write_between(args.write, "paper_cost", text)


if __name__ == "__main__":
    main()
