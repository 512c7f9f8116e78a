"""``newsembed dedup``: find near-duplicate articles by their vectors.

Example::

    newsembed dedup --index work/index --threshold 0.95 --output duplicates.tsv --pairs pairs.tsv

Articles joined by pairs above the threshold form a group; the TSV has the columns group, size, doc_id, date, publisher,
title, url. ``--pairs`` also writes each pair with its cosine.
"""

import argparse
from collections.abc import Iterable, Iterator

from .encoder import FloatArray
from .groups import IntArray, components, pairs_above, write_groups
from .index import DocumentIndex

_Block = tuple[IntArray, IntArray, FloatArray]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed dedup``."""
    parser.add_argument("--index", required=True, metavar="DIR", help="what newsembed index wrote")
    parser.add_argument("--output", required=True, metavar="FILE.tsv", help="where the groups go")
    parser.add_argument("--pairs", metavar="FILE.tsv", help="also write each pair with its cosine here")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.95,
        metavar="COSINE",
        help="least cosine of near duplicates (default: 0.95)",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    index = DocumentIndex.load(args.index)
    pairs: Iterable[_Block] = pairs_above(index.embeddings, args.threshold)
    if args.pairs:
        pairs = _written(pairs, index, args.pairs)
    groups, members = write_groups(args.output, components(len(index), pairs), index.documents, smallest=2)
    print(f"{groups} groups with {members} of {len(index)} articles, {members - groups} could go: {args.output}")
    return 0


def _written(pairs: Iterable[_Block], index: DocumentIndex, path: str) -> Iterator[_Block]:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("first\tsecond\tcosine\n")
        for block in pairs:
            for first, second, cosine in zip(*block, strict=True):
                file.write(f"{index.documents[first].doc_id}\t{index.documents[second].doc_id}\t{cosine:.6f}\n")
            yield block
