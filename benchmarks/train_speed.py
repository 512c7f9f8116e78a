"""Compares the step time of this trainer with Hugging Face transformers on torch: the same BERT, batch and optimizer.

    python benchmarks/train_speed.py --cases cpu --torch_python /path/to/torch-venv/bin/python
    python benchmarks/train_speed.py --cases gpu --torch_python /path/to/torch-venv/bin/python --torch_compile

Ours is `training.train_state.make_train_step` as a run uses it (whole words masked on the device, gradient norm too).
The peer is BertForMaskedLM or BertModel with a dense head, sdpa attention without a mask (so that it may take flash
attention), fused Adam, float32 parameters, and autocast where the type is bfloat16. Both compute logits at the masked
positions only. Rows are full, so nobody gains by skipping padding. Each side is a process of its own; torch may live in
another environment.

Measurements alternate, so that noise hits both: in every round both processes run the same number of steps, the order
turns around, and the ratio is that of the round. On an accelerator only one process exists at a time, in the order
ours, torch, torch, ours: batches that fill the memory need that. On a CPU that others use, too, time `--cores 1` and
read the ratio of CPU times: torch's threads wait for each other, which costs it dearly where a core is taken away. MFU
counts the model's own operations, not what is computed again, against the device's dense peak.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MARK = "@train_speed "
BATCHES = 4
SPECIAL_TOKENS = 5
MASKING_RATE = 0.15
TEMPERATURE = 0.05
LEARNING_RATE = 1e-4
COLUMNS = (
    "case | ours ms | torch ms | torch / ours | the same in CPU time | ours tokens/s | torch tokens/s | ours MFU | "
    "torch MFU | last losses | million parameters"
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing to time.

    Attributes:
      task: mlm, or triplets (three texts a row of the batch).
      layers, hidden, heads, mlp, vocabulary: of the BERT.
      batch: rows (mlm) or triplets.
      length: tokens of a text.
      dtype: of activations.
      chunk: texts whose activations exist at a time (gradient caching, on both sides); 0 for all.
      dropout: on embeddings and on each block's outputs; attention probabilities are not dropped on either side.
    """

    task: str
    layers: int
    hidden: int
    heads: int
    mlp: int
    batch: int
    length: int
    vocabulary: int = 32_000
    dtype: str = "float32"
    chunk: int = 0
    dropout: float = 0.1

    @property
    def name(self) -> str:
        kind = f"{self.batch} triplets" if self.task == "triplets" else f"{self.task} {self.batch}"
        chunk = f", {self.chunk} texts at a time" if self.chunk else ""
        return f"{self.layers} layers, {self.hidden} wide, {self.dtype}; {kind} x {self.length}{chunk}"

    @property
    def tokens(self) -> int:
        return self.batch * self.length * (3 if self.task == "triplets" else 1)

    @property
    def flops(self) -> float:
        """Floating-point operations of one step: forward, and twice as much backward.

        Without embeddings, norms and softmax.
        """
        block = 2 * (4 * self.hidden**2 + 2 * self.hidden * self.mlp) + 4 * self.length * self.hidden
        head = (
            2 * MASKING_RATE * (self.hidden**2 + self.hidden * self.vocabulary)
            if self.task == "mlm"
            else 2 * self.hidden**2 / self.length
        )
        return 3 * self.tokens * (self.layers * block + head)


def _bert(task: str, batch: int, length: int, **more: Any) -> Case:
    return Case(task, 12, 768, 12, 3_072, batch, length, **more)


def _small(task: str, batch: int, length: int, **more: Any) -> Case:
    return Case(task, 4, 256, 4, 1_024, batch, length, **more)


CASES = {
    "tiny": [
        Case("mlm", 2, 32, 2, 64, 4, 16, vocabulary=200),
        Case("triplets", 2, 32, 2, 64, 4, 16, vocabulary=200),
    ],
    "cpu": [
        _small("mlm", 16, 128),
        _small("triplets", 16, 128),
        _bert("mlm", 4, 128),
        _bert("triplets", 2, 128),
    ],
    "gpu": [
        _bert("mlm", 512, 128, dtype="bfloat16"),
        _bert("mlm", 128, 512, dtype="bfloat16"),
        _bert("triplets", 128, 128, dtype="bfloat16"),
        _bert("triplets", 2_048, 128, dtype="bfloat16", chunk=768),
        _bert("triplets", 2_048, 512, dtype="bfloat16", chunk=192),
    ],
}


def make_batch(case: Case, seed: int) -> dict[str, np.ndarray]:
    """A batch as the trainer reads it, int32: full rows of random pieces, words of one to three pieces."""
    rng = np.random.default_rng(seed)

    def texts() -> np.ndarray:
        tokens = rng.integers(SPECIAL_TOKENS, case.vocabulary, (case.batch, case.length), dtype=np.int32)
        tokens[:, 0], tokens[:, -1] = 2, 3  # [CLS], [SEP]
        return tokens

    if case.task == "mlm":
        words = np.cumsum(rng.random((case.batch, case.length)) < 0.7, axis=1, dtype=np.int32) + 1
        words[:, [0, -1]] = 0
        positions = np.broadcast_to(np.arange(case.length, dtype=np.int32), words.shape)
        return {"tokens": texts(), "segment_ids": np.ones_like(words), "positions": positions.copy(), "word_ids": words}
    towers = {name: texts() for name in ("anchor", "positive", "negative")}
    ids = {f"{name}_doc_id": rng.integers(0, 2**31 - 1, (case.batch, 2), dtype=np.int32) for name in towers}
    zeros = np.zeros(case.batch, np.int32)
    return {
        **{f"{name}_tokens": tokens for name, tokens in towers.items()},
        **ids,
        "augmentation": zeros,
        "translated": zeros,
    }


def serve(about: dict[str, Any], run: Callable[[int], float]) -> None:
    """Runs in a worker: reports that it is ready, then runs as many steps as each line of its input says.

    It answers each line with seconds, CPU seconds of all threads, and loss.
    """
    print(MARK + json.dumps(about), flush=True)
    for line in sys.stdin:
        start, cpu_start = time.perf_counter(), time.process_time()
        loss = run(int(line))
        answer = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start, "loss": loss}
        print(MARK + json.dumps(answer), flush=True)


class Worker:
    """A process that runs steps when it is told to."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, see close
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=os.environ | environment,
        )
        self.about = self._answer()

    def run(self, steps: int) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))
        self._process.wait()
        self._errors.seek(0)
        raise ChildProcessError(self._errors.read().decode(errors="replace")[-2_000:].strip())

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._errors.close()


@dataclasses.dataclass(frozen=True)
class Runner:
    """How to start the two sides.

    Attributes:
      commands: by side, without the case.
      environment: of both.
      apart: only one process at a time.
    """

    commands: dict[str, list[str]]
    environment: dict[str, str]
    apart: bool

    @contextlib.contextmanager
    def start(self, side: str, case: Case) -> Iterator[Worker]:
        """A worker that has compiled and warmed up."""
        worker = Worker([*self.commands[side], "--case", json.dumps(dataclasses.asdict(case))], self.environment)
        try:
            worker.run(2)
            yield worker
        finally:
            worker.close()

    def measure(self, case: Case, rounds: int, steps: int) -> dict[str, Any]:
        """Seconds and CPU seconds a step of each round, by side, and what each worker says about itself."""
        seconds: dict[str, list[float]] = {"ours": [], "torch": []}
        cpu_seconds: dict[str, list[float]] = {"ours": [], "torch": []}
        about: dict[str, Any] = {}

        def run(side: str, worker: Worker) -> None:
            answer = worker.run(steps)
            seconds[side].append(answer["seconds"] / steps)
            cpu_seconds[side].append(answer["cpu_seconds"] / steps)
            about[side] = {**worker.about, "loss": answer["loss"]}

        if self.apart:
            for side in ("ours", "torch", "torch", "ours"):
                with self.start(side, case) as worker:
                    for _ in range(-(-rounds // 2)):
                        run(side, worker)
        else:
            with self.start("ours", case) as ours, self.start("torch", case) as torch:
                workers = [("ours", ours), ("torch", torch)]
                for number in range(rounds):
                    for side, worker in workers if number % 2 else workers[::-1]:
                        run(side, worker)
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "about": about}


def row_of(case: Case, found: dict[str, Any]) -> str:
    """One line of the table."""
    from newsembed.training.metrics import peak_flops  # the peer's process imports this module, and has no newsembed

    seconds = {side: np.array(values) for side, values in found["seconds"].items()}
    times = [f"{1e3 * np.median(values):,.1f}" for values in seconds.values()]
    speeds = [f"{case.tokens / np.median(values):,.0f}" for values in seconds.values()]
    peak = peak_flops(found["about"]["ours"]["device"].partition(" x ")[2])
    use = [f"{case.flops / np.median(values) / peak:.1%}" if peak else "-" for values in seconds.values()]
    losses = " / ".join(f"{found['about'][side]['loss']:.2f}" for side in seconds)
    parameters = " / ".join(f"{found['about'][side]['parameters'] / 1e6:.1f}" for side in seconds)
    cells = [*times, ratio_of(found["seconds"]), ratio_of(found["cpu_seconds"]), *speeds, *use, losses, parameters]
    return f"| {case.name} | {' | '.join(cells)} |"


def ratio_of(seconds: Mapping[str, Sequence[float]], peer: str = "torch") -> str:
    """Returns the peer's time divided by ours: the median over rounds, with the 10th and the 90th percentile."""
    ratio = np.array(seconds[peer]) / np.array(seconds["ours"])
    low, high = np.percentile(ratio, [10, 90])
    return f"{np.median(ratio):.2f} ({low:.2f}-{high:.2f})"


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", choices=list(CASES), default="cpu")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the cases to run, from 0")
    parser.add_argument(
        "--torch_python", default=sys.executable, help="an interpreter with torch and transformers (default: this one)"
    )
    parser.add_argument("--torch_compile", action="store_true", help="let torch.compile make the peer faster")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3, help="of each side in a round")
    parser.add_argument("--cores", type=int, help="run on the first N cores (default: all)")
    return parser.parse_args()


def main() -> None:
    args = read_arguments()
    if args.cores:
        # The processes inherit the affinity, and size their thread pools by it.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    here = Path(__file__).parent
    compiled = ["--compile"] if args.torch_compile else []
    commands = {
        "ours": [sys.executable, str(here / "train_speed_ours.py")],
        "torch": [args.torch_python, str(here / "train_speed_torch.py"), *compiled],
    }
    with tempfile.TemporaryDirectory() as cache:
        apart = args.cases == "gpu"
        memory = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92"} if apart else {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        runner = Runner(commands, {"JAX_COMPILATION_CACHE_DIR": cache} | memory, apart)
        shown = False
        for number, case in enumerate(CASES[args.cases]):
            if args.only and number not in args.only:
                continue
            try:
                found = runner.measure(case, args.rounds, args.steps)
            except ChildProcessError as error:
                print(f"| {case.name} | failed: {(str(error) or 'no message').splitlines()[-1]} |", flush=True)
                print(error, file=sys.stderr)
                continue
            if not shown:
                for side, about in found["about"].items():
                    print(f"{side}: {about['versions']}, {about['device']}")
                rounds = f"{args.rounds} rounds of {args.steps} steps"
                print(f"{rounds}; ratio: median (10th-90th percentile) over the rounds\n")
                print(f"| {COLUMNS} |\n{'|---' * (1 + COLUMNS.count(' | '))}|")
                shown = True
            print(row_of(case, found), flush=True)


if __name__ == "__main__":
    main()
