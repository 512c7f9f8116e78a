"""Compares ``windowed`` with ``global`` neighbor search at equal K, on growing parts of a corpus.

    python benchmarks/date_windows.py work/vectors work/clean/articles --documents 10000 50000 270000 --neighbors 10

Both modes run the code of the neighbors job. Positives are pairs of different publishers within a day that reach the
thresholds of ``triplets``; negatives are pairs at least a year apart. ``windowed`` finds K of each; ``global`` finds K
in total and keeps those with fitting dates.

Precision is measured by the TF-IDF similarity of the texts, which no space of the search uses: the share of positives
above the value that one in a thousand pairs of different publishers and the same days exceeds by chance.
"""

import argparse
import itertools
import tempfile
import time

import numpy as np
import pyarrow.parquet as pq
from newsembed.beam_pipelines.neighbors import DateMode, NeighborsOptions
from newsembed.beam_pipelines.neighbors.search import (
    SPACES,
    Rows,
    concatenate,
    keep_best,
    plan_tasks,
    read_vectors,
    run_task,
    write_blocks,
)
from newsembed.beam_pipelines.triplets.rules import TripletsOptions, evidence
from newsembed.formats import parquet
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer


def load(folder: str) -> tuple[Rows, dict[int, str]]:
    """Returns all documents and their publishers."""
    parts, publishers = [], {}
    for paths in zip(*(parquet.shard_paths(f"{folder}/{space.value}") for space in SPACES), strict=True):
        parts.append(read_vectors(dict(zip(SPACES, paths, strict=True))))
        for path in paths:
            table = pq.read_table(path, columns=["doc_id", "publisher"])
            ids = (int(doc_id, 16) for doc_id in table.column("doc_id").to_pylist())
            publishers.update(zip(ids, table.column("publisher").to_pylist(), strict=True))
    return concatenate(parts), publishers


def search(rows: Rows, options: NeighborsOptions) -> tuple[np.ndarray, float]:
    """Returns the pairs found by the code of the job and the CPU seconds that it took."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as workspace:
        write_blocks(workspace, 0, rows, options.block_days)
        documents = dict(
            zip(
                *(part.tolist() for part in np.unique(rows.days // options.block_days, return_counts=True)), strict=True
            )
        )
        found = []
        for task in plan_tasks(documents, options):
            found += list(run_task(task, options, workspace, lambda _: None))
    return keep_best(np.concatenate(found), options.counts), time.process_time() - start


class Judge:
    """Decides by TF-IDF similarity whether two documents have the same subject."""

    def __init__(self, articles: str, rows: Rows, publishers: dict[int, str]) -> None:
        columns = [pq.read_table(path, columns=["doc_id", "title", "body"]) for path in parquet.shard_paths(articles)]
        texts = {
            int(doc_id, 16): f"{title}\n{body[:1000]}"
            for table in columns
            for doc_id, title, body in zip(
                *(table.column(name).to_pylist() for name in ("doc_id", "title", "body")), strict=True
            )
        }
        ids = rows.ids.tolist()
        self._row = {doc_id: row for row, doc_id in enumerate(ids)}
        self._vectors: csr_matrix = TfidfVectorizer(
            sublinear_tf=True, min_df=2, max_df=0.1, dtype=np.float32
        ).fit_transform([texts[doc_id] for doc_id in ids])
        # Adjacent documents in the order of days are at most a day apart, or the corpus has no such pairs.
        by_day = np.random.default_rng(0).permutation(len(ids))
        by_day = by_day[np.argsort(rows.days[by_day], kind="stable")]
        pairs = [
            (ids[one], ids[other])
            for one, other in itertools.pairwise(by_day)
            if rows.days[other] - rows.days[one] <= 1 and publishers[ids[one]] != publishers[ids[other]]
        ]
        self._threshold = float(np.quantile(self._similarity(pairs), 0.999))

    def _similarity(self, pairs: list[tuple[int, int]]) -> np.ndarray:
        ones, others = np.array([[self._row[one], self._row[other]] for one, other in pairs]).T
        return np.asarray(self._vectors[ones].multiply(self._vectors[others]).sum(1)).ravel()

    def right(self, pairs: list[tuple[int, int]]) -> np.ndarray:
        """Returns whether each pair is more similar than all but one in a thousand pairs of the same days."""
        return self._similarity(pairs) > self._threshold


def describe(pairs: np.ndarray, publishers: dict[int, str], judge: Judge) -> np.ndarray:
    """Returns the numbers of positives, of positives judged right, and of negatives."""
    _, first = np.unique(pairs[["query", "neighbor"]], return_index=True)
    pairs = pairs[first]
    near = pairs[np.abs(pairs["gap"]) <= 1]
    near = near[[publishers[one] != publishers[other] for one, other in near[["query", "neighbor"]].tolist()]]
    right = judge.right(near[["query", "neighbor"]].tolist())
    positive = ~np.isnan(evidence(near["similarity"], TripletsOptions()))
    return np.array([positive.sum(), right[positive].sum(), (np.abs(pairs["gap"]) >= 365).sum()])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", help="folder of the vectors job")
    parser.add_argument("articles", help="folder of clean articles")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--neighbors", type=int, default=10, help="K")
    args = parser.parse_args()
    rows, publishers = load(args.vectors)
    order = np.random.default_rng(0).permutation(len(rows))
    print("| documents | mode | positives | judged right | negatives | CPU s |\n|---|---|---|---|---|---|")
    for documents in sorted({min(count, len(rows)) for count in args.documents}):
        part = rows.take(np.sort(order[:documents]))
        judge = Judge(args.articles, part, publishers)
        counts = []
        for mode in (DateMode.GLOBAL, DateMode.WINDOWED):
            options = NeighborsOptions(
                dates=mode, positives=args.neighbors, negatives=args.neighbors, neighbors=args.neighbors
            )
            pairs, seconds = search(part, options)
            counts.append(describe(pairs, publishers, judge))
            shown = " | ".join(f"{count:,}" for count in counts[-1].tolist())
            print(f"| {documents:,} | {mode.value} | {shown} | {seconds:.0f} |", flush=True)
        gains = " | ".join(f"{gain:.2f} x" for gain in counts[1] / counts[0])
        print(f"| | gain | {gains} | |", flush=True)


if __name__ == "__main__":
    main()
