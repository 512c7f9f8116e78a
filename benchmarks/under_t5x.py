"""Our trainer and T5X's on the same run: losses at each step and steps per second. Needs T5X, see docs/t5x.md.

    python benchmarks/under_t5x.py DATA_DIR VOCABULARY_PATH [--steps 60] [--pairs 5] [--period 10] [--devices 8]

Both are started as users start them, in pairs whose order alternates, so that noise hits both. Steps per second are the
median of what each of them logs every `--period` steps, without the first period, in which it compiles. The ratio is
that of the pair. CPU seconds per step, between the first record and the last, depend less on what else the machine
does. With `--period 1` each step writes metrics, and the losses of each step of the last pair are compared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).parents[1]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("vocabulary")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--period", type=int, default=10, help="steps between two records of metrics")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--mixture", default="weak_supervision")
    parser.add_argument("--gin_file", default="architectures/tiny.gin")
    parser.add_argument("--gin", action="append", default=[], metavar="NAME=VALUE", help="given to both")
    return parser.parse_args()


def bindings(args, model_dir):
    names = ("anchor_tokens", "positive_tokens", "negative_tokens", "tokens")
    values = {
        "MODEL_DIR": f'"{model_dir}"',
        "DATA_DIR": f'"{args.data}"',
        "VOCABULARY_PATH": f'"{args.vocabulary}"',
        "MIXTURE_OR_TASK_NAME": f'"{args.mixture}"',
        "TASK_FEATURE_LENGTHS": dict.fromkeys(names, args.length) | {"topic_ids": 4},
        "TRAIN_STEPS": args.steps,
        "BATCH_SIZE": args.batch_size,
        "LEARNING_RATE": 1e-3,
        "WARMUP_STEPS": 10,
        "CHECKPOINT_PERIOD": args.steps,
    }
    return [f"--gin.{name}={value}" for name, value in values.items()] + [f"--gin.{value}" for value in args.gin]


def run(args, command):
    """Runs a command to its end; returns the clock, and the CPU seconds used until then, every tenth of a second."""
    environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={args.devices}"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-m", *command], env=environment, **quiet)
    watched, samples = psutil.Process(process.pid), []
    while process.poll() is None:
        used = watched.cpu_times()
        samples.append((time.time(), used.user + used.system))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"it failed: {' '.join(command)}")
    return np.array(samples).T


def events(folder, names):
    """The scalars of TensorBoard files by name and step, and when each step was recorded."""
    import tensorflow as tf

    found, times = {name: {} for name in names}, {}
    for path in sorted(Path(folder).rglob("events*")):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                times.setdefault(event.step, event.wall_time)
                if value.tag in found:
                    found[value.tag][event.step] = float(tf.make_ndarray(value.tensor))
    return found, times


def rate(args, rates):
    """The median of the rates (steps per second by step), without the first period, in which programs are compiled."""
    first = max(args.period, 5)
    return statistics.median(value for step, value in rates.items() if step > first)


def cpu_seconds(args, samples, times):
    """CPU seconds per step, from the end of the first period to the last record."""
    clock, used = samples
    first, last = max(args.period, 5), max(times)
    start, end = np.interp([times[first], times[last]], clock, used)
    return (end - start) / (last - first)


def ours(args, model_dir):
    """Losses by step, steps per second, CPU seconds per step."""
    files = ["--gin_file=models/weak_supervision.gin", f"--gin_file={args.gin_file}"]
    period = f"--gin.LOG_PERIOD={args.period}"
    samples = run(args, ["newsembed", "train", *files, period, *bindings(args, model_dir)])
    records = [json.loads(line) for line in (model_dir / "metrics.jsonl").read_text().splitlines()]
    losses = {r["step"]: next(value for name, value in r.items() if name.startswith("loss/")) for r in records}
    rates = {r["step"]: 1 / r["seconds_per_step"] for r in records if "seconds_per_step" in r}
    _, times = events(model_dir, ())
    return losses, rate(args, rates), cpu_seconds(args, samples, times)


def theirs(args, model_dir):
    """The same of T5X."""
    files = [f"--gin_search_paths={ROOT / 'gin'}", "--gin_file=t5x/train.gin", f"--gin_file={args.gin_file}"]
    period = f"--gin.STATS_PERIOD={args.period}"
    samples = run(args, ["t5x.train", *files, period, *bindings(args, model_dir)])
    values, times = events(model_dir / "train", ("loss", "timing/steps_per_second"))
    return values["loss"], rate(args, values["timing/steps_per_second"]), cpu_seconds(args, samples, times)


def main():
    args = arguments()
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.pairs):
            found = {}
            for side in (ours, theirs) if number % 2 == 0 else (theirs, ours):
                found[side] = side(args, Path(folder) / f"{side.__name__}{number}")
            pairs.append([found[side][1:] for side in (ours, theirs)])
            (left, left_cpu), (right, right_cpu) = pairs[-1]
            print(f"pair {number + 1}: ours {left:.2f}, T5X {right:.2f} steps per second", end="; ")
            print(f"ours {left_cpu:.3f}, T5X {right_cpu:.3f} CPU seconds per step", flush=True)
    for place, name in enumerate(("steps per second", "CPU seconds per step")):
        sides = [[side[place] for side in pair] for pair in pairs]
        ratios = sorted(left / right for left, right in sides)
        left, right = (statistics.median(side) for side in zip(*sides, strict=True))
        print(f"{name}, medians: ours {left:.3f}, T5X {right:.3f}; ", end="")
        print(f"ours / T5X: median {statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")
    if args.period == 1:
        report_losses(found[ours][0], found[theirs][0])


def report_losses(left, right):
    steps = sorted(left.keys() & right.keys())
    largest = max(abs(left[step] - right[step]) for step in steps)
    first, last = steps[0], steps[-1]
    print(f"{len(steps)} steps: losses differ by {largest:.1e} at most")
    print(f"first {left[first]:.6f} and {right[first]:.6f}, last {left[last]:.6f} and {right[last]:.6f}")


if __name__ == "__main__":
    main()
