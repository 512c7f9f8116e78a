"""Reads documents with event and topic labels from JSONL, the format of the generated newsroom's held-out part.

`collect` chooses the articles of a diagnosis: those with text, up to a limit, and those whose neighbors are shown.

Each line is one JSON object: ``id, title, body, publisher, language, event, topic, byline_date``. An ``event`` of null
or "" means that the document belongs to no event: it is a candidate but never a query. ``.zst`` and ``.gz`` files are
decompressed.
"""

import collections
import dataclasses
import datetime
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, refusing
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
    """
    documents: list[EventDocument] = []
    seen: dict[str, str] = {}
    for where, row in read_jsonl(path) if label else read_rows(article_files(path), ("title", "body"), _COLUMNS):
        document = _parse(row, where, label)
        if document.id in seen:
            problem = f"the id {document.id!r} is also at {seen[document.id]}"
            raise InputError(problem, path=where, field="id", remedy="make ids unique")
        seen[document.id] = where
        documents.append(document)
    if not documents:
        remedy = "give a JSONL file with one document on each line"
        raise InputError("the file contains no documents", path=path, remedy=remedy)
    return documents


def _parse(row: Mapping[str, Any], where: str, label: str | None) -> EventDocument:
    row = dict(row)
    if label is None:  # any article: its date may be invalid
        row["id"] = row.get("id") or row.get("doc_id") or row.get("url")
        row["byline_date"] = None
        if not row["id"]:
            del row["id"]
    needed = ["id", "title", "body", *([label] if label else [])]
    for field in needed:
        if field not in row:
            remedy = f"every line needs {', '.join(needed[:-1])} and {needed[-1]}"
            remedy += " (null if there is none)" if label else ""
            raise InputError("the field is missing", path=where, field=field, remedy=remedy)
    date, texts = row.pop("byline_date", None), dict[str, str]()
    for name in (field.name for field in dataclasses.fields(EventDocument) if field.name in row):
        value = row[name]
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            problem = f"got a JSON {type(value).__name__}, expected a string"
            raise InputError(problem, path=where, field=name, remedy="write it as a string")
        texts[name] = "" if value is None else str(value)
    problem, remedy = f"got {date!r}, expected a date YYYY-MM-DD", "write an ISO date or null"
    with refusing(problem, ValueError, path=where, field="byline_date", remedy=remedy):
        return EventDocument(**texts, byline_date=datetime.date.fromisoformat(str(date)[:10]) if date else None)


def codes(values: Sequence[str]) -> npt.NDArray[np.int64]:
    """Returns one integer for each distinct value, in their sorted order, and -1 for "".

    >>> codes(["storm", "", "drought", "storm"])
    array([ 1, -1,  0,  1])
    """
    numbers: npt.NDArray[np.int64] = np.unique(np.array(values, str), return_inverse=True)[1]
    return numbers - ("" in values)  # which is the first of all


@dataclasses.dataclass(frozen=True)
class Collection:
    """Articles to embed.

    Attributes:
      articles: articles with text, in the order of the file.
      queries: positions in ``articles`` of those whose neighbors are shown.
      read: number of articles in the file.
      empty: number of articles in the file without title and body.
    """

    articles: tuple[EventDocument, ...]
    queries: tuple[int, ...]
    read: int
    empty: int


def collect(
    path: str, *, queries: Sequence[str] = (), shown: int = 5, limit: int | None = None, seed: int = 0
) -> Collection:
    """Reads the articles of a diagnosis.

    Args:
      path: JSONL of articles, see ``events.read_events``; ``event``, ``topic`` and ``language`` may be absent.
      queries: ids of the queries; if there are none, they are drawn.
      shown: number of queries to draw; articles with another article of their event are preferred.
      limit: maximum number of articles; ``queries`` are always kept, events are kept whole. ``None`` keeps all
        articles.
      seed: seed of the draws.
    """
    rows = read_events(path, label=None)
    known = {row.id: row for row in rows}
    for name in queries:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "give ids of articles in the file"
            raise InputError(f"no article has the id {name!r}", path=path, field="--queries", remedy=remedy)
        if not known[name].document.text:
            problem = f"the article {name!r} has no text"
            raise InputError(problem, path=path, field="--queries", remedy="choose another one")
    texts = [row for row in rows if row.document.text]
    if len(texts) < 2:
        problem = f"{len(texts)} of {len(rows)} articles have text, expected at least two"
        raise InputError(problem, path=path, remedy="give more articles")
    kept = texts if limit is None else sample(texts, limit, keep=queries, seed=seed)
    if len(kept) < 2:
        problem = f"keeps {len(kept)} articles, expected at least two"
        raise InputError(problem, field="--max_articles", remedy="give a larger number")
    places = {row.id: place for place, row in enumerate(kept)}
    chosen = [places[name] for name in dict.fromkeys(queries)]
    if not chosen:
        sizes = collections.Counter(row.event for row in kept if row.event)
        order = np.random.default_rng(seed).permutation(len(kept)).tolist()
        # A stable sort: articles of an event with others come first, both kinds in random order.
        chosen = sorted(order, key=lambda place: sizes[kept[place].event] < 2)[:shown]
    return Collection(tuple(kept), tuple(chosen), len(rows), len(rows) - len(texts))


def sample(
    articles: Sequence[EventDocument], limit: int, *, keep: Sequence[str] = (), seed: int = 0
) -> list[EventDocument]:
    """Returns at most ``limit`` articles, in their order: those in ``keep``, then whole events in random order.

    An article without an event counts as an event. An event that does not fit is left out, so fewer articles than
    ``limit`` may be returned.
    """
    if len(articles) <= limit:
        return list(articles)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, article in enumerate(articles):
        groups.setdefault(("event", article.event) if article.event else ("id", article.id), []).append(place)
    wanted = set(keep)
    chosen = {place for place, article in enumerate(articles) if article.id in wanted}
    members = list(groups.values())
    for number in np.random.default_rng(seed).permutation(len(members)):
        if len(chosen.union(members[number])) <= limit:
            chosen.update(members[number])
    return [articles[place] for place in sorted(chosen)]
