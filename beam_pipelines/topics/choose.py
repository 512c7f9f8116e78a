"""From hub titles to topics: normalising titles, choosing those that several publishers use, and saying why the others are not."""

import collections
import dataclasses
import enum
import re
from collections.abc import Collection, Iterable

from ..records import Hub

_FURNITURE = {
    *(
        "home",
        "homepage",
        "index",
        "start",
        "startseite",
        "inicio",
        "portada",
        "front page",
        "frontpage",
        "main",
        "top",
        "latest",
        "all",
        "most read",
        "most popular",
        "headlines",
        "breaking",
    ),
    *(
        "sitemap",
        "search",
        "login",
        "subscribe",
        "newsletter",
        "newsletters",
        "podcasts",
        "video",
        "videos",
        "photos",
        "live",
        "archive",
        "archives",
        "archiv",
        "hemeroteca",
        "archivo",
    ),
    *(
        "contact",
        "about",
        "about us",
        "impressum",
        "kontakt",
        "contacto",
        "regions",
        "regionen",
        "regiones",
        "authors",
        "autoren",
        "autores",
        "staff",
        "staff writer",
        "news desk",
        "tags",
    ),
}
_AFFIX = re.compile(
    r"\b(?:rss|atom|feed|feeds|news|nachrichten|aktuelles|noticias(?: de| sobre)?|actualit[e\u00e9]s?|latest|all about|section|category|page \d+|seite \d+|p\u00e1gina \d+)\b"
)
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\b")
_SEPARATOR = re.compile(r"\s+[|\u2013\u2014:\u00bb>-]\s+|\s*[|\u00bb>]\s*|:\s+")


class Verdict(enum.StrEnum):
    """Why a candidate is a topic, or is none; the last column of ``topics.tsv``."""

    KEPT = "kept"
    EMPTY = "empty_title"
    FURNITURE = "site_furniture"
    DATE = "date_archive"
    AUTHOR = "author_page"
    SITE_NAME = "site_name"
    FEW_PUBLISHERS = "few_publishers"
    FEW_DOCUMENTS = "few_documents"
    OVER_LIMIT = "over_limit"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A normalised hub title with what speaks for it."""

    title: str
    publishers: int
    documents: int
    verdict: Verdict


def normalize_title(title: str, publisher: str) -> str:
    """A hub's title without the site's name and without words that only say that it is a hub.

    >>> normalize_title("Politics News - Harbour Times", "harbourtimes.example")
    'politics'
    >>> normalize_title("top/sports/us", "example.com")
    'sports'
    """
    parts = [part for part in _SEPARATOR.split(title) if part.strip() and not _names_site(part, publisher)]
    text = (parts[0] if parts else "").casefold()
    if "/" in text and " " not in text:  # a path, as feed lists use: the longest step that is no country code
        text = next((step for step in sorted(text.split("/"), key=len, reverse=True) if len(step) > 2 and step != "top"), "")
    bare = " ".join(_AFFIX.sub(" ", text).split())
    return (bare or " ".join(text.split())).strip(" .,-&/")


def _names_site(part: str, publisher: str) -> bool:
    """Whether a part of a title spells the publisher's domain, with or without an article ("La Voz", "The Post")."""
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


def choose(
    hubs: Iterable[Hub], present: Collection[str], authors: Collection[str], min_publishers: int, min_documents: int, max_topics: int
) -> tuple[list[Candidate], dict[str, str]]:
    """Topics among the titles of hubs.

    Args:
      hubs: every hub.
      present: doc_ids of the articles that passed ``clean``.
      authors: case-folded names of authors.
      min_publishers: publishers that must have a hub of the title.
      min_documents: articles that its hubs must list.
      max_topics: the most documented are kept (the paper has 600).

    Returns:
      Every candidate, the kept ones first and by documents; and the normalised title of each hub by hub_id.
    """
    titles: dict[str, str] = {}
    publishers: dict[str, set[str]] = collections.defaultdict(set)
    documents: dict[str, set[str]] = collections.defaultdict(set)
    for hub in hubs:
        title = titles[hub.hub_id] = normalize_title(hub.title, hub.publisher)
        publishers[title].add(hub.publisher)
        documents[title].update(doc_id for doc_id in hub.doc_ids if doc_id in present)
    candidates = []
    for title in sorted(publishers):
        verdict = _verdict(title, authors)
        if verdict is Verdict.KEPT and len(publishers[title]) < min_publishers:
            verdict = Verdict.FEW_PUBLISHERS
        if verdict is Verdict.KEPT and len(documents[title]) < min_documents:
            verdict = Verdict.FEW_DOCUMENTS
        candidates.append(Candidate(title, len(publishers[title]), len(documents[title]), verdict))
    ranked = sorted(candidates, key=lambda one: (one.verdict is not Verdict.KEPT, -one.documents, one.title))
    limited = [
        dataclasses.replace(one, verdict=Verdict.OVER_LIMIT) if one.verdict is Verdict.KEPT and place >= max_topics else one
        for place, one in enumerate(ranked)
    ]
    return limited, titles


def _verdict(title: str, authors: Collection[str]) -> Verdict:
    if not title:
        return Verdict.EMPTY
    if title in _FURNITURE:
        return Verdict.FURNITURE
    if _DATE.search(title):
        return Verdict.DATE
    return Verdict.AUTHOR if title in authors else Verdict.KEPT
