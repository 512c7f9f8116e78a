r"""Does alpha help? Okura's auto-encoder on articles with a topic label, judged on pairs of one day.

    python benchmarks/okura_direction.py prepare articles.jsonl.zst work/clean okura/clean
    newsembed vocabulary --articles okura/clean --output okura/vocabulary --words=true --size=10005
    newsembed categories --articles okura/clean --output okura/categories --category=keywords
    newsembed examples --articles okura/clean --triplets okura/categories --vocabulary okura/vocabulary \
        --output okura/examples --weights=0,0,0,1 --max_length=1024
    newsembed train --gin_file=runs/okura_small.gin --gin.SEED=0 …
    python benchmarks/okura_direction.py judge heldout2019.jsonl full=okura/full-0,okura/full-1 without=okura/none-0

``prepare`` copies the articles of a finished ``clean`` whose row in the file has a ``topic``, which becomes their
keyword. ``judge`` reads held-out articles (JSONL: title, body, publisher, byline_date, topic). A pair is two articles
of one day and of different publishers; it is positive if they have one topic. The score is the cosine, the measure the
area under the ROC curve, over all pairs and over the 5 % with the greatest full-text cosine. Intervals resample days,
with all pairs of a day, the same days for both encoders (`--draws`, 95 %); seeds are averaged within a draw.
"""

import argparse
import collections
import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from newsembed.evaluation.baselines import BinaryWordEncoder
from newsembed.evaluation.encoders import Document, Embeddings
from newsembed.evaluation.paired import two_sided
from newsembed.formats import files
from newsembed.formats.articles import read_rows
from newsembed.formats.parquet import read_records, shard_paths, write_shard
from newsembed.formats.records import Article, make_doc_id
from newsembed.serving.encoder import JaxEncoder, fresh_encoder, load_encoder
from sklearn.metrics import roc_auc_score

TOP_SHARE = 0.05


def prepare(args: argparse.Namespace) -> None:
    """Writes the labelled articles as a result of ``clean``."""
    import dataclasses

    from newsembed.formats.urls import canonical_url

    topics = {
        make_doc_id(canonical_url(row["url"])): row["topic"]
        for _, row in read_rows([args.file], ("url", "topic"))
        if row.get("topic") and row.get("url") and canonical_url(row["url"])
    }
    kept = 0
    for path in shard_paths(f"{args.clean}/articles"):
        rows = [
            dataclasses.replace(row, keywords=(topics[row.doc_id],))
            for row in read_records(path, Article)
            if row.doc_id in topics
        ]
        kept += write_shard(f"{args.output}/articles/{os.path.basename(path)}", rows, Article)
    files.write_json(f"{args.output}/manifest.json", {"digest": f"topics of {args.clean}"})
    print(f"{kept} articles with a topic: {args.output}")


def day_pairs(rows: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(first, second, day) of all pairs of one day and of different publishers, int64 [P] each, and the labels."""
    days = collections.defaultdict(list)
    for number, row in enumerate(rows):
        if row.get("topic") and row.get("byline_date"):
            days[row["byline_date"]].append(number)
    found = [
        (first, second, day)
        for day, (_, members) in enumerate(sorted(days.items()))
        for first, second in itertools.combinations(members, 2)
        if rows[first]["publisher"] != rows[second]["publisher"]
    ]
    first, second, day = np.array(found).T
    labels = np.array([rows[one]["topic"] == rows[two]["topic"] for one, two in zip(first, second, strict=True)])
    return first, second, day, labels


def cosines(vectors: Embeddings, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of each pair, dense or sparse."""
    if not isinstance(vectors, np.ndarray):
        return np.asarray(vectors[first].multiply(vectors[second]).sum(axis=1)).ravel()
    return np.einsum("pd,pd->p", vectors[first], vectors[second])


def resampled(labels: np.ndarray, scores: np.ndarray, day: np.ndarray, draws: int) -> np.ndarray:
    """AUC of each row of scores [S, P] as a mean over rows, for each draw of days: float64 [draws]."""
    members = [np.flatnonzero(day == one) for one in np.unique(day)]
    rng = np.random.default_rng(0)
    values = []
    for _ in range(draws):
        times = np.zeros(len(labels))
        for one in rng.integers(0, len(members), len(members)):
            times[members[one]] += 1
        kept = times > 0
        values.append(np.mean([roc_auc_score(labels[kept], row[kept], sample_weight=times[kept]) for row in scores]))
    return np.array(values)


def encoders(specs: Sequence[str]) -> Iterator[tuple[str, list[JaxEncoder]]]:
    """(name, the encoders of its seeds)."""
    for spec in specs:
        name, _, folders = spec.partition("=")
        yield name, [fresh_encoder(folder[2:]) if folder[:2] == "0:" else load_encoder(folder)
                     for folder in folders.split(",")]  # fmt: skip


def judge(args: argparse.Namespace) -> None:
    """Prints the table."""
    with open(args.heldout, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    documents = [Document(row["title"], row["body"]) for row in rows]
    titles, bodies = [row["title"] for row in rows], [row["body"] for row in rows]
    first, second, day, labels = day_pairs(rows)
    full_text = cosines(BinaryWordEncoder().encode(documents), first, second)
    scores = {
        "full text": full_text[None],
        "headline": cosines(BinaryWordEncoder(is_title_only=True).encode(documents), first, second)[None],
    }
    for name, found in encoders(args.models):
        started = time.perf_counter()
        scores[name] = np.stack([cosines(one.encode(titles, bodies), first, second) for one in found])
        print(f"{name}: {len(rows) * len(found) / (time.perf_counter() - started):.0f} documents/s with compilation")
    top = full_text >= np.quantile(full_text, 1 - TOP_SHARE)
    for place, where in (("all pairs", np.ones(len(labels), bool)), (f"top {TOP_SHARE:.0%} by full text", top)):
        print(f"\n{place}: {where.sum()} pairs, {labels[where].sum()} of one topic, {len(np.unique(day[where]))} days")
        print("| encoder | AUC | 95 % | by seed | minus " + args.against + " | p |\n|---|--:|--:|--:|--:|--:|")
        drawn = {
            name: resampled(labels[where], value[:, where], day[where], args.draws) for name, value in scores.items()
        }
        for name, value in scores.items():
            by_seed = [roc_auc_score(labels[where], row[where]) for row in value]
            each = ", ".join(f"{one:.3f}" for one in by_seed)
            low, high = np.percentile(drawn[name], [2.5, 97.5])
            gap = drawn[name] - drawn[args.against]
            between = "[{:+.3f}, {:+.3f}]".format(*np.percentile(gap, [2.5, 97.5]))
            p = "" if name == args.against else f"{two_sided(gap):.3f}"
            print(f"| {name} | {np.mean(by_seed):.3f} | {low:.3f} to {high:.3f} | {each} | {between} | {p} |")


def main() -> None:
    """Runs one of the two parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    first = parts.add_parser("prepare")
    for name in ("file", "clean", "output"):
        first.add_argument(name)
    first.set_defaults(run=prepare)
    second = parts.add_parser("judge")
    second.add_argument("heldout")
    second.add_argument("models", nargs="+", metavar="NAME=DIR,…", help="0:DIR is DIR with untrained parameters")
    second.add_argument("--against", default="without", metavar="NAME")
    second.add_argument("--draws", type=int, default=2000, help="resamples of the days")
    second.set_defaults(run=judge)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
