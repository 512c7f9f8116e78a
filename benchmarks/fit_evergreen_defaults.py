"""Fits the default weights of the evergreen filter on a generated newsroom of another seed than the demo's.

    python benchmarks/fit_evergreen_defaults.py /tmp/evergreen --seed 101

Mines the newsroom up to the neighbors, takes the hardest candidates for a negative of every anchor, labels them by the newsroom's truth
(1: same event, or evergreen pieces of one language), fits the logistic regression, prints precision and recall by five-fold
cross-validation, and writes the weights over beam_pipelines/triplets/evergreen_defaults.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from newsembed.beam_pipelines import files
from newsembed.beam_pipelines.extract.urls import canonical_url
from newsembed.beam_pipelines.parquet import read_stream
from newsembed.beam_pipelines.records import Neighbor, make_doc_id
from newsembed.beam_pipelines.triplets.evergreen import fit_model, pair_features
from newsembed.beam_pipelines.triplets.mine import group_by_query, merge_spaces
from newsembed.beam_pipelines.triplets.table import read_table
from newsembed.launch import cli
from newsembed.launch.newsroom.server import NewsroomServer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import cross_val_predict

HARDEST = 8
DEFAULTS = Path(__file__).parents[1] / "beam_pipelines/triplets/evergreen_defaults.json"


def run(*command: str) -> None:
    cli.main([*command, "--direct_num_workers=1"])


def mine(work: str, seed: int, scale: float) -> None:
    if not files.exists(f"{work}/newsroom/seeds.txt"):
        cli.main(["newsroom", "--output", f"{work}/newsroom", f"--seed={seed}", f"--scale={scale}"])
    if not files.exists(f"{work}/crawl/manifest.json"):
        with NewsroomServer(f"{work}/newsroom") as server:
            options = ["--delay_seconds=0", "--max_depth=8", "--max_pages_per_site=5000", "--allow_private_addresses=true"]
            resolve = f"--resolve=*.example=127.0.0.1:{server.port}"
            run("crawl", "--seeds", f"{work}/newsroom/seeds.txt", "--output", f"{work}/crawl", *options, resolve)
    run("extract", "--warc", f"{work}/crawl/warc/*.warc.gz", "--output", f"{work}/extract")
    run("clean", "--articles", f"{work}/extract", "--output", f"{work}/clean")
    run("entities", "--articles", f"{work}/clean", "--output", f"{work}/entities")
    run("vectors", "--articles", f"{work}/clean", "--entities", f"{work}/entities", "--output", f"{work}/vectors")
    run("neighbors", "--vectors", f"{work}/vectors", "--output", f"{work}/neighbors")
    run(
        "triplets",
        "--articles",
        f"{work}/clean",
        "--neighbors",
        f"{work}/neighbors",
        "--output",
        f"{work}/triplets",
        "--max_evergreen_score=1",
    )


def labelled(work: str) -> tuple[np.ndarray, np.ndarray]:
    lines = Path(f"{work}/newsroom/truth.jsonl").read_text().splitlines()
    truth = {make_doc_id(canonical_url(row["url"])): row for row in map(json.loads, lines)}
    table = read_table(f"{work}/triplets/documents/table.npz")
    features, labels = [], []
    for query, group in sorted(group_by_query(read_stream(f"{work}/neighbors/neighbors", Neighbor)).items()):
        far = sorted((one for one in merge_spaces(group) if abs(one.day_gap) >= 365), key=lambda one: (-one.strength, one.doc_id))
        for one in far[:HARDEST]:
            anchor, other = truth.get(query), truth.get(one.doc_id)
            if anchor and other and table.get(query) and table.get(one.doc_id):
                same = any(anchor[field] and anchor[field] == other[field] for field in ("event", "near_duplicate_group"))
                evergreen = anchor["kind"] == other["kind"] == "evergreen" and anchor["language"] == other["language"]
                features.append(pair_features(table.get(query), table.get(one.doc_id), one.similarities))
                labels.append(int(same or evergreen))
    return np.array(features), np.array(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--scale", type=float, default=0.5)
    args = parser.parse_args()
    if args.seed == 7:
        parser.error("seed 7 is the demo's: fit on another")
    mine(args.work, args.seed, args.scale)
    features, labels = labelled(args.work)
    predicted = cross_val_predict(LogisticRegression(class_weight="balanced", max_iter=1000), features, labels, cv=5)
    precision, recall = precision_score(labels, predicted), recall_score(labels, predicted)
    provenance = f"{len(labels)} pairs ({labels.sum()} false negatives) of a generated newsroom, seed {args.seed}, scale {args.scale}"
    print(f"{provenance}: precision {precision:.3f}, recall {recall:.3f}, dropped {predicted.mean():.3f} (five-fold cross-validation)")
    value = fit_model(features, labels.tolist(), provenance).to_json()
    DEFAULTS.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main()
