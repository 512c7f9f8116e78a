"""What an accelerator does with this trainer, in ten minutes: steps and their MFU, encoding, and a lift of MiniLM.

    make gpu                                                         # BERT-base and MiniLM, random batches
    python benchmarks/gpu.py --work work --start minilm --minutes 60 --suite events=heldout.jsonl    # and a lift
    python benchmarks/gpu.py --compile_only                          # FLOPs and memory alone, on any machine

Each row is a process of its own, so that it has the whole memory of the device. A batch that does not fit is halved
until it does, and the table shows what ran. MFU counts the model's own operations, not what is computed again, against
the device's dense peak in bfloat16; `--peak_tflops` names it for a device that `training.metrics` does not list. Peak
memory is what the device reports after the row.

With `--compile_only` a step is compiled and not run: FLOPs as above, and memory by the compiler's own account. A CPU's
compiler fuses other things than that of a GPU, so its figures are an upper bound.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from typing import Any

from train_speed import CASES, MARK, Case

GIB = 2**30
ENCODE = "encode"
MINILM = {"layers": 6, "hidden": 384, "heads": 12, "mlp": 1_536, "vocabulary": 30_522, "dropout": 0.0}
STEPS = {
    "gpu": [*CASES["gpu"], Case("triplets", batch=512, length=128, dtype="bfloat16", **MINILM)],
    "tiny": CASES["tiny"],
}
TEXTS = {
    "gpu": [
        Case(ENCODE, 12, 768, 12, 3_072, 1_024, 128, dtype="bfloat16"),
        Case(ENCODE, 12, 768, 12, 3_072, 256, 512, dtype="bfloat16"),
        Case(ENCODE, batch=1_024, length=256, dtype="float32", **MINILM),
        Case(ENCODE, batch=1_024, length=256, dtype="bfloat16", **MINILM),
    ],
    "tiny": [Case(ENCODE, 2, 32, 2, 64, 8, 16, vocabulary=200)],
}
LEAST_SECONDS = 5.0  # of a measurement
LIFT_STEPS = 1_000
_MEMORY = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92"}  # the batches of `train_speed.py` fill it
COLUMNS = ("what", "device", "ms", "tokens/s", "texts/s", "MFU", "peak GiB", "compiled in s")
COMPILED = ("what", "TFLOP a step", "state GiB", "step GiB", "compiled in s")


def main() -> int:
    args = read_arguments()
    if args.row:
        print(MARK + json.dumps(measure(Case(**json.loads(args.row)), args)), flush=True)
        return 0
    began = time.monotonic()
    columns = COMPILED if args.compile_only else COLUMNS
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    failed = 0
    for case in [*STEPS[args.cases], *([] if args.compile_only else TEXTS[args.cases])]:
        left = 60 * args.minutes - (time.monotonic() - began)
        failed += not show(case, left)
    if args.work and not args.compile_only:
        failed += not lift(args, 60 * args.minutes - (time.monotonic() - began))
    return 1 if failed else 0


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", choices=list(STEPS), default="gpu", help="tiny tries the script on any machine")
    parser.add_argument("--minutes", type=float, default=10, help="for all rows; the lift has what the others leave")
    parser.add_argument("--compile_only", action="store_true", help="run nothing")
    parser.add_argument("--peak_tflops", type=float, help="of one device in the type of the rows")
    parser.add_argument("--work", help="folder of a finished `newsembed build`, for the lift")
    parser.add_argument("--start", default="minilm", help="of the lift, see `newsembed lift`")
    parser.add_argument("--lift_steps", type=int, default=LIFT_STEPS)
    parser.add_argument("--output", default="build/gpu-lift", help="of the lift")
    parser.add_argument("--suite", action="append", default=[], help="of the lift, see `newsembed lift`")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.row and not args.compile_only and args.cases == "gpu":
        require_accelerator(parser)
    return args


def require_accelerator(parser: argparse.ArgumentParser) -> None:
    """Ends with an error where JAX sees a CPU alone: these sizes would take hours there."""
    command = [sys.executable, "-c", "import jax; print(jax.default_backend())"]
    backend = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if backend == "cpu":
        parser.error("JAX sees no GPU or TPU; install newsembed[gpu] on a machine that has one, or use --compile_only")


def show(case: Case, seconds: float) -> bool:
    """Prints the row of a case, by half the batch where memory is short; whether it could be measured."""
    rest = [argument for argument in sys.argv[1:] if not argument.startswith("--row")]
    while True:
        command = [sys.executable, __file__, *rest, "--row", json.dumps(dataclasses.asdict(case))]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=max(seconds, 1), check=False, env=_MEMORY | os.environ
            )
        except subprocess.TimeoutExpired:
            print(f"| {case.name} | not finished in the {seconds:.0f} s that were left |", flush=True)
            return False
        answer = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), None)
        if answer is not None:
            print("| " + " | ".join([case.name, *json.loads(answer.removeprefix(MARK))]) + " |", flush=True)
            return True
        if "RESOURCE_EXHAUSTED" not in done.stderr or case.batch < 2:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print(f"| {case.name} | failed: {last} |", flush=True)
            print(done.stderr, file=sys.stderr)
            return False
        chunk = min(case.chunk, 3 * (case.batch // 2)) if case.chunk else 0
        case = dataclasses.replace(case, batch=case.batch // 2, chunk=chunk)


def measure(case: Case, args: argparse.Namespace) -> list[str]:
    """The cells of a row, in the process that has the device."""
    import jax
    from newsembed.training.metrics import peak_flops
    from train_speed_ours import prepare, stepper

    if args.compile_only:
        return compiled(case)
    run, flops = encoding(case) if case.task == ENCODE else (stepper(prepare(case)), case.flops)
    started = time.monotonic()
    run(1)
    compile_seconds = time.monotonic() - started
    steps, spent = 2, 0.0
    while True:
        started = time.monotonic()
        run(steps)
        spent = time.monotonic() - started
        if spent >= LEAST_SECONDS or (args.cases == "tiny" and steps >= 8):
            break
        steps *= 2
    step = spent / steps
    peak = (args.peak_tflops or 0) * 1e12 or peak_flops(jax.devices()[0].device_kind)
    used = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return [
        f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        f"{1e3 * step:,.1f}",
        f"{case.tokens / step:,.0f}",
        f"{case.tokens / case.length / step:,.0f}",
        f"{flops / step / peak / jax.device_count():.1%}" if peak else "-",
        f"{used / GIB:.1f}" if used else "-",
        f"{compile_seconds:.0f}",
    ]


def encoding(case: Case) -> tuple[Any, float]:
    """Embeds texts of full length, and the model FLOPs of a batch."""
    import jax
    import numpy as np
    from newsembed.learning.partitioning import Partitioner, shard_batch
    from newsembed.training.metrics import count_flops
    from train_speed_ours import encoder_config

    config = encoder_config(case)
    module = config.module()
    texts = np.random.default_rng(0).integers(5, case.vocabulary, (case.batch, case.length), dtype=np.int32)
    batch = shard_batch({"texts": texts}, Partitioner().make_mesh())["texts"]
    params = jax.jit(lambda key: module.init(key, texts[:1], method="embed"))(jax.random.key(0))["params"]
    embed = jax.jit(lambda params, texts: module.apply({"params": params}, texts, method="embed"))

    def run(steps: int) -> None:
        found = [embed(params, batch) for _ in range(steps)]
        jax.block_until_ready(found)

    return run, count_flops(embed, params, batch)


def compiled(case: Case) -> list[str]:
    import jax
    from newsembed.learning.partitioning import Partitioner
    from newsembed.training.train_state import bytes_per_device
    from train_speed_ours import prepare

    prepared = prepare(case, batches=1)
    started = time.monotonic()
    partitioner = Partitioner()
    lower = partitioner.wrap(prepared.step.__wrapped__.lower, partitioner.make_mesh())
    memory = lower(prepared.layout.abstract, prepared.batches[0], jax.random.key(0)).compile().memory_analysis()
    seconds = time.monotonic() - started
    sizes = (bytes_per_device(prepared.layout.abstract), memory.temp_size_in_bytes)
    return [f"{case.flops / 1e12:,.1f}", *(f"{size / GIB:.1f}" for size in sizes), f"{seconds:.0f}"]


def lift(args: argparse.Namespace, seconds: float) -> bool:
    """Runs `newsembed lift` for what is left of the time; whether it ended well. It resumes where it stopped."""
    command = [sys.executable, "-m", "newsembed", "lift", "--start", args.start, "--work", args.work]
    command += ["--output", args.output, "--train_steps", str(args.lift_steps)]
    command += [part for suite in args.suite for part in ("--suite", suite)]
    print(f"\n{' '.join(command)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(command)
    try:
        code = process.wait(max(seconds, 1))
    except subprocess.TimeoutExpired:
        process.terminate()  # it saves a checkpoint
        process.wait()
        print(f"\nthe lift was not finished in {seconds:.0f} s; the same command resumes it")
        return False
    print(f"\nlift of {args.start}: {args.lift_steps} steps in {time.monotonic() - started:.0f} s, exit code {code}")
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
