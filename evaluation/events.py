"""Reads documents with event and topic labels from JSONL: the format of the generated newsroom's held-out part.

One JSON object a line: ``id, title, body, publisher, language, event, topic, byline_date``. An ``event`` of null or ""
says that the document belongs to no event: it can be found, wrongly, but never asks. ``.zst`` and ``.gz`` files are read as they are.
"""

import dataclasses
import datetime
from typing import Any

from ..errors import InputError
from ..formats.jsonl import read_jsonl
from .encoders import Document


@dataclasses.dataclass(frozen=True, slots=True)
class EventDocument:
    """One labelled document; fields the file lacks are "" or ``None``.

    Attributes:
      duplicate_group: documents that share a non-empty value are near copies of one another.
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
        return Document(self.title, self.body)


def read_events(path: str, label: str | None = "event") -> list[EventDocument]:
    """Reads all documents of ``path``.

    Args:
      path: JSONL file, plain, ``.gz`` or ``.zst``.
      label: the field that must be present on every line ("event" or "topic"); its value may be null. ``None`` takes any articles: a line
        without ``id`` goes by its ``doc_id`` or ``url``, and dates are not read.

    Raises:
      InputError: on a missing file, a line that is not a JSON object, a missing field, a date that is none, a repeated id.
    """
    documents: list[EventDocument] = []
    seen: dict[str, str] = {}
    for where, row in read_jsonl(path):
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
        raise InputError("the file holds no documents", path=path, remedy="give a JSONL file with one document a line")
    return documents


def _parse(row: dict[str, Any], where: str, label: str | None) -> EventDocument:
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
                + (" (null where there is none)" if label else ""),
            )
    fields = (field.name for field in dataclasses.fields(EventDocument) if field.name != "byline_date")
    texts = {name: _text(row.get(name), where, name) for name in fields}
    return EventDocument(**texts, byline_date=_date(row.get("byline_date"), where))


def _as_article(row: dict[str, Any]) -> dict[str, Any]:
    """A row with an ``id`` where it has a name at all, and without its date, which is no label and may be junk."""
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
