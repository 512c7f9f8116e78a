"""``newsembed cluster``: group articles that report the same event.

Example::

    newsembed cluster --index work/index --threshold 0.75 --max_day_gap 3 --output clusters.tsv

Articles are joined by chains of pairs above the threshold. The TSV has the columns group, size, doc_id, date,
publisher, title, url, with the largest groups first.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import counted, visible
from ..formats.archive import IndexedDocument
from ..formats.command_line import Options, option, required
from ..formats.files import check_output, writing_text
from .filters import Dates, as_days
from .index import DocumentIndex
from .interface import FloatArray

_BLOCK: Final = 2048  # rows of the similarity matrix in memory: 2048 x 100 000 floats are 800 MB at most
MOST_DAYS: Final = 3_652_059  # from the first to the last date that there is

SPREADSHEET_HELP: Final = "put ' before titles and other texts that a spreadsheet would run as formulas"
_FORMULAS: Final = ("=", "+", "-", "@")

IntArray = npt.NDArray[np.int64]
Pairs = Iterator[tuple[IntArray, IntArray, FloatArray]]  # blocks of first, second, cosine


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterOptions(Options):
    """The options of ``newsembed cluster``."""

    index: str = required("what newsembed index or update wrote", metavar="DIR|URI")
    output: str = required("where the groups go", metavar="FILE.tsv", local=True)
    threshold: float = option(0.75, "least cosine", gt=-1, le=1)
    max_day_gap: int | None = option(
        None, "join only articles whose byline dates are at most this far apart", ge=0, le=MOST_DAYS
    )
    spreadsheet: bool = option(False, SPREADSHEET_HELP)


OPTIONS: Final = ClusterOptions


def run(options: ClusterOptions) -> int:
    """Runs the command."""
    check_output(options.output, is_folder=False)
    index = DocumentIndex.load(options.index)
    labels = cluster(index, options.threshold, options.max_day_gap)
    groups, members = write_groups(options.output, labels, listed(index, options.spreadsheet))
    print(f"{counted(groups, 'group')} with {members} of {counted(len(index), 'article')}: {options.output}")
    if not groups:
        print(f"note: a --threshold below {options.threshold:g} joins more articles", file=sys.stderr)
    return 0


def cluster(index: DocumentIndex, threshold: float, max_day_gap: int | None = None) -> IntArray:
    """Group number ``[N]`` of each document; a chain of pairs above the threshold is one group.

    Args:
      index: documents and embeddings.
      threshold: cosine.
      max_day_gap: days that joined documents may be apart.
    """
    dates = None if max_day_gap is None else [document.byline_date for document in index.documents]
    return components(len(index), near_pairs(index.embeddings, threshold, dates, max_day_gap or 0))


def near_pairs(embeddings: FloatArray, threshold: float, dates: Dates | None = None, days: int = 0) -> Pairs:
    """Yields blocks of (first, second, cosine) of all pairs first < second with a cosine of at least ``threshold``.

    Exact: every pair is compared, N²/2 products of D. With dates only articles of near days are, so that an archive of
    many years takes time in proportion to its length, and one without a date is in no pair.

    Args:
      embeddings: unit rows ``[N, D]``.
      threshold: in (-1, 1].
      dates: of each row; None for pairs of any dates.
      days: the most that two dates are apart.
    """
    order, ends = np.arange(len(embeddings)), np.full(len(embeddings), len(embeddings))
    if dates is not None:
        by_row = as_days(dates)
        order = np.argsort(by_row, kind="stable")[: np.count_nonzero(~np.isnat(by_row))]  # those without come last
        ends = np.searchsorted(by_row[order], by_row[order] + np.timedelta64(days, "D"), side="right")
        embeddings = embeddings[order]
    for start in range(0, len(order), _BLOCK):
        stop = min(start + _BLOCK, len(order))
        block = embeddings[start:stop] @ embeddings[start : ends[stop - 1]].T
        first, second = np.nonzero(block >= threshold)
        near = (first < second) & (second + start < ends[first + start])
        first, second = first[near], second[near]
        ours, theirs = order[first + start], order[second + start]
        yield np.minimum(ours, theirs), np.maximum(ours, theirs), block[first, second]


def components(count: int, pairs: Iterable[tuple[IntArray, IntArray, FloatArray]]) -> IntArray:
    """Group number ``[N]`` of each document, by first appearance; documents joined by a chain of pairs share one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined = np.concatenate([np.zeros((2, 0), np.int64), *(np.stack(block[:2]) for block in pairs)], axis=1)
    graph = coo_array((np.ones(joined.shape[1], np.int8), tuple(joined)), shape=(count, count))
    labels = connected_components(graph, directed=False)[1].tolist()
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}  # not a library's numbering
    return np.array([numbers[label] for label in labels], np.int64)


def write_groups(path: str, labels: IntArray, documents: Sequence[IndexedDocument]) -> tuple[int, int]:
    """Writes a TSV with a line for each document of a group of at least two; largest groups first.

    Returns:
      (groups written, documents in them).
    """
    sizes = np.bincount(labels)
    order = [group for group in np.argsort(-sizes, kind="stable").tolist() if sizes[group] > 1]
    number = {group: position for position, group in enumerate(order)}
    members = sorted((number[label], row) for row, label in enumerate(labels.tolist()) if label in number)
    with writing_text(path) as file:
        file.write("group\tsize\tdoc_id\tdate\tpublisher\ttitle\turl\n")
        for group, row in members:
            file.write(tsv_line(documents[row], str(group), str(sizes[order[group]]), documents[row].doc_id))
    return len(order), len(members)


def listed(index: DocumentIndex, spreadsheet: bool) -> list[IndexedDocument]:
    """The documents of an index as a TSV shows them, on request with texts that a spreadsheet runs as no formulas."""

    def safe(text: str) -> str:
        return f"'{text}" if text.lstrip().startswith(_FORMULAS) else text

    if not spreadsheet:
        return index.documents
    return [
        dataclasses.replace(one, title=safe(one.title), publisher=safe(one.publisher), url=safe(one.url))
        for one in index.documents
    ]


def tsv_line(document: IndexedDocument, *fields: str) -> str:
    """A line of a TSV: some fields, then date, publisher, title and URL of an article; white space is single spaces."""
    date = document.byline_date.isoformat() if document.byline_date else ""
    shown = (*fields, date, document.publisher, document.title, document.url)
    return "\t".join(visible(" ".join(field.split())) for field in shown) + "\n"
