"""Recall, speed, build time and memory of the neighbor engines on real vectors, compared with exact search.

    python benchmarks/neighbor_engines.py work/vectors --space text --rows 50000 200000 --neighbors 50

Each engine runs in its own process with one thread, as in a worker of the neighbors job. It builds an index over the
first N vectors, of the folder or of an array (float32 [N, D]) in a .npy file, and searches for 2,000 of them, drawn at
random. Recall@K is the share of the exact K neighbors that it finds; equal similarities count as found.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from newsembed.beam_pipelines.neighbors.index import Engine, build_index
from newsembed.beam_pipelines.neighbors.search import read_vectors
from newsembed.formats import parquet
from newsembed.formats.records import Space
from threadpoolctl import threadpool_limits

QUERIES = 2_000
ENGINES = (Engine.EXACT, Engine.SCANN, Engine.FAISS)


def load(folder: str, space: Space, most: int) -> np.ndarray:
    """Returns the vectors of one space, or of a .npy file, float32 ``[<= most, D]``."""
    if folder.endswith(".npy"):
        return np.load(folder)[:most]
    found = []
    for path in parquet.shard_paths(f"{folder}/{space.value}"):
        rows = read_vectors({space: path})
        if len(present := rows.having(space)):
            found.append(rows.vectors[space][present])
        if sum(map(len, found)) >= most:
            break
    return np.concatenate(found)[:most]


def measure(engine: Engine, path: str, count: int) -> dict[str, object]:
    """Builds an index, searches it and writes the similarities found next to the vectors.

    Times are CPU times of the process, so that the load of the machine does not count.
    """
    vectors = np.load(path)
    queries = vectors[np.random.default_rng(0).choice(len(vectors), min(QUERIES, len(vectors)), replace=False)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with threadpool_limits(1):
        start = time.process_time()
        index = build_index(vectors, engine, 0, len(queries))
        built = time.process_time()
        index.search(queries[:10], count)
        begin = time.process_time()
        rows, _ = index.search(queries, count)
        end = time.process_time()
    found = np.where(rows[..., None] >= 0, vectors[np.maximum(rows, 0)], 0)
    np.save(f"{path}.{engine.value}.npy", np.einsum("qd,qkd->qk", queries, found))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "build_seconds": built - start,
        "queries_per_second": len(queries) / (end - begin),
        "megabytes": (peak - before) / 1024,
    }


def recall(path: str, engine: Engine) -> float:
    """Returns the share of exact neighbors found: similarities that reach the lowest exact one."""
    exact, found = np.load(f"{path}.{Engine.EXACT.value}.npy"), np.load(f"{path}.{engine.value}.npy")
    return float((found >= exact.min(1, keepdims=True) - 1e-5).mean())


def main() -> None:
    """Prints the table; with ``--engine`` measures one engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", help="folder of the vectors job, or a .npy file")
    parser.add_argument("--space", type=Space, default=Space.TEXT, choices=list(Space))
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 50_000, 200_000])
    parser.add_argument("--neighbors", type=int, default=50, help="K")
    parser.add_argument("--engine", type=Engine, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        print(json.dumps(measure(args.engine, args.vectors, args.neighbors)))
        return
    every = load(args.vectors, args.space, max(args.rows))
    print(
        f"| rows x width | engine | recall@{args.neighbors} | queries/s | against exact | build s "
        "| MB above the vectors |\n"
        "|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in sorted({min(rows, len(every)) for rows in args.rows}):
            path = str(Path(folder) / f"{rows}.npy")
            np.save(path, every[:rows])
            peer = 0.0
            for engine in ENGINES:
                command = [sys.executable, __file__, path, f"--neighbors={args.neighbors}", f"--engine={engine.value}"]
                result = json.loads(
                    subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
                )
                peer = peer or result["queries_per_second"]
                print(
                    f"| {rows:,} x {every.shape[1]} | {engine.value} | {recall(path, engine):.3f} "
                    f"| {result['queries_per_second']:,.0f} | "
                    f"{result['queries_per_second'] / peer:.1f} x | {result['build_seconds']:.1f} "
                    f"| {result['megabytes']:,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
