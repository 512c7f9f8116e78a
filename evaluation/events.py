"""Reads documents with event and topic labels from JSONL: the format of the generated newsroom's held-out part.

One JSON object a line: ``id, title, body, publisher, language, event, topic, byline_date``. An ``event`` of null or ""
says that the document belongs to no event: it can be found, wrongly, but never asks. ``.zst`` and ``.gz`` files are read as they are.
"""

import contextlib
import dataclasses
import datetime
import gzip
import io
import json
from collections.abc import Iterator
from typing import IO, Any

from ..tasks.errors import InputError
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
    seen: dict[str, int] = {}
    with _open_text(path) as lines:
        for number, line in _numbered(lines, path):
            if not line.strip():
                continue
            document = _parse(line, f"{path}:{number}", label)
            if document.id in seen:
                raise InputError(
                    f"the id {document.id!r} is also on line {seen[document.id]}",
                    path=f"{path}:{number}",
                    field="id",
                    remedy="make ids unique",
                )
            seen[document.id] = number
            documents.append(document)
    if not documents:
        raise InputError("the file holds no documents", path=path, remedy="give a JSONL file with one document a line")
    return documents


@contextlib.contextmanager
def _open_text(path: str) -> Iterator[IO[str]]:
    try:
        raw: IO[bytes] = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[assignment]  # noqa: SIM115
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", path=path, remedy="give a JSONL file with the fields id, title, body, event"
        ) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(raw)
        if path.endswith(".zst"):
            import zstandard

            raw = stack.enter_context(zstandard.ZstdDecompressor().stream_reader(raw))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8"))


def _numbered(lines: IO[str], path: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            yield number, line
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise InputError(f"cannot be read after line {number}: {error}", path=path, remedy="give a whole UTF-8 file") from error


def _parse(line: str, where: str, label: str) -> EventDocument:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", path=where, remedy="write one JSON object a line") from error
    if not isinstance(row, dict):
        raise InputError(f"got a JSON {type(row).__name__}, expected an object", path=where, remedy="write one JSON object a line")
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
