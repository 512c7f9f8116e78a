"""Each extra in an environment of its own: its size, and the CPU time of commands there.

For each extra it makes a virtual environment, installs ``newsembed[EXTRA]`` from this repository by pip with
``constraints.txt``, and adds up the sizes of all files below ``lib``. In each it runs ``newsembed --help``, ``embed``,
``index`` and ``search`` with a model without layers (30,000 pieces x 512, random weights), and prints the CPU seconds
(user and system) of the fastest of three runs. It downloads packages, so it is no test.

Example::

    python benchmarks/light_installs.py --extras core serve jax evaluate --folder /tmp/installs
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARTICLES = 2_000
ROUNDS = 3
MAKE_MODEL = """
import hashlib, json, os, sys
import numpy as np
from newsembed.formats.arrays import write_safetensors
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
"""
COMMANDS = {
    "--help": ["--help"],
    "embed": ["embed", "--model", "model", "--input", "articles.jsonl", "--output", "vectors"],
    "index": ["index", "--model", "model", "--input", "articles.jsonl", "--output", "index", "--overwrite"],
    "search": ["search", "--index", "index", "storm on the coast", "--json"],
}
EXTRAS = ["core", "serve", "evaluate", "jax", "train", "jax,tensorflow", "mine", "all"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="+", choices=EXTRAS, default=["core", "serve", "evaluate", "jax"])
    parser.add_argument("--folder", required=True, help="where the environments go; each is removed when measured")
    args = parser.parse_args()
    print("| extra | MB | of them pip | packages | " + " | ".join(COMMANDS) + " |")
    print("|" + "---|" * (4 + len(COMMANDS)))
    for extra in args.extras:
        folder = Path(args.folder, extra)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        empty = megabytes(folder / "lib")
        what = str(ROOT) if extra == "core" else f"{ROOT}[{extra}]"
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--constraint", str(ROOT / "constraints.txt"), what], check=True)
        packages = subprocess.run([*pip[:3], "freeze"], check=True, capture_output=True, text=True).stdout.splitlines()
        size = megabytes(folder / "lib")  # before any command has compiled more
        times = " | ".join(f"{seconds:.2f}" for seconds in measured(folder))
        print(f"| {extra} | {size:.0f} | {empty:.0f} | {len(packages)} | {times} |", flush=True)
        shutil.rmtree(folder)


def megabytes(folder):
    """The size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def measured(folder):
    """CPU seconds of each command."""
    work = folder / "work"
    work.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    options = {"cwd": work, "env": own, "capture_output": True}
    subprocess.run([str(folder / "bin" / "python"), "-c", MAKE_MODEL, str(ARTICLES)], check=True, **options)
    for command in COMMANDS.values():
        seconds = []
        for _ in range(ROUNDS):
            before = sum(os.times()[2:4])
            subprocess.run([str(folder / "bin" / "newsembed"), *command], check=True, **options)
            seconds.append(sum(os.times()[2:4]) - before)
        yield min(seconds)


if __name__ == "__main__":
    main()
