"""``newsembed dedup``: find near-duplicate articles by their vectors.

Example::

    newsembed dedup --index work/index --threshold 0.95 --output duplicates.tsv --pairs pairs.tsv

Articles joined by pairs above the threshold form a group; the TSV has the columns group, size, doc_id, date, publisher,
title, url. ``--pairs`` also writes each pair with its cosine. Similar events of other years are not joined: a pair is
at most ``--max_day_gap`` days apart. Articles without a date are compared with one another only.

With ``--greedy`` it thins a ranked list instead, as Okura et al. 2016 do:

    newsembed dedup --index work/index --greedy --order ranking.tsv --most 200 --threshold 0.5 --output shown.tsv

It walks along the list and shows an article unless its greatest cosine to those shown exceeds the threshold; the list
decides which of several reports is shown. The first column of ``--order`` is the doc_id; other columns, empty lines and
a first line that begins with "doc_id" are skipped. The TSV has a line for each article that it looked at: rank, doc_id,
shown (yes or no), nearest (the most similar article shown before), cosine, date, publisher, title, url.
"""

import dataclasses
from typing import Final

import numpy as np

from ..errors import InputError, counted, refusing
from ..formats.command_line import Options, option, required
from ..formats.files import check_output, writing_text
from ..models.greedy import walk
from .cluster import MOST_DAYS, SPREADSHEET_HELP, Pairs, components, listed, near_pairs, tsv_line, write_groups
from .index import DocumentIndex

_MAX_DAY_GAP: Final = "7"  # copies and rewritten agency reports appear within days


@dataclasses.dataclass(frozen=True, kw_only=True)
class DedupOptions(Options):
    """The options of ``newsembed dedup``."""

    index: str = required("what newsembed index or update wrote", metavar="DIR|URI")
    output: str = required("where the groups go", metavar="FILE.tsv", local=True)
    pairs: str = option("", "also write each pair with its cosine here", metavar="FILE.tsv")
    threshold: float = option(0.95, "least cosine of near duplicates", gt=-1, le=1)
    max_day_gap: str = option(
        _MAX_DAY_GAP,
        "join only articles whose byline dates are at most this far apart; none: any",
        metavar="DAYS|none",
    )
    greedy: bool = option(False, "thin the ranked list --order instead of grouping")
    order: str = option("", "with --greedy: the list, a doc_id in its first column", metavar="FILE.tsv")
    most: int | None = option(None, "with --greedy: stop when this many are shown; else all are", ge=1)
    spreadsheet: bool = option(False, SPREADSHEET_HELP)

    def __post_init__(self) -> None:
        """Checks which options go together."""
        super().__post_init__()
        days = self.max_day_gap
        if days != "none" and not (days.isdigit() and int(days) <= MOST_DAYS):
            raise InputError(f"got {days!r}, expected a number of days or none", field="--max_day_gap")
        if self.greedy and not self.order:
            remedy = "name a file with a doc_id on each line, the best first"
            raise InputError("not given", field="--order", remedy=remedy)
        others, problem = (
            (("pairs", "max_day_gap"), "cannot be used with") if self.greedy else (("order", "most"), "needs")
        )
        for name in others:
            if getattr(self, name) not in ("", None, _MAX_DAY_GAP):
                remedy = "leave it out" if self.greedy else "add --greedy, or leave it out"
                raise InputError(f"{problem} --greedy", field=f"--{name}", remedy=remedy)


OPTIONS: Final = DedupOptions


def run(options: DedupOptions) -> int:
    """Runs the command."""
    check_output(options.output, is_folder=False)
    index = DocumentIndex.load(options.index)
    if options.greedy:
        return _thin(index, options)
    pairs = _pairs(index, options)
    if options.pairs:
        pairs = _written(pairs, index, options.pairs)
    groups, members = write_groups(options.output, components(len(index), pairs), listed(index, options.spreadsheet))
    found = f"{counted(groups, 'group')} with {members} of {counted(len(index), 'article')}"
    print(f"{found}, {members - groups} could go: {options.output}")
    return 0


def _pairs(index: DocumentIndex, options: DedupOptions) -> Pairs:
    """Articles without a date are in no pair with one that has a date: they could join events that are years apart."""
    if options.max_day_gap == "none":
        yield from near_pairs(index.embeddings, options.threshold)
        return
    dates = [document.byline_date for document in index.documents]
    yield from near_pairs(index.embeddings, options.threshold, dates, int(options.max_day_gap))
    undated = np.flatnonzero([date is None for date in dates])
    for first, second, cosine in near_pairs(index.embeddings[undated], options.threshold):
        yield undated[first], undated[second], cosine


def _written(pairs: Pairs, index: DocumentIndex, path: str) -> Pairs:
    with writing_text(path) as file:
        file.write("first\tsecond\tcosine\n")
        for block in pairs:
            for first, second, cosine in zip(*block, strict=True):
                file.write(f"{index.documents[first].doc_id}\t{index.documents[second].doc_id}\t{cosine:.6f}\n")
            yield block


def _thin(index: DocumentIndex, options: DedupOptions) -> int:
    rows, documents = _ranked(options.order, index), listed(index, options.spreadsheet)
    found = walk(index.embeddings[rows], options.threshold, options.most)
    with writing_text(options.output) as file:
        file.write("rank\tdoc_id\tshown\tnearest\tcosine\tdate\tpublisher\ttitle\turl\n")
        walked = zip(rows, found.shown.tolist(), found.nearest.tolist(), found.cosine.tolist(), strict=False)
        for rank, (row, is_shown, nearest, cosine) in enumerate(walked, 1):
            document = documents[row]
            other = (index.documents[rows[nearest]].doc_id, f"{cosine:.6f}") if nearest >= 0 else ("", "")
            file.write(tsv_line(document, str(rank), document.doc_id, "yes" if is_shown else "no", *other))
    count, shown = len(found.shown), int(found.shown.sum())
    ends = f"{count - shown} skipped, {len(rows) - count} not looked at: {options.output}"
    print(f"{shown} of {counted(count, 'article')} shown, {ends}")
    return 0


def _ranked(path: str, index: DocumentIndex) -> list[int]:
    """The rows of a ranked list."""
    places = {document.doc_id: row for row, document in enumerate(index.documents)}
    seen: dict[str, int] = {}
    about = {"path": path, "field": "--order", "remedy": "give a TSV file"}
    with refusing("cannot be read:", OSError, UnicodeDecodeError, **about), open(path, encoding="utf-8-sig") as file:
        lines = [line.rstrip("\r\n").partition("\t") for line in file]
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
