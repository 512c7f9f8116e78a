"""Reads documents with event and topic labels from JSONL, the format of the generated newsroom's held-out part.

Each line is one JSON object: ``id, title, body, publisher, language, event, topic, byline_date``. An ``event`` of null
or "" means that the document belongs to no event: it is a candidate but never a query. ``.zst`` and ``.gz`` files are
decompressed.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats.articles import article_files, read_rows
from ..formats.jsonl import read_jsonl
from .encoders import Document


@dataclasses.dataclass(frozen=True, slots=True)
class EventDocument:
    """One labelled document; fields that the file lacks are "" or ``None``.

    Attributes:
      duplicate_group: documents that share a non-empty value are near copies of each other.
    """

    id: str
    title: str
    body: str
    publisher: str = ""
    language: str = ""
    event: str = ""
    topic: str = ""
    byline_date: datetime.date | None = None
    duplicate_group: str = ""

    @property
    def document(self) -> Document:
        """The text to embed."""
        return Document(self.title, self.body)


_COLUMNS = ("doc_id", "url", *(field.name for field in dataclasses.fields(EventDocument)))  # of Parquet files


def read_events(path: str, label: str | None = "event") -> list[EventDocument]:
    """Reads all documents of ``path``.

    Args:
      path: JSONL file, plain, ``.gz`` or ``.zst``; with label ``None`` also what `newsembed index` takes: a Parquet
        file, or a folder of Parquet or JSONL files.
      label: the field that must be present in every line ("event" or "topic"); its value may be null. ``None`` reads
        any articles: a line without ``id`` is identified by its ``doc_id`` or ``url``, and dates are not read.

    Raises:
      InputError: on a missing file, a line that is not a JSON object, a missing field, an invalid date or a repeated
        id.
    """
    documents: list[EventDocument] = []
    seen: dict[str, str] = {}
    for where, row in read_jsonl(path) if label else read_rows(article_files(path), ("title", "body"), _COLUMNS):
        document = _parse(row, where, label)
        if document.id in seen:
            raise InputError(
                f"the id {document.id!r} is also at {seen[document.id]}",
                path=where,
                field="id",
                remedy="make ids unique",
            )
        seen[document.id] = where
        documents.append(document)
    if not documents:
        raise InputError(
            "the file contains no documents", path=path, remedy="give a JSONL file with one document on each line"
        )
    return documents


def _parse(row: Mapping[str, Any], where: str, label: str | None) -> EventDocument:
    if label is None:
        row = _as_article(row)
    needed = ["id", "title", "body", *([] if label is None else [label])]
    for field in needed:
        if field not in row:
            raise InputError(
                "the field is missing",
                path=where,
                field=field,
                remedy=f"every line needs {', '.join(needed[:-1])} and {needed[-1]}"
                + (" (null if there is none)" if label else ""),
            )
    fields = (field.name for field in dataclasses.fields(EventDocument) if field.name != "byline_date")
    texts = {name: _text(row.get(name), where, name) for name in fields}
    return EventDocument(**texts, byline_date=_date(row.get("byline_date"), where))


def _as_article(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row with an ``id``, if it has any identifier, and without its date, which may be invalid."""
    name = row.get("id") or row.get("doc_id") or row.get("url")
    rest = {field: value for field, value in row.items() if field not in ("id", "byline_date")}
    return {**rest, "id": name} if name else rest


def _text(value: Any, where: str, field: str) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"got a JSON {type(value).__name__}, expected a string", path=where, field=field, remedy="write it as a string"
    )


def _date(value: Any, where: str) -> datetime.date | None:
    if value is None or value == "":
        return None
    try:
        return datetime.date.fromisoformat(str(value)[:10])
    except ValueError as error:
        raise InputError(
            f"got {value!r}, expected a date YYYY-MM-DD",
            path=where,
            field="byline_date",
            remedy="write an ISO date or null",
        ) from error


def codes(values: Sequence[str]) -> npt.NDArray[np.int64]:
    """Returns one integer for each distinct value, in their sorted order, and -1 for "".

    >>> codes(["storm", "", "drought", "storm"])
    array([ 1, -1,  0,  1])
    """
    numbers = {value: number for number, value in enumerate(sorted(set(values) - {""}))}
    return np.array([numbers.get(value, -1) for value in values], np.int64)
