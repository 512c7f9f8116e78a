"""Fits the default weights of the evergreen filter on a generated newsroom with another seed than that of the demo.

    python benchmarks/fit_evergreen_defaults.py /tmp/evergreen --seed 101

Builds the newsroom, takes the hardest negative candidates of every anchor and labels them by the
truth of the newsroom (1: same event, or evergreen articles in one language). Fits the logistic regression, prints
precision and recall by five-fold cross-validation, and overwrites beam_pipelines/triplets/evergreen_defaults.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from newsembed.beam_pipelines.arrays import doc_id_of
from newsembed.beam_pipelines.triplets.evergreen import fit_model, pair_features
from newsembed.beam_pipelines.triplets.rules import rank_within, read_candidates, strength
from newsembed.beam_pipelines.triplets.table import read_table
from newsembed.formats.parquet import shard_paths
from newsembed.formats.records import make_doc_id
from newsembed.formats.urls import canonical_url
from newsembed.newsroom import NewsroomOptions
from newsembed.studies.shared.newsroom import Places, make_newsroom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import cross_val_predict

HARDEST = 8
DEFAULTS = Path(__file__).parents[1] / "beam_pipelines/triplets/evergreen_defaults.json"


def labelled(places: Places) -> tuple[np.ndarray, np.ndarray]:
    """Returns features and labels of the hardest negative candidates of every anchor."""
    lines = Path(f"{places.newsroom}/truth.jsonl").read_text().splitlines()
    truth = {make_doc_id(canonical_url(row["url"])): row for row in map(json.loads, lines)}
    table = read_table(f"{places.work}/triplets/documents/table.npz")
    features, labels = [], []
    for path in shard_paths(f"{places.work}/neighbors/neighbors"):
        rows = read_candidates(path)
        far = rows[
            (np.abs(rows["gap"]) >= 365) & (table.places(rows["anchor"]) >= 0) & (table.places(rows["other"]) >= 0)
        ]
        far = far[np.lexsort((far["other"], -strength(far), far["anchor"]))]
        far = far[rank_within(far["anchor"]) < HARDEST]
        known = [
            (truth.get(doc_id_of(anchor)), truth.get(doc_id_of(other)))
            for anchor, other in far[["anchor", "other"]].tolist()
        ]
        far = far[[bool(anchor and other) for anchor, other in known]]
        features.append(pair_features(table, far))
        labels += [is_false_negative(anchor, other) for anchor, other in known if anchor and other]
    return np.concatenate(features), np.array(labels)


def is_false_negative(anchor: dict[str, str], other: dict[str, str]) -> int:
    """Returns 1 if two articles report the same event or are evergreen articles in one language, else 0."""
    same = any(anchor[field] and anchor[field] == other[field] for field in ("event", "near_duplicate_group"))
    return int(same or (anchor["kind"] == other["kind"] == "evergreen" and anchor["language"] == other["language"]))


def main() -> None:
    """Mines, fits and writes the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--scale", type=float, default=0.5)
    args = parser.parse_args()
    if args.seed == 7:
        parser.error("seed 7 is the seed of the demo: use another one")
    places = Places(args.work)
    make_newsroom(places, NewsroomOptions(args.seed, args.scale))
    features, labels = labelled(places)
    predicted = cross_val_predict(LogisticRegression(class_weight="balanced", max_iter=1000), features, labels, cv=5)
    precision, recall = precision_score(labels, predicted), recall_score(labels, predicted)
    provenance = (
        f"{len(labels)} pairs ({labels.sum()} false negatives) of a generated newsroom, "
        f"seed {args.seed}, scale {args.scale}"
    )
    print(
        f"{provenance}: precision {precision:.3f}, recall {recall:.3f}, dropped {predicted.mean():.3f} "
        "(five-fold cross-validation)"
    )
    value = fit_model(features, labels.tolist(), provenance).to_json()
    DEFAULTS.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main()
