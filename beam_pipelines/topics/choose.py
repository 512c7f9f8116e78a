"""Topics from hub titles: normalises titles, keeps those that several publishers use, and says why it drops others."""

import collections
import dataclasses
import enum
import re
from collections.abc import Iterable, Mapping, Sequence

from ...formats.records import Hub
from ..entities.linking import LEAST_PRIOR
from ..entities.tables import Alias

# A title that consists only of these words names a part of the site, not what the articles are about.
_SITE_WORDS = (
    "home homepage page index start startseite inicio portada front frontpage main top stories latest all the and most"
    " read popular headlines breaking today sitemap search login subscribe newsletter newsletters podcasts video videos"
    " photos live archive archives archiv hemeroteca archivo contact about impressum kontakt contacto regions regionen"
    " regiones authors autoren autores staff tags"
    " главная новости популярное поиск видео фото архив контакты регионы авторы"
)
_FURNITURE_WORDS = frozenset(_SITE_WORDS.split())
_FURNITURE = {"about us", "contact us", "staff writer", "news desk"}
_AFFIX = re.compile(
    r"\b(?:rss|atom|feed|feeds|news|nachrichten|aktuelles|noticias(?: de| sobre)?|actualit[e\u00e9]s?|latest|all about"
    r"|section|category|page \d+|seite \d+|p\u00e1gina \d+)\b"
)
_SEPARATOR = re.compile(r"\s+[|\u2013\u2014:\u00bb>-]\s+|\s*[|\u00bb>]\s*|:\s+")
_EDGES = " .,-&/"
_MAX_TITLE = 200
_MONTHS = (
    "january february march april may june july august september october november december"
    " jan feb mar apr jun jul aug sep sept oct nov dec"
    " januar februar m\u00e4rz mai juni juli oktober dezember"
    " enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    " janvier f\u00e9vrier mars avril juin juillet ao\u00fbt septembre octobre novembre d\u00e9cembre"
    " gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre"
    " janeiro fevereiro mar\u00e7o maio junho julho setembro outubro novembro dezembro"
    " января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    " январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь"
)
_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag"
    " lunes martes mi\u00e9rcoles jueves viernes s\u00e1bado domingo"
    " lundi mardi mercredi jeudi vendredi samedi dimanche"
    " понедельник вторник среда четверг пятница суббота воскресенье"
)
_BESIDE_DATES = "archive archives archiv archivo hemeroteca архив week of for from on in the de del du vom von im am за"
_DATE_WORDS = frozenset(f"{_MONTHS} {_WEEKDAYS} {_BESIDE_DATES}".split())
_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|er)?")
_AUTHOR_TITLE = re.compile(
    r"(?:author|autor|autorin|auteur)\Z"
    r"|.*\b(?:articles|posts|stories|columns|beitr\u00e4ge|artikel) (?:by|von)\b|.*\bauthor at\b"
)
_AUTHOR_URL = re.compile(r"/(?:authors?|autor(?:en|in|es)?|auteurs?|autori|byline|columnists?)/[^/]")


# Whether its titles name an entity, and the entity or the title: one that is named like an entity is not of it.
Group = tuple[bool, str]


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
    # Only with a reviewed file.
    DROPPED = "dropped"  # dropped by the reviewer
    NOT_LISTED = "not_listed"  # the reviewed file has no row for this title
    NO_HUB = "no_hub"  # the reviewed file keeps this title, but no hub of this corpus has it


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
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
        return _plain(publisher)
    text = _plain(informative[0]) if informative else ""
    if "/" in text and " " not in text:  # a path, as in feed lists: the longest step that is not a country code
        text = next(
            (step for step in sorted(text.split("/"), key=len, reverse=True) if len(step) > 2 and step != "top"), text
        )
    return (_plain(_AFFIX.sub(" ", text)).strip(_EDGES) or text).strip(_EDGES)


def hub_title(hub: HubHead | Hub) -> str:
    """Returns the normalised title of a hub; the title of a front page is its publisher, whatever its headline."""
    front = hub.url.partition("://")[2].removeprefix("www.").rstrip("/") == hub.publisher
    title = _plain(hub.publisher) if front and hub.title.strip() else normalize_title(hub.title, hub.publisher)
    return title[:_MAX_TITLE].strip(_EDGES)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _names_site(part: str, publisher: str) -> bool:
    """Returns whether a part of a title spells the publisher's domain, with or without an article ("The Post")."""
    letters = re.sub(r"[\W_]", "", part.casefold())
    label = re.sub(r"[\W_]", "", publisher.partition(".")[0].casefold())
    return (
        bool(label)
        and len(letters) >= 4
        and (
            letters in {label, f"the{label}"}
            or (letters.endswith(label) and len(letters) - len(label) <= 4)
            or letters == publisher.replace(".", "")
        )
    )


def gather(
    hubs: Iterable[HubHead | Hub], titles: Mapping[str, str], counts: Mapping[str, tuple[int, int]]
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
        one = found.setdefault(title, Evidence(0, 0, set(), *counts.get(title, (0, 0))))
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
        meanings[_plain(alias.alias)].append((alias.prior, alias.entity))
    # Ties of priors go to the first entity by name, so that the order of the table does not matter.
    best = {
        title: min(meanings[title], key=lambda meaning: (-meaning[0], meaning[1]))
        for title in titles
        if title in meanings
    }
    return {title: entity for title, (prior, entity) in best.items() if prior >= LEAST_PRIOR}


def group_titles(evidence: Mapping[str, Evidence], entities: Mapping[str, str]) -> dict[str, Group]:
    """Returns the group of each title that its own words and pages do not rule out.

    Titles of one entity form one group; every other title is its own.

    Args:
      evidence: evidence by title.
      entities: entity by title, see :func:`link_titles`.
    """
    return {
        title: (title in entities, entities.get(title, title))
        for title, one in evidence.items()
        if _verdict(title, one) is Verdict.KEPT
    }


def choose(
    evidence: Mapping[str, Evidence],
    groups: Mapping[str, Group],
    sizes: Mapping[Group, int],
    *,
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
    members: dict[Group, list[str]] = collections.defaultdict(list)
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
            decided[title] = dataclasses.replace(decision, verdict=Verdict.OVER_LIMIT)
    return decided, {topic: size for topic, size in kept.items() if topic not in over}


def obey(review: Mapping[str, Decision], evidence: Mapping[str, Evidence]) -> dict[str, Decision]:
    """Applies reviewed decisions to every title of the corpus and of the review.

    A title that the review does not list is dropped, so the topics are those that the reviewer saw, even after another
    crawl.
    """
    found = {title: review.get(title, Decision(title, Verdict.NOT_LISTED)) for title in evidence}
    gone = {
        title: dataclasses.replace(decision, verdict=Verdict.NO_HUB) if decision.verdict is Verdict.KEPT else decision
        for title, decision in review.items()
        if title not in evidence
    }
    return found | gone


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
    if {_plain(publisher) for publisher in evidence.publishers} == {title}:
        return Verdict.SITE_NAME
    if title in _FURNITURE or _FURNITURE_WORDS.issuperset(words) or not _AFFIX.sub("", title).strip(_EDGES):
        return Verdict.FURNITURE
    if any(map(_NUMBER.fullmatch, words)) and all(word in _DATE_WORDS or _NUMBER.fullmatch(word) for word in words):
        return Verdict.DATE
    # A news desk may sign single articles as "Sports"; on an author page at least half of them are the author's.
    if (
        _AUTHOR_TITLE.match(title)
        or 2 * evidence.author_hubs > evidence.hubs
        or (evidence.signed and 2 * evidence.signed >= evidence.documents)
    ):
        return Verdict.AUTHOR
    return Verdict.KEPT
