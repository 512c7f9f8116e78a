"""What searching where the answer can be gains: ``windowed`` against ``global`` neighbors at equal K, on growing parts of a corpus.

    python benchmarks/date_windows.py work/vectors --documents 10000 50000 270000 --neighbors 10

Both modes run the code of the neighbors job. Positives are pairs of different publishers within a day that pass the bars of ``triplets``, negatives
pairs a year and more apart. ``windowed`` finds K of each, ``global`` K in all, of which those of fitting dates are left. The quality of positives
is their evidence (how far they are above the bars) and the share that is above a bar by itself; negatives should be as hard: their mean
similarity in the space searched best.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import pyarrow.parquet as pq
from newsembed.beam_pipelines import parquet
from newsembed.beam_pipelines.neighbors import _BLOCKS_TOGETHER, _SIDES, DateMode, NeighborsOptions
from newsembed.beam_pipelines.neighbors.found import SPACES, keep_best
from newsembed.beam_pipelines.neighbors.rows import Rows, concatenate, read_vectors, write_blocks
from newsembed.beam_pipelines.neighbors.search import plan_tasks, run_task
from newsembed.beam_pipelines.triplets.mine import TripletsOptions, evidence


def load(folder: str) -> tuple[Rows, dict[int, str]]:
    """All documents and their publishers."""
    parts, publishers = [], {}
    for paths in zip(*(parquet.shard_paths(f"{folder}/{space.value}") for space in SPACES), strict=True):
        parts.append(read_vectors(dict(zip(SPACES, paths, strict=True))))
        for path in paths:
            table = pq.read_table(path, columns=["doc_id", "publisher"])
            ids = (int(doc_id, 16) for doc_id in table.column("doc_id").to_pylist())
            publishers.update(zip(ids, table.column("publisher").to_pylist(), strict=True))
    return concatenate(parts), publishers


def search(rows: Rows, options: NeighborsOptions) -> tuple[np.ndarray, float]:
    """The pairs found by the job's code and the CPU seconds it took."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as workspace:
        write_blocks(workspace, 0, rows, options.block_days)
        documents = dict(zip(*(part.tolist() for part in np.unique(rows.days // options.block_days, return_counts=True)), strict=True))
        found = []
        for task in plan_tasks(documents, _SIDES[options.dates], _BLOCKS_TOGETHER, options.max_index_rows):
            found += list(run_task(task, options.plan(), workspace, options.block_days, lambda _: None))
    return keep_best(np.concatenate(found), options.plan().counts), time.process_time() - start


def describe(pairs: np.ndarray, publishers: dict[int, str]) -> Iterator[float]:
    """Positives, their mean evidence, the share above a bar by itself; negatives, their mean best similarity."""
    _, first = np.unique(pairs[["query", "neighbor"]], return_index=True)
    pairs = pairs[first]
    near = pairs[np.abs(pairs["gap"]) <= 1]
    near = near[[publishers[one] != publishers[other] for one, other in near[["query", "neighbor"]].tolist()]]
    strengths = evidence(near["similarity"], TripletsOptions())
    strengths = strengths[~np.isnan(strengths)]
    far = pairs[np.abs(pairs["gap"]) >= 365]
    yield from (len(strengths), strengths.mean(), (strengths >= 0).mean(), len(far), np.fmax.reduce(far["similarity"], axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", help="folder of the vectors job")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--neighbors", type=int, default=10, help="K")
    args = parser.parse_args()
    rows, publishers = load(args.vectors)
    order = np.random.default_rng(0).permutation(len(rows))
    print(
        "| documents | mode | positives | evidence | alone above a bar | negatives | their similarity | CPU s |\n|---|---|---|---|---|---|---|---|"
    )
    for documents in sorted({min(count, len(rows)) for count in args.documents}):
        part = rows.take(np.sort(order[:documents]))
        counts = []
        for mode in (DateMode.GLOBAL, DateMode.WINDOWED):
            options = NeighborsOptions(dates=mode, positives=args.neighbors, negatives=args.neighbors, neighbors=args.neighbors)
            pairs, seconds = search(part, options)
            positives, strength, alone, negatives, similarity = describe(pairs, publishers)
            counts.append((positives, negatives))
            print(
                f"| {documents:,} | {mode.value} | {positives:,.0f} | {strength:.3f} | {alone:.3f} | {negatives:,.0f} | {similarity:.3f} | {seconds:.0f} |",
                flush=True,
            )
        (positives, negatives), (more_positives, more_negatives) = counts
        print(f"| | gain | {more_positives / positives:.2f} x | | | {more_negatives / negatives:.2f} x | | |", flush=True)


if __name__ == "__main__":
    main()
