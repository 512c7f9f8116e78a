"""Reads documents with event and topic labels from JSONL: the format of the generated newsroom's held-out part.

One JSON object a line: ``id, title, body, publisher, language, event, topic, byline_date``. An ``event`` of null or ""
says that the document belongs to no event: it can be found, wrongly, but never asks. ``.zst`` and ``.gz`` files are read as they are.
"""

import dataclasses
import datetime
from typing import Any

from ..tasks.errors import InputError
from ..tasks.jsonl import read_jsonl
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


def read_events(path: str, label: str = "event") -> list[EventDocument]:
    """Reads all documents of ``path``.

    Args:
      path: JSONL file, plain, ``.gz`` or ``.zst``.
      label: the field that must be present on every line ("event" or "topic"); its value may be null.

    Raises:
      InputError: on a missing file, a line that is not a JSON object, a missing field, a date that is none, a repeated id.
    """
    documents: list[EventDocument] = []
    seen: dict[str, str] = {}
    for where, row in read_jsonl(path):
        document = _parse(row, where, label)
        if document.id in seen:
            raise InputError(f"the id {document.id!r} is also at {seen[document.id]}", path=where, field="id", remedy="make ids unique")
        seen[document.id] = where
        documents.append(document)
    if not documents:
        raise InputError("the file holds no documents", path=path, remedy="give a JSONL file with one document a line")
    return documents


def _parse(row: dict[str, Any], where: str, label: str) -> EventDocument:
    for field in ("id", "title", "body", label):
        if field not in row:
            raise InputError(
                "the field is missing",
                path=where,
                field=field,
                remedy=f"every line needs id, title, body and {label} (null where there is none)",
            )
    fields = (field.name for field in dataclasses.fields(EventDocument) if field.name != "byline_date")
    texts = {name: _text(row.get(name), where, name) for name in fields}
    return EventDocument(**texts, byline_date=_date(row.get("byline_date"), where))


def _text(value: Any, where: str, field: str) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"got a JSON {type(value).__name__}, expected a string", path=where, field=field, remedy="write it as a string")


def _date(value: Any, where: str) -> datetime.date | None:
    if value is None or value == "":
        return None
    try:
        return datetime.date.fromisoformat(str(value)[:10])
    except ValueError as error:
        raise InputError(
            f"got {value!r}, expected a date YYYY-MM-DD", path=where, field="byline_date", remedy="write an ISO date or null"
        ) from error
