"""Recall and precision of near-duplicate detection on real articles, against exact Jaccard similarity of word 5-grams.

    python benchmarks/deduplication.py allsides.jsonl.zst --articles 20000

The exact pairs come from a join over all 5-grams of the sample (a sparse matrix product), not from signatures. Real
corpora have few pairs just above the threshold, where a method is tested, so some articles also get an edited copy:
words are exchanged, in one stretch or throughout, so that similarities range from well below the threshold to 1. Found
pairs are those that the clean job accepts (bands, then sketches), for each requested number of bands.
"""

import argparse
import io
import json
import random
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zstandard
from newsembed.beam_pipelines.clean.duplicates import find_edges, shingles, sign, write_sketches
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.formats.records import Article
from scipy.sparse import csr_array

_AT_ONCE = 1_000


def read_bodies(path: str, most: int) -> list[str]:
    """Returns the texts of the first articles, without repeats."""
    found: dict[str, None] = {}
    with open(path, "rb") as source, zstandard.ZstdDecompressor().stream_reader(source) as plain:
        for line in io.TextIOWrapper(plain, "utf-8"):
            body = json.loads(line).get("body") or ""
            if len(body.split()) >= 100:
                found[body] = None
            if len(found) == most:
                break
    return list(found)


def edited(body: str, draw: random.Random) -> str:
    """Returns a copy in which some words are exchanged for other words of the text, in one stretch or throughout."""
    words = re.split(r"(\s+)", body)
    places = range(0, len(words), 2)
    if draw.random() < 0.5:
        count = int(len(places) * draw.uniform(0, 0.2))
        first = draw.randrange(max(1, len(places) - count))
        chosen = places[first : first + count]
    else:  # each exchanged word breaks five 5-grams
        chosen = draw.sample(places, int(len(places) * draw.uniform(0, 0.04)))
    for place in chosen:
        words[place] = words[draw.choice(places)]
    return "".join(words)


def exact_pairs(texts: Sequence[str], lowest: float) -> dict[tuple[int, int], float]:
    """Returns every pair of texts whose 5-grams have at least this exact Jaccard similarity."""
    numbers: dict[str, int] = {}
    columns = [sorted({numbers.setdefault(span, len(numbers)) for span in shingles(text)}) for text in texts]
    sizes = np.array([len(row) for row in columns])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    matrix = csr_array(
        (np.ones(starts[-1], np.int32), np.concatenate(columns), starts), shape=(len(texts), len(numbers))
    )
    other = matrix.T.tocsr()
    found = {}
    for start in range(0, len(texts), _AT_ONCE):
        common = (matrix[start : start + _AT_ONCE] @ other).tocoo()
        rows = common.row + start
        similarities = common.data / (sizes[rows] + sizes[common.col] - common.data)
        for index in np.flatnonzero((rows < common.col) & (similarities >= lowest)).tolist():
            found[int(rows[index]), int(common.col[index])] = float(similarities[index])
    return found


def found_pairs(texts: Sequence[str], options: CleanOptions) -> set[tuple[int, int]]:
    """Returns the pairs that the clean job would find."""
    rows, sketches = [], []
    for number, text in enumerate(texts):
        entries, sketch = sign(Article(f"{number:016x}", "", "", "", text), 0, number, options)
        rows.append(entries[2:])  # its bands
        sketches.append(sketch)
    with tempfile.TemporaryDirectory() as folder:
        write_sketches(f"{folder}/", sketches)
        edges = find_edges(np.concatenate(rows), [f"{folder}/"], options.near_duplicate_threshold)
    return {
        (min(pair), max(pair)) for pair in zip(edges["one"]["row"].tolist(), edges["two"]["row"].tolist(), strict=True)
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("articles_file", type=Path, help="JSONL of articles, zstd")
    parser.add_argument("--articles", type=int, default=10_000, help="size of the sample")
    parser.add_argument("--edited", type=int, default=2_000, help="edited copies")
    parser.add_argument("--threshold", type=float, default=CleanOptions().near_duplicate_threshold)
    parser.add_argument(
        "--bands", nargs="+", default=["112/14", "112/16", "112/28", "256/32"], help="permutations/bands"
    )
    args = parser.parse_args()
    draw = random.Random(7)
    texts = read_bodies(str(args.articles_file), args.articles)
    texts += [edited(texts[draw.randrange(len(texts))], draw) for _ in range(args.edited)]
    exact = exact_pairs(texts, args.threshold)
    true = {pair for pair, similarity in exact.items() if similarity >= args.threshold}
    own = sum(max(pair) < args.articles for pair in true)
    print(f"{len(texts):,} texts; {len(true):,} pairs at {args.threshold} or above, {own:,} of them unedited\n")
    print("| permutations / bands | recall | precision | seconds |\n|---|---|---|---|")
    for setting in args.bands:
        permutations, bands = map(int, setting.split("/"))
        options = CleanOptions(near_duplicate_threshold=args.threshold, permutations=permutations, bands=bands)
        start = time.perf_counter()
        found = found_pairs(texts, options)
        seconds = time.perf_counter() - start
        right = len(found & true)
        recall, precision = right / max(1, len(true)), right / max(1, len(found))
        print(f"| {setting} | {recall:.4f} | {precision:.4f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
