"""Quality of mined triplets on a generated newsroom with known truth: one row for each triplets folder.

    newsembed triplets … --output work/unfiltered --max_evergreen_score=1
    python benchmarks/newsroom_mining.py demo-output demo-output/work/triplets work/unfiltered

False negatives are negatives of the event of the anchor, editions of one evergreen article, and evergreen articles in
one language. Coverage is the number of anchors with a triplet, relative to the last folder.
"""

import argparse
import json
from pathlib import Path

from fit_evergreen_defaults import is_false_negative
from newsembed.formats.parquet import read_stream
from newsembed.formats.records import Article, Triplet, make_doc_id
from newsembed.formats.urls import canonical_url
from newsembed.launch.demo.checks import score_mining


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", help="output of `newsembed demo`: has newsroom/truth.jsonl and work/clean")
    parser.add_argument("triplets", nargs="+", help="folders of the triplets job")
    options = parser.parse_args()
    lines = Path(options.demo, "newsroom/truth.jsonl").read_text(encoding="utf-8").splitlines()
    truth = {make_doc_id(canonical_url(row["url"]) or ""): row for row in map(json.loads, lines)}
    publishers = {
        article.doc_id: article.publisher for article in read_stream(f"{options.demo}/work/clean/articles", Article)
    }
    rows = []
    for folder in options.triplets:
        triplets = list(read_stream(f"{folder}/triplets", Triplet))
        negatives = {(one.anchor, one.negative) for one in triplets}
        false = sum(
            is_false_negative(truth[one], truth[other]) for one, other in negatives if one in truth and other in truth
        )
        scores = score_mining(iter(triplets), truth, publishers)
        rows.append((folder, scores, false / len(negatives), len({one.anchor for one in triplets})))
    print(
        "| triplets | positive precision | positive recall | false negatives | cut | anchors | coverage |\n"
        "|---|---|---|---|---|---|---|"
    )
    _, _, worst, most = rows[-1]
    for folder, scores, share, anchors in rows:
        print(
            f"| {Path(folder).name} | {scores['positive precision']:.3f} | {scores['positive recall']:.3f} "
            f"| {share:.4f} | {worst / share if share else float('inf'):.1f} x | {anchors:,} | {anchors / most:.3f} |"
        )


if __name__ == "__main__":
    main()
