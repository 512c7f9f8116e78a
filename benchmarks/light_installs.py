"""Each extra in an environment of its own: its size, the CPU time of commands there, and which of its commands work.

For each extra it makes a virtual environment, installs ``newsembed[EXTRA]`` from this repository by pip with
``constraints.txt``, and adds up the sizes of all files below ``lib``. In each it runs ``newsembed --help``, ``doctor``,
``embed``, ``index`` and ``search`` with a model without layers (30,000 pieces x 512, random weights), and prints the
CPU seconds (user and system) of the fastest of three runs. Then it runs the commands that need the extra, and one
command of each other extra, which must end with exit code 2 and name what to install. It downloads packages, so it is
no test. The exit code is 1 if a command did anything else.

Example::

    python benchmarks/light_installs.py --extras core serve jax evaluate --folder /tmp/installs
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARTICLES = 2_000
ROUNDS = 3
MAKE_MODEL = """
import hashlib, json, os, sys
import numpy as np
from newsembed.formats.weights import write_safetensors
os.makedirs("model", exist_ok=True)
letters = [chr(code) for code in range(97, 123)]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters), ".", ","]
pieces += [a + b + c + d for a in letters for b in letters for c in letters for d in letters][: 30_000 - len(pieces)]
vocabulary = "".join(piece + "\\n" for piece in pieces).encode()
encoder = dict(vocab_size=len(pieces), hidden_size=512, num_layers=0, num_heads=1, mlp_size=1, max_length=2048,
               embedding_size=512, num_topics=600, norm="pre", pooling="weighted", positions="rotary", lead_length=64,
               sublinear=True, embedding_init="t5")
rng = np.random.default_rng(0)
shapes = {"token_embedding": (len(pieces), 512), "mlm_bias": (len(pieces),), "pooling_logits": (len(pieces),),
          "output_norm.scale": (512,), "output_norm.bias": (512,), "embedding_head.kernel": (512, 512),
          "embedding_head.bias": (512,)}
write_safetensors("model/model.safetensors",
                  {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}, {})
open("model/vocab.txt", "wb").write(vocabulary)
description = {"encoder": encoder, "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest()}
json.dump(description, open("model/model.json", "w"))
with open("articles.jsonl", "w") as file:
    for number in range(int(sys.argv[1])):
        body = " ".join(pieces[i] for i in rng.integers(60, len(pieces), 400))
        file.write(json.dumps({"url": f"https://a.example/{number}", "title": body[:40], "body": body}) + "\\n")
sentences = ["The river rose in the night, and the town asked for help.", "The vote was close, and the mayor won it."]
with open("events.jsonl", "w") as file:
    for number in range(60):
        words = [sentences[number % 2], *(pieces[i] for i in rng.integers(60, len(pieces), 30)), "."]
        row = {"id": str(number), "url": f"https://{number % 3}.example/{number}", "title": f"Report {number}"}
        row |= {"body": " ".join(words * 3), "event": str(number // 4), "byline_date": f"2024-01-{number // 4 + 1:02d}"}
        file.write(json.dumps(row) + "\\n")
"""
COMMANDS = {
    "--help": ["--help"],
    "doctor": ["doctor"],
    "embed": ["embed", "--model", "model", "--input", "articles.jsonl", "--output", "vectors"],
    "index": ["index", "--model", "model", "--input", "articles.jsonl", "--output", "index", "--overwrite"],
    "search": ["search", "--index", "index", "storm on the coast", "--json"],
}
GOLDEN = ROOT / "tests" / "golden"
TRAIN = ["train", "--gin_file=runs/train_demo.gin"]
TRAIN += ['--gin.MODEL_DIR="trained"', f'--gin.DATA_DIR="{GOLDEN}/examples_before"', "--gin.TRAIN_STEPS=2"]
TRAIN += [f'--gin.VOCABULARY_PATH="{GOLDEN}/model_before/vocab.txt"', "--gin.BATCH_SIZE=8", "--gin.NUM_TOPICS=8"]
TRAIN += ["--gin.INITIAL_CHECKPOINT_PATH=None", "--gin.CHECKPOINT_PERIOD=2"]
CLEAN = ["clean", "--articles", "extract", "--output", "clean", "--require_author=false", "--require_language=false"]
EVALUATE = ["evaluate", "--encoder", "m=model:model", "--encoder", "tfidf=tfidf", "--suite", "events"]
LAYERS = f"{GOLDEN}/model_before"
# Of each extra: what to install, and commands that need it.
EXTRAS = {
    "core": ("", []),
    "serve": ("serve", [["serve", "--index", "index", "--port=0"]]),
    "evaluate": (
        "evaluate",
        [
            [*EVALUATE, "--data", "events.jsonl", "--output", "scores"],
            ["cluster", "--index", "index", "--output", "events.tsv"],
        ],
    ),
    "jax": (
        "jax",
        [
            ["embed", "--model", LAYERS, "--input", "articles.jsonl", "--output", "layers"],
            ["export", "--model", LAYERS, "--format=safetensors", "--output", "weights"],
        ],
    ),
    "train": ("train", [TRAIN]),
    "tensorflow": (
        "jax,tensorflow",
        [
            ["export", "--model", LAYERS, "--output", "saved", "--platforms=cpu"],
            ["embed", "--saved_model", "saved", "--input", "events.jsonl", "--output", "saved_vectors"],
        ],
    ),
    "mine": (
        "mine",
        [
            ["extract", "--articles", "events.jsonl", "--output", "extract"],
            [
                *CLEAN,
                "--min_sentences=1",
                "--min_words=20",
                "--near_duplicate_threshold=2",
                "--max_repeated_span_share=1",
            ],
            ["vocabulary", "--articles", "clean", "--output", "vocabulary", "--size=300"],
            ["entities", "--articles", "clean", "--output", "entities"],
            ["newsroom", "--output", "newsroom", "--scale=0.1"],
        ],
    ),
    "all": ("all", []),
}
# Extras that contain another one.
CONTAINED = {"train": {"jax"}, "tensorflow": {"jax"}, "mine": {"evaluate"}}
CONTAINED["all"] = {*EXTRAS} - {"core", "all"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="+", choices=EXTRAS, default=["core", "serve", "evaluate", "jax"])
    parser.add_argument("--folder", required=True, help="where the environments go; each is removed when measured")
    args = parser.parse_args()
    print("| extra | MB | of them pip | packages | " + " | ".join(COMMANDS) + " | its commands | others name theirs |")
    print("|" + "---|" * (6 + len(COMMANDS)))
    problems = []
    for extra in args.extras:
        folder = Path(args.folder, extra)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        empty = megabytes(folder / "lib")
        requirement = EXTRAS[extra][0]
        what = f"{ROOT}[{requirement}]" if requirement else str(ROOT)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--constraint", str(ROOT / "constraints.txt"), what], check=True)
        packages = subprocess.run([*pip[:3], "freeze"], check=True, capture_output=True, text=True).stdout.splitlines()
        size = megabytes(folder / "lib")  # before any command has compiled more
        times = " | ".join(f"{seconds:.2f}" for seconds in measured(folder))
        own, others, wrong = checked(folder, extra)
        problems += wrong
        print(f"| {extra} | {size:.0f} | {empty:.0f} | {len(packages)} | {times} | {own} | {others} |", flush=True)
        shutil.rmtree(folder)
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


def megabytes(folder):
    """The size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def measured(folder):
    """CPU seconds of each command."""
    work = folder / "work"
    work.mkdir()
    options = {"cwd": work, "env": environment(), "capture_output": True}
    subprocess.run([str(folder / "bin" / "python"), "-c", MAKE_MODEL, str(ARTICLES)], check=True, **options)
    for command in COMMANDS.values():
        seconds = []
        for _ in range(ROUNDS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([str(folder / "bin" / "newsembed"), *command], check=True, **options)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        yield min(seconds)


def checked(folder, extra):
    """Runs the extra's commands, and the first command of each extra that is not there.

    Returns:
      "n of N" for both, and what went wrong.
    """
    problems, found = [], []
    own = EXTRAS[extra][1]
    for command in own:
        code, text = run(folder, command)
        found.append(code == 0)
        if code:
            problems.append(f"{extra}: newsembed {' '.join(command)}: exit code {code}: {text[-400:]}")
    absent = [name for name in EXTRAS if name not in {extra, "core", "all", *CONTAINED.get(extra, ())}]
    named = []
    for name in absent:
        command = EXTRAS[name][1][0]
        code, text = run(folder, command)
        asked = [f"pip install 'newsembed[{part}]'" for part in EXTRAS[name][0].split(",")]
        named.append(code == 2 and any(words in text for words in asked))
        if not named[-1]:
            problems.append(f"{extra} without {name}: newsembed {' '.join(command)}: {code}: {text[-400:]}")
    return f"{sum(found)} of {len(own)}", f"{sum(named)} of {len(absent)}", problems


def run(folder, command):
    """The exit code of a command and what it wrote; a server is stopped when it listens."""
    words = [str(folder / "bin" / "newsembed"), *command]
    options = {"cwd": folder / "work", "env": environment(), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(words, text=True, **options) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("listening on "):
                process.send_signal(signal.SIGTERM)
    listened = any(line.startswith("listening on ") for line in lines)
    return 0 if listened else process.returncode, "".join(lines)


def environment():
    """The variables of this process without those of its own Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}


if __name__ == "__main__":
    sys.exit(main())
