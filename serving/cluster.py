"""``newsembed cluster``: group articles that report the same event.

Example::

    newsembed cluster --index work/index --threshold 0.75 --max_day_gap 3 --output clusters.tsv

``graph`` joins articles by chains of pairs above the threshold; ``average`` merges groups while their mean cosine is
above it. The TSV has the columns group, size, doc_id, date, publisher, title, url, with the largest groups first.
"""

import argparse
import sys

from ..errors import InputError, counted
from ..formats.whole import check_output
from .groups import IntArray, agglomerative, components, pairs_above, pairs_within_days, write_groups
from .index import DocumentIndex
from .reload import load_current


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed cluster``."""
    parser.add_argument("--index", required=True, metavar="DIR", help="what newsembed index wrote")
    parser.add_argument("--output", required=True, metavar="FILE.tsv", help="where the groups go")
    parser.add_argument(
        "--method", choices=("graph", "average"), default="graph", help="how pairs become groups (default: graph)"
    )
    parser.add_argument("--threshold", type=float, default=0.75, metavar="COSINE", help="least cosine (default: 0.75)")
    parser.add_argument(
        "--max_day_gap",
        type=int,
        metavar="DAYS",
        help="graph: join only articles whose byline dates are at most this far apart",
    )
    parser.add_argument("--min_size", type=int, default=2, metavar="N", help="least articles of a group (default: 2)")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    check_output(args.output, is_folder=False)
    index = load_current(args.index)
    labels = cluster(index, args.method, args.threshold, args.max_day_gap)
    groups, members = write_groups(args.output, labels, index.documents, args.min_size)
    found = f"{counted(groups, 'group')} of at least {args.min_size}"
    print(f"{found} with {members} of {counted(len(index), 'article')}: {args.output}")
    if not groups:
        print(f"note: a --threshold below {args.threshold:g} joins more articles", file=sys.stderr)
    return 0


def cluster(index: DocumentIndex, method: str, threshold: float, max_day_gap: int | None = None) -> IntArray:
    """Group number ``[N]`` of each document.

    Args:
      index: documents and embeddings.
      method: ``graph`` or ``average``.
      threshold: cosine.
      max_day_gap: with ``graph``, days that joined documents may be apart.

    Raises:
      InputError: on options that do not go together or are out of range.
    """
    if method == "average":
        if max_day_gap is not None:
            raise InputError(
                "average linkage does not look at dates",
                field="--max_day_gap",
                remedy="use --method graph, or leave it out",
            )
        return agglomerative(index.embeddings, threshold)
    if max_day_gap is None:
        return components(len(index), pairs_above(index.embeddings, threshold))
    dates = [document.byline_date for document in index.documents]
    return components(len(index), pairs_within_days(index.embeddings, dates, threshold, max_day_gap))
