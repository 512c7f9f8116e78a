"""``newsembed dedup``: find near-duplicate articles by their vectors.

Example::

    newsembed dedup --index work/index --threshold 0.95 --output duplicates.tsv --pairs pairs.tsv

Articles joined by pairs above the threshold form a group; the TSV has the columns group, size, doc_id, date, publisher,
title, url. ``--pairs`` also writes each pair with its cosine. Similar events of other years are not joined: a pair is
at most ``--max_day_gap`` days apart. Articles without a date are compared with one another only.

With ``--greedy`` it thins a ranked list instead, as Okura et al. 2016 do::

    newsembed dedup --index work/index --greedy --order ranking.tsv --most 200 --threshold 0.5 --output shown.tsv

It walks along the list and shows an article unless its greatest cosine to those shown exceeds the threshold; the list
decides which of several reports is shown. The first column of ``--order`` is the doc_id; other columns, empty lines and
a first line that begins with "doc_id" are skipped. The TSV has a line for each article that it looked at: rank, doc_id,
shown (yes or no), nearest (the most similar article shown before), cosine, date, publisher, title, url.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

from ..errors import InputError, counted
from ..formats.whole import check_output, writing_text
from ..models.greedy import Walk, walk
from .groups import IntArray, check_threshold, components, pairs_above, pairs_in_time, write_groups
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
        metavar="DAYS|none",
        help=f"join only articles whose byline dates are at most this far apart; none: any (default: {_MAX_DAY_GAP})",
        default=_MAX_DAY_GAP,
    )
    parser.add_argument("--greedy", action="store_true", help="thin the ranked list --order instead of grouping")
    parser.add_argument("--order", metavar="FILE.tsv", help="with --greedy: the list, a doc_id in its first column")
    parser.add_argument(
        "--most", type=int, metavar="N", help="with --greedy: stop when this many are shown (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
      InputError: for options that do not go together, or a list that names an article twice or one that is not indexed.
    """
    check_output(args.output, is_folder=False)
    if args.greedy:
        return _thin(args)
    for name in ("order", "most"):
        if getattr(args, name) is not None:
            raise InputError("needs --greedy", field=f"--{name}", remedy="add --greedy, or leave it out")
    index = load_current(args.index)
    pairs = _pairs(index, args.threshold, args.max_day_gap)
    if args.pairs:
        pairs = _written(pairs, index, args.pairs)
    groups, members = write_groups(args.output, components(len(index), pairs), index.documents, smallest=2)
    found = f"{counted(groups, 'group')} with {members} of {counted(len(index), 'article')}"
    print(f"{found}, {members - groups} could go: {args.output}")
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
    with writing_text(path) as file:
        file.write("first\tsecond\tcosine\n")
        for block in pairs:
            for first, second, cosine in zip(*block, strict=True):
                file.write(f"{index.documents[first].doc_id}\t{index.documents[second].doc_id}\t{cosine:.6f}\n")
            yield block


def _thin(args: argparse.Namespace) -> int:
    """Thins a ranked list.

    Raises:
      InputError: see `run`.
    """
    if args.order is None:
        raise InputError("not given", field="--order", remedy="name a file with a doc_id on each line, the best first")
    if args.pairs:
        raise InputError("cannot be used with --greedy", field="--pairs", remedy="the output has the cosines anyway")
    if args.max_day_gap != _MAX_DAY_GAP:
        remedy = "leave it out: the list decides which articles are compared"
        raise InputError("cannot be used with --greedy", field="--max_day_gap", remedy=remedy)
    if args.most is not None and args.most < 1:
        raise InputError(f"got {args.most}, expected at least 1", field="--most", remedy="leave it out to show all")
    check_threshold(args.threshold)
    index = load_current(args.index)
    rows = _ranked(args.order, index)
    found = walk(index.embeddings[rows], args.threshold, args.most)
    _write_walk(args.output, index, rows, found)
    count, shown = len(found.shown), int(found.shown.sum())
    ends = f"{count - shown} skipped, {len(rows) - count} not looked at: {args.output}"
    print(f"{shown} of {counted(count, 'article')} shown, {ends}")
    return 0


def _ranked(path: str, index: DocumentIndex) -> list[int]:
    """The rows of a ranked list.

    Raises:
      InputError: if it cannot be read, is empty, or names an article twice or one that is not indexed.
    """
    places = {document.doc_id: row for row, document in enumerate(index.documents)}
    seen: dict[str, int] = {}
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [line.rstrip("\r\n").partition("\t") for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, field="--order", remedy="give a TSV file") from error
    for number, (first, _, rest) in enumerate(lines, 1):
        doc_id = first.strip()
        if not (doc_id or rest.strip()) or (number == 1 and doc_id == "doc_id"):
            continue
        problem = "is not in the index" if doc_id not in places else "is in the list twice" if doc_id in seen else ""
        if problem:
            remedy = "list articles of the index, each once"
            shown = repr(doc_id if len(doc_id) <= 80 else f"{doc_id[:80]}…")  # a line of another kind of file
            raise InputError(f"the article {shown} {problem}", path=f"{path}:{number}", remedy=remedy)
        seen[doc_id] = places[doc_id]
    if not seen:
        raise InputError("names no article", path=path, field="--order", remedy="put a doc_id on each line")
    return list(seen.values())


def _write_walk(path: str, index: DocumentIndex, rows: list[int], found: Walk) -> None:
    with writing_text(path) as file:
        file.write("rank\tdoc_id\tshown\tnearest\tcosine\tdate\tpublisher\ttitle\turl\n")
        walked = zip(rows, found.shown.tolist(), found.nearest.tolist(), found.cosine.tolist(), strict=False)
        for rank, (row, is_shown, nearest, cosine) in enumerate(walked, 1):
            document = index.documents[row]
            other = (index.documents[rows[nearest]].doc_id, f"{cosine:.6f}") if nearest >= 0 else ("", "")
            date = document.byline_date.isoformat() if document.byline_date else ""
            texts = (document.publisher, document.title, document.url)
            fields = (str(rank), document.doc_id, "yes" if is_shown else "no", *other, date, *texts)
            file.write("\t".join(" ".join(field.split()) for field in fields) + "\n")
