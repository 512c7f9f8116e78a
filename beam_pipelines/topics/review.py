"""``topics.tsv``: every hub title with its topic and verdict. A person may edit a copy, which a later run reads."""

import csv
import io
from collections.abc import Mapping, Sequence

from ...errors import InputError
from ...formats import files
from ...formats.manifest import has_manifest
from .choose import Decision, Evidence, Verdict

TOPICS_FILE = "topics.tsv"
_COLUMNS = ("topic_id", "topic", "title", "hubs", "publishers", "documents", "verdict")
_READ = ("topic", "title", "verdict")  # the other columns are only informative


def write_tsv(path: str, rows: Sequence[Sequence[object]]) -> None:
    """Writes a table in the dialect of spreadsheets, where a field with a quotation mark is quoted."""
    text = io.StringIO()
    csv.writer(text, "excel-tab", lineterminator="\n").writerows(rows)
    with files.open_write(path) as sink:
        sink.write(text.getvalue().encode("utf-8"))


def write_review(
    path: str, decisions: Mapping[str, Decision], evidence: Mapping[str, Evidence], topics: Sequence[str]
) -> None:
    """Writes one row per title: topics by number, then dropped titles, those with the most articles first.

    Args:
      path: of the table.
      decisions: by title.
      evidence: by title.
      topics: those that are kept, in the order of their numbers.
    """
    numbers = {topic: number for number, topic in enumerate(topics)}
    rows: list[tuple[bool, int, int, str, tuple[object, ...]]] = []
    for title, decision in decisions.items():
        one = evidence.get(title, Evidence())
        number = numbers[decision.topic] if decision.verdict is Verdict.KEPT else None
        counts = (one.hubs, len(one.publishers), one.documents)
        cells = ("" if number is None else number, decision.topic, title, *counts, decision.verdict.value)
        rows.append((number is None, number or 0, -one.documents, title, cells))
    write_tsv(path, [_COLUMNS, *(row[-1] for row in sorted(rows))])


def read_review(path: str, max_topics: int) -> dict[str, Decision]:
    """Reads decisions by title from a ``topics.tsv`` that a person may have edited.

    Verdicts and topics may be changed, and rows deleted or moved: a row is identified by its title. Titles
    with the same topic form one topic.

    Args:
      path: the file.
      max_topics: most topics that the file may keep.

    Raises:
      InputError: if the file is in the result of a job, or a row is invalid; names path and line.
    """
    if any(has_manifest(folder) for folder in (path, path.rpartition("/")[0] or ".")):
        # The manifest next to it would identify the file: edits would go unnoticed and be overwritten by the next run.
        raise InputError(
            "got the result of a job, or a file in it",
            path=path,
            field="--topics_file",
            remedy="copy it to another folder and edit the copy",
        )
    decisions: dict[str, Decision] = {}
    lines: dict[str, int] = {}
    topics: set[str] = set()
    for line, row in _read_rows(path):
        where = f"{path}:{line}"
        topic, title, verdict = (" ".join(row[name].split()) for name in _READ)
        verdict = verdict.casefold()  # spreadsheets capitalise
        if verdict not in set(Verdict):
            raise InputError(
                f"got {verdict!r}, expected one of {', '.join(Verdict)}",
                path=where,
                field="verdict",
                remedy="write kept to keep the title and dropped to drop it",
            )
        if title in lines:
            raise InputError(
                f"got {title!r} again, expected one row for each title",
                path=where,
                field="title",
                remedy=f"delete this row or line {lines[title]}; to merge titles give them the same topic",
            )
        if verdict == Verdict.KEPT:
            topics.add(topic)
            if not topic:
                raise InputError(
                    "a kept title has no topic", path=where, field="topic", remedy="name its topic, or drop it"
                )
        if len(topics) > max_topics:
            raise InputError(
                f"got more than {max_topics} kept topics",
                path=where,
                field="verdict",
                remedy="drop or merge topics, or raise --max_topics",
            )
        decisions[title], lines[title] = Decision(topic, Verdict(verdict)), line
    return decisions


def _read_rows(path: str) -> list[tuple[int, dict[str, str]]]:
    """Returns (line number, cell by column) of each row that is not blank.

    Raises:
      InputError: if the file is not a table with the expected columns.
    """
    with files.open_read(path) as source:
        raw = source.read()
    try:
        reader = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), "excel-tab", strict=True)
        lines = [(reader.line_num, cells) for cells in reader if any(cells)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"not a table: {error}", path=path, field="--topics_file", remedy="save it as tab-separated text in UTF-8"
        ) from error
    if not lines or (missing := [name for name in _READ if name not in lines[0][1]]):
        got = lines[0][1] if lines else []
        raise InputError(
            f"got the columns {got}, expected {', '.join(_READ)} among them",
            path=f"{path}:{lines[0][0] if lines else 1}",
            field=missing[0] if lines else _READ[0],
            remedy="keep the first line of the topics.tsv that the job wrote, and its tabs",
        )
    header = lines[0][1]
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise InputError(
                f"got {len(cells)} cells, expected {len(header)}",
                path=f"{path}:{line}",
                field=header[min(len(cells), len(header) - 1)],
                remedy="separate the columns by tabs, one row per line",
            )
    return [(line, dict(zip(header, cells, strict=True))) for line, cells in lines[1:]]
