"""Topics from hub titles: normalises titles, keeps those that several publishers use, and says why it drops others."""

import collections
import dataclasses
import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

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
      documents: ids of the articles that these hubs list.
    """

    hubs: int = 0
    author_hubs: int = 0
    publishers: set[str] = dataclasses.field(default_factory=set)
    documents: set[str] = dataclasses.field(default_factory=set)


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


def hub_title(hub: Hub) -> str:
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


def gather(hubs: Iterable[Hub], titles: Mapping[str, str], present: Collection[str]) -> dict[str, Evidence]:
    """Collects the evidence for each title.

    Args:
      hubs: all hubs.
      titles: normalised title by hub_id.
      present: doc_ids of the articles that passed ``clean``; others are ignored.
    """
    found: dict[str, Evidence] = collections.defaultdict(Evidence)
    for hub in hubs:
        one = found[titles[hub.hub_id]]
        one.hubs += 1
        one.author_hubs += _AUTHOR_URL.search(hub.url) is not None
        one.publishers.add(hub.publisher)
        one.documents.update(doc_id for doc_id in hub.doc_ids if doc_id in present)
    return dict(found)


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


def choose(
    evidence: Mapping[str, Evidence],
    authored: Mapping[str, Collection[str]],
    entities: Mapping[str, str],
    *,
    min_publishers: int,
    min_documents: int,
    max_topics: int,
) -> dict[str, Decision]:
    """Decides on every title by rules.

    Titles of one entity form one topic; every other kept title is its own topic. A topic is named after its title with
    the most articles.

    Args:
      evidence: evidence by title.
      authored: for each title, ids of the articles written by an author of this name.
      entities: entity by title, see :func:`link_titles`.
      min_publishers: least number of publishers with a hub of the topic.
      min_documents: least number of articles that its hubs list.
      max_topics: most topics to keep, those with the most articles first (600 in the paper).
    """
    verdicts = {title: _verdict(title, one, authored.get(title, ())) for title, one in evidence.items()}
    groups: dict[tuple[bool, str], list[str]] = collections.defaultdict(list)
    for title, verdict in verdicts.items():
        if verdict is Verdict.KEPT:
            groups[title in entities, entities.get(title, title)].append(title)
    decided = {title: Decision(title, verdict) for title, verdict in verdicts.items()}
    for titles in groups.values():
        topic = min(titles, key=lambda title: (-len(evidence[title].documents), title))
        verdict = Verdict.KEPT
        if len(set().union(*(evidence[title].publishers for title in titles))) < min_publishers:
            verdict = Verdict.FEW_PUBLISHERS
        elif len(set().union(*(evidence[title].documents for title in titles))) < min_documents:
            verdict = Verdict.FEW_DOCUMENTS
        decided.update((title, Decision(topic, verdict)) for title in titles)
    over = set(rank_topics(decided, evidence)[max_topics:])
    for title, decision in decided.items():
        if decision.verdict is Verdict.KEPT and decision.topic in over:
            decided[title] = dataclasses.replace(decision, verdict=Verdict.OVER_LIMIT)
    return decided


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


def rank_topics(decisions: Mapping[str, Decision], evidence: Mapping[str, Evidence]) -> Sequence[str]:
    """Returns the names of the kept topics, those with the most articles first."""
    documents: dict[str, set[str]] = collections.defaultdict(set)
    for title, decision in decisions.items():
        if decision.verdict is Verdict.KEPT:
            documents[decision.topic] |= evidence[title].documents
    return sorted(documents, key=lambda topic: (-len(documents[topic]), topic))


def _verdict(title: str, evidence: Evidence, authored: Collection[str]) -> Verdict:
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
    signed = sum(doc_id in evidence.documents for doc_id in authored)
    if (
        _AUTHOR_TITLE.match(title)
        or 2 * evidence.author_hubs > evidence.hubs
        or (signed and 2 * signed >= len(evidence.documents))
    ):
        return Verdict.AUTHOR
    return Verdict.KEPT
