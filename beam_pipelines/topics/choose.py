"""Topics from hub titles: normalises titles, keeps those that several publishers use, and says why it drops others.

``topics.tsv`` has every title with its verdict and topic. A person may edit a copy, which a later run reads.
"""

import collections
import csv
import dataclasses
import enum
import functools
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import InputError, reading
from ...formats import files
from ...formats.manifest import has_manifest
from ...formats.months import calendar_words
from ...formats.records import Hub
from .. import read_lists
from ..entities.linking import LEAST_PRIOR
from ..entities.tables import Alias

_LISTS = read_lists(__package__, "titles.txt")
_FURNITURE_WORDS = frozenset(_LISTS["site_words"].split())
_FURNITURE = {"about us", "contact us", "staff writer", "news desk"}
_AFFIX = re.compile(
    r"\b(?:rss|atom|feed|feeds|news|nachrichten|aktuelles|noticias(?: de| sobre)?|actualit[e\u00e9]s?|latest|all about"
    r"|section|category|page \d+|seite \d+|p\u00e1gina \d+)\b"
)
_SEPARATOR = re.compile(r"(?<!\s)\s+[|\u2013\u2014:\u00bb>-]\s+|(?:(?<!\s)\s+)?[|\u00bb>]\s*|:\s+")
_EDGES = " .,-&/"
_MAX_TITLE = 200
_DATE_LANGUAGES = frozenset({"en", "de", "es", "fr", "it", "pt", "ru"})
_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|er)?")
_AUTHOR_TITLE = re.compile(
    r"(?:author|autor|autorin|auteur)\Z"
    r"|.*\b(?:articles|posts|stories|columns|beitr\u00e4ge|artikel) (?:by|von)\b|.*\bauthor at\b"
)
_AUTHOR_URL = re.compile(r"/(?:authors?|autor(?:en|in|es)?|auteurs?|autori|byline|columnists?)/[^/]")


class Verdict(enum.StrEnum):
    """Whether a title belongs to a topic, or why not; the last column of ``topics.tsv``."""

    KEPT = "kept"
    EMPTY = "empty_title"
    FURNITURE = "site_furniture"
    DATE = "date_archive"
    AUTHOR = "author_page"
    SITE_NAME = "site_name"
    FEW_PUBLISHERS = "few_publishers"
    FEW_DOCUMENTS = "few_documents"
    OVER_LIMIT = "over_limit"
    DROPPED = "dropped"  # by a reviewed file, which does not keep it


class Decision(NamedTuple):
    """The verdict on a title, and the topic that it belongs to if the verdict is ``kept``."""

    topic: str
    verdict: Verdict


@dataclasses.dataclass(slots=True)
class Evidence:
    """The hubs of a title and what they list.

    Attributes:
      hubs: number of hubs with the title.
      author_hubs: number of these hubs whose URL is that of an author page.
      publishers: publishers of these hubs.
      documents: number of articles that these hubs list.
      signed: number of these articles with an author whose name is the title.
    """

    hubs: int = 0
    author_hubs: int = 0
    publishers: set[str] = dataclasses.field(default_factory=set)
    documents: int = 0
    signed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class HubHead:
    """The columns of a :class:`~newsembed.formats.records.Hub` beside the articles that it lists."""

    hub_id: str
    url: str
    publisher: str
    title: str


@functools.cache
def _date_words() -> frozenset[str]:
    """Returns what titles of archives have beside numbers: names of months and weekdays, and some words."""
    return frozenset(map(str.casefold, calendar_words(_DATE_LANGUAGES))).union(_LISTS["beside_dates"].split())


def normalize_title(title: str, publisher: str) -> str:
    """Returns a hub title without the name of the site and without words that only mark it as a hub.

    A title that only names the site becomes the publisher. A title of which nothing is left becomes "".

    >>> normalize_title("Politics News - Harbour Times", "harbourtimes.example")
    'politics'
    >>> normalize_title("top/sports/us", "example.com")
    'sports'
    >>> normalize_title("Harbour Times", "harbourtimes.example")
    'harbourtimes.example'
    """
    parts = [part for part in _SEPARATOR.split(title) if part.strip()]
    informative = [part for part in parts if not _names_site(part, publisher)]
    if parts and not informative:
        return plain_title(publisher)
    text = plain_title(informative[0]) if informative else ""
    if "/" in text and " " not in text:  # a path, as in feed lists: the longest step that is not a country code
        steps = sorted(text.split("/"), key=len, reverse=True)
        text = next((step for step in steps if len(step) > 2 and step != "top"), text)
    return (plain_title(_AFFIX.sub(" ", text)).strip(_EDGES) or text).strip(_EDGES)


def hub_title(hub: HubHead | Hub) -> str:
    """Returns the normalised title of a hub; the title of a front page is its publisher, whatever its headline."""
    front = hub.url.partition("://")[2].removeprefix("www.").rstrip("/") == hub.publisher
    title = plain_title(hub.publisher) if front and hub.title.strip() else normalize_title(hub.title, hub.publisher)
    return title[:_MAX_TITLE].strip(_EDGES)


def plain_title(text: str) -> str:
    """Returns a title or name in lower case, with single spaces."""
    return " ".join(text.casefold().split())


def _names_site(part: str, publisher: str) -> bool:
    """Returns whether a part of a title spells the publisher's domain, with or without an article ("The Post")."""
    letters, label = (re.sub(r"[\W_]", "", text.casefold()) for text in (part, publisher.partition(".")[0]))
    if not label or len(letters) < 4:
        return False
    return letters == publisher.replace(".", "") or (letters.endswith(label) and len(letters) - len(label) <= 4)


def gather(
    hubs: Iterable[HubHead | Hub], titles: Mapping[str, str], counts: Mapping[str, tuple[int, ...]]
) -> dict[str, Evidence]:
    """Collects the evidence for each title.

    Args:
      hubs: all hubs.
      titles: normalised title by hub_id.
      counts: by title, `Evidence.documents` and `Evidence.signed`; titles without articles may be absent.
    """
    found: dict[str, Evidence] = {}
    for hub in hubs:
        title = titles[hub.hub_id]
        documents, signed = counts.get(title, (0, 0))
        one = found.setdefault(title, Evidence(documents=documents, signed=signed))
        one.hubs += 1
        one.author_hubs += _AUTHOR_URL.search(hub.url) is not None
        one.publishers.add(hub.publisher)
    return found


def link_titles(titles: Iterable[str], aliases: Iterable[Alias]) -> dict[str, str]:
    """Returns the entity by title, for titles that are an alias as a whole, ignoring case.

    A title whose most likely entity has a prior below ``LEAST_PRIOR`` is left out.
    """
    meanings: dict[str, list[tuple[float, str]]] = collections.defaultdict(list)
    for alias in aliases:
        meanings[plain_title(alias.alias)].append((alias.prior, alias.entity))
    # Ties of priors go to the first entity by name, so that the order of the table does not matter.
    best = {title: min((-prior, entity) for prior, entity in meanings[title]) for title in titles if title in meanings}
    return {title: entity for title, (prior, entity) in best.items() if -prior >= LEAST_PRIOR}


def group_titles(evidence: Mapping[str, Evidence], entities: Mapping[str, str]) -> dict[str, str]:
    """Returns the group of each title that its own words and pages do not rule out.

    Titles of one entity form one group, "entity:…"; every other title is its own, "title:…".

    Args:
      evidence: evidence by title.
      entities: entity by title, see :func:`link_titles`.
    """
    usable = [title for title, one in evidence.items() if _verdict(title, one) is Verdict.KEPT]
    return {title: f"entity:{entities[title]}" if title in entities else f"title:{title}" for title in usable}


def choose(
    evidence: Mapping[str, Evidence],
    groups: Mapping[str, str],
    sizes: Mapping[str, int],
    min_publishers: int,
    min_documents: int,
    max_topics: int,
) -> tuple[dict[str, Decision], dict[str, int]]:
    """Decides on every title by rules.

    A group is named after its title with the most articles.

    Args:
      evidence: evidence by title.
      groups: of titles, see :func:`group_titles`.
      sizes: number of articles that the hubs of a group list.
      min_publishers: least number of publishers with a hub of the topic.
      min_documents: least number of articles that its hubs list.
      max_topics: most topics to keep, those with the most articles first (600 in the paper).

    Returns:
      The decisions by title, and the number of articles by topic that is kept.
    """
    decided = {title: Decision(title, _verdict(title, one)) for title, one in evidence.items()}
    members: dict[str, list[str]] = collections.defaultdict(list)
    for title, group in groups.items():
        members[group].append(title)
    kept: dict[str, int] = {}
    for group, titles in members.items():
        topic = min(titles, key=lambda title: (-evidence[title].documents, title))
        verdict = Verdict.KEPT
        if len(set().union(*(evidence[title].publishers for title in titles))) < min_publishers:
            verdict = Verdict.FEW_PUBLISHERS
        elif sizes[group] < min_documents:
            verdict = Verdict.FEW_DOCUMENTS
        else:
            kept[topic] = sizes[group]
        decided.update((title, Decision(topic, verdict)) for title in titles)
    over = set(rank_topics(kept)[max_topics:])
    for title, decision in decided.items():
        if decision.verdict is Verdict.KEPT and decision.topic in over:
            decided[title] = decision._replace(verdict=Verdict.OVER_LIMIT)
    return decided, {topic: size for topic, size in kept.items() if topic not in over}


def rank_topics(sizes: Mapping[str, int]) -> Sequence[str]:
    """Returns the names of topics, those with the most articles first.

    Args:
      sizes: number of articles by topic.
    """
    return sorted(sizes, key=lambda topic: (-sizes[topic], topic))


def _verdict(title: str, evidence: Evidence) -> Verdict:
    words = re.findall(r"\w+", title)
    if not words:
        return Verdict.EMPTY
    if {plain_title(publisher) for publisher in evidence.publishers} == {title}:
        return Verdict.SITE_NAME
    if title in _FURNITURE or _FURNITURE_WORDS.issuperset(words) or not _AFFIX.sub("", title).strip(_EDGES):
        return Verdict.FURNITURE
    if any(map(_NUMBER.fullmatch, words)) and all(word in _date_words() or _NUMBER.fullmatch(word) for word in words):
        return Verdict.DATE
    # A news desk may sign single articles as "Sports"; on an author page at least half of them are the author's.
    if (
        _AUTHOR_TITLE.match(title)
        or 2 * evidence.author_hubs > evidence.hubs
        or (evidence.signed and 2 * evidence.signed >= evidence.documents)
    ):
        return Verdict.AUTHOR
    return Verdict.KEPT


_COLUMNS = ("topic_id", "topic", "title", "hubs", "publishers", "documents", "verdict")
_READ = ("topic", "title", "verdict")  # the other columns are only informative


def write_topics(
    folder: str, decisions: Mapping[str, Decision], evidence: Mapping[str, Evidence], numbers: Mapping[str, int]
) -> None:
    """Writes ``topics.tsv``, in the dialect of spreadsheets: topics by number, then dropped titles.

    Args:
      folder: of the table.
      decisions: by title.
      evidence: by title; titles with the most articles come first.
      numbers: of the topics that are kept.
    """
    rows = []
    for title, (topic, verdict) in decisions.items():
        one, number = evidence[title], numbers[topic] if verdict is Verdict.KEPT else ""
        cells = (number, topic, title, one.hubs, len(one.publishers), one.documents, verdict.value)
        rows.append((verdict is not Verdict.KEPT, number or 0, -one.documents, title, cells))
    text = io.StringIO()
    csv.writer(text, "excel-tab", lineterminator="\n").writerows([_COLUMNS, *(row[-1] for row in sorted(rows))])
    files.write_whole(f"{folder}/topics.tsv", text.getvalue().encode())


def read_review(path: str, max_topics: int) -> dict[str, str]:
    """Returns the topic by title that is kept, from a ``topics.tsv`` that a person may have edited.

    Verdicts and topics may be changed, and rows deleted or moved: a row is identified by its title. Titles with the
    same topic form one topic. A title that the file does not keep is dropped, so the topics are those that the reviewer
    saw, even after another crawl.

    Args:
      path: the file.
      max_topics: most topics that the file may keep.

    Raises:
      InputError: if the file is in the result of a job, or a row is invalid; names path and line.
    """
    if any(has_manifest(folder) for folder in (path, path.rpartition("/")[0] or ".")):
        # The manifest next to it would identify the file: edits would go unnoticed and be overwritten by the next run.
        remedy = "copy it to another folder and edit the copy"
        raise InputError("got the result of a job, or a file in it", path=path, field="--topics_file", remedy=remedy)
    kept: dict[str, str] = {}
    remedy = "save it as tab-separated text in UTF-8, with the first line of the topics.tsv that the job wrote"
    with files.open_read(path) as source, reading(path, remedy, csv.Error):
        reader = csv.DictReader(io.StringIO(source.read().decode("utf-8-sig"), newline=""), dialect="excel-tab")
        if missing := [name for name in _READ if name not in (reader.fieldnames or ())]:
            raise InputError(f"got the columns {reader.fieldnames}, expected {', '.join(_READ)}", field=missing[0])
        for row in reader:
            topic, title, verdict = (" ".join((row[name] or "").split()) for name in _READ)
            where = f"line {reader.line_num}"
            if verdict.casefold() not in {"", *Verdict}:  # spreadsheets capitalise
                problem = f"got the verdict {verdict!r}, expected one of {', '.join(Verdict)}"
                raise InputError(problem, field=where, remedy="write kept to keep the title and dropped to drop it")
            if verdict.casefold() == Verdict.KEPT:
                if not topic or title in kept:
                    problem = f"got the title {title!r} without a topic, or for the second time"
                    raise InputError(problem, field=where, remedy="write one row with a topic for each title")
                kept[title] = topic
    if (count := len(set(kept.values()))) > max_topics:
        remedy = "drop or merge topics, or raise --max_topics"
        raise InputError(f"got {count} topics, expected at most {max_topics}", path=path, remedy=remedy)
    return kept
