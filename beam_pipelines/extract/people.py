"""Extracts the names of people from bylines, without newspapers, agencies, job titles and addresses."""

# ruff: noqa: RUF001 - the marks that pages are written with

import re
from collections.abc import Iterator

from .nodes import letters_of

_MAX_AUTHORS = 10
_MAX_NAME_CHARACTERS = 60
_MAX_NAME_WORDS = 6
_SPLIT = re.compile(r"\s*[;,|/•·\n\t‹›]\s*|\s+[-–—]\s+|\s+(?:and|with|und|y|et|и|&|&amp;)\s+", re.IGNORECASE)
_BY = re.compile(
    r"^\W*(?:(?:and|with|und|y|et)\b"
    r"|(?:(?:updated|written|posted|published|reported|story|text|analysis|opinion|review|words|interview)\s+)?"
    r"(?:by|von|por|par|di|door|автор)"
    r"|author|autor|auteur|reporter|writer|reported by)\b[\s:.]+",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>|@\w+|\S+@\S+|https?://\S+|\bwww\.\S+")
_TITLE = re.compile(r"^(?:dr|mr|mrs|ms|prof)\.?\s+(?=\w+\s+\w)", re.IGNORECASE)
_GENERATION = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)
_DEGREE = re.compile(r"^(?:m\.?d|ph\.?d|esq|j\.?d|m\.?p|mba|rn|d\.?o)\.?$", re.IGNORECASE)
# Job titles and newspapers, which are not names themselves in a list with names.
_POST = re.compile(
    r"\b(?:writers?|reporters?|editors?|correspondents?|columnists?|contributors?|contributing|producers?|journalists?|"
    r"bureau|staff|desk|chief|special\s+to|analysts?|fellow|director|professor|anchors?|photographers?|critics?|"
    r"bloggers?|freelancers?|senior|newsroom|team|editorial|board|newspapers?|newsletter|magazine|tribune|post|times|"
    r"journal|gazette|herald|news|network|media|press|agenc(?:y|ies)|agencia|agentur|wires?|reports?|sports|today|"
    r"staffers?|guest|opinion|politics|managing|associate|deputy|executive|admin|webmaster|updated?|published|"
    r"redaktion|redacci[oó]n|r[eé]daction|redazione|inc|llc|ltd|corp)\b",
    re.IGNORECASE,
)
_AGENCY = re.compile(
    r"^(?:the\s+)?(?:associated\s+press|ap|reuters|afp|agence\s+france-?presse|bloomberg(?:\s+news)?|upi|dpa|efe|ansa|"
    r"cnn(?:\.com)?|npr|bbc|abc|nbc|cbs|pbs|fox|usa\s*today|wsj|xinhua|yonhap|tass|pti|ians|ani|kyodo|"
    r"getty(?:\s+images)?|canadian\s+press|pa|cp|sid|apa|belga|ritzau|tt|ntb|press\s+association)$",
    re.IGNORECASE,
)
_ROLES_END = re.compile(r"\s+(?:is\s+a|is\s+an|for\s+the|of\s+the|in\s+[A-Z]\w+$|at\s+the|contributed\b).*$")
_NO_NAME = re.compile(
    r"\d{2}|[:!?]|^(?:the|about|more|share|follow|a|an|by|see|all|view|unknown|anonymous|none|null|undefined|n)$"
    r"|^(?:follow|share|read)\b",
    re.IGNORECASE,
)


def people(text: str | tuple[str, ...], site: str = "") -> tuple[str, ...]:
    """Returns the names of people in a byline, each once, in order.

    Agencies, newspapers and job titles are left out if the byline names a person; otherwise they are returned.

    >>> people("By Ann Lee and Bo Chen, Associated Press, bo@x.org; ANN LEE")
    ('Ann Lee', 'Bo Chen')
    >>> people("The Associated Press")
    ('The Associated Press',)

    Args:
      text: one byline, or several.
      site: name of the site, which is not a person.
    """
    names = list(_names((text,) if isinstance(text, str) else text))
    persons = [name for name in names if _is_person(name, site)]
    # A single word is a pen name or a fragment; next to full names it is a fragment.
    full = [name for name in persons if " " in name or not name.isascii()]
    chosen = full or persons or [name for name in names if not _NO_NAME.search(name)]
    first: dict[str, str] = {}
    for name in chosen:
        first.setdefault(name.casefold(), name)
    return tuple(first.values())[:_MAX_AUTHORS]


def names_person(names: tuple[str, ...], site: str = "") -> bool:
    """Returns whether one of the names is a person and not an agency, a newspaper or a job title."""
    return any(_is_person(name, site) for name in names)


def _is_person(name: str, site: str) -> bool:
    return not (_POST.search(name) or _AGENCY.match(name) or (site and letters_of(name) == letters_of(site)))


def _names(bylines: tuple[str, ...]) -> Iterator[str]:
    for byline in bylines:
        last = ""
        for part in _SPLIT.split(_ASIDE.sub(" ", byline[:2000])):
            name = _TITLE.sub("", _ROLES_END.sub("", _BY.sub("", " ".join(part.split()))).strip(" .,:\"'“”*–-_"))
            if last and _GENERATION.match(name):
                last = f"{last} {name.rstrip('.')}."
                continue
            if last:
                yield last
            fits = 1 < len(name) <= _MAX_NAME_CHARACTERS and len(name.split()) <= _MAX_NAME_WORDS
            last = _capitalised(name) if fits and not _DEGREE.match(name) and not _NO_NAME.search(name) else ""
        if last:
            yield last


def _capitalised(name: str) -> str:
    """Returns SHANE O'NEILL and shane o'neill as Shane O'Neill; other names unchanged."""
    if " " not in name or not (name.isupper() or name.islower()):
        return name
    return re.sub(
        r"(?<![’'])\b[^\W\d_]+|(?<=\b[OoDd][’'])[^\W\d_]+", lambda word: word.group().capitalize(), name.lower()
    )
