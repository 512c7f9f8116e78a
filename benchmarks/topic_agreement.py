"""Share of mined pairs whose articles have the same editorial topic, compared with negatives and random pairs.

    python benchmarks/topic_agreement.py work/triplets allsides.jsonl.zst

Positives should agree more often than negatives, and hard negatives more often than random pairs. Articles without a
known topic are left out. The interval is 1.96 standard errors.
"""

import argparse
import random
from collections.abc import Iterable

import numpy as np
from newsembed.formats.jsonl import read_jsonl
from newsembed.formats.parquet import read_stream
from newsembed.formats.records import Triplet, make_doc_id
from newsembed.formats.urls import canonical_url


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triplets", help="folder of the triplets job")
    parser.add_argument("articles", help="JSONL (plain, .gz, .zst) with url and topic")
    options = parser.parse_args()
    topics = {}
    for _, row in read_jsonl(options.articles):
        url = canonical_url(row["url"])
        if url and row.get("topic"):
            topics[make_doc_id(url)] = row["topic"]
    triplets = list(read_stream(f"{options.triplets}/triplets", Triplet))
    anchors = sorted({one.anchor for one in triplets})
    drawn = random.Random(0)
    pairs = {
        "(anchor, positive)": sorted({(one.anchor, one.positive) for one in triplets}),
        "(anchor, negative)": sorted({(one.anchor, one.negative) for one in triplets}),
        "(anchor, random anchor)": [(one, drawn.choice(anchors)) for one in anchors],
    }
    print("| pairs | both topics known | same topic |\n|---|---|---|")
    for name, chosen in pairs.items():
        same = agreement(chosen, topics)
        print(f"| {name} | {len(same):,} | {same.mean():.3f} ± {1.96 * same.std() / len(same) ** 0.5:.3f} |")


def agreement(pairs: Iterable[tuple[str, str]], topics: dict[str, str]) -> np.ndarray:
    """Returns 1 where both topics are the same, 0 where they differ; pairs without both topics are left out."""
    known = [(topics[one], topics[other]) for one, other in pairs if one in topics and other in topics]
    return np.array([one == other for one, other in known], float)


if __name__ == "__main__":
    main()
