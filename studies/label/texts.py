"""The parts of an article that the annotator sees, and the words that two articles share."""

import collections
import dataclasses
import re
from collections.abc import Collection, Iterable

from ...formats.parquet import read_batches, shard_paths

_CHARACTERS = 1_600  # of a body: its first paragraphs
_MIN_LETTERS = 3
_COMMON_SHARE, _ENOUGH_ARTICLES = 0.25, 20
_COLUMNS = ("url", "publisher", "title", "body", "byline_date", "language", "image_url")
_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a body must not control the terminal

Segments = list[tuple[str, bool]]


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """The shown parts of an article; ``cut`` means that the body is longer."""

    url: str
    publisher: str
    title: str
    paragraphs: tuple[str, ...]
    cut: bool
    byline_date: str
    language: str
    image_url: str = ""

    @property
    def words(self) -> set[str]:
        """Its words of at least three letters."""
        return {word for part in (self.title, *self.paragraphs) for word in _words(part) if len(word) >= _MIN_LETTERS}


def read_texts(folder: str, wanted: Collection[str]) -> dict[str, Text]:
    """Texts of the wanted articles by doc_id."""
    found = {}
    for path in shard_paths(folder):
        for batch in read_batches(path, ["doc_id", *_COLUMNS]):
            for place, doc_id in enumerate(batch.column("doc_id").to_pylist()):
                if doc_id in wanted:
                    found[doc_id] = _text(*(batch.column(name)[place].as_py() for name in _COLUMNS))
    return found


def common_words(texts: Iterable[Text]) -> dict[str, set[str]]:
    """Words that too many articles of a language share to be informative; none if there are few articles."""
    by_language: dict[str, list[Text]] = collections.defaultdict(list)
    for text in texts:
        by_language[text.language].append(text)
    common = {}
    for language, group in by_language.items():
        counts = collections.Counter(word for text in group for word in text.words)
        most = _COMMON_SHARE * len(group)
        common[language] = (
            {word for word, count in counts.items() if count > most} if len(group) >= _ENOUGH_ARTICLES else set()
        )
    return common


def shared_words(left: Text, right: Text, common: dict[str, set[str]]) -> set[str]:
    """The words of both texts that are common in neither language."""
    return (left.words & right.words) - common.get(left.language, set()) - common.get(right.language, set())


def segments(text: str, shared: Collection[str]) -> Segments:
    """The text in segments, each with whether it is a shared word."""
    pieces: Segments = []
    end = 0
    for match in _WORD.finditer(text):
        if match.group().casefold() in shared:
            if match.start() > end:
                pieces.append((text[end : match.start()], False))
            pieces.append((match.group(), True))
            end = match.end()
    return [*pieces, (text[end:], False)] if end < len(text) else pieces


def _text(url: str, publisher: str, title: str, body: str, byline_date: object, language: str, image_url: str) -> Text:
    cut = len(body) > _CHARACTERS
    shown = body[:_CHARACTERS].rpartition(" ")[0] or body[:_CHARACTERS] if cut else body
    paragraphs = tuple(part.strip() for part in _clean(shown).split("\n") if part.strip())
    date = str(byline_date or "no date")
    return Text(url, _clean(publisher), _clean(title), paragraphs, cut, date, language, image_url)


def _words(text: str) -> list[str]:
    return [match.casefold() for match in _WORD.findall(text)]


def _clean(text: str) -> str:
    return _CONTROL.sub(" ", text)
