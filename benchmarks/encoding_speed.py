r"""Compares the speed of our encoder and of sentence-transformers on torch: the same weights and texts, in one run.

    python benchmarks/encoding_speed.py --models minilm all-MiniLM-L6-v2 --headlines newsapi-headlines.jsonl.zst \
        --articles allsides.jsonl.zst --torch_python /path/to/venv/bin/python

Both sides read one public model: what `newsembed import-hf` made of a sentence-transformers folder, and that folder.
"ours" is the encoder that `newsembed evaluate`, `embed` and `serve` take, in bfloat16 where the CPU has it and
`NEWSEMBED_FLOAT32` is not set; "torch" is `SentenceTransformer(folder).encode` in float32 with the fastest of the given
batch sizes. Both read a text as a body without a title, with tokenization, and sort by length.

Each side is a process with the same number of threads and cores; torch may be in another environment. The sides take
turns: in every round each side encodes all texts once, in alternating order, and the ratio is taken within the round.
Compilation and loading are shown separately ("first call"). A ratio above 1 means that ours is faster. The case fails
if the smallest cosine between the vectors of two sides is below 0.9999 in float32, or 0.999 in bfloat16.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from train_speed import Worker, ratio_of

# The least cosine between both sides' vectors of a text.
CLOSEST = 0.9999 if os.environ.get("NEWSEMBED_FLOAT32") else 0.999
COLUMNS = (
    "texts | tokens a text | ours texts/s | torch texts/s (batch) | torch / ours | the same in CPU time | "
    "first call s: ours, torch | least cosine"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headlines", required=True, help="JSONL (.gz, .zst) of articles whose titles are read")
    parser.add_argument(
        "--articles", required=True, help="JSONL (.gz, .zst) of articles whose titles and bodies are read"
    )
    parser.add_argument(
        "--torch_python", default=sys.executable, help="an interpreter with sentence-transformers (default: this one)"
    )
    parser.add_argument("--models", required=True, nargs=2, metavar=("OURS", "PEER"), help="folders of one model")
    parser.add_argument("--headline_count", type=int, default=512, help="0 for none")
    parser.add_argument("--article_count", type=int, default=96, help="0 for none")
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[32, 128], help="the peer's batch sizes; the fastest one counts"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="cores and threads of each side")
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])  # the processes inherit it
    with tempfile.TemporaryDirectory() as work:
        versions = dict[str, str]()
        print(f"load average before: {load_average()}; {args.rounds} rounds, {args.threads} threads\n")
        print(f"| {COLUMNS} |\n{'|---' * (1 + COLUMNS.count(' | '))}|")
        for kind, chosen in zip(("headlines", "articles"), read_texts(args), strict=True):
            if not chosen:
                continue
            texts = Path(work, f"{kind}.json")
            texts.write_text(json.dumps(chosen), encoding="utf-8")
            try:
                found = measure(str(texts), args)
                versions.update({side: about["versions"] for side, about in found["about"].items()})
                print(row_of(kind, found), flush=True)
            except (ChildProcessError, AssertionError) as error:
                print(f"| {kind} failed: {(str(error) or 'no message').splitlines()[-1]} |", flush=True)
                print(error, file=sys.stderr)
        print("\n" + "; ".join(f"{side}: {version}" for side, version in versions.items()))
        print(f"load average after: {load_average()}")


def load_average() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def read_texts(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Returns headlines, and titles with bodies, spread over the files."""
    from newsembed.formats.jsonl import read_jsonl

    def spread(path: str, count: int) -> list[dict[str, Any]]:
        rows = [row for _, row in itertools.islice(read_jsonl(path), 8 * count) if (row.get("title") or "").strip()]
        return rows[:: max(1, len(rows) // max(1, count))][:count]

    headlines = [row["title"] for row in spread(args.headlines, args.headline_count)]
    articles = spread(args.articles, args.article_count)
    return headlines, [f"{row['title']}\n{row.get('body') or ''}" for row in articles]


def measure(texts: str, args: argparse.Namespace) -> dict[str, Any]:
    """Returns seconds and CPU seconds of each round by side (torch by batch size: `torch 32`), and facts on workers."""
    here, (folder, peer) = Path(__file__).parent, args.models
    commands = {
        "ours": [sys.executable, str(here / "encoding_speed_ours.py"), texts, folder],
        "torch": [args.torch_python, str(here / "encoding_speed_torch.py"), texts, str(args.threads), peer],
    }
    environment = {"OMP_NUM_THREADS": str(args.threads), "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as output, contextlib.ExitStack() as stack:
        workers, vectors = {}, {}
        for side, command in commands.items():
            path = os.path.join(output, f"{side}.npy")
            workers[side] = Worker([*command, path], environment)
            stack.callback(workers[side].close)
            vectors[side] = np.load(path)
        runs = [(side, batch) for side in workers for batch in (args.batches if side == "torch" else [0])]
        for side, batch in runs:
            workers[side].run(batch)  # warm-up: compiles every shape of this batch size
        for number in range(args.rounds):
            for side, batch in runs if number % 2 else runs[::-1]:
                found.setdefault(f"{side} {batch}" if batch else side, []).append(workers[side].run(batch))
        about = {side: worker.about for side, worker in workers.items()}
    return {"rounds": found, "about": about, "vectors": vectors}


def row_of(kind: str, found: dict[str, Any]) -> str:
    """Returns one line of the table."""
    rounds, about, vectors = found["rounds"], found["about"], found["vectors"]
    seconds = {side: np.array([run["seconds"] for run in runs]) for side, runs in rounds.items()}
    cpu = {side: np.array([run["cpu_seconds"] for run in runs]) for side, runs in rounds.items()}
    count = len(vectors["ours"])
    best = min((side for side in seconds if side.startswith("torch")), key=lambda side: float(np.median(seconds[side])))
    closest = float((vectors["ours"] * vectors["torch"]).sum(axis=1).min())
    assert closest >= CLOSEST, f"the vectors differ: the least cosine is {closest}"
    cells = [
        f"{count:,} {kind}",
        f"{about['ours']['tokens']:.0f}",
        speed(count, seconds["ours"]),
        f"{speed(count, seconds[best])} ({best.removeprefix('torch ')})",
        ratio_of(seconds, best),
        ratio_of(cpu, best),
        ", ".join(f"{about[side]['first']:.1f}" for side in ("ours", "torch")),
        f"{closest:.7f}",
    ]
    return "| " + " | ".join(cells) + " |"


def speed(count: int, seconds: np.ndarray) -> str:
    return f"{count / np.median(seconds):,.1f}"


if __name__ == "__main__":
    main()
