"""What an event's articles say: a summary, the names in them, and what each report adds to those before it."""

import collections
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ...formats.months import calendar_words
from ...tasks.sentences import split_text
from ..analysis import PAIRED, stemmer_of, words_of

SUMMARY: Final = 220  # characters
_ADDED: Final = 2  # sentences of a report
_LEAST_WORDS: Final = 6  # of a sentence that tells something
_KNOWN: Final = 0.5  # of the words of a sentence; if an earlier sentence has so many, it tells the same
_LONG: Final = re.compile(f".{{4}}|{PAIRED}")  # words that tell something, and pairs of characters
_SENTENCES: Final = 60  # of a report that are compared
_NAMES: Final = 8
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]")
_INSIDE: Final = re.compile(r"[\w,;:] ")  # before a word that begins no sentence
# Between the words of a name: a space, or initials.
_INITIALS: Final = re.compile(r" (?:(?:[A-Z\u00c0-\u00de\u0410-\u042f]\.)+ )?")
_CAPITALISED: Final = frozenset(("en", "de"))  # languages whose days and months begin with a capital
_PARTICLES: Final = frozenset(("of", "de", "del", "von", "van", "al"))
_MOST_WORDS: Final = 4  # of a name
_ADDRESS: Final = re.compile(  # no part of a name
    r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sen|Rep|Gov|Herr|Frau|Se\u00f1ora?|Sra?|Monsieur|Madame|Mme|Signora?)\b ?"
)


def summary(body: str) -> str:
    """The first sentences of an article, as many as fit; where they fill less than half, the next is cut at a space."""
    text = ""
    for _, sentence in split_text(" ".join(body[: 4 * SUMMARY].split())):
        if len(text) >= SUMMARY // 2 and len(text) + len(sentence) >= SUMMARY:
            break
        text = f"{text} {sentence}".strip()
    if len(text) <= SUMMARY:
        return text
    cut = text[: SUMMARY - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[SUMMARY // 2 :] else cut} …"


def names(text: str) -> list[str]:
    """Names in a text: capitalised words in a row, inside of sentences; none in scripts without capitals."""
    found, run, end = list[str](), list[str](), -1
    for word in _WORD.finditer(text):
        between = text[max(end, 0) : word.start()]
        follows = bool(run) and _INITIALS.fullmatch(between) is not None
        is_particle = follows and word[0] in _PARTICLES and len(run) < _MOST_WORDS
        is_name = word[0][0].isupper() and (follows or _INSIDE.fullmatch(text, max(0, word.start() - 2), word.start()))
        if not (is_particle or (is_name and follows)):
            found.append(" ".join(run))
            run = []
        if is_particle or is_name:
            run += [*between.split(), word[0]] if follows else [word[0]]
        end = word.end()
    whole = (re.sub(r"( (of|de|del|von|van|al))+$|['\u2019]s$", "", name) for name in (*found, " ".join(run)))
    plain = (name[address.end() :] if (address := _ADDRESS.match(name)) else name for name in whole)
    dates = calendar_words(_CAPITALISED)
    return [name for name in plain if len(name) > 1 and name not in dates]


def shared_names(bodies: Sequence[str], is_common: Callable[[str], bool]) -> list[str]:
    """The names that most of some articles have, at least two of them (or of one article, what it names twice).

    Args:
      bodies: of the articles.
      is_common: whether a name says little, since many other articles have it.
    """
    counts: collections.Counter[str] = collections.Counter()
    for body in bodies:
        counts.update(name for name, count in collections.Counter(names(body)).items() if len(bodies) > 1 or count > 1)
    ordered = sorted(counts, key=lambda name: (-counts[name], -len(name), name))
    least = min(2, len(bodies))
    return distinct((name for name in ordered if counts[name] >= least and not is_common(name)), _NAMES)


def distinct(ordered: Iterable[str], most: int) -> list[str]:
    """The first names of which none is a part of another."""
    chosen = list[str]()
    for name in ordered:
        if not any(name in other or other in name for other in chosen):
            chosen.append(name)
        if len(chosen) == most:
            break
    return chosen


def additions(bodies: Sequence[str], languages: Sequence[str]) -> list[list[str]]:
    """For each article, in their order, up to two sentences that none before it has; none for the first.

    Two sentences say the same if one has half of the other's words. Articles of another language are not compared.
    """
    seen: dict[str, list[set[str]]] = collections.defaultdict(list)
    result = []
    for body, language in zip(bodies, languages, strict=True):
        earlier, added, own = seen[stemmer_of(language) or language], list[str](), []
        for _, sentence in split_text(body)[:_SENTENCES]:
            words = {word for word in words_of(sentence, language).split() if _LONG.match(word)}
            if len(words) < _LEAST_WORDS:
                continue
            own.append(words)
            if earlier and len(added) < _ADDED and all(len(words & other) < _KNOWN * len(words) for other in earlier):
                added.append(" ".join(sentence.split()))
        earlier += own
        result.append(added)
    return result
