"""Examples per second of each reader of the trainer on real TFRecords, compared with the rate of training steps.

    python benchmarks/input_pipeline.py work/examples work/pack --length 128 --batch 128 --step_ms 640

Every set of each folder is read by `GrainBatches` (without TensorFlow) and by `SeqioBatches`, each in its own process.
The first batches fill the buffers and are not timed. `--step_ms` is the time of a training step over such a batch (a
run logs it, or see `train_speed.py`): a reader is fast enough if it produces more examples per second than the steps
consume. Wall-clock rates on a shared CPU are lower bounds; rates by CPU time hardly depend on other processes.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.tasks import registry
from newsembed.tasks.sizes import complete_lengths

UNTIMED = 5
LARGEST_ID = 2**31 - 1  # token ids are not checked here
LENGTHS = ("tokens", "anchor_tokens", "positive_tokens", "negative_tokens")


def open_seqio(data_set: DataSet, options: BatchOptions) -> Any:
    """Opens the reader that needs TensorFlow."""
    from newsembed.tasks.seqio_tasks import SeqioBatches

    return SeqioBatches(data_set, options)


READERS: dict[str, Callable[[DataSet, BatchOptions], Any]] = {"grain": GrainBatches, "seqio": open_seqio}


def measure(reader: str, data_set: DataSet, options: BatchOptions, batches: int) -> dict[str, float]:
    """Returns examples per second and per CPU-second (all threads), and the peak memory of the process."""
    stream = READERS[reader](data_set, options)
    for _ in range(UNTIMED):
        next(stream)
    start, cpu_start = time.perf_counter(), time.process_time()
    tokens = 0
    for _ in range(batches):
        tokens += sum(int(np.count_nonzero(values)) for name, values in next(stream).items() if name in LENGTHS)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return {
        "examples_per_second": batches * options.batch_size / seconds,
        "examples_per_cpu_second": batches * options.batch_size / cpu_seconds,
        "tokens_per_cpu_second": tokens / cpu_seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Prints the table; with ``--one`` measures one reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders of the pack or the examples job")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row; rows of pack must have this length")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--batches", type=int, default=100, help="batches to time")
    parser.add_argument("--step_ms", type=float, help="milliseconds of a training step over one batch")
    parser.add_argument("--one", nargs=3, metavar=("READER", "TASK", "LANGUAGE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    lengths = dict.fromkeys(LENGTHS, args.length)
    if args.one:
        reader, task, language = args.one
        lengths = complete_lengths(args.folders[0], lengths, [task])
        options = BatchOptions(args.folders[0], lengths, args.batch, {"pieces": LARGEST_ID, "topics": LARGEST_ID})
        print(json.dumps(measure(reader, DataSet(task, language), options, args.batches)))
        return
    if args.step_ms:
        print(f"a step of {args.step_ms:g} ms takes {args.batch / args.step_ms * 1e3:,.0f} examples/s\n")
    print("| set | records | reader | examples/s | examples/CPU-s | tokens/CPU-s | MB |\n|---|---|---|---|---|---|---|")
    for folder in args.folders:
        for data_set, records in sorted(registry.example_counts(folder).items()):
            for reader in READERS:
                command = [
                    sys.executable,
                    __file__,
                    folder,
                    f"--length={args.length}",
                    f"--batch={args.batch}",
                    f"--batches={args.batches}",
                ]
                command += ["--one", reader, data_set.task.value, data_set.language]
                found = json.loads(
                    subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
                )
                print(
                    f"| {data_set} | {records:,} | {reader} | {found['examples_per_second']:,.0f} "
                    f"| {found['examples_per_cpu_second']:,.0f} | {found['tokens_per_cpu_second']:,.0f} "
                    f"| {found['megabytes']:,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
