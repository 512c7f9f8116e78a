"""``newsembed dedup``: find near-duplicate articles by their vectors.

Example::

    newsembed dedup --index work/index --threshold 0.95 --output duplicates.tsv --pairs pairs.tsv

Articles joined by pairs above the threshold form a group; the TSV has the columns group, size, doc_id, date, publisher,
title, url. ``--pairs`` also writes each pair with its cosine. Similar events of other years are not joined: a pair is
at most ``--max_day_gap`` days apart. Articles without a date are compared with one another only.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

from .groups import IntArray, components, pairs_above, pairs_in_time, write_groups
from .index import DocumentIndex
from .interface import FloatArray
from .reload import load_current

_Block = tuple[IntArray, IntArray, FloatArray]
_MAX_DAY_GAP: Final = 7  # copies and rewritten agency reports appear within days


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
    parser.add_argument(
        "--max_day_gap",
        type=_days,
        default=_MAX_DAY_GAP,
        metavar="DAYS|none",
        help=f"join only articles whose byline dates are at most this far apart; none: any (default: {_MAX_DAY_GAP})",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    index = load_current(args.index)
    pairs = _pairs(index, args.threshold, args.max_day_gap)
    if args.pairs:
        pairs = _written(pairs, index, args.pairs)
    groups, members = write_groups(args.output, components(len(index), pairs), index.documents, smallest=2)
    print(f"{groups} groups with {members} of {len(index)} articles, {members - groups} could go: {args.output}")
    return 0


def _days(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number of days or none") from error


def _pairs(index: DocumentIndex, threshold: float, max_day_gap: int | None) -> Iterable[_Block]:
    if max_day_gap is None:
        return pairs_above(index.embeddings, threshold)
    dates = [document.byline_date for document in index.documents]
    return pairs_in_time(index.embeddings, dates, threshold, max_day_gap)


def _written(pairs: Iterable[_Block], index: DocumentIndex, path: str) -> Iterator[_Block]:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("first\tsecond\tcosine\n")
        for block in pairs:
            for first, second, cosine in zip(*block, strict=True):
                file.write(f"{index.documents[first].doc_id}\t{index.documents[second].doc_id}\t{cosine:.6f}\n")
            yield block
