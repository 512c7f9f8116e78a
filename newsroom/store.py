"""The site on disk: ``index.jsonl`` with one resource on each line, and ``content.bin`` with their bodies in order."""

import dataclasses
import datetime
import hashlib
import json
import os
from types import TracebackType
from typing import BinaryIO, Self, TextIO

from ..errors import InputError

_INDEX, _CONTENT = "index.jsonl", "content.bin"


@dataclasses.dataclass(frozen=True)
class Resource:
    """The server's answer for one host and path.

    Attributes:
      modified: for Last-Modified, UTC.
      location: target of a redirect.
    """

    host: str
    path: str
    body: bytes
    content_type: str
    modified: datetime.datetime
    status: int = 200
    location: str = ""


@dataclasses.dataclass(frozen=True)
class Stored:
    """One line of the index."""

    host: str
    path: str
    status: int
    content_type: str
    modified: str
    etag: str
    location: str
    offset: int
    length: int


class SiteWriter:
    """Writes resources in the given order; the index is written last, so a folder without one is not a site."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._lines: list[str] = []
        self._offset = 0
        self._keys: set[tuple[str, str]] = set()
        index = os.path.join(folder, _INDEX)
        if os.path.exists(index):
            os.remove(index)
        self._content: BinaryIO | None = None

    def add(self, resource: Resource) -> None:
        """Writes a resource.

        Raises:
          ValueError: if its host and path are already written.
        """
        key = (resource.host, resource.path)
        if key in self._keys:
            raise ValueError(f"{resource.host}{resource.path} is written twice")
        self._keys.add(key)
        etag = hashlib.sha256(resource.body).hexdigest()[:16]
        modified = resource.modified.isoformat()
        stored = Stored(
            *key,
            resource.status,
            resource.content_type,
            modified,
            etag,
            resource.location,
            self._offset,
            len(resource.body),
        )
        self._lines.append(json.dumps(dataclasses.asdict(stored), ensure_ascii=False))
        if self._content is None:
            raise ValueError("the writer is not open: use it in a with statement")
        self._content.write(resource.body)
        self._offset += len(resource.body)

    def __enter__(self) -> Self:
        self._content = open(os.path.join(self._folder, _CONTENT), "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._content:
            self._content.close()
        if kind is None:
            with open(os.path.join(self._folder, _INDEX), "w", encoding="utf-8") as file:
                write_lines(file, self._lines)


class SiteReader:
    """Finds a resource by host and path.

    Raises:
      InputError: if the folder holds no site.
    """

    def __init__(self, folder: str) -> None:
        index = os.path.join(folder, _INDEX)
        if not os.path.exists(index):
            raise InputError(
                "no newsroom site here", path=index, remedy="generate one with newsembed newsroom --output DIR"
            )
        with open(index, encoding="utf-8") as file:
            stored = [Stored(**json.loads(line)) for line in file]
        self._resources = {(item.host, item.path): item for item in stored}
        self._path = os.path.join(folder, _CONTENT)

    def find(self, host: str, path: str) -> Stored | None:
        """The resource of a host and path; None if there is none."""
        return self._resources.get((host, path))

    def body(self, stored: Stored) -> bytes:
        """The body of a resource."""
        with open(self._path, "rb") as file:
            file.seek(stored.offset)
            return file.read(stored.length)

    def hosts(self) -> list[str]:
        """All hosts, sorted."""
        return sorted({host for host, _ in self._resources})


def make_folder(output: str) -> None:
    """Makes the folder of a newsroom, unless it is there.

    Raises:
      InputError: if ``output`` is a file.
    """
    if os.path.exists(output) and not os.path.isdir(output):
        raise InputError("is a file, expected a folder", path=output, remedy="name another folder")
    os.makedirs(output, exist_ok=True)


def write_lines(file: TextIO, lines: list[str]) -> None:
    """Writes lines, each with a line feed."""
    file.writelines(f"{line}\n" for line in lines)
