"""Average precision on pairs of articles that were read, because the proxy events of AllSides are often wrong.

    python benchmarks/heldout_days.py allsides.jsonl.zst --since 2018-07-01 --output since.jsonl
    python benchmarks/judged_events.py --events since.jsonl --encoder tfidf=tfidf --encoder start=model:lifted/import

`judged_events.tsv` has 67 articles of the second half of 2018, and for each of them the articles of other publishers
that TF-IDF, all-MiniLM-L6-v2 (256 tokens; titles) or a mean of two of them ranked among the first four. One reader, a
language model, judged them by title and date: 1 if both report or discuss one event, else 0. Articles without any such
report are left out. Each encoder ranks the judged articles alone, so that articles which nobody judged do not count.
Prints the mean average precision, and the difference to the first encoder with a 95 % bootstrap interval over queries.
"""

import argparse
import collections
import csv
import os

import numpy as np
from newsembed import serving
from newsembed.evaluation.command import encoder_factory
from newsembed.evaluation.encoders import Embeddings, encode_checked
from newsembed.evaluation.events import read_events
from scipy.stats import bootstrap
from sklearn.metrics import average_precision_score

JUDGEMENTS = os.path.join(os.path.dirname(__file__), "judged_events.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", required=True, help="JSONL that heldout_days.py wrote")
    parser.add_argument("--encoder", action="append", required=True, metavar="NAME=SPEC", help="as for evaluate")
    parser.add_argument("--until", default="2018-12-31", help="last day of the articles")
    parser.add_argument("--cache", help="folder of embeddings, as for evaluate")
    options = parser.parse_args()
    rows = [row for row in read_events(options.events) if str(row.byline_date) <= options.until]
    place = {row.id: number for number, row in enumerate(rows)}
    judged: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
    with open(JUDGEMENTS, encoding="utf-8", newline="") as file:
        for query, other, label in csv.reader(file, delimiter="\t"):
            judged[place[query]].append((place[other], int(label)))
    first = None
    print("| encoder | mean average precision | difference to the first |\n|---|---|---|")
    for name, _, spec in (pair.partition("=") for pair in options.encoder):
        encoder = encoder_factory(spec, serving.factories(progress=True))()
        vectors = encode_checked(encoder, [row.document for row in rows], options.cache).embeddings
        scores = np.array([precision(vectors, query, others) for query, others in judged.items()])
        first = scores if first is None else first
        print(f"| {name} | {scores.mean():.4f} | {difference(scores - first)} |", flush=True)


def precision(vectors: Embeddings, query: int, others: list[tuple[int, int]]) -> float:
    """Average precision of one query over its judged articles."""
    numbers, labels = zip(*others, strict=True)
    similarities = vectors[list(numbers)] @ vectors[query].T
    dense = similarities.toarray() if hasattr(similarities, "toarray") else similarities
    return float(average_precision_score(labels, np.asarray(dense).ravel()))


def difference(values: np.ndarray) -> str:
    """Mean and interval, empty for the first encoder."""
    if not values.any():
        return ""
    found = bootstrap((values,), np.mean, rng=np.random.default_rng(0)).confidence_interval
    return f"{values.mean():+.4f} ({found.low:+.4f} to {found.high:+.4f})"


if __name__ == "__main__":
    main()
