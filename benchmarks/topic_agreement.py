"""Share of mined pairs whose articles carry the same editor's topic: (anchor, positive) beside (anchor, negative) and random pairs.

    python benchmarks/topic_agreement.py work/triplets allsides.jsonl.zst

A positive should agree more often than a negative, and a hard negative more often than a random pair. Articles whose topic is not known are left
out. The interval is 1.96 standard errors.
"""

import argparse
import random
from collections.abc import Iterable

import numpy as np
from newsembed.beam_pipelines.extract.urls import canonical_url
from newsembed.formats.jsonl import read_jsonl
from newsembed.formats.parquet import read_stream
from newsembed.formats.records import Triplet, make_doc_id


def main() -> None:
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
        print(
            f"| {name} | {len(same := agreement(chosen, topics)):,} | {same.mean():.3f} ± {1.96 * same.std() / len(same) ** 0.5:.3f} |"
        )


def agreement(pairs: Iterable[tuple[str, str]], topics: dict[str, str]) -> np.ndarray:
    """1 where both topics are the same, 0 where they differ; pairs without both are left out."""
    known = [(topics[one], topics[other]) for one, other in pairs if one in topics and other in topics]
    return np.array([one == other for one, other in known], float)


if __name__ == "__main__":
    main()
