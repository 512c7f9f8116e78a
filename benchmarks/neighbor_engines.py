"""Recall, speed and build time of the neighbor engines on real vectors, compared with exact search.

    python benchmarks/neighbor_engines.py work/vectors --space text --rows 50000 200000 --neighbors 50

Each engine has one thread, as in a worker of the neighbors job. It builds an index over the first N vectors, of the
folder or of an array (float32 [N, D]) in a .npy file, and searches for 2,000 of them, drawn at random. Recall@K is the
share of the exact K neighbors that it finds; equal similarities count as found. Times are CPU times, so that the load
of the machine does not count.
"""

import argparse
import time

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


def measure(engine: Engine, vectors: np.ndarray, queries: np.ndarray, count: int) -> tuple[np.ndarray, float, float]:
    """Builds an index and searches it: the similarities found ``[queries, count]``, and CPU seconds of both."""
    start = time.process_time()
    index = build_index(vectors, engine, 0, len(queries))
    built = time.process_time()
    index.search(queries[:10], count)
    begin = time.process_time()
    rows, _ = index.search(queries, count)
    end = time.process_time()
    found = np.where(rows[..., None] >= 0, vectors[np.maximum(rows, 0)], 0)
    return np.einsum("qd,qkd->qk", queries, found), built - start, end - begin


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", help="folder of the vectors job, or a .npy file")
    parser.add_argument("--space", type=Space, default=Space.TEXT, choices=list(Space))
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 50_000, 200_000])
    parser.add_argument("--neighbors", type=int, default=50, help="K")
    args = parser.parse_args()
    every = load(args.vectors, args.space, max(args.rows))
    print(f"| rows x width | engine | recall@{args.neighbors} | queries/s | against exact | build s |")
    print("|---|---|---|---|---|---|")
    for rows in sorted({min(rows, len(every)) for rows in args.rows}):
        vectors = every[:rows]
        queries = vectors[np.random.default_rng(0).choice(rows, min(QUERIES, rows), replace=False)]
        with threadpool_limits(1):
            measured = {engine: measure(engine, vectors, queries, args.neighbors) for engine in ENGINES}
        exact, _, slowest = measured[Engine.EXACT]
        for engine, (found, built, seconds) in measured.items():
            recall = (found >= exact.min(1, keepdims=True) - 1e-5).mean()
            speeds = f"{len(queries) / seconds:,.0f} | {slowest / seconds:.1f} x"
            print(
                f"| {rows:,} x {every.shape[1]} | {engine.value} | {recall:.3f} | {speeds} | {built:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
