"""Bylines: names of people in metadata and on the page, and the days that the page shows.

The words around names are in ``bylines.txt``.
"""

# ruff: noqa: RUF001 - the marks that pages are written with

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from ...formats.dates import EVENT, PUBLISHED, UPDATED, Day, is_plausible, parse_day, stated_days
from ...formats.jsonl import load_json
from ...formats.months import is_month
from .. import read_lists
from .layout import Name, any_of, judge_name, letters_of, text_of, words
from .lists import BESIDE, BYLINE, Region, is_day

_MAX_AUTHORS = 10
_MAX_NAME_CHARACTERS = 60
_MAX_NAME_WORDS = 6
_SPLIT = re.compile(  # a run of spaces is tried from its first one only, or many would take quadratic time
    r"(?i)(?:(?<!\s)\s+)?[;|/•·\n\t‹›、；؛｜／]\s*|(?<=[\u4e00-\u9fff]{2})[・と](?=[\u4e00-\u9fff]{2})"
    r"|(?<!\s)\s+(?:[-–—]|and|with|und|&|&amp;|및|และ)\s+",
)
_COMMA = re.compile(r"(?:(?<!\s)\s+)?[,，،]\s*")
_LISTS = read_lists(__package__, "bylines.txt")
_AND = words(_LISTS["and"])
# Names that begin with the letter that means "and" in their script.
_WAW_NAMES = re.compile(
    r"(?:وليد|وائل|وفاء|وسيم|وسام|وداد|وجدي|وجيه|وحيد|وديع|وليم|وهبة|واثق|واصف|وصفي|ورد|ורד|ויקטור|ויקי|ולד)"
)
_WAW = re.compile(r"(?<!\s)\s+(?=[وו]\w{2})")
_HAN_AND = re.compile(r"(?<=[\u4e00-\u9fff]{2})[和與与同 ](?=[\u4e00-\u9fff]{2,4}(?: |$))")
_GLUED = re.compile(r"^By(?=[A-Z][\w.'’-]* )")
_BY = re.compile(rf"(?i)^\W*(?!von\s+(?:de[mnr]|und)\s){any_of(_LISTS['by'])}\b[\s:.：／/]+")
_JOB_AFTER = re.compile(rf"(?i)^((?:\S+\s+){{1,2}}?\S+)\s+{any_of(_LISTS['job'])}\b.*$")
_JOB_BEHIND = re.compile(r"(?:(?<!\s)\s+)?(?:기자|특파원|記者|记者|报道|報導|報道)$")
_CREDIT = re.compile(
    rf"(?i)\b(?:additional\s+)?{any_of(_LISTS['credit'])}(?:\s+(?:and|&)\s+\w+)?"
    r"\s*(?:\b(?:by|von|par|por|de|di|door|av|af)\b|[:：]|(?<=[\u4e00-\u9fff])[/／])\s*",
)
_NOISE = re.compile(any_of(_LISTS["noise"]), re.IGNORECASE)
_PART = re.compile(r"(?<![’'])\b[^\W\d_]+|(?<=\b[OoDd][’'])[^\W\d_]+")  # of a name, that has a capital
_FROM_DIGIT = re.compile(r"(?:\s+(?![A-ZÀ-ÞΑ-ΩА-Я])[^\W\d_]{1,8})*\s*\S*\d.*$", re.DOTALL)
_FAMILY = re.compile(
    r"(?:(?:[Vv]an|[Vv]on|[Dd][eai]|[Dd]el|[Ll]a|[Dd]en|[Dd]er|[Dd]os|[Ll]e|[Aa]l|[Ii]bn|[Bb]in|St\.|Mac|Ó|te[nr]|und|zu|av|af)\s+)*[^\W\d_a-z][\w’'-]+"
)
_GIVEN = re.compile(r"[^\W\d_a-z](?:[\w’'-]*|\.)(?:\s*[^\W\d_a-z]\.?(?!\w)){0,2}")
_GIVEN_NAMES = re.compile(rf"{_GIVEN.pattern}(?:\s+[^\W\d_a-z][\w’'-]+)?")
_EDGES = re.compile(r"^[ .,:\"'“”*–~_-]+|(?:[ ,:\"'“”*–~_-]|(?<!\b[^\W\d_])\.)+$")  # the point after an initial stays
_MAX_LITERAL = 5_000
_LITERAL = re.compile(r"(?:\w+\()?([\[{(].*?[\]})])(?:, dtype=\w+)?\)?", re.DOTALL)  # also of pandas: array(['Ann'])
_KEYS = (
    "name fullname displayname author value",
    "givenname firstname given first",
    "familyname lastname family last",
)
# No value, or the account of a content management system.
_NOBODY = re.compile(
    r"(?i)^\W*(?:none|nan|null|n/?a|nil|undefined|unknown|anonymous|no author|admin\d*|administrator|webmaster|root"
    r"|user|guest|(?:your )?name|未知|佚名|匿名)?\W*$",
)
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>|@\w+|\S{1,64}@\S+|https?://\S+|\bwww\.\S+")
_TITLE = re.compile(r"(?i)^(?:dr|mr|mrs|ms|prof)\.?\s+(?=\w+\s+\w)")
_GENERATION = re.compile(r"(?i)^(?:jr|sr|ii|iii|iv)\.?$")
_DEGREE = re.compile(r"(?i)^(?:m\.?d|ph\.?d|esq|j\.?d|m\.?p|mba|rn|d\.?o)\.?$")
_POST = re.compile(rf"(?i)\b{any_of(_LISTS['post'])}\b")
_LOGIN = re.compile(r"(?=.{5})[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_AGENCY = re.compile(rf"(?i)^(?:the\s+)?{any_of(_LISTS['agency'])}$")
_ROLES_END = re.compile(
    r"(?<!\s)\s+(?:is\s+an?|(?:for\s+[Tt]|of\s+t|at\s+t)he|in(?:\s+[A-Z]\w+){1,2}$|contributed\b).*$"
)
_NO_NAME = re.compile(
    r"(?i)\d{2}|[:!?{}=]|^(?:the|about|more|share|follow|a|an|by|von|see|all|view|unknown|anonymous|anónimo|未知|佚名|匿名|none|null|undefined|n"
    r"|publisher|autor|text|beitrag|artikel von|datum|quelle|link"
    r"|facebook|twitter|instagram|youtube)$"
    r"|^(?:follow|share|read)\b",
)
_MAX_BYLINE = 200
_MAX_CANDIDATES = 60
_BYLINES, _DATES = ([etree.XPath(path) for path in _LISTS[name].splitlines()] for name in ("bylines", "dates"))
_BY_LINE = re.compile(
    r"(?i)^\W*(?:(?:written|posted|published|reported|story|words)\s+)?(?:by|von|por|par|di|door|av|af|автор)[\s:]+(?=\S{2,}\s+\S{2,})",
)
_NAME_CASE = re.compile(r"^\W*+\S+(?:\s+\S+)?[\s:]++(?:[^\W\d_][\w.’'-]*\s+)*?[A-ZÀ-Þ\u0400-\u042f]")
_UPDATED = re.compile(r"(?i)updat|modif|lastmod|edit|actuali|aktualis|mis à jour|обновл")
_OTHERS = re.compile(rf"(?i)(?:^|[\s_-]){any_of(_LISTS['others'])}(?:$|[\s_-])")
_FIRST_YEAR = 1990  # of pages
_MAX_LABEL = 60
_MAX_BEHIND = 5
_DATELINE = re.compile(  # "Berlin, 29.11.2022 | The text", "(29.11.2022) The text", not "On 11 September 2001 | a day"
    r"\(?((?:[^\d,]{2,30},\s|\w{1,30} vom\s)?(?:[^\W\d_]{3,12}\.?\s)?\d.{5,25}?)(?:\s?[–—|]\s|\s-\s|(?<=\d{4})[.:)]\s)"
)
_POSTED = re.compile(r"(?i)publi|post|submit|creat|issued|entry-date|dateline|date_?time|timestamp|byline")


def people(text: str | tuple[str, ...], site: str = "", language: str = "") -> tuple[str, ...]:
    """Returns the names of people in a byline, each once, in order.

    Agencies, newspapers and job titles are left out if the byline names a person; otherwise they are returned.

    >>> people("By Ann Lee and Bo Chen, Associated Press, bo@x.org; ANN LEE"), people("Olsen, Marta")
    (('Ann Lee', 'Bo Chen'), ('Marta Olsen',))
    >>> people("The Associated Press"), people("['Marta Olsen', 'Bo Chen']")
    (('The Associated Press',), ('Marta Olsen', 'Bo Chen'))

    Args:
      text: one byline, or several.
      site: name of the site, which is not a person.
      language: of the page, whose word for "and" separates names.
    """
    texts = [one for given in ((text,) if isinstance(text, str) else text) for one in listed_names(given)]
    names = list(_names(texts, site, _and_of(language)))
    persons = [name for name in names if _is_person(name, site)]
    # A single word is a pen name or a fragment; next to full names it is a fragment.
    full = [name for name in persons if " " in name or not name.isascii()]
    chosen = full or persons or [name for name in names if not _NO_NAME.search(name)]
    first: dict[str, str] = {}
    for name in chosen:
        first.setdefault(name.casefold(), name)
    return tuple(first.values())[:_MAX_AUTHORS]


def listed_names(value: Any) -> Iterator[str]:
    """Yields the names in what a row or a page gives as authors: texts, objects, lists, and lists written as text.

    >>> list(listed_names("[{'name': 'Marta Olsen'}, 'Bo Chen']")), list(listed_names('{"Marta Olsen",Bo}'))
    (['Marta Olsen', 'Bo Chen'], ['Marta Olsen', 'Bo'])
    """
    if isinstance(value, Mapping):
        own = {re.sub(r"[\W_]+", "", str(key)).lower(): one for key, one in value.items() if one}
        whole, *parts = (next((own[key] for key in keys.split() if key in own), "") for keys in _KEYS)
        if all(isinstance(part, str) and part for part in parts) and (not whole or "," in str(whole)):
            whole = " ".join(map(str, parts))
        yield from listed_names(whole)
    elif isinstance(value, str):
        text = value.strip()
        if literal := _LITERAL.fullmatch(text):
            yield from _of_literal(literal[1])
        elif not _NOBODY.match(text):
            yield text
    elif isinstance(value, Iterable):
        for one in itertools.islice(value, 10 * _MAX_AUTHORS):
            yield from listed_names(one)


def _of_literal(text: str) -> Iterator[str]:
    text = re.sub(r"(?<=['\"])\s+(?=['\"])", ", ", text)  # NumPy: ['Marta Olsen' 'Bo Chen']
    for read in (load_json, ast.literal_eval):
        try:
            value = read(text[:_MAX_LITERAL])
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if isinstance(value, Mapping | Iterable) and not isinstance(value, str | bytes):
            yield from listed_names(value)
            return
    # "{Marta Olsen,Bo Chen}" of PostgreSQL
    inner = text[1:-1][:_MAX_LITERAL]
    for parts in re.findall(r'"([^"]+)"|\'([^\']+)\'(?!\w)|([^\s,"\'][^,"]*)', inner):
        yield from listed_names("".join(parts).strip())


def names_person(names: tuple[str, ...], site: str = "") -> bool:
    """Returns whether one of the names is a person and not an agency, a newspaper or a job title."""
    return any(_is_person(name, site) for name in names)


def _is_person(name: str, site: str) -> bool:
    is_site = bool(site) and letters_of(name) == letters_of(site)
    return not (is_site or _POST.search(name) or _AGENCY.match(name) or _LOGIN.fullmatch(name))


@functools.lru_cache(maxsize=100)
def _and_of(language: str) -> frozenset[str]:
    """Returns the words between the names of a list, in any language and in that of the page."""
    from babel import Locale
    from babel.core import UnknownLocaleError

    try:
        pattern = Locale.parse(language.replace("-", "_").partition("_")[0]).list_patterns["standard"]["2"]
    except (UnknownLocaleError, ValueError, TypeError, KeyError):
        return _AND
    return _AND | ({pattern.removeprefix("{0}").removesuffix("{1}").strip()} - {"", ",", "、", "da"})


def _names(bylines: Iterable[str], site: str, ands: frozenset[str]) -> Iterator[str]:
    for byline in bylines:
        text = _NOISE.sub(" | ", _CREDIT.sub(" | ", _ASIDE.sub(" ", byline[:2000])))
        last = ""
        for part in (part for piece in _SPLIT.split(text) for part in _of_commas(piece, site, ands)):
            is_news = _POST.match(part) or _AGENCY.match(part.partition(" ")[0])
            name = part if is_news else _JOB_AFTER.sub(r"\1", part)
            name = _JOB_BEHIND.sub("", _TITLE.sub("", _ROLES_END.sub("", name)))
            if last and _GENERATION.match(name):
                last = f"{last} {name.rstrip('.')}."
                continue
            if last:
                yield last
            fits = 1 < len(name) <= _MAX_NAME_CHARACTERS and len(name.split()) <= _MAX_NAME_WORDS
            last = _capitalised(name) if fits and not _DEGREE.match(name) and not _NO_NAME.search(name) else ""
        if last:
            yield last


def _of_commas(text: str, site: str, ands: frozenset[str]) -> Iterator[str]:
    """Yields the names in a text between strong separators; "Olsen, Marta" and "Olsen, Marta, Chen, Bo" in order."""
    parts = [name for part in _COMMA.split(text) for name in _of_words(_bare(part), ands)]
    names = [part for part in parts if part and not _DEGREE.match(part)]
    pairs = list(zip(names[::2], names[1::2], strict=False))
    if len(names) % 2 == 0 and pairs and all(_is_inverted(*pair, site) for pair in pairs):
        parts = [f"{given} {family}" for family, given in pairs]
    yield from parts


def _bare(part: str) -> str:
    part = " ".join(part.split()).lstrip(" :.,-")[:_MAX_BYLINE]
    if part[:1].isdigit():
        return ""  # "4 min read"
    if found := _FROM_DIGIT.search(part):
        name = part[: found.start()].strip()
        if is_month(name.rpartition(" ")[2].rstrip(".")):
            part = name.rpartition(" ")[0]  # "Marta Olsen Nov 4", "Nov 4"
        elif " " in name or not name.isascii():
            part = name  # "Marta Olsen 5 minutes ago"
    return _EDGES.sub("", _BY.sub("", _GLUED.sub("", part)))


def _is_inverted(family: str, given: str, site: str, is_one: bool = False) -> bool:
    return bool(
        _FAMILY.fullmatch(family)
        and given[:1].isupper()
        and family.rpartition(" ")[2][0].isupper()
        and (_GIVEN_NAMES if is_one or family[0].islower() else _GIVEN).fullmatch(given)
        and not any(
            _GENERATION.match(part) or _DEGREE.match(part) or not _is_person(part, site) for part in (family, given)
        )
    )


def in_order(name: str) -> str:
    """Returns the name of one person, with the family name last.

    >>> in_order("García Márquez, Gabriel"), in_order("Ann Lee, Bo Chen"), in_order("Ann Lee, PhD")
    ('Gabriel García Márquez', 'Ann Lee, Bo Chen', 'Ann Lee, PhD')
    """
    family, comma, given = (part.strip() for part in name.partition(","))
    words = family.split()
    if comma and 0 < len(words) < 4 and _is_inverted(words[-1], given, "", len(words) == 1 or family[0].islower()):
        return f"{given} {family}"
    return name


def _of_words(text: str, ands: frozenset[str]) -> Iterator[str]:
    """Yields the names on both sides of a word for "and", where both sides are whole names."""
    words = text.split()
    for number, word in enumerate(text.lower().split() if text.isupper() else words):
        if word in ands and _is_whole(words[:number]) and _is_whole(words[number + 1 :]):
            yield " ".join(words[:number])
            yield from _of_words(" ".join(words[number + 1 :]), ands)
            return
    attached = next((place for place in _WAW.finditer(text) if not _WAW_NAMES.match(text, place.end())), None)
    if attached and " " in text[: attached.start()] and " " in text[attached.end() :]:
        yield text[: attached.start()]
        yield from _of_words(text[attached.end() + 1 :], ands)
        return
    yield from _HAN_AND.split(text) if {"和", "同"} & ands else (text,)


def _is_whole(words: Sequence[str]) -> bool:
    """Returns whether words are a name of its own: two in capitals, or in a script without them one or more."""
    capitals = [word for word in words if word[0].isupper()]
    return len(capitals) > 1 or bool(words and not re.search(r"[a-zа-яα-ωա-և]", words[0].casefold()))


def _capitalised(name: str) -> str:
    """Returns SHANE O'NEILL and shane o'neill as Shane O'Neill; other names unchanged."""
    if " " not in name or not (name.isupper() or name.islower()):
        return name
    return _PART.sub(lambda part: part[0].capitalize(), name.lower())


def bylines(tree: Any, region: Region) -> tuple[str, ...]:
    """Returns the raw texts of the page's byline; () if there is none."""
    for rank, path in itertools.product((BYLINE, BESIDE), _BYLINES):
        found = list(filter(None, map(_byline_text, _candidates(tree, path, region, rank))))
        if found:
            return tuple(dict.fromkeys(found))
    for block in region.lines(3):
        if _names_author(block.text):
            return (block.text,)
    return ()


def is_byline(line: str) -> bool:
    """Returns whether a short line before a text names its author or its day."""
    return _names_author(line) or (len(line) <= _MAX_BYLINE // 2 and bool(_shown(line, "")))


def _names_author(line: str) -> bool:
    return len(line) <= _MAX_BYLINE // 2 and bool(_BY_LINE.match(line) and _NAME_CASE.match(line))


def _candidates(tree: Any, path: etree.XPath, region: Region, rank: int | None) -> Iterator[Any]:
    """Yields the first elements of a path that are in one part of the region, `BYLINE` or `BESIDE`, not in comments."""
    for node in path(tree)[:_MAX_CANDIDATES]:
        if node.tag in ("meta", "link", "script", "html", "body", "article", "main"):
            continue
        if region.rank(node) == rank and all(
            judge_name(_label(one)) is not Name.NEVER for one in (node, *node.iterancestors())
        ):
            yield node


def _label(node: Any) -> str:
    return f"{node.get('class', '')} {node.get('id', '')}"


def _byline_text(node: Any) -> str:
    whole = text_of(node, _MAX_BYLINE + 1)
    if len(whole) > _MAX_BYLINE:
        return ""
    names = node.xpath(".//*[@itemprop='name']")[:_MAX_CANDIDATES]
    named = ", ".join(text_of(name, _MAX_BYLINE) or name.get("content", "") for name in names)
    text = named or " ".join(_apart(node).split()) or node.get("content", "")
    return text if 3 < len(text) <= _MAX_BYLINE and any(letter.isalpha() for letter in text) else ""


def _apart(node: Any) -> str:
    """Returns the text of an element with a separator between elements that abut: they are apart on the screen."""
    if not len(node):
        return text_of(node, _MAX_BYLINE)
    return (node.text or "") + "".join(_apart(one) + (one.tail or " | ") for one in node)


def days(tree: Any, region: Region, place: str = "") -> tuple[Day | None, Day | None]:
    """Returns the visible days of (first publication, last modification).

    The words around a day say which it is, then the name of its element. Days of other stories are left out.

    Args:
      tree: a parsed page.
      region: the part of the page with the article.
      place: language and country, see :func:`~newsembed.formats.dates.place_of`.
    """
    changed: list[Day] = []
    # Between heading and text; then elsewhere by the likeliest path; then in lines; then elsewhere by the other paths.
    near, far = itertools.product((BYLINE,), _DATES), itertools.product((BESIDE,), _DATES)
    for rank, path in (*near, next(far), (None, None), *far):
        published = None if path else _day_of_lines(region, place, changed)
        behind = 0  # the day of the last change stands soon behind the other
        own = _candidates(tree, path, region, rank) if path else ()
        for node, day in ((one, day) for one in own for day in _days_of(one, place)):
            role = day.role or _role_by_name(node)
            if role == UPDATED:
                changed.append(day)
            elif role == PUBLISHED and day.day not in {one.day for one in changed}:
                published = published or day
            behind += published is not None
            if behind > _MAX_BEHIND:
                break
        if published:
            return published, next((day for day in changed if day.day >= published.day), None)
    return None, next(iter(changed), None)


def _day_of_lines(region: Region, place: str, changed: list[Day]) -> Day | None:
    """Returns the day that a short line below the heading or below the text states, and adds those of changes.

    Of a paragraph only its dateline is such a line. Below the text, a day may belong to a source.
    """
    label = ""  # such as "Updated", in the block before
    for block in region.lines(2):
        text, dateline = block.text, _DATELINE.match(block.text) if block.prose else None
        line = dateline[1] if dateline else text
        found = _shown(f"{label} {line}", place) if len(line) <= _MAX_BYLINE // 2 else []
        roles = {day.role for day in found}
        if block in region.foot:
            is_line = not roles.isdisjoint((PUBLISHED, UPDATED)) or is_day(text) or _names_author(text)
        else:
            is_line = dateline is not None or not block.prose or roles >= {PUBLISHED, UPDATED}
        if is_line and (first := _first_published(found, changed)):
            return first
        label = text if len(text) <= _MAX_LABEL // 3 and _UPDATED.search(text) else ""
    return None


def _first_published(found: list[Day], changed: list[Day]) -> Day | None:
    changed += [day for day in found if day.role == UPDATED]
    known = {day.day for day in changed}
    return next((day for day in found if day.role not in (UPDATED, EVENT) and day.day not in known), None)


def _role_by_name(node: Any) -> str:
    name = " ".join(node.get(attribute, "") for attribute in ("itemprop", "class", "id", "data-testid"))
    if _UPDATED.search(name):
        return UPDATED
    return PUBLISHED if _POSTED.search(name) or node.tag == "time" or "date" in name.lower() else ""


def _days_of(node: Any, place: str) -> list[Day]:
    """Returns the days of an element, by its attributes or its text."""
    if any(map(_is_other_story, [node, *node.iterancestors()][:4])):
        return []
    words = _dated_text(node)
    written = _shown(text_of(node, _MAX_BYLINE), place)
    for attribute in ("datetime", "content", "title", "data-datetime", "data-timestamp", "data-date"):
        day = parse_day(node.get(attribute), place)
        if day is not None and day.year >= _FIRST_YEAR:
            if [one.role for one in written] == [PUBLISHED] and abs((written[0].day - day).days) > 1:
                return written  # the attribute may be of the last change
            # "Updated" may be in the element, before it or after it.
            own = re.sub(r"\d", "", f"{words} {node.get('aria-label', '')} {node.get('title', '')}")
            around = f"{_text_before(node)} {own} {day} {node.tail or ''}"
            role = next((shown.role for shown in (*_shown(words, place)[:1], *_shown(around, place)) if shown.role), "")
            return [Day(day, role)]
    return _shown(words, place)


def _shown(text: str, place: str) -> list[Day]:
    return [day for day in stated_days(text, place) if day.day.year >= _FIRST_YEAR and is_plausible(day.day)]


def _is_other_story(node: Any) -> bool:
    is_link = node.tag == "a" and not is_day(text_of(node, _MAX_BYLINE))  # a day may link to its own article
    return is_link or bool(_OTHERS.search(_label(node)))


def _dated_text(node: Any) -> str:
    """Returns the text of an element, with the value of a time element instead of its words."""
    if not len(node):
        return text_of(node, _MAX_BYLINE)
    pieces = [node.text or ""]
    for child in node:
        stated = child.get("datetime") if child.tag == "time" else None
        pieces += [stated[:10] if stated and parse_day(stated) else _dated_text(child), child.tail or ""]
        if sum(map(len, pieces)) > _MAX_BYLINE:
            break
    return " ".join(" ".join(pieces).split())[:_MAX_BYLINE]


def _text_before(node: Any) -> str:
    """Returns the words before an element, of its line or of the one before, up to another day."""
    for _ in range(2):
        above = node.getparent()
        if above is None or above.tag in ("article", "main", "body"):
            break
        text = above.text or ""
        for one in above.iterchildren():
            if one is node:
                break
            text = f"{text} {'|' if one.tag == 'time' else text_of(one, _MAX_BYLINE)} {one.tail or ''}"
        if text.strip():
            return re.split(r"\d", " ".join(text.split())[-_MAX_LABEL:])[-1]
        node = above
    return ""
