"""Compares the training steps of SimLTE, LASER and AST with the same work in torch: same shapes, batches and optimizer.

    python benchmarks/sibling_speed.py --torch_python /path/to/torch-env/bin/python --cores 1 --rounds 3

SimLTE and LASER have the sizes of `gin/runs/simlte_small.gin` and `laser_small.gin`; AST has longer texts, larger
batches and more heads than `ast_small.gin`. Rows are full. Ours is the trainer's step; the peer
(`sibling_speed_torch.py`) is written with torch's own layers (`nn.TransformerEncoder`, `nn.LSTM`, `nn.LSTMCell`, fused
Adam) and, for AST, the package `entmax` of the authors of alpha-entmax. Both processes
live at the same time and take turns; a ratio is that of one round, as in `train_speed.py`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from train_speed import Worker, ratio_of, serve_ours

VOCABULARY = 8_000
SPECIAL_TOKENS = 5
SYSTEMS = ("simlte", "laser", "ast")
SIDES = ("ours", "torch")
BATCHES = 2
# Rows of a batch, and tokens of the first and the second text of each.
SHAPES = {"simlte": (48, 64, 64), "laser": (64, 40, 40), "ast": (128, 256, 32)}


def make_batch(system: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The two texts of each row, int32 [B, L] each: full rows of random pieces."""
    rows, *lengths = SHAPES[system]
    rng = np.random.default_rng(seed)
    texts = [rng.integers(SPECIAL_TOKENS, VOCABULARY, (rows, length), dtype=np.int32) for length in lengths]
    for tokens in texts:
        tokens[:, 0], tokens[:, -1] = 2, 3  # [CLS], [SEP]
    return texts[0], texts[1]


def ours(system: str) -> None:
    """The process of our side."""
    import jax
    from newsembed.learning.objectives import Model, Objectives
    from newsembed.learning.objectives.contrastive import Contrastive
    from newsembed.learning.objectives.linking import Linking
    from newsembed.learning.objectives.translation import Translation
    from newsembed.learning.optimizers import adam
    from newsembed.learning.partitioning import Partitioner, shard_batch
    from newsembed.models.encoders import LaserConfig, StarConfig
    from newsembed.models.encoders.news import EncoderConfig
    from newsembed.training.train_state import plan_state
    from newsembed.training.train_step import make_train_step

    tiny = {"hidden_size": 128, "num_layers": 2, "num_heads": 2, "mlp_size": 512, "embedding_size": 128}
    config: Any = {
        "simlte": lambda: EncoderConfig(vocab_size=VOCABULARY, dropout_rate=0.1, norm="pre", **tiny),
        "laser": lambda: LaserConfig(VOCABULARY, token_size=128, hidden_size=64, num_layers=1, decoder_size=256),
        "ast": lambda: StarConfig(VOCABULARY, hidden_size=96, num_heads=6),
    }[system]()
    task, objective = {
        "simlte": ("pairs", Contrastive(temperature=0.05, mlm_weight=0.1)),
        "laser": ("translation", Translation()),
        "ast": ("pairs", Linking()),
    }[system]
    model = Model(config, np.zeros(VOCABULARY, bool))  # every piece is a word
    partitioner, optimizer = Partitioner(), adam(1e-4)
    mesh = partitioner.make_mesh()
    layout = plan_state(config.module(), optimizer, partitioner, mesh)
    step = make_train_step(task, Objectives(model, {task: objective}), optimizer, layout.abstract, partitioner, mesh)

    def batch(seed: int) -> Any:
        first, second = make_batch(system, seed)
        if task == "translation":
            languages = np.zeros(len(first), np.int32)
            return {"source_tokens": first, "target_tokens": second, "target_language": languages}
        ids = np.stack([np.arange(len(first)), np.zeros(len(first))], axis=1).astype(np.int32)
        return {
            "anchor_tokens": first,
            "positive_tokens": second,
            "anchor_doc_id": ids,
            "positive_doc_id": ids,
        }

    count = sum(array.size for array in jax.tree.leaves(layout.abstract.params))
    batches = [shard_batch(batch(seed), mesh) for seed in range(BATCHES)]
    about = {"versions": f"jax {jax.__version__}", "parameters": count}
    serve_ours(about, step, layout.create(jax.random.key(0)), jax.random.key(1), batches)


def compare(command: Callable[[str, str], list[str]], systems: list[str], rounds: int, steps: int) -> None:
    """Prints a row for each system."""
    columns = ("system", "ours ms", "torch ms", "ours CPU ms", "torch CPU ms", "torch / ours", "the same in CPU time")
    columns = (*columns, "million parameters")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for system in systems:
        times: dict[str, dict[str, list[float]]] = {"seconds": {}, "cpu_seconds": {}}
        with tempfile.TemporaryDirectory() as cache:
            workers = {side: Worker(command(side, system), {"JAX_COMPILATION_CACHE_DIR": cache}) for side in SIDES}
            try:
                for worker in workers.values():
                    worker.run(2)
                for number in range(rounds):
                    for side in SIDES if number % 2 else SIDES[::-1]:
                        answer = workers[side].run(steps)
                        for name, found in times.items():
                            found.setdefault(side, []).append(answer[name] / steps)
            finally:
                for worker in workers.values():
                    worker.close()
        milliseconds = [f"{1e3 * float(np.median(found[side])):,.1f}" for found in times.values() for side in SIDES]
        sizes = " / ".join(f"{workers[side].about['parameters'] / 1e6:.2f}" for side in SIDES)
        ratios = [ratio_of(times["seconds"]), ratio_of(times["cpu_seconds"])]
        print(f"| {system} | {' | '.join([*milliseconds, *ratios, sizes])} |", flush=True)


def main() -> None:
    """Runs the comparison, or with --side ours one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--torch_python", default=sys.executable, help="an interpreter with torch and entmax")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="of each side in a round")
    parser.add_argument("--cores", type=int, help="run on the first N cores (default: all)")
    parser.add_argument("--side", choices=("ours",), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        ours(args.systems[0])
        return
    if args.cores:
        # The processes inherit the affinity, and size their thread pools by it.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])

    def command(side: str, system: str) -> list[str]:
        if side == "ours":
            return [sys.executable, __file__, "--side", "ours", "--systems", system]
        return [args.torch_python, str(Path(__file__).with_name("sibling_speed_torch.py")), system]

    compare(command, args.systems, args.rounds, args.steps)


if __name__ == "__main__":
    main()
