"""Our trainer and T5X's on the same run: losses at each step and steps per second. Needs T5X, see docs/t5x.md.

    python benchmarks/under_t5x.py DATA_DIR VOCABULARY_PATH [--steps 200] [--devices 8] [--gin_file FILE]

Both are started as users start them, one after the other; the last pass is reported. Steps per second are the median
over the steps from the fifth on, as each of them logs them: the time between the ends of two steps. Both write metrics
at every step.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = 5  # steps before it may compile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("vocabulary")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--passes", type=int, default=2)
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
    environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={args.devices}"}
    subprocess.run([sys.executable, "-W", "ignore", "-m", *command], check=True, env=environment, capture_output=True)


def ours(args, model_dir):
    files = ["--gin_file=models/weak_supervision.gin", f"--gin_file={args.gin_file}", "--gin.LOG_PERIOD=1"]
    run(args, ["newsembed", "train", *files, *bindings(args, model_dir)])
    records = [json.loads(line) for line in (model_dir / "metrics.jsonl").read_text().splitlines()]
    losses = {r["step"]: next(value for name, value in r.items() if name.startswith("loss/")) for r in records}
    times = [r["seconds_per_step"] for r in records if r["step"] >= FIRST and "seconds_per_step" in r]
    return losses, 1 / statistics.median(times)


def theirs(args, model_dir):
    files = [f"--gin_search_paths={ROOT / 'gin'}", "--gin_file=t5x/train.gin", f"--gin_file={args.gin_file}"]
    run(args, ["t5x.train", *files, "--gin.STATS_PERIOD=1", *bindings(args, model_dir)])
    values = {"loss": {}, "timing/steps_per_second": {}}
    import tensorflow as tf

    for path in sorted((model_dir / "train").glob("events*")):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.tag in values:
                    values[value.tag][event.step] = float(tf.make_ndarray(value.tensor))
    rates = [rate for step, rate in values["timing/steps_per_second"].items() if step >= FIRST]
    return values["loss"], statistics.median(rates)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.passes):
            left, our_rate = ours(args, Path(folder) / f"ours{number}")
            right, their_rate = theirs(args, Path(folder) / f"theirs{number}")
    steps = sorted(left.keys() & right.keys())
    largest = max(abs(left[step] - right[step]) for step in steps)
    print(f"{len(steps)} steps on {args.devices} devices: losses differ by {largest:.1e} at most")
    print(
        f"first {left[steps[0]]:.6f} and {right[steps[0]]:.6f}, last {left[steps[-1]]:.6f} and {right[steps[-1]]:.6f}"
    )
    print(f"steps per second: ours {our_rate:.1f}, T5X {their_rate:.1f}, ratio {our_rate / their_rate:.2f}")


if __name__ == "__main__":
    main()
